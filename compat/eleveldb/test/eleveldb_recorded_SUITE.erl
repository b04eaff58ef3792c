%% Everything recorded of the original, through the module that takes its place. Where a recorded case has a `strict' result, that is the right one; the
%% original's own is not, and why is said in the documentation of filters.
-module(eleveldb_recorded_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([filters/1, multirow/1, ranges/1]).

suite() -> [{timetrap, {seconds, 120}}].

all() -> [filters, multirow, ranges].

init_per_suite(Config) ->
    {ok, _} = application:ensure_all_started(eleveldb),
    Config.

end_per_suite(_Config) ->
    ok = application:stop(eleveldb).

end_per_testcase(_Case, _Config) ->
    [] = eleveldb_test:flush().

%% A row, a filter: whether the row comes.
filters(Config) ->
    Db = eleveldb_test:open(Config, ?FUNCTION_NAME),
    Cases = recorded:filters(),
    true = length(Cases) > 3900,
    ok = eleveldb:write(Db, [{put, Key, recorded:bin(Record)} || #{<<"key">> := Key, <<"record_b64">> := Record} <- Cases], []),
    Wrong = [Wrong || Case <- Cases, Wrong <- filtered(Db, Case)],
    ?assertEqual([], Wrong),
    ok = eleveldb:close(Db).

filtered(Db, #{<<"id">> := Id, <<"key">> := Key, <<"filter_b64">> := Filter, <<"strict">> := Strict, <<"record_b64">> := Record}) ->
    Range = [{start_key, Key}, {end_key, Key}, {end_inclusive, true}],
    Got =
        case stream(Db, [{range_filter, binary_to_term(recorded:bin(Filter))} | Range]) of
            {ok, []} -> <<"filtered">>;
            {ok, [{Key, Value}]} -> {<<"returned">>, Value};
            {Failed, []} -> Failed
        end,
    Right =
        case Strict of
            <<"returned">> -> {Strict, recorded:bin(Record)};
            _ -> Strict
        end,
    [{Id, Right, Got} || Got =/= Right].

multirow(Config) ->
    Cases = recorded:multirow(),
    true = length(Cases) > 50,
    _ = [multirow(Config, Case) || Case <- Cases],
    ok.

multirow(Config, #{<<"id">> := Id, <<"rows">> := Rows, <<"opts">> := Opts, <<"filter_b64">> := Filter} = Case) ->
    #{<<"strict_keys">> := Keys, <<"strict_result">> := Result} = Case,
    Db = eleveldb_test:open(Config, Id),
    ok = eleveldb:write(Db, [{put, recorded:bin(K), recorded:bin(V)} || [K, V] <- Rows], []),
    {How, Got} = stream(Db, [{range_filter, binary_to_term(recorded:bin(Filter))} | term(Opts)]),
    ?assertEqual({Id, Result, [recorded:bin(Key) || Key <- Keys]}, {Id, how(How), [K || {K, _} <- Got]}),
    ok = eleveldb:close(Db).

how(ok) -> <<"end">>;
how(Failed) -> Failed.

%% The rows that are handed out, and how it ended.
stream(Db, Options) ->
    Self = self(),
    Ref = make_ref(),
    Tell = fun(Row, ok) ->
        _ = Self ! {Ref, Row},
        ok
    end,
    How =
        try
            eleveldb:fold(Db, Tell, ok, [{fold_method, streaming} | Options])
        catch
            error:{badmatch, {error, Start, [_ | _]}} when is_reference(Start) -> <<"start_error">>;
            error:{streaming_error, [_ | _]} -> <<"stream_error">>
        end,
    {How, [Row || {R, Row} <- eleveldb_test:flush(), R =:= Ref]}.

term(Text) ->
    {ok, Tokens, _} = erl_scan:string(unicode:characters_to_list(Text) ++ "."),
    {ok, Term} = erl_parse:parse_term(Tokens),
    Term.

%% Bounds, limits and sizes of batches. A batch's bytes are its rows as append_string/2 writes them, and it is over when it has `max_batch_bytes'.
ranges(Config) ->
    Stores = maps:map(
        fun(Name, Rows) ->
            Db = eleveldb_test:open(Config, Name),
            ok = eleveldb:write(Db, [{put, K, V} || {K, V} <- Rows], []),
            Db
        end,
        recorded:datasets()
    ),
    Cases = recorded:ranges(),
    true = length(Cases) > 400,
    _ = [range(maps:get(Dataset, Stores), Case) || #{<<"dataset">> := Dataset} = Case <- Cases],
    _ = [ok = eleveldb:close(Db) || Db <- maps:values(Stores)],
    ok.

range(Db, #{<<"id">> := Id, <<"start">> := Start, <<"opts">> := Opts, <<"result">> := <<"end">>} = Case) ->
    #{<<"end">> := End, <<"batches_b64">> := Batches} = Case,
    Options = term(Opts),
    {How, Rows} = stream(Db, [{start_key, recorded:bin(Start)} | end_key(End)] ++ Options),
    Size = proplists:get_value(max_batch_bytes, Options, 1 bsl 20),
    ?assertEqual({Id, ok, [recorded:bin(Batch) || Batch <- Batches]}, {Id, How, batches(Rows, Size)}),
    ?assertEqual(Rows, lists:append([parse(recorded:bin(Batch)) || Batch <- Batches])).

end_key(null) -> [];
end_key(End) -> [{end_key, recorded:bin(End)}].

batches(Rows, Size) -> batches(Rows, Size, <<>>).

batches([], _, <<>>) ->
    [];
batches([], _, Batch) ->
    [Batch];
batches([{K, V} | Rows], Size, Batch) ->
    case eleveldb:append_string(V, eleveldb:append_string(K, Batch)) of
        Full when byte_size(Full) >= Size -> [Full | batches(Rows, Size, <<>>)];
        More -> batches(Rows, Size, More)
    end.

parse(<<>>) ->
    [];
parse(Batch) ->
    {Key, More} = eleveldb:parse_string(Batch),
    {Value, Rest} = eleveldb:parse_string(More),
    [{Key, Value} | parse(Rest)].
