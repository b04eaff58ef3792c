%% @private
%% A process between the program and a fold: it receives the scan's messages, and the fold asks it for them.
%%
%% The messages of a scan bear one reference, so a fold that received them itself would look, for each batch, at every message of others that has come
%% since the fold began. The answer to a question of {@link fetch/3} bears a reference made for this question, and the receive looks at nothing older.
%%
%% ```
%% program ──{scan_batch, Ref, Bin}──► relay ◄──{fetch, Fold, Tag}── fold
%%                                           ──{Tag, [Message]}──►
%% '''
%%
%% A relay ends after it has given out the scan's last message, with the fold's process, and with the program or the connection to it; the scan ends with
%% the relay. It keeps what the credit of the scan allows and one progress message.
-module(scanode_relay).

-export([start/2, fetch/3, stop/1]).

%% How often, in milliseconds, a fold that waits sees for itself whether the program is there.
-define(LOOK_MS, 1000).

-record(state, {
    ref :: reference(),
    fold :: pid(),
    fold_monitor :: reference(),
    via_monitor :: reference()
}).

%% @doc Starts a relay for the calling process and the scan Ref, whose messages are to be sent to the relay.
-spec start(scanode_link:via(), reference()) -> pid().
start(Via, Ref) ->
    Fold = self(),
    Init = fun() ->
        FoldMonitor = erlang:monitor(process, Fold),
        gather([], #state{ref = Ref, fold = Fold, fold_monitor = FoldMonitor, via_monitor = scanode_link:monitor_via(Via)})
    end,
    %% Binaries that were given out are garbage; without old ones they are freed at the next collection.
    erlang:spawn_opt(Init, [{fullsweep_after, 0}]).

%% @doc The messages that have come, in order, at least one. Waits for it for Timeout milliseconds; after a timeout the relay must be stopped.
-spec fetch(pid(), reference(), timeout()) -> {ok, [tuple(), ...]} | down | timeout.
fetch(Relay, Ref, Timeout) ->
    Tag = erlang:monitor(process, Relay),
    _ = Relay ! {fetch, self(), Tag},
    await(Relay, Ref, Tag, Timeout).

-spec await(pid(), reference(), reference(), timeout()) -> {ok, [tuple(), ...]} | down | timeout.
await(Relay, Ref, Tag, Timeout) ->
    receive
        {Tag, Messages} ->
            true = erlang:demonitor(Tag, [flush]),
            {ok, Messages};
        {'DOWN', Tag, _, _, _} ->
            down
    after min(Timeout, ?LOOK_MS) ->
        case is_down(Ref) of
            true ->
                true = erlang:demonitor(Tag, [flush]),
                down;
            false when Timeout =:= infinity ->
                await(Relay, Ref, Tag, infinity);
            false when Timeout > ?LOOK_MS ->
                await(Relay, Ref, Tag, Timeout - ?LOOK_MS);
            false ->
                give_up(Relay, Tag)
        end
    end.

%% The relay watches the program too, and notices at once, but only since it is asked: for a node that went and came back before, this is the only
%% notice.
-spec is_down(reference()) -> boolean().
is_down(Ref) ->
    receive
        {'DOWN', Ref, _, _, _} -> true
    after 0 ->
        false
    end.

-spec give_up(pid(), reference()) -> {ok, [tuple(), ...]} | timeout.
give_up(Relay, Tag) ->
    _ = exit(Relay, kill),
    %% What it has sent comes before the notice of its end.
    receive
        {'DOWN', Tag, _, _, _} -> ok
    end,
    receive
        {Tag, Messages} -> {ok, Messages}
    after 0 ->
        timeout
    end.

%% @doc Ends the relay, if it has not ended, and with it the scan. Afterwards nothing comes from it any more.
-spec stop(pid()) -> ok.
stop(Relay) ->
    Monitor = erlang:monitor(process, Relay),
    _ = exit(Relay, kill),
    receive
        {'DOWN', Monitor, _, _, _} -> ok
    end.

%% Nobody has asked yet. Messages in the reverse of their order.
-spec gather([tuple()], #state{}) -> ok.
gather(Messages, #state{ref = Ref} = State) ->
    receive
        {fetch, _, Tag} when Messages =:= [] ->
            answer(Tag, next(State), State);
        {fetch, _, Tag} ->
            give(Tag, Messages, State);
        {'DOWN', _, _, _, _} = Down ->
            down(Down, Messages, State);
        {scan_progress, Ref, _} when Messages =/= [] ->
            %% The fold will see better signs of life.
            gather(Messages, State);
        Message when element(2, Message) =:= Ref ->
            gather([Message | Messages], State)
    end.

%% Somebody waits: the first message is the answer.
-spec answer(reference(), tuple() | over, #state{}) -> ok.
answer(_Tag, over, _State) -> ok;
answer(Tag, Message, State) -> give(Tag, [Message], State).

-spec give(reference(), [tuple(), ...], #state{}) -> ok.
give(Tag, [Last | _] = Messages, #state{fold = Fold} = State) ->
    _ = Fold ! {Tag, lists:reverse(Messages)},
    case is_last(Last) of
        true -> ok;
        false -> gather([], State)
    end.

-spec next(#state{}) -> tuple() | over.
next(#state{ref = Ref}) ->
    receive
        {'DOWN', _, _, _, _} -> over;
        Message when element(2, Message) =:= Ref -> Message
    end.

%% With the fold's process everything is over. With the program only what it has not sent: the fold learns of the program's end when it has what was sent.
-spec down(tuple(), [tuple()], #state{}) -> ok.
down({'DOWN', Monitor, _, _, _}, [_ | _] = Messages, #state{via_monitor = Monitor, fold = Fold, fold_monitor = FoldMonitor}) ->
    receive
        {fetch, _, Tag} ->
            _ = Fold ! {Tag, lists:reverse(Messages)},
            ok;
        {'DOWN', FoldMonitor, _, _, _} ->
            ok
    end;
down(_, _, _) ->
    ok.

-spec is_last(tuple()) -> boolean().
is_last(Message) ->
    element(1, Message) =:= scan_end orelse element(1, Message) =:= scan_error.
