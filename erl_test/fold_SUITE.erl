%% Folds: what they deliver, against a sorted list and against what eleveldb was recorded to deliver, and how they end. Everything runs over a port and
%% against a node.
-module(fold_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, groups/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_group/2, end_per_group/2]).
-export([
    bounds/1,
    limits/1,
    recorded_ranges/1,
    keys_and_values/1,
    batches_under_credit/1,
    slow_consumer/1,
    exceptions_of_the_function/1,
    exception_stops_the_scan/1,
    closed_during_fold/1,
    two_at_once/1,
    nested/1,
    sees_a_snapshot/1,
    writes_inside/1,
    bad_options/1,
    filters/1,
    bad_filters/1,
    bad_rows/1,
    time_without_progress/1,
    consumer_killed/1,
    any_operations/1
]).

suite() -> [{timetrap, {seconds, 240}}].

all() -> [{group, port}, {group, node}, {group, couch}].

groups() ->
    Cases = [
        F
     || {F, 1} <- ?MODULE:module_info(exports), not lists:member(F, [init_per_suite, end_per_suite, module_info])
    ],
    [{port, [], Cases}, {node, [], Cases}, {couch, [], Cases}].

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

%% A node takes relative directories, below its own; a port any.
open(Config, Case) ->
    Dir =
        case ?config(target, Config) of
            #{node := _} -> filename:basename(test_program:directory(Config, Case));
            #{} -> test_program:directory(Config, Case)
        end,
    {ok, Db} = scanode:open(Dir, ?config(target, Config)),
    Db.

