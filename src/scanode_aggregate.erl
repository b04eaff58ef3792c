%% @private
%% Partial aggregates: what the program found out about the groups of one scan, kept so that it can be merged with what it found out about others.
%%
%% States of sums are exact: integers as they are, and the sums of floats and of their squares as integers, in units of 2^-1074 (the smallest double) and
%% of 2^-2148. So a merge adds integers, the order in which parts are merged does not count, and rounding happens once, at the end, by nearest/3: the
%% same result as one scan over everything, bit for bit. What the states look like is in scan/aggregate_partial.go.
-module(scanode_aggregate).

-export([partial/2, merge/1]).
-export_type([partial/0, row/0]).

-type row() :: nonempty_list(term()).
%% The values a group's rows agree in, then the results.

-type query() :: #{
    compute := [{atom(), binary() | all}],
    group_by := [binary() | {time, binary(), pos_integer()}],
    order := [{pos_integer(), asc | desc}],
    limit := non_neg_integer(),
    max_groups := pos_integer(),
    reverse := boolean(),
    filter := term()
}.
%% What partial aggregates must have in common.

-opaque partial() :: {scanode_partial, 1, query(), [row()]}.
%% Rows hold states instead of results.

-type state() :: term().
-type failure() :: {error, {bad_request | overflow | too_many_groups, binary()}}.

%% @doc Names the states in Rows by the options the program was given.
-spec partial(map(), [row()]) -> partial().
partial(Options, Rows) ->
    Defaults = #{group_by => [], order => [], limit => 0, max_groups => 10000, reverse => false, filter => undefined},
    {scanode_partial, 1, maps:with([compute | maps:keys(Defaults)], maps:merge(Defaults, Options)), Rows}.

