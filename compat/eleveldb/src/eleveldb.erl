%% @doc The interface of eleveldb, on stores of a scanode program.
%%
%% Whoever uses eleveldb can use this application instead, unchanged: README.md says how, and in what it differs on purpose. All functions of eleveldb
%% `develop' and of `riak_ts-1.5.2' are here but for those its benchmarks are made of.
%%
%% ```
%% {ok, Db} = eleveldb:open("data/0", [{create_if_missing, true}]),
%% ok = eleveldb:put(Db, <<"k1">>, <<"v1">>, []),
%% {ok, <<"v1">>} = eleveldb:get(Db, <<"k1">>, []),
%% [<<"k1">>] = eleveldb:fold_keys(Db, fun(Key, Keys) -> [Key | Keys] end, [], []),
%% ok = eleveldb:close(Db).
%% '''
%%
%% A handle can be used by any process of this BEAM. Arguments of the wrong kind and handles of what is closed raise `badarg'. Options are lists; what in
%% them nobody knows is passed over. Texts of errors are lists of characters.
%%
%% The application starts itself with the first {@link open/2}. What it calls waits for the storage program as long as that takes: a program that ends
%% fails all that is under way at once.
-module(eleveldb).

-export([open/2, close/1, status/2, destroy/2, repair/2, is_empty/1]).
-export([get/3, put/4, delete/3, write/3, async_put/5, sync_put/5, sync_write/4]).
-export([iterator/2, iterator/3, iterator_move/2, iterator_close/1]).
-export([fold/4, fold_keys/4, do_fold/4]).
-export([option_types/1, validate_options/2]).
-export([append_string/2, parse_string/1, append_point/3, ts_batch_to_binary/1, ts_key/1, ts_key_TEST/1, encode/2, current_usec/0]).

-export_type([db_ref/0, itr_ref/0, itr_action/0]).
-export_type([open_options/0, read_options/0, fold_options/0, write_options/0, write_action/0, write_actions/0, write_error/0]).

-opaque db_ref() :: {eleveldb_db, scanode:db(), Closed :: atomics:atomics_ref()}.
%% A handle of an open store. Closed is 1 from the call of close/1 on.

-opaque itr_ref() :: {eleveldb_iterator, pid()}.
%% A handle of an iterator.

-type itr_action() :: first | last | next | prev | prefetch | prefetch_stop | (Key :: binary()).

-type open_options() :: [{atom(), term()} | term()].
%% The names and types are those of `option_types(open)'; which have an effect, README.md says.

-type read_options() :: [{verify_checksums, boolean()} | {fill_cache, boolean()} | {iterator_refresh, boolean()} | term()].

-type fold_options() :: [
    {first_key | start_key, binary() | first}
    | {fold_method, iterator | streaming}
    | {end_key, binary() | undefined}
    | {start_inclusive | end_inclusive, boolean()}
    | {limit | max_batch_bytes | max_unacked_bytes, non_neg_integer()}
    | {range_filter, term()}
    | {verify_checksums | fill_cache | iterator_refresh, boolean()}
    | term()
].

-type write_options() :: [{sync, boolean()} | term()].

-type write_action() :: {put, Key :: binary(), Value :: binary()} | {delete, Key :: binary()} | clear.
%% `clear' forgets what stands before it in the same list.

-type write_actions() :: [write_action()].

-type write_error() ::
    {error, {db_write, string()}}
    | {error, {db_write_rejected, string()}}
    | {error, Context :: term(), {bad_write_action, term()}}.
%% `db_write': the store cannot go on, or nobody knows what became of the write. `db_write_rejected': nothing of it is there, and the store is well (too
%% large, too many at once). `bad_write_action': the first action that is none; nothing was written.

%% @doc Opens the store in a directory. Riak's retries rely on the beginning `"IO error: lock "' of the text, which it has while the store is open
%% already, or while the storage program is being started anew.
%%
%% Dir is a list of characters up to 255, shorter than 4096. A process that opened a store keeps it locked while it lives; afterwards it can be opened
%% anew at once, which ends the old handle.
-spec open(Dir :: string(), open_options()) -> {ok, db_ref()} | {error, {db_open, string()}}.
open(Dir, Options) when is_list(Options) ->
    _ = is_dir(Dir) orelse erlang:error(badarg, [Dir, Options]),
    case started() of
        ok -> open_started(Dir, Options);
        {error, Reason} -> eleveldb_error:open(Dir, Reason)
    end.

