%% Random tables and queries for prop_rows.
-module(random_rows).

-export([scenario/0]).

-include_lib("proper/include/proper.hrl").

-define(ENCODINGS, [ttb, msgpack]).

%% {Table, Changes to it, Queries}, as prop_rows has them.
scenario() ->
    ?LET(
        {Schema, Oddness, Copies},
        {schema(), frequency([{4, 0}, {3, 1}, {1, 8}]), frequency([{6, 1}, {1, 12}])},
        ?LET(
            Table,
            ?LET(Rows, rows(Schema, Oddness), replicated(Rows, Copies)),
            {Table, list({key(Table), frequency([{2, deleted}, {3, stored(Schema, Oddness)}])}), queries(Schema, Table, 24 div Copies + 4)}
        )
    ).

%% Columns in order, with the type most values fit.
schema() ->
    ?LET(
        N,
        range(1, 7),
        ?LET(Names, vector(N, oneof(some_names())), [{Name, oneof([sint64, timestamp, double, boolean, varchar, varchar, any])} || Name <- lists:usort(Names)])
    ).

some_names() ->
    [
        <<"n">>,
        <<"m">>,
        <<"time">>,
        <<"site">>,
        <<"temperature">>,
        <<>>,
        <<0>>,
        <<"n", 0>>,
        <<"größe"/utf8>>,
        <<255, 254>>,
        <<"12345678">>,
        <<"12345679">>,
        <<"123456789">>,
        binary:copy(<<"long">>, 16),
        <<(binary:copy(<<"long">>, 15))/binary, "lon.">>,
        binary:copy(<<"x">>, 63),
        binary:copy(<<"x">>, 300)
    ].

rows(Schema, Oddness) ->
    ?SIZED(Size, ?LET(N, range(Size div 2, Size + 10), vector(N, {short_key(), stored(Schema, Oddness)}))).

%% More rows of the same shapes than what is remembered of rows lasts for.
replicated(Rows, 1) -> Rows;
replicated(Rows, Copies) -> [{<<Key/binary, Copy>>, copy(Copy rem 4, Stored)} || Copy <- lists:seq(1, Copies), {Key, Stored} <- Rows].

%% Some copies have another name of the same length.
copy(2, {row, Encoding, [{Name, Value} | Fields], Damage}) ->
    {row, Encoding, [{twin(Name), Value} | Fields], Damage};
copy(3, {row, Encoding, Fields, Damage}) when Fields =/= [] ->
    {Front, [{Name, Value} | Back]} = lists:split(length(Fields) div 2, Fields),
    {row, Encoding, Front ++ [{twin(Name), Value} | Back], Damage};
copy(_, Stored) ->
    Stored.

twin(<<>>) -> <<>>;
twin(<<First, Rest/binary>>) -> <<(First bxor 1), Rest/binary>>.

%% Few enough to meet again, and such that one is often the beginning of another.
short_key() -> ?LET(Bytes, ?LET(N, frequency([{1, range(0, 2)}, {4, range(3, 6)}]), vector(N, oneof([0, $a, $b, 255]))), list_to_binary(Bytes)).

key([]) -> short_key();
key(Table) -> frequency([{3, oneof([Key || {Key, _} <- Table])}, {1, short_key()}]).

stored(Schema, Oddness) ->
    frequency(
        [{60, row(Schema, Oddness, none)}, {2, tombstone}] ++
            [{Oddness, ?LAZY(row(Schema, Oddness, damaged))} || Oddness > 0] ++
            [{Oddness, ?LAZY({broken, range(1, length(riak_rows:broken()))})} || Oddness > 0]
    ).

row(Schema, Oddness, Damaged) ->
    ?LET(
        Encoding,
        oneof(?ENCODINGS),
        ?LET(
            Fields,
            ?LET(All, [{Name, value(Encoding, Type, Oddness)} || {Name, Type} <- Schema], layout(All)),
            {row, Encoding, Fields, damage(Damaged, length(Fields))}
        )
    ).

damage(none, _) -> none;
damage(_, 0) -> none;
damage(damaged, N) -> oneof([{cut, range(1, N), range(1, 12)}, {no_field, range(1, N), range(1, 3)}]).

%% Mostly all columns in order. An ETF row has at least one.
layout(Fields) ->
    frequency([
        {20, Fields},
        {1, ?LET(N, range(1, length(Fields)), lists:sublist(Fields, N))},
        {1, ?LET(N, range(0, length(Fields) - 1), lists:nthtail(N, Fields))},
        {1, lists:reverse(Fields)},
        {1, ?LET({Name, Value}, {?LAZY(oneof(some_names())), value(msgpack, any, 0)}, [{Name, Value} | Fields])},
        {1, ?LET(Field, oneof(Fields), Fields ++ [Field | Fields])}
    ]).

