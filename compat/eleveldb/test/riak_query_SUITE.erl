%% What the queries of Riak TS expect: range scans over keys with their bounds in them, filters, many sub-queries at once, and buffers of results.
-module(riak_query_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    bounds_in_keys/1,
    inclusivity_options/1,
    filters/1,
    both_spellings_of_at_most/1,
    null_and_more_on_one_column/1,
    no_filter_parses_nothing/1,
    deleted_rows_are_passed_over/1,
    bad_rows_are_no_partial_result/1,
    bad_filters_are_refused_at_the_start/1,
    limit_counts_rows_that_match/1,
    sizes_of_batches/1,
    break_out_of_a_stream/1,
    sixty_sub_queries_at_once/1,
    sub_queries_that_time_out/1,
    quanta_one_by_one/1,
    close_under_sub_queries/1,
    query_buffers/1,
    query_buffers_at_once/1
]).

-define(ROWS, 1000).

suite() -> [{timetrap, {seconds, 180}}].

all() ->
    [F || {F, 1} <- ?MODULE:module_info(exports), not lists:member(F, [module_info, init_per_suite, end_per_suite])].

init_per_suite(Config) ->
    {ok, _} = application:ensure_all_started(eleveldb),
    Config.

end_per_suite(_Config) ->
    ok = application:stop(eleveldb).

init_per_testcase(Case, Config) ->
    Db = eleveldb_test:open(Config, Case),
    ok = eleveldb:sync_write(ctx, Db, [{put, key(Time), scanode_row:encode(row(Time), encoding(Time))} || Time <- lists:seq(1, ?ROWS)], []),
    %% Another family, objects without a table, and an index, around them.
    ok = eleveldb:write(Db, [{put, Key, <<"odd">>} || Key <- [key(<<"fam2">>, 5), riak_key:object(<<"zzz">>, <<"k">>), riak_key:index(<<"b">>, <<"f_int">>, 1, <<"k">>)]], []),
    [{db, Db} | Config].