-spec open_started(string(), open_options()) -> {ok, db_ref()} | {error, {db_open, string()}}.
open_started(Dir, Options) ->
    case opened(Dir, eleveldb_options:open(Options)) of
        {ok, Db} -> {ok, {eleveldb_db, Db, atomics:new(1, [])}};
        {error, Reason} -> eleveldb_error:open(Dir, Reason)
    end.

%% Expiry is switched on for all stores of a node at once, and those that were made without it have to open: a vnode that does not stops its node.
-spec opened(string(), #{atom() => term()}) -> {ok, scanode:db()} | {error, scanode:reason()}.
opened(Dir, #{expiry_enabled := true} = Options) ->
    case scanode:open(Dir, Options) of
        {error, {bad_option, _}} = Refused ->
            case scanode:open(Dir, eleveldb_options:without_expiry(Options)) of
                {ok, Db} ->
                    ok = eleveldb_log:without_expiry(Dir),
                    {ok, Db};
                {error, _} ->
                    Refused
            end;
        Opened ->
            Opened
    end;
opened(Dir, Options) ->
    scanode:open(Dir, Options).

-spec is_dir(term()) -> boolean().
is_dir(Dir) ->
    try
        length(Dir) < 4096 andalso lists:all(fun(Char) -> is_integer(Char) andalso Char >= 0 andalso Char =< 255 end, Dir)
    catch
        error:badarg -> false
    end.

%% The original is a library; who uses it need not start it.
-spec started() -> ok | {error, scanode:reason()}.
started() ->
    case whereis(eleveldb_sup) of
        undefined ->
            case application:ensure_all_started(eleveldb) of
                {ok, _} -> ok;
                {error, Why} -> {error, {internal, iolist_to_binary(io_lib:format("eleveldb cannot be started: ~0tp", [Why]))}}
            end;
        _ ->
            ok
    end.

%% @doc Closes the store: folds, iterators and whatever else uses it fail with `badarg' from now on. Waits until everything is on the disk. The second
%% close raises badarg, or returns `{error, einval}' if the application's environment has `second_close' as `einval'.
-spec close(db_ref()) -> ok | {error, einval} | {error, {db_close, string()}}.
close({eleveldb_db, Db, Closed} = Ref) ->
    case atomics:exchange(Closed, 1, 1) of
        0 ->
            Closing = scanode:close(Db),
            ok = eleveldb_iterator:store_closed(),
            case Closing of
                ok -> ok;
                {error, closed} -> erlang:error(badarg, [Ref]);
                {error, Reason} -> {error, {db_close, eleveldb_error:text(Reason)}}
            end;
        _ ->
            closed_again(Ref)
    end;
close(Ref) ->
    erlang:error(badarg, [Ref]).

-spec closed_again(db_ref()) -> {error, einval}.
closed_again(Ref) ->
    case application:get_env(eleveldb, second_close, badarg) of
        einval -> {error, einval};
        _ -> erlang:error(badarg, [Ref])
    end.

%% @doc A fact about the store; README.md lists the names. `error' for one that is unknown.
-spec status(db_ref(), Name :: binary()) -> {ok, binary()} | error.
status({eleveldb_db, Db, _} = Ref, Name) when is_binary(Name) ->
    case scanode:info(Db) of
        {ok, Info} -> eleveldb_status:value(Name, Info);
        {error, closed} -> erlang:error(badarg, [Ref, Name]);
        {error, _} -> error
    end;
status(Ref, Name) ->
    erlang:error(badarg, [Ref, Name]).

%% @doc Removes the store in a directory, and nothing else that is there. `ok' too when there is none.
-spec destroy(Dir :: string(), open_options()) -> ok | {error, {error_db_destroy, string()}}.
destroy(Dir, Options) ->
    case about(fun scanode:destroy/2, Dir, Options) of
        ok -> ok;
        {error, Reason} -> eleveldb_error:destroy(Dir, Reason)
    end.

%% @doc Makes a new store of what can be read of a damaged one, in its place, and logs what was lost and where the old files are. `ok' too when there is
%% none.
-spec repair(Dir :: string(), open_options()) -> ok | {error, {error_db_repair, string()}}.
repair(Dir, Options) ->
    case about(fun scanode:repair/2, Dir, Options) of
        {ok, Repaired} -> eleveldb_log:repaired(Dir, Repaired);
        {error, Reason} -> eleveldb_error:repair(Dir, Reason)
    end.

-spec about(fun((string(), scanode:open_options()) -> Result), string(), open_options()) -> Result | {error, scanode:reason()}.
about(Call, Dir, Options) ->
    _ = (is_dir(Dir) andalso is_list(Options)) orelse erlang:error(badarg, [Dir, Options]),
    case started() of
        ok -> Call(Dir, #{port => eleveldb_sup:program()});
        {error, Reason} -> {error, Reason}
    end.

%% @doc Whether the store has no rows.
-spec is_empty(db_ref()) -> boolean().
is_empty({eleveldb_db, Db, _} = Ref) ->
    case scanode:is_empty(Db) of
        {ok, Empty} -> Empty;
        {error, closed} -> erlang:error(badarg, [Ref]);
        {error, Reason} -> eleveldb_fold:iterator_error(Reason)
    end;
is_empty(Ref) ->
    erlang:error(badarg, [Ref]).

%% @doc The value of a key. The options are read by nobody: checksums are verified always.
-spec get(db_ref(), Key :: binary(), read_options()) -> {ok, binary()} | not_found | {error, {error, string()}}.
get({eleveldb_db, Db, _} = Ref, Key, Options) when is_binary(Key), is_list(Options) ->
    case scanode:get(Db, Key) of
        {ok, Value} -> {ok, Value};
        not_found -> not_found;
        {error, closed} -> erlang:error(badarg, [Ref, Key, Options]);
        {error, Reason} -> eleveldb_error:get(Reason)
    end;
get(Ref, Key, Options) ->
    erlang:error(badarg, [Ref, Key, Options]).

%% @equiv write(Db, [{put, Key, Value}], Options)
-spec put(db_ref(), Key :: binary(), Value :: binary(), write_options()) -> ok | write_error().
put(Ref, Key, Value, Options) ->
    write(make_ref(), Ref, [{put, Key, Value}], Options).

%% @equiv write(Db, [{delete, Key}], Options)
-spec delete(db_ref(), Key :: binary(), write_options()) -> ok | write_error().
delete(Ref, Key, Options) ->
    write(make_ref(), Ref, [{delete, Key}], Options).

%% @doc Applies all actions in their order, or none. With the option `{sync, true}' `ok' means that they are on the disk.
-spec write(db_ref(), write_actions(), write_options()) -> ok | write_error().
write(Ref, Actions, Options) ->
    write(make_ref(), Ref, Actions, Options).

%% @doc As {@link put/4}, without waiting: later, exactly one message `{Context, Result}' comes to the calling process, whatever becomes of the store and the
%% program. Writes of one process to one store are applied in the order of its calls. When very many are under way this waits until there is room.
-spec async_put(db_ref(), Context :: term(), Key :: binary(), Value :: binary(), write_options()) -> ok.
async_put({eleveldb_db, Db, Closed} = Ref, Context, Key, Value, Options) when is_list(Options) ->
    case atomics:get(Closed, 1) of
        0 when is_binary(Key), is_binary(Value) ->
            Write = #{sync => eleveldb_options:sync(Options), result => fun eleveldb_error:written/1},
            scanode:async_write(Db, Context, [{put, Key, Value}], Write);
        0 ->
            _ = self() ! {Context, {error, Context, {bad_write_action, {put, Key, Value}}}},
            ok;
        _ ->
            erlang:error(badarg, [Ref, Context, Key, Value, Options])
    end;
async_put(Ref, Context, Key, Value, Options) ->
    erlang:error(badarg, [Ref, Context, Key, Value, Options]).

%% @doc As {@link put/4}; Context stands in the error of a bad action.
-spec sync_put(db_ref(), Context :: term(), Key :: binary(), Value :: binary(), write_options()) -> ok | write_error().
sync_put(Ref, Context, Key, Value, Options) ->
    write(Context, Ref, [{put, Key, Value}], Options).

%% @doc As {@link write/3}; Context stands in the error of a bad action.
-spec sync_write(Context :: term(), db_ref(), write_actions(), write_options()) -> ok | write_error().
sync_write(Context, Ref, Actions, Options) ->
    write(Context, Ref, Actions, Options).

-spec write(term(), db_ref(), write_actions(), write_options()) -> ok | write_error().
write(Context, {eleveldb_db, Db, _} = Ref, Actions, Options) when is_list(Actions), is_list(Options) ->
    case actions(Actions) of
        {ok, Ops} ->
            case scanode:write(Db, Ops, #{sync => eleveldb_options:sync(Options)}) of
                ok -> ok;
                {error, closed} -> erlang:error(badarg, [Ref, Actions, Options]);
                {error, Error} -> eleveldb_error:write(Error)
            end;
        {bad, Item} ->
            ok = is_open(Ref, [Ref, Actions, Options]),
            {error, Context, {bad_write_action, Item}}
    end;
write(_, Ref, Actions, Options) ->
    erlang:error(badarg, [Ref, Actions, Options]).

%% A handle that is closed is the first thing that is wrong.
-spec is_open(db_ref(), [term()]) -> ok.
is_open({eleveldb_db, Db, _}, Args) ->
    case scanode:info(Db) of
        {error, closed} -> erlang:error(badarg, Args);
        _ -> ok
    end.

%% What is to be written. A list without `clear' goes out as it is.
-spec actions(term()) -> {ok, [scanode:op()]} | {bad, term()}.
actions(Actions) -> actions(Actions, Actions).

-spec actions(term(), term()) -> {ok, [scanode:op()]} | {bad, term()}.
actions([{put, Key, Value} | Tail], All) when is_binary(Key), is_binary(Value) -> actions(Tail, All);
actions([{delete, Key} | Tail], All) when is_binary(Key) -> actions(Tail, All);
actions([], All) -> {ok, All};
actions([clear | Tail], _) -> actions(Tail, Tail);
actions([Bad | _], _) -> {bad, Bad};
%% The tail of an improper list is passed over.
actions(_, All) -> {ok, proper(All)}.

-spec proper(term()) -> [term()].
proper([Head | Tail]) -> [Head | proper(Tail)];
proper(_) -> [].

%% @doc An iterator over the store as it is now; writes that come later change nothing for it. With the option `iterator_refresh' it takes a new view every
%% five minutes, and cannot be used any more when it has run off an end.
%%
%% It can be made by one process and used and closed by others. It lives until it is closed, or its store is, or for an hour after its maker's death
%% and its last use.
-spec iterator(db_ref(), read_options()) -> {ok, itr_ref()}.
iterator(Ref, Options) ->
    iterator_of(Ref, kv, Options).

%% @doc The same for keys only.
-spec iterator(db_ref(), read_options(), keys_only) -> {ok, itr_ref()}.
iterator(Ref, Options, keys_only) ->
    iterator_of(Ref, keys, Options).

-spec iterator_of(db_ref(), kv | keys, read_options()) -> {ok, itr_ref()}.
iterator_of({eleveldb_db, _, _} = Ref, Rows, Options) when is_list(Options) ->
    case eleveldb_iterator:open(source(Ref, Rows, Options), self()) of
        {ok, Iterator} -> {ok, {eleveldb_iterator, Iterator}};
        {error, Reason} -> eleveldb_fold:iterator_error(Reason)
    end;
iterator_of(Ref, _, Options) ->
    erlang:error(badarg, [Ref, Options]).

%% @doc Moves an iterator: to the first or the last row, to the first row whose key is not below a binary, or on to the next or the previous one. `prefetch'
%% and `prefetch_stop' are what `next' is; rows are read ahead by themselves.
%%
%% A new iterator is nowhere, and so is one that has run off an end: `invalid_iterator' is what moves on from there return. `iterator_closed' is what
%% all moves return after the end with `iterator_refresh'. What is no action returns `{einval, reference()}'. A read that fails raises
%% `{iterator_error, Text}'.
-spec iterator_move(itr_ref(), itr_action()) -> eleveldb_iterator:result().
iterator_move({eleveldb_iterator, Iterator} = Itr, Action) when is_pid(Iterator) ->
    case eleveldb_iterator:move(Iterator, Action) of
        closed -> erlang:error(badarg, [Itr, Action]);
        {failed, Reason} -> eleveldb_fold:iterator_error(Reason);
        Result -> Result
    end;
iterator_move(Itr, Action) ->
    erlang:error(badarg, [Itr, Action]).

%% @doc Closes an iterator. Once more raises badarg.
-spec iterator_close(itr_ref()) -> ok.
iterator_close({eleveldb_iterator, Iterator} = Itr) when is_pid(Iterator) ->
    case eleveldb_iterator:close(Iterator) of
        ok -> ok;
        closed -> erlang:error(badarg, [Itr])
    end;
iterator_close(Itr) ->
    erlang:error(badarg, [Itr]).

%% @doc Calls `Fun({Key, Value}, Acc)' for the rows in the order of their keys, byte by byte, as they were when the fold began. By `fold_method':
%% <ul>
%% <li>`iterator', the default: all rows from `first_key' on (`start_key' means the same), or from the first one. Other bounds are passed over.</li>
%% <li>`streaming': rows from `start_key' to `end_key', those the `range_filter' lets through, at most `limit' of them if that is not 0.
%%     `start_inclusive' (true), `end_inclusive' (false), `max_batch_bytes' (1 MiB), `max_unacked_bytes' (10 MiB).</li>
%% </ul>
%% Fun may block, write and delete, and leave by an exception; that is passed on.
%%
%% What fails raises, never less than all rows are returned: `badarg' for a store that is or gets closed, `{iterator_error, Text}', `{streaming_error, Text}'
%% (a row that is not what the filter needs, say; rows before it were handed to Fun), and for a filter that cannot be used
%% `{badmatch, {error, reference(), Text}}'.
-spec fold(db_ref(), fun(({Key :: binary(), Value :: binary()}, Acc) -> Acc), Acc, fold_options()) -> Acc.
fold({eleveldb_db, _, _} = Ref, Fun, Acc, Options) when is_list(Options) ->
    case proplists:get_value(fold_method, Options, iterator) of
        iterator -> fold_rows(source(Ref, kv, Options), Fun, Acc, Options);
        streaming -> fold_stream(source(Ref, kv, []), Fun, Acc, Options);
        Other -> erlang:error({case_clause, Other})
    end;
fold(Ref, Fun, Acc, Options) ->
    erlang:error(badarg, [Ref, Fun, Acc, Options]).

%% @doc Calls `Fun(Key, Acc)' for all keys from `first_key' on, or from the first one. As {@link fold/4} with the method `iterator'.
-spec fold_keys(db_ref(), fun((Key :: binary(), Acc) -> Acc), Acc, fold_options()) -> Acc.
fold_keys({eleveldb_db, _, _} = Ref, Fun, Acc, Options) when is_list(Options) ->
    fold_rows(source(Ref, keys, Options), Fun, Acc, Options);
fold_keys(Ref, Fun, Acc, Options) ->
    erlang:error(badarg, [Ref, Fun, Acc, Options]).

%% @doc Folds as {@link fold/4} and {@link fold_keys/4} with the method `iterator', over the view of an iterator, which is closed afterwards. Any process may do
%% so, at any time after the iterator was made. `throw({iterator_closed, Acc})' if the iterator has run off an end with `iterator_refresh'.
-spec do_fold(itr_ref(), fun((term(), Acc) -> Acc), Acc, fold_options()) -> Acc.
do_fold({eleveldb_iterator, Iterator} = Itr, Fun, Acc, Options) when is_pid(Iterator), is_list(Options) ->
    try
        case eleveldb_iterator:view(Iterator) of
            {ok, Source} -> fold_rows(Source, Fun, Acc, Options);
            {error, iterator_closed} -> throw({iterator_closed, Acc});
            {failed, Reason} -> eleveldb_fold:iterator_error(Reason);
            closed -> erlang:error(badarg, [Itr, Fun, Acc, Options])
        end
    after
        _ = eleveldb_iterator:close(Iterator)
    end;
do_fold(Itr, Fun, Acc, Options) ->
    erlang:error(badarg, [Itr, Fun, Acc, Options]).

-spec source(db_ref(), kv | keys, fold_options()) -> eleveldb_fold:source().
source({eleveldb_db, Db, Closed}, Rows, Options) ->
    #{view => Db, db => Db, closed => Closed, rows => Rows, refresh => refresh(Options)}.

-spec refresh(fold_options()) -> timeout().
refresh(Options) ->
    case eleveldb_options:refresh(Options) of
        true -> application:get_env(eleveldb, iterator_refresh_ms, 300000);
        false -> infinity
    end.

-spec fold_rows(eleveldb_fold:source(), fun((term(), Acc) -> Acc), Acc, fold_options()) -> Acc.
fold_rows(Source, Fun, Acc, Options) ->
    Start = eleveldb_options:start(Options, first),
    true = is_binary(Start) orelse Start =:= first,
    eleveldb_fold:rows(Source, Start, {Fun, Acc}).

-spec fold_stream(eleveldb_fold:source(), fun((term(), Acc) -> Acc), Acc, fold_options()) -> Acc.
fold_stream(Source, Fun, Acc, Options) ->
    Scan = eleveldb_options:stream(Options),
    case {eleveldb_options:start(Options, <<>>), proplists:get_value(end_key, Options)} of
        {Start, undefined} when is_binary(Start) -> eleveldb_fold:stream(Source, {Scan#{start => Start}, Fun, Acc});
        {Start, End} when is_binary(Start), is_binary(End) -> eleveldb_fold:stream(Source, {Scan#{start => Start, 'end' => End}, Fun, Acc});
        {_, _} -> erlang:error(badarg, [Options])
    end.

%% @doc The names of the options and the types of their values.
-spec option_types(open | read | write) -> [{atom(), eleveldb_options:type()}].
option_types(Kind) -> eleveldb_options:types(Kind).

%% @doc Parts options in those that are known and of the right type, and the others.
-spec validate_options(open | read | write, [{atom(), term()}]) -> {Valid :: [{atom(), term()}], Invalid :: [{atom(), term()}]}.
validate_options(Kind, Options) -> eleveldb_options:validate(Kind, Options).

%% @doc Acc with the string S behind it, its length in front.
-spec append_string(S :: binary(), Acc :: binary()) -> binary().
append_string(S, Acc) -> eleveldb_codec:append_string(S, Acc).

%% @doc The string that append_string/2 wrote first, and what is behind it.
-spec parse_string(binary()) -> {binary(), binary()}.
parse_string(Bin) -> eleveldb_codec:parse_string(Bin).

%% @doc Acc with a timestamp and a string behind it.
-spec append_point(non_neg_integer(), binary(), binary()) -> binary().
append_point(Timestamp, Value, Acc) -> eleveldb_codec:append_point(Timestamp, Value, Acc).

%% @doc Points of one series as a binary.
-spec ts_batch_to_binary({ts_batch, binary(), binary(), [{non_neg_integer(), binary()}]}) -> binary().
ts_batch_to_binary(Batch) -> eleveldb_codec:batch(Batch).

%% @doc Strings as a key, the last one first.
-spec ts_key([binary()]) -> binary().
ts_key(Strings) -> eleveldb_codec:key(Strings).

%% @doc Family, series and time as a key that sorts by time.
-spec ts_key_TEST({binary(), binary(), non_neg_integer()}) -> binary().
ts_key_TEST(Key) -> eleveldb_codec:test_key(Key).

%% @doc A value in the form its kind has in a key.
-spec encode(term(), atom()) -> binary().
encode(Value, Kind) -> eleveldb_codec:encode(Value, Kind).

%% @doc Microseconds of a clock that never goes back.
-spec current_usec() -> integer().
current_usec() -> erlang:monotonic_time(microsecond).