value(Encoding, Type, Oddness) ->
    frequency(
        [{80, ?LAZY({plain, cell(Type)})}, {8, {plain, []}}] ++
            [{Oddness, ?LAZY({odd, oneof([Name || {Name, _} <- riak_rows:odd(Encoding)])})} || Oddness > 0] ++
            [{Oddness, ?LAZY({plain, cell(any)})} || Oddness > 0]
    ).

%% Lazy, for a choice costs as much as all its alternatives do.
cell(sint64) ->
    Floats = [1.0, -2.0, 0.0, -0.0, 4.0e18, -9.223372036854775808e18, 1.0e15],
    frequency([{3, range(-3, 3)}, {2, ?LAZY(oneof(integers()))}, {1, ?LAZY(oneof(Floats))}, {1, integer()}]);
cell(timestamp) ->
    oneof([range(0, 3), ?LAZY(oneof([N || N <- integers(), N >= 0])), 1.0, 1.8e19, (1 bsl 64) - 1, range(1700000000000, 1700000000009)]);
cell(double) ->
    frequency([{3, ?LAZY(oneof(floats()))}, {1, float()}, {1, ?LAZY(oneof(integers()))}, {1, range(-3, 3)}]);
cell(boolean) ->
    frequency([{6, boolean()}, {1, oneof([0, 1, 0.0, 1.0, -0.0])}]);
cell(varchar) ->
    frequency([{4, ?LAZY(oneof(texts()))}, {1, binary()}]);
cell(any) ->
    ?LET(Type, oneof([sint64, timestamp, double, boolean, varchar]), cell(Type)).

integers() ->
    Edges = [7, 8, 15, 16, 24, 27, 31, 32, 53, 55, 56, 59, 60, 62, 63],
    lists:usort([Sign * ((1 bsl Bits) + Add) || Bits <- Edges, Add <- [-1, 0, 1], Sign <- [1, -1], Bits < 63 orelse Add =< 0]) ++
        [1 bsl 63, (1 bsl 63) + 1, (1 bsl 64) - 1025, (1 bsl 64) - 1024, (1 bsl 64) - 1].

floats() ->
    Positive = [0.0, 5.0e-324, 2.2250738585072014e-308, 0.1, 0.5, 1.0, 1.5, 2.5, 9007199254740992.0, 9.223372036854775808e18, 1.8446744073709551616e19, 1.0e100] ++
        [1.7976931348623157e308],
    Positive ++ [-Float || Float <- Positive].

texts() ->
    [<<>>, <<"a">>, <<"b">>, <<"ab">>, <<"abc">>, <<"AbC">>, <<"a", 0>>, <<"\n">>, <<"a\nb">>, <<"north-1">>, <<"north-12">>, <<"North-12">>, <<"south-7">>] ++
        [<<"größe"/utf8>>, <<"日本語"/utf8>>, <<255>>, <<"a", 255, "b">>, <<237, 160, 128>>, <<"12345678">>, <<"123456789">>] ++
        [binary:copy(<<"t">>, Size) || Size <- [31, 32, 63, 64, 255, 256, 300]].

patterns() ->
    [<<>>, <<"a">>, <<"^a">>, <<"b$">>, <<"^$">>, <<"^(?:north|south)-[0-9]+$">>, <<"(?i)^north">>, <<"a.b">>, <<"(?s)a.b">>, <<"^.{3}$">>, <<"t{64}">>] ++
        [<<"^[^a-c]*$">>, <<"ö"/utf8>>, <<"^[日本]+"/utf8>>, <<"[0-9]{8,}">>, <<"a|^$">>, <<"(?m)^b">>, <<"\\x{0}">>, <<"\\d\\d$">>, <<"^gr..e$">>].

filter(Schema, Table) -> filter(Schema, Table, 4).

filter(Schema, Table, 0) ->
    test(Schema, Table);
filter(Schema, Table, Depth) ->
    Part = ?LAZY(filter(Schema, Table, Depth - 1)),
    frequency([{3, test(Schema, Table)}, {2, {oneof([and_, 'and']), Part, Part}}, {2, {oneof([or_, 'or']), Part, Part}}, {1, {not_, Part}}]).

test(Schema, Table) ->
    frequency([
        {20, ?LET({field, _, Type} = Field, field(Schema), field_test(Schema, Field, Type))},
        {3, ?LAZY(key_test(Table))},
        {1, ?LAZY({comparison(), {const, constant(double)}, {const, constant(double)}})}
    ]).

%% Mostly a column as what it is.
field(Schema) ->
    Types = [sint64, timestamp, double, boolean, varchar, any],
    frequency([
        {20, ?LET({Name, Type}, oneof(Schema), {field, Name, Type})},
        {2, ?LET({Name, _}, oneof(Schema), {field, Name, varchar})},
        {1, ?LET({Name, _}, oneof(Schema), {field, Name, oneof(Types)})},
        {1, ?LAZY({field, oneof(some_names()), oneof(Types)})}
    ]).

