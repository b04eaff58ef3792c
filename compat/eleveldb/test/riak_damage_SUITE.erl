%% What Riak and its operators rely on when a store is damaged: errors where data is missing, their count, the text of the open, repair, and the LOG file.
-module(riak_damage_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([
    damage_is_an_error_of_each_get/1,
    damage_is_counted/1,
    folds_and_iterators_fail_at_damage/1,
    opens_with_damage_unless_paranoid/1,
    repair_by_an_operator/1,
    repair_of_tables/1,
    log_names_compaction_errors/1,
    damage_under_writes_ends_the_vnode/1
]).

-define(ROWS, 2000).

suite() -> [{timetrap, {seconds, 180}}].

all() ->
    [F || {F, 1} <- ?MODULE:module_info(exports), not lists:member(F, [module_info, init_per_suite, end_per_suite])].

init_per_suite(Config) ->
    {ok, _} = application:ensure_all_started(eleveldb),
    Config.

end_per_suite(_Config) ->
    ok = application:stop(eleveldb).

end_per_testcase(_Case, _Config) ->
    [] = eleveldb_test:flush(),
    ok = eleveldb_test:await(fun() -> supervisor:which_children(eleveldb_iterator_sup) =:= [] end).

%% A store in one table, of rows that cannot be compressed, and damage in the middle of that table. The directory.
damaged(Config, Case) ->
    Dir = eleveldb_test:dir(Config, Case),
    {ok, Db} = eleveldb:open(Dir, [{create_if_missing, true}]),
    _ = rand:seed(exsss, 17),
    ok = eleveldb:write(Db, [{put, <<N:32>>, value(N)} || N <- lists:seq(1, ?ROWS)], []),
    ok = eleveldb:close(Db),
    [Table] = tables(Dir),
    Middle = filelib:file_size(Table) div 2,
    {ok, File} = file:open(Table, [read, write, raw, binary]),
    ok = file:pwrite(File, Middle, binary:copy(<<"damage">>, 50)),
    ok = file:close(File),
    Dir.

value(N) -> <<(rand:bytes(500))/binary, N:32>>.

tables(Dir) -> filelib:wildcard(filename:join(Dir, "**/*.sst")).

gets(Db) -> [{N, eleveldb:get(Db, <<N:32>>, [])} || N <- lists:seq(1, ?ROWS)].

%% Those that are damaged say so, each time; the others are there.
damage_is_an_error_of_each_get(Config) ->
    {ok, Db} = eleveldb:open(damaged(Config, ?FUNCTION_NAME), []),
    Gets = gets(Db),
    Lost = [Error || {_, {error, {error, _} = Error}} <- Gets],
    Found = [N || {N, {ok, <<_:500/binary, M:32>>}} <- Gets, M =:= N],
    ?assertEqual(?ROWS, length(Lost) + length(Found)),
    true = Lost =/= [] andalso length(Found) > ?ROWS div 2,
    [?assertMatch({error, "Corruption: " ++ _}, Error) || Error <- Lost],
    ?assertEqual(Gets, gets(Db)),
    ok = eleveldb:close(Db).

%% What Riak's statistics show.
damage_is_counted(Config) ->
    {ok, Db} = eleveldb:open(damaged(Config, ?FUNCTION_NAME), []),
    Errors = fun() ->
        {ok, Text} = eleveldb:status(Db, <<"leveldb.ReadBlockError">>),
        binary_to_integer(Text)
    end,
    0 = Errors(),
    _ = gets(Db),
    true = Errors() > 0,
    ok = eleveldb:close(Db).

%% The rows before it, and then an error: no end, no row left out, no loop.
folds_and_iterators_fail_at_damage(Config) ->
    {ok, Db} = eleveldb:open(damaged(Config, ?FUNCTION_NAME), []),
    {ok, Missing} = first_missing(Db, 1),
    Self = self(),
    Tell = fun(Row, _) ->
        Key =
            case Row of
                {K, _} -> K;
                K -> K
            end,
        Self ! {row, Key}
    end,
    [
        begin
            ?assertError({Kind, "Corruption: " ++ _}, Fold(Tell, ok)),
            Keys = [K || {row, K} <- eleveldb_test:flush()],
            ?assertEqual([<<N:32>> || N <- lists:seq(1, length(Keys))], Keys),
            true = length(Keys) < Missing
        end
     || {Kind, Fold} <- [
            {iterator_error, fun(Fun, Acc) -> eleveldb:fold(Db, Fun, Acc, []) end},
            {iterator_error, fun(Fun, Acc) -> eleveldb:fold_keys(Db, Fun, Acc, []) end},
            {streaming_error, fun(Fun, Acc) -> eleveldb:fold(Db, Fun, Acc, [{fold_method, streaming}]) end}
        ]
    ],
    {ok, It} = eleveldb:iterator(Db, []),
    {ok, <<1:32>>, _} = eleveldb:iterator_move(It, first),
    {Walked, Error} = walk(It, 1),
    true = Walked < Missing,
    ?assertMatch({iterator_error, "Corruption: " ++ _}, Error),
    ok = eleveldb:iterator_close(It),
    ok = eleveldb:close(Db).

first_missing(Db, N) ->
    case eleveldb:get(Db, <<N:32>>, []) of
        {ok, _} -> first_missing(Db, N + 1);
        {error, _} -> {ok, N}
    end.

walk(It, N) ->
    try eleveldb:iterator_move(It, prefetch) of
        {ok, <<M:32>>, _} when M =:= N + 1 -> walk(It, M)
    catch
        error:Error -> {N, Error}
    end.

%% Without paranoid_checks Riak goes on with what there is; with them the open is refused, and not as a lock is.
opens_with_damage_unless_paranoid(Config) ->
    Dir = damaged(Config, ?FUNCTION_NAME),
    {error, {db_open, "Corruption: " ++ _}} = riak_vnode:open(Dir, [{paranoid_checks, true}]),
    {ok, Db} = riak_vnode:open(Dir, [{paranoid_checks, false}]),
    ok = eleveldb:put(Db, <<"new">>, <<"v">>, []),
    {ok, <<"v">>} = eleveldb:get(Db, <<"new">>, []),
    ok = eleveldb:close(Db).

%% From the console, on the text of the open.
repair_by_an_operator(Config) ->
    Dir = eleveldb_test:dir(Config, ?FUNCTION_NAME),
    {ok, Vnode} = riak_vnode:start(Dir, []),
    [ok = riak_vnode:put(Vnode, <<"b">>, <<N:32>>, [{add, <<"n_int">>, N}], <<"v">>) || N <- lists:seq(1, 200)],
    {error, {error_db_repair, "IO error: lock " ++ _}} = eleveldb:repair(Dir, []),
    ok = riak_vnode:stop(Vnode),
    [ok = file:write_file(File, <<"rubbish">>) || File <- filelib:wildcard(filename:join(Dir, "MANIFEST-*"))],
    {error, {db_open, "Corruption: " ++ _}} = riak_vnode:start(Dir, []),
    ok = eleveldb:repair(Dir, []),
    {ok, Again} = riak_vnode:start(Dir, []),
    ?assertEqual(400, length(eleveldb_test:keys(riak_vnode:ref(Again)))),
    {ok, <<"v">>} = riak_vnode:get(Again, <<"b">>, <<200:32>>),
    ok = riak_vnode:stop(Again).

%% What is readable is there afterwards, as it was, and nothing else; a fold goes through.
repair_of_tables(Config) ->
    Dir = damaged(Config, ?FUNCTION_NAME),
    {ok, Db} = eleveldb:open(Dir, []),
    Found = [<<N:32>> || {N, {ok, _}} <- gets(Db)],
    ok = eleveldb:close(Db),
    ok = eleveldb:repair(Dir, []),
    {ok, Again} = eleveldb:open(Dir, [{paranoid_checks, true}]),
    ?assertEqual(Found, eleveldb_test:keys(Again)),
    [?assertMatch(<<_:500/binary, K:4/binary>>, V) || {K, V} <- eleveldb_test:rows(Again)],
    ok = eleveldb:close(Again).

%% Operators search the LOG of each store for these words.
log_names_compaction_errors(Config) ->
    Dir = damaged(Config, ?FUNCTION_NAME),
    {ok, Db} = eleveldb:open(Dir, [{write_buffer_size, 65536}]),
    {error, {db_write, _}} = overwritten(Db, 500),
    {ok, Log} = file:read_file(filename:join(Dir, "LOG")),
    ?assertNotEqual(nomatch, string:find(Log, "Compaction error")),
    ok = eleveldb:close(Db).

%% Over the same keys, until tables have to be merged with the damaged one, and there is no room for more.
overwritten(Db, Times) when Times > 0 ->
    case eleveldb:write(Db, [{put, <<N:32>>, value(N)} || N <- lists:seq(1, ?ROWS, 7)], []) of
        ok -> overwritten(Db, Times - 1);
        Error -> Error
    end.

%% A vnode that writes to such a store does not wait for ever: its write fails, it ends, and the next one gets the store, which is as it was.
damage_under_writes_ends_the_vnode(Config) ->
    Dir = damaged(Config, ?FUNCTION_NAME),
    Small = [{write_buffer_size_min, 65536}, {write_buffer_size_max, 65536}],
    {ok, Vnode} = riak_vnode:start(Dir, Small),
    Monitor = erlang:monitor(process, Vnode),
    Put = fun Put(N) ->
        case riak_vnode:put(Vnode, <<"b">>, <<(N rem 100):32>>, [], rand:bytes(20000)) of
            ok -> Put(N + 1);
            {error, Reason} -> {N, Reason}
        end
    end,
    %% Its objects lie behind the damaged rows; writes over those are what needs the compaction.
    Ref = riak_vnode:ref(Vnode),
    {Writer, Writes} = spawn_monitor(fun() -> exit(overwritten(Ref, 1000)) end),
    {_, {db_write, [_ | _]}} = Put(0),
    receive
        {'DOWN', Monitor, process, Vnode, Why} -> ?assertMatch({db_write, _}, Why)
    end,
    receive
        {'DOWN', Writes, process, Writer, How} -> ?assert(lists:member(element(1, How), [error, badarg]))
    end,
    {ok, Next} = riak_vnode:start(Dir, Small),
    {ok, <<_:20000/binary>>} = riak_vnode:get(Next, <<"b">>, <<0:32>>),
    ok = riak_vnode:stop(Next).