%% @doc Merges partial aggregates of one query and returns the rows of the whole, ordered and limited as the query wants it.
-spec merge([partial()]) -> {ok, [row()]} | failure().
merge([{scanode_partial, 1, #{compute := Compute, group_by := GroupBy, max_groups := MaxGroups} = Query, _} | _] = Parts) ->
    case all_of(Query, Parts) of
        true ->
            Ops = [Op || {Op, _} <- Compute],
            Width = length(GroupBy),
            Groups = lists:foldl(fun({_, _, _, Rows}, Acc) -> add_rows(Rows, Width, Query, Ops, Acc) end, #{}, Parts),
            case map_size(Groups) =< MaxGroups orelse Width =:= 0 of
                true -> results(Query, Ops, Groups);
                false -> {error, {too_many_groups, <<"the merged aggregates have more groups than max_groups allows">>}}
            end;
        false ->
            {error, {bad_request, <<"the partial aggregates are not all of the same query">>}}
    end;
merge(_) ->
    {error, {bad_request, <<"not a list of at least one partial aggregate">>}}.

-spec all_of(query(), term()) -> boolean().
all_of(Query, [{scanode_partial, 1, Other, Rows} | Parts]) when is_list(Rows) -> Query =:= Other andalso all_of(Query, Parts);
all_of(_, Parts) -> Parts =:= [].

-spec add_rows([row()], non_neg_integer(), query(), [atom()], #{[term()] => [state()]}) -> #{[term()] => [state()]}.
add_rows(Rows, Width, Query, Ops, Groups) ->
    lists:foldl(
        fun(Row, Acc) ->
            {Key, States} = lists:split(Width, Row),
            case Acc of
                #{Key := Known} -> Acc#{Key := add_states(Ops, Known, States, Query)};
                #{} -> Acc#{Key => States}
            end
        end,
        Groups,
        Rows
    ).

-spec add_states([atom()], [state()], [state()], query()) -> [state()].
add_states([], [], [], _) -> [];
add_states([Op | Ops], [A | As], [B | Bs], Query) -> [add(Op, A, B, Query) | add_states(Ops, As, Bs, Query)].

-spec add(atom(), state(), state(), query()) -> state().
add(count, A, B, _) ->
    A + B;
add(Op, A, B, _) when Op =:= sum; Op =:= avg; Op =:= stddev_pop; Op =:= stddev_samp ->
    list_to_tuple(lists:zipwith(fun erlang:'+'/2, tuple_to_list(A), tuple_to_list(B)));
add(_, A, [], _) ->
    A;
add(_, [], B, _) ->
    B;
add(min, A, B, _) ->
    better(A < B, A, B);
add(max, A, B, _) ->
    better(A > B, A, B);
add(Op, {KeyA, _} = A, {KeyB, _} = B, #{reverse := Reverse}) ->
    case (Op =:= first) =/= Reverse of
        true when KeyA =< KeyB -> A;
        false when KeyA >= KeyB -> A;
        _ -> B
    end.

%% Of values that are equal without being identical the one with the integer is kept, as in the program.
-spec better(boolean(), term(), term()) -> term().
better(true, A, _) ->
    A;
better(false, A, B) ->
    case A == B andalso precedes(A, B) of
        true -> A;
        false -> B
    end.

%% The order of keys of maps, where an integer comes before every float. It is the only one in which no two terms are equal.
-spec precedes(term(), term()) -> boolean().
precedes(A, B) ->
    #{A => []} =< #{B => []}.

%% Results

-spec results(query(), [atom()], #{[term()] => [state()]}) -> {ok, [row()]} | failure().
results(#{order := Order, limit := Limit}, Ops, Groups) ->
    ByKey = lists:sort(fun({A, _}, {B, _}) -> A < B orelse (A == B andalso precedes(A, B)) end, maps:to_list(Groups)),
    try [Key ++ lists:zipwith(fun result/2, Ops, States) || {Key, States} <- ByKey] of
        %% The sort is stable: what the order leaves open stays in the order of the keys.
        Rows when Limit > 0 -> {ok, lists:sublist(ordered(Order, Rows), Limit)};
        Rows -> {ok, ordered(Order, Rows)}
    catch
        throw:overflow -> {error, {overflow, <<"a result is beyond the range of a double">>}}
    end.

-spec ordered([{pos_integer(), asc | desc}], [row()]) -> [row()].
ordered([], Rows) -> Rows;
ordered(Order, Rows) -> lists:sort(fun(A, B) -> not_after(Order, A, B) end, Rows).

-spec not_after([{pos_integer(), asc | desc}], row(), row()) -> boolean().
not_after([], _, _) ->
    true;
not_after([{Position, Direction} | Order], A, B) ->
    case {sortable(lists:nth(Position, A)), sortable(lists:nth(Position, B))} of
        {X, Y} when X == Y -> not_after(Order, A, B);
        {X, Y} when Direction =:= asc -> X < Y;
        {X, Y} -> X > Y
    end.

%% NULL after everything else.
-spec sortable(term()) -> {0, term()} | {1, []}.
sortable([]) -> {1, []};
sortable(Value) -> {0, Value}.

-spec result(atom(), state()) -> term().
result(count, N) ->
    N;
result(Op, State) when Op =:= min; Op =:= max ->
    State;
result(Op, []) when Op =:= first; Op =:= last ->
    [];
result(Op, {_Key, Value}) when Op =:= first; Op =:= last ->
    Value;
result(sum, {0, 0, _, _}) ->
    [];
result(sum, {_, 0, Sum, _}) ->
    Sum;
result(sum, {_, _, Ints, Floats}) ->
    nearest((Ints bsl 1074) + Floats, 1, -1074);
result(avg, {0, 0, _, _}) ->
    [];
result(avg, {N, M, Ints, Floats}) ->
    nearest((Ints bsl 1074) + Floats, N + M, -1074);
result(stddev_pop, {N, M, Ints, Floats, IntSquares, FloatSquares}) ->
    deviation(N + M, N + M, (Ints bsl 1074) + Floats, (IntSquares bsl 2148) + FloatSquares);
result(stddev_samp, {N, M, Ints, Floats, IntSquares, FloatSquares}) ->
    deviation(N + M, N + M - 1, (Ints bsl 1074) + Floats, (IntSquares bsl 2148) + FloatSquares).

%% The root of (N Σx² - (Σx)²) / (N Divisor), Sum in units of 2^-1074, Squares of 2^-2148.
-spec deviation(non_neg_integer(), integer(), integer(), non_neg_integer()) -> float() | [].
deviation(_, Divisor, _, _) when Divisor =< 0 -> [];
deviation(N, Divisor, Sum, Squares) -> nearest_root(N * Squares - Sum * Sum, N * Divisor, -2148).

%% @doc The double nearest to Num / Den * 2^Exponent, ties to even.
-spec nearest(integer(), pos_integer(), integer()) -> float().
nearest(0, _, _) ->
    0.0;
nearest(Num, Den, Exponent) ->
    {Quotient, Lower} = quotient(abs(Num), Den, Exponent, 64),
    round_to_double(sign(Num), Quotient, Lower).

-spec nearest_root(non_neg_integer(), pos_integer(), integer()) -> float().
nearest_root(0, _, _) ->
    0.0;
nearest_root(Num, Den, Exponent0) ->
    {Quotient, Exponent} =
        case quotient(Num, Den, Exponent0, 128) of
            {Q, E} when E rem 2 =:= 0 -> {Q, E};
            {Q, E} -> {Q bsl 1, E - 1}
        end,
    %% Here too the last bit says that something was cut off; see nearestRoot in scan/exact.go.
    Root = root(Quotient),
    Marked =
        case Root * Root =:= Quotient of
            true -> Root bsl 1;
            false -> Root bsl 1 bor 1
        end,
    round_to_double(0, Marked, Exponent div 2 - 1).

-spec sign(integer()) -> 0 | 1.
sign(N) when N < 0 -> 1;
sign(_) -> 0.

%% Num / Den * 2^Exponent as {Q, E}, Q of at least Precision bits; its last bit is set if anything was cut off.
-spec quotient(pos_integer(), pos_integer(), integer(), pos_integer()) -> {pos_integer(), integer()}.
quotient(Num, Den, Exponent, Precision) ->
    Up = max(0, Precision + 1 + bits(Den) - bits(Num)),
    Scaled = Num bsl Up,
    Mark =
        case Scaled rem Den of
            0 -> 0;
            _ -> 1
        end,
    {(Scaled div Den) bsl 1 bor Mark, Exponent - Up - 1}.

%% The double nearest to Int * 2^Exponent. Its bits are put together here: float/1 does not round large integers to the nearest.
-spec round_to_double(0 | 1, pos_integer(), integer()) -> float().
round_to_double(Sign, Int, Exponent) ->
    Drop = max(bits(Int) - 53, -1074 - Exponent),
    {Rounded, Lower} =
        case Drop > 0 of
            true -> {half_even(Int, Drop), Exponent + Drop};
            false -> {Int, Exponent}
        end,
    Bits = bits(Rounded),
    if
        Rounded =:= 0 ->
            0.0;
        Bits + Lower > 1024 ->
            throw(overflow);
        Bits + Lower < -1021 ->
            %% Subnormal: in units of 2^-1074.
            Fraction = Rounded bsl (Lower + 1074),
            <<Double/float>> = <<Sign:1, 0:11, Fraction:52>>,
            Double;
        true ->
            %% 53 bits, the first of which is not written. Of 54 the last is 0; of fewer the shift is to the left.
            Fraction = Rounded bsr (Bits - 53),
            <<Double/float>> = <<Sign:1, (Bits + Lower + 1022):11, Fraction:52>>,
            Double
    end.

%% Int / 2^Drop, rounded to the nearest integer, ties to even.
-spec half_even(pos_integer(), pos_integer()) -> non_neg_integer().
half_even(Int, Drop) ->
    Down = Int bsr Drop,
    case {Int - (Down bsl Drop), 1 bsl (Drop - 1)} of
        {Rest, Half} when Rest > Half; Rest =:= Half, Down band 1 =:= 1 -> Down + 1;
        _ -> Down
    end.

%% The integer part of the square root, by Newton's method from above.
-spec root(pos_integer()) -> pos_integer().
root(N) ->
    root(N, 1 bsl ((bits(N) + 1) div 2)).

-spec root(pos_integer(), pos_integer()) -> pos_integer().
root(N, Guess) ->
    case (Guess + N div Guess) bsr 1 of
        Less when Less < Guess -> root(N, Less);
        _ -> Guess
    end.

%% How many bits a number has; 0 has none.
-spec bits(non_neg_integer()) -> non_neg_integer().
bits(0) ->
    0;
bits(N) ->
    <<Top, Rest/binary>> = binary:encode_unsigned(N),
    bits_of_byte(Top) + bit_size(Rest).

-spec bits_of_byte(byte()) -> 0..8.
bits_of_byte(0) -> 0;
bits_of_byte(Byte) -> 1 + bits_of_byte(Byte bsr 1).