field_test(Schema, Field, Type) ->
    Op =
        case lists:member(Type, [sint64, timestamp, double]) of
            true -> comparison();
            false -> oneof(['=', '==', '!='])
        end,
    Text = Type =:= varchar orelse Type =:= any,
    Other = [{field, Name, T} || {Name, T} <- Schema, T =:= Type orelse (Text andalso (T =:= varchar orelse T =:= any))],
    Constant = ?LAZY({const, constant(Type)}),
    frequency(
        [{8, {Op, Field, Constant}}, {2, {Op, Constant, Field}}, {2, {is_null, Field}}, {3, {in, Field, ?LAZY(list(Constant))}}] ++
            [{2, {Op, Field, ?LAZY(oneof(Other))}} || Other =/= []] ++
            [{3, {between, Field, Constant, Constant}} || not Text, Type =/= boolean] ++
            [{1, {Op, Field, {const, []}}} || Text] ++
            [{1, {Op, {const, []}, Field}} || Text] ++
            [{2, {prefix, Field, Constant}} || Type =:= varchar] ++
            [{2, {match, Field, {const, ?LAZY(oneof(patterns()))}}} || Type =:= varchar]
    ).

key_test(Table) ->
    Key = {const, key(Table)},
    oneof([
        {comparison(), key, Key},
        {comparison(), Key, key},
        {in, key, list(Key)},
        {between, key, Key, Key},
        {prefix, key, Key},
        {match, key, {const, oneof([<<"^a">>, <<"b$">>, <<"a.*b">>, <<"^$">>, <<"[^ab]">>])}}
    ]).

comparison() -> oneof(['=', '==', '!=', '<', '>', '<=', '=<', '>=']).

constant(sint64) -> oneof([range(-3, 3), ?LAZY(oneof([N || N <- integers(), N < 1 bsl 63])), 1.0, -2147483647.0, boolean()]);
constant(timestamp) -> oneof([range(0, 3), ?LAZY(oneof([N || N <- integers(), N >= 0])), range(1700000000000, 1700000000009), 2.0, boolean()]);
constant(double) -> oneof([?LAZY(oneof(floats())), range(-3, 3), ?LAZY(oneof(integers())), boolean()]);
constant(boolean) -> frequency([{4, boolean()}, {1, oneof([0, 1, 2, 255, 1.0, 0.0, 3.0])}]);
constant(varchar) -> ?LAZY(oneof(texts()));
constant(any) -> ?LET({Encoding, Cell}, {oneof(?ENCODINGS), cell(any)}, riak_rows:cell(Encoding, Cell)).

queries(Schema, Table, Count) ->
    vector(Count, ?LET(Pages, frequency([{4, none}, {1, range(1, 7)}]), query(Schema, Table, Pages))).

query(Schema, Table, Pages) ->
    ?LET(
        {View, Filter, Spelling, Form, Options, Ranges, Limit},
        {
            oneof([store, snapshot]),
            frequency([{1, none}, {4, ?LAZY(filter(Schema, Table))}]),
            frequency([{3, plain}, {1, otherwise}]),
            form(Schema),
            options(),
            frequency([{3, [{undefined, undefined, true, false, alone}]}, {3, [range_of(Table, alone)]}, {2, non_empty(resize(4, list(range_of(Table, one))))}]),
            frequency([{4, 0}, {2, range(1, 9)}])
        },
        #{
            view => View,
            filter => Filter,
            spelling => Spelling,
            form => Form,
            options => maps:from_list(lists:append(Options)),
            ranges => Ranges,
            limit =>
                case Pages of
                    none -> Limit;
                    _ -> 0
                end,
            pages => Pages
        }
    ).

form(Schema) ->
    Name = frequency([{9, oneof([Name || {Name, _} <- Schema])}, {1, ?LAZY(oneof(some_names()))}]),
    ?LET(
        {Rows, Keys, Foreign},
        {
            frequency([
                {2, oneof([kv, keys])},
                {2, terms},
                {2, cells},
                {3, {select, non_empty(resize(5, list(Name)))}},
                {1, {groups, resize(2, list(Name)), resize(2, list(Name))}}
            ]),
            oneof([[], [], [{with_keys, true}], [{with_keys, false}]]),
            oneof([[], [{on_foreign, skip}], [{on_foreign, error}]])
        },
        maps:from_list([{rows, Rows} | Keys ++ Foreign])
    ).

options() ->
    [
        oneof([[], [{reverse, true}]]),
        oneof([[], [{max_batch_bytes, 1}], [{max_batch_bytes, 100}]]),
        oneof([[], [{max_unacked_bytes, 1}], [{max_unacked_bytes, 300}]]),
        frequency([{9, []}, {1, [{cost, true}, {deadline, 60000}]}])
    ].

range_of(Table, Alone) ->
    Bound = frequency([{1, undefined}, {4, key(Table)}]),
    {Bound, Bound, boolean(), boolean(), Alone}.