open(Config, Case, Rows) ->
    Db = open(Config, Case),
    ok = scanode:write(Db, [{put, K, V} || {K, V} <- Rows], #{}),
    Db.

collect(Db, Opts) ->
    lists:reverse(scanode:fold(Db, fun(Row, Rows) -> [Row | Rows] end, [], Opts)).

count(_Row, Count) ->
    Count + 1.

numbered(Count) ->
    [{<<I:32>>, integer_to_binary(I)} || I <- lists:seq(1, Count)].

%% The error of a fold that fails, and the rows before it.
failure(Db, Opts) ->
    Self = self(),
    Tag = make_ref(),
    try scanode:fold(Db, fun(Row, N) -> Self ! {Tag, Row}, N + 1 end, 0, Opts) of
        Count -> error({complete, Count})
    catch
        error:{scan, Reason} -> {Reason, tagged(Tag)}
    end.

tagged(Tag) ->
    receive
        {Tag, Row} -> [Row | tagged(Tag)]
    after 0 -> []
    end.

no_streams(Db) ->
    test_program:await(fun() ->
        {ok, #{streams := Streams}} = scanode:info(Db),
        Streams =:= 0
    end).

%% Every bound there is, over every kind of neighbour, against the definition.
bounds(Config) ->
    Keys = [<<>>, <<0>>, <<0, 0>>, <<"a">>, <<"a", 0>>, <<"ab">>, <<"a", 255>>, <<"b">>, <<255>>, <<255, 255>>],
    Rows = [{K, <<"v", K/binary>>} || K <- Keys],
    Db = open(Config, ?FUNCTION_NAME, Rows),
    Bounds = [none, <<1>>, <<"aa">>, <<255, 255, 255>> | Keys],
    [
        begin
            Want = [Row || {K, _} = Row <- Rows, above(K, Start, StartIn), below(K, End, EndIn)],
            Want = collect(Db, [{start_inclusive, StartIn}, {end_inclusive, EndIn} | bound(start, Start) ++ bound('end', End)])
        end
     || Start <- Bounds, End <- Bounds, StartIn <- [true, false], EndIn <- [true, false]
    ],
    %% The defaults.
    [{<<"a", 0>>, _}, {<<"ab">>, _}, {<<"a", 255>>, _}] = collect(Db, #{start => <<"a", 0>>, 'end' => <<"b">>}),
    ok = scanode:close(Db).

above(_, none, _) -> true;
above(K, Start, true) -> K >= Start;
above(K, Start, false) -> K > Start.

below(_, none, _) -> true;
below(K, End, true) -> K =< End;
below(K, End, false) -> K < End.

bound(_, none) -> [];
bound(Name, Key) -> [{Name, Key}].

limits(Config) ->
    Rows = numbered(100),
    Db = open(Config, ?FUNCTION_NAME, Rows),
    [
        begin
            Want = lists:sublist(Rows, Limit),
            Want = collect(Db, #{limit => Limit, max_batch_bytes => Bytes})
        end
     || Limit <- [1, 2, 50, 99, 100, 101, 1 bsl 60], Bytes <- [1, 100, 131072]
    ],
    Rows = collect(Db, #{limit => 0}),
    ok = scanode:close(Db).

%% testdata/range_cases.term: what eleveldb delivered.
recorded_ranges(Config) ->
    {ok, Datasets} = file:consult(testdata("range_datasets.term")),
    {ok, Cases} = file:consult(testdata("range_cases.term")),
    Dbs = maps:from_list([{Name, open(Config, Name, Rows)} || {Name, Rows} <- Datasets]),
    [
        {Case, Keys} = {Case, collect(maps:get(Dataset, Dbs), [{rows, keys} | bound(start, Start) ++ bound('end', End) ++ Opts])}
     || {Case, Dataset, Start, End, Opts, Keys} <- Cases
    ],
    ct:log("~b cases", [length(Cases)]),
    [ok = scanode:close(Db) || Db <- maps:values(Dbs)].

testdata(Name) ->
    filename:join([filename:dirname(code:which(?MODULE)), "testdata", Name]).

keys_and_values(Config) ->
    Rows = [{<<>>, <<>>}, {<<1>>, binary:copy(<<7>>, 70000)}, {<<2>>, <<131, 104, 255>>}, {binary:copy(<<9>>, 5000), <<"v">>}],
    Db = open(Config, ?FUNCTION_NAME, Rows),
    Rows = collect(Db, []),
    Rows = collect(Db, #{rows => kv}),
    Keys = collect(Db, #{rows => keys}),
    Keys = [K || {K, _} <- Rows],
    ok = scanode:close(Db),
    Empty = open(Config, ?FUNCTION_NAME),
    [] = collect(Empty, []),
    untouched = scanode:fold(Empty, fun(_, _) -> error(called) end, untouched, #{}),
    ok = scanode:close(Empty).

batches_under_credit(Config) ->
    Rows = numbered(2000),
    Db = open(Config, ?FUNCTION_NAME, Rows),
    [
        {Batch, Window, Rows} = {Batch, Window, collect(Db, #{max_batch_bytes => Batch, max_unacked_bytes => Window})}
     || {Batch, Window} <- [{1, 1}, {1, 100}, {100, 1}, {100, 1000}, {1000, 100}, {16 bsl 20, 1}, {1, 1 bsl 30}]
    ],
    ok = scanode:close(Db).

%% A consumer that waits for somebody else while it holds a batch: what the program sends meanwhile stays within the credit.
slow_consumer(Config) ->
    Rows = [{<<I:32>>, binary:copy(<<I>>, 1000)} || I <- lists:seq(1, 2000)],
    Db = open(Config, ?FUNCTION_NAME, Rows),
    {Batch, Window} = {5000, 20000},
    Helper = spawn_link(fun answer/0),
    Fun = fun(Row, Folded) ->
        Helper ! {self(), Folded},
        receive
            {Helper, Folded} -> ok
        end,
        {messages, Waiting} = process_info(self(), messages),
        Unacked = lists:sum([byte_size(Bin) || {scan_batch, _, Bin} <- Waiting]),
        %% A batch exceeds its size by less than a row.
        true = Unacked =< Window + Batch + 2000,
        [Row | Folded]
    end,
    Rows = lists:reverse(scanode:fold(Db, Fun, [], #{max_batch_bytes => Batch, max_unacked_bytes => Window})),
    true = unlink(Helper),
    true = exit(Helper, kill),
    ok = scanode:close(Db).

answer() ->
    receive
        {From, Message} ->
            _ = From ! {self(), Message},
            answer()
    end.

exceptions_of_the_function(Config) ->
    Db = open(Config, ?FUNCTION_NAME, numbered(5000)),
    Small = #{max_batch_bytes => 100, max_unacked_bytes => 100000},
    self() ! mine,
    [
        begin
            After = fun
                (_, N) when N =:= At -> erlang:Class(reason);
                (_, N) -> N + 1
            end,
            Caught =
                try
                    scanode:fold(Db, After, 0, Small)
                catch
                    C:R -> {C, R}
                end,
            Caught = {Class, reason},
            %% Nothing of the scan, and everything of others.
            [mine] = test_program:flush(),
            self() ! mine
        end
     || Class <- [throw, error, exit], At <- [0, 1, 500, 4999]
    ],
    [mine] = test_program:flush(),
    ok = no_streams(Db),
    [] = test_program:flush(),
    ok = scanode:close(Db).

%% The usual way to stop early. The stack is the function's.
exception_stops_the_scan(Config) ->
    Db = open(Config, ?FUNCTION_NAME, numbered(5000)),
    Ten = fun
        (_, 10) -> throw({enough, 10});
        (_, N) -> N + 1
    end,
    {enough, 10} = (catch scanode:fold(Db, Ten, 0, #{max_batch_bytes => 1, max_unacked_bytes => 1})),
    ok = no_streams(Db),
    try
        scanode:fold(Db, fun({K, _}, _) -> binary_to_integer(K) end, 0, #{})
    catch
        error:badarg:Stack -> [{erlang, binary_to_integer, _, _} | _] = Stack
    end,
    ok = no_streams(Db),
    ok = scanode:close(Db).

closed_during_fold(Config) ->
    Db = open(Config, ?FUNCTION_NAME, numbered(5000)),
    Close = fun
        (_, 0) ->
            ok = scanode:close(Db),
            1;
        (_, N) ->
            N + 1
    end,
    ?assertError({scan, closed}, scanode:fold(Db, Close, 0, #{max_batch_bytes => 100, max_unacked_bytes => 100})),
    ?assertError({scan, closed}, scanode:fold(Db, Close, 0, #{})),
    [] = test_program:flush().

two_at_once(Config) ->
    Rows = numbered(3000),
    Db = open(Config, ?FUNCTION_NAME, Rows),
    Fold = fun() -> exit({rows, collect(Db, #{max_batch_bytes => 100, max_unacked_bytes => 1000})}) end,
    Monitors = [element(2, spawn_monitor(Fold)) || _ <- lists:seq(1, 8)],
    [
        receive
            {'DOWN', Monitor, _, _, {rows, Got}} -> Rows = Got
        end
     || Monitor <- Monitors
    ],
    ok = scanode:close(Db).

nested(Config) ->
    Rows = numbered(60),
    Db = open(Config, ?FUNCTION_NAME, Rows),
    Small = #{max_batch_bytes => 1, max_unacked_bytes => 50},
    Outer = fun({K, _}, Pairs) -> scanode:fold(Db, fun({J, _}, Acc) -> [{K, J} | Acc] end, Pairs, Small) end,
    Want = [{K, J} || {K, _} <- Rows, {J, _} <- Rows],
    Want = lists:reverse(scanode:fold(Db, Outer, [], Small)),
    [] = test_program:flush(),
    ok = scanode:close(Db).

sees_a_snapshot(Config) ->
    Rows = numbered(1000),
    Db = open(Config, ?FUNCTION_NAME, Rows),
    Change = fun
        (Row, []) ->
            Ops = [{delete, K} || {K, _} <- Rows] ++ [{put, <<I:32, "new">>, <<>>} || I <- lists:seq(1, 1000)],
            ok = scanode:write(Db, Ops, #{}),
            [Row];
        (Row, Folded) ->
            [Row | Folded]
    end,
    Rows = lists:reverse(scanode:fold(Db, Change, [], #{max_batch_bytes => 100, max_unacked_bytes => 100})),
    1000 = scanode:fold(Db, fun count/2, 0, #{}),
    ok = scanode:close(Db).

writes_inside(Config) ->
    Rows = numbered(300),
    Db = open(Config, ?FUNCTION_NAME, Rows),
    Move = fun({K, V}, N) ->
        {ok, V} = scanode:get(Db, K),
        ok = scanode:delete(Db, K),
        ok = scanode:put(Db, <<"moved", K/binary>>, V),
        N + 1
    end,
    300 = scanode:fold(Db, Move, 0, #{max_batch_bytes => 100}),
    300 = scanode:fold(Db, fun count/2, 0, #{start => <<"moved">>}),
    300 = scanode:fold(Db, fun count/2, 0, #{}),
    ok = scanode:close(Db).

bad_options(Config) ->
    Db = open(Config, ?FUNCTION_NAME, numbered(3)),
    [
        case failure(Db, Opts) of
            {{bad_option, Text}, []} when is_binary(Text) -> ok
        end
     || Opts <- [
            #{no_such_option => 1},
            #{"start" => <<>>},
            #{start => "a string"},
            #{'end' => 1},
            #{start_inclusive => 1},
            #{end_inclusive => <<"true">>},
            #{limit => -1},
            #{limit => 1.5},
            #{limit => many},
            #{rows => columns},
            #{max_batch_bytes => -1},
            #{max_batch_bytes => 1 bsl 40},
            #{max_unacked_bytes => <<"1">>},
            #{timeout => -1},
            #{timeout => 1 bsl 32},
            #{timeout => <<"1">>},
            [{start, <<>>} | tail],
            [1],
            <<"options">>
        ]
    ],
    3 = scanode:fold(Db, fun count/2, 0, []),
    [] = test_program:flush(),
    ok = no_streams(Db),
    ok = scanode:close(Db).

%% Filters against the plain evaluation of the same rows, both encodings interleaved.
filters(Config) ->
    Rows = riak_rows:generate(20240229, 1000),
    Encoded = [{riak_rows:key(Row), riak_rows:encode(Row, encoding(I)), Row} || {I, Row} <- with_index(Rows)],
    Db = open(Config, ?FUNCTION_NAME, [{K, Object} || {K, Object, _} <- Encoded]),
    ok = scanode:put(Db, <<"station1", 0, 1:64>>, riak_rows:tombstone()),
    Sorted = lists:keysort(1, Encoded),
    [
        begin
            Want = [{K, Object} || {K, Object, Row} <- Sorted, riak_rows:matches(Filter, Row)],
            {Filter, Want} = {Filter, collect(Db, #{filter => Filter})},
            Few = lists:sublist(Want, 3),
            {Filter, Few} = {Filter, collect(Db, #{filter => Filter, limit => 3, max_batch_bytes => 1})},
            ct:log("~p: ~b rows", [Filter, length(Want)])
        end
     || Filter <- some_filters()
    ],
    ok = scanode:close(Db).

with_index(List) ->
    lists:zip(lists:seq(1, length(List)), List).

encoding(I) when I rem 2 =:= 0 -> ttb;
encoding(_) -> msgpack.

some_filters() ->
    Station = {field, <<"station">>, varchar},
    Temperature = {field, <<"temperature">>, double},
    Count = {field, <<"count">>, sint64},
    Time = {field, <<"time">>, timestamp},
    Note = {field, <<"note">>, varchar},
    [
        {'=', Station, {const, <<"station3">>}},
        {'!=', Station, {const, <<"station3">>}},
        {'=', {const, <<"station4">>}, Station},
        {'=', Note, {const, []}},
        {'!=', Note, {const, []}},
        {'=', Note, {const, <<>>}},
        {'=', {field, <<"temperature">>, varchar}, {const, []}},
        {'=', {field, <<"valid">>, boolean}, {const, true}},
        {'!=', {field, <<"valid">>, boolean}, {const, true}},
        {'=', {field, <<"no such field">>, sint64}, {const, 1}},
        {and_, {'>=', Time, {const, 1500000100000}}, {'<', Time, {const, 1500000200000}}},
        {'or', {'=', Station, {const, <<"station1">>}}, {'>', Count, {const, 900000}}},
        {and_, {or_, {'<', Temperature, {const, -10}}, {'>', Temperature, {const, 30.5}}}, {'!=', Note, {const, []}}}
    ] ++
        [{Op, Temperature, {const, 0}} || Op <- ['=', '==', '!=', '<', '>', '<=', '=<', '>=']] ++
        [{Op, Count, {const, -5}} || Op <- ['<', '>', '<=', '=<', '>=']].

bad_filters(Config) ->
    Db = open(Config, ?FUNCTION_NAME, [{<<"k">>, riak_rows:encode([{<<"a">>, 1}], ttb)}]),
    [
        case failure(Db, #{filter => Filter}) of
            {{bad_filter, Text}, []} when is_binary(Text) -> ok
        end
     || Filter <- [
            nonsense,
            1,
            {'=', {field, <<"a">>, sint64}},
            {'~', {field, <<"a">>, sint64}, {const, 1}},
            {'=', {field, <<"a">>, blob}, {const, 1}},
            {'=', {field, a, sint64}, {const, 1}},
            {'=', {field, <<"a">>, sint64}, {const, <<"1">>}},
            {'<', {field, <<"a">>, varchar}, {const, <<"1">>}},
            {and_, {'=', {field, <<"a">>, sint64}, {const, 1}}, nonsense}
        ]
    ],
    ok = no_streams(Db),
    ok = scanode:close(Db).

%% The rows before one that cannot be judged are delivered, then the fold raises.
bad_rows(Config) ->
    Good = riak_rows:encode([{<<"a">>, 1}], msgpack),
    Filter = {'=', {field, <<"a">>, sint64}, {const, 1}},
    Unfit = riak_rows:encode([{<<"a">>, <<"text">>}], ttb),
    bad_row = riak_rows:matches(Filter, [{<<"a">>, <<"text">>}]),
    [
        begin
            Db = open(Config, ?FUNCTION_NAME, [{<<1>>, Good}, {<<2>>, Good}, {<<3>>, Bad}, {<<4>>, Good}]),
            Before = [{<<1>>, Good}, {<<2>>, Good}],
            {{bad_row, _}, Before} = failure(Db, #{filter => Filter}),
            {{bad_row, _}, Before} = failure(Db, #{filter => Filter, max_batch_bytes => 1}),
            %% Without a filter nobody looks.
            4 = scanode:fold(Db, fun count/2, 0, #{}),
            Before = collect(Db, #{filter => Filter, limit => 2}),
            ok = no_streams(Db),
            ok = scanode:close(Db)
        end
     || Bad <- [<<>>, <<"no object">>, Unfit, binary:part(Unfit, 0, 20), term_to_binary(r_object)]
    ].

time_without_progress(Config) ->
    Db = open(Config, ?FUNCTION_NAME, numbered(10)),
    %% Time in the function does not count, only waiting for the scan.
    10 = scanode:fold(Db, fun count/2, 0, #{timeout => 60000, max_batch_bytes => 1}),
    [
        try
            10 = scanode:fold(Db, fun count/2, 0, #{timeout => 0})
        catch
            error:{scan, timeout} -> ok
        end
     || _ <- lists:seq(1, 200)
    ],
    ok = no_streams(Db),
    [] = test_program:flush(),
    ok = scanode:close(Db).

consumer_killed(Config) ->
    Db = open(Config, ?FUNCTION_NAME, numbered(5000)),
    Fold = fun() -> scanode:fold(Db, fun(_, _) -> exit(self(), kill) end, 0, #{max_batch_bytes => 100, max_unacked_bytes => 100}) end,
    {_, Monitor} = spawn_monitor(Fold),
    receive
        {'DOWN', Monitor, _, _, killed} -> ok
    end,
    ok = no_streams(Db),
    ok = scanode:close(Db).

any_operations(Config) ->
    Open = fun() -> open(Config, ?FUNCTION_NAME) end,
    true = proper:quickcheck(prop_store:like_a_dictionary(Open), [{numtests, 100}, {to_file, user}]).
