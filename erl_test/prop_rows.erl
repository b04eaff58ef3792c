%% A scan delivers what the plainest evaluation of the same rows gives: random tables, filters, row forms, ranges, pages and snapshots.
%%
%% A table is a list of {Key, Stored}, the last of equal keys counts. Stored is
%%   {row, Encoding, [{Name, Value}], Damage}   Value being {plain, Cell} or {odd, Atom}, see riak_rows:odd/1. Damage: none; {cut, N, Bytes}, the row
%%                                              ends so many bytes before the end of field N; {no_field, N, Kind}, field N is none
%%   tombstone, {broken, N}, deleted            a deleted row; one of riak_rows:broken/0; no such key
-module(prop_rows).

-export([as_evaluated/2]).

-include_lib("proper/include/proper.hrl").

-define(ENCODINGS, [ttb, msgpack]).

%% Db is empty, and is so again after every case. Count is called with what every query came to and its number of rows.
as_evaluated(Db, Count) ->
    ?FORALL(
        {Table, Changes, Queries},
        scenario(),
        begin
            Result =
                try
                    run(Db, Count, Table, Changes, Queries)
                catch
                    Class:Reason:Stack -> {Class, Reason, Stack}
                end,
            ok = write(Db, [{Key, deleted} || {Key, _} <- Table ++ Changes]),
            ?WHENFAIL(io:format("~ntable ~p~nchanges ~p~n~p~n", [Table, Changes, Result]), Result =:= ok)
        end
    ).

%% Every query sees the table as it was, by a snapshot, or as the changes left it.
run(Db, Count, Table, Changes, Queries) ->
    ok = write(Db, Table),
    {ok, Snapshot} = scanode:snapshot(Db),
    ok = write(Db, Changes),
    Before = change(Table, []),
    After = change(Changes, Before),
    try
        first_fault(
            [fun() -> gets(View, Rows, Table ++ Changes) end || {View, Rows} <- [{Snapshot, Before}, {Db, After}]] ++
                [
                    case Query of
                        #{view := snapshot} -> fun() -> query(Snapshot, Before, Count, Query) end;
                        #{view := store} -> fun() -> query(Db, After, Count, Query) end
                    end
                 || Query <- Queries
                ]
        )
    after
        ok = scanode:close(Snapshot)
    end.

first_fault([]) ->
    ok;
first_fault([Check | Checks]) ->
    case Check() of
        ok -> first_fault(Checks);
        Fault -> Fault
    end.

