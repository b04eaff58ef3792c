%% What runs in a BEAM of another release: it connects to the suite that started it, calls what it is told, and ends when the suite does. Compiled by the
%% release it runs in, so it uses nothing newer than OTP 23.
-module(interop_peer).

-export([start/0, await/1, await/2]).

%% The suite's port is the only argument of the command line that is ours.
start() ->
    {ok, [[Port]]} = init:get_argument(suite_port),
    spawn(fun() -> connect(list_to_integer(Port)) end).

connect(Port) ->
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {packet, 4}, {active, true}]),
    ok = gen_tcp:send(Socket, term_to_binary({hello, node(), os:getpid()})),
    serve(Socket).

serve(Socket) ->
    receive
        {tcp, Socket, Frame} ->
            {Ref, Module, Function, Args} = binary_to_term(Frame),
            Self = self(),
            spawn(fun() -> Self ! {done, Ref, evaluate(Module, Function, Args)} end),
            serve(Socket);
        {done, Ref, Result} ->
            ok = gen_tcp:send(Socket, term_to_binary({Ref, Result})),
            serve(Socket);
        {tcp_closed, Socket} ->
            halt(0, [{flush, false}])
    end.

evaluate(Module, Function, Args) ->
    try
        {ok, apply(Module, Function, Args)}
    catch
        Class:Reason:Stack -> {failed, iolist_to_binary(io_lib:format("~0p:~0P~n~p", [Class, Reason, 60, Stack]))}
    end.

%% Waits until Condition holds, for what sends no message: it is asked every 20 ms, at most for 30 s. The only place in these modules that waits for time to
%% pass.
await(Condition) ->
    await(Condition, 1500).

await(Condition, Tries) ->
    case Condition() of
        true ->
            ok;
        false when Tries > 0 ->
            receive
            after 20 -> await(Condition, Tries - 1)
            end;
        false ->
            error(never_happened)
    end.
