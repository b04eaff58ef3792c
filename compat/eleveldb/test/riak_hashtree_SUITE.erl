%% What Riak's hash trees expect: an iterator that is a snapshot for hours and is moved by many processes, writes by the hundred, deletes in a fold.
-module(riak_hashtree_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    batches_of_200/1,
    meta/1,
    select_one_segment/1,
    select_segments/1,
    prefetch_stop_after_every_select/1,
    select_from_other_processes/1,
    iterator_is_the_snapshot/1,
    old_snapshots_live_while_new_ones_are_made/1,
    updates_during_an_exchange/1,
    closed_tree_has_an_invalid_iterator/1,
    tree_closes_under_selects/1,
    killed_tree_and_its_exchange/1,
    deletes_in_its_own_fold/1,
    destroy_and_new_at_once/1,
    many_segments/1
]).

suite() -> [{timetrap, {seconds, 180}}].

all() ->
    [F || {F, 1} <- ?MODULE:module_info(exports), not lists:member(F, [module_info, init_per_suite, end_per_suite])].

init_per_suite(Config) ->
    {ok, _} = application:ensure_all_started(eleveldb),
    Config.

end_per_suite(_Config) ->
    ok = application:stop(eleveldb).

init_per_testcase(Case, Config) ->
    Seed = erlang:timestamp(),
    ct:log("seed ~w", [Seed]),
    _ = rand:seed(exsss, Seed),
    [{tree, riak_hashtree:new(eleveldb_test:dir(Config, Case))} | Config].

end_per_testcase(_Case, Config) ->
    try
        ok = riak_hashtree:close(?config(tree, Config))
    catch
        error:badarg -> ok
    end,
    [] = eleveldb_test:flush(),
    ok = eleveldb_test:await(fun() -> supervisor:which_children(eleveldb_iterator_sup) =:= [] end).

%% A tree with these keys, and its snapshot.
filled(Config, Keys) -> riak_hashtree:snapshot(inserted(?config(tree, Config), Keys)).

inserted(Tree, Keys) -> lists:foldl(fun({Segment, Key}, T) -> riak_hashtree:insert(Segment, Key, T) end, Tree, Keys).

%% Up to a hundred and some keys in some segments, none in others.
random_keys(Segments) ->
    lists:append([
        [{Segment, <<"key", (rand:uniform(1 bsl 30)):32>>} || _ <- lists:seq(1, rand:uniform(130))]
     || Segment <- lists:seq(0, Segments - 1), rand:uniform(3) > 1
    ]).

%% What select/2 is to return.
right(Keys, Segments) -> [{Segment, lists:usort([Key || {S, Key} <- Keys, S =:= Segment])} || Segment <- Segments].

random_segments(Segments) -> lists:usort([rand:uniform(Segments + 2) - 1 || _ <- lists:seq(1, rand:uniform(20))]).

batches_of_200(Config) ->
    Keys = [{N rem 7, <<N:32>>} || N <- lists:seq(1, 1999)],
    Tree = inserted(?config(tree, Config), Keys),
    %% The last ones are not there yet.
    Before = riak_hashtree:select(riak_hashtree:snapshot(Tree), lists:seq(0, 6)),
    ?assertEqual(right(Keys, lists:seq(0, 6)), Before),
    Fewer = lists:foldl(fun riak_hashtree:delete/2, Tree, lists:sublist(Keys, 1000)),
    ?assertEqual(right(lists:nthtail(1000, Keys), lists:seq(0, 6)), riak_hashtree:select(riak_hashtree:snapshot(Fewer), lists:seq(0, 6))).

meta(Config) ->
    Tree = ?config(tree, Config),
    not_found = riak_hashtree:read_meta(<<"built">>, Tree),
    {ok, <<1>>} = riak_hashtree:read_meta(<<"built">>, riak_hashtree:write_meta(<<"built">>, <<1>>, Tree)).

select_one_segment(Config) ->
    Keys = random_keys(50),
    Tree = filled(Config, Keys),
    [?assertEqual(right(Keys, [Segment]), riak_hashtree:select(Tree, [Segment])) || Segment <- lists:seq(0, 51)].

select_segments(Config) ->
    Keys = random_keys(100),
    Tree = filled(Config, Keys),
    [
        begin
            Segments = random_segments(100),
            ?assertEqual(right(Keys, Segments), riak_hashtree:select(Tree, Segments))
        end
     || _ <- lists:seq(1, 200)
    ].

