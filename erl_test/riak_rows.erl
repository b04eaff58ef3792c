%% Riak TS rows for tests and demonstrations: made from a seed, encoded as Riak stores them, and judged by a filter in the plainest way.
%%
%% A row is what Riak TS puts: [{Name, Cell}], a cell being an integer, a float, a boolean, a binary or [] for NULL.
-module(riak_rows).

-export([generate/2, key/1, encode/2, cell/2, payload/2, object/2, tombstone/0, odd/1, broken/0, matches/2, matches/3]).
-export_type([row/0, encoding/0, seen/0]).

-type cell() :: integer() | float() | boolean() | binary() | [].
-type row() :: [{binary(), cell()}].
-type encoding() :: ttb | msgpack.

-type seen() :: cell() | nan | inf | '-inf' | other.
%% What a filter can see in a stored value; other is whatever has no meaning to it: lists, maps, atoms, ...

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

%% One stored value.
-spec cell(encoding(), cell() | term()) -> binary().
cell(ttb, Cell) ->
    <<131, Bytes/binary>> = term_to_binary(Cell),
    Bytes;
cell(msgpack, Cell) ->
    iolist_to_binary(msgpack(Cell)).

%% A row of stored values, as it follows the encoding byte. Erlang writes the row without fields otherwise, as a value that is no row.
-spec payload(encoding(), [{Name :: binary(), Stored :: binary()}]) -> binary().
payload(ttb, Fields) ->
    iolist_to_binary([<<131, 108, (length(Fields)):32>>, [[<<104, 2>>, cell(ttb, Name), Stored] || {Name, Stored} <- Fields], 106]);
payload(msgpack, Fields) ->
    iolist_to_binary([map_header(length(Fields)), [[msgpack(Name), Stored] || {Name, Stored} <- Fields]]).

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

