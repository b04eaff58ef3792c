%% @private
%% A call whose answer is a message to the caller, `{Context, Result}', exactly one.
%%
%% The caller sends the request itself, so that its requests reach the program in their order and a busy program holds it up. The answer goes to a small
%% process made for this call:
%%
%% ```
%% caller ──spawn──► process ◄──{Ref, Reply}── program
%%   └──{'$gen_call', {Process, Ref}, Request}──► program      then process ──{Context, Result}──► caller, and it ends
%% '''
%%
%% That one also learns of the program's end, which leaves no call without an answer; and whatever comes after it has answered finds nobody. How many there
%% are is bounded as the requests under way are: by what the program takes before it stops reading.
-module(scanode_async).

-export([start/5]).

%% @doc Makes the call. Result makes of its outcome what is sent. Timeout is in milliseconds. Nothing is returned that the message does not say.
-spec start(scanode_link:via(), term(), timeout(), term(), fun((scanode_link:outcome()) -> term())) -> ok.
start(Via, Request, Timeout, Context, Result) ->
    Caller = self(),
    case scanode_link:reachable(Via) of
        true ->
            case is_port(Via) andalso not scanode_link:is_there(Via) of
                true ->
                    answer(Caller, Context, Result({not_sent, closed}));
                false ->
                    Ref = make_ref(),
                    Process = erlang:spawn(fun() -> wait(Via, Ref, Timeout, Caller, Context, Result) end),
                    ask(Via, Process, Ref, Request, Timeout)
            end;
        {false, Reason} ->
            answer(Caller, Context, Result({not_sent, Reason}))
    end.

%% The process is the only one that answers, or there might be two answers: so it is told when there was nothing to wait for.
-spec ask(scanode_link:via(), pid(), reference(), term(), timeout()) -> ok.
ask(Via, Process, Ref, Request, Timeout) ->
    case scanode_link:send(Via, {'$gen_call', {Process, Ref}, Request}, Timeout) of
        ok ->
            ok;
        {error, Reason} ->
            _ = Process ! {not_sent, Ref, Reason},
            ok
    end.

-spec wait(scanode_link:via(), reference(), timeout(), pid(), term(), fun((scanode_link:outcome()) -> term())) -> ok.
wait(Via, Ref, Timeout, Caller, Context, Result) ->
    Monitor = scanode_link:monitor_via(Via),
    Outcome =
        receive
            {Ref, Reply} -> {reply, Reply};
            {not_sent, Ref, Reason} -> {not_sent, Reason};
            %% It may have been sent, whatever the notice says: this process began to watch at about the same time.
            {'DOWN', Monitor, _, _, _} -> {lost, scanode_link:down(Via)}
        after Timeout -> {lost, timeout}
        end,
    answer(Caller, Context, Result(Outcome)).

-spec answer(pid(), term(), term()) -> ok.
answer(Caller, Context, Result) ->
    _ = Caller ! {Context, Result},
    ok.
