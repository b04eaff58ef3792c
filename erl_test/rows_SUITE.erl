%% Rows, as a query wants them, against their plainest evaluation: over a port and against a node. And what they keep in memory.
-module(rows_SUITE).

-include_lib("common_test/include/ct.hrl").

-export([all/0, groups/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_group/2, end_per_group/2]).
-export([as_evaluated/1, every_odd_value/1, one_view_of_ranges/1, little_is_kept/1]).

suite() -> [{timetrap, {seconds, 300}}].

all() -> [{group, port}, {group, node}, {group, couch}].

groups() ->
    Cases = [as_evaluated, every_odd_value, one_view_of_ranges, little_is_kept],
    [{port, [], Cases}, {node, [], Cases}, {couch, [], Cases}].

init_per_suite(Config) ->
    _ = test_program:executable(),
    Config.

end_per_suite(_Config) ->
    ok.

init_per_group(port, Config) ->
    {ok, _} = application:ensure_all_started(scanode),
    [{target, #{}}, {tables, 200} | Config];
%% The other engine, with so little memory for writes that they are in the tree, in the log and in memory.
init_per_group(couch, Config) ->
    {ok, _} = application:ensure_all_started(scanode),
    [{target, #{engine => couch, write_buffer_size => 65536}}, {tables, 100} | Config];
init_per_group(node, Config) ->
    #{node := Node} = Program = test_node:start(Config),
    [{target, #{node => Node}}, {program, Program}, {tables, 15} | Config].

end_per_group(Group, _Config) when Group =:= port; Group =:= couch ->
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
    Options = [{numtests, Tables}, {start_size, 5}, {max_size, 40}, noshrink, nocolors, {on_output, fun output/2}],
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

every_odd_value(Config) ->
    Db = open(Config, ?FUNCTION_NAME),
    Queries = counters:new(1, []),
    ok = prop_rows:every_odd_value(Db, fun(_, _, _) -> counters:add(Queries, 1, 1) end),
    ct:log("~b queries", [counters:get(Queries, 1)]),
    ok = scanode:close(Db).

%% What is written while the first range is folded over is not seen in the others.
one_view_of_ranges(Config) ->
    Db = open(Config, ?FUNCTION_NAME),
    Rows = [{<<N:32>>, <<"old">>} || N <- lists:seq(1, 300)],
    ok = scanode:write(Db, [{put, Key, Value} || {Key, Value} <- Rows], #{}),
    Change = fun
        (Row, []) ->
            ok = scanode:write(Db, [{delete, Key} || {Key, _} <- Rows] ++ [{put, <<N:32, 0>>, <<"new">>} || N <- lists:seq(1, 300)], #{}),
            [Row];
        (Row, Folded) ->
            [Row | Folded]
    end,
    Ranges = [{<<200:32>>, undefined}, {<<100:32>>, <<200:32>>}, {undefined, <<100:32>>}],
    Want = lists:append([[Row || {Key, _} = Row <- Rows, Key >= From, Key < To] || {From, To} <- [{<<200:32>>, <<255>>}, {<<100:32>>, <<200:32>>}, {<<>>, <<100:32>>}]]),
    Want = lists:reverse(scanode:fold(Db, Change, [], #{ranges => Ranges, max_batch_bytes => 1, max_unacked_bytes => 1})),
    ok = scanode:close(Db).

-define(KEPT_ROWS, 20000).

%% Twenty bytes of every row of a scan, kept, keep these rows' own bytes and no batch. A value is 300 bytes, a batch 128 KiB, all of them 7 MB.
little_is_kept(Config) ->
    Db = open(Config, ?FUNCTION_NAME),
    Note = binary:copy(<<"note">>, 50),
    Rows = [{<<N:160>>, riak_rows:encode([{<<"id">>, <<N:160>>}, {<<"note">>, Note}, {<<"n">>, N}], encoding(N))} || N <- lists:seq(1, ?KEPT_ROWS)],
    ok = scanode:write(Db, [{put, Key, Value} || {Key, Value} <- Rows], #{}),
    Ids = [Key || {Key, _} <- Rows],
    Notes = [binary:part(Note, 0, 20) || _ <- Rows],
    Values = [binary:part(Value, 40, 20) || {_, Value} <- Rows],
    %% Cells of more than 64 bytes are binaries of their own, shared by what is cut out of them.
    _ = [
        {Form, ok} = {Form, kept(Db, Form, Keep, Want, Own)}
     || {Form, Keep, Want, Own} <- [
            {#{rows => keys}, fun(Key) -> Key end, Ids, 0},
            {#{rows => kv}, fun({Key, _}) -> Key end, Ids, 0},
            {#{rows => kv}, fun({_, Value}) -> binary:part(Value, 40, 20) end, Values, 400},
            {#{rows => cells}, fun([Id, _, _]) -> Id end, Ids, 0},
            {#{rows => cells}, fun([_, Cell, _]) -> binary:part(Cell, 0, 20) end, Notes, 200},
            {#{rows => cells, with_keys => true}, fun({Key, _}) -> Key end, Ids, 0},
            {#{rows => terms}, fun([{_, Id} | _]) -> Id end, Ids, 0},
            {#{rows => {select, [<<"note">>, <<"id">>]}}, fun([_, Id]) -> Id end, Ids, 0}
        ]
    ],
    ok = scanode:close(Db).

encoding(N) when N rem 2 =:= 0 -> ttb;
encoding(_) -> msgpack.

%% Folds in a process of its own, which then refers to no binary larger than Own bytes, and makes the BEAM hold no more of them than a row has.
kept(Db, Form, Keep, Want, Own) ->
    Self = self(),
    Before = binaries(),
    {Pid, Monitor} = spawn_monitor(fun() ->
        Kept = lists:reverse(scanode:fold(Db, fun(Row, Acc) -> [Keep(Row) | Acc] end, [], Form)),
        true = garbage_collect(),
        {binary, Binaries} = process_info(self(), binary),
        Self ! {self(), lists:max([0 | [Size || {_, Size, _} <- Binaries]])},
        receive
            compare -> exit({kept, Kept})
        end
    end),
    Largest =
        receive
            {Pid, Size} -> Size;
            {'DOWN', Monitor, _, _, Why} -> Why
        end,
    Grown = binaries() - Before,
    Pid ! compare,
    receive
        {'DOWN', Monitor, _, _, {kept, Want}} when Largest =< Own, Grown < ?KEPT_ROWS * (Own + 40) -> ok;
        {'DOWN', Monitor, _, _, {kept, Kept}} -> {largest, Largest, grown, Grown, same, Kept =:= Want}
    end.

%% Bytes of binaries outside of heaps, after every process has let go of its garbage.
binaries() ->
    _ = [garbage_collect(Pid) || Pid <- processes()],
    erlang:memory(binary).
