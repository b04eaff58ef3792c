%% The peers of a benchmark and the ways to them. A peer is
%%
%%     #{name, send := fun((Msg) -> ok), next := fun(() -> Msg), call := fun(() -> ok) | none}
%%
%% made in the process that uses it: over a port or a socket its messages come to the process that opened it, as frames which next decodes.
-module(transport).

-export([node/2, port/3, unix/2, start/3, stop/1, await/1]).

%% A node whose process echo answers.
node(Name, Node) ->
    To = {echo, Node},
    #{
        name => Name,
        send => fun(Msg) -> _ = To ! Msg, ok end,
        next => fun() -> receive Msg -> Msg end end,
        call => fun() -> pong = gen_server:call(To, ping), ok end
    }.

port(Name, Executable, Args) ->
    Port = open_port({spawn_executable, Executable}, [{args, ["port" | Args]}, {packet, 4}, binary]),
    Next = fun() ->
        receive
            {Port, {data, Frame}} ->
                {_, Msg} = binary_to_term(Frame),
                Msg
        end
    end,
    {hello, _} = Next(),
    Send = fun(Msg) ->
        true = port_command(Port, term_to_iovec(Msg)),
        ok
    end,
    #{name => Name, send => Send, next => Next, call => framed_call(Send, Next), close => fun() -> port_close(Port) end}.

unix(Name, Path) ->
    {ok, Socket} = gen_tcp:connect({local, Path}, 0, [binary, {packet, 4}, {active, true}, {sndbuf, 1 bsl 20}, {recbuf, 1 bsl 20}, {buffer, 1 bsl 20}]),
    Next = fun() ->
        receive
            {tcp, Socket, Frame} ->
                {_, Msg} = binary_to_term(Frame),
                Msg
        end
    end,
    {hello, _} = Next(),
    Send = fun(Msg) -> gen_tcp:send(Socket, term_to_iovec(Msg)) end,
    #{name => Name, send => Send, next => Next, call => framed_call(Send, Next), close => fun() -> gen_tcp:close(Socket) end}.

framed_call(Send, Next) ->
    fun() ->
        Ref = make_ref(),
        ok = Send({'$gen_call', {self(), Ref}, ping}),
        {Ref, pong} = Next(),
        ok
    end.

%% Starts a program that ends when its standard input does.
start(Executable, Args, Errors) ->
    open_port({spawn_executable, "/bin/sh"}, [
        {args, ["-c", "errors=$1; shift; exec \"$@\" 2>> \"$errors\"", "sh", Errors, Executable | Args]}, binary
    ]).

stop(Port) ->
    true = port_close(Port).

await(Condition) ->
    case Condition() of
        true ->
            ok;
        false ->
            receive
            after 20 -> await(Condition)
            end
    end.
