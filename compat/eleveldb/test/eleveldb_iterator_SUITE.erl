%% Iterators: moves, who may make them, views, what they cost, and how they end.
-module(eleveldb_iterator_SUITE).
-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").
-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    recorded/1,
    model/1,
    odd_actions/1,
    keys_only/1,
    view/1,
    round_trips/1,
    lone_seeks/1,
    large_values/1,
    no_batch_is_pinned/1,
    shared/1,
    at_once/1,
    maker_dies/1,
    orphaned/1,
    closed/1,
    store_closes/1,
    closed_under_moves/1,
    program_ends/1,
    refreshed/1,
    refreshed_to_the_end/1,
    folded_elsewhere/1,
    folded_after_moves/1,
    closed_under_fold/1,
    moved_by_the_store_s_user/1
]).

suite() -> [{timetrap, {seconds, 120}}].

all() ->
    [F || {F, 1} <- ?MODULE:module_info(exports), not lists:member(F, [module_info, init_per_suite, end_per_suite])].

init_per_suite(Config) ->
    {ok, _} = application:ensure_all_started(eleveldb),
    Config.

end_per_suite(_Config) ->
    ok = application:stop(eleveldb).

init_per_testcase(Case, Config) ->
    [{db, eleveldb_test:open(Config, Case)} | Config].

%% No message is left, and no iterator: neither here nor in the program.
end_per_testcase(_Case, Config) ->
    try
        ok = eleveldb:close(?config(db, Config))
    catch
        error:badarg -> ok
    end,
    [] = eleveldb_test:flush(),
    try
        ok = eleveldb_test:await(fun() -> iterators() =:= [] end)
    after
        [exit(Pid, kill) || Pid <- iterators()]
    end.

iterators() -> [Pid || {_, Pid, _, _} <- supervisor:which_children(eleveldb_iterator_sup)].

