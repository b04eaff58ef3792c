%% Folds: what they return, how they end, and what callbacks may do meanwhile.
-module(eleveldb_fold_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    whole/1,
    from_a_key/1,
    bad_options/1,
    bounds_are_streams/1,
    break/1,
    other_exceptions/1,
    own_writes/1,
    unmoved_by_others/1,
    closes_its_store/1,
    closed_by_others/1,
    program_ends/1,
    folder_is_killed/1,
    nested/1,
    refreshed/1,
    refreshed_keys/1,
    many_streams/1,
    bad_filter/1,
    bad_row/1,
    no_batch_is_pinned/1,
    mailbox/1
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
    Db = eleveldb_test:open(Config, Case),
    [{db, Db}, {rows, eleveldb_test:fill(Db, 3000, 100)} | Config].

%% Nothing is left of a fold: no message, and no stream in the program.
end_per_testcase(_Case, Config) ->
    [] = eleveldb_test:flush(),
    ok = eleveldb_test:await(fun() ->
        case eleveldb_test:info(#{}) of
            {ok, #{streams := 0}} -> true;
            _ -> false
        end
    end),
    try
        ok = eleveldb:close(?config(db, Config))
    catch
        error:badarg -> ok
    end.

collect(Row, Rows) -> [Row | Rows].

count(_, N) -> N + 1.

%% Each way to fold over all rows.
folds(Db) ->
    [
        fun(Fun, Acc) -> eleveldb:fold(Db, Fun, Acc, []) end,
        fun(Fun, Acc) -> eleveldb:fold_keys(Db, Fun, Acc, [{fill_cache, false}]) end,
        fun(Fun, Acc) -> eleveldb:fold(Db, Fun, Acc, [{fold_method, streaming}, {max_batch_bytes, 1000}]) end,
        fun(Fun, Acc) ->
            {ok, It} = eleveldb:iterator(Db, []),
            eleveldb:do_fold(It, Fun, Acc, [])
        end
    ].

whole(Config) ->
    Rows = ?config(rows, Config),
    Db = ?config(db, Config),
    ?assertEqual(Rows, lists:reverse(eleveldb:fold(Db, fun collect/2, [], []))),
    ?assertEqual(Rows, lists:reverse(eleveldb:fold(Db, fun collect/2, [], [{fold_method, iterator}, {iterator_refresh, true}]))),
    ?assertEqual(Rows, lists:reverse(eleveldb:fold(Db, fun collect/2, [], [{fold_method, streaming}]))),
    ?assertEqual([K || {K, _} <- Rows], lists:reverse(eleveldb:fold_keys(Db, fun collect/2, [], [{fold_method, streaming}]))).

%% By either name; the key need not be there.
from_a_key(Config) ->
    Db = ?config(db, Config),
    [
        begin
            ?assertEqual([<<3000:32>>], eleveldb:fold_keys(Db, fun collect/2, [], [{Name, <<2999:32, 0>>}])),
            ?assertEqual(1, eleveldb:fold(Db, fun count/2, 0, [{Name, <<3000:32>>}])),
            ?assertEqual(0, eleveldb:fold(Db, fun count/2, 0, [{Name, <<3000:32, 0>>}])),
            ?assertEqual(1, eleveldb:fold(Db, fun count/2, 0, [{fold_method, streaming}, {Name, <<3000:32>>}])),
            ?assertEqual(3000, eleveldb:fold(Db, fun count/2, 0, [{Name, first}]))
        end
     || Name <- [first_key, start_key]
    ].

bad_options(Config) ->
    Db = ?config(db, Config),
    [?assertError({badmatch, false}, eleveldb:fold(Db, fun count/2, 0, [{first_key, Odd}])) || Odd <- ["key", last, 7]],
    [?assertError({badmatch, false}, eleveldb:fold_keys(Db, fun count/2, 0, [{start_key, Odd}])) || Odd <- ["key", last, 7]],
    ?assertError({case_clause, odd}, eleveldb:fold(Db, fun count/2, 0, [{fold_method, odd}])),
    Stream = fun(Options) -> eleveldb:fold(Db, fun count/2, 0, [{fold_method, streaming} | Options]) end,
    [?assertError(badarg, Stream([Odd])) || Odd <- [{start_key, "key"}, {start_key, first}, {end_key, "key"}, {end_key, 7}]],
    ?assertError(badarg, eleveldb:fold(Db, fun count/2, 0, odd)),
    ?assertError(badarg, eleveldb:fold_keys(Db, fun count/2, 0, odd)),
    ?assertError(badarg, eleveldb:fold(db, fun count/2, 0, [])),
    %% Passed over.
    Odd = [{limit, -1}, {limit, 1 bsl 32}, {max_batch_bytes, odd}, {max_unacked_bytes, 1.0}, {encoding, x}, odd],
    ?assertEqual(3000, Stream(Odd)),
    ?assertEqual(3000, Stream([{max_batch_bytes, 0}, {max_unacked_bytes, 0}])).

%% With the method iterator, bounds but the first are nothing.
bounds_are_streams(Config) ->
    Db = ?config(db, Config),
    Options = [{start_key, <<100:32>>}, {end_key, <<200:32>>}, {start_inclusive, false}, {end_inclusive, true}, {limit, 7}],
    ?assertEqual(2901, eleveldb:fold(Db, fun count/2, 0, Options)),
    ?assertEqual(7, eleveldb:fold(Db, fun count/2, 0, [{fold_method, streaming} | Options])),
    ?assertEqual(100, eleveldb:fold(Db, fun count/2, 0, [{fold_method, streaming} | proplists:delete(limit, Options)])).

%% As Riak ends every fold.
break(Config) ->
    [
        ?assertThrow(
            {break, N},
            Fold(
                fun
                    (_, At) when At =:= N -> throw({break, At});
                    (_, At) -> At + 1
                end,
                0
            )
        )
     || Fold <- folds(?config(db, Config)), N <- [0, 1, 100, 2999]
    ].

other_exceptions(Config) ->
    [
        begin
            ?assertError(badarg, Fold(fun(_, _) -> erlang:error(badarg) end, ok)),
            ?assertError({scan, closed}, Fold(fun(_, _) -> erlang:error({scan, closed}) end, ok)),
            ?assertExit(stop, Fold(fun(_, _) -> exit(stop) end, ok))
        end
     || Fold <- folds(?config(db, Config))
    ].

%% The hash trees of Riak delete what they fold over.
own_writes(Config) ->
    Db = ?config(db, Config),
    Delete = fun({K, _}, Keys) ->
        ok = eleveldb:delete(Db, K, []),
        ok = eleveldb:put(Db, <<K/binary, "new">>, <<>>, []),
        [K | Keys]
    end,
    Deleted = eleveldb:fold(Db, Delete, [], []),
    ?assertEqual([K || {K, _} <- ?config(rows, Config)], lists:reverse(Deleted)),
    ?assertEqual(3000, length(eleveldb_test:keys(Db))),
    not_found = eleveldb:get(Db, <<1:32>>, []).

unmoved_by_others(Config) ->
    Db = ?config(db, Config),
    Rows = ?config(rows, Config),
    [
        begin
            Clear = fun(Row, Got) ->
                _ = Got =:= [] andalso eleveldb_test:in_process(fun() -> eleveldb:write(Db, [{delete, K} || {K, _} <- Rows], []) end),
                [Row | Got]
            end,
            ?assertEqual(3000, length(Fold(Clear, []))),
            true = eleveldb:is_empty(Db),
            ok = eleveldb:write(Db, [{put, K, V} || {K, V} <- Rows], [])
        end
     || Fold <- folds(Db)
    ].

%% It fails, also when all rows are here already.
closes_its_store(Config) ->
    [
        begin
            Db = eleveldb_test:open(Config, ?FUNCTION_NAME),
            _ = eleveldb_test:fill(Db, Count, 100),
            ?assertError(
                badarg,
                (lists:nth(Which, folds(Db)))(
                    fun
                        (_, 0) -> {closed, eleveldb:close(Db)};
                        (_, Acc) -> Acc
                    end,
                    0
                )
            )
        end
     || Which <- lists:seq(1, 4), Count <- [1, 3000]
    ].

closed_by_others(Config) ->
    Db = ?config(db, Config),
    Self = self(),
    Wait = fun
        (_, 1500) ->
            _ = Self ! {half, self()},
            receive
                go_on -> 1501
            end;
        (_, N) ->
            N + 1
    end,
    Folders = [spawn_monitor(fun() -> Fold(Wait, 0) end) || Fold <- folds(Db)],
    [
        receive
            {half, Pid} -> ok
        end
     || {Pid, _} <- Folders
    ],
    ok = eleveldb:close(Db),
    [
        begin
            _ = Pid ! go_on,
            receive
                {'DOWN', Monitor, process, Pid, Reason} -> ?assertMatch({badarg, _}, Reason)
            end
        end
     || {Pid, Monitor} <- Folders
    ].

%% Not a short result.
program_ends(Config) ->
    Db = ?config(db, Config),
    OsPid = eleveldb_test:os_pid(),
    Kill = fun
        (_, 0) ->
            ok = eleveldb_test:kill(OsPid),
            ok = eleveldb_test:await(fun() -> string:trim(os:cmd("ps -o stat= -p " ++ integer_to_list(OsPid))) =:= "" end),
            1;
        (_, N) ->
            N + 1
    end,
    Error =
        try eleveldb:fold(Db, Kill, 0, [{fold_method, streaming}, {max_batch_bytes, 1000}, {max_unacked_bytes, 5000}]) of
            N -> {returned, N}
        catch
            error:{streaming_error, "IO error: " ++ _} -> failed;
            error:badarg -> failed
        end,
    ?assertEqual(failed, Error).

folder_is_killed(Config) ->
    Db = ?config(db, Config),
    Self = self(),
    Block = fun(_, _) ->
        _ = Self ! {here, self()},
        receive
            never -> ok
        end
    end,
    [
        begin
            {Pid, Monitor} = spawn_monitor(fun() -> Fold(Block, ok) end),
            receive
                {here, Pid} -> true = exit(Pid, kill)
            end,
            receive
                {'DOWN', Monitor, process, Pid, killed} -> ok
            end
        end
     || Fold <- folds(Db)
    ],
    %% The iterator of a fold that was killed has no maker any more.
    [exit(Pid, kill) || {_, Pid, _, _} <- supervisor:which_children(eleveldb_iterator_sup)].

nested(Config) ->
    Db = ?config(db, Config),
    Inner = fun
        (<<I:32>>, N) when I rem 1000 =:= 0 -> N + eleveldb:fold(Db, fun count/2, 0, [{first_key, <<2001:32>>}]);
        (_, N) -> N
    end,
    ?assertEqual(3000, eleveldb:fold_keys(Db, Inner, 0, [])).

%% Every row that was there all the time comes once, whatever comes and goes meanwhile. The five minutes are a setting.
refreshed(Config) ->
    Db = ?config(db, Config),
    ok = application:set_env(eleveldb, iterator_refresh_ms, 0),
    try
        Add = fun
            ({<<I:32>> = K, _}, Keys) ->
                ok = eleveldb:put(Db, <<(I + 1500):32, "new">>, <<>>, []),
                [K | Keys];
            ({K, _}, Keys) ->
                [K | Keys]
        end,
        %% Batches are of 128 KiB: the rows are several.
        Keys = eleveldb:fold(Db, Add, [], [{iterator_refresh, true}]),
        Old = [K || <<_:32>> = K <- Keys],
        ?assertEqual([K || {K, _} <- ?config(rows, Config)], lists:reverse(Old)),
        ?assertEqual(lists:usort(Keys), lists:reverse(Keys)),
        true = length(Keys) > 3000,
        {ok, It} = eleveldb:iterator(Db, [{iterator_refresh, true}], keys_only),
        ok = eleveldb:put(Db, <<255, 255, 255, 255>>, <<>>, []),
        true = lists:member(<<255, 255, 255, 255>>, eleveldb:do_fold(It, fun collect/2, [], []))
    after
        ok = application:unset_env(eleveldb, iterator_refresh_ms)
    end.

refreshed_keys(Config) ->
    ok = application:set_env(eleveldb, iterator_refresh_ms, 0),
    try
        ?assertEqual(3000, eleveldb:fold_keys(?config(db, Config), fun count/2, 0, [{iterator_refresh, true}]))
    after
        ok = application:unset_env(eleveldb, iterator_refresh_ms)
    end.

%% As many as Riak TS has at most. While half of them block, the others end.
many_streams(Config) ->
    Db = ?config(db, Config),
    Self = self(),
    Options = [{fold_method, streaming}, {max_batch_bytes, 2000}, {max_unacked_bytes, 10000}],
    Block = fun
        (_, 10) ->
            _ = Self ! {blocked, self()},
            receive
                go_on -> 11
            end;
        (_, N) ->
            N + 1
    end,
    Start = fun(Fun) -> spawn_monitor(fun() -> exit({folded, eleveldb:fold(Db, Fun, 0, Options)}) end) end,
    End = fun({Pid, Monitor}) ->
        receive
            {'DOWN', Monitor, process, Pid, How} -> ?assertEqual({folded, 3000}, How)
        end
    end,
    Blocked = [Start(Block) || _ <- lists:seq(1, 30)],
    [
        receive
            {blocked, Pid} -> ok
        end
     || {Pid, _} <- Blocked
    ],
    lists:foreach(End, [Start(fun count/2) || _ <- lists:seq(1, 30)]),
    [Pid ! go_on || {Pid, _} <- Blocked],
    lists:foreach(End, Blocked).

bad_filter(Config) ->
    Db = ?config(db, Config),
    [
        ?assertError({badmatch, {error, _, [_ | _]}}, eleveldb:fold(Db, fun count/2, 0, [{fold_method, streaming}, {range_filter, Odd}]))
     || Odd <- [[], odd, {odd}, {'=', {field, <<"a">>}}, {'>', {field, <<"a">>, varchar}, {const, <<"a">>}}, fun() -> ok end, self(), make_ref(), #{}]
    ].

%% Rows before it come; then it is an error.
bad_row(Config) ->
    Db = ?config(db, Config),
    Object = scanode_row:encode([{<<"a">>, 1}], ttb),
    ok = eleveldb:write(Db, [{put, <<0, I>>, Object} || I <- lists:seq(1, 9)] ++ [{put, <<0, 5>>, <<"odd">>}], []),
    Self = self(),
    Tell = fun({K, _}, ok) ->
        _ = Self ! {row, K},
        ok
    end,
    Filter = {'=', {field, <<"a">>, sint64}, {const, 1}},
    ?assertError({streaming_error, [_ | _]}, eleveldb:fold(Db, Tell, ok, [{fold_method, streaming}, {start_key, <<0, 1>>}, {end_key, <<0, 255>>}, {range_filter, Filter}])),
    ?assertEqual([{row, <<0, I>>} || I <- lists:seq(1, 4)], eleveldb_test:flush()).

no_batch_is_pinned(Config) ->
    Pinned = fun({K, V}, ok) ->
        {4, 100} = {binary:referenced_byte_size(K), binary:referenced_byte_size(V)},
        ok
    end,
    ok = eleveldb:fold(?config(db, Config), Pinned, ok, []).

%% What others send meanwhile stays, in order.
mailbox(Config) ->
    [
        begin
            Send = fun(_, N) ->
                _ = self() ! {other, N},
                N + 1
            end,
            3000 = Fold(Send, 0),
            ?assertEqual([{other, N} || N <- lists:seq(0, 2999)], eleveldb_test:flush())
        end
     || Fold <- folds(?config(db, Config))
    ].