write(Db, Changes) ->
    scanode:write(Db, [operation(Change) || Change <- Changes], #{}).

operation({Key, deleted}) -> {delete, Key};
operation({Key, Stored}) -> {put, Key, bytes(Stored)}.

change(Changes, Rows) ->
    lists:foldl(
        fun
            ({Key, deleted}, Acc) -> orddict:erase(Key, Acc);
            ({Key, Stored}, Acc) -> orddict:store(Key, read(Stored), Acc)
        end,
        Rows,
        Changes
    ).

gets(Db, Rows, Changes) ->
    Keys = lists:sublist([Key || {Key, _} <- Changes], 3),
    Got = [scanode:get(Db, Key) || Key <- Keys],
    case [found(orddict:find(Key, Rows)) || Key <- Keys] of
        Got -> ok;
        Want -> {get, Keys, got, Got, want, Want}
    end.

found({ok, {Bytes, _, _}}) -> {ok, Bytes};
found(error) -> not_found.

%% What is stored: {its bytes, its first fields [{Name, Delivered, Seen, Bytes}], how they go on}: whole; damaged; tombstone; broken.
read({row, Encoding, Fields, Damage} = Stored) ->
    Read = [{Name, Term, Seen, Bytes} || {Name, Value} <- Fields, {Term, Seen, Bytes} <- [value(Encoding, Value)]],
    case Damage of
        none -> {bytes(Stored), Read, whole};
        {_, N, _} -> {bytes(Stored), lists:sublist(Read, N - 1), damaged}
    end;
read(Stored) ->
    {bytes(Stored), [],
        case Stored of
            tombstone -> tombstone;
            {broken, _} -> broken
        end}.

value(Encoding, {plain, Cell}) -> {Cell, Cell, riak_rows:cell(Encoding, Cell)};
value(Encoding, {odd, Name}) -> proplists:get_value(Name, riak_rows:odd(Encoding)).

bytes(tombstone) ->
    riak_rows:tombstone();
bytes({broken, N}) ->
    lists:nth(N, riak_rows:broken());
bytes({row, Encoding, Fields, Damage}) ->
    Stored = [{Name, element(3, value(Encoding, Value))} || {Name, Value} <- Fields],
    Payload =
        case Damage of
            none ->
                riak_rows:payload(Encoding, Stored);
            {cut, N, Bytes} ->
                Field = byte_size(field(Encoding, lists:nth(N, Stored))),
                Head = byte_size(whole(Encoding, Stored)) - byte_size(rest(Encoding, Stored, N - 1)),
                binary:part(riak_rows:payload(Encoding, Stored), 0, Head + max(0, Field - Bytes));
            {no_field, N, Kind} ->
                Rest = rest(Encoding, Stored, N),
                Head = binary:part(whole(Encoding, Stored), 0, byte_size(whole(Encoding, Stored)) - byte_size(rest(Encoding, Stored, N - 1))),
                <<Head/binary, (no_field(Encoding, Kind))/binary, Rest/binary>>
        end,
    riak_rows:object(maps:get(Encoding, #{ttb => 0, msgpack => 2}), Payload).

%% The payload up to the end of its fields, and what of it follows the first N.
whole(ttb, Stored) ->
    Payload = riak_rows:payload(ttb, Stored),
    binary:part(Payload, 0, byte_size(Payload) - 1);
whole(msgpack, Stored) ->
    riak_rows:payload(msgpack, Stored).

rest(Encoding, Stored, N) ->
    iolist_to_binary([field(Encoding, Field) || Field <- lists:nthtail(N, Stored)]).

field(ttb, {Name, Bytes}) -> <<104, 2, (riak_rows:cell(ttb, Name))/binary, Bytes/binary>>;
field(msgpack, {Name, Bytes}) -> <<(riak_rows:cell(msgpack, Name))/binary, Bytes/binary>>.

no_field(ttb, 1) -> riak_rows:cell(ttb, site);
no_field(ttb, 2) -> riak_rows:cell(ttb, {<<"n">>, 5, 6});
no_field(ttb, _) -> riak_rows:cell(ttb, {site, 5});
no_field(msgpack, 1) -> <<16#c0, 5>>;
no_field(msgpack, 2) -> <<16#c4, 1, "n", 5>>;
no_field(msgpack, _) -> <<5, 5>>.

%% One query, as a whole or page by page.
query(Db, Rows, Count, #{filter := Filter, spelling := Spelling, form := Form, options := Options, ranges := Ranges, limit := Limit, pages := Pages} = Query) ->
    Reverse = maps:get(reverse, Options, false),
    Visited = visited(Ranges, Reverse, Rows),
    Judge = judge(Filter, Form),
    Asked = maps:merge(maps:merge(Options, Form), range_options(Ranges)),
    Filtered =
        case Filter of
            none -> Asked;
            _ -> Asked#{filter => spell(Spelling, Filter)}
        end,
    {WantRows, WantEnd, WantRead} = evaluate(Judge, Visited, Limit, [], 0),
    Got =
        case Pages of
            none -> whole_scan(Db, Filtered#{limit => Limit});
            Size -> pages(Db, Filtered#{limit => Size}, Size, [])
        end,
    Want =
        case {Pages, WantEnd} of
            {none, failed} -> {WantRows, failed};
            {none, _} -> {WantRows, WantEnd, #{rows => length(WantRows), rows_read => WantRead}};
            {_, failed} -> {WantRows, failed};
            {_, complete} -> {WantRows, complete}
        end,
    %% Encoded, 0.0 and -0.0 differ.
    case term_to_binary(Got) =:= term_to_binary(Want) of
        true ->
            Count(WantEnd, length(WantRows), Query),
            ok;
        false ->
            {Query, sent, Filtered, got, Got, want, Want}
    end.

whole_scan(Db, Options) ->
    case scan(Db, Options) of
        {Rows, #{continuation := More, rows := N, rows_read := Read}} when is_binary(More) -> {Rows, limited, #{rows => N, rows_read => Read}};
        {Rows, #{rows := N, rows_read := Read}} -> {Rows, complete, #{rows => N, rows_read => Read}};
        Failed -> Failed
    end.

pages(Db, Options, Size, Before) ->
    case scan(Db, Options) of
        {Rows, failed} when length(Rows) < Size -> {Before ++ Rows, failed};
        {Rows, #{continuation := More}} when length(Rows) =:= Size -> pages(Db, Options#{continue => More}, Size, Before ++ Rows);
        {Rows, Facts} when is_map(Facts), length(Rows) < Size, not is_map_key(continuation, Facts) -> {Before ++ Rows, complete};
        Other -> {page, Other, before, Before}
    end.

scan(Db, Options) ->
    _ = put(?MODULE, []),
    Keep = fun(Row, ok) ->
        _ = put(?MODULE, [Row | get(?MODULE)]),
        ok
    end,
    try scanode:fold_info(Db, Keep, ok, Options) of
        {ok, Facts} -> {lists:reverse(get(?MODULE)), Facts}
    catch
        error:{scan, {bad_row, Text}} when is_binary(Text) -> {lists:reverse(get(?MODULE)), failed};
        error:{scan, Reason} -> {lists:reverse(get(?MODULE)), Reason}
    end.

range_options([{Start, End, StartIn, EndIn, alone}]) ->
    maps:from_list(
        [{start, Start} || Start =/= undefined] ++ [{'end', End} || End =/= undefined] ++
            [{start_inclusive, StartIn} || not StartIn] ++ [{end_inclusive, EndIn} || EndIn]
    );
range_options(Ranges) ->
    #{
        ranges => [
            case {StartIn, EndIn} of
                {true, false} -> {Start, End};
                Both -> {Start, End, Both}
            end
         || {Start, End, StartIn, EndIn, _} <- Ranges
        ]
    }.

visited(Ranges, Reverse, Rows) ->
    lists:append([
        begin
            Within = [Row || {Key, _} = Row <- Rows, above(Key, Start, StartIn), below(Key, End, EndIn)],
            case Reverse of
                true -> lists:reverse(Within);
                false -> Within
            end
        end
     || {Start, End, StartIn, EndIn, _} <- Ranges
    ]).

above(_, undefined, _) -> true;
above(Key, Start, true) -> Key >= Start;
above(Key, Start, false) -> Key > Start.

below(_, undefined, _) -> true;
below(Key, End, true) -> Key =< End;
below(Key, End, false) -> Key < End.

evaluate(_, Rows, Limit, Sent, Read) when Rows =:= []; Limit > 0, length(Sent) =:= Limit ->
    End =
        case Limit > 0 andalso length(Sent) =:= Limit of
            true -> limited;
            false -> complete
        end,
    {lists:reverse(Sent), End, Read};
evaluate(Judge, [{Key, Stored} | Rows], Limit, Sent, Read) ->
    case Judge(Key, Stored) of
        {send, Row} -> evaluate(Judge, Rows, Limit, [Row | Sent], Read + 1);
        leave -> evaluate(Judge, Rows, Limit, Sent, Read + 1);
        bad_row -> {lists:reverse(Sent), failed, Read + 1}
    end.

%% Whether a row is sent, and how.
judge(Filter, #{rows := Form} = Options) ->
    fun(Key, Stored) ->
        case passes(Filter, Key, Stored) of
            true -> shape(Form, Options, Key, Stored);
            false -> leave;
            bad_row -> bad_row
        end
    end.

passes(none, _, _) -> true;
passes(_, _, {_, _, broken}) -> bad_row;
passes(_, _, {_, _, tombstone}) -> false;
passes(Filter, Key, {_, Fields, End}) ->
    case reaches(names(Filter), Fields, End) of
        true -> riak_rows:matches(Filter, Key, [{Name, Seen, Bytes} || {Name, _, Seen, Bytes} <- Fields]);
        false -> bad_row
    end.

%% A row is read until the names are found.
reaches(_, _, whole) -> true;
reaches(Names, Fields, damaged) -> Names -- [Name || {Name, _, _, _} <- Fields] =:= [].

names(Filter) -> lists:usort(named(Filter)).

named({field, Name, _}) -> [Name];
named({const, _}) -> [];
named(Filter) when is_tuple(Filter) -> lists:append([named(Part) || Part <- tl(tuple_to_list(Filter))]);
named(_) -> [].

shape(kv, _, Key, {Bytes, _, _}) -> {send, {Key, Bytes}};
shape(keys, _, Key, _) -> {send, Key};
shape(_, _, _, {_, _, broken}) -> bad_row;
shape(_, _, _, {_, _, tombstone}) -> leave;
shape({select, Names}, Options, Key, {_, Fields, End}) ->
    case reaches(lists:usort(Names), Fields, End) of
        true -> sent([{Name, selected(Name, Fields)} || Name <- Names], cells, Options, Key);
        false -> bad_row
    end;
shape(Form, Options, Key, {_, Fields, End}) ->
    case sent([{Name, Term} || {Name, Term, _, _} <- Fields], Form, Options, Key) of
        {send, _} when End =:= damaged -> bad_row;
        Outcome -> Outcome
    end.

selected(Name, Fields) ->
    case lists:keyfind(Name, 1, Fields) of
        {_, Term, _, _} -> Term;
        false -> []
    end.

sent(Fields, Form, Options, Key) ->
    Row =
        case Form of
            terms -> Fields;
            cells -> [Term || {_, Term} <- Fields]
        end,
    case {lists:keymember(foreign, 2, Fields), Options} of
        {true, #{on_foreign := skip}} -> leave;
        {true, _} -> bad_row;
        {false, #{with_keys := true}} -> {send, {Key, Row}};
        {false, _} -> {send, Row}
    end.

%% The same filter written otherwise: operators as strings, types left out where they are known, constants with something behind them.
spell(plain, Filter) ->
    Filter;
spell(otherwise, Filter) ->
    {Spelt, _} = respell(Filter, #{}),
    Spelt.

respell({field, Name, Type}, Known) ->
    case Known of
        #{Name := Type} -> {{field, Name}, Known};
        _ -> {{field, Name, Type}, Known#{Name => Type}}
    end;
respell({const, Value}, Known) ->
    {{const, Value, ignored}, Known};
respell(Filter, Known) when is_tuple(Filter) ->
    [Op | Parts] = tuple_to_list(Filter),
    {Spelt, Types} = lists:mapfoldl(fun respell/2, Known, Parts),
    {list_to_tuple([atom_to_list(Op) | Spelt]), Types};
respell(List, Known) when is_list(List) ->
    lists:mapfoldl(fun respell/2, Known, List);
respell(key, Known) ->
    {key, Known}.

%% Generators

scenario() ->
    ?LET(
        {Schema, Oddness, Copies},
        {schema(), frequency([{3, 0}, {3, 1}, {1, 8}]), frequency([{6, 1}, {1, 12}])},
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
    ?SIZED(Size, ?LET(N, range(0, Size + 5), vector(N, {short_key(), stored(Schema, Oddness)}))).

%% More rows of the same shapes than what is remembered of rows lasts for.
replicated(Rows, 1) -> Rows;
replicated(Rows, Copies) -> [{<<Key/binary, Copy>>, Stored} || Copy <- lists:seq(1, Copies), {Key, Stored} <- Rows].

%% Few enough to meet again, and such that one is often the beginning of another.
short_key() -> ?LET(Bytes, resize(4, list(oneof([0, $a, $b, 255]))), list_to_binary(Bytes)).

key([]) -> short_key();
key(Table) -> frequency([{3, oneof([Key || {Key, _} <- Table])}, {1, short_key()}]).

stored(Schema, Oddness) ->
    frequency(
        [{60, row(Schema, Oddness, none)}, {2, tombstone}] ++
            [{Oddness, row(Schema, Oddness, damaged)} || Oddness > 0] ++
            [{Oddness, {broken, range(1, length(riak_rows:broken()))}} || Oddness > 0]
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
        {1, ?LET({Name, Value}, {oneof(some_names()), value(msgpack, any, 0)}, [{Name, Value} | Fields])},
        {1, ?LET(Field, oneof(Fields), Fields ++ [Field | Fields])}
    ]).

value(Encoding, Type, Oddness) ->
    frequency(
        [{80, {plain, cell(Type)}}, {8, {plain, []}}] ++
            [{Oddness, {odd, oneof([Name || {Name, _} <- riak_rows:odd(Encoding)])}} || Oddness > 0] ++
            [{Oddness, {plain, cell(any)}} || Oddness > 0]
    ).

cell(sint64) -> frequency([{3, range(-3, 3)}, {2, oneof(integers())}, {1, oneof([1.0, -2.0, 0.0, -0.0, 4.0e18, -9.223372036854775808e18, 1.0e15])}, {1, integer()}]);
cell(timestamp) -> oneof([range(0, 3), oneof([N || N <- integers(), N >= 0]), 1.0, 1.8e19, (1 bsl 64) - 1, range(1700000000000, 1700000000009)]);
cell(double) -> frequency([{3, oneof(floats())}, {1, float()}, {1, oneof(integers())}, {1, range(-3, 3)}]);
cell(boolean) -> frequency([{6, boolean()}, {1, oneof([0, 1, 0.0, 1.0, -0.0])}]);
cell(varchar) -> frequency([{4, oneof(texts())}, {1, binary()}]);
cell(any) -> oneof([cell(sint64), cell(timestamp), cell(double), cell(boolean), cell(varchar)]).

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
        {3, key_test(Table)},
        {1, {comparison(), {const, constant(double)}, {const, constant(double)}}}
    ]).

%% Mostly a column as what it is.
field(Schema) ->
    Types = [sint64, timestamp, double, boolean, varchar, any],
    frequency([
        {20, ?LET({Name, Type}, oneof(Schema), {field, Name, Type})},
        {2, ?LET({Name, _}, oneof(Schema), {field, Name, varchar})},
        {1, ?LET({Name, _}, oneof(Schema), {field, Name, oneof(Types)})},
        {1, {field, oneof(some_names()), oneof(Types)}}
    ]).

field_test(Schema, Field, Type) ->
    Op =
        case lists:member(Type, [sint64, timestamp, double]) of
            true -> comparison();
            false -> oneof(['=', '==', '!='])
        end,
    Text = Type =:= varchar orelse Type =:= any,
    Other = [{field, Name, T} || {Name, T} <- Schema, T =:= Type orelse (Text andalso (T =:= varchar orelse T =:= any))],
    frequency(
        [
            {8, {Op, Field, {const, constant(Type)}}},
            {2, {Op, {const, constant(Type)}, Field}},
            {2, {is_null, Field}},
            {3, {in, Field, list({const, constant(Type)})}}
        ] ++
            [{2, {Op, Field, oneof(Other)}} || Other =/= []] ++
            [{3, {between, Field, {const, constant(Type)}, {const, constant(Type)}}} || not Text, Type =/= boolean] ++
            [{1, {Op, Field, {const, []}}} || Text] ++
            [{1, {Op, {const, []}, Field}} || Text] ++
            [{2, {prefix, Field, {const, constant(varchar)}}} || Type =:= varchar] ++
            [{2, {match, Field, {const, oneof(patterns())}}} || Type =:= varchar]
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

constant(sint64) -> oneof([range(-3, 3), oneof([N || N <- integers(), N < 1 bsl 63]), 1.0, -2147483647.0, boolean()]);
constant(timestamp) -> oneof([range(0, 3), oneof([N || N <- integers(), N >= 0]), range(1700000000000, 1700000000009), 2.0, boolean()]);
constant(double) -> oneof([oneof(floats()), range(-3, 3), oneof(integers() -- [-(1 bsl 63) - 1]), boolean()]);
constant(boolean) -> frequency([{4, boolean()}, {1, oneof([0, 1, 2, 255, 1.0, 0.0, 3.0])}]);
constant(varchar) -> oneof(texts());
constant(any) -> ?LET({Encoding, Cell}, {oneof(?ENCODINGS), cell(any)}, riak_rows:cell(Encoding, Cell)).

queries(Schema, Table, Count) ->
    vector(Count, ?LET(Pages, frequency([{4, none}, {1, range(1, 7)}]), query(Schema, Table, Pages))).

query(Schema, Table, Pages) ->
    ?LET(
        {View, Filter, Spelling, Form, Options, Ranges, Limit},
        {
            oneof([store, snapshot]),
            frequency([{1, none}, {4, filter(Schema, Table)}]),
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
    Name = frequency([{9, oneof([Name || {Name, _} <- Schema])}, {1, oneof(some_names())}]),
    ?LET(
        {Rows, Keys, Foreign},
        {
            oneof([kv, keys, terms, terms, cells, cells, {select, non_empty(resize(5, list(Name)))}, {select, non_empty(resize(5, list(Name)))}]),
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