%% What was recorded of the original, without its races.
recorded(Config) ->
    Datasets = recorded:datasets(),
    Stores = maps:map(
        fun(Name, Rows) ->
            Db = eleveldb_test:open(Config, Name),
            ok = eleveldb:write(Db, [{put, K, V} || {K, V} <- Rows], []),
            Db
        end,
        Datasets
    ),
    Cases = recorded:iterators(),
    true = length(Cases) > 150,
    [recorded(maps:get(Set, Stores), maps:from_list(maps:get(Set, Datasets)), Case) || #{<<"dataset">> := Set} = Case <- Cases],
    _ = [ok = eleveldb:close(Db) || Db <- maps:values(Stores)],
    ok.

recorded(Db, Rows, #{<<"id">> := Id, <<"keys_only">> := KeysOnly, <<"steps">> := Steps}) ->
    {ok, It} =
        case KeysOnly of
            true -> eleveldb:iterator(Db, [], keys_only);
            false -> eleveldb:iterator(Db, [])
        end,
    Results = [
        {Action, eleveldb:iterator_move(It, action(Action))}
     || #{<<"action">> := Action} <- Steps
    ],
    Right = [{Action, logical(maps:get(<<"logical">>, Step, none), KeysOnly, Rows)} || #{<<"action">> := Action} = Step <- Steps],
    ?assertEqual({Id, Right}, {Id, [{Action, named(Result)} || {Action, Result} <- Results]}),
    ok = eleveldb:iterator_close(It).

%% Erlang text: a name, or a binary to seek.
action(Text) ->
    {ok, Tokens, _} = erl_scan:string(unicode:characters_to_list(Text) ++ "."),
    {ok, Action} = erl_parse:parse_term(Tokens),
    Action.

%% The reference is any.
named({einval, Ref}) when is_reference(Ref) -> einval;
named(Result) -> Result.

logical(none, _, _) -> einval;
logical([<<"ok">>, Key], true, _) -> {ok, recorded:bin(Key)};
logical([<<"ok">>, Key], false, Rows) -> {ok, recorded:bin(Key), maps:get(recorded:bin(Key), Rows)};
logical([<<"error">>, <<"invalid_iterator">>], _, _) -> {error, invalid_iterator}.

%% Long random walks against a sorted list. The seed is in the log.
model(Config) ->
    Db = ?config(db, Config),
    Seed = erlang:phash2({node(), erlang:system_time()}),
    ct:log("seed ~b", [Seed]),
    _ = rand:seed(exsss, Seed),
    Keys = lists:usort([key() || _ <- lists:seq(1, 2000)]),
    ok = eleveldb:write(Db, [{put, Key, <<Key/binary, "v">>} || Key <- Keys], []),
    Table = list_to_tuple(Keys),
    [
        begin
            {ok, It} = eleveldb:iterator(Db, []),
            _ = lists:foldl(fun(_, At) -> modelled(It, Table, At) end, nowhere, lists:seq(1, 500)),
            ok = eleveldb:iterator_close(It)
        end
     || _ <- lists:seq(1, 20)
    ].

key() -> binary:part(<<(rand:uniform(1 bsl 24)):24>>, 0, rand:uniform(3)).

modelled(It, Table, At) ->
    %% Mostly on, so that walks are longer than what is read ahead.
    Action =
        case rand:uniform(40) of
            1 -> first;
            2 -> last;
            N when N < 6 -> key();
            N when N < 9 -> prev;
            N when N < 20 -> next;
            40 -> prefetch_stop;
            _ -> prefetch
        end,
    To = modelled_at(Action, Table, At),
    Expected =
        case To of
            nowhere -> {error, invalid_iterator};
            _ -> {ok, element(To, Table), <<(element(To, Table))/binary, "v">>}
        end,
    ?assertEqual({Action, At, Expected}, {Action, At, eleveldb:iterator_move(It, Action)}),
    To.

modelled_at(first, _, _) -> 1;
modelled_at(last, Table, _) -> tuple_size(Table);
modelled_at(Key, Table, _) when is_binary(Key) -> within(length([K || K <- tuple_to_list(Table), K < Key]) + 1, Table);
modelled_at(_, _, nowhere) -> nowhere;
modelled_at(prev, Table, At) -> within(At - 1, Table);
modelled_at(_, Table, At) -> within(At + 1, Table).

within(At, Table) when At >= 1, At =< tuple_size(Table) -> At;
within(_, _) -> nowhere.

odd_actions(Config) ->
    Db = ?config(db, Config),
    _ = eleveldb_test:fill(Db, 10, 1),
    {ok, It} = eleveldb:iterator(Db, []),
    {ok, <<1:32>>, _} = eleveldb:iterator_move(It, first),
    [
        begin
            {einval, Ref} = eleveldb:iterator_move(It, Odd),
            true = is_reference(Ref)
        end
     || Odd <- [odd, "key", 17, {from, <<"k">>}, <<1:3>>]
    ],
    %% Where it was.
    {ok, <<2:32>>, _} = eleveldb:iterator_move(It, prefetch),
    [?assertError(badarg, eleveldb:iterator_move(Odd, next)) || Odd <- [it, make_ref(), {eleveldb_iterator, odd}]],
    [?assertError(badarg, eleveldb:iterator_close(Odd)) || Odd <- [it, make_ref(), {eleveldb_iterator, odd}]],
    ?assertError(badarg, eleveldb:iterator(Db, odd)),
    ?assertError(badarg, eleveldb:iterator(odd, [])),
    ?assertError(function_clause, eleveldb:iterator(Db, [], odd)),
    ok = eleveldb:iterator_close(It).

keys_only(Config) ->
    Db = ?config(db, Config),
    _ = eleveldb_test:fill(Db, 10, 1),
    {ok, It} = eleveldb:iterator(Db, [], keys_only),
    {ok, <<1:32>>} = eleveldb:iterator_move(It, first),
    {ok, <<2:32>>} = eleveldb:iterator_move(It, prefetch),
    {ok, <<10:32>>} = eleveldb:iterator_move(It, last),
    {error, invalid_iterator} = eleveldb:iterator_move(It, next),
    ok = eleveldb:iterator_close(It).

%% As it was when the iterator was made, also where nothing was read before.
view(Config) ->
    Db = ?config(db, Config),
    Rows = eleveldb_test:fill(Db, 300, 10),
    {ok, It} = eleveldb:iterator(Db, []),
    ok = eleveldb:write(Db, [{delete, K} || {K, _} <- Rows] ++ [{put, <<0>>, <<"new">>}], []),
    ?assertEqual(Rows, walk(It, first)),
    {ok, New} = eleveldb:iterator(Db, []),
    ?assertEqual([{<<0>>, <<"new">>}], walk(New, first)),
    ok = eleveldb:iterator_close(It),
    ok = eleveldb:iterator_close(New).

walk(It, Action) ->
    case eleveldb:iterator_move(It, Action) of
        {ok, K, V} -> [{K, V} | walk(It, prefetch)];
        {error, invalid_iterator} -> []
    end.

%% What the hash trees of Riak do: a segment's first key, up to a hundred more, and a stop. The calls of the program are counted as the iterator makes them.
round_trips(Config) ->
    Db = ?config(db, Config),
    _ = eleveldb_test:fill(Db, 20000, 40),
    {ok, {_, Pid} = It} = eleveldb:iterator(Db, []),
    Segment = fun(N) ->
        {ok, _, _} = eleveldb:iterator_move(It, <<N:32>>),
        _ = [{ok, _, _} = eleveldb:iterator_move(It, prefetch) || _ <- lists:seq(1, 99)],
        {ok, Last, _} = eleveldb:iterator_move(It, prefetch_stop),
        ?assertEqual(<<(N + 100):32>>, Last)
    end,
    [?assert(calls(Pid, fun() -> Segment(N) end) =< 2) || N <- [1, 3000, 3200, 19000, 500]],
    %% After lone seeks, too.
    _ = [eleveldb:iterator_move(It, <<N:32>>) || N <- lists:seq(1, 100)],
    ?assert(calls(Pid, fun() -> Segment(7000) end) =< 2),
    ok = eleveldb:iterator_close(It).

%% One call each, that reads few rows.
lone_seeks(Config) ->
    Db = ?config(db, Config),
    _ = eleveldb_test:fill(Db, 2000, 40),
    {ok, {_, Pid} = It} = eleveldb:iterator(Db, []),
    {ok, _, _} = eleveldb:iterator_move(It, <<1:32>>),
    {ok, _, _} = eleveldb:iterator_move(It, <<2:32>>),
    ?assertEqual(10, calls(Pid, fun() -> [{ok, _, _} = eleveldb:iterator_move(It, <<N:32>>) || N <- lists:seq(100, 1000, 100)] end)),
    ?assert(read_ahead(Pid) =< 4),
    ok = eleveldb:iterator_close(It).

read_ahead(Pid) ->
    length(lists:flatten([Rows || Rows <- tuple_to_list(sys:get_state(Pid)), is_list(Rows)])).

%% A read ahead is bounded in bytes.
large_values(Config) ->
    Db = ?config(db, Config),
    Rows = eleveldb_test:fill(Db, 40, 300000),
    {ok, {_, Pid} = It} = eleveldb:iterator(Db, []),
    {ok, _, _} = eleveldb:iterator_move(It, first),
    ?assert(read_ahead(Pid) =< 1),
    ?assertEqual(tl(Rows), walk(It, prefetch)),
    ok = eleveldb:iterator_close(It).

no_batch_is_pinned(Config) ->
    Db = ?config(db, Config),
    _ = eleveldb_test:fill(Db, 2000, 100),
    {ok, It} = eleveldb:iterator(Db, []),
    [?assertEqual({4, 100}, {binary:referenced_byte_size(K), binary:referenced_byte_size(V)}) || {K, V} <- walk(It, first)],
    ok = eleveldb:iterator_close(It).

%% Made by one process, moved and closed by others; each is answered itself.
shared(Config) ->
    Db = ?config(db, Config),
    _ = eleveldb_test:fill(Db, 10, 1),
    It = eleveldb_test:in_process(fun() ->
        {ok, Made} = eleveldb:iterator(Db, []),
        {ok, <<1:32>>, _} = eleveldb:iterator_move(Made, first),
        {ok, <<2:32>>, _} = eleveldb:iterator_move(Made, prefetch),
        Made
    end),
    {ok, <<3:32>>, _} = eleveldb:iterator_move(It, prefetch),
    {ok, <<4:32>>, _} = eleveldb_test:in_process(fun() -> eleveldb:iterator_move(It, next) end),
    {ok, <<3:32>>, _} = eleveldb:iterator_move(It, prev),
    ok = eleveldb_test:in_process(fun() -> eleveldb:iterator_close(It) end),
    ?assertError(badarg, eleveldb:iterator_move(It, next)).

%% Several move one iterator on: each row is handed out once.
at_once(Config) ->
    Db = ?config(db, Config),
    Rows = eleveldb_test:fill(Db, 5000, 10),
    {ok, It} = eleveldb:iterator(Db, []),
    {ok, K, V} = eleveldb:iterator_move(It, first),
    Movers = [spawn_monitor(fun() -> exit({walked, walk(It, prefetch)}) end) || _ <- lists:seq(1, 8)],
    Walked = [
        receive
            {'DOWN', Monitor, process, Pid, {walked, Some}} -> Some
        end
     || {Pid, Monitor} <- Movers
    ],
    ?assertEqual(Rows, lists:sort([{K, V} | lists:append(Walked)])),
    [?assertEqual(lists:sort(Some), Some) || Some <- Walked],
    ok = eleveldb:iterator_close(It).

maker_dies(Config) ->
    Db = ?config(db, Config),
    Rows = eleveldb_test:fill(Db, 500, 10),
    It = eleveldb_test:in_process(fun() ->
        {ok, Made} = eleveldb:iterator(Db, []),
        Made
    end),
    ok = eleveldb:write(Db, [{delete, K} || {K, _} <- Rows], []),
    ?assertEqual(Rows, walk(It, first)),
    ok = eleveldb:iterator_close(It).

%% The hour is a setting.
orphaned(Config) ->
    Db = ?config(db, Config),
    ok = application:set_env(eleveldb, iterator_orphan_ms, 50),
    try
        {_, Pid} = eleveldb_test:in_process(fun() ->
            {ok, Made} = eleveldb:iterator(Db, []),
            Made
        end),
        {ok, {_, Mine}} = eleveldb:iterator(Db, []),
        ok = eleveldb_test:await(fun() -> not is_process_alive(Pid) end),
        true = is_process_alive(Mine),
        ok = eleveldb:iterator_close({eleveldb_iterator, Mine})
    after
        ok = application:unset_env(eleveldb, iterator_orphan_ms)
    end.

closed(Config) ->
    Db = ?config(db, Config),
    {ok, It} = eleveldb:iterator(Db, []),
    ok = eleveldb:iterator_close(It),
    ?assertError(badarg, eleveldb:iterator_close(It)),
    ?assertError(badarg, eleveldb:iterator_move(It, first)),
    ?assertError(badarg, eleveldb:do_fold(It, fun(_, Acc) -> Acc end, ok, [])),
    ok = eleveldb_test:await(fun() -> held(Db) =:= {0, 0} end).

held(Db) ->
    {eleveldb_db, Native, _} = Db,
    {ok, #{snapshots := Snapshots, iterators := Iterators}} = scanode:info(Native),
    {Snapshots, Iterators}.

%% Also where rows have been read ahead.
store_closes(Config) ->
    Db = ?config(db, Config),
    _ = eleveldb_test:fill(Db, 100, 10),
    {ok, It} = eleveldb:iterator(Db, []),
    {ok, Fresh} = eleveldb:iterator(Db, []),
    {ok, _, _} = eleveldb:iterator_move(It, first),
    ok = eleveldb:close(Db),
    ?assertError(badarg, eleveldb:iterator_move(It, prefetch)),
    ?assertError(badarg, eleveldb:iterator_close(It)),
    ?assertError(badarg, eleveldb:iterator_move(Fresh, first)),
    ?assertError(badarg, eleveldb:iterator(Db, [])).

%% Whoever moves is told, and none waits for ever.
closed_under_moves(Config) ->
    Db = ?config(db, Config),
    _ = eleveldb_test:fill(Db, 2000, 10),
    Self = self(),
    Movers = [
        spawn_monitor(fun() ->
            {ok, It} = eleveldb:iterator(Db, []),
            _ = Self ! {ready, self()},
            round_and_round(It)
        end)
     || _ <- lists:seq(1, 16)
    ],
    [
        receive
            {ready, Pid} -> ok
        end
     || {Pid, _} <- Movers
    ],
    ok = eleveldb:close(Db),
    [
        receive
            {'DOWN', Monitor, process, Pid, {badarg, _}} -> ok
        end
     || {Pid, Monitor} <- Movers
    ].

round_and_round(It) ->
    case eleveldb:iterator_move(It, <<(rand:uniform(2000)):32>>) of
        {ok, _, _} -> round_and_round(It)
    end.

%% What has been read ahead may be handed out; then it is an error, and no end.
program_ends(Config) ->
    Db = ?config(db, Config),
    _ = eleveldb_test:fill(Db, 5000, 10),
    {ok, It} = eleveldb:iterator(Db, []),
    {ok, _, _} = eleveldb:iterator_move(It, first),
    ok = eleveldb_test:kill(eleveldb_test:os_pid()),
    How =
        try walk(It, prefetch) of
            _ -> ended
        catch
            error:badarg -> failed;
            error:{iterator_error, [_ | _]} -> failed
        end,
    ?assertEqual(failed, How),
    ?assertError(badarg, eleveldb:get(Db, <<"k">>, [])).

%% The five minutes are a setting.
refreshed(Config) ->
    Db = ?config(db, Config),
    Rows = eleveldb_test:fill(Db, 500, 10),
    {ok, It} = short(fun() -> eleveldb:iterator(Db, [{iterator_refresh, true}]) end),
    {ok, Old} = short(fun() -> eleveldb:iterator(Db, []) end),
    {ok, <<1:32>>, _} = eleveldb:iterator_move(It, first),
    ok = eleveldb:write(Db, [{delete, K} || {K, _} <- Rows, K =/= <<1:32>>, K =/= <<500:32>>] ++ [{put, <<9:32>>, <<"new">>}], []),
    ok = eleveldb_test:await(fun() -> eleveldb:iterator_move(It, <<9:32>>) =:= {ok, <<9:32>>, <<"new">>} end),
    %% On from a key that is not there any more.
    ok = eleveldb:write(Db, [{delete, <<9:32>>}, {put, <<10:32>>, <<"later">>}], []),
    ok = eleveldb_test:await(fun() ->
        {ok, _, _} = eleveldb:iterator_move(It, <<9:32>>),
        eleveldb:iterator_move(It, prev) =:= {ok, <<1:32>>, binary:copy(<<1>>, 10)} andalso eleveldb:iterator_move(It, next) =:= {ok, <<10:32>>, <<"later">>}
    end),
    ?assertEqual(Rows, walk(Old, first)),
    ok = eleveldb:iterator_close(It),
    ok = eleveldb:iterator_close(Old).

short(Fun) ->
    ok = application:set_env(eleveldb, iterator_refresh_ms, 1),
    try
        Fun()
    after
        ok = application:unset_env(eleveldb, iterator_refresh_ms)
    end.

refreshed_to_the_end(Config) ->
    Db = ?config(db, Config),
    _ = eleveldb_test:fill(Db, 3, 10),
    {ok, It} = eleveldb:iterator(Db, [{iterator_refresh, true}]),
    3 = length(walk(It, first)),
    [?assertEqual({error, iterator_closed}, eleveldb:iterator_move(It, Action)) || Action <- [next, first, <<"k">>]],
    ?assertThrow({iterator_closed, acc}, eleveldb:do_fold(It, fun(_, Acc) -> Acc end, acc, [])).

%% Made now, folded over later and elsewhere, its maker gone: the view is that of when it was made.
folded_elsewhere(Config) ->
    Db = ?config(db, Config),
    Rows = eleveldb_test:fill(Db, 3000, 10),
    Make = fun(Kind) ->
        eleveldb_test:in_process(fun() ->
            {ok, Made} =
                case Kind of
                    kv -> eleveldb:iterator(Db, []);
                    keys -> eleveldb:iterator(Db, [], keys_only)
                end,
            Made
        end)
    end,
    {Kv, Keys, From, Thrown} = {Make(kv), Make(keys), Make(keys), Make(kv)},
    ok = eleveldb:write(Db, [{delete, K} || {K, _} <- Rows], []),
    Collect = fun(Row, Acc) -> [Row | Acc] end,
    ?assertEqual(Rows, lists:reverse(eleveldb:do_fold(Kv, Collect, [], []))),
    ?assertEqual([K || {K, _} <- Rows], lists:reverse(eleveldb:do_fold(Keys, Collect, [], []))),
    ?assertEqual([<<3000:32>>], eleveldb:do_fold(From, Collect, [], [{first_key, <<3000:32>>}])),
    ?assertThrow({break, [_]}, eleveldb:do_fold(Thrown, fun(Row, []) -> throw({break, [Row]}) end, [], [])),
    [?assertError(badarg, eleveldb:iterator_close(It)) || It <- [Kv, Keys, From, Thrown]],
    ok = eleveldb_test:await(fun() -> held(Db) =:= {0, 0} end).

folded_after_moves(Config) ->
    Db = ?config(db, Config),
    Rows = eleveldb_test:fill(Db, 300, 10),
    {ok, It} = eleveldb:iterator(Db, []),
    {ok, _, _} = eleveldb:iterator_move(It, last),
    ?assertError({badmatch, false}, eleveldb:do_fold(It, fun(_, Acc) -> Acc end, ok, [{first_key, odd}])),
    {ok, Again} = eleveldb:iterator(Db, []),
    {ok, _, _} = eleveldb:iterator_move(Again, <<77:32>>),
    ?assertEqual(length(Rows), eleveldb:do_fold(Again, fun(_, N) -> N + 1 end, 0, [])).

closed_under_fold(Config) ->
    Db = ?config(db, Config),
    _ = eleveldb_test:fill(Db, 1, 10),
    {ok, It} = eleveldb:iterator(Db, []),
    ?assertError(badarg, eleveldb:do_fold(It, fun(_, _) -> eleveldb:iterator_close(It) end, ok, [])),
    {ok, Other} = eleveldb:iterator(Db, []),
    ?assertError(badarg, eleveldb:do_fold(Other, fun(_, _) -> eleveldb:close(Db) end, ok, [])).

%% Deletes what it walks over.
moved_by_the_store_s_user(Config) ->
    Db = ?config(db, Config),
    Rows = eleveldb_test:fill(Db, 400, 10),
    {ok, It} = eleveldb:iterator(Db, []),
    Delete = fun Loop(Action) ->
        case eleveldb:iterator_move(It, Action) of
            {ok, K, _} ->
                ok = eleveldb:delete(Db, K, []),
                [K | Loop(prefetch)];
            {error, invalid_iterator} ->
                []
        end
    end,
    ?assertEqual([K || {K, _} <- Rows], Delete(first)),
    true = eleveldb:is_empty(Db),
    ok = eleveldb:iterator_close(It).

%% How often Pid calls the program meanwhile.
calls(Pid, Fun) ->
    1 = erlang:trace_pattern({scanode_link, call, 3}, true, [local]),
    1 = erlang:trace(Pid, true, [call]),
    _ = Fun(),
    1 = erlang:trace(Pid, false, [call]),
    Delivered = erlang:trace_delivered(Pid),
    receive
        {trace_delivered, Pid, Delivered} -> ok
    end,
    1 = erlang:trace_pattern({scanode_link, call, 3}, false, [local]),
    length([Call || {trace, P, call, _} = Call <- eleveldb_test:flush(), P =:= Pid]).