end_per_testcase(_Case, Config) ->
    [] = eleveldb_test:flush(),
    ok = eleveldb_test:await(fun() ->
        {ok, #{streams := Streams}} = eleveldb_test:info(#{}),
        Streams =:= 0
    end),
    try
        ok = eleveldb:close(?config(db, Config))
    catch
        error:badarg -> ok
    end.

%% The table

key(Time) -> key(<<"fam">>, Time).

key(Family, Time) -> riak_key:encode({o, {<<"T">>, <<"T">>}, {Family, <<"series">>, Time}}).

%% The prefix of the keys of a bound, whose columns after the time are open.
bound(Time) -> riak_key:prefix({o, {<<"T">>, <<"T">>}, {<<"fam">>, <<"series">>, Time}}).

encoding(Time) when Time rem 2 =:= 0 -> ttb;
encoding(_) -> msgpack.

row(Time) ->
    [
        {<<"time">>, Time},
        {<<"n">>, null_if(Time rem 5 =:= 0, Time rem 17 - 8)},
        {<<"x">>, null_if(Time rem 7 =:= 0, Time / 4)},
        {<<"name">>, null_if(Time rem 11 =:= 0, <<"name", (Time rem 3 + $0)>>)},
        {<<"valid">>, Time rem 2 =:= 0}
    ].

null_if(true, _) -> [];
null_if(false, Cell) -> Cell.

cell(Name, Time) -> proplists:get_value(Name, row(Time)).

%% Bounds as Riak makes them: a start that is not included and an end that is have a byte more, and an option.
range({StartOp, Start}, {EndOp, End}) ->
    {StartKey, StartOption} =
        case StartOp of
            '>=' -> {bound(Start), []};
            '>' -> {<<(bound(Start))/binary, 255>>, [{start_inclusive, false}]}
        end,
    {EndKey, EndOption} =
        case EndOp of
            '<' -> {bound(End), []};
            '<=' -> {<<(bound(End))/binary, 255>>, [{end_inclusive, true}]}
        end,
    [{start_key, StartKey}, {end_key, EndKey}, {fold_method, streaming}] ++ StartOption ++ EndOption.

all_rows() -> range({'>=', 0}, {'<', ?ROWS + 1}).

times(Db, Options) -> lists:reverse(eleveldb:fold(Db, fun({Key, _}, Times) -> [time(Key) | Times] end, [], Options)).

time(Key) ->
    {o, {<<"T">>, <<"T">>}, {<<"fam">>, <<"series">>, Time}} = riak_key:decode(Key),
    Time.

filtered(Db, Filter) -> times(Db, [{range_filter, Filter} | all_rows()]).

that(Fun) -> [Time || Time <- lists:seq(1, ?ROWS), Fun(Time)].

%% Ranges

bounds_in_keys(Config) ->
    [
        begin
            Expected = that(fun(T) ->
                case StartOp of
                    '>' -> T > Start;
                    '>=' -> T >= Start
                end andalso
                    case EndOp of
                        '<' -> T < End;
                        '<=' -> T =< End
                    end
            end),
            ?assertEqual({StartOp, Start, EndOp, End, Expected}, {StartOp, Start, EndOp, End, times(?config(db, Config), range({StartOp, Start}, {EndOp, End}))})
        end
     || StartOp <- ['>', '>='], EndOp <- ['<', '<='], {Start, End} <- [{0, 1}, {1, 1}, {1, 2}, {10, 20}, {255, 257}, {999, 1000}, {1000, 1001}, {0, 2000}, {20, 10}]
    ].

%% By themselves, on the keys as they are.
inclusivity_options(Config) ->
    Db = ?config(db, Config),
    Range = [{fold_method, streaming}, {start_key, key(10)}, {end_key, key(20)}],
    ?assertEqual(lists:seq(10, 19), times(Db, Range)),
    ?assertEqual(lists:seq(11, 20), times(Db, Range ++ [{start_inclusive, false}, {end_inclusive, true}])).

%% Filters

filters(Config) ->
    Db = ?config(db, Config),
    N = {field, <<"n">>, sint64},
    X = {field, <<"x">>, double},
    Name = {field, <<"name">>, varchar},
    Ops = [{'=', fun(A, B) -> A == B end}, {'==', fun(A, B) -> A == B end}, {'!=', fun(A, B) -> A /= B end}, {'<', fun(A, B) -> A < B end}, {'>', fun(A, B) -> A > B end}, {'>=', fun(A, B) -> A >= B end}],
    [
        ?assertEqual({Op, Const, that(fun(T) -> cell(<<"n">>, T) =/= [] andalso Fun(cell(<<"n">>, T), Const) end)}, {Op, Const, filtered(Db, {Op, N, {const, Const}})})
     || {Op, Fun} <- Ops, Const <- [-8, 0, 3, 100]
    ],
    [
        ?assertEqual({Op, that(fun(T) -> cell(<<"x">>, T) =/= [] andalso Fun(cell(<<"x">>, T), 100.25) end)}, {Op, filtered(Db, {Op, X, {const, 100.25}})})
     || {Op, Fun} <- Ops
    ],
    ?assertEqual(that(fun(T) -> cell(<<"name">>, T) =:= <<"name1">> end), filtered(Db, {'=', Name, {const, <<"name1">>}})),
    ?assertEqual(that(fun(T) -> cell(<<"name">>, T) =:= [] end), filtered(Db, {'=', Name, {const, []}})),
    ?assertEqual(that(fun(T) -> cell(<<"valid">>, T) end), filtered(Db, {'=', {field, <<"valid">>, boolean}, {const, true}})),
    ?assertEqual(that(fun(T) -> T > 500 end), filtered(Db, {'>', {field, <<"time">>, timestamp}, {const, 500}})),
    ?assertEqual(
        that(fun(T) -> (is_integer(cell(<<"n">>, T)) andalso cell(<<"n">>, T) > 3 orelse T < 100) andalso cell(<<"name">>, T) =:= <<"name2">> end),
        filtered(Db, {and_, {or_, {'>', N, {const, 3}}, {'<', {field, <<"time">>, timestamp}, {const, 100}}}, {'=', Name, {const, <<"name2">>}}})
    ).

%% The compiler of queries says one, its tests the other.
both_spellings_of_at_most(Config) ->
    Expected = that(fun(T) -> cell(<<"n">>, T) =/= [] andalso cell(<<"n">>, T) =< 2 end),
    [?assertEqual(Expected, filtered(?config(db, Config), {Op, {field, <<"n">>, sint64}, {const, 2}})) || Op <- ['<=', '=<']].

%% NULL is asked for as varchar, whatever the column is.
null_and_more_on_one_column(Config) ->
    Null = fun(Op) -> {Op, {field, <<"n">>, varchar}, {const, []}} end,
    More = {'>', {field, <<"n">>, sint64}, {const, 3}},
    Db = ?config(db, Config),
    ?assertEqual(that(fun(T) -> cell(<<"n">>, T) =:= [] end), filtered(Db, Null('='))),
    ?assertEqual(that(fun(T) -> is_integer(cell(<<"n">>, T)) andalso cell(<<"n">>, T) > 3 end), filtered(Db, {and_, Null('!='), More})),
    ?assertEqual(that(fun(T) -> cell(<<"n">>, T) =:= [] orelse cell(<<"n">>, T) > 3 end), filtered(Db, {or_, Null('='), More})).

%% Any bytes are a value.
no_filter_parses_nothing(Config) ->
    Db = ?config(db, Config),
    ok = eleveldb:write(Db, [{put, key(N), <<"odd", N>>} || N <- lists:seq(1, 10)], []),
    ?assertEqual(lists:seq(1, ?ROWS), times(Db, all_rows())),
    ?assertEqual(?ROWS + 3, length(eleveldb:fold(Db, fun(Row, Rows) -> [Row | Rows] end, [], [{fold_method, streaming}]))).

%% An object of one value, which is raw and empty.
deleted_rows_are_passed_over(Config) ->
    Db = ?config(db, Config),
    Tombstone = <<53, 1, 0:32, 1:32, 1:32, 1, 0:32>>,
    ok = eleveldb:write(Db, [{put, key(N), Tombstone} || N <- lists:seq(100, 200)], []),
    Filter = {'>', {field, <<"time">>, timestamp}, {const, 0}},
    ?assertEqual(lists:seq(1, 99) ++ lists:seq(201, ?ROWS), filtered(Db, Filter)),
    ?assertEqual(lists:seq(1, ?ROWS), times(Db, all_rows())).

%% The original's client logs and returns what it has. Here it is an error, after the rows before it.
bad_rows_are_no_partial_result(Config) ->
    Db = ?config(db, Config),
    <<53, 1, 2:32, _/binary>> = Siblings = <<53, 1, 2:32, 131, 106, 2:32, 1:32, 1, 0:32, 1:32, 1, 0:32>>,
    WrongType = scanode_row:encode(lists:keystore(<<"n">>, 1, row(500), {<<"n">>, <<"text">>}), ttb),
    [
        begin
            ok = eleveldb:put(Db, key(500), Bad, []),
            Self = self(),
            Tell = fun({Key, _}, ok) ->
                _ = Self ! {row, time(Key)},
                ok
            end,
            Options = [{range_filter, {'<', {field, <<"n">>, sint64}, {const, 100}}} | all_rows()],
            ?assertError({streaming_error, [_ | _]}, eleveldb:fold(Db, Tell, ok, Options)),
            ?assertEqual([{row, T} || T <- lists:seq(1, 499), T rem 5 > 0], eleveldb_test:flush())
        end
     || Bad <- [Siblings, WrongType, <<>>, <<131, 106>>, <<53, 1, 255:32>>, binary:part(WrongType, 0, byte_size(WrongType) div 2)]
    ].

bad_filters_are_refused_at_the_start(Config) ->
    Db = ?config(db, Config),
    Null = {const, []},
    [
        ?assertError({badmatch, {error, _, [_ | _]}}, filtered(Db, Filter))
     || Filter <- [
            [],
            {'<', {field, <<"name">>, varchar}, {const, <<"a">>}},
            {'>', {field, <<"valid">>, boolean}, {const, true}},
            {'=', {field, <<"n">>, sint64}, Null},
            {'=', {field, <<"n">>, blob_of_mine}, {const, 1}},
            {'=', {field, <<"n">>, sint64}, {const, <<"1">>}},
            {'~', {field, <<"n">>, sint64}, {const, 1}},
            {and_, {'=', {field, <<"n">>, sint64}, {const, 1}}}
        ]
    ].

%% Streams

limit_counts_rows_that_match(Config) ->
    Filter = {'=', {field, <<"valid">>, boolean}, {const, true}},
    [
        ?assertEqual(lists:sublist(lists:seq(2, ?ROWS, 2), Limit), times(?config(db, Config), [{limit, Limit}, {range_filter, Filter} | all_rows()]))
     || Limit <- [1, 2, 100, 499, 500, 501]
    ],
    ?assertEqual(500, length(times(?config(db, Config), [{limit, 0}, {range_filter, Filter} | all_rows()]))).

sizes_of_batches(Config) ->
    [
        ?assertEqual(lists:seq(1, ?ROWS), times(?config(db, Config), [{max_batch_bytes, Batch}, {max_unacked_bytes, Unacked} | all_rows()]))
     || Batch <- [0, 1, 1000, 1 bsl 20], Unacked <- [0, 1, 5000, 10 bsl 20]
    ].

break_out_of_a_stream(Config) ->
    Break = fun
        (_, 10) -> throw({break, 10});
        (_, N) -> N + 1
    end,
    [?assertThrow({break, 10}, eleveldb:fold(?config(db, Config), Break, 0, [{max_batch_bytes, Batch}, {max_unacked_bytes, 10 * Batch} | all_rows()])) || Batch <- [1, 100, 1 bsl 20]].

%% Three queries of twenty on one store. Each has its first row before any goes on; then all end, with all their rows.
sixty_sub_queries_at_once(Config) ->
    Queries = started(?config(db, Config), 60),
    [Pid ! go_on || {Pid, _} <- Queries],
    [
        receive
            {'DOWN', Monitor, process, Pid, How} -> ?assertEqual({queried, ?ROWS, []}, How)
        end
     || {Pid, Monitor} <- Queries
    ].

%% Sub-queries that wait at their first row.
started(Db, Count) ->
    Self = self(),
    Wait = fun
        (_, 0) ->
            _ = Self ! {first, self()},
            receive
                go_on -> 1
            end;
        (_, N) ->
            N + 1
    end,
    Options = [{max_batch_bytes, 4000}, {max_unacked_bytes, 20000}, {range_filter, {'>', {field, <<"time">>, timestamp}, {const, 0}}} | all_rows()],
    Queries = [spawn_monitor(fun() -> exit({queried, eleveldb:fold(Db, Wait, 0, Options), eleveldb_test:flush()}) end) || _ <- lists:seq(1, Count)],
    [
        receive
            {first, Pid} -> ok
        end
     || {Pid, _} <- Queries
    ],
    Queries.

%% Riak kills them after ten seconds. Nothing of them remains (end_per_testcase/2), and the next ones are answered.
sub_queries_that_time_out(Config) ->
    Db = ?config(db, Config),
    [
        begin
            Queries = started(Db, 60),
            [exit(Pid, kill) || {Pid, _} <- Queries],
            [
                receive
                    {'DOWN', Monitor, process, Pid, killed} -> ok
                end
             || {Pid, Monitor} <- Queries
            ],
            ?assertEqual(?ROWS, length(times(Db, all_rows())))
        end
     || _ <- lists:seq(1, 5)
    ].

%% A range of time is cut into up to five thousand, each with a stream of its own. How long that took is in the log.
quanta_one_by_one(Config) ->
    Db = ?config(db, Config),
    Quanta = fun() -> lists:append([times(Db, range({'>=', N}, {'<', N + 1})) || N <- lists:seq(1, ?ROWS)]) end,
    {Took, Times} = timer:tc(Quanta),
    ?assertEqual(lists:seq(1, ?ROWS), Times),
    ct:log("~b quanta: ~b ms", [?ROWS, Took div 1000]).

close_under_sub_queries(Config) ->
    Db = ?config(db, Config),
    Queries = started(Db, 20),
    ok = eleveldb:close(Db),
    [Pid ! go_on || {Pid, _} <- Queries],
    [
        receive
            {'DOWN', Monitor, process, Pid, Why} -> ?assertMatch({badarg, _}, Why)
        end
     || {Pid, Monitor} <- Queries
    ].

%% Buffers

%% A store for the rows of one query with an ORDER BY: new, filled row by row, read in order up to a limit, and removed with all its files.
query_buffers(Config) ->
    [ok = query_buffer(eleveldb_test:dir(Config, ?FUNCTION_NAME), 50) || _ <- lists:seq(1, 5)].

query_buffer(Dir, Rows) ->
    Options = [{create_if_missing, true}, {error_if_exists, true}, {write_buffer_size, 10 * 1024 * 1024}],
    {ok, Db} = eleveldb:open(Dir, Options),
    Order = [(N * 37) rem Rows || N <- lists:seq(0, Rows - 1)],
    [ok = eleveldb:put(Db, <<N:32>>, term_to_binary([N]), [{sync, true}]) || N <- Order],
    Limit = Rows div 2,
    Take = fun({_, Row}, {Left, Taken}) ->
        case Left of
            0 -> throw({done, Taken});
            _ -> {Left - 1, [binary_to_term(Row) | Taken]}
        end
    end,
    Taken =
        try eleveldb:fold(Db, Take, {Limit, []}, [{fold_method, streaming}]) of
            {_, All} -> All
        catch
            {done, Some} -> Some
        end,
    ?assertEqual([[N] || N <- lists:seq(0, Limit - 1)], lists:reverse(Taken)),
    ok = eleveldb:close(Db),
    {error, {db_open, "Invalid argument: " ++ _}} = eleveldb:open(Dir, Options),
    ok = file:del_dir_r(Dir),
    ok.

query_buffers_at_once(Config) ->
    Workers = [spawn_monitor(fun() -> exit({query_buffer(eleveldb_test:dir(Config, ?FUNCTION_NAME), 30), eleveldb_test:flush()}) end) || _ <- lists:seq(1, 15)],
    [
        receive
            {'DOWN', Monitor, process, Pid, How} -> ?assertEqual({ok, []}, How)
        end
     || {Pid, Monitor} <- Workers
    ].