%% It may come where the iterator has run off the end, twice, or before anything; and what follows it is a seek that finds its place.
prefetch_stop_after_every_select(Config) ->
    Keys = [{N, <<N:32>>} || N <- lists:seq(0, 9)],
    Tree = filled(Config, Keys),
    Iterator = element(6, Tree),
    {error, invalid_iterator} = eleveldb:iterator_move(Iterator, prefetch_stop),
    [?assertEqual(right(Keys, S), riak_hashtree:select(Tree, S)) || S <- [[3], [9], [10], [9, 10], [0], [3]]],
    _ = [eleveldb:iterator_move(Iterator, prefetch_stop) || _ <- lists:seq(1, 20)],
    ?assertEqual(right(Keys, [3]), riak_hashtree:select(Tree, [3])).

%% One after the other, each in a process of its own. The one that made the tree does nothing.
select_from_other_processes(Config) ->
    Keys = random_keys(100),
    Tree = filled(Config, Keys),
    [
        begin
            Segments = random_segments(100),
            ?assertEqual({right(Keys, Segments), []}, eleveldb_test:in_process(fun() -> {riak_hashtree:select(Tree, Segments), eleveldb_test:flush()} end))
        end
     || _ <- lists:seq(1, 50)
    ].

%% Whatever is written to the tree, and to how many tables.
iterator_is_the_snapshot(Config) ->
    Keys = random_keys(60),
    Tree = filled(Config, Keys),
    All = lists:seq(0, 60),
    Changed = lists:foldl(
        fun(Round, T) ->
            ?assertEqual(right(Keys, All), riak_hashtree:select(Tree, All)),
            Deleted = lists:foldl(fun riak_hashtree:delete/2, T, Keys),
            riak_hashtree:flush(inserted(Deleted, [{Round, <<"new", N:32>>} || N <- lists:seq(1, 1000)]))
        end,
        Tree,
        lists:seq(1, 10)
    ),
    ?assertEqual(right(Keys, All), riak_hashtree:select(Changed, All)),
    New = riak_hashtree:snapshot(Changed),
    ?assertEqual([{5, [<<"new", N:32>> || N <- lists:seq(1, 1000)]}], riak_hashtree:select(New, [5])).

%% Each exchange has its own.
old_snapshots_live_while_new_ones_are_made(Config) ->
    {_, Snapshots} = lists:foldl(
        fun(N, {Tree, Made}) ->
            %% The iterator of the one before is forgotten by the tree, and not closed.
            Snapshot = riak_hashtree:snapshot(setelement(6, inserted(Tree, [{1, <<N:32>>}]), undefined)),
            {Snapshot, [{N, Snapshot} | Made]}
        end,
        {?config(tree, Config), []},
        lists:seq(1, 50)
    ),
    [?assertEqual([{1, [<<M:32>> || M <- lists:seq(1, N)]}], riak_hashtree:select(Snapshot, [1])) || {N, Snapshot} <- Snapshots],
    [ok = eleveldb:iterator_close(element(6, Snapshot)) || {_, Snapshot} <- Snapshots].

updates_during_an_exchange(Config) ->
    Keys = random_keys(100),
    Tree = filled(Config, Keys),
    {Updater, Monitor} = spawn_monitor(fun() -> updates(Tree, 1) end),
    [?assertEqual(right(Keys, [S, S + 1]), riak_hashtree:select(Tree, [S, S + 1])) || S <- lists:seq(0, 98), _ <- [1, 2]],
    _ = Updater ! stop,
    receive
        {'DOWN', Monitor, process, Updater, Why} -> ?assertMatch({stopped, N} when N > 0, Why)
    end.

updates(Tree, N) ->
    receive
        stop -> exit({stopped, N})
    after 0 ->
        updates(riak_hashtree:flush(riak_hashtree:insert(N rem 100, <<"more", N:32>>, Tree)), N + 1)
    end.

%% badarg is what it takes for a closed tree.
closed_tree_has_an_invalid_iterator(Config) ->
    Tree = filled(Config, random_keys(10)),
    ok = riak_hashtree:close(Tree),
    {error, invalid_iterator} = riak_hashtree:select(Tree, [0]),
    ?assertError(badarg, eleveldb:iterator_move(element(6, Tree), prefetch_stop)).

