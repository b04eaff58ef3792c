%% Calls whose answer is a message: exactly one each, whatever happens. Everything that does not kill the program runs over a port and against a node.
-module(async_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, groups/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_group/2, end_per_group/2, end_per_testcase/2]).
-export([
    any_context/1,
    many_under_way/1,
    keeps_the_order/1,
    rejected/1,
    reads/1,
    closed_under_writes/1,
    caller_dies/1,
    timeouts/1,
    bad_handles/1
]).
-export([program_killed/1, program_gone/1, program_stopped/1]).

suite() -> [{timetrap, {seconds, 240}}].

all() -> [{group, port}, {group, node}, {group, killed}].

groups() ->
    Killed = [program_killed, program_gone, program_stopped],
    Cases = [
        F
     || {F, 1} <- ?MODULE:module_info(exports), not lists:member(F, [init_per_suite, end_per_suite, module_info | Killed])
    ],
    [{port, [], Cases}, {node, [], Cases}, {killed, [], Killed}].

init_per_suite(Config) ->
    _ = test_program:executable(),
    Config.

end_per_suite(_Config) ->
    ok.

init_per_group(node, Config) ->
    #{node := Node} = Program = test_node:start(Config),
    [{target, #{node => Node}}, {program, Program} | Config];
init_per_group(_, Config) ->
    {ok, _} = application:ensure_all_started(scanode),
    [{target, #{}} | Config].

end_per_group(node, Config) ->
    ok = test_node:stop(?config(program, Config));
end_per_group(_, _Config) ->
    ok = application:stop(scanode).

end_per_testcase(_Case, _Config) ->
    [] = test_program:flush(),
    ok.

open(Config, Case) ->
    Dir =
        case ?config(target, Config) of
            #{node := _} -> filename:basename(test_program:directory(Config, Case));
            #{} -> test_program:directory(Config, Case)
        end,
    {ok, Db} = scanode:open(Dir, ?config(target, Config)),
    Db.

count(Db) ->
    scanode:fold(Db, fun(_, N) -> N + 1 end, 0, #{rows => keys}).

%% Terms that mean something elsewhere on the way are nothing but contexts.
any_context(Config) ->
    Db = open(Config, ?FUNCTION_NAME),
    Ref = make_ref(),
    Alias = erlang:monitor(process, self(), [{alias, demonitor}]),
    [
        begin
            ok = scanode:async_write(Db, Context, [{put, <<"k">>, <<"v">>}], #{}),
            receive
                Message -> {Context, ok} = Message
            end
        end
     || Context <- [
            ctx,
            {w1c_async_put, self(), <<"type">>, {<<"b">>, 1}},
            Ref,
            [alias | Ref],
            [[alias | Ref] | {any, term}],
            [alias | Alias],
            [],
            "string",
            #{a => [1.5, <<1:3>>]},
            fun erlang:abs/1,
            fun() -> Db end,
            'an atom that nobody else has',
            binary:copy(<<"x">>, 100000),
            1 bsl 1000
        ]
    ],
    true = erlang:demonitor(Alias, [flush]),
    ok = scanode:close(Db).

many_under_way(Config) ->
    Db = open(Config, ?FUNCTION_NAME),
    Count = 20000,
    [ok = scanode:async_write(Db, {ctx, I}, [{put, <<I:32>>, <<"v">>}], [{sync, I rem 100 =:= 0}]) || I <- lists:seq(1, Count)],
    [receive {{ctx, I}, Result} -> ok = Result end || I <- lists:seq(1, Count)],
    [] = test_program:flush(),
    Count = count(Db),
    ok = scanode:close(Db).

%% Writes of one process are applied in the order of the calls, of both kinds.
keeps_the_order(Config) ->
    Db = open(Config, ?FUNCTION_NAME),
    Count = 5000,
    [
        case I rem 50 of
            0 -> ok = scanode:put(Db, <<"k">>, <<I:32>>);
            _ -> ok = scanode:async_write(Db, I, [{put, <<"k">>, <<I:32>>}, {put, <<I:32>>, <<>>}], #{sync => I rem 7 =:= 0})
        end
     || I <- lists:seq(1, Count)
    ],
    ok = scanode:async_write(Db, last, [{put, <<"k">>, <<"last">>}], #{}),
    [receive {I, Result} -> ok = Result end || I <- lists:seq(1, Count), I rem 50 =/= 0],
    receive {last, ok} -> ok end,
    {ok, <<"last">>} = scanode:get(Db, <<"k">>),
    ok = scanode:close(Db).

%% Whatever write/3 returns is the result.
rejected(Config) ->
    Db = open(Config, ?FUNCTION_NAME),
    Result = fun(Ops, Options) ->
        Ref = make_ref(),
        ok = scanode:async_write(Db, Ref, Ops, Options),
        receive
            {Ref, Answer} -> Answer
        end
    end,
    {error, {rejected, {bad_request, _}}} = Result([{put, <<"a">>, <<>>}, {put, k, <<>>}], #{}),
    {error, {rejected, {bad_request, _}}} = Result(nonsense, #{}),
    {error, {rejected, {bad_option, _}}} = Result([], #{sink => true}),
    {error, {rejected, {bad_option, _}}} = Result([], #{timeout => -1}),
    {error, {rejected, {bad_option, _}}} = Result([], 1),
    {error, {rejected, {bad_request, _}}} = Result([{put, <<"a">>, binary:copy(<<0>>, 64 bsl 20)}], #{}),
    ok = Result([], #{}),
    0 = count(Db),
    ok = scanode:close(Db),
    {error, closed} = Result([], #{}).

reads(Config) ->
    Db = open(Config, ?FUNCTION_NAME),
    ok = scanode:put(Db, <<"k">>, <<"v">>),
    ok = scanode:async_get(Db, {a, 1}, <<"k">>),
    ok = scanode:async_get(Db, {a, 2}, <<"none">>),
    ok = scanode:async_get(Db, {a, 3}, k),
    receive {{a, 1}, One} -> {ok, <<"v">>} = One end,
    receive {{a, 2}, Two} -> not_found = Two end,
    receive {{a, 3}, Three} -> {error, {bad_request, _}} = Three end,
    ok = scanode:close(Db),
    ok = scanode:async_get(Db, {a, 4}, <<"k">>),
    receive {{a, 4}, Four} -> {error, closed} = Four end.

%% The store is closed while writes are under way: each is answered, and what was answered with ok is there.
closed_under_writes(Config) ->
    Target = ?config(target, Config),
    Db = open(Config, ?FUNCTION_NAME),
    {ok, #{dir := Dir}} = scanode:info(Db),
    Self = self(),
    Count = 3000,
    Writers = [
        spawn_link(fun() ->
            [ok = scanode:async_write(Db, I, [{put, <<N, I:32>>, <<"v">>}], #{}) || I <- lists:seq(1, Count)],
            Self ! {self(), under_way},
            Results = [receive {I, Result} -> {<<N, I:32>>, Result} end || I <- lists:seq(1, Count)],
            [] = test_program:flush(),
            Self ! {self(), Results}
        end)
     || N <- lists:seq(1, 4)
    ],
    First =
        receive
            {Writer, under_way} when is_pid(Writer) -> Writer
        end,
    ok = scanode:close(Db),
    Results = lists:append([receive {W, Answers} when is_list(Answers) -> Answers end || W <- Writers]),
    [receive {W, under_way} -> ok end || W <- Writers -- [First]],
    Name =
        case Target of
            #{node := _} -> filename:basename(Dir);
            #{} -> Dir
        end,
    {ok, Again} = scanode:open(Name, Target#{create_if_missing => false}),
    Written = [Key || {Key, ok} <- Results],
    [{error, closed} = Result || {_, Result} <- Results, Result =/= ok],
    Written = lists:sort(Written),
    Written = lists:reverse(scanode:fold(Again, fun(Key, Keys) -> [Key | Keys] end, [], #{rows => keys})),
    ct:log("~b of ~b were in time", [length(Written), length(Results)]),
    ok = scanode:close(Again).

%% A caller that ends leaves nothing behind.
caller_dies(Config) ->
    Db = open(Config, ?FUNCTION_NAME),
    Before = erlang:system_info(process_count),
    {_, Monitor} = spawn_monitor(fun() -> [ok = scanode:async_write(Db, I, [{put, <<I:32>>, <<>>}], [sync]) || I <- lists:seq(1, 1000)] end),
    receive
        {'DOWN', Monitor, _, _, Reason} -> normal = Reason
    end,
    ok = test_program:await(fun() -> count(Db) =:= 1000 end),
    ok = test_program:await(fun() -> erlang:system_info(process_count) =< Before + 20 end),
    ok = scanode:close(Db).

timeouts(Config) ->
    Db = open(Config, ?FUNCTION_NAME),
    [
        begin
            ok = scanode:async_write(Db, I, [{put, <<I:32>>, <<>>}], #{timeout => 0}),
            receive
                {I, ok} -> ok;
                {I, {error, {unknown, timeout}}} -> ok;
                {I, {error, {rejected, timeout}}} -> ok
            end
        end
     || I <- lists:seq(1, 200)
    ],
    ok = scanode:close(Db).

bad_handles(_Config) ->
    [?assertError(badarg, scanode:async_write(NoDb, ctx, [], #{})) || NoDb <- [1, atom, <<>>, {}, self()]],
    [?assertError(badarg, scanode:async_get(NoDb, ctx, <<>>)) || NoDb <- [1, atom, <<>>, {}, self()]].

%% Killed under synced writes: each is answered once, and what was answered with ok is there.
program_killed(Config) ->
    Dir = test_program:directory(Config, ?FUNCTION_NAME),
    {ok, Db} = scanode:open(Dir, #{}),
    OsPid = test_program:os_pid(),
    Count = 5000,
    [
        begin
            ok = scanode:async_write(Db, {ctx, I}, [{put, <<I:32>>, <<"v">>}], [sync]),
            [ok = test_program:kill("KILL", OsPid) || I =:= Count div 2]
        end
     || I <- lists:seq(1, Count)
    ],
    Results = [receive {{ctx, I}, Result} -> {I, Result} end || I <- lists:seq(1, Count)],
    [] = test_program:flush(),
    {ok, Again} = scanode:open(Dir, #{create_if_missing => false}),
    [{ok, <<"v">>} = scanode:get(Again, <<I:32>>) || {I, ok} <- Results],
    Failed = [Result || {_, Result} <- Results, Result =/= ok],
    [
        case Result of
            {error, {unknown, {down, _}}} -> ok;
            {error, closed} -> ok
        end
     || Result <- Failed
    ],
    ct:log("~b of ~b failed", [length(Failed), Count]),
    true = length(Failed) > 0,
    ok = scanode:close(Again).

program_gone(Config) ->
    {ok, Db} = scanode:open(test_program:directory(Config, ?FUNCTION_NAME), #{}),
    OsPid = test_program:os_pid(),
    ok = test_program:kill("KILL", OsPid),
    ok = test_program:await_exit(OsPid),
    ok = test_program:await(fun() -> scanode:get(Db, <<"k">>) =:= {error, closed} end),
    ok = scanode:async_write(Db, one, [], #{}),
    ok = scanode:async_get(Db, two, <<"k">>),
    receive {one, One} -> {error, closed} = One end,
    receive {two, Two} -> {error, closed} = Two end.

%% A program that never answers and is then stopped.
program_stopped(Config) ->
    {ok, Db} = scanode:open(test_program:directory(Config, ?FUNCTION_NAME), #{}),
    OsPid = test_program:os_pid(),
    ok = test_program:kill("STOP", OsPid),
    [ok = scanode:async_write(Db, I, [{put, <<I:32>>, <<>>}], #{}) || I <- lists:seq(1, 100)],
    ok = test_program:kill("KILL", OsPid),
    [receive {I, {error, {unknown, {down, _}}}} -> ok end || I <- lists:seq(1, 100)].
