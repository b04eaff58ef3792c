%% What Riak's backend expects of stores: opening, locks, closing, what it asks about them, and how it gets rid of them. Writes are in riak_write_SUITE.
-module(riak_store_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([
    options_are_merged_and_validated/1,
    block_size_is_accepted/1,
    lock_retry/1,
    lock_of_a_dead_owner/1,
    lock_of_a_dead_owner_with_work_under_way/1,
    double_open_in_one_vm/1,
    other_errors_are_not_retried/1,
    handle_is_used_by_workers/1,
    closed_by_a_process_that_did_not_open/1,
    use_after_close/1,
    second_close_as_in_ts/1,
    close_waits_and_the_store_opens_at_once/1,
    statuses/1,
    data_size/1,
    drop_and_reopen_at_once/1,
    destroy_of_an_open_store/1,
    is_empty_with_the_marker/1,
    is_empty_over_tombstones/1,
    leveldb_directory_is_refused/1
]).

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
    [] = supervisor:which_children(eleveldb_iterator_sup).

%% A vnode with a store of its own.
vnode(Config, Case) ->
    {ok, Vnode} = riak_vnode:start(eleveldb_test:dir(Config, Case), []),
    Vnode.

%% Opening

%% The application's environment counts where the backend says nothing, and what eleveldb does not know is left out silently.
options_are_merged_and_validated(Config) ->
    Environment = [{sst_block_size, 4096}, {use_bloomfilter, true}, {fill_cache, true}, {sync, false}, {write_buffer_size_min, 30}, {write_buffer_size_max, 50}, {data_root, "x"}],
    [ok = application:set_env(eleveldb, Name, Value) || {Name, Value} <- Environment],
    try
        Own = [{sst_block_size, 8192}, {data_root, "y"}, {sext, odd}, {verify_checksums, odd}, {compression, snappy}],
        {Open, Write, Fold} = riak_vnode:options(Own, true),
        ?assertEqual([compression, create_if_missing, sst_block_size, use_bloomfilter, write_buffer_size], [Name || {Name, _} <- Open]),
        ?assertMatch({8192, true, true}, {proplists:get_value(sst_block_size, Open), proplists:get_value(create_if_missing, Open), proplists:get_value(use_bloomfilter, Open)}),
        true = lists:member(proplists:get_value(write_buffer_size, Open), lists:seq(30, 51)),
        ?assertEqual([{sync, false}], Write),
        ?assertEqual([{fill_cache, false}], Fold),
        {ok, Db} = riak_vnode:open(eleveldb_test:dir(Config, ?FUNCTION_NAME), Own),
        ok = eleveldb:close(Db)
    after
        [ok = application:unset_env(eleveldb, Name) || {Name, _} <- Environment]
    end.

block_size_is_accepted(Config) ->
    true = lists:keymember(block_size, 1, eleveldb:option_types(open)),
    {ok, Db} = riak_vnode:open(eleveldb_test:dir(Config, ?FUNCTION_NAME), [{block_size, 4096}]),
    ok = eleveldb:close(Db).

%% Tries while another has the store, and no longer.
lock_retry(Config) ->
    Dir = eleveldb_test:dir(Config, ?FUNCTION_NAME),
    {ok, Owner} = riak_vnode:start(Dir, []),
    {error, {db_open, Text}} = riak_vnode:open(Dir, [], {2, 10}),
    ?assertMatch("IO error: lock " ++ _, Text),
    true = io_lib:char_list(Text),
    {Waiting, Monitor} = spawn_monitor(fun() -> exit({opened, riak_vnode:open(Dir, [], {6000, 10})}) end),
    ok = riak_vnode:put(Owner, <<"b">>, <<"k">>, [], <<"v">>),
    ok = riak_vnode:stop(Owner),
    Gone =
        receive
            {'DOWN', Monitor, process, Waiting, {opened, {ok, Ref}}} -> Ref
        end,
    %% Its opener is dead again.
    {ok, Db} = riak_vnode:open(Dir, [], {6000, 10}),
    {ok, <<"v">>} = eleveldb:get(Db, riak_key:object(<<"b">>, <<"k">>), []),
    ?assertError(badarg, eleveldb:get(Gone, <<"k">>, [])),
    ok = eleveldb:close(Db).

%% Killed, so that nobody closed its store. A minute is what Riak has.
lock_of_a_dead_owner(Config) ->
    Dir = eleveldb_test:dir(Config, ?FUNCTION_NAME),
    {ok, Owner} = riak_vnode:start(Dir, []),
    [ok = riak_vnode:put(Owner, <<"b">>, <<N:32>>, [], <<"v">>) || N <- lists:seq(1, 100)],
    Db = reopened(Owner, Dir),
    ?assertEqual(100, length(eleveldb_test:keys(Db))),
    ok = eleveldb:close(Db).

reopened(Owner, Dir) ->
    Monitor = erlang:monitor(process, Owner),
    true = exit(Owner, kill),
    receive
        {'DOWN', Monitor, process, Owner, killed} -> ok
    end,
    Killed = erlang:monotonic_time(millisecond),
    {ok, Db} = riak_vnode:open(Dir, [], {6000, 10}),
    ct:log("opened ~b ms after the death of its owner", [erlang:monotonic_time(millisecond) - Killed]),
    Db.

%% Workers that fold, iterate and write for a vnode that is dead do not keep its store from the next one; and what they do fails.
lock_of_a_dead_owner_with_work_under_way(Config) ->
    Dir = eleveldb_test:dir(Config, ?FUNCTION_NAME),
    {ok, Owner} = riak_vnode:start(Dir, []),
    Ref = riak_vnode:ref(Owner),
    _ = eleveldb_test:fill(Ref, 20000, 100),
    {ok, Iterator} = eleveldb:iterator(Ref, []),
    {ok, _, _} = eleveldb:iterator_move(Iterator, first),
    Self = self(),
    Block = fun
        (_, 1000) ->
            _ = Self ! {folding, self()},
            receive
                go_on -> 1001
            end;
        (_, N) ->
            N + 1
    end,
    {async, Fold} = riak_vnode:fold(Owner, async, Block, 0, []),
    {Folder, Folds} = spawn_monitor(fun() -> exit({folded, Fold()}) end),
    {Writer, Writes} = spawn_monitor(fun Write() ->
        ok = eleveldb:put(Ref, <<"w">>, <<"w">>, []),
        Write()
    end),
    receive
        {folding, Folder} -> ok
    end,
    Db = reopened(Owner, Dir),
    _ = Folder ! go_on,
    [
        receive
            {'DOWN', Monitor, process, Pid, Why} -> ?assertMatch({badarg, _}, Why)
        end
     || {Pid, Monitor} <- [{Folder, Folds}, {Writer, Writes}]
    ],
    ?assertError(badarg, walk(Iterator)),
    ?assertError(badarg, eleveldb:get(Ref, <<"k">>, [])),
    ok = eleveldb:close(Db).

walk(Iterator) ->
    {ok, _, _} = eleveldb:iterator_move(Iterator, prefetch),
    walk(Iterator).

%% By the same process, and by another.
double_open_in_one_vm(Config) ->
    Dir = eleveldb_test:dir(Config, ?FUNCTION_NAME),
    {ok, Db} = riak_vnode:open(Dir, []),
    {error, {db_open, "IO error: lock " ++ _}} = eleveldb:open(Dir, [{create_if_missing, true}]),
    {error, {db_open, "IO error: lock " ++ _}} = eleveldb_test:in_process(fun() -> eleveldb:open(Dir, [{create_if_missing, true}]) end),
    %% Not by another name either.
    {error, {db_open, "IO error: lock " ++ _}} = eleveldb:open(filename:join([Dir, "..", filename:basename(Dir)]), [{create_if_missing, true}]),
    ok = eleveldb:put(Db, <<"k">>, <<"v">>, []),
    ok = eleveldb:close(Db).

%% They fail the vnode at once; so none of them may look like a lock.
other_errors_are_not_retried(Config) ->
    Dir = eleveldb_test:dir(Config, ?FUNCTION_NAME),
    ok = file:write_file(Dir, <<"a file">>),
    {error, {db_open, Text}} = eleveldb:open(Dir, [{create_if_missing, true}]),
    Missing = eleveldb_test:dir(Config, ?FUNCTION_NAME),
    {error, {db_open, MissingText}} = eleveldb:open(Missing, []),
    Damaged = eleveldb_test:dir(Config, ?FUNCTION_NAME),
    {ok, Db} = riak_vnode:open(Damaged, []),
    _ = eleveldb_test:fill(Db, 100, 100),
    ok = eleveldb:close(Db),
    [ok = file:write_file(File, <<"rubbish">>) || File <- filelib:wildcard(filename:join(Damaged, "MANIFEST-*"))],
    {error, {db_open, "Corruption: " ++ _ = DamagedText}} = riak_vnode:open(Damaged, []),
    [?assertNotMatch("IO error: lock " ++ _, T) || T <- [Text, MissingText, DamagedText]].

%% Handles and closing

%% A handle lives in messages; many use it at once.
handle_is_used_by_workers(Config) ->
    Vnode = vnode(Config, ?FUNCTION_NAME),
    Workers = [
        spawn_monitor(fun() ->
            receive
                {ref, Ref} ->
                    Key = <<N>>,
                    ok = eleveldb:put(Ref, Key, Key, []),
                    {ok, Key} = eleveldb:get(Ref, Key, []),
                    exit({[], eleveldb_test:flush()})
            end
        end)
     || N <- lists:seq(1, 20)
    ],
    [Pid ! {ref, riak_vnode:ref(Vnode)} || {Pid, _} <- Workers],
    [
        receive
            {'DOWN', Monitor, process, Pid, Why} -> ?assertEqual({[], []}, Why)
        end
     || {Pid, Monitor} <- Workers
    ],
    ?assertEqual([<<N>> || N <- lists:seq(1, 20)], eleveldb_test:keys(riak_vnode:ref(Vnode))),
    ok = riak_vnode:stop(Vnode).

closed_by_a_process_that_did_not_open(Config) ->
    Vnode = vnode(Config, ?FUNCTION_NAME),
    ok = eleveldb:close(riak_vnode:ref(Vnode)),
    ?assertExit({{badarg, _}, _}, riak_vnode:get(Vnode, <<"b">>, <<"k">>)).

use_after_close(Config) ->
    Db = eleveldb_test:open(Config, ?FUNCTION_NAME),
    {ok, Iterator} = eleveldb:iterator(Db, []),
    ok = eleveldb:close(Db),
    ?assertError(badarg, eleveldb:get(Db, <<"k">>, [])),
    ?assertError(badarg, eleveldb:put(Db, <<"k">>, <<"v">>, [])),
    ?assertError(badarg, eleveldb:iterator(Db, [])),
    ?assertError(badarg, eleveldb:iterator_move(Iterator, first)),
    ?assertError(badarg, eleveldb:iterator_close(Iterator)),
    ?assertError(badarg, eleveldb:close(Db)).

second_close_as_in_ts(Config) ->
    ok = application:set_env(eleveldb, second_close, einval),
    try
        Db = eleveldb_test:open(Config, ?FUNCTION_NAME),
        ok = eleveldb:close(Db),
        {error, einval} = eleveldb:close(Db)
    after
        ok = application:unset_env(eleveldb, second_close)
    end.

%% In terminate/2: when it is over the store is free, and everything is on the disk, whatever becomes of the program.
close_waits_and_the_store_opens_at_once(Config) ->
    Dir = eleveldb_test:dir(Config, ?FUNCTION_NAME),
    [
        begin
            {ok, Vnode} = riak_vnode:start(Dir, []),
            Values = [riak_vnode:get(Vnode, <<"b">>, <<N:32>>) || N <- lists:seq(1, Round - 1)],
            ?assertEqual(lists:duplicate(Round - 1, {ok, <<"v">>}), Values),
            ok = riak_vnode:put(Vnode, <<"b">>, <<Round:32>>, [], <<"v">>),
            ok = riak_vnode:stop(Vnode),
            Round rem 3 =:= 0 andalso eleveldb_test:kill(eleveldb_test:os_pid())
        end
     || Round <- lists:seq(1, 9)
    ].

%% Facts

%% Riak's statistics read the second as a number, and ask often.
statuses(Config) ->
    Vnode = vnode(Config, ?FUNCTION_NAME),
    Ref = riak_vnode:ref(Vnode),
    {ok, <<_, _/binary>>} = eleveldb:status(Ref, <<"leveldb.stats">>),
    {ok, Errors} = eleveldb:status(Ref, <<"leveldb.ReadBlockError">>),
    0 = binary_to_integer(Errors),
    error = eleveldb:status(Ref, <<"leveldb.none-such">>),
    ok = riak_vnode:stop(Vnode).

%% Of what is in tables, once it is there; for the progress of a handoff.
data_size(Config) ->
    Vnode = vnode(Config, ?FUNCTION_NAME),
    ?assertEqual({0, bytes}, riak_vnode:data_size(Vnode)),
    ok = riak_vnode:stop(Vnode),
    Dir = eleveldb_test:dir(Config, ?FUNCTION_NAME),
    {ok, Small} = riak_vnode:start(Dir, [{write_buffer_size_min, 65536}, {write_buffer_size_max, 65537}]),
    [ok = riak_vnode:put(Small, <<"b">>, <<N:32>>, [], rand:bytes(1000)) || N <- lists:seq(1, 3000)],
    ok = eleveldb_test:await(fun() ->
        {Bytes, bytes} = riak_vnode:data_size(Small),
        Bytes > 1000000
    end),
    ok = riak_vnode:stop(Small).

%% Getting rid of a store

drop_and_reopen_at_once(Config) ->
    Dir = eleveldb_test:dir(Config, ?FUNCTION_NAME),
    [
        begin
            {ok, Vnode} = riak_vnode:start(Dir, []),
            true = riak_vnode:is_empty(Vnode),
            [ok = riak_vnode:put(Vnode, <<"b">>, <<N:32>>, [], <<"v">>) || N <- lists:seq(1, 100)],
            ok = riak_vnode:drop(Vnode),
            {ok, Next} = riak_vnode:start(Dir, []),
            true = riak_vnode:is_empty(Next),
            %% The vnode of the dropped store lives on for a moment, and its end is none of the next one's business.
            ok = riak_vnode:stop(Vnode),
            ok = riak_vnode:put(Next, <<"b">>, <<"k">>, [], <<"v">>),
            ok = riak_vnode:drop(Next),
            ok = riak_vnode:stop(Next)
        end
     || _ <- lists:seq(1, 5)
    ].

destroy_of_an_open_store(Config) ->
    Dir = eleveldb_test:dir(Config, ?FUNCTION_NAME),
    {ok, Vnode} = riak_vnode:start(Dir, []),
    ok = riak_vnode:put(Vnode, <<"b">>, <<"k">>, [], <<"v">>),
    {error, {error_db_destroy, Text}} = eleveldb:destroy(Dir, []),
    true = io_lib:char_list(Text),
    {ok, <<"v">>} = riak_vnode:get(Vnode, <<"b">>, <<"k">>),
    ok = riak_vnode:stop(Vnode).

%% Besides it there may be nothing.
is_empty_with_the_marker(Config) ->
    Vnode = vnode(Config, ?FUNCTION_NAME),
    true = riak_vnode:is_empty(Vnode),
    Ref = riak_vnode:ref(Vnode),
    ok = eleveldb:put(Ref, riak_key:marker(), <<1>>, []),
    false = eleveldb:is_empty(Ref),
    true = riak_vnode:is_empty(Vnode),
    ok = riak_vnode:put(Vnode, <<"b">>, <<"k">>, [], <<"v">>),
    false = riak_vnode:is_empty(Vnode),
    ok = riak_vnode:delete(Vnode, <<"b">>, <<"k">>, []),
    true = riak_vnode:is_empty(Vnode),
    ok = riak_vnode:put(Vnode, <<"b">>, <<"k">>, [{add, <<"f_int">>, 1}], undefined),
    false = riak_vnode:is_empty(Vnode),
    ok = riak_vnode:stop(Vnode).

%% The vnode asks during a handoff, when hundreds of thousands of rows are gone. How long it took is in the log.
is_empty_over_tombstones(Config) ->
    Vnode = vnode(Config, ?FUNCTION_NAME),
    Ref = riak_vnode:ref(Vnode),
    Keys = [riak_key:object(<<"b">>, <<N:32>>) || N <- lists:seq(1, 200000)],
    ok = eleveldb:write(Ref, [{put, Key, <<"value">>} || Key <- Keys], []),
    ok = eleveldb:put(Ref, riak_key:marker(), <<1>>, []),
    ok = eleveldb:write(Ref, [{delete, Key} || Key <- Keys], []),
    Took = [element(1, timer:tc(fun() -> true = riak_vnode:is_empty(Vnode) end)) div 1000 || _ <- lists:seq(1, 5)],
    ct:log("over ~b tombstones: ~w ms", [length(Keys), Took]),
    ok = eleveldb:delete(Ref, riak_key:marker(), []),
    true = eleveldb:is_empty(Ref),
    ok = riak_vnode:stop(Vnode).

%% Riak forces create_if_missing: an empty store beside the data would look as if all was lost. Nothing is written to it, and the text says what to do.
leveldb_directory_is_refused(Config) ->
    Dir = eleveldb_test:dir(Config, ?FUNCTION_NAME),
    ok = leveldb_files(Dir),
    Before = filelib:wildcard("**", Dir),
    {error, {db_open, Text}} = riak_vnode:open(Dir, []),
    ?assertNotEqual(nomatch, string:find(Text, "scanode import")),
    ?assertEqual(Before, filelib:wildcard("**", Dir)),
    Tiers = [eleveldb_test:dir(Config, Tier) || Tier <- ["fast", "slow"]],
    [
        begin
            Data = eleveldb_test:dir(Config, ?FUNCTION_NAME),
            ok = leveldb_files(Tier ++ "/" ++ Data),
            [Fast, Slow] = Tiers,
            Tiered = [{tiered_slow_level, 4}, {tiered_fast_prefix, Fast}, {tiered_slow_prefix, Slow}],
            {error, {db_open, TieredText}} = riak_vnode:open(Data, Tiered),
            ?assertNotEqual(nomatch, string:find(TieredText, "scanode import"))
        end
     || Tier <- Tiers
    ].

leveldb_files(Dir) ->
    Files = [{"CURRENT", "MANIFEST-000002\n"}, {"MANIFEST-000002", <<0:56>>}, {"sst_0/000005.sst", <<1>>}, {"sst_1/000004.sst", <<1>>}],
    lists:foreach(
        fun({Name, Text}) ->
            File = filename:join(Dir, Name),
            ok = filelib:ensure_dir(File),
            ok = file:write_file(File, Text)
        end,
        Files
    ).
