%% Riak TS rows for tests and demonstrations: made from a seed, encoded as Riak stores them, and judged by a filter in the plainest way.
%%
%% A row is what Riak TS puts: [{Name, Cell}], a cell being an integer, a float, a boolean, a binary or [] for NULL.
-module(riak_rows).

-export([generate/2, key/1, encode/2, object/2, tombstone/0, matches/2, matches/3]).
-export_type([row/0, encoding/0]).

-type cell() :: integer() | float() | boolean() | binary() | [].
-type row() :: [{binary(), cell()}].
-type encoding() :: ttb | msgpack.

%% Count rows of five measurements each, the same for the same seed. Every tenth temperature and note is NULL.
-spec generate(integer(), non_neg_integer()) -> [row()].
generate(Seed, Count) ->
    {Rows, _} = lists:mapfoldl(fun row/2, rand:seed_s(exsss, {Seed, Seed, Seed}), lists:seq(1, Count)),
    Rows.

row(N, S0) ->
    {Station, S1} = rand:uniform_s(8, S0),
    {Tenths, S2} = rand:uniform_s(600, S1),
    {Count, S3} = rand:uniform_s(2000000, S2),
    {Valid, S4} = rand:uniform_s(2, S3),
    {Null, S5} = rand:uniform_s(10, S4),
    Row = [
        {<<"station">>, <<"station", (integer_to_binary(Station))/binary>>},
        {<<"time">>, 1500000000000 + N * 1000},
        {<<"temperature">>, null_if(Null =:= 1, (Tenths - 200) / 10)},
        {<<"count">>, Count - 1000000},
        {<<"valid">>, Valid =:= 1},
        {<<"note">>, null_if(Null =:= 2, <<"reading ", (integer_to_binary(N))/binary>>)}
    ],
    {Row, S5}.

null_if(true, _) -> [];
null_if(false, Cell) -> Cell.

%% Sorts as station, then time.
-spec key(row()) -> binary().
key(Row) ->
    {_, Station} = lists:keyfind(<<"station">>, 1, Row),
    {_, Time} = lists:keyfind(<<"time">>, 1, Row),
    <<Station/binary, 0, Time:64>>.

%% The object as it is stored.
-spec encode(row(), encoding()) -> binary().
encode(Row, ttb) -> object(0, term_to_binary(Row));
encode(Row, msgpack) -> object(2, iolist_to_binary(msgpack(Row))).

%% A version 1 object with one sibling, an empty vector clock and no metadata.
-spec object(byte(), binary()) -> binary().
object(Tag, Payload) ->
    Clock = term_to_binary([]),
    Value = <<Tag, Payload/binary>>,
    Meta = <<0:32, 0:32, 0:32, 1, "e", 0>>,
    <<53, 1, (byte_size(Clock)):32, Clock/binary, 1:32, (byte_size(Value)):32, Value/binary, (byte_size(Meta)):32, Meta/binary>>.

%% What a deleted row leaves behind.
-spec tombstone() -> binary().
tombstone() ->
    Clock = term_to_binary([]),
    <<53, 1, (byte_size(Clock)):32, Clock/binary, 1:32, 1:32, 1, 15:32, 0:32, 0:32, 0:32, 1, "e", 1>>.

%% MessagePack as msgpack-erlang 0.3.5 wrote it: the old specification, where binaries and strings are one family and NULL is an empty array.
msgpack([]) -> <<16#90>>;
msgpack([{_, _} | _] = Row) -> [map_header(length(Row)), [[msgpack(Name), msgpack(Cell)] || {Name, Cell} <- Row]];
msgpack(true) -> <<16#c3>>;
msgpack(false) -> <<16#c2>>;
msgpack(Float) when is_float(Float) -> <<16#cb, Float:64/float>>;
msgpack(Bin) when is_binary(Bin) -> [raw_header(byte_size(Bin)), Bin];
msgpack(Int) when Int >= 0, Int < 128 -> <<Int>>;
msgpack(Int) when Int >= 0, Int < 1 bsl 8 -> <<16#cc, Int>>;
msgpack(Int) when Int >= 0, Int < 1 bsl 16 -> <<16#cd, Int:16>>;
msgpack(Int) when Int >= 0, Int < 1 bsl 32 -> <<16#ce, Int:32>>;
msgpack(Int) when Int >= 0 -> <<16#cf, Int:64>>;
msgpack(Int) when Int >= -32 -> <<Int:8/signed>>;
msgpack(Int) when Int >= -(1 bsl 7) -> <<16#d0, Int:8/signed>>;
msgpack(Int) when Int >= -(1 bsl 15) -> <<16#d1, Int:16/signed>>;
msgpack(Int) when Int >= -(1 bsl 31) -> <<16#d2, Int:32/signed>>;
msgpack(Int) -> <<16#d3, Int:64/signed>>.

map_header(N) when N < 16 -> <<8:4, N:4>>;
map_header(N) when N < 1 bsl 16 -> <<16#de, N:16>>;
map_header(N) -> <<16#df, N:32>>.

raw_header(N) when N < 32 -> <<5:3, N:5>>;
raw_header(N) when N < 1 bsl 16 -> <<16#da, N:16>>;
raw_header(N) -> <<16#db, N:32>>.

