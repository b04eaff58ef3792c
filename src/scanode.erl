%% @doc Stores and range scans of a scanode program.
%%
%% The program is a process of the operating system. Either this BEAM starts it and talks to it through a port (the default), or it is a node of the
%% cluster (the option `node' of {@link open/2}). Both behave the same.
%%
%% ```
%% {ok, _} = application:ensure_all_started(scanode),
%% {ok, Db} = scanode:open("data/readings", #{}),
%% ok = scanode:put(Db, <<"k1">>, <<"v1">>),
%% {ok, <<"v1">>} = scanode:get(Db, <<"k1">>),
%% [<<"k1">>] = scanode:fold(Db, fun(Key, Keys) -> [Key | Keys] end, [], #{rows => keys}),
%% ok = scanode:close(Db).
%% '''
%%
%% Starting the application starts no program yet: the first {@link open/2} does, and one after the program ended does so again, after a pause of 100 ms that
%% doubles up to 10 s while the program lives less than a minute. Stopping the application ends the program and waits until it has closed its stores.
%%
%% <b>Lifetime of a store.</b> It is open until {@link close/1}, which any process may call; until its opener is dead and its directory is opened
%% anew; until the program or the connection to its node ends; or until nobody has used it for `orphan_ms' after its opener died. A handle outlives its
%% store harmlessly: every call with it says `{error, closed}'. Nothing is reopened by itself.
%%
%% <b>Timeouts</b> are in milliseconds and `infinity' by default. They are not needed against a program that dies: that fails every call and fold at
%% once. They are for disks that hang.
%%
%% Arguments that cannot be what they should (something else than a handle for a handle) raise `badarg'; what depends on the store or the program is returned.
-module(scanode).

-export([child_spec/1, start_link/1]).
-export([open/2, close/1, destroy/1, destroy/2, repair/1, repair/2, info/0, info/1, is_empty/1]).
-export([get/2, get/3, put/3, delete/2, write/3, async_write/4, async_get/3]).
-export([snapshot/1, snapshot/2, iterator/2, iterator_read/3, iterator_move/2, handles/1]).
-export([explain/2, split/3, fold/4, fold_info/4, scan_start/2, scan_next/1, scan_stop/1]).
-export([aggregate/2, aggregate_info/2, merge_aggregates/1]).

-export_type([db/0, scan/0, iterator/0, reason/0, outcome/0, write_error/0, op/0, repaired/0, row/0, cell/0, range/0, start_option/0, open_option/0, open_options/0]).
-export_type([write_options/0, iterator_option/0, from/0, read_option/0, fold_option/0, fold_options/0]).
-export_type([compute/0, aggregate_option/0, aggregate_options/0, aggregate_row/0, partial/0]).

-opaque db() :: {scanode_db, scanode_link:via(), scanode_link:db_id()}.
%% A handle. Valid in any process of this BEAM and, where the store is on a node, of any BEAM of the cluster. It can be copied, sent and compared.

-opaque scan() :: {scanode_scan, pid(), scanode_link:via(), {pid(), reference()}, timeout(), [tuple()]}.
%% A scan under way, see {@link scan_start/2}.

-opaque iterator() :: {scanode_iterator, scanode_link:via(), scanode_link:db_id()}.
%% See {@link iterator/2}. As usable and as harmless as a handle.

-type reason() ::
    closed
    | busy
    | deadline
    | {bad_request, binary()}
    | {bad_option, binary()}
    | {bad_filter, binary()}
    | {bad_row, binary()}
    | {bad_path, binary()}
    | {missing, binary()}
    | {exists, binary()}
    | {locked, binary()}
    | {foreign, binary()}
    | {corrupt, binary()}
    | {parked, binary()}
    | {io, binary()}
    | {internal, binary()}
    | {too_many_groups, binary()}
    | {overflow, binary()}
    | timeout
    | {down, binary()}
    | {no_executable, binary()}
    | {bad_executable, binary()}.
%% Why something failed; docs/protocol.md says when each is given. The binaries are UTF-8 for people to read, of no fixed form.

-type outcome() :: rejected | unknown | applied.
%% What became of a write that failed: `rejected', nothing of it is there, now or later; `unknown', only opening the store anew will tell; `applied', it
%% is there and what failed came after.

-type write_error() :: closed | {outcome(), reason()}.
%% `closed' is a rejection too.

-type repaired() :: #{rows := non_neg_integer(), lost := [binary()], aside := binary()}.
%% How many rows the store has now; what could not be read, in words for people, empty if everything could; and the directory that holds the old files.

-type op() :: {put, Key :: binary(), Value :: binary()} | {delete, Key :: binary()}.

-type cell() :: integer() | float() | boolean() | binary() | [] | term().
%% `[]' is NULL. A stored ETF row may hold other terms.

-type write_options() :: #{sync => boolean(), timeout => timeout()} | [{sync, boolean()} | {timeout, timeout()} | atom()].

-type row() ::
    {Key :: binary(), Value :: binary()}
    | (Key :: binary())
    | [{Name :: binary(), cell()}]
    | [cell()]
    | {Key :: binary(), [{Name :: binary(), cell()}] | [cell()]}.
%% By the option `rows': of `kv', `keys', `terms', `cells' and `{select, Names}', and the last three with `with_keys'.

-type iterator_option() :: {rows, kv | keys} | {orphan_ms, timeout()} | {timeout, timeout()}.

-type from() :: first | last | next | prev | {from | 'after' | before | upto, Key :: binary()}.

-type read_option() :: {max_rows, pos_integer()} | {max_bytes, non_neg_integer()} | {timeout, timeout()}.

-type range() ::
    {Start :: binary() | undefined, End :: binary() | undefined}
    | {Start :: binary() | undefined, End :: binary() | undefined, {StartInclusive :: boolean(), EndInclusive :: boolean()}}.

-type start_option() :: {name, atom()} | {executable, file:filename_all()} | {args, [string() | binary()]} | {start_timeout, timeout()}.
%% `name': registered locally, default `scanode_port'. `executable': the program; without it the environment variable SCANODE_EXECUTABLE, the
%% application's environment (`executable'), priv/OS-ARCH/scanode and the checkout's bin/scanode are tried in this order. `args': further arguments of
%% `scanode port'. `start_timeout': how long the program may take to say hello, in milliseconds, default 30000.

-type open_option() ::
    {node, node()}
    | {port, atom() | pid()}
    | {create_if_missing | error_if_exists, boolean()}
    | {orphan_ms | timeout, timeout()}
    | {engine, atom()}
    | {atom(), term()}.
-type open_options() :: #{atom() => term()} | [open_option() | atom()].

-type fold_option() ::
    {timeout | deadline, timeout()}
    | {start | 'end' | continue, binary()}
    | {start_inclusive | end_inclusive | reverse | with_keys | cost | slow_start, boolean()}
    | {ranges, [range()]}
    | {limit, non_neg_integer()}
    | {filter, term()}
    | {rows, kv | keys | terms | cells | {select, [Column :: binary()]}}
    | {on_foreign, error | skip}
    | {max_batch_bytes | max_unacked_bytes, pos_integer()}.
-type fold_options() :: #{atom() => term()} | [fold_option() | atom()].

-type compute() :: {count, all} | {count | sum | avg | min | max | stddev_pop | stddev_samp | first | last, Field :: binary()}.

-type aggregate_option() ::
    {compute, [compute()]}
    | {group_by, [binary() | {time, Field :: binary(), QuantumMs :: pos_integer()}]}
    | {order, [{Position :: pos_integer(), asc | desc}]}
    | {max_groups, pos_integer()}
    | {partial, boolean()}
    | {parallel, 1..64}
    | fold_option().
-type aggregate_options() :: #{atom() => term()} | [aggregate_option() | atom()].

-type aggregate_row() :: scanode_aggregate:row().

-type partial() :: scanode_aggregate:partial().
%% Opaque. It can be stored and sent to other nodes.

-define(IS_DB(Via, Id), is_integer(Id) andalso (is_port(Via) orelse (is_tuple(Via) andalso tuple_size(Via) =:= 2 andalso element(1, Via) =:= scanode))).

%% @doc The child specification of a program of one's own, for one's own supervisor. Options as for {@link start_link/1}; the id is the name. In Elixir,
%% `{:scanode, name: MyStores}' in a list of children does.
-spec child_spec([start_option()] | map()) -> supervisor:child_spec().
child_spec(Options) ->
    {Name, _} = scanode_options:start(Options),
    #{
        id => Name,
        start => {?MODULE, start_link, [Options]},
        type => worker,
        restart => permanent,
        %% The program gets 12 seconds to close its stores before it is killed.
        shutdown => 15000,
        modules => [scanode_port]
    }.

%% @doc Starts the owner of a program, linked to the caller. The program itself is started by the first {@link open/2} that names it, as `port => Name'. The
%% application `scanode' need not be started for this. The program ends with its owner. A missing or wrong program is not an error here but of {@link open/2}.
-spec start_link([start_option()] | map()) -> {ok, pid()} | ignore | {error, term()}.
start_link(Options) ->
    {Name, Rest} = scanode_options:start(Options),
    scanode_port:start_link(Name, Rest).

%% @doc Opens the store in the directory Dir. Options, as a map or a list:
%% <ul>
%% <li>`node': the name of a scanode node; Dir is then sent as it is and means a directory there. Without it, the program of this BEAM; Dir is
%%     then made absolute against the current directory of the BEAM.</li>
%% <li>`port': the name or pid of another program's owner than the application's, see {@link start_link/1}.</li>
%% <li>`timeout': default `infinity'. An open that timed out may still happen; the directory is then locked until the calling process ends.</li>
%% <li>`create_if_missing' (true), `error_if_exists' (false), `engine' (lsm, or couch), `orphan_ms' (600000; for how many milliseconds after its opener's death
%%     the store stays open unused, or `infinity').</li>
%% <li>All others are the engine's own. One that nobody knows is `{error, {bad_option, Text}}'.</li>
%% </ul>
%% The end of the program during an open is no error of it: it waits for the next program, which starts after a pause of at most 10 s, and asks that one. Half
%% a minute after the first such end, or when three programs have ended on this very directory, it gives up with `{down, Text}'.
%%
%% The calling process is the store's opener: while it lives a second open of the directory fails with `locked'.
-spec open(file:filename_all(), open_options()) -> {ok, db()} | {error, reason()}.
open(Dir, Options) ->
    case scanode_call:open(Dir, Options) of
        {ok, Via, Id} -> {ok, {scanode_db, Via, Id}};
        {error, Reason} -> {error, Reason}
    end.

%% @doc Closes the store: ends its folds (they raise), its snapshots and its iterators, flushes everything and gives the directory free. Waits until that is
%% done. Any process may do this. A snapshot or an iterator is closed without its store; a fold of a snapshot goes on.
-spec close(db() | iterator()) -> ok | {error, reason()}.
close({Tag, Via, Id}) when Tag =:= scanode_db andalso ?IS_DB(Via, Id); Tag =:= scanode_iterator andalso ?IS_DB(Via, Id) ->
    scanode_call:ask(Via, {close, Id}, infinity);
close(Db) ->
    erlang:error(badarg, [Db]).

%% @equiv destroy(Dir, #{})
-spec destroy(file:filename_all()) -> ok | {error, reason()}.
destroy(Dir) ->
    destroy(Dir, #{}).

%% @doc Removes the store in the directory Dir, where there is one, and no files that are not a store's. It must not be open. Options are `node', `port',
%% `timeout' and `engine', as of {@link open/2}.
-spec destroy(file:filename_all(), open_options()) -> ok | {error, reason()}.
destroy(Dir, Options) ->
    scanode_call:about(destroy, Dir, Options).

%% @equiv repair(Dir, #{})
-spec repair(file:filename_all()) -> {ok, repaired()} | {error, reason()}.
repair(Dir) ->
    repair(Dir, #{}).

%% @doc Makes a new store of what can be read of the one in the directory Dir, in its place. It must not be open. Options as of {@link destroy/2}.
-spec repair(file:filename_all(), open_options()) -> {ok, repaired()} | {error, reason()}.
repair(Dir, Options) ->
    scanode_call:about(repair, Dir, Options).

%% @doc Whether the store, or the snapshot, has no rows. Mostly at once; deleted rows that are still there may have to be passed over.
-spec is_empty(db()) -> {ok, boolean()} | {error, reason()}.
is_empty({scanode_db, Via, Id}) when ?IS_DB(Via, Id) ->
    scanode_call:ask(Via, {is_empty, Id}, infinity);
is_empty(Db) ->
    erlang:error(badarg, [Db]).

%% @doc Facts about this BEAM's program, which is started where it does not run: `version', `protocol', `stores', `streams', `links', `memory_bytes', `os_pid'.
-spec info() -> {ok, #{atom() => term()}} | {error, reason()}.
info() ->
    info(#{}).

%% @doc Facts about a store: `engine', `dir', `disk_bytes', `memory_bytes', `files', `iterators', `snapshots', `streams', `read_errors', `parked', `text',
%% `level_files', `table_bytes', `block_cache_bytes', `file_cache_bytes', `table' (docs/protocol.md §2). Or, with the options `node', `port' and `timeout' as
%% of {@link open/2} instead of a handle, about that program as {@link info/0}.
-spec info(db() | open_options()) -> {ok, #{atom() => term()}} | {error, reason()}.
info({scanode_db, Via, Id}) when ?IS_DB(Via, Id) ->
    scanode_call:ask(Via, {info, Id}, infinity);
info(Options) when is_map(Options); is_list(Options) ->
    scanode_call:info(Options);
info(Db) ->
    erlang:error(badarg, [Db]).

%% @equiv get(Db, Key, infinity)
-spec get(db(), binary()) -> {ok, binary()} | not_found | {error, reason()}.
get(Db, Key) ->
    get(Db, Key, infinity).

%% @doc The value of a key.
-spec get(db(), binary(), timeout()) -> {ok, binary()} | not_found | {error, reason()}.
get({scanode_db, Via, Id} = Db, Key, Timeout) when ?IS_DB(Via, Id) ->
    _ = scanode_options:is_timeout(Timeout) orelse erlang:error(badarg, [Db, Key, Timeout]),
    scanode_call:ask(Via, {get, Id, Key}, Timeout);
get(Db, Key, Timeout) ->
    erlang:error(badarg, [Db, Key, Timeout]).

%% @doc Stores one value, not synced: the program may keep it in its memory for up to five seconds (the engine couch as its options say) and loses it when
%% it is killed in that time; then it is on the disk. {@link write/3} can do more.
-spec put(db(), binary(), binary()) -> ok | {error, write_error()}.
put(Db, Key, Value) ->
    write(Db, [{put, Key, Value}], #{}).

%% @doc Removes a key, which need not be there. Not synced, as {@link put/3}.
-spec delete(db(), binary()) -> ok | {error, write_error()}.
delete(Db, Key) ->
    write(Db, [{delete, Key}], #{}).

%% @doc Applies all operations in order, or none of them. Options, as a map or a list:
%% <ul>
%% <li>`sync': when true, `ok' means that it is on the disk and survives anything. Default false.</li>
%% <li>`timeout': default `infinity'. A write that timed out is `{unknown, timeout}'.</li>
%% </ul>
%% All operations of one write must fit into 64 MiB.
-spec write(db(), [op()], write_options()) -> ok | {error, write_error()}.
write({scanode_db, Via, Id}, Ops, Options) when ?IS_DB(Via, Id) ->
    scanode_call:write(Via, Id, Ops, Options);
write(Db, Ops, Options) ->
    erlang:error(badarg, [Db, Ops, Options]).

%% @doc As {@link write/3}, without waiting: later, exactly one message `{Context, Result}' comes to the calling process, Context being any term and Result
%% what write/3 would have returned. Writes of one process to one store, with this and with write/3, are applied in the order of the calls. There may be many
%% under way; when the program has more of them than it takes (docs/protocol.md §5), this call waits until there is room. The end of the store or of the
%% program is the Result of each that it leaves without another. Beside the options of write/3 there is `result', a function that is given what write/3 would have
%% returned, in a process of its own, and returns what is sent instead.
-spec async_write(db(), Context :: term(), [op()], write_options() | #{atom() => term()}) -> ok.
async_write({scanode_db, Via, Id}, Context, Ops, Options) when ?IS_DB(Via, Id) ->
    scanode_call:async_write(Via, Id, Context, Ops, Options);
async_write(Db, Context, Ops, Options) ->
    erlang:error(badarg, [Db, Context, Ops, Options]).

%% @doc As {@link get/2}, without waiting: later, exactly one message `{Context, Result}' comes to the calling process. It may overtake writes under way, and
%% be overtaken.
-spec async_get(db(), Context :: term(), binary()) -> ok.
async_get({scanode_db, Via, Id}, Context, Key) when ?IS_DB(Via, Id) ->
    scanode_call:async_get(Via, Id, Context, Key);
async_get(Db, Context, Key) ->
    erlang:error(badarg, [Db, Context, Key]).

%% @equiv snapshot(Db, #{})
-spec snapshot(db()) -> {ok, db()} | {error, reason()}.
snapshot(Db) ->
    snapshot(Db, #{}).

%% @doc An unchanging view of the store as it is now, for {@link get/2}, {@link fold/4}, {@link iterator/2} and {@link info/1} as any store, and
%% {@link close/1} when it is no longer needed. It cannot be written to. It ends with the store, or when the calling process has ended and nobody has used it
%% for the milliseconds that the option `orphan_ms' says (600000, or `infinity'). `timeout' as always.
-spec snapshot(db(), #{orphan_ms | timeout => timeout()} | [{orphan_ms | timeout, timeout()}]) -> {ok, db()} | {error, reason()}.
snapshot({scanode_db, Via, Id}, Options) when ?IS_DB(Via, Id) ->
    case scanode_call:timed(Via, Options, fun(Rest) -> {snapshot, Id, Rest} end) of
        {ok, Snapshot} -> {ok, {scanode_db, Via, Snapshot}};
        {error, Reason} -> {error, Reason}
    end;
snapshot(Db, Options) ->
    erlang:error(badarg, [Db, Options]).

%% @doc An iterator over the store, or the snapshot, as it is now; later writes change nothing for it. Any process may use it. Reads by several are done one
%% after the other, and each is answered to who asked. It ends as a snapshot does, {@link snapshot/2}, with the same options; `rows' says what is read: `kv',
%% the default, `{Key, Value}', or `keys'.
-spec iterator(db(), #{atom() => term()} | [iterator_option()]) -> {ok, iterator()} | {error, reason()}.
iterator({scanode_db, Via, Id}, Options) when ?IS_DB(Via, Id) ->
    case scanode_call:timed(Via, Options, fun(Rest) -> {iterator, Id, Rest} end) of
        {ok, Iterator} -> {ok, {scanode_iterator, Via, Iterator}};
        {error, Reason} -> {error, Reason}
    end;
iterator(Db, Options) ->
    erlang:error(badarg, [Db, Options]).

%% @doc Reads rows from a place on: forwards from `first', `{from, Key}' (the first key not below Key) and `{'after', Key}' (the first above), backwards, the
%% largest key first, from `last', `{upto, Key}' (the last key not above Key) and `{before, Key}' (the last below). `next' and `prev' go on from the row that
%% was read last, whichever way; a new iterator is before its first row. The options `max_rows' (100, at most 100000) and `max_bytes' (131072; exceeded by one
%% row at most) end the read, and then it says `more', and there may be no more; `done' says that it came to the end. Going on from the last row, either
%% way, is no search. After an error the iterator is where it was, but for `timeout'.
-spec iterator_read(iterator(), from(), #{atom() => term()} | [read_option()]) -> {ok, [row()], more | done} | {error, reason()}.
iterator_read({scanode_iterator, Via, Id}, From, Options) when ?IS_DB(Via, Id) ->
    case scanode_call:timed(Via, Options, fun(Rest) -> {iterator_read, Id, From, Rest} end) of
        {ok, Bin, More} -> scanode_scan:page(Bin, More);
        {error, Reason} -> {error, Reason}
    end;
iterator_read(Iterator, From, Options) ->
    erlang:error(badarg, [Iterator, From, Options]).

%% @doc Reads one row, `done' if there is none. A binary means the first key not below it. Each move is one call; {@link iterator_read/3} reads many rows in
%% one, {@link fold/4} all.
-spec iterator_move(iterator(), first | last | next | prev | (Key :: binary())) -> {ok, row()} | done | {error, reason()}.
iterator_move(Iterator, Action) ->
    From =
        case is_binary(Action) of
            true -> {from, Action};
            false -> Action
        end,
    case iterator_read(Iterator, From, #{max_rows => 1}) of
        {ok, [Row], _} -> {ok, Row};
        {ok, [], done} -> done;
        {error, Reason} -> {error, Reason}
    end.

%% @doc The snapshots and iterators of a store: each with `handle', for {@link close/1}, `kind' (`snapshot', `iterator'), `maker', `orphaned' (whether the maker
%% has ended) and `idle_ms' (since its last use).
-spec handles(db()) -> {ok, [#{handle := db() | iterator(), kind := snapshot | iterator, maker := pid(), orphaned := boolean(), idle_ms := non_neg_integer()}]}
    | {error, reason()}.
handles({scanode_db, Via, Id}) when ?IS_DB(Via, Id) ->
    case scanode_call:ask(Via, {handles, Id}, infinity) of
        {ok, Handles} -> {ok, [handle(Via, Handle) || Handle <- Handles]};
        {error, Reason} -> {error, Reason}
    end;
handles(Db) ->
    erlang:error(badarg, [Db]).

-spec handle(scanode_link:via(), map()) -> map().
handle(Via, #{id := Id, kind := snapshot} = Facts) -> maps:put(handle, {scanode_db, Via, Id}, maps:remove(id, Facts));
handle(Via, #{id := Id, kind := iterator} = Facts) -> maps:put(handle, {scanode_iterator, Via, Id}, maps:remove(id, Facts)).

%% @doc Calls `Fun(Row, Acc)' for the rows of a range in the order of their keys, byte by byte, as they were when the fold began. Options, as a map or a list:
%% <ul>
%% <li>`start', `end': bounds, binaries; default none. `start_inclusive' (true), `end_inclusive' (false). Or `ranges': several, in the order in which
%%     they are folded over, on one view of the store.</li>
%% <li>`reverse' (false): each range from its end to its start.</li>
%% <li>`limit': end after so many rows that matched; 0, the default, is none. `continue': go on where the limit ended the same query before, see
%%     {@link fold_info/4}.</li>
%% <li>`deadline': so many milliseconds may the scan take in the program, else it ends with `{scan, deadline}'; default `infinity'.</li>
%% <li>`filter': only rows that match this filter term (docs/filters.md). The values must then be riak objects.</li>
%% <li>`rows': what a Row is. `kv', the default: `{Key, Value}'; `keys': `Key'. Of stored riak objects, whatever their encoding: `terms': `[{Name, Cell}]';
%%     `cells': `[Cell]'; `{select, Names}': the cells of these columns, `[]' for one that is missing or NULL. Deleted rows are left out. With `with_keys'
%%     (false) `{Key, Row}'. A row that holds what cannot cross (docs/protocol.md) is an error, or with `on_foreign => skip' left out.</li>
%% <li>`timeout': so many milliseconds without any sign of life of the scan; default `infinity'. A scan that finds nothing for long is alive.</li>
%% <li>`max_batch_bytes' (131072), `max_unacked_bytes' (1048576): the size of a batch of rows and of all batches that may be on their way or wait in
%%     the mailbox. With `slow_start' both begin small and double: for folds that mostly end early, by an exception.</li>
%% </ul>
%% The whole result or an exception, never less: whatever fails raises `error({scan, reason()})', after Fun was called for the rows before the fault.
%% `{scan, closed}' when the store is or gets closed.
%%
%% A process whose mailbox is long folds faster with `process_flag(message_queue_data, off_heap)': else every garbage collection looks at every message.
%%
%% Fun may take its time, fold and write itself, and leave with an exception: that is passed on, the scan ends in the program at once, and no message
%% of it is or comes in the mailbox.
-spec fold(db(), fun((row(), Acc) -> Acc), Acc, fold_options()) -> Acc.
fold(Db, Fun, Acc0, Options) ->
    {Acc, _Facts} = fold_info(Db, Fun, Acc0, Options),
    Acc.

%% @doc As {@link fold/4}, and says what is known of the scan: `rows_read', `rows' and `batches'; `continuation', a binary for the option `continue', if
%% `limit' ended the scan; and with the option `cost' also `bytes' of the batches, `credit_waits', and in microseconds `engine_us' (in the store's
%% iterator), `credit_us' (waiting for this process), `send_us' (in the transport). Page by page:
%% ```
%% {Rows, #{continuation := More}} = scanode:fold_info(Db, fun(R, A) -> [R | A] end, [], #{limit => 100}),
%% {Next, Facts} = scanode:fold_info(Db, fun(R, A) -> [R | A] end, [], #{limit => 100, continue => More}).
%% '''
-spec fold_info(db(), fun((row(), Acc) -> Acc), Acc, fold_options()) -> {Acc, #{atom() => term()}}.
fold_info({scanode_db, Via, Id}, Fun, Acc0, Options) when ?IS_DB(Via, Id), is_function(Fun, 2) ->
    scanode_scan:fold(Via, Id, Fun, Acc0, Options);
fold_info(Db, Fun, Acc, Options) ->
    erlang:error(badarg, [Db, Fun, Acc, Options]).

%% @doc Computes in the program, over the rows of a range, and returns the results and nothing else (docs/aggregates.md). Options, as a map or a list:
%% <ul>
%% <li>`compute': what to compute, a list of `{count, all}' and of `{Operation, Field}', an Operation being one of `count', `sum', `avg', `min', `max',
%%     `stddev_pop', `stddev_samp', `first', `last', a Field a binary.</li>
%% <li>`group_by': a list of fields and of `{time, Field, QuantumMs}'; without it all rows are one group.</li>
%% <li>`order': a list of `{Position, asc | desc}', positions counting the columns of the result from 1; NULL is the last, with `desc' the first.</li>
%% <li>`limit': no more groups than that; `max_groups' (10000): more are the error `too_many_groups'.</li>
%% <li>`partial': when true, the result is one for {@link merge_aggregates/1}.</li>
%% <li>`parallel': in so many parts may a large range be read side by side, 1 to 64; the result is the same. All processors but one, at most 4, if not
%%     given.</li>
%% <li>All that say which rows there are, and the times and sizes, of {@link fold/4}.</li>
%% </ul>
%% A Row is the list of the values its rows agree in, followed by the results. NULL is `[]'. What `cost' measures is told by {@link aggregate_info/2}.
-spec aggregate(db(), aggregate_options()) -> {ok, [aggregate_row()] | partial()} | {error, reason()}.
aggregate({scanode_db, Via, Id}, Options) when ?IS_DB(Via, Id) ->
    case scanode_scan:aggregate(Via, Id, Options) of
        {ok, Result, _Facts} -> {ok, Result};
        {error, Reason} -> {error, Reason}
    end;
aggregate(Db, Options) ->
    erlang:error(badarg, [Db, Options]).

%% @doc As {@link aggregate/2}, and says what is known of the scan, as {@link fold_info/4} does: `rows_read', the rows looked at; `rows', the groups sent;
%% `batches'; and with the option `cost' the others, `engine_us' being the time of all parts together.
-spec aggregate_info(db(), aggregate_options()) -> {ok, [aggregate_row()] | partial(), #{atom() => term()}} | {error, reason()}.
aggregate_info({scanode_db, Via, Id}, Options) when ?IS_DB(Via, Id) ->
    scanode_scan:aggregate(Via, Id, Options);
aggregate_info(Db, Options) ->
    erlang:error(badarg, [Db, Options]).

%% @doc Merges what {@link aggregate/2} returned with `partial => true' for parts of the rows (ranges, stores, nodes) into the result for all of them. It
%% is the same, bit for bit, as one aggregate over everything would give. All parts must be of one query: all options but those of the range. For `first'
%% and `last', the parts are in the order of their keys; for the same key in several parts, the first of them counts.
-spec merge_aggregates([partial()]) -> {ok, [aggregate_row()]} | {error, reason()}.
merge_aggregates(Parts) ->
    scanode_aggregate:merge(Parts).

%% @doc How a fold with these options would read rows: a map with `filter' (its normal form), `outcome' (`all', `none' or `depends': which rows pass as far as
%% the filter alone says), `key' (whether the key is looked at), `fields' with the types their values must fit, `every_row' and `matching_rows' (the
%% columns up to the last of which a row is walked, and one that passes further), `extractors' (the encodings read).
-spec explain(db(), fold_options()) -> {ok, #{atom() => term()}} | {error, reason()}.
explain({scanode_db, Via, Id}, Options) when ?IS_DB(Via, Id) ->
    scanode_call:timed(Via, Options, fun(Rest) -> {explain, Rest} end);
explain(Db, Options) ->
    erlang:error(badarg, [Db, Options]).

%% @doc Cuts the range that the options `start', `end', `start_inclusive' and `end_inclusive' give into at most Parts ranges of similar size that follow each
%% other, for folds and aggregates side by side: each is an element of the option `ranges'. The sizes are estimates.
-spec split(db(), fold_options(), pos_integer()) -> {ok, [range(), ...]} | {error, reason()}.
split({scanode_db, Via, Id}, Options, Parts) when ?IS_DB(Via, Id) ->
    scanode_call:timed(Via, Options, fun(Rest) -> {split, Id, Rest, Parts} end);
split(Db, Options, Parts) ->
    erlang:error(badarg, [Db, Options, Parts]).

%% @doc Starts a scan whose rows are asked for: for a gen_server, or a stream, that cannot hand over the control as {@link fold/4} wants it. Options as
%% there. No message of it reaches the calling process unasked. It ends when that process does. Faults of the options and of the store are told by the
%% first {@link scan_next/1}.
-spec scan_start(db(), fold_options()) -> {ok, scan()} | {error, reason()}.
scan_start({scanode_db, Via, Id}, Options) when ?IS_DB(Via, Id) ->
    case scanode_scan:start(Via, Id, Options) of
        {ok, Scan, Timeout} -> {ok, {scanode_scan, self(), Via, Scan, Timeout, []}};
        {error, Reason} -> {error, Reason}
    end;
scan_start(Db, Options) ->
    erlang:error(badarg, [Db, Options]).

%% @doc The next rows, at least one, and the scan to go on with; `done' with what {@link fold_info/4} says of a scan; or why it cannot be completed. After
%% `done' and an error the scan is over, and `{error, closed}' is all that can be heard of it. Only the process that started the scan may ask, and each
%% scan() it got only once.
-spec scan_next(scan()) -> {ok, [row(), ...], scan()} | {done, #{atom() => term()}} | {error, reason()}.
scan_next({scanode_scan, Owner, Via, Scan, Timeout, Pending}) when Owner =:= self() ->
    case scanode_scan:next(Via, Scan, Pending, Timeout) of
        {ok, Rows, More} -> {ok, Rows, {scanode_scan, Owner, Via, Scan, Timeout, More}};
        Over -> Over
    end;
scan_next(Scan) ->
    erlang:error(badarg, [Scan]).

%% @doc Ends a scan early. Harmless when it is over.
-spec scan_stop(scan()) -> ok.
scan_stop({scanode_scan, _Owner, Via, Scan, _Timeout, _Pending}) ->
    scanode_link:quit(Via, Scan).
