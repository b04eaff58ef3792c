%% Aggregates, over a port and over a node.
-module(aggregate_SUITE).

-include_lib("common_test/include/ct.hrl").

-export([all/0, groups/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_group/2, end_per_group/2]).
-export([documented/1, like_lists/1, parts_like_whole/1, rounded/1, options/1, faults/1, no_rows/1, zeros/1, merges_refused/1, many_groups/1, deleted_rows/1]).

suite() -> [{timetrap, {seconds, 240}}].

all() -> [{group, port}, {group, node}, {group, couch}].

groups() ->
    [
        {port, [], [documented, like_lists, parts_like_whole, rounded, options, faults, no_rows, zeros, merges_refused, many_groups, deleted_rows]},
        {couch, [], [documented, like_lists, parts_like_whole, deleted_rows]},
        {node, [], [parts_like_whole, faults, many_groups]}
    ].

init_per_suite(Config) ->
    _ = test_program:executable(),
    Config.

end_per_suite(_Config) ->
    ok.

init_per_group(port, Config) ->
    {ok, _} = application:ensure_all_started(scanode),
    [{target, #{}} | Config];
%% The other engine, with so little memory for writes that they are in the tree, in the log and in memory.
init_per_group(couch, Config) ->
    {ok, _} = application:ensure_all_started(scanode),
    [{target, #{engine => couch, write_buffer_size => 65536}} | Config];
init_per_group(node, Config) ->
    #{node := Node} = Program = test_node:start(Config),
    [{target, #{node => Node}}, {program, Program} | Config].

end_per_group(Group, _Config) when Group =:= port; Group =:= couch ->
    ok = application:stop(scanode);
end_per_group(node, Config) ->
    ok = test_node:stop(?config(program, Config)).

open(Config, Case) ->
    Dir =
        case ?config(target, Config) of
            #{node := _} -> filename:basename(test_program:directory(Config, Case));
            #{} -> test_program:directory(Config, Case)
        end,
    {ok, Db} = scanode:open(Dir, ?config(target, Config)),
    Db.

put_rows(Db, Rows) ->
    Keyed = lists:zip(lists:seq(1, length(Rows)), Rows),
    ok = scanode:write(Db, [{put, <<N:32>>, riak_rows:encode(Row, element(1 + N rem 2, {ttb, msgpack}))} || {N, Row} <- Keyed], #{}).

documented(Config) ->
    Db = open(Config, ?FUNCTION_NAME),
    Examples = protocol_SUITE:examples("docs/aggregates.md"),
    true = length(Examples) >= 5,
    lists:foldl(fun(Example, Bound) -> element(2, protocol_SUITE:evaluate(Example, Bound)) end, [{'Db', Db}], Examples),
    ok = scanode:close(Db).

like_lists(Config) ->
    check(Config, ?FUNCTION_NAME, fun prop_aggregate:like_lists/1).

parts_like_whole(Config) ->
    check(Config, ?FUNCTION_NAME, fun prop_aggregate:parts_like_whole/1).

rounded(Config) ->
    check(Config, ?FUNCTION_NAME, fun prop_aggregate:rounded/1).

%% SEED='{A,B,C}', as printed or as a failure names it, repeats a run.
check(Config, Case, Property) ->
    Db = open(Config, Case),
    Seed =
        case os:getenv("SEED") of
            false -> {rand:uniform(1 bsl 31), rand:uniform(1 bsl 31), rand:uniform(1 bsl 31)};
            Text ->
                {ok, Tokens, _} = erl_scan:string(Text ++ "."),
                {ok, Term} = erl_parse:parse_term(Tokens),
                Term
        end,
    ct:pal("SEED='~p'", [Seed]),
    ok = prop_aggregate:check(Property, Db, Seed, 1000),
    ok = scanode:close(Db).

options(Config) ->
    Db = open(Config, ?FUNCTION_NAME),
    Count = [{count, all}],
    {ok, [[0]]} = scanode:aggregate(Db, #{compute => Count}),
    {ok, [[0]]} = scanode:aggregate(Db, [{compute, Count}, {timeout, 60000}]),
    [
        {Bad, {error, {bad_option, _}}} = {Bad, scanode:aggregate(Db, maps:merge(#{compute => Count}, Bad))}
     || Bad <- [
            #{compute => []},
            #{compute => [{sum, all}]},
            #{compute => [{median, <<"x">>}]},
            #{compute => {count, all}},
            #{group_by => <<"x">>},
            #{group_by => [{time, <<"x">>, 0}]},
            #{group_by => [{time, <<"x">>, 1.0}]},
            #{group_by => [x]},
            #{order => [{2, asc}]},
            #{order => [{0, asc}]},
            #{order => [{1, up}]},
            #{max_groups => 0},
            #{max_groups => 1000001},
            #{partial => yes},
            #{parallel => 0},
            #{parallel => 65},
            #{parallel => true},
            #{limit => -1},
            #{rows => keys},
            #{with_keys => true},
            #{on_foreign => skip},
            #{continue => <<1>>},
            #{timeout => soon}
        ]
    ],
    {error, {bad_option, _}} = scanode:aggregate(Db, #{group_by => [<<"x">>]}),
    {error, {bad_filter, _}} = scanode:aggregate(Db, #{compute => Count, filter => nonsense}),
    ok = scanode:close(Db),
    {error, closed} = scanode:aggregate(Db, #{compute => Count}).

faults(Config) ->
    Db = open(Config, ?FUNCTION_NAME),
    Max = 1.7976931348623157e308,
    put_rows(Db, [[{<<"g">>, N}, {<<"text">>, <<"t">>}, {<<"huge">>, Max}] || N <- lists:seq(1, 20)]),
    [
        begin
            {error, {bad_row, Text}} = scanode:aggregate(Db, #{compute => [{Op, <<"text">>}]}),
            [{_, _} = binary:match(Text, Part) || Part <- [<<"text">>, <<"<<0,0,0,1>>">>, atom_to_binary(Op, utf8)]]
        end
     || Op <- [sum, avg, stddev_pop, stddev_samp]
    ],
    {error, {bad_row, _}} = scanode:aggregate(Db, #{compute => [], group_by => [{time, <<"text">>, 10}]}),
    {error, {bad_row, _}} = scanode:aggregate(Db, #{compute => [], group_by => [{time, <<"huge">>, 10}]}),
    {error, {overflow, _}} = scanode:aggregate(Db, #{compute => [{sum, <<"huge">>}], partial => false}),
    %% Rounded once, at the end.
    {ok, [[Max, 0.0]]} = scanode:aggregate(Db, #{compute => [{avg, <<"huge">>}, {stddev_pop, <<"huge">>}]}),
    {ok, Partial} = scanode:aggregate(Db, #{compute => [{sum, <<"huge">>}], partial => true}),
    {error, {overflow, _}} = scanode:merge_aggregates([Partial]),
    ByGroup = #{compute => [{count, all}], group_by => [<<"g">>]},
    {error, {too_many_groups, _}} = scanode:aggregate(Db, ByGroup#{max_groups => 19}),
    {ok, Rows} = scanode:aggregate(Db, ByGroup#{max_groups => 20}),
    20 = length(Rows),
    Halves = [scanode:aggregate(Db, ByGroup#{max_groups => 19, partial => true, start => <<A:32>>, 'end' => <<B:32>>}) || {A, B} <- [{1, 10}, {10, 21}]],
    {error, {too_many_groups, _}} = scanode:merge_aggregates([P || {ok, P} <- Halves]),
    {ok, _} = scanode:aggregate(Db, ByGroup#{max_groups => 1, filter => {'=', {field, <<"g">>, sint64}, {const, 7}}}),
    ok = scanode:put(Db, <<5:32, 1>>, <<"no object">>),
    {error, {bad_row, _}} = scanode:aggregate(Db, #{compute => [{count, all}]}),
    ok = scanode:put(Db, <<5:32, 1>>, riak_rows:object(0, term_to_binary([{<<"g">>, an_atom}]))),
    {error, {bad_row, _}} = scanode:aggregate(Db, ByGroup),
    {error, {bad_row, _}} = scanode:aggregate(Db, #{compute => [{max, <<"g">>}]}),
    {ok, [[21]]} = scanode:aggregate(Db, #{compute => [{count, <<"g">>}]}),
    ok = scanode:close(Db).

no_rows(Config) ->
    Db = open(Config, ?FUNCTION_NAME),
    Ops = [count, sum, avg, min, max, stddev_pop, stddev_samp, first, last],
    Query = #{compute => [{count, all} | [{Op, <<"x">>} || Op <- Ops]]},
    Nothing = {ok, [[0, 0 | [[] || _ <- tl(Ops)]]]},
    Nothing = scanode:aggregate(Db, Query),
    {ok, []} = scanode:aggregate(Db, Query#{group_by => [<<"g">>]}),
    {ok, Partial} = scanode:aggregate(Db, Query#{partial => true}),
    Nothing = scanode:merge_aggregates([Partial, Partial]),
    %% NULL in all rows.
    put_rows(Db, [[{<<"x">>, []}], [{<<"y">>, 1}]]),
    {ok, [[2, 0 | Rest]]} = scanode:aggregate(Db, Query),
    {ok, [[0, 0 | Rest]]} = Nothing,
    ok = scanode:close(Db).

%% What rounds to zero has no sign, whoever rounds.
zeros(Config) ->
    Db = open(Config, ?FUNCTION_NAME),
    put_rows(Db, [[{<<"x">>, -5.0e-324}], [{<<"x">>, -0.0}]]),
    Query = #{compute => [{avg, <<"x">>}, {max, <<"x">>}]},
    {ok, Rows} = scanode:aggregate(Db, Query),
    {ok, Partial} = scanode:aggregate(Db, Query#{partial => true}),
    Zeros = term_to_binary([[0.0, 0.0]]),
    {ok, Merged} = scanode:merge_aggregates([Partial]),
    [Zeros, Zeros] = [term_to_binary(R) || R <- [Rows, Merged]],
    ok = scanode:close(Db).

merges_refused(Config) ->
    Db = open(Config, ?FUNCTION_NAME),
    Query = #{compute => [{count, all}], partial => true},
    {ok, Partial} = scanode:aggregate(Db, Query),
    [
        begin
            {ok, Other} = scanode:aggregate(Db, maps:merge(Query, Change)),
            {error, {bad_request, _}} = scanode:merge_aggregates([Partial, Other])
        end
     || Change <- [
            #{compute => [{count, <<"x">>}]},
            #{group_by => [<<"x">>]},
            #{limit => 1},
            #{order => [{1, asc}]},
            #{reverse => true},
            #{filter => {'=', {field, <<"x">>, sint64}, {const, 1}}}
        ]
    ],
    {ok, Same} = scanode:aggregate(Db, Query#{limit => 0, start => <<"a">>, deadline => 60000, max_batch_bytes => 10}),
    {ok, [[0]]} = scanode:merge_aggregates([Partial, Same]),
    [{error, {bad_request, _}} = scanode:merge_aggregates(Bad) || Bad <- [[], [Partial, x], x, {ok, Partial}, [Partial | x]]],
    ok = scanode:close(Db).

%% More than one window of batches.
many_groups(Config) ->
    Db = open(Config, ?FUNCTION_NAME),
    N = 20000,
    put_rows(Db, [[{<<"g">>, integer_to_binary(I)}, {<<"x">>, I}] || I <- lists:seq(1, N)]),
    Query = #{compute => [{sum, <<"x">>}], group_by => [<<"g">>], max_groups => N, max_batch_bytes => 1000, max_unacked_bytes => 3000},
    {ok, Rows} = scanode:aggregate(Db, Query),
    Rows = lists:sort([[integer_to_binary(I), I] || I <- lists:seq(1, N)]),
    {ok, Top} = scanode:aggregate(Db, Query#{order => [{2, desc}], limit => 3}),
    [[<<"20000">>, 20000], [<<"19999">>, 19999], [<<"19998">>, 19998]] = Top,
    ok = scanode:close(Db).

deleted_rows(Config) ->
    Db = open(Config, ?FUNCTION_NAME),
    put_rows(Db, [[{<<"x">>, 1}], [{<<"x">>, 2}]]),
    ok = scanode:put(Db, <<9:32>>, riak_rows:tombstone()),
    {ok, [[2]]} = scanode:aggregate(Db, #{compute => [{count, all}]}),
    ok = scanode:close(Db).