%% Whether the filter keeps the row, or bad_row where a field does not fit the type it is declared under. Every field that is named is judged, whatever
%% `and' and `or' would skip. The filter is one that can be used; every field in it has its type. `any' is not covered: it compares encoded bytes, which a
%% row here does not have. The key is key(Row) unless it is given.
-spec matches(term(), row()) -> boolean() | bad_row.
matches(Filter, Row) -> matches(Filter, undefined, Row).

-spec matches(term(), binary() | undefined, row()) -> boolean() | bad_row.
matches(Filter, Key, Row) ->
    try
        truth(Filter, {Key, Row}) =:= true
    catch
        throw:bad_row -> bad_row
    end.

%% true, false or unknown.
truth({And, A, B}, At) when And =:= and_; And =:= 'and' ->
    case lists:sort([truth(A, At), truth(B, At)]) of
        [false, _] -> false;
        [_, unknown] -> unknown;
        [true, true] -> true
    end;
truth({Or, A, B}, At) when Or =:= or_; Or =:= 'or' ->
    case lists:sort([truth(A, At), truth(B, At)]) of
        [true, _] -> true;
        [_, true] -> true;
        [_, unknown] -> unknown;
        [false, false] -> false
    end;
truth({not_, A}, At) ->
    case truth(A, At) of
        true -> false;
        false -> true;
        unknown -> unknown
    end;
truth({is_null, {field, _, Type} = Field}, At) ->
    operand(Field, Type, At) =:= null;
truth({in, Tested, Constants}, At) ->
    %% An empty list still judges the field.
    _ = operand(Tested, comparison_type(Tested, none), At),
    lists:foldl(fun(Constant, Truth) -> either(Truth, truth({'=', Tested, Constant}, At)) end, false, Constants);
truth({between, Tested, Low, High}, At) ->
    truth({and_, {'>=', Tested, Low}, {'=<', Tested, High}}, At);
truth({Text, Tested, {const, Pattern}}, At) when Text =:= prefix; Text =:= match ->
    case operand(Tested, varchar, At) of
        null -> unknown;
        {other, _} -> false;
        Bin when Text =:= prefix -> binary:longest_common_prefix([Bin, Pattern]) =:= byte_size(Pattern);
        Bin -> re:run(Bin, Pattern, [dollar_endonly, {capture, none}]) =:= match
    end;
truth({Op, {field, _, _} = Field, {const, []}}, At) ->
    is_null_test(Op, Field, At);
truth({Op, {const, []}, {field, _, _} = Field}, At) ->
    is_null_test(Op, Field, At);
truth({Op, A, B}, At) ->
    Type = comparison_type(A, B),
    compare(Op, operand(A, Type, At), operand(B, Type, At)).

either(true, _) -> true;
either(_, true) -> true;
either(unknown, _) -> unknown;
either(false, Truth) -> Truth.

is_null_test(Op, {field, _, Type} = Field, At) ->
    Null = operand(Field, Type, At) =:= null,
    case Op of
        '!=' -> not Null;
        _ -> Null
    end.

comparison_type({field, _, Type}, _) -> Type;
comparison_type(_, {field, _, Type}) -> Type;
comparison_type(key, _) -> varchar;
comparison_type(_, key) -> varchar;
comparison_type(_, _) -> double.

operand(key, _, {undefined, Row}) -> key(Row);
operand(key, _, {Key, _}) -> Key;
operand({const, Value}, boolean, _) -> stored(Value, boolean);
operand({const, Value}, Type, _) when Type =/= varchar -> number(Value);
operand({const, Value}, varchar, _) -> Value;
operand({field, Name, _}, Type, {_, Row}) ->
    case lists:keyfind(Name, 1, Row) of
        false -> null;
        {_, []} -> null;
        {_, Cell} -> stored(Cell, Type)
    end.

number(true) -> 1;
number(false) -> 0;
number(N) -> N.

stored(Cell, sint64) when is_integer(Cell), Cell >= -(1 bsl 63), Cell < 1 bsl 63 -> Cell;
stored(Cell, sint64) when is_float(Cell), Cell >= -9.223372036854775808e18, Cell < 9.223372036854775808e18, trunc(Cell) == Cell -> trunc(Cell);
stored(Cell, timestamp) when is_integer(Cell), Cell >= 0, Cell < 1 bsl 64 -> Cell;
stored(Cell, timestamp) when is_float(Cell), Cell >= 0.0, Cell < 1.8446744073709551616e19, trunc(Cell) == Cell -> trunc(Cell);
stored(Cell, double) when is_integer(Cell), abs(Cell) < 1 bsl 64 -> float(Cell);
stored(Cell, double) when is_float(Cell) -> Cell;
stored(Cell, boolean) when Cell =:= true; Cell == 1 -> true;
stored(Cell, boolean) when Cell =:= false; Cell == 0 -> false;
stored(Cell, varchar) when is_binary(Cell) -> Cell;
%% Not equal to any binary.
stored(Cell, varchar) -> {other, Cell};
stored(_, _) -> throw(bad_row).

%% Nothing compares with NULL.
compare(_, null, _) -> unknown;
compare(_, _, null) -> unknown;
compare(Op, A, B) when Op =:= '='; Op =:= '==' -> A == B;
compare('!=', A, B) -> A /= B;
compare('<', A, B) -> A < B;
compare('>', A, B) -> A > B;
compare('>=', A, B) -> A >= B;
compare(Op, A, B) when Op =:= '<='; Op =:= '=<' -> A =< B.