%% Values that Riak TS does not write, or not so, by name: {what is delivered, what a filter sees, as it is stored}. What must not be delivered is foreign.
-spec odd(encoding()) -> [{atom(), {term(), seen(), binary()}}].
odd(ttb) ->
    Nested = [
        {string, [1, 2, 3]},
        {list, [1, <<"a">>, [], [2.5]]},
        {improper, [1 | <<"tail">>]},
        {tuple, {1, {true, -1}}},
        {map, #{<<"k">> => [1], 2 => #{}}},
        {bits, <<5:3>>},
        {pairs, [{<<"x">>, true}, {<<"y">>, []}]},
        {big, 1 bsl 70},
        {negative_big, -(1 bsl 64)},
        {large_big, 1 bsl 2100}
    ],
    Foreign = [
        {atom, site},
        {undefined, undefined},
        {empty_atom, ''},
        {deep_atom, [1, {<<"a">>, [site]}]},
        {atom_as_key, #{site => 1}},
        {atom_in_map, #{1 => 2, 3 => [site]}},
        {pid, list_to_pid("<0.1.0>")},
        {reference, list_to_ref("#Ref<0.1.2.3>")},
        {function, fun erlang:abs/1}
    ],
    [{Name, {Term, other, cell(ttb, Term)}} || {Name, Term} <- Nested] ++
        [{Name, {foreign, other, cell(ttb, Term)}} || {Name, Term} <- Foreign] ++
        [
            {same_keys, {foreign, other, <<116, 2:32, 97, 1, 97, 1, 97, 1, 97, 2>>}},
            {nan, {foreign, nan, <<70, 16#7ff8000000000000:64>>}},
            {infinity, {foreign, inf, <<70, 16#7ff0000000000000:64>>}},
            {negative_infinity, {foreign, '-inf', <<70, 16#fff0000000000000:64>>}},
            {deep_nan, {foreign, other, <<104, 1, 70, 16#7ff8000000000001:64>>}},
            {float_as_text, {1.5, 1.5, binary:part(term_to_binary(1.5, [{minor_version, 0}]), 1, 32)}},
            {old_true, {true, true, <<100, 4:16, "true">>}},
            {short_true, {true, true, <<115, 4, "true">>}},
            {utf8_false, {false, false, <<118, 5:16, "false">>}},
            {short_utf8_false, {false, false, <<119, 5, "false">>}},
            {wide_integer, {5, 5, <<98, 5:32>>}},
            {padded_big, {7, 7, <<110, 4, 0, 7, 0, 0, 0>>}},
            {negative_zero_big, {0, 0, <<110, 1, 1, 0>>}},
            {wide_big, {-9, -9, <<111, 9:32, 1, 9, 0:64>>}}
        ];
odd(msgpack) ->
    [
        {nil, {[], other, <<16#c0>>}},
        {empty_array16, {[], other, <<16#dc, 0:16>>}},
        {empty_map, {[], other, <<16#80>>}},
        {array, {[1, [], <<"a">>, [2.5]], other, <<16#94, 1, 16#90, 16#a1, "a", 16#91, 16#cb, 2.5/float>>}},
        {array32, {[true, []], other, <<16#dd, 2:32, 16#c3, 16#c0>>}},
        {map, {[{<<"k">>, 1}, {-1, [{1, 2}]}], other, <<16#82, 16#a1, "k", 1, 16#ff, 16#81, 1, 2>>}},
        {map16, {[{1, 1}, {1, 2}], other, <<16#de, 2:16, 1, 1, 1, 2>>}},
        {ext1, {foreign, other, <<16#d4, 1, 2>>}},
        {ext16, {foreign, other, <<16#d8, 1, 0:128>>}},
        {ext8, {foreign, other, <<16#c7, 3, 9, "abc">>}},
        {deep_ext, {foreign, other, <<16#92, 1, 16#81, 1, 16#d6, 1, 0:32>>}},
        {nan, {foreign, nan, <<16#cb, 16#7ff8000000000000:64>>}},
        {infinity, {foreign, inf, <<16#cb, 16#7ff0000000000000:64>>}},
        {short_infinity, {foreign, inf, <<16#ca, 16#7f800000:32>>}},
        {short_negative_infinity, {foreign, '-inf', <<16#ca, 16#ff800000:32>>}},
        {deep_nan, {foreign, other, <<16#91, 16#ca, 16#7fc00000:32>>}},
        {short_float, {1.5, 1.5, <<16#ca, 1.5:32/float>>}},
        {bin8, {<<"a">>, <<"a">>, <<16#c4, 1, "a">>}},
        {bin16, {<<>>, <<>>, <<16#c5, 0:16>>}},
        {bin32, {<<"ab">>, <<"ab">>, <<16#c6, 2:32, "ab">>}},
        {str8, {<<"a">>, <<"a">>, <<16#d9, 1, "a">>}},
        {str16, {<<"abc">>, <<"abc">>, <<16#da, 3:16, "abc">>}},
        {str32, {<<>>, <<>>, <<16#db, 0:32>>}},
        {uint8, {5, 5, <<16#cc, 5>>}},
        {uint16, {5, 5, <<16#cd, 5:16>>}},
        {uint32, {5, 5, <<16#ce, 5:32>>}},
        {uint64, {5, 5, <<16#cf, 5:64>>}},
        {int8, {5, 5, <<16#d0, 5>>}},
        {int16, {-5, -5, <<16#d1, -5:16>>}},
        {int32, {-5, -5, <<16#d2, -5:32>>}},
        {int64, {-1, -1, <<16#d3, -1:64>>}}
    ].

%% Stored values that are no rows, whatever is asked of them.
-spec broken() -> [binary()].
broken() ->
    Clock = term_to_binary([]),
    Whole = encode([{<<"n">>, 5}, {<<"v">>, <<"a">>}], ttb),
    [<<>>, <<53>>, <<"no object">>, term_to_binary({r_object, <<"b">>, <<"k">>})] ++
        [binary:part(Whole, 0, Size) || Size <- [5, 6, 9, 14, 21]] ++
        [<<53, 2, (binary:part(Whole, 2, byte_size(Whole) - 2))/binary>>] ++
        %% None and two siblings, and one without its encoding byte.
        [<<53, 1, (byte_size(Clock)):32, Clock/binary, Siblings:32, 2:32, 0, 106, 0:32>> || Siblings <- [0, 2]] ++
        [<<53, 1, (byte_size(Clock)):32, Clock/binary, 1:32, 0:32, 0:32>>] ++
        [
            object(Tag, Payload)
         || {Tag, Payload} <- [
                {0, <<>>},
                {2, <<>>},
                {1, <<"{}">>},
                {3, term_to_binary([{<<"n">>, 5}])},
                {0, <<"[]">>},
                {0, term_to_binary([])},
                {0, term_to_binary([1, 2])},
                {0, term_to_binary(#{<<"n">> => 5})},
                {0, term_to_binary([{<<"n">>, binary:copy(<<0>>, 200)}], [compressed])},
                {2, <<16#90>>},
                {2, <<16#c0>>},
                {2, <<16#de, 0>>}
            ]
        ].

%% Whether the filter keeps the row, or bad_row where a field does not fit the type it is declared under. Every field that is named is judged, whatever
%% `and' and `or' would skip. The filter is one that can be used; every field in it has its type. A field of the row may be {Name, Seen, Stored}: `any'
%% compares the stored bytes. The key is key(Row) unless it is given.
-spec matches(term(), row()) -> boolean() | bad_row.
matches(Filter, Row) -> matches(Filter, undefined, Row).

-spec matches(term(), binary() | undefined, row() | [{binary(), seen(), binary()}]) -> boolean() | bad_row.
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
    either(truth(A, At), truth(B, At));
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
        other -> false;
        Bin when Text =:= prefix -> binary:longest_common_prefix([Bin, Pattern]) =:= byte_size(Pattern);
        Bin -> re:run(characters(Bin), Pattern, [unicode, dollar_endonly, {capture, none}]) =:= match
    end;
truth({Op, {field, _, _} = Field, {const, []}}, At) ->
    is_null_test(Op, Field, At);
truth({Op, {const, []}, {field, _, _} = Field}, At) ->
    is_null_test(Op, Field, At);
truth({Op, A, B}, At) ->
    compare(Op, operand(A, comparison_type(A, B), At), operand(B, comparison_type(B, A), At)).

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

%% Bytes that are no UTF-8 are one unknown character each.
characters(<<Char/utf8, Rest/binary>>) -> <<Char/utf8, (characters(Rest))/binary>>;
characters(<<_, Rest/binary>>) -> <<16#fffd/utf8, (characters(Rest))/binary>>;
characters(<<>>) -> <<>>.

%% The type of one side: its own, or the other's.
comparison_type({field, _, Type}, _) -> Type;
comparison_type(key, _) -> varchar;
comparison_type(_, {field, _, Type}) -> Type;
comparison_type(_, key) -> varchar;
comparison_type(_, _) -> double.

operand(key, _, {undefined, Row}) -> key(Row);
operand(key, _, {Key, _}) -> Key;
operand({const, Value}, Type, _) -> constant(Value, Type);
operand({field, Name, _}, Type, {_, Row}) ->
    %% The first of several fields of one name counts.
    case lists:keyfind(Name, 1, Row) of
        false -> null;
        Field when element(2, Field) =:= [] -> null;
        {_, _, Stored} when Type =:= any -> Stored;
        Field -> stored(element(2, Field), Type)
    end.

constant(Bin, Type) when Type =:= varchar; Type =:= any -> Bin;
constant(Value, double) -> float(number(Value));
constant(Value, _) -> trunc(number(Value)).

number(true) -> 1;
number(false) -> 0;
number(N) -> N.

stored(Cell, Type) when is_boolean(Cell), Type =/= varchar -> stored(number(Cell), Type);
stored(Cell, sint64) when is_integer(Cell), Cell >= -(1 bsl 63), Cell < 1 bsl 63 -> Cell;
stored(Cell, sint64) when is_float(Cell), Cell >= -9.223372036854775808e18, Cell < 9.223372036854775808e18, trunc(Cell) == Cell -> trunc(Cell);
stored(Cell, timestamp) when is_integer(Cell), Cell >= 0, Cell < 1 bsl 64 -> Cell;
stored(Cell, timestamp) when is_float(Cell), Cell >= 0.0, Cell < 1.8446744073709551616e19, trunc(Cell) == Cell -> trunc(Cell);
stored(Cell, double) when is_integer(Cell), abs(Cell) < 1 bsl 64 -> float(Cell);
stored(Cell, double) when is_float(Cell); Cell =:= nan; Cell =:= inf; Cell =:= '-inf' -> Cell;
stored(Cell, boolean) when Cell == 1 -> 1;
stored(Cell, boolean) when Cell == 0 -> 0;
stored(Cell, varchar) when is_binary(Cell) -> Cell;
stored(_, varchar) -> other;
stored(_, _) -> throw(bad_row).

%% Nothing compares with NULL. Not a number, and what is no text, differ from everything, themselves included.
compare(_, null, _) -> unknown;
compare(_, _, null) -> unknown;
compare(Op, A, B) when A =:= nan; B =:= nan; A =:= other; B =:= other -> Op =:= '!=';
compare(Op, A, B) when Op =:= '='; Op =:= '==' -> place(A) == place(B);
compare('!=', A, B) -> place(A) /= place(B);
compare('<', A, B) -> place(A) < place(B);
compare('>', A, B) -> place(A) > place(B);
compare('>=', A, B) -> place(A) >= place(B);
compare(Op, A, B) when Op =:= '<='; Op =:= '=<' -> place(A) =< place(B).

place('-inf') -> {-1, 0};
place(inf) -> {1, 0};
place(Value) -> {0, Value}.
