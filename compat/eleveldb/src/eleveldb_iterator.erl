%% @private
%% An iterator: a process that keeps a view of a store, a position in it, and the rows read ahead of it.
%%
%% A move is answered from the rows that are here, and only when there are none is the program asked, for more than one. How many: a jump (first, last, a key)
%% reads what the moves between the last two jumps would have used, so that one who only jumps reads little and one who walks from each place reads
%% the walk at once; each further read of one walk is twice the last.
%%
%% Differs from eleveldb, where a move beside a running read-ahead may be answered with the wrong row, and where the answer to one process's read-ahead is
%% not found by the next process: the position here is that of the last row that was handed out, whatever is read ahead, and each move is answered to who asked.
%%
%% It is not linked to its maker. It ends when it is closed, when its store is, and when its maker is dead and it was not used for an hour.
-module(eleveldb_iterator).

-behaviour(gen_server).

-export([open/2, move/2, view/1, close/1, store_closed/0, start_link/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).
-export_type([result/0]).

-type row() :: {Key :: binary(), Value :: binary()} | (Key :: binary()).

-type result() ::
    {ok, Key :: binary(), Value :: binary()}
    | {ok, Key :: binary()}
    | {error, invalid_iterator | iterator_closed}
    | {einval, reference()}.

-type direction() :: forwards | backwards.

%% A first jump has no history: it reads what the hash trees of Riak use up after one.
-define(FIRST_ROWS, 128).
-define(LEAST_ROWS, 2).
-define(MOST_ROWS, 1024).

%% The bytes of a read are bounded by what it would have in rows of this size, within bounds of their own.
-define(ROW_BYTES, 512).
-define(LEAST_BYTES, 4096).
-define(MOST_BYTES, 131072).

%% Without a move for so long, in milliseconds, the process gives back the memory it does not need.
-define(IDLE_MS, 5000).

%% How long the program keeps the view of one whose end it was not told. Only a process that was killed leaves that to it.
-define(ORPHAN_MS, 60000).

-record(state, {
    source :: eleveldb_fold:source(),
    view :: scanode:db() | undefined,
    %% Made at the first move: one who only folds needs none.
    cursor :: scanode:iterator() | undefined,
    %% nowhere: not placed yet, or run off an end. freed: run off an end while it takes new views now and then.
    position = nowhere :: nowhere | freed | {at, Key :: binary()},
    %% Rows behind the position in that direction, and whether there may be more behind them.
    direction = forwards :: direction(),
    ahead = [] :: [row()],
    more = true :: boolean(),
    %% Moves since the last jump, and the rows of the last read.
    walked = ?FIRST_ROWS :: non_neg_integer(),
    last_read = 0 :: non_neg_integer(),
    refresh_at = infinity :: integer() | infinity,
    maker :: reference() | undefined,
    used_at = 0 :: integer()
}).

%% @doc An iterator over the store as it is now, made for the calling process.
-spec open(eleveldb_fold:source(), pid()) -> {ok, pid()} | {error, scanode:reason()}.
open(Source, Maker) ->
    %% The program is asked by the process and not by its start, as the supervisor would make all the others wait.
    try supervisor:start_child(eleveldb_iterator_sup, [{Source, Maker}]) of
        {ok, Iterator} ->
            case ask(Iterator, open) of
                ok -> {ok, Iterator};
                closed -> {error, closed};
                {error, Reason} -> {error, Reason}
            end
    catch
        %% The application was stopped, and the stores with it.
        exit:_ -> {error, closed}
    end.

%% @doc Moves, and returns the row. `closed' when the iterator or its store is.
-spec move(pid(), term()) -> result() | closed | {failed, scanode:reason()}.
move(Iterator, Action) ->
    ask(Iterator, {move, Action}).

%% @doc The view, for a fold by the calling process, which counts as the maker from then on.
-spec view(pid()) -> {ok, eleveldb_fold:source()} | {error, iterator_closed} | closed | {failed, scanode:reason()}.
view(Iterator) ->
    ask(Iterator, view).

%% @doc Closes it.
-spec close(pid()) -> ok | closed.
close(Iterator) ->
    ask(Iterator, close).

%% @doc Has all iterators look whether their store is closed.
-spec store_closed() -> ok.
store_closed() ->
    try supervisor:which_children(eleveldb_iterator_sup) of
        Children -> lists:foreach(fun({_, Iterator, _, _}) -> gen_server:cast(Iterator, look) end, Children)
    catch
        exit:_ -> ok
    end.

-spec ask(pid(), term()) -> term().
ask(Iterator, Request) ->
    try
        gen_server:call(Iterator, Request, infinity)
    catch
        exit:_ -> closed
    end.

-spec start_link({eleveldb_fold:source(), pid()}) -> {ok, pid()} | ignore | {error, term()}.
start_link(Args) ->
    gen_server:start_link(?MODULE, Args, []).

-spec init({eleveldb_fold:source(), pid()}) -> {ok, #state{}}.
init({Source, Maker}) ->
    %% So that the view is given back when the application stops.
    _ = process_flag(trap_exit, true),
    {ok, #state{source = Source#{ended => atomics:new(1, [])}, maker = erlang:monitor(process, Maker)}}.

-spec handle_call(term(), {pid(), term()}, #state{}) ->
    {reply, term(), #state{}, timeout()} | {stop, normal, term(), #state{}} | {stop, normal, #state{}}.
handle_call(open, _From, State) ->
    case take_view(State) of
        {ok, Opened} -> {reply, ok, Opened, ?IDLE_MS};
        {error, Reason} -> {stop, normal, {error, Reason}, State}
    end;
handle_call(close, From, #state{source = #{ended := Ended}} = State) ->
    ok = atomics:put(Ended, 1, 1),
    %% Nobody waits until the program has given back what it holds.
    ok = gen_server:reply(From, ok),
    {stop, normal, State};
handle_call(Request, From, State) ->
    case is_closed(State) of
        true -> {stop, normal, closed, State};
        false -> use(Request, From, used(State))
    end.

-spec use(term(), {pid(), term()}, #state{}) -> {reply, term(), #state{}, timeout()} | {stop, normal, term(), #state{}}.
use(view, _From, #state{position = freed} = State) ->
    {reply, {error, iterator_closed}, State, ?IDLE_MS};
use(view, {Folder, _}, #state{source = Source} = State) ->
    case viewing(State) of
        {ok, #state{view = View} = Viewing} -> {reply, {ok, Source#{view := View}}, watch(Folder, Viewing), ?IDLE_MS};
        {error, Reason} -> {reply, {failed, Reason}, State, ?IDLE_MS}
    end;
use({move, Action}, _From, State) ->
    case moved(Action, State) of
        {Result, Moved} -> {reply, Result, Moved, ?IDLE_MS};
        {error, closed, Moved} -> {stop, normal, closed, Moved};
        {error, Reason, Moved} -> {reply, {failed, Reason}, Moved, ?IDLE_MS}
    end.

-spec handle_cast(term(), #state{}) -> {noreply, #state{}, timeout()} | {stop, normal, #state{}}.
handle_cast(look, State) ->
    case is_closed(State) of
        true -> {stop, normal, State};
        false -> {noreply, State, ?IDLE_MS}
    end.

-spec handle_info(term(), #state{}) -> {noreply, #state{}} | {noreply, #state{}, timeout() | hibernate} | {stop, normal, #state{}}.
handle_info(timeout, State) ->
    {noreply, State, hibernate};
handle_info({'DOWN', Maker, process, _, _}, #state{maker = Maker, view = undefined} = State) ->
    %% Nobody has the handle.
    {stop, normal, State#state{maker = undefined}};
handle_info({'DOWN', Maker, process, _, _}, #state{maker = Maker} = State) ->
    _ = erlang:send_after(orphan_ms(), self(), orphan),
    {noreply, State#state{maker = undefined, used_at = now_ms()}, ?IDLE_MS};
handle_info(orphan, #state{maker = undefined, used_at = UsedAt} = State) ->
    case UsedAt + orphan_ms() - now_ms() of
        Left when Left > 0 ->
            _ = erlang:send_after(Left, self(), orphan),
            {noreply, State, ?IDLE_MS};
        _ ->
            {stop, normal, State}
    end;
handle_info(_Late, State) ->
    %% A notice of a maker that another has followed, or, before OTP 24, a late reply.
    {noreply, State, ?IDLE_MS}.

-spec terminate(term(), #state{}) -> ok.
terminate(_Reason, #state{source = #{ended := Ended}} = State) ->
    ok = atomics:put(Ended, 1, 1),
    case is_closed(State) of
        true ->
            ok;
        false ->
            _ = leave_view(State),
            ok
    end.

-spec is_closed(#state{}) -> boolean().
is_closed(#state{source = #{closed := Closed}}) -> atomics:get(Closed, 1) =/= 0.

%% When it was last used counts only without a maker.
-spec used(#state{}) -> #state{}.
used(#state{maker = undefined} = State) -> State#state{used_at = now_ms()};
used(State) -> State.

-spec watch(pid(), #state{}) -> #state{}.
watch(Pid, #state{maker = Old} = State) ->
    _ = is_reference(Old) andalso erlang:demonitor(Old, [flush]),
    State#state{maker = erlang:monitor(process, Pid)}.

-spec orphan_ms() -> pos_integer().
orphan_ms() -> application:get_env(eleveldb, iterator_orphan_ms, 3600000).

-spec now_ms() -> integer().
now_ms() -> erlang:monotonic_time(millisecond).

%% The view

-spec take_view(#state{}) -> {ok, #state{}} | {error, scanode:reason()}.
take_view(#state{source = #{db := Db, refresh := Refresh}} = State) ->
    case scanode:snapshot(Db, #{orphan_ms => ?ORPHAN_MS}) of
        {ok, View} ->
            RefreshAt =
                case Refresh of
                    infinity -> infinity;
                    _ -> now_ms() + Refresh
                end,
            {ok, State#state{view = View, refresh_at = RefreshAt}};
        {error, Reason} ->
            {error, Reason}
    end.

-spec leave_view(#state{}) -> #state{}.
leave_view(#state{view = View, cursor = Cursor} = State) ->
    _ = [scanode:close(Handle) || Handle <- [Cursor, View], Handle =/= undefined],
    gone(State).

-spec gone(#state{}) -> #state{}.
gone(State) -> State#state{view = undefined, cursor = undefined, ahead = [], more = true}.

%% There is none after a new one could not be taken.
-spec viewing(#state{}) -> {ok, #state{}} | {error, scanode:reason()}.
viewing(#state{view = undefined} = State) -> take_view(State);
viewing(State) -> {ok, State}.

%% A new one when it is time for it. The position is a key and stays.
-spec refreshed(#state{}) -> {ok, #state{}} | {error, scanode:reason()}.
refreshed(#state{refresh_at = infinity} = State) ->
    {ok, State};
refreshed(#state{refresh_at = RefreshAt} = State) ->
    case now_ms() >= RefreshAt of
        true -> take_view(leave_view(State));
        false -> {ok, State}
    end.

%% Moving

-spec moved(term(), #state{}) -> {result(), #state{}} | {error, scanode:reason(), #state{}}.
moved(Action, #state{position = Position} = State) ->
    case {anchor(Action, Position), Position} of
        {odd, _} ->
            {{einval, make_ref()}, State};
        {_, freed} ->
            {{error, iterator_closed}, State};
        {none, _} ->
            {{error, invalid_iterator}, State};
        {Anchor, _} ->
            case refreshed(State) of
                {ok, Refreshed} -> go(Anchor, Refreshed);
                %% Without the old view, and with no new one.
                {error, Reason} -> {error, Reason, gone(State)}
            end
    end.

%% Where a move goes: to a place, or on from the position.
-spec anchor(term(), term()) -> odd | none | first | last | {from, binary()} | {on, direction()}.
anchor(Key, _) when is_binary(Key) -> {from, Key};
anchor(Place, _) when Place =:= first; Place =:= last -> Place;
anchor(On, {at, _}) when On =:= next; On =:= prefetch; On =:= prefetch_stop -> {on, forwards};
anchor(prev, {at, _}) -> {on, backwards};
anchor(On, _) when On =:= next; On =:= prefetch; On =:= prefetch_stop; On =:= prev -> none;
anchor(_, _) -> odd.

-spec go(first | last | {from, binary()} | {on, direction()}, #state{}) -> {result(), #state{}} | {error, scanode:reason(), #state{}}.
go({on, Direction}, #state{direction = Direction, ahead = [_ | _]} = State) ->
    step(State);
go({on, Direction}, #state{direction = Direction, ahead = [], more = false} = State) ->
    step(State);
go({on, forwards}, #state{position = {at, Key}} = State) ->
    read({'after', Key}, forwards, further(State), State);
go({on, backwards}, #state{position = {at, Key}} = State) ->
    read({before, Key}, backwards, further(State), State);
go(Place, #state{walked = Walked} = State) ->
    Direction =
        case Place of
            last -> backwards;
            _ -> forwards
        end,
    Rows = min(?MOST_ROWS, max(?LEAST_ROWS, Walked + Walked div 4 + 1)),
    read(Place, Direction, Rows, State#state{walked = 0}).

-spec further(#state{}) -> pos_integer().
further(#state{last_read = Last}) -> min(?MOST_ROWS, max(?FIRST_ROWS, 2 * Last)).

-spec read(scanode:from(), direction(), pos_integer(), #state{}) -> {result(), #state{}} | {error, scanode:reason(), #state{}}.
read(From, Direction, Rows, State) ->
    Bytes = min(?MOST_BYTES, max(?LEAST_BYTES, Rows * ?ROW_BYTES)),
    case with_cursor(State) of
        {ok, #state{cursor = Cursor} = Ready} ->
            case scanode:iterator_read(Cursor, From, #{max_rows => Rows, max_bytes => Bytes}) of
                {ok, Ahead, More} -> step(Ready#state{direction = Direction, ahead = Ahead, more = More =:= more, last_read = Rows});
                {error, Reason} -> {error, Reason, Ready}
            end;
        {error, Reason} ->
            {error, Reason, State}
    end.

-spec with_cursor(#state{}) -> {ok, #state{}} | {error, scanode:reason()}.
with_cursor(#state{cursor = undefined, source = #{rows := Rows}} = State) ->
    case viewing(State) of
        {ok, #state{view = View} = Viewing} ->
            case scanode:iterator(View, #{rows => Rows, orphan_ms => ?ORPHAN_MS}) of
                {ok, Cursor} -> {ok, Viewing#state{cursor = Cursor}};
                {error, Reason} -> {error, Reason}
            end;
        {error, Reason} ->
            {error, Reason}
    end;
with_cursor(State) ->
    {ok, State}.

%% To the next of the rows that are here.
-spec step(#state{}) -> {result(), #state{}}.
step(#state{ahead = [Row | Ahead], walked = Walked} = State) ->
    {Result, Key} =
        case Row of
            {K, V} -> {{ok, K, V}, K};
            K -> {{ok, K}, K}
        end,
    {Result, State#state{position = {at, Key}, ahead = Ahead, walked = Walked + 1}};
step(#state{source = #{refresh := infinity}} = State) ->
    {{error, invalid_iterator}, State#state{position = nowhere, ahead = [], more = true}};
step(State) ->
    {{error, invalid_iterator}, (leave_view(State))#state{position = freed}}.
