%% What Riak's backend expects of folds and of the order of keys.
-module(riak_fold_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    key_order/1,
    bytes_of_keys/1,
    buckets/1,
    keys_of_a_bucket/1,
    keys_of_all_buckets/1,
    objects_with_iterator_refresh/1,
    object_scan_ends_in_the_index_region/1,
    undecodable_keys_are_the_callers/1,
    index_range/1,
    index_pages/1,
    indexes_in_two_forms/1,
    break_closes_the_iterator/1,
    exceptions_of_all_classes_close_the_iterator/1,
    both_names_of_the_first_key/1,
    async_fold_sees_the_store_when_it_starts/1,
    async_folds_of_a_pool/1,
    snap_prefold/1,
    snap_prefold_whose_vnode_is_dead/1,
    snap_prefolds_wait_in_a_queue/1,
    snap_prefold_without_a_user_ends/1,
    blocked_callback/1,
    blocked_callback_holds_up_nobody/1,
    writes_in_own_fold/1,
    close_under_folds/1,
    close_in_own_fold/1
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
    {ok, Vnode} = riak_vnode:start(eleveldb_test:dir(Config, Case), []),
    [{vnode, Vnode}, {db, riak_vnode:ref(Vnode)} | Config].

%% Nothing is left of a fold: no message, no iterator, no stream, and no view that would keep old tables.
end_per_testcase(_Case, Config) ->
    [] = eleveldb_test:flush(),
    ok = eleveldb_test:await(fun() -> supervisor:which_children(eleveldb_iterator_sup) =:= [] end),
    ok = eleveldb_test:await(fun() ->
        {ok, #{streams := Streams}} = eleveldb_test:info(#{}),
        Streams =:= 0
    end),
    ok = riak_vnode:stop(?config(vnode, Config)).

%% Buckets of objects, with an entry each in an index, and the marker.
-define(BUCKETS, [<<"b1">>, <<"b2">>, {<<"type">>, <<"b1">>}]).

filled(Config) ->
    Vnode = ?config(vnode, Config),
    ok = eleveldb:put(?config(db, Config), riak_key:marker(), <<1>>, []),
    _ = [
        ok = riak_vnode:put(Vnode, Bucket, <<"key", N:32>>, [{add, <<"n_int">>, N}], <<"value", N:32>>)
     || Bucket <- ?BUCKETS, N <- lists:seq(1, 200)
    ],
    ok.

collect(Row, Rows) -> [Row | Rows].

count(_, N) -> N + 1.

%% Keys

%% They sort as their terms do in Erlang: tuples by their sizes first, so the marker, objects, entries of indexes; buckets with types before those without.
key_order(Config) ->
    Buckets = [<<>>, <<"a">>, <<"aa">>, <<"b">>, {<<"t">>, <<"b">>}, {<<"t">>, <<"bb">>}],
    Terms =
        [{md, fixed_indexes}] ++
            [{o, B, K} || B <- Buckets, K <- [<<>>, <<0>>, <<"k">>, <<255>>, <<255, 255>>]] ++
            [{i, B, F, T, K} || B <- Buckets, F <- [<<"f_bin">>, <<"g_bin">>], T <- [<<>>, <<"t">>, <<"tt">>], K <- [<<>>, <<"k">>]] ++
            [{i, <<"c">>, <<"f_int">>, T, <<"k">>} || T <- [0, 1, 255, 256, 65536, 16#7fffffff]],
    {_, Shuffled} = lists:unzip(lists:sort([{erlang:phash2({17, Term}), Term} || Term <- Terms])),
    [ok = eleveldb:put(?config(db, Config), riak_key:encode(Term), <<>>, []) || Term <- Shuffled],
    ?assertEqual(lists:sort(Terms), [riak_key:decode(Key) || Key <- eleveldb_test:keys(?config(db, Config))]).

%% As the contract has them: what is in the files of a partition that is imported begins so.
bytes_of_keys(_Config) ->
    <<16, 0, 0, 0, 3, 12, 183, 128, 8, 16, 0, 0, 0, 2, _/binary>> = riak_key:object({<<"t">>, <<"b">>}, <<"k">>),
    <<16, 0, 0, 0, 3, 12, 183, 128, 8, 18, _/binary>> = riak_key:object(<<"b">>, <<"k">>),
    <<16, 0, 0, 0, 5, _/binary>> = riak_key:index(<<"b">>, <<"f_int">>, 1, <<"k">>),
    {o, {<<"t">>, <<"b">>}, <<"k">>} = riak_key:decode(riak_key:object({<<"t">>, <<"b">>}, <<"k">>)).

buckets(Config) ->
    ok = filled(Config),
    ?assertEqual(lists:sort(?BUCKETS), lists:reverse(riak_vnode:fold_buckets(?config(db, Config), fun collect/2, []))).

keys_of_a_bucket(Config) ->
    ok = filled(Config),
    [
        ?assertEqual([<<"key", N:32>> || N <- lists:seq(200, 1, -1)], riak_vnode:fold_keys(?config(db, Config), Bucket, fun(_, K, Ks) -> [K | Ks] end, []))
     || Bucket <- ?BUCKETS
    ],
    ?assertEqual([], riak_vnode:fold_keys(?config(db, Config), <<"b0">>, fun(_, K, Ks) -> [K | Ks] end, [])).

%% A fold over everything begins at the first key an object can have: binary buckets sort behind buckets with types.
keys_of_all_buckets(Config) ->
    ok = filled(Config),
    Keys = riak_vnode:fold_keys(?config(db, Config), all, fun(B, K, Ks) -> [{B, K} | Ks] end, []),
    ?assertEqual([{B, <<"key", N:32>>} || B <- [{<<"type">>, <<"b1">>}, <<"b1">>, <<"b2">>], N <- lists:seq(1, 200)], lists:reverse(Keys)).

objects_with_iterator_refresh(Config) ->
    ok = filled(Config),
    Objects = riak_vnode:fold_objects(?config(db, Config), <<"b2">>, fun(_, K, V, Os) -> [{K, V} | Os] end, []),
    ?assertEqual([{<<"key", N:32>>, <<"value", N:32>>} || N <- lists:seq(200, 1, -1)], Objects).

%% Nothing says where the objects end but a key that is none; the callback sees it.
object_scan_ends_in_the_index_region(Config) ->
    ok = filled(Config),
    Seen = fun(Stored, N) ->
        case riak_key:decode(Stored) of
            {o, _, _} -> N + 1;
            {i, {<<"type">>, <<"b1">>}, <<"n_int">>, 1, <<"key", 1:32>>} -> throw({break, {N, index}})
        end
    end,
    ?assertThrow({break, {200, index}}, eleveldb:fold_keys(?config(db, Config), Seen, 0, [{first_key, riak_key:object(<<"b2">>, <<>>)}])).

%% The store has no opinion of keys.
undecodable_keys_are_the_callers(Config) ->
    ok = filled(Config),
    Db = ?config(db, Config),
    Odd = [<<>>, <<0>>, <<16>>, <<16, 0, 0, 0, 3, 12, 183, 128, 8, 255>>, binary:part(riak_key:object(<<"b2">>, <<"key", 7:32>>), 0, 16), <<255>>, <<255:256>>],
    ok = eleveldb:write(Db, [{put, Key, <<"odd">>} || Key <- Odd], []),
    [{ok, <<"odd">>} = eleveldb:get(Db, Key, []) || Key <- Odd],
    ?assertEqual(600, length(riak_vnode:fold_keys(Db, all, fun(_, K, Ks) -> [K | Ks] end, []))).

%% Indexes

index_range(Config) ->
    ok = filled(Config),
    Db = ?config(db, Config),
    ?assertEqual([{N, <<"key", N:32>>} || N <- lists:seq(50, 150)], riak_vnode:fold_index(Db, <<"b1">>, <<"n_int">>, {50, 150}, 1000)),
    ?assertEqual([], riak_vnode:fold_index(Db, <<"b1">>, <<"none_int">>, {0, 1000}, 1000)),
    ?assertEqual([{200, <<"key", 200:32>>}], riak_vnode:fold_index(Db, <<"b2">>, <<"n_int">>, {200, 9000}, 1000)).

%% Each page begins behind the last entry of the one before it, in a fold of its own.
index_pages(Config) ->
    ok = filled(Config),
    Db = ?config(db, Config),
    Pages = fun Pages(From) ->
        case riak_vnode:fold_index(Db, <<"b2">>, <<"n_int">>, {From, 1000}, 7) of
            [] ->
                [];
            Page ->
                {Term, Key} = lists:last(Page),
                [Page | Pages({'after', Term, Key})]
        end
    end,
    All = Pages(0),
    ?assertEqual([7], lists:usort([length(Page) || Page <- lists:droplast(All)])),
    ?assertEqual([{N, <<"key", N:32>>} || N <- lists:seq(1, 200)], lists:append(All)).

%% A store whose indexes are not yet in the present form is read twice, and removed from twice.
indexes_in_two_forms(Config) ->
    Db = ?config(db, Config),
    Present = [riak_key:index(<<"b">>, <<"f_int">>, N, <<"k">>) || N <- lists:seq(1, 20)],
    %% In their place only.
    Legacy = [<<16, 5:32, 11, Key/binary>> || Key <- Present],
    ok = eleveldb:write(Db, [{put, Key, <<>>} || Key <- Present ++ Legacy] ++ [{put, riak_key:marker(), <<0>>}], []),
    ok = eleveldb:write(Db, [{delete, Key} || Key <- [hd(Present), hd(Legacy), <<"never there">>]], []),
    ?assertEqual(lists:sort([riak_key:marker() | tl(Present) ++ tl(Legacy)]), eleveldb_test:keys(Db)).

%% Ends of folds

%% That of each way to fold: in end_per_testcase/2 is seen that nothing is left.
folds(Db) ->
    [
        fun(Fun, Acc) -> eleveldb:fold(Db, Fun, Acc, [{fill_cache, false}]) end,
        fun(Fun, Acc) -> eleveldb:fold_keys(Db, Fun, Acc, [{fill_cache, false}, {iterator_refresh, true}]) end,
        fun(Fun, Acc) ->
            {ok, Iterator} = eleveldb:iterator(Db, [{fill_cache, false}]),
            eleveldb:do_fold(Iterator, Fun, Acc, [])
        end,
        fun(Fun, Acc) ->
            {ok, Iterator} = eleveldb:iterator(Db, [], keys_only),
            eleveldb:do_fold(Iterator, Fun, Acc, [])
        end
    ].

break_closes_the_iterator(Config) ->
    Db = ?config(db, Config),
    _ = eleveldb_test:fill(Db, 5000, 100),
    Break = fun(Limit) ->
        fun
            (_, N) when N =:= Limit -> throw({break, N});
            (_, N) -> N + 1
        end
    end,
    [?assertThrow({break, Limit}, Fold(Break(Limit), 0)) || Fold <- folds(Db), Limit <- [0, 1, 1000, 4999], _ <- lists:seq(1, 10)],
    ?assertEqual({0, 0, 0}, held(Db)).

held({eleveldb_db, Native, _}) ->
    {ok, #{snapshots := Snapshots, iterators := Iterators, streams := Streams}} = scanode:info(Native),
    {Snapshots, Iterators, Streams}.

exceptions_of_all_classes_close_the_iterator(Config) ->
    Db = ?config(db, Config),
    _ = eleveldb_test:fill(Db, 100, 100),
    [
        begin
            ?assertError({my, error}, Fold(fun(_, _) -> error({my, error}) end, ok)),
            ?assertExit({my, exit}, Fold(fun(_, _) -> exit({my, exit}) end, ok)),
            ?assertThrow({my, throw}, Fold(fun(_, _) -> throw({my, throw}) end, ok)),
            ?assertError(function_clause, Fold(fun(never, _) -> ok end, ok))
        end
     || Fold <- folds(Db)
    ],
    ?assertEqual({0, 0, 0}, held(Db)).

both_names_of_the_first_key(Config) ->
    Db = ?config(db, Config),
    _ = eleveldb_test:fill(Db, 10, 1),
    [?assertEqual([<<10:32>>], eleveldb:fold_keys(Db, fun collect/2, [], [{Name, <<9:32, 0>>}, {fill_cache, false}])) || Name <- [first_key, start_key]].

%% Folds in other processes

async_fold_sees_the_store_when_it_starts(Config) ->
    Vnode = ?config(vnode, Config),
    ok = riak_vnode:put(Vnode, <<"b">>, <<"1">>, [], <<"v">>),
    {async, Fold} = riak_vnode:fold(Vnode, async, fun count/2, 0, []),
    ok = riak_vnode:put(Vnode, <<"b">>, <<"2">>, [], <<"v">>),
    ?assertEqual(2, eleveldb_test:in_process(Fold)).

%% Ten workers of a vnode at once, and the vnode writes.
async_folds_of_a_pool(Config) ->
    Vnode = ?config(vnode, Config),
    _ = eleveldb_test:fill(?config(db, Config), 5000, 100),
    Folds = [element(2, riak_vnode:fold(Vnode, async, fun count/2, 0, [])) || _ <- lists:seq(1, 10)],
    Workers = [spawn_monitor(fun() -> exit({folded, Fold(), eleveldb_test:flush()}) end) || Fold <- Folds],
    [ok = riak_vnode:put(Vnode, <<"b">>, <<N:32>>, [], <<"v">>) || N <- lists:seq(1, 100)],
    [
        receive
            {'DOWN', Monitor, process, Worker, {folded, Count, []}} -> true = Count >= 5000 andalso Count =< 5100
        end
     || {Worker, Monitor} <- Workers
    ].

%% The view is that of the moment of the request, whatever is written before and while it is used, and whoever does so.
snap_prefold(Config) ->
    Vnode = ?config(vnode, Config),
    Rows = eleveldb_test:fill(?config(db, Config), 3000, 100),
    {queue, Fold} = riak_vnode:fold(Vnode, snap_prefold, fun collect/2, [], []),
    ok = eleveldb:write(?config(db, Config), [{delete, K} || {K, _} <- Rows], []),
    ok = riak_vnode:put(Vnode, <<"b">>, <<"k">>, [], <<"v">>),
    ?assertEqual(Rows, lists:reverse(eleveldb_test:in_process(Fold))),
    %% It is closed now.
    ?assertError(badarg, Fold()).

%% Killed; its store is open until somebody opens it anew.
snap_prefold_whose_vnode_is_dead(Config) ->
    {ok, Vnode} = riak_vnode:start(eleveldb_test:dir(Config, ?FUNCTION_NAME), []),
    Db = riak_vnode:ref(Vnode),
    Rows = eleveldb_test:fill(Db, 3000, 100),
    {queue, Fold} = riak_vnode:fold(Vnode, snap_prefold, fun collect/2, [], []),
    {queue, Never} = riak_vnode:fold(Vnode, snap_prefold, fun collect/2, [], []),
    Monitor = erlang:monitor(process, Vnode),
    true = exit(Vnode, kill),
    receive
        {'DOWN', Monitor, process, Vnode, killed} -> ok
    end,
    ?assertEqual(Rows, lists:reverse(eleveldb_test:in_process(Fold))),
    ok = eleveldb:close(Db),
    ?assertError(badarg, Never()).

%% More than there are workers, of one moment each, folded in any order.
snap_prefolds_wait_in_a_queue(Config) ->
    Vnode = ?config(vnode, Config),
    Queue = [
        begin
            ok = riak_vnode:put(Vnode, <<"b">>, <<N:32>>, [], <<"v">>),
            {queue, Fold} = riak_vnode:fold(Vnode, snap_prefold, fun count/2, 0, []),
            {N, Fold}
        end
     || N <- lists:seq(1, 100)
    ],
    [?assertEqual({N, N}, {N, eleveldb_test:in_process(Fold)}) || {N, Fold} <- lists:reverse(Queue)].

%% A node that ends its workers forgets them. (The hour that the view is kept for is a setting.)
snap_prefold_without_a_user_ends(Config) ->
    {ok, Vnode} = riak_vnode:start(eleveldb_test:dir(Config, ?FUNCTION_NAME), []),
    ok = application:set_env(eleveldb, iterator_orphan_ms, 50),
    try
        {queue, _} = riak_vnode:fold(Vnode, snap_prefold, fun count/2, 0, []),
        ok = riak_vnode:stop(Vnode),
        ok = eleveldb_test:await(fun() -> supervisor:which_children(eleveldb_iterator_sup) =:= [] end)
    after
        ok = application:unset_env(eleveldb, iterator_orphan_ms)
    end.

%% Callbacks

%% Each buffer waits for who reads it, and then the fold goes on, or is thrown out of.
blocked_callback(Config) ->
    Db = ?config(db, Config),
    _ = eleveldb_test:fill(Db, 5000, 100),
    Self = self(),
    Buffered = fun(_, N) ->
        case N rem 1000 of
            999 ->
                _ = Self ! {buffer, self(), N},
                receive
                    ok -> N + 1;
                    stop_fold -> throw({break, N})
                end;
            _ ->
                N + 1
        end
    end,
    [
        begin
            Start = fun() -> spawn_monitor(fun() -> exit(catch {folded, Fold(Buffered, 0)}) end) end,
            {Through, M1} = Start(),
            {Stopped, M2} = Start(),
            [
                begin
                    receive
                        {buffer, Through, N} -> Through ! ok
                    end,
                    %% Meanwhile the rows change.
                    ok = eleveldb:put(Db, <<(5000 + N):32>>, <<>>, [])
                end
             || N <- lists:seq(999, 4999, 1000)
            ],
            receive
                {buffer, Stopped, 999} -> Stopped ! stop_fold
            end,
            receive
                {'DOWN', M1, process, Through, T} -> ?assertEqual({folded, 5000}, T)
            end,
            receive
                {'DOWN', M2, process, Stopped, S} -> ?assertEqual({break, 999}, S)
            end,
            ok = eleveldb:write(Db, [{delete, <<(5000 + N):32>>} || N <- lists:seq(999, 4999, 1000)], [])
        end
     || Fold <- folds(Db)
    ].

%% As many as there may be streams of one store in Riak TS wait in their callbacks; the vnode works on, and closes.
blocked_callback_holds_up_nobody(Config) ->
    {ok, Vnode} = riak_vnode:start(eleveldb_test:dir(Config, ?FUNCTION_NAME), []),
    Db = riak_vnode:ref(Vnode),
    _ = eleveldb_test:fill(Db, 20000, 100),
    Self = self(),
    Block = fun(_, _) ->
        _ = Self ! {blocked, self()},
        receive
            go_on -> ok
        end
    end,
    Blocked = [spawn_monitor(fun() -> Fold(Block, ok) end) || _ <- lists:seq(1, 15), Fold <- folds(Db)],
    [
        receive
            {blocked, Pid} -> ok
        end
     || {Pid, _} <- Blocked
    ],
    [ok = riak_vnode:put(Vnode, <<"b">>, <<N:32>>, [], <<"v">>) || N <- lists:seq(1, 100)],
    {ok, <<"v">>} = riak_vnode:get(Vnode, <<"b">>, <<1:32>>),
    %% Their callbacks block at each row; the next one is not handed out.
    ?assertEqual(20100, riak_vnode:fold(Vnode, sync, fun count/2, 0, [])),
    ok = riak_vnode:stop(Vnode),
    [Pid ! go_on || {Pid, _} <- Blocked],
    [
        receive
            {'DOWN', Monitor, process, Pid, Why} -> ?assertMatch({badarg, _}, Why)
        end
     || {Pid, Monitor} <- Blocked
    ].

%% The fold shows what was there, and does not wait for the writes nor they for it.
writes_in_own_fold(Config) ->
    Db = ?config(db, Config),
    Rows = eleveldb_test:fill(Db, 3000, 100),
    [
        begin
            Clear = fun(Row, N) ->
                Key =
                    case Row of
                        {K, _} -> K;
                        K -> K
                    end,
                ok = eleveldb:write(Db, [{delete, Key}, {put, <<255, Key/binary>>, <<>>}], []),
                N + 1
            end,
            ?assertEqual(3000, Fold(Clear, 0)),
            ?assertEqual([<<255, K/binary>> || {K, _} <- Rows], eleveldb_test:keys(Db)),
            ok = eleveldb:write(Db, [{delete, <<255, K/binary>>} || {K, _} <- Rows] ++ [{put, K, V} || {K, V} <- Rows], [])
        end
     || Fold <- folds(Db)
    ].

%% They fail: no short result, and nobody waits.
close_under_folds(Config) ->
    {ok, Vnode} = riak_vnode:start(eleveldb_test:dir(Config, ?FUNCTION_NAME), []),
    Db = riak_vnode:ref(Vnode),
    _ = eleveldb_test:fill(Db, 50000, 100),
    Self = self(),
    Folders = [
        spawn_monitor(fun() ->
            Begin = fun
                (_, 0) ->
                    _ = Self ! {begun, self()},
                    1;
                (_, N) ->
                    N + 1
            end,
            Forever = fun Forever() ->
                50000 = Fold(Begin, 0),
                Forever()
            end,
            Forever()
        end)
     || Fold <- folds(Db), _ <- [1, 2]
    ],
    [
        receive
            {begun, Pid} -> ok
        end
     || {Pid, _} <- Folders
    ],
    ok = riak_vnode:stop(Vnode),
    [
        receive
            {'DOWN', Monitor, process, Pid, Why} -> ?assertMatch({badarg, _}, Why)
        end
     || {Pid, Monitor} <- Folders
    ],
    _ = [B || {begun, B} <- eleveldb_test:flush()],
    ok.

close_in_own_fold(Config) ->
    [
        begin
            {ok, Vnode} = riak_vnode:start(eleveldb_test:dir(Config, ?FUNCTION_NAME), []),
            Db = riak_vnode:ref(Vnode),
            _ = eleveldb_test:fill(Db, Count, 100),
            Close = fun
                (_, 0) ->
                    ok = eleveldb:close(Db),
                    1;
                (_, N) ->
                    N + 1
            end,
            ?assertError(badarg, (lists:nth(Which, folds(Db)))(Close, 0)),
            ok = riak_vnode:stop(Vnode)
        end
     || Which <- lists:seq(1, 4), Count <- [1, 5000]
    ].
