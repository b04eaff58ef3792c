%% @private
%% The caller's side of the protocol, the same over both transports: one call, one scan. Everything here runs in the calling process; no process of
%% this application stands between a caller and the program on the way out, and on the way back only scanode_port, which forwards.
%%
%% Via is where a store lives: the port of one run of the program (so that what was opened there cannot be mistaken for something of the next run),
%% or the registered name of a node.
%%
%% Each call and each scan has one reference, which is the monitor, the alias that is answered to, and the mark behind which the receives look
%% for messages: what was in the caller's mailbox before is not looked at. The compiler sees this only where the reference is made and used in one
%% module and every clause of a receive names it; compile with recv_opt_info after a change here. Messages of others that arrive during a long scan are
%% not looked at either: from its second batch on they come by way of a process of its own, {@link scanode_relay}, which is asked with a new reference each
%% time. A scan that has few rows by its limit does without.
%%
%% Aliases exist from OTP 24 on (aliases/0). Before, the reference is a plain monitor, every scan has a relay from the beginning, and the late reply to a
%% call that timed out stays in the mailbox.
-module(scanode_link).

-export([call/3, scan/6, start/4, next/4, quit/2]).
-export([send/3, stop/2, monitor_via/1, remaining/2, reachable/1, is_there/1, down/1]).
-export_type([via/0, db_id/0, outcome/0, complete/1]).

-type via() :: port() | {scanode, node()}.
-type db_id() :: pos_integer().

