%% Aggregates of the real program against plain lists, and merges of parts against the whole.
-module(prop_aggregate).

-export([check/4, like_lists/1, parts_like_whole/1, rounded/1]).

-include_lib("proper/include/proper.hrl").

%% Tests the property on Count inputs made from Seed, a triple of integers. (PropEr 1.2 alone draws from a seed nobody knows.) Returns the first input that
%% fails, with what happened and the seed that makes this input the first one.
-spec check(fun((scanode:db()) -> {proper_types:type(), fun((term()) -> term())}), scanode:db(), {integer(), integer(), integer()}, non_neg_integer()) ->
    ok | {failed, map()}.
check(_, _, _, 0) ->
    ok;
check(Property, Db, {A, B, C} = Seed, Count) ->
    {Type, Test} = Property(Db),
    {ok, Input} = proper_gen:pick(Type, C rem 31, Seed),
    try Test(Input) of
        _ -> check(Property, Db, {A, B, C + 1}, Count - 1)
    catch
        Class:Reason:Stack -> {failed, #{seed => Seed, input => Input, exception => {Class, Reason, Stack}}}
    end.

%% What one aggregate returns is what the definitions say. The results of sums are judged by exact integers.
like_lists(Db) ->
    {{table(), query()}, fun({Table, Query}) ->
        Bounds = store(Db, Table),
        judge(Query, Table, scanode:aggregate(Db, maps:merge(Query, Bounds)))
    end}.

%% However a range is split, and in whatever order its parts are merged, the result is that of the whole: identical terms, floats included.
parts_like_whole(Db) ->
    {{table(), query(), list(range(0, 40)), integer()}, fun({Table, Query, Cuts, Order}) ->
        #{start := Start, 'end' := End} = Bounds = store(Db, Table),
        Edges = [Start] ++ [<<Start/binary, Cut:16>> || Cut <- lists:usort(Cuts)] ++ [End],
        Ranges = lists:zip(lists:droplast(Edges), tl(Edges)),
        {ok, One} = scanode:aggregate(Db, maps:merge(Query#{partial => true}, Bounds)),
        Parts = [
            begin
                {ok, Part} = scanode:aggregate(Db, Query#{partial => true, start => From, 'end' => To}),
                %% It may be stored.
                binary_to_term(term_to_binary(Part))
            end
         || {From, To} <- shuffle(Order, Ranges)
        ],
        Whole = scanode:aggregate(Db, maps:merge(Query, Bounds)),
        same(Whole, scanode:merge_aggregates([One])),
        same(Whole, scanode:merge_aggregates(Parts))
    end}.

%% Averages and deviations at, just above and just below the middle between two doubles, which rows hardly ever give. Divisors go beyond what can be counted.
rounded(_Db) ->
    %% Half of a double has a neighbour above that is a double.
    {{?LET(D, double(), D / 2), range(-1, 1), large_divisor()}, fun({Double, Off, Half}) ->
        {_, Above} = around(Double),
        Twice = abs(unit(Double)) + Above,
        {ok, [[Average]]} = scanode:merge_aggregates([forged(avg, {0, 2 * Half, 0, Twice * Half + Off})]),
        nearest(Average, Twice * Half + Off, 2 * Half),
        {ok, [[Deviation]]} = scanode:merge_aggregates([forged(stddev_pop, {0, 4 * Half, 0, 0, 0, Twice * Twice * Half + Off})]),
        near_root(Deviation, Twice * Twice * Half + Off, 4 * Half)
    end}.

large_divisor() -> ?LET({N, Bits}, {range(1, 1000), range(0, 200)}, N bsl Bits).

%% A part whose state no rows have made.
forged(Op, State) ->
    {scanode_partial, 1,
        #{compute => [{Op, <<"x">>}], group_by => [], order => [], limit => 0, max_groups => 1, reverse => false, filter => undefined}, [[State]]}.

same({error, {overflow, _}}, {error, {overflow, _}}) -> ok;
%% The bytes, so that no difference of zeros or of integers and floats is overlooked.
same({ok, A}, {ok, B}) -> {A, true} = {B, term_to_binary(A) =:= term_to_binary(B)}.

shuffle(Seed, List) ->
    {Keyed, _} = lists:mapfoldl(
        fun(Item, S0) ->
            {N, S} = rand:uniform_s(S0),
            {{N, Item}, S}
        end,
        rand:seed_s(exsss, Seed),
        List
    ),
    [Item || {_, Item} <- lists:sort(Keyed)].

%% The rows get keys of their own under a new prefix.
store(Db, Table) ->
    Prefix = <<(erlang:unique_integer([positive])):64>>,
    Keyed = lists:zip(lists:seq(0, length(Table) - 1), Table),
    ok = scanode:write(Db, [{put, <<Prefix/binary, N:16>>, riak_rows:encode(Row, encoding(Row, As))} || {N, {Row, As}} <- Keyed], #{}),
    #{start => Prefix, 'end' => <<Prefix/binary, 255, 255>>}.

%% MessagePack has no larger integers.
encoding(Row, As) ->
    case [Cell || {_, Cell} <- Row, is_integer(Cell), Cell >= 1 bsl 64 orelse Cell < -(1 bsl 63)] of
        [] -> As;
        _ -> ttb
    end.

%% Tables

table() -> resize(30, list({row(), oneof([ttb, msgpack])})).

row() -> ?LET({G, T, X, Any}, {group(), whole(), numeric(), any_cell()}, [{<<"g">>, G}, {<<"t">>, T}, {<<"x">>, X}] ++ [{<<"any">>, Any} || Any =/= none]).

group() -> frequency([{4, oneof([<<"a">>, <<"b">>])}, {2, oneof([1, 1.0, 2, 0.0, -0.0, [], true, false])}]).

whole() -> frequency([{1, []}, {5, range(-20, 20)}, {1, large()}]).

large() -> ?LET({N, Bits}, {integer(), oneof([31, 53, 60, 63, 64, 70, 1100])}, (N bsl Bits) + N).

numeric() -> frequency([{1, []}, {2, range(-5, 5)}, {1, large()}, {4, double()}]).

double() ->
    oneof([
        ?LET(N, range(-1000, 1000), N / 10),
        ?LET(N, range(-5, 5), float(N)),
        ?LET({Sign, Exponent, Fraction}, {range(0, 1), oneof([range(0, 2046), 0, range(0, 1), range(1000, 1060)]), oneof([range(0, (1 bsl 52) - 1), 0, 1, (1 bsl 52) - 1])}, begin
            <<Double/float>> = <<Sign:1, Exponent:11, Fraction:52>>,
            Double
        end)
    ]).

any_cell() -> frequency([{1, none}, {3, numeric()}, {2, binary()}, {1, boolean()}]).

query() ->
    ?LET(
        {Compute, GroupBy, Limit, Reverse},
        {non_empty(resize(6, list(computed()))), oneof([[], [<<"g">>], [{time, <<"t">>, 7}], [<<"g">>, {time, <<"t">>, 1000}]]), oneof([0, 0, 1, 3]), boolean()},
        ?LET(
            Order,
            resize(3, list({range(1, length(Compute) + length(GroupBy)), oneof([asc, desc])})),
            #{compute => Compute, group_by => GroupBy, order => Order, limit => Limit, reverse => Reverse}
        )
    ).

computed() ->
    oneof([
        {count, all},
        {oneof([count, min, max, first, last]), oneof([<<"x">>, <<"any">>, <<"none">>])},
        {oneof([sum, avg, stddev_pop, stddev_samp]), oneof([<<"x">>, <<"t">>, <<"none">>])}
    ]).

%% The plain evaluator

judge(#{compute := Compute, group_by := GroupBy, order := Order, limit := Limit, reverse := Reverse}, Table, Result) ->
    Rows = [Row || {Row, _} <- Table],
    Seen =
        case Reverse of
            true -> lists:reverse(Rows);
            false -> Rows
        end,
    Groups = groups(GroupBy, Seen),
    case Result of
        {error, {overflow, _}} ->
            true = lists:any(fun({_, Members}) -> lists:any(fun(C) -> may_overflow(C, Members) end, Compute) end, Groups);
        {ok, Got} ->
            {Length, Length} = {length(Got), if Limit > 0 -> min(Limit, length(Groups)); true -> length(Groups) end},
            [judge_row(Compute, length(GroupBy), Groups, Row) || Row <- Got],
            %% No group twice.
            Keys = [lists:sublist(Row, length(GroupBy)) || Row <- Got],
            {Length, Length} = {Length, maps:size(maps:from_list([{Key, []} || Key <- Keys]))},
            ordered(Order, length(GroupBy), Got)
    end.

groups([], Rows) ->
    [{[], Rows}];
groups(GroupBy, Rows) ->
    Keyed = [{[key(By, Row) || By <- GroupBy], Row} || Row <- Rows],
    [{Key, [Row || {K, Row} <- Keyed, K =:= Key]} || Key <- lists:foldl(fun({K, _}, Ks) -> [K | [Other || Other <- Ks, Other =/= K]] end, [], Keyed)].

key({time, Field, Quantum}, Row) ->
    case cell(Field, Row) of
        [] -> [];
        Time -> hd([From || From <- [(Time div Quantum) * Quantum, (Time div Quantum - 1) * Quantum], From =< Time])
    end;
key(Field, Row) ->
    cell(Field, Row).

cell(Field, Row) ->
    case lists:keyfind(Field, 1, Row) of
        {_, Zero} when Zero == 0, is_float(Zero) -> 0.0;
        {_, Cell} -> Cell;
        false -> []
    end.

judge_row(Compute, Width, Groups, Row) ->
    {Key, Results} = lists:split(Width, Row),
    [Members] = [Rows || {K, Rows} <- Groups, K =:= Key],
    [judge_result(C, Members, Result) || {C, Result} <- lists:zip(Compute, Results)].

judge_result({count, all}, Rows, N) ->
    N = length(Rows);
judge_result({Op, Field}, Rows, Result) ->
    case {Op, [Cell || Row <- Rows, (Cell = cell(Field, Row)) =/= []]} of
        {count, Cells} -> Result = length(Cells);
        {_, []} -> Result = [];
        {first, [Cell | _]} -> Result = Cell;
        {last, Cells} -> Result = lists:last(Cells);
        {min, Cells} -> extreme(Result, Cells, fun(A, B) -> A =< B end);
        {max, Cells} -> extreme(Result, Cells, fun(A, B) -> A >= B end);
        {stddev_samp, [_]} -> Result = [];
        {sum, Cells} -> judge_sum(lists:all(fun is_integer/1, Cells), Result, Cells);
        {avg, Cells} -> nearest(Result, units(Cells), length(Cells));
        {Stddev, Cells} -> judge_deviation(Stddev, Result, Cells)
    end.

%% One of the cells, before all others, and the integer if there is one of its value.
extreme(Result, Cells, Before) ->
    true = lists:any(fun(Cell) -> Cell =:= Result end, Cells),
    true = lists:all(fun(Cell) -> Before(Result, Cell) end, Cells),
    false = is_float(Result) andalso lists:any(fun(Cell) -> is_integer(Cell) andalso Cell == Result end, Cells).

judge_sum(true, Result, Cells) -> true = Result =:= lists:sum(Cells);
judge_sum(false, Result, Cells) -> nearest(Result, units(Cells), 1).

judge_deviation(Op, Result, Cells) ->
    N = length(Cells),
    Sum = units(Cells),
    Square = N * lists:sum([unit(C) * unit(C) || C <- Cells]) - Sum * Sum,
    Den = if Op =:= stddev_pop -> N * N; Op =:= stddev_samp -> N * (N - 1) end,
    near_root(Result, Square, Den).

%% The middles to the neighbours, squared, enclose Square / Den, and are it only if Result is even.
near_root(Result, Square, Den) ->
    {Below, Above} = around(Result),
    R = unit(Result),
    <<_:63, Odd:1>> = <<Result/float>>,
    true = (R + Above) * (R + Above) * Den >= 4 * Square + Odd,
    true = R =:= 0 orelse (R + Below) * (R + Below) * Den =< 4 * Square - Odd.

%% Numbers in units of the smallest double.
units(Cells) -> lists:sum([unit(Cell) || Cell <- Cells]).

unit(Int) when is_integer(Int) ->
    Int bsl 1074;
unit(Double) ->
    case <<Double/float>> of
        <<Sign:1, 0:11, Fraction:52>> -> (1 - 2 * Sign) * Fraction;
        <<Sign:1, Exponent:11, Fraction:52>> -> (1 - 2 * Sign) * ((1 bsl 52 + Fraction) bsl (Exponent - 1))
    end.

%% The neighbours of a double's magnitude, in units. The largest has one too, for rounding.
around(Double) ->
    <<_:1, Bits:63>> = <<Double/float>>,
    {magnitude(max(0, Bits - 1)), magnitude(Bits + 1)}.

magnitude(Bits) ->
    <<Exponent:11, Fraction:52>> = <<Bits:63>>,
    case Exponent of
        0 -> Fraction;
        _ -> ((1 bsl 52) + Fraction) bsl (Exponent - 1)
    end.

%% Result is the double nearest to Units / Den, the even one of two.
nearest(Result, Units, Den) ->
    true = is_float(Result),
    R = abs(unit(Result)),
    true = (Result < 0) =:= (Units < 0) orelse R =:= 0,
    {Below, Above} = around(Result),
    Twice = 2 * abs(Units),
    <<_:63, Odd:1>> = <<Result/float>>,
    true = Twice < (R + Above) * Den orelse (Twice =:= (R + Above) * Den andalso Odd =:= 0),
    true = R =:= 0 orelse Twice > (R + Below) * Den orelse (Twice =:= (R + Below) * Den andalso Odd =:= 0).

may_overflow({Op, Field}, Rows) when Op =:= sum; Op =:= avg; Op =:= stddev_pop; Op =:= stddev_samp ->
    lists:any(fun(Cell) -> Cell =/= [] andalso abs(unit(Cell)) >= (1 bsl 1060) bsl 1000 end, [cell(Field, Row) || Row <- Rows]);
may_overflow(_, _) ->
    false.

%% Neighbours are in order, by the columns named and then by their groups.
ordered(Order, Width, [A, B | Rows]) ->
    true = in_order(Order ++ [{Position, key} || Position <- lists:seq(1, Width)], A, B),
    ordered(Order, Width, [B | Rows]);
ordered(_, _, _) ->
    true.

in_order([], A, B) ->
    %% Groups that are equal without being identical: 1 before 1.0.
    [Same | _] = [X || {X, Y} <- lists:zip(A, B), X =/= Y],
    is_integer(Same);
in_order([{Position, Direction} | Order], A, B) ->
    case {lists:nth(Position, A), lists:nth(Position, B)} of
        {X, Y} when X == Y -> in_order(Order, A, B);
        {X, Y} when Direction =:= key -> X < Y;
        {[], _} -> Direction =:= desc;
        {_, []} -> Direction =:= asc;
        {X, Y} when Direction =:= asc -> X < Y;
        {X, Y} -> X > Y
    end.
