%% The functions one by one: what they return, raise and say, as callers of eleveldb match on it.
-module(eleveldb_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([
    starts_itself/1,
    open_arguments/1,
    open_and_not/1,
    locked/1,
    opener_dies/1,
    other_closes/1,
    closed/1,
    second_close/1,
    get_put_delete/1,
    writes/1,
    bad_actions/1,
    sync_calls/1,
    async_puts/1,
    async_put_and_close/1,
    async_put_and_kill/1,
    odd_options/1,
    memory_settings/1,
    statuses/1,
    empty/1,
    destroyed/1,
    repaired/1,
    expired/1,
    leveldb_directory/1,
    codecs/1,
    option_kinds/1,
    validated/1,
    documented/1
]).

suite() -> [{timetrap, {seconds, 60}}].

all() ->
    [F || {F, 1} <- ?MODULE:module_info(exports), F =/= module_info, F =/= init_per_suite, F =/= end_per_suite].

init_per_suite(Config) ->
    {ok, _} = application:ensure_all_started(eleveldb),
    Config.

end_per_suite(_Config) ->
    ok = application:stop(eleveldb).

end_per_testcase(_Case, _Config) ->
    [] = eleveldb_test:flush().

starts_itself(Config) ->
    ok = application:stop(eleveldb),
    Db = eleveldb_test:open(Config, ?FUNCTION_NAME),
    ok = eleveldb:close(Db).

open_arguments(Config) ->
    Dir = eleveldb_test:dir(Config, ?FUNCTION_NAME),
    [?assertError(badarg, eleveldb:open(Odd, [])) || Odd <- [list_to_binary(Dir), dir, [256], [$a | b], lists:duplicate(4096, $a)]],
    ?assertError(function_clause, eleveldb:open(Dir, #{})),
    ?assertError(function_clause, eleveldb:open(Dir, none)).

open_and_not(Config) ->
    Dir = eleveldb_test:dir(Config, ?FUNCTION_NAME),
    Missing = "Invalid argument: " ++ Dir ++ ": does not exist (create_if_missing is false)",
    ?assertEqual({error, {db_open, Missing}}, eleveldb:open(Dir, [])),
    ?assertEqual({error, {db_open, Missing}}, eleveldb:open(Dir, [{create_if_missing, on}, create_if_missing])),
    {ok, Db} = eleveldb:open(Dir, [{create_if_missing, true}, {error_if_exists, true}]),
    ok = eleveldb:close(Db),
    Exists = "Invalid argument: " ++ Dir ++ ": exists (error_if_exists is true)",
    ?assertEqual({error, {db_open, Exists}}, eleveldb:open(Dir, [{create_if_missing, true}, {error_if_exists, true}])),
    %% The later of two counts.
    {ok, Again} = eleveldb:open(Dir, [{error_if_exists, true}, {error_if_exists, false}]),
    ok = eleveldb:close(Again),
    ok = file:write_file(filename:join(filename:dirname(Dir), "file"), <<>>),
    {error, {db_open, [_ | _]}} = eleveldb:open(filename:join([filename:dirname(Dir), "file", "below"]), [{create_if_missing, true}]).

locked(Config) ->
    Dir = eleveldb_test:dir(Config, ?FUNCTION_NAME),
    {ok, Db} = eleveldb:open(Dir, [{create_if_missing, true}]),
    Text = "IO error: lock " ++ Dir ++ "/LOCK: already held by process",
    ?assertEqual({error, {db_open, Text}}, eleveldb:open(Dir, [])),
    ?assertEqual({error, {db_open, Text}}, eleveldb_test:in_process(fun() -> eleveldb:open(Dir, []) end)),
    ok = eleveldb:close(Db),
    {ok, Again} = eleveldb:open(Dir, []),
    ok = eleveldb:close(Again).

%% The store is there for whoever comes next; what was written is, too.
opener_dies(Config) ->
    Dir = eleveldb_test:dir(Config, ?FUNCTION_NAME),
    Old = eleveldb_test:in_process(fun() ->
        {ok, Db} = eleveldb:open(Dir, [{create_if_missing, true}]),
        ok = eleveldb:put(Db, <<"k">>, <<"v">>, []),
        Db
    end),
    %% The program hears of the death a moment later.
    New = retry(Dir, 100),
    {ok, <<"v">>} = eleveldb:get(New, <<"k">>, []),
    ?assertError(badarg, eleveldb:get(Old, <<"k">>, [])),
    ok = eleveldb:close(New).

%% As Riak does, but sooner.
retry(Dir, Tries) ->
    case eleveldb:open(Dir, []) of
        {ok, Db} ->
            Db;
        {error, {db_open, "IO error: lock " ++ _}} when Tries > 0 ->
            receive
            after 20 -> retry(Dir, Tries - 1)
            end
    end.

other_closes(Config) ->
    Db = eleveldb_test:open(Config, ?FUNCTION_NAME),
    ok = eleveldb_test:in_process(fun() -> eleveldb:close(Db) end),
    ?assertError(badarg, eleveldb:get(Db, <<"k">>, [])).

closed(Config) ->
    Db = eleveldb_test:open(Config, ?FUNCTION_NAME),
    ok = eleveldb:close(Db),
    ?assertError(badarg, eleveldb:get(Db, <<"k">>, [])),
    ?assertError(badarg, eleveldb:put(Db, <<"k">>, <<"v">>, [])),
    ?assertError(badarg, eleveldb:delete(Db, <<"k">>, [])),
    ?assertError(badarg, eleveldb:write(Db, [], [])),
    ?assertError(badarg, eleveldb:write(Db, [odd], [])),
    ?assertError(badarg, eleveldb:sync_put(Db, ctx, <<"k">>, <<"v">>, [])),
    ?assertError(badarg, eleveldb:status(Db, <<"leveldb.stats">>)),
    ?assertError(badarg, eleveldb:is_empty(Db)),
    ?assertError(badarg, eleveldb:fold(Db, fun(_, A) -> A end, [], [])),
    ?assertError(badarg, eleveldb:fold_keys(Db, fun(_, A) -> A end, [], [])),
    ?assertError(badarg, eleveldb:fold(Db, fun(_, A) -> A end, [], [{fold_method, streaming}])).

second_close(Config) ->
    Db = eleveldb_test:open(Config, ?FUNCTION_NAME),
    ok = eleveldb:close(Db),
    ?assertError(badarg, eleveldb:close(Db)),
    ok = application:set_env(eleveldb, second_close, einval),
    try
        ?assertEqual({error, einval}, eleveldb:close(Db))
    after
        ok = application:unset_env(eleveldb, second_close)
    end,
    [?assertError(badarg, eleveldb:close(Odd)) || Odd <- [db, make_ref(), <<>>, {eleveldb_db, odd, odd}]].

get_put_delete(Config) ->
    Db = eleveldb_test:open(Config, ?FUNCTION_NAME),
    not_found = eleveldb:get(Db, <<"k">>, []),
    ok = eleveldb:put(Db, <<"k">>, <<"v">>, []),
    {ok, <<"v">>} = eleveldb:get(Db, <<"k">>, [{verify_checksums, true}, {fill_cache, false}]),
    ok = eleveldb:put(Db, <<>>, <<>>, [{sync, true}]),
    {ok, <<>>} = eleveldb:get(Db, <<>>, []),
    ok = eleveldb:delete(Db, <<"k">>, []),
    ok = eleveldb:delete(Db, <<"k">>, []),
    not_found = eleveldb:get(Db, <<"k">>, []),
    Large = binary:copy(<<"x">>, 3000000),
    ok = eleveldb:put(Db, Large, Large, []),
    {ok, Large} = eleveldb:get(Db, Large, []),
    [?assertError(badarg, eleveldb:get(Db, Odd, [])) || Odd <- ["k", k, [<<"k">>], <<1:1>>]],
    ?assertError(badarg, eleveldb:get(Db, <<"k">>, none)),
    ?assertError(badarg, eleveldb:get(db, <<"k">>, [])),
    ok = eleveldb:close(Db).

writes(Config) ->
    Db = eleveldb_test:open(Config, ?FUNCTION_NAME),
    ok = eleveldb:write(Db, [], []),
    ok = eleveldb:write(Db, [{put, <<"a">>, <<"1">>}, {put, <<"b">>, <<"2">>}, {delete, <<"a">>}, {put, <<"b">>, <<"3">>}], []),
    ?assertEqual([{<<"b">>, <<"3">>}], eleveldb_test:rows(Db)),
    ok = eleveldb:write(Db, [{put, <<"c">>, <<>>}, {delete, <<"b">>}, clear, {put, <<"d">>, <<>>}], []),
    ?assertEqual([<<"b">>, <<"d">>], eleveldb_test:keys(Db)),
    ok = eleveldb:write(Db, [{delete, <<"b">>}, clear], []),
    ok = eleveldb:write(Db, [{put, <<"e">>, <<>>} | odd], []),
    ok = eleveldb:write(Db, [clear, {put, <<"f">>, <<>>} | odd], []),
    ?assertEqual([<<"b">>, <<"d">>, <<"e">>, <<"f">>], eleveldb_test:keys(Db)),
    ?assertError(badarg, eleveldb:write(Db, odd, [])),
    ?assertError(badarg, eleveldb:write(Db, [], odd)),
    ok = eleveldb:close(Db).

%% Nothing of the list is applied.
bad_actions(Config) ->
    Db = eleveldb_test:open(Config, ?FUNCTION_NAME),
    [
        begin
            {error, Ref, {bad_write_action, Bad}} = eleveldb:write(Db, [{put, <<"a">>, <<>>}, Bad, other], []),
            true = is_reference(Ref)
        end
     || Bad <- [odd, {put, <<"k">>}, {put, "k", <<>>}, {put, <<"k">>, [<<"v">>]}, {delete, k}, {delete, <<"k">>, <<"v">>}, []]
    ],
    {error, _, {bad_write_action, odd}} = eleveldb:write(Db, [odd, clear, {put, <<"a">>, <<>>}], []),
    {error, _, {bad_write_action, {put, k, <<>>}}} = eleveldb:put(Db, k, <<>>, []),
    {error, _, {bad_write_action, {delete, k}}} = eleveldb:delete(Db, k, []),
    [] = eleveldb_test:keys(Db),
    ok = eleveldb:close(Db).

sync_calls(Config) ->
    Db = eleveldb_test:open(Config, ?FUNCTION_NAME),
    ok = eleveldb:sync_put(Db, {any, ctx}, <<"a">>, <<"1">>, [{sync, true}]),
    ok = eleveldb:sync_write({any, ctx}, Db, [{put, <<"b">>, <<"2">>}, {delete, <<"a">>}], []),
    {error, {any, ctx}, {bad_write_action, {put, a, <<>>}}} = eleveldb:sync_put(Db, {any, ctx}, a, <<>>, []),
    {error, {any, ctx}, {bad_write_action, odd}} = eleveldb:sync_write({any, ctx}, Db, [odd], []),
    [{<<"b">>, <<"2">>}] = eleveldb_test:rows(Db),
    ok = eleveldb:close(Db).

%% Each is answered by one message, with its context, whatever that is; in the end the last of each key counts.
async_puts(Config) ->
    Db = eleveldb_test:open(Config, ?FUNCTION_NAME),
    Contexts = [{w1c_async_put, self(), I, make_ref()} || I <- lists:seq(1, 1000)],
    [ok = eleveldb:async_put(Db, Context, <<(I rem 10)>>, <<I:32>>, []) || {_, _, I, _} = Context <- Contexts],
    [
        receive
            {Context, Result} -> ?assertEqual(ok, Result)
        end
     || Context <- lists:reverse(Contexts)
    ],
    ?assertEqual([{<<(I rem 10)>>, <<I:32>>} || I <- [1000 | lists:seq(991, 999)]], eleveldb_test:rows(Db)),
    ok = eleveldb:async_put(Db, ctx, odd, <<>>, []),
    receive
        {ctx, Bad} -> ?assertEqual({error, ctx, {bad_write_action, {put, odd, <<>>}}}, Bad)
    end,
    ?assertError(badarg, eleveldb:async_put(Db, ctx, <<>>, <<>>, odd)),
    ok = eleveldb:close(Db),
    ?assertError(badarg, eleveldb:async_put(Db, ctx, <<>>, <<>>, [])).

%% What is not written when the store closes is answered, too.
async_put_and_close(Config) ->
    Db = eleveldb_test:open(Config, ?FUNCTION_NAME),
    [ok = eleveldb:async_put(Db, I, <<I:32>>, <<>>, [{sync, true}]) || I <- lists:seq(1, 300)],
    ok = eleveldb_test:in_process(fun() -> eleveldb:close(Db) end),
    _ = answered(300),
    ok.

async_put_and_kill(Config) ->
    Dir = eleveldb_test:dir(Config, ?FUNCTION_NAME),
    {ok, Db} = eleveldb:open(Dir, [{create_if_missing, true}]),
    OsPid = eleveldb_test:os_pid(),
    [ok = eleveldb:async_put(Db, I, <<I:32>>, <<>>, [{sync, true}]) || I <- lists:seq(1, 300)],
    ok = eleveldb_test:kill(OsPid),
    _ = answered(300),
    %% As after every end of the program: the handle is dead, and the directory opens again.
    ok = eleveldb_test:await(fun() ->
        try eleveldb:get(Db, <<"k">>, []) of
            {error, {error, "IO error: " ++ _}} -> false
        catch
            error:badarg -> true
        end
    end),
    {ok, Again} = eleveldb:open(Dir, []),
    ok = eleveldb:close(Again).

answered(Count) ->
    [
        receive
            {I, ok} -> ok;
            {I, {error, {db_write, [_ | _]}}} -> failed
        end
     || I <- lists:seq(1, Count)
    ].

%% Every option of the original, odd values, and what is none.
odd_options(Config) ->
    Known = [
        {write_buffer_size, 5},
        {write_buffer_size, 1 bsl 40},
        {block_size, 4096},
        {sst_block_size, 4096},
        {sst_block_size, 1},
        {block_restart_interval, 16},
        {block_size_steps, 16},
        {paranoid_checks, false},
        {verify_compactions, true},
        {use_bloomfilter, true},
        {use_bloomfilter, 1000},
        {use_bloomfilter, odd},
        {total_memory, 1 bsl 30},
        {total_leveldb_mem, 1 bsl 30},
        {total_leveldb_mem_percent, 70},
        {is_internal_db, true},
        {limited_developer_mem, true},
        {eleveldb_threads, 71},
        {eleveldb_stream_threads, 71},
        {fadvise_willneed, false},
        {block_cache_threshold, 1 bsl 25},
        {delete_threshold, 1000},
        {tiered_slow_level, 0},
        {tiered_fast_prefix, ""},
        {tiered_slow_prefix, ""},
        {cache_object_warming, true},
        {expiry_enabled, false},
        {expiry_minutes, unlimited},
        {whole_file_expiry, true}
    ],
    Odd = [{none_such, 1}, {"a", b}, odd, {a, b, c}, 17, {create_if_missing, true}, {write_buffer_size, odd}, {data_root, "x"} | odd],
    Opens = [Known ++ Odd | [[{compression, C}, {create_if_missing, true}] || C <- [snappy, lz4, false, true, on, off, 7]]],
    [
        begin
            {ok, Db} = eleveldb:open(eleveldb_test:dir(Config, ?FUNCTION_NAME), Options),
            ok = eleveldb:put(Db, <<"k">>, <<"v">>, [{none_such, 1}, odd, {sync, true}, {sync, 7} | odd]),
            {ok, <<"v">>} = eleveldb:get(Db, <<"k">>, [{none_such, 1}, odd | odd]),
            ok = eleveldb:close(Db)
        end
     || Options <- Opens
    ].

%% What the environment says of memory becomes flags of the program, which starts with them.
memory_settings(Config) ->
    Flags = fun(Settings) ->
        ok = lists:foreach(fun({Name, Value}) -> ok = application:set_env(eleveldb, Name, Value) end, Settings),
        try
            eleveldb_options:program_args()
        after
            lists:foreach(fun({Name, _}) -> ok = application:unset_env(eleveldb, Name) end, Settings)
        end
    end,
    [] = Flags([]),
    [] = Flags([{total_leveldb_mem_percent, 101}, {total_leveldb_mem, 0}]),
    ["--memory-percent", "70"] = Flags([{total_leveldb_mem_percent, 70}]),
    ["--memory-percent", "70"] = Flags([{total_leveldb_mem_percent, 70}, {total_memory, 1000}]),
    ["--memory-mib", "2867"] = Flags([{total_leveldb_mem_percent, 70}, {total_memory, 4 bsl 30}]),
    ["--memory-mib", "512"] = Flags([{total_leveldb_mem_percent, 70}, {total_leveldb_mem, 512 bsl 20}]),
    ["--memory-mib", "128"] = Flags([{total_leveldb_mem, 1}]),
    ["--memory-mib", "128"] = Flags([{total_leveldb_mem, 512 bsl 20}, {limited_developer_mem, true}]),
    [
        begin
            ok = application:stop(eleveldb),
            ok = application:set_env(eleveldb, Name, Value),
            Db = eleveldb_test:open(Config, ?FUNCTION_NAME),
            ok = eleveldb:close(Db),
            ok = application:unset_env(eleveldb, Name)
        end
     || {Name, Value} <- [{limited_developer_mem, true}, {total_leveldb_mem_percent, 1}]
    ],
    ok = application:stop(eleveldb),
    {ok, _} = application:ensure_all_started(eleveldb).

statuses(Config) ->
    Db = eleveldb_test:open(Config, ?FUNCTION_NAME),
    %% More than a write buffer holds.
    Value = fun(I) -> <<I:32, (rand:bytes(9996))/binary>> end,
    [ok = eleveldb:write(Db, [{put, <<I:32>>, Value(I)} || I <- lists:seq(N, N + 99)], []) || N <- lists:seq(1, 3000, 100)],
    Number = fun(Name) ->
        {ok, Text} = eleveldb:status(Db, Name),
        binary_to_integer(Text)
    end,
    ok = eleveldb_test:await(fun() -> Number(<<"leveldb.total-bytes">>) > 10000000 end),
    {ok, Stats} = eleveldb:status(Db, <<"leveldb.stats">>),
    {match, _} = re:run(Stats, "Compactions"),
    {ok, <<_, _/binary>>} = eleveldb:status(Db, <<"leveldb.sstables">>),
    {ok, <<"0">>} = eleveldb:status(Db, <<"leveldb.ReadBlockError">>),
    true = lists:sum([Number(<<"leveldb.num-files-at-level", Level>>) || Level <- "0123456"]) > 0,
    true = Number(<<"leveldb.block-cache">>) >= 0,
    true = Number(<<"leveldb.file-cache">>) >= 0,
    [error = eleveldb:status(Db, Odd) || Odd <- [<<"leveldb.none-such">>, <<>>, <<"leveldb.num-files-at-level">>, <<"leveldb.num-files-at-level9">>, <<"leveldb.num-files-at-levelx">>]],
    ?assertError(badarg, eleveldb:status(Db, "leveldb.stats")),
    ok = eleveldb:close(Db).

empty(Config) ->
    Db = eleveldb_test:open(Config, ?FUNCTION_NAME),
    true = eleveldb:is_empty(Db),
    ok = eleveldb:put(Db, <<>>, <<>>, []),
    false = eleveldb:is_empty(Db),
    ok = eleveldb:delete(Db, <<>>, []),
    true = eleveldb:is_empty(Db),
    _ = eleveldb_test:fill(Db, 10000, 1),
    false = eleveldb:is_empty(Db),
    ok = eleveldb:write(Db, [{delete, <<I:32>>} || I <- lists:seq(1, 10000)], []),
    true = eleveldb:is_empty(Db),
    ok = eleveldb:close(Db).

%% What Riak does with a partition it drops.
destroyed(Config) ->
    Dir = eleveldb_test:dir(Config, ?FUNCTION_NAME),
    ok = eleveldb:destroy(Dir, []),
    {ok, Db} = eleveldb:open(Dir, [{create_if_missing, true}]),
    ok = eleveldb:put(Db, <<"k">>, <<"v">>, []),
    {error, {error_db_destroy, "IO error: lock " ++ _}} = eleveldb:destroy(Dir, []),
    {ok, <<"v">>} = eleveldb:get(Db, <<"k">>, []),
    ok = eleveldb:close(Db),
    ok = eleveldb:destroy(Dir, []),
    {error, {db_open, "Invalid argument: " ++ _}} = eleveldb:open(Dir, []),
    {ok, New} = eleveldb:open(Dir, [{create_if_missing, true}]),
    true = eleveldb:is_empty(New),
    ok = eleveldb:close(New),
    [?assertError(badarg, eleveldb:destroy(Odd, [])) || Odd <- [list_to_binary(Dir), dir, [256]]],
    ?assertError(badarg, eleveldb:destroy(Dir, odd)).

%% A store that cannot be opened any more; what is whole is kept.
repaired(Config) ->
    Dir = eleveldb_test:dir(Config, ?FUNCTION_NAME),
    ok = eleveldb:repair(Dir, []),
    {ok, Db} = eleveldb:open(Dir, [{create_if_missing, true}]),
    Rows = eleveldb_test:fill(Db, 1000, 100),
    {error, {error_db_repair, "IO error: lock " ++ _}} = eleveldb:repair(Dir, []),
    ok = eleveldb:close(Db),
    [Manifest | _] = filelib:wildcard(filename:join(Dir, "MANIFEST-*")),
    ok = file:write_file(Manifest, <<"rubbish">>),
    {error, {db_open, "Corruption: " ++ _}} = eleveldb:open(Dir, []),
    ok = eleveldb:repair(Dir, []),
    {ok, Again} = eleveldb:open(Dir, []),
    ?assertEqual(Rows, eleveldb_test:rows(Again)),
    ok = eleveldb:close(Again).

%% Times are kept in stores that are made with expiry; one made without opens all the same, and its rows stay. So do those of hash trees.
expired(Config) ->
    Dir = eleveldb_test:dir(Config, ?FUNCTION_NAME),
    Expiry = [{expiry_enabled, true}, {expiry_minutes, 60}, {whole_file_expiry, true}],
    {ok, Db} = eleveldb:open(Dir, [{create_if_missing, true} | Expiry]),
    ok = eleveldb:put(Db, <<"k">>, <<"v">>, []),
    {ok, <<"v">>} = eleveldb:get(Db, <<"k">>, []),
    ok = eleveldb:close(Db),
    [
        begin
            {ok, Again} = eleveldb:open(Dir, Options),
            {ok, <<"v">>} = eleveldb:get(Again, <<"k">>, []),
            ok = eleveldb:close(Again)
        end
     || Options <- [[], [{expiry_enabled, true}, {expiry_minutes, unlimited}], [{expiry_enabled, false}, {expiry_minutes, 1}]]
    ],
    Other = eleveldb_test:dir(Config, ?FUNCTION_NAME),
    {ok, Without} = eleveldb:open(Other, [{create_if_missing, true}]),
    ok = eleveldb:put(Without, <<"k">>, <<"v">>, []),
    ok = eleveldb:close(Without),
    {ok, Stays} = eleveldb:open(Other, Expiry),
    {ok, <<"v">>} = eleveldb:get(Stays, <<"k">>, []),
    ok = eleveldb:close(Stays),
    Tree = eleveldb_test:dir(Config, ?FUNCTION_NAME),
    {ok, Internal} = eleveldb:open(Tree, [{create_if_missing, true}, {is_internal_db, true} | Expiry]),
    ok = eleveldb:close(Internal),
    %% It was made without times: the engine itself refuses to let its rows expire.
    {error, {bad_option, _}} = scanode:open(Tree, #{port => eleveldb_sup:program(), expiry_enabled => true, expiry_minutes => 60}).

%% An empty store beside the original's data would be silent loss of it.
leveldb_directory(Config) ->
    Dir = eleveldb_test:dir(Config, ?FUNCTION_NAME),
    Fast = eleveldb_test:dir(Config, ?FUNCTION_NAME),
    Files = fun(In) ->
        [
            begin
                ok = filelib:ensure_dir(filename:join(In, File)),
                ok = file:write_file(filename:join(In, File), Text)
            end
         || {File, Text} <- [{"CURRENT", "MANIFEST-000002\n"}, {"MANIFEST-000002", <<1>>}, {"sst_0/000005.sst", <<1>>}]
        ]
    end,
    _ = Files(Dir),
    {error, {db_open, Text}} = eleveldb:open(Dir, [{create_if_missing, true}]),
    {match, _} = re:run(Text, "scanode import"),
    Tiered = eleveldb_test:dir(Config, ?FUNCTION_NAME),
    _ = Files(Fast ++ "/" ++ Tiered),
    {error, {db_open, TieredText}} = eleveldb:open(Tiered, [{create_if_missing, true}, {tiered_slow_level, 4}, {tiered_fast_prefix, Fast}]),
    {match, _} = re:run(TieredText, "scanode import").

codecs(_Config) ->
    %% LEB128: the lengths at which a byte is added.
    [
        begin
            S = binary:copy(<<"s">>, Length),
            ?assertEqual(<<"acc", Varint/binary, S/binary>>, eleveldb:append_string(S, <<"acc">>)),
            ?assertEqual({S, <<"rest">>}, eleveldb:parse_string(<<Varint/binary, S/binary, "rest">>))
        end
     || {Length, Varint} <- [{0, <<0>>}, {1, <<1>>}, {127, <<127>>}, {128, <<128, 1>>}, {300, <<172, 2>>}, {16383, <<255, 127>>}, {16384, <<128, 128, 1>>}]
    ],
    [?assertError(badarg, eleveldb:parse_string(Odd)) || Odd <- [<<>>, <<1>>, <<128>>, <<5, "abcd">>, binary:copy(<<255>>, 20)]],
    ?assertEqual(<<7:64, 1, "v">>, eleveldb:append_point(7, <<"v">>, <<>>)),
    ?assertEqual(
        <<1, "f", 2, "se", 1:64, 1, "a", 2:64, 0>>, eleveldb:ts_batch_to_binary({ts_batch, <<"f">>, <<"se">>, [{1, <<"a">>}, {2, <<>>}]})
    ),
    ?assertEqual(<<1, "c", 1, "b", 1, "a">>, eleveldb:ts_key([<<"a">>, <<"b">>, <<"c">>])),
    ?assertEqual(<<9:64, 1, "f", 1, "s">>, eleveldb:ts_key_TEST({<<"f">>, <<"s">>, 9})),
    ?assertEqual(<<9:64>>, eleveldb:encode(9, timestamp)),
    ?assertEqual(<<"b">>, eleveldb:encode(<<"b">>, binary)),
    ?assertEqual({a, 1}, binary_to_term(eleveldb:encode({a, 1}, sint64))),
    true = eleveldb:current_usec() =< eleveldb:current_usec().

option_kinds(_Config) ->
    Names = [Name || {Name, _} <- eleveldb:option_types(open)],
    [create_if_missing, error_if_exists, write_buffer_size, block_size, sst_block_size | _] = Names,
    ?assertEqual([snappy, lz4, false], proplists:get_value(compression, eleveldb:option_types(open))),
    ?assertEqual([{verify_checksums, bool}, {fill_cache, bool}, {iterator_refresh, bool}], eleveldb:option_types(read)),
    ?assertEqual([{sync, bool}], eleveldb:option_types(write)),
    ?assertError(function_clause, eleveldb:option_types(none_such)).

validated(_Config) ->
    Good = [{write_buffer_size, 1}, {create_if_missing, true}, {use_bloomfilter, odd}, {compression, lz4}, {expiry_minutes, unlimited}, {expiry_minutes, 5}],
    Bad = [{write_buffer_size, x}, {create_if_missing, on}, {none_such, 1}, {compression, true}, {sync, true}, {expiry_minutes, off}],
    Mixed = lists:append([[G, B] || {G, B} <- lists:zip(Good, Bad)]),
    ?assertEqual({Good, Bad}, eleveldb:validate_options(open, Mixed)),
    ?assertEqual({[{sync, true}], [{sync, 1}]}, eleveldb:validate_options(write, [{sync, true}, {sync, 1}])),
    ?assertEqual({[{fill_cache, false}], []}, eleveldb:validate_options(read, [{fill_cache, false}])).

%% README.md says of every option what becomes of it, and of every name of status/2.
documented(_Config) ->
    {ok, Readme} = file:read_file(filename:join([eleveldb_test:root(), "compat", "eleveldb", "README.md"])),
    Options = [atom_to_list(Name) || Kind <- [open, read, write], {Name, _} <- eleveldb:option_types(Kind)],
    Settings = ["second_close", "iterator_refresh_ms", "iterator_orphan_ms"],
    Statuses = ["leveldb.stats", "leveldb.sstables", "leveldb.total-bytes", "leveldb.ReadBlockError", "leveldb.block-cache", "leveldb.file-cache"],
    ?assertEqual([], [Name || Name <- Options ++ Settings ++ Statuses, string:find(Readme, ["`", Name, "`"]) =:= nomatch]).