-type complete(Acc) :: {ok, Acc, Facts :: #{atom() => term()}}.
%% A scan that is complete, and what its last message says of it.

-type outcome() :: {reply, term()} | {not_sent, scanode:reason()} | {lost, scanode:reason()}.
%% not_sent: the program has not seen the request. lost: it may have.

-type address() :: reference() | nonempty_improper_list(alias, reference()).
%% Where the program sends to. On the wire an alias is told from a plain reference by this.

%% The protocol's bound of a frame, less what stands around a message in it. A longer one ends the program's link with everything on it, so it is refused
%% here.
-define(MAX_MESSAGE_BYTES, (67108864 - 4096)).

%% How often, in milliseconds, a sender with a time-out tries a busy port or connection again.
-define(TRY_AGAIN_MS, 5).

%% A limit of so many rows makes a scan short: a process of its own would cost more than looking at a few messages of others.
-define(SHORT_ROWS, 1000).

%% From so many messages in the mailbox on, a long scan keeps them off the heap, see fetch/6.
-define(LONG_MAILBOX, 1000).

%% [alias | Ref] is improper by design of OTP.
-dialyzer({no_improper_lists, [call/3, scan/6]}).

%% @doc One call. Timeout is in milliseconds; a reply that comes later vanishes.
-spec call(via(), term(), timeout()) -> outcome().
call(Via, Request, Timeout) ->
    case reachable(Via) of
        true ->
            case aliases() of
                true ->
                    Ref = erlang:monitor(item_type(Via), Via, [{alias, demonitor}]),
                    ask(Via, [alias | Ref], Ref, Request, Timeout);
                false ->
                    Ref = erlang:monitor(item_type(Via), Via),
                    ask(Via, Ref, Ref, Request, Timeout)
            end;
        {false, Reason} ->
            {not_sent, Reason}
    end.

-spec ask(via(), address(), reference(), term(), timeout()) -> outcome().
ask(Via, Tag, Ref, Request, Timeout) ->
    Began = erlang:monotonic_time(millisecond),
    case send(Via, {'$gen_call', {self(), Tag}, Request}, Timeout) of
        ok ->
            await(Via, Ref, remaining(Timeout, Began));
        {error, Reason} ->
            true = erlang:demonitor(Ref, [flush]),
            {not_sent, Reason}
    end.

-spec await(via(), reference(), timeout()) -> outcome().
await(Via, Ref, Timeout) ->
    receive
        {[alias | Ref], Reply} ->
            true = erlang:demonitor(Ref, [flush]),
            {reply, Reply};
        {Ref, Reply} ->
            true = erlang:demonitor(Ref, [flush]),
            {reply, Reply};
        {'DOWN', Ref, process, _, noproc} ->
            {not_sent, down(Via)};
        {'DOWN', Ref, _, _, _} ->
            {lost, down(Via)}
    after Timeout ->
        true = erlang:demonitor(Ref, [flush]),
        %% The reply may have come between the end of the wait and the end of the alias.
        receive
            {[alias | Ref], Reply} -> {reply, Reply};
            {Ref, Reply} -> {reply, Reply}
        after 0 ->
            {lost, timeout}
        end
    end.

%% @doc Runs a scan and hands the Bin of each batch to Batch, acknowledging it afterwards: while Batch is busy with one, as many as the credit allows
%% are under way already. Returns only when the scan is complete or has failed. Timeout is in milliseconds without any message of the scan. Whichever
%% way this is left, through an exception of Batch too, the scan is over and none of its messages is or comes in the mailbox.
-spec scan(via(), db_id(), map(), timeout(), fun((binary(), Acc) -> Acc), Acc) -> complete(Acc) | {error, scanode:reason()}.
scan(Via, Id, Opts, Timeout, Batch, Acc) ->
    case {reachable(Via), aliases()} of
        {{false, Reason}, _} ->
            {error, Reason};
        {true, true} ->
            Ref = erlang:monitor(item_type(Via), Via, [{alias, demonitor}]),
            run(Via, [alias | Ref], Ref, {Id, Opts}, Timeout, Batch, Acc);
        {true, false} ->
            relayed(Via, Id, Opts, Timeout, Batch, Acc)
    end.

%% Without aliases a scan that is left early might send to this process later. So all of it goes by way of a relay, which can be ended.
-spec relayed(via(), db_id(), map(), timeout(), fun((binary(), Acc) -> Acc), Acc) -> complete(Acc) | {error, scanode:reason()}.
relayed(Via, Id, Opts, Timeout, Batch, Acc) ->
    Ref = monitor_via(Via),
    Relay = scanode_relay:start(Via, Ref),
    try send(Via, {scan, {Relay, Ref}, Id, Opts}, Timeout) of
        ok -> fetch(Via, Relay, Ref, Timeout, Batch, Acc);
        {error, Reason} -> {error, Reason}
    after
        %% No harm where it is over.
        ok = stop(Via, Ref),
        ok = scanode_relay:stop(Relay),
        true = erlang:demonitor(Ref, [flush])
    end.

-spec is_short(map()) -> boolean().
is_short(#{limit := Limit}) when is_integer(Limit), Limit > 0, Limit =< ?SHORT_ROWS -> true;
is_short(_) -> false.

%% The program sends to this process, for the time being.
-spec run(via(), address(), reference(), {db_id(), map()}, timeout(), fun((binary(), Acc) -> Acc), Acc) -> complete(Acc) | {error, scanode:reason()}.
run(Via, To, Ref, {Id, Opts}, Timeout, Batch, Acc0) ->
    Stage =
        case is_short(Opts) of
            true -> stays;
            false -> first
        end,
    case send(Via, {scan, {self(), To}, Id, Opts}, Timeout) of
        ok ->
            try consume(Stage, Via, Ref, Timeout, Batch, Acc0) of
                {error, timeout} ->
                    ok = leave(Via, Ref),
                    {error, timeout};
                Over ->
                    ok = forget(Ref),
                    Over
            catch
                Class:Reason:Stack ->
                    ok = leave(Via, Ref),
                    erlang:raise(Class, Reason, Stack)
            end;
        {error, Reason} ->
            ok = forget(Ref),
            {error, Reason}
    end.

%% @doc Starts a scan whose batches are asked for, by next/4 and the calling process. No message of it comes unasked.
-spec start(via(), db_id(), map(), timeout()) -> {ok, {pid(), reference()}} | {error, scanode:reason()}.
start(Via, Id, Opts, Timeout) ->
    case reachable(Via) of
        true ->
            Ref = make_ref(),
            Relay = scanode_relay:start(Via, Ref),
            case send(Via, {scan, {Relay, Ref}, Id, Opts}, Timeout) of
                ok ->
                    {ok, {Relay, Ref}};
                {error, Reason} ->
                    ok = scanode_relay:stop(Relay),
                    {error, Reason}
            end;
        {false, Reason} ->
            {error, Reason}
    end.

%% @doc The next batch of a scan that start/4 started, acknowledged already. Pending is what the last call returned as such, first []. Timeout is in
%% milliseconds without a sign of life; after an error the scan is over.
-spec next(via(), {pid(), reference()}, [tuple()], timeout()) ->
    {ok, binary(), Pending :: [tuple()]} | {done, #{atom() => term()}} | {error, scanode:reason()}.
next(Via, {_, Ref} = Scan, [{scan_batch, _, Bin} | Pending], Timeout) ->
    case acknowledge(Via, Ref, Bin, Timeout) of
        ok ->
            {ok, Bin, Pending};
        {error, timeout} ->
            ok = quit(Via, Scan),
            {error, timeout}
    end;
next(Via, Scan, [{scan_progress, _, _} | Pending], Timeout) ->
    next(Via, Scan, Pending, Timeout);
next(_, _, [{scan_end, _, Facts}], _) ->
    {done, Facts};
next(_, _, [{scan_error, _, Reason}], _) ->
    {error, Reason};
next(Via, {Relay, Ref} = Scan, [], Timeout) ->
    case scanode_relay:fetch(Relay, Ref, Timeout) of
        {ok, Messages} ->
            next(Via, Scan, Messages, Timeout);
        down ->
            %% The relay has ended: with the program, or because the scan is over.
            case is_there(Via) of
                true -> {error, closed};
                false -> {error, down(Via)}
            end;
        timeout ->
            ok = stop(Via, Ref),
            {error, timeout}
    end.

%% @doc Ends a scan that start/4 started, wherever it is.
-spec quit(via(), {pid(), reference()}) -> ok.
quit(Via, {Relay, Ref}) ->
    ok = stop(Via, Ref),
    scanode_relay:stop(Relay).

-type stage() :: first | second | stays | pid().
%% Which batch is awaited; that of a scan that stays with this process; or, once this process has had it moved there, the relay.

-spec consume(stage(), via(), reference(), timeout(), fun((binary(), Acc) -> Acc), Acc) -> complete(Acc) | {error, scanode:reason()}.
consume(Stage, Via, Ref, Timeout, Batch, Acc) ->
    receive
        {scan_batch, Ref, Bin} when Stage =:= second ->
            move(Bin, Via, Ref, Timeout, Batch, Acc);
        {scan_batch, Ref, Bin} ->
            case take(Bin, Via, Ref, Timeout, Batch, Acc) of
                {ok, Folded} when Stage =:= first -> consume(second, Via, Ref, Timeout, Batch, Folded);
                {ok, Folded} -> consume(Stage, Via, Ref, Timeout, Batch, Folded);
                {error, Reason} -> {error, Reason}
            end;
        {scan_progress, Ref, _RowsRead} ->
            consume(Stage, Via, Ref, Timeout, Batch, Acc);
        {scan_end, Ref, Facts} ->
            {ok, Acc, Facts};
        {scan_error, Ref, Reason} ->
            {error, Reason};
        {scan_moved, Ref} ->
            fetch(Via, Stage, Ref, Timeout, Batch, Acc);
        {'DOWN', Ref, _, _, _} ->
            {error, down(Via)}
    after Timeout ->
        {error, timeout}
    end.

%% There is a second batch: the scan is long. What the program has sent until it hears of the relay still comes here, and is followed by scan_moved, or by
%% the end.
-spec move(binary(), via(), reference(), timeout(), fun((binary(), Acc) -> Acc), Acc) -> complete(Acc) | {error, scanode:reason()}.
move(Bin, Via, Ref, Timeout, Batch, Acc) ->
    Relay = scanode_relay:start(Via, Ref),
    try
        %% Where this does not get through, for another reason than time, the DOWN is on its way.
        case send(Via, {scan_to, Ref, Relay}, Timeout) of
            {error, timeout} ->
                {error, timeout};
            _ ->
                case take(Bin, Via, Ref, Timeout, Batch, Acc) of
                    {ok, Folded} -> consume(Relay, Via, Ref, Timeout, Batch, Folded);
                    {error, Reason} -> {error, Reason}
                end
        end
    after
        ok = scanode_relay:stop(Relay)
    end.

%% From here on the relay is asked. The scan is long enough for the caller's mailbox to matter: every garbage collection, and the rows make many, looks
%% at all messages that are kept on the heap. So a long mailbox is kept off the heap meanwhile.
-spec fetch(via(), pid(), reference(), timeout(), fun((binary(), Acc) -> Acc), Acc) -> complete(Acc) | {error, scanode:reason()}.
fetch(Via, Relay, Ref, Timeout, Batch, Acc) ->
    case process_info(self(), message_queue_data) of
        {message_queue_data, on_heap} ->
            try
                ask_relay(Via, Relay, Ref, Timeout, Batch, Acc)
            after
                _ = process_flag(message_queue_data, on_heap)
            end;
        {message_queue_data, off_heap} ->
            ask_relay(Via, Relay, Ref, Timeout, Batch, Acc)
    end.

-spec ask_relay(via(), pid(), reference(), timeout(), fun((binary(), Acc) -> Acc), Acc) -> complete(Acc) | {error, scanode:reason()}.
ask_relay(Via, Relay, Ref, Timeout, Batch, Acc) ->
    _ =
        case process_info(self(), message_queue_len) of
            {message_queue_len, Length} when Length >= ?LONG_MAILBOX -> process_flag(message_queue_data, off_heap);
            _ -> ok
        end,
    case scanode_relay:fetch(Relay, Ref, Timeout) of
        {ok, Messages} -> fetched(Messages, Via, Relay, Ref, Timeout, Batch, Acc);
        down -> {error, down(Via)};
        timeout -> {error, timeout}
    end.

-spec fetched([tuple()], via(), pid(), reference(), timeout(), fun((binary(), Acc) -> Acc), Acc) -> complete(Acc) | {error, scanode:reason()}.
fetched([{scan_batch, _, Bin} | Messages], Via, Relay, Ref, Timeout, Batch, Acc) ->
    case take(Bin, Via, Ref, Timeout, Batch, Acc) of
        {ok, Folded} -> fetched(Messages, Via, Relay, Ref, Timeout, Batch, Folded);
        {error, Reason} -> {error, Reason}
    end;
fetched([{scan_progress, _, _RowsRead} | Messages], Via, Relay, Ref, Timeout, Batch, Acc) ->
    fetched(Messages, Via, Relay, Ref, Timeout, Batch, Acc);
fetched([{scan_end, _, Facts}], _, _, _, _, _, Acc) ->
    {ok, Acc, Facts};
fetched([{scan_error, _, Reason}], _, _, _, _, _, _) ->
    {error, Reason};
fetched([], Via, Relay, Ref, Timeout, Batch, Acc) ->
    ask_relay(Via, Relay, Ref, Timeout, Batch, Acc).

%% Ends a scan that is not over.
-spec leave(via(), reference()) -> ok.
leave(Via, Ref) ->
    ok = stop(Via, Ref),
    forget(Ref).

%% First the alias, so that nothing comes any more, then what has come.
-spec forget(reference()) -> ok.
forget(Ref) ->
    true = erlang:demonitor(Ref, [flush]),
    flush(Ref).

-spec flush(reference()) -> ok.
flush(Ref) ->
    receive
        {scan_batch, Ref, _} -> flush(Ref);
        {scan_progress, Ref, _} -> flush(Ref);
        {scan_end, Ref, _} -> flush(Ref);
        {scan_error, Ref, _} -> flush(Ref);
        {scan_moved, Ref} -> flush(Ref)
    after 0 ->
        ok
    end.

%% Folds one batch. A slow Batch has several waiting: when the program has ended meanwhile they are not worked off first.
-spec take(binary(), via(), reference(), timeout(), fun((binary(), Acc) -> Acc), Acc) -> {ok, Acc} | {error, scanode:reason()}.
take(Bin, Via, Ref, Timeout, Batch, Acc) ->
    case is_there(Via) of
        true ->
            Folded = Batch(Bin, Acc),
            case acknowledge(Via, Ref, Bin, Timeout) of
                ok -> {ok, Folded};
                {error, timeout} -> {error, timeout}
            end;
        false ->
            {error, down(Via)}
    end.

%% @doc Whether the program's port is open or its node connected. Without a look into the mailbox, which may be long.
-spec is_there(via()) -> boolean().
is_there(Port) when is_port(Port) -> erlang:port_info(Port, id) =/= undefined;
is_there({scanode, Node}) -> lists:member(Node, [node() | nodes(connected)]).

%% When an acknowledgement does not get through for another reason than time, the DOWN is on its way, or here already.
-spec acknowledge(via(), reference(), binary(), timeout()) -> ok | {error, timeout}.
acknowledge(Via, Ref, Bin, Timeout) ->
    case send(Via, {scan_ack, Ref, byte_size(Bin)}, Timeout) of
        {error, timeout} -> {error, timeout};
        _ -> ok
    end.

%% @doc Ends a scan in the program, without waiting for a busy port or connection.
-spec stop(via(), reference()) -> ok.
stop(Via, Ref) ->
    case send(Via, {scan_stop, Ref}, 0) of
        {error, timeout} ->
            _ = spawn(fun() -> send(Via, {scan_stop, Ref}, infinity) end),
            ok;
        _ ->
            ok
    end.

%% @doc Sends a message to the program. A busy port or connection holds the caller up, for Timeout milliseconds at most: that is the back-pressure for
%% writes. After an error nothing of it has been sent.
-spec send(via(), term(), timeout()) -> ok | {error, scanode:reason()}.
send(Port, Msg, Timeout) when is_port(Port) ->
    Frame = erlang:term_to_iovec(Msg),
    case iolist_size(Frame) =< ?MAX_MESSAGE_BYTES of
        true -> send_until(fun(Options) -> command(Port, Frame, Options) end, Timeout);
        false -> too_large()
    end;
send(Name, Msg, Timeout) ->
    %% An upper bound of what is sent, and close to it: most of a large message is binaries.
    case erlang:external_size(Msg) =< ?MAX_MESSAGE_BYTES of
        true -> send_until(fun(Options) -> erlang:send(Name, Msg, Options) =:= ok end, Timeout);
        false -> too_large()
    end.

-spec command(port(), iodata(), [nosuspend]) -> boolean() | closed.
command(Port, Frame, Options) ->
    try
        erlang:port_command(Port, Frame, Options)
    catch
        error:badarg -> closed
    end.

%% There is no way to be suspended for a while only, so a sender with a time-out asks again and again.
-spec send_until(fun(([nosuspend]) -> boolean() | closed), timeout()) -> ok | {error, scanode:reason()}.
send_until(Send, infinity) ->
    sent(Send([]));
send_until(Send, Timeout) ->
    case Send([nosuspend]) of
        false when Timeout > 0 ->
            Pause = min(Timeout, ?TRY_AGAIN_MS),
            receive
            after Pause -> send_until(Send, Timeout - Pause)
            end;
        Result ->
            sent(Result)
    end.

-spec sent(boolean() | closed) -> ok | {error, scanode:reason()}.
sent(true) -> ok;
sent(false) -> {error, timeout};
sent(closed) -> {error, closed}.

%% @doc What is left of Timeout, from the time Began of the monotonic clock, in milliseconds.
-spec remaining(timeout(), integer()) -> timeout().
remaining(infinity, _) -> infinity;
remaining(Timeout, Began) -> max(0, Timeout - (erlang:monotonic_time(millisecond) - Began)).

-spec too_large() -> {error, scanode:reason()}.
too_large() ->
    {error, {bad_request, <<"the request is larger than the 64 MiB that a frame may have">>}}.

%% @doc The reason of what failed with the program or the connection to it.
-spec down(via()) -> scanode:reason().
down(Port) when is_port(Port) ->
    {down, <<"the scanode program ended">>};
down({scanode, Node}) ->
    {down, <<"no connection to scanode at ", (atom_to_binary(Node, utf8))/binary>>}.

%% @doc Whether this BEAM can use Via at all. Without a name of its own it cannot even try, and monitor/2 would raise badarg.
-spec reachable(via()) -> true | {false, scanode:reason()}.
reachable(Port) when is_port(Port), node(Port) =/= node() ->
    {false, {bad_request, <<"a store of a BEAM's own program can be used in that BEAM only">>}};
reachable({scanode, Node}) when node() =:= nonode@nohost, Node =/= nonode@nohost ->
    {false, {down, <<"this Erlang node is not distributed">>}};
reachable(_) ->
    true.

%% @doc Monitors the program: its port, or the name on its node.
-spec monitor_via(via()) -> reference().
monitor_via(Via) ->
    erlang:monitor(item_type(Via), Via).

-spec item_type(via()) -> port | process.
item_type(Port) when is_port(Port) -> port;
item_type({scanode, _}) -> process.

%% Decided at run time, so that the same beam files serve OTP 23 and later.
-spec aliases() -> boolean().
aliases() ->
    erlang:function_exported(erlang, monitor, 3).