%% Those who select get all of a segment, or the error.
tree_closes_under_selects(Config) ->
    Keys = random_keys(100),
    Tree = filled(Config, Keys),
    Self = self(),
    {Selecter, Monitor} = spawn_monitor(fun() ->
        Loop = fun Loop(N) ->
            Segment = rand:uniform(100) - 1,
            _ = N =:= 20 andalso (Self ! {selects, self()}),
            case riak_hashtree:select(Tree, [Segment]) of
                {error, invalid_iterator} ->
                    exit({closed, eleveldb_test:flush()});
                Selected ->
                    Selected = right(Keys, [Segment]),
                    Loop(N + 1)
            end
        end,
        Loop(1)
    end),
    receive
        {selects, Selecter} -> ok
    end,
    {eleveldb_db, _, _} = Ref = element(3, Tree),
    ok = eleveldb:close(Ref),
    receive
        {'DOWN', Monitor, process, Selecter, Why} -> ?assertEqual({closed, []}, Why)
    end.

%% The process of the tree is killed; what an exchange has of it remains as it was until the tree is opened anew.
killed_tree_and_its_exchange(Config) ->
    Dir = eleveldb_test:dir(Config, ?FUNCTION_NAME),
    Keys = random_keys(20),
    Tree = eleveldb_test:in_process(fun() -> riak_hashtree:snapshot(inserted(riak_hashtree:new(Dir), Keys)) end),
    ?assertEqual(right(Keys, lists:seq(0, 20)), riak_hashtree:select(Tree, lists:seq(0, 20))),
    {ok, Db} = riak_vnode:open(Dir, [{is_internal_db, true}], {6000, 10}),
    {error, invalid_iterator} = until_invalid(Tree),
    ?assertEqual(length(lists:usort(Keys)), length(eleveldb_test:keys(Db))),
    ok = eleveldb:close(Db).

%% The rows that have been read ahead may still come.
until_invalid(Tree) ->
    case riak_hashtree:select(Tree, [rand:uniform(20)]) of
        {error, invalid_iterator} = Error -> Error;
        _ -> until_invalid(Tree)
    end.

%% All levels are gone, and nothing else.
deletes_in_its_own_fold(Config) ->
    Keys = random_keys(10),
    Tree = filled(Config, Keys),
    Ref = element(3, Tree),
    Levels = [<<$b, "0123456789012345678901", $b, Level, N:64>> || Level <- [1, 2], N <- lists:seq(1, 2000)],
    ok = eleveldb:write(Ref, [{put, Key, <<"hash">>} || Key <- Levels], []),
    ?assertMatch({4000, _}, riak_hashtree:clear_buckets(Tree)),
    ?assertMatch({0, _}, riak_hashtree:clear_buckets(Tree)),
    ?assertEqual(length(lists:usort(Keys)), length(eleveldb_test:keys(Ref))).

destroy_and_new_at_once(Config) ->
    Dir = eleveldb_test:dir(Config, ?FUNCTION_NAME),
    [
        begin
            Tree = riak_hashtree:snapshot(inserted(riak_hashtree:new(Dir), [{1, <<N:32>>}])),
            ?assertEqual([{1, [<<N:32>>]}], riak_hashtree:select(Tree, [1])),
            ok = riak_hashtree:destroy(Tree)
        end
     || N <- lists:seq(1, 10)
    ].

%% As of an exchange, of which there are a million: each a seek, what is in it, and a stop. How long it took is in the log.
many_segments(Config) ->
    Keys = [{Segment, <<N:32>>} || Segment <- lists:seq(0, 19999), N <- [1, 2, 3]],
    Tree = filled(Config, Keys),
    Each = fun(Segment) -> ?assertEqual([{Segment, [<<1:32>>, <<2:32>>, <<3:32>>]}], riak_hashtree:select(Tree, [Segment])) end,
    {Took, ok} = timer:tc(fun() -> lists:foreach(Each, lists:seq(0, 19999, 2)) end),
    ct:log("10000 segments, one by one: ~b ms", [Took div 1000]),
    {TookAll, All} = timer:tc(fun() -> riak_hashtree:select(Tree, lists:seq(0, 19999)) end),
    ?assertEqual(60000, length(lists:append([Found || {_, Found} <- All]))),
    ct:log("20000 segments in one walk: ~b ms", [TookAll div 1000]).
