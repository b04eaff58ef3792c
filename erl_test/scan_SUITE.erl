%% Scans beyond the fold: asked for, page by page, on a snapshot; and stored rows in the forms they are sent in.
-module(scan_SUITE).

-include_lib("common_test/include/ct.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    asked_for/1,
    nothing_unasked/1,
    asked_for_and_stopped/1,
    asked_for_and_failed/1,
    asker_dies/1,
    program_dies_while_asked/1,
    pages/1,
    snapshot/1,
    deadline/1,
    facts/1,
    recorded_objects/1,
    rows_encode_and_decode/1,
    forms/1,
    explained/1,
    split/1
]).

suite() -> [{timetrap, {seconds, 60}}].

all() ->
    [F || {F, 1} <- ?MODULE:module_info(exports), F =/= module_info].

init_per_testcase(Case, Config) ->
    {ok, _} = application:ensure_all_started(scanode),
    {ok, Db} = scanode:open(test_program:directory(Config, Case), #{}),
    [{db, Db} | Config].

end_per_testcase(_Case, _Config) ->
    ok = application:stop(scanode),
    [] = test_program:flush().

%% Count rows of Size bytes under the keys 1, 2, ….
fill(Db, Count, Size) ->
    Rows = [{<<I:32>>, binary:copy(<<I>>, Size)} || I <- lists:seq(1, Count)],
    ok = scanode:write(Db, [{put, K, V} || {K, V} <- Rows], #{}),
    Rows.

small() -> #{max_batch_bytes => 2000, max_unacked_bytes => 4000}.

collect(Scan) ->
    case scanode:scan_next(Scan) of
        {ok, [_ | _] = Rows, Next} ->
            {More, Facts} = collect(Next),
            {Rows ++ More, Facts};
        {done, Facts} ->
            {[], Facts}
    end.

asked_for(Config) ->
    Db = ?config(db, Config),
    Rows = fill(Db, 200, 100),
    {ok, Scan} = scanode:scan_start(Db, small()),
    {Rows, #{rows := 200, rows_read := 200}} = collect(Scan),
    {ok, Empty} = scanode:scan_start(Db, #{start => <<255>>}),
    {[], #{rows := 0}} = collect(Empty).

%% A gen_server would take any message for one of its own.
nothing_unasked(Config) ->
    Db = ?config(db, Config),
    Rows = fill(Db, 200, 100),
    {ok, Scan} = scanode:scan_start(Db, small()),
    {ok, First, Next} = scanode:scan_next(Scan),
    ok = test_program:await(fun() -> streams(Db) =:= 1 end),
    [] = test_program:flush(),
    Self = self(),
    {_, Monitor} = spawn_monitor(fun() -> exit(catch scanode:scan_next(Next)) end),
    receive
        {'DOWN', Monitor, process, _, {'EXIT', {badarg, _}}} -> Self ! odd
    end,
    odd = hd(test_program:flush()),
    {Rest, _} = collect(Next),
    Rows = First ++ Rest,
    {error, closed} = scanode:scan_next(Next),
    [] = test_program:flush().

streams(Db) ->
    {ok, #{streams := Streams}} = scanode:info(Db),
    Streams.

asked_for_and_stopped(Config) ->
    Db = ?config(db, Config),
    _ = fill(Db, 200, 100),
    {ok, Scan} = scanode:scan_start(Db, small()),
    {ok, _, Next} = scanode:scan_next(Scan),
    ok = scanode:scan_stop(Next),
    ok = scanode:scan_stop(Next),
    {error, closed} = last(Next),
    ok = test_program:await(fun() -> streams(Db) =:= 0 end).

asked_for_and_failed(Config) ->
    Db = ?config(db, Config),
    _ = fill(Db, 200, 100),
    {ok, Odd} = scanode:scan_start(Db, #{rows => odd}),
    {error, {bad_option, _}} = scanode:scan_next(Odd),
    {error, {bad_option, _}} = scanode:scan_start(Db, #{timeout => odd}),
    {ok, Bad} = scanode:scan_start(Db, #{rows => cells}),
    {error, {bad_row, _}} = scanode:scan_next(Bad),
    {ok, Scan} = scanode:scan_start(Db, small()),
    {ok, _, Next} = scanode:scan_next(Scan),
    ok = scanode:close(Db),
    closed = last_error(Next).

last_error(Scan) ->
    case scanode:scan_next(Scan) of
        {ok, _, Next} -> last_error(Next);
        {error, Reason} -> Reason
    end.

last(Scan) ->
    case scanode:scan_next(Scan) of
        {ok, _, Next} -> last(Next);
        Over -> Over
    end.

asker_dies(Config) ->
    Db = ?config(db, Config),
    _ = fill(Db, 200, 100),
    {Pid, Monitor} = spawn_monitor(fun() ->
        {ok, Scan} = scanode:scan_start(Db, small()),
        {ok, _, _} = scanode:scan_next(Scan),
        exit(enough)
    end),
    receive
        {'DOWN', Monitor, process, Pid, enough} -> ok
    end,
    ok = test_program:await(fun() -> streams(Db) =:= 0 end).

program_dies_while_asked(Config) ->
    Db = ?config(db, Config),
    _ = fill(Db, 200, 100),
    {ok, Scan} = scanode:scan_start(Db, small()),
    {ok, _, Next} = scanode:scan_next(Scan),
    ok = test_program:kill("KILL", test_program:os_pid()),
    {down, _} = last_error(Next).

pages(Config) ->
    Db = ?config(db, Config),
    Rows = fill(Db, 95, 10),
    Query = #{ranges => [{<<50:32>>, undefined}, {undefined, <<20:32>>, {true, true}}], reverse => true, limit => 10},
    Whole = lists:reverse(lists:nthtail(49, Rows)) ++ lists:reverse(lists:sublist(Rows, 20)),
    Whole = all_pages(Db, Query),
    {_, #{continuation := More}} = page(Db, Query),
    {bad_option, _} = refused(Db, Query#{continue => More, reverse => false}),
    {bad_option, _} = refused(Db, Query#{continue => <<"odd">>}).

all_pages(Db, Query) ->
    case page(Db, Query) of
        {Rows, #{continuation := More}} -> Rows ++ all_pages(Db, Query#{continue => More});
        {Rows, #{}} -> Rows
    end.

page(Db, Query) ->
    {Reversed, Facts} = scanode:fold_info(Db, fun(Row, Acc) -> [Row | Acc] end, [], Query),
    {lists:reverse(Reversed), Facts}.

refused(Db, Query) ->
    try
        scanode:fold(Db, fun(_, Acc) -> Acc end, ok, Query)
    catch
        error:{scan, Reason} -> Reason
    end.

snapshot(Config) ->
    Db = ?config(db, Config),
    Rows = fill(Db, 50, 10),
    {ok, View} = scanode:snapshot(Db),
    ok = scanode:write(Db, [{delete, K} || {K, _} <- Rows] ++ [{put, <<"new">>, <<>>}], #{}),
    {Rows, _} = page(View, #{}),
    {Rows, _} = page(View, #{ranges => [{undefined, <<20:32>>}, {<<20:32>>, undefined}]}),
    {ok, _} = scanode:get(View, <<1:32>>),
    not_found = scanode:get(View, <<"new">>),
    not_found = scanode:get(Db, <<1:32>>),
    {error, {rejected, {bad_request, _}}} = scanode:put(View, <<"k">>, <<"v">>),
    ok = scanode:close(View),
    {error, closed} = scanode:get(View, <<1:32>>),
    {error, closed} = scanode:snapshot(View),
    {[{<<"new">>, <<>>}], _} = page(Db, #{}).

deadline(Config) ->
    Db = ?config(db, Config),
    _ = fill(Db, 200, 100),
    Slow = fun(_, Acc) -> receive after 1 -> Acc end end,
    deadline =
        try
            scanode:fold(Db, Slow, ok, (small())#{deadline => 20})
        catch
            error:{scan, Reason} -> Reason
        end,
    {_, #{rows := 200}} = page(Db, (small())#{deadline => 60000}).

facts(Config) ->
    Db = ?config(db, Config),
    _ = fill(Db, 200, 100),
    {_, Facts} = page(Db, (small())#{cost => true, limit => 100}),
    #{rows := 100, rows_read := 100, batches := Batches, bytes := Bytes, credit_waits := _, engine_us := _, credit_us := _, send_us := _,
        continuation := _} = Facts,
    true = Bytes > 100 * 100 andalso Batches > 5.

%% testdata/riak_objects: what Riak wrote, and the row in each.
recorded_objects(Config) ->
    Db = ?config(db, Config),
    Testdata = fun(Name) -> filename:join([filename:dirname(code:which(?MODULE)), "testdata", Name]) end,
    {ok, Bin} = file:read_file(Testdata("riak_objects.bin")),
    {ok, Text} = file:read_file(Testdata("riak_objects.txt")),
    Objects = [Object || <<Size:32, Object:Size/binary>> <= Bin],
    Lines = string:split(string:trim(Text), "\n", all),
    Rows = [{Object, row_of(Line)} || {Object, Line} <- lists:zip(Objects, Lines), string:find(Line, " ts_") =/= nomatch],
    true = length(Rows) > 20,
    Stored = [{<<I:32>>, Object, Row} || {I, {Object, Row}} <- lists:zip(lists:seq(1, length(Rows)), Rows)],
    ok = scanode:write(Db, [{put, Key, Object} || {Key, Object, _} <- Stored], #{}),
    [{ok, Row} = scanode_row:decode(Object) || {_, Object, Row} <- Stored],
    Expected = [{Key, Row} || {Key, _, Row} <- Stored],
    {Expected, _} = page(Db, #{rows => terms, with_keys => true}),
    %% Objects that are no rows.
    [{error, _} = scanode_row:decode(Object) || {Object, Line} <- lists:zip(Objects, Lines), string:find(Line, " v0 ") =/= nomatch].

row_of(Line) ->
    [_Seed, _Variant, _Size | Rest] = string:split(Line, " ", all),
    {ok, Tokens, _} = erl_scan:string(unicode:characters_to_list(lists:join(" ", Rest))),
    {ok, Row} = erl_parse:parse_term(Tokens),
    Row.

rows_encode_and_decode(_Config) ->
    Rows = riak_rows:generate(7, 500) ++
        [[{Name, Cell}] || Name <- [<<>>, <<"n">>, binary:copy(<<"long">>, 20000)], Cell <- cells()],
    [
        {ok, Row} = scanode_row:decode(scanode_row:encode(Row, Encoding))
     || Row <- Rows, Encoding <- [ttb, msgpack]
    ],
    [{ok, Row} = scanode_row:decode(riak_rows:encode(Row, Encoding)) || Row <- riak_rows:generate(8, 500), Encoding <- [ttb, msgpack]],
    deleted = scanode_row:decode(riak_rows:tombstone()),
    [
        {error, _} = scanode_row:decode(Odd)
     || Odd <- [<<>>, <<"odd">>, riak_rows:object(1, <<"x">>), riak_rows:object(0, <<131, 97>>), riak_rows:object(2, <<16#81, 16#a1>>),
            riak_rows:object(0, term_to_binary([])), riak_rows:object(0, term_to_binary([{odd, 1}]))]
    ],
    badarg = refuses([{<<"a">>, 1}], odd),
    [badarg = refuses(Odd) || Odd <- [[], odd, [{<<"a">>, 1} | odd], [{odd, 1}], [{<<"a">>, odd}], [{<<"a">>, {1}}]]],
    badarg = refuses([{<<"a">>, 1 bsl 64}], msgpack).

cells() ->
    [[], true, false, 0, 1, -1, 127, 128, -32, -33, 255, 256, 65535, 65536, -128, -129, -32768, -32769, 1 bsl 31, 1 bsl 32, -(1 bsl 31), -(1 bsl 31) - 1,
        (1 bsl 64) - 1, -(1 bsl 63), 1.5, -0.25, 1.0e300, <<>>, <<"x">>, binary:copy(<<"y">>, 31), binary:copy(<<"y">>, 32), binary:copy(<<"y">>, 70000)].

refuses(Row) -> refuses(Row, ttb).

refuses(Row, Encoding) ->
    try
        scanode_row:encode(Row, Encoding)
    catch
        error:badarg -> badarg
    end.

%% One table, both encodings.
forms(Config) ->
    Db = ?config(db, Config),
    Rows = riak_rows:generate(3, 1000),
    Stored = [{<<I:32>>, Row, scanode_row:encode(Row, encoding(I))} || {I, Row} <- lists:zip(lists:seq(1, 1000), Rows)],
    ok = scanode:write(Db, [{put, Key, Object} || {Key, _, Object} <- Stored] ++ [{put, <<0:32>>, riak_rows:tombstone()}], #{}),
    {Rows, _} = page(Db, #{rows => terms}),
    Cells = [[Cell || {_, Cell} <- Row] || Row <- Rows],
    {Cells, _} = page(Db, #{rows => cells}),
    Two = [[proplists:get_value(<<"count">>, Row), [], proplists:get_value(<<"note">>, Row)] || Row <- Rows],
    {Two, _} = page(Db, #{rows => {select, [<<"count">>, <<"nothing">>, <<"note">>]}}),
    Filter = {'>', {field, <<"count">>, sint64}, {const, 0}},
    Kept = [{Key, [proplists:get_value(<<"time">>, Row)]} || {Key, Row, _} <- Stored, proplists:get_value(<<"count">>, Row) > 0],
    {Kept, _} = page(Db, #{rows => {select, [<<"time">>]}, with_keys => true, filter => Filter}).

encoding(I) when I rem 2 =:= 0 -> ttb;
encoding(_) -> msgpack.

explained(Config) ->
    Db = ?config(db, Config),
    Filter = {and_, {'>', {field, <<"a">>, sint64}, {const, 1}}, {not_, {'=', {field, <<"b">>, varchar}, {const, <<"x">>}}}},
    {ok, #{filter := Normal, fields := Fields, every_row := _, extractors := Extractors, outcome := depends}} =
        scanode:explain(Db, #{filter => Filter, rows => {select, [<<"c">>]}}),
    [{0, etf}, {2, msgpack}] = lists:sort(Extractors),
    [<<"a">>, <<"b">>] = lists:sort([Name || {Name, _} <- Fields]),
    %% The normal form is a filter that means the same.
    {ok, #{filter := Normal}} = scanode:explain(Db, #{filter => Normal}),
    {ok, #{outcome := all}} = scanode:explain(Db, #{}),
    {error, {bad_filter, _}} = scanode:explain(Db, #{filter => odd}).

split(Config) ->
    Db = ?config(db, Config),
    Rows = fill(Db, 1000, 10),
    {ok, Ranges} = scanode:split(Db, #{start => <<100:32>>, end_inclusive => true, 'end' => <<900:32>>}, 4),
    4 = length(Ranges),
    Parts = [element(1, page(Db, #{ranges => [Range]})) || Range <- Ranges],
    Whole = lists:sublist(Rows, 100, 801),
    Whole = lists:append(Parts),
    true = lists:all(fun(Part) -> length(Part) < 220 end, Parts),
    {ok, [_]} = scanode:split(Db, #{}, 1),
    {error, {bad_request, _}} = scanode:split(Db, #{}, 0),
    {error, {bad_option, _}} = scanode:split(Db, #{odd => 1}, 2).
