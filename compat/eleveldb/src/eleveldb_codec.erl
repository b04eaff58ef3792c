%% @private
%% The encodings the original exports: strings with their length in front, and keys and batches of points made of them. Rows of a stream have the same
%% layout, key then value.
%%
%% ```
%% string    varint(Length) Bytes       varint: 7 bits a byte, the low ones first, the top bit set on all bytes but the last (LEB128)
%% row       string(Key) string(Value)
%% point     Timestamp:64 string(Value)
%% batch     string(Family) string(Series) point…
%% '''
-module(eleveldb_codec).

-export([append_string/2, parse_string/1, append_point/3, batch/1, key/1, test_key/1, encode/2]).

%% A length of more bits than that is none of this machine's binaries.
-define(MAX_LENGTH_BITS, 63).

%% @doc Acc with the string S behind it.
-spec append_string(binary(), binary()) -> binary().
append_string(S, Acc) ->
    append_bytes(S, append_varint(byte_size(S), Acc)).

-spec append_bytes(binary(), binary()) -> binary().
append_bytes(S, Acc) ->
    <<Acc/binary, S/binary>>.

-spec append_varint(non_neg_integer(), binary()) -> binary().
append_varint(N, Acc) when N < 128 -> <<Acc/binary, N>>;
append_varint(N, Acc) -> append_varint(N bsr 7, <<Acc/binary, 1:1, N:7>>).

%% @doc The string Bin begins with, and what is behind it. Raises badarg where there is no whole one.
-spec parse_string(binary()) -> {binary(), binary()}.
parse_string(Bin) ->
    {Length, Tail} = parse_varint(Bin, 0, 0, Bin),
    case Tail of
        <<S:Length/binary, Rest/binary>> -> {S, Rest};
        _ -> erlang:error(badarg, [Bin])
    end.

-spec parse_varint(binary(), non_neg_integer(), non_neg_integer(), binary()) -> {non_neg_integer(), binary()}.
parse_varint(<<1:1, Bits:7, Tail/binary>>, Shift, N, Whole) when Shift < ?MAX_LENGTH_BITS ->
    parse_varint(Tail, Shift + 7, N bor (Bits bsl Shift), Whole);
parse_varint(<<0:1, Bits:7, Tail/binary>>, Shift, N, _) when Shift < ?MAX_LENGTH_BITS ->
    {N bor (Bits bsl Shift), Tail};
parse_varint(_, _, _, Whole) ->
    erlang:error(badarg, [Whole]).

%% @doc Acc with a point behind it.
-spec append_point(non_neg_integer(), binary(), binary()) -> binary().
append_point(Timestamp, Value, Acc) ->
    append_string(Value, <<Acc/binary, Timestamp:64>>).

%% @doc A batch of points of one series.
-spec batch({ts_batch, Family :: binary(), Series :: binary(), [{non_neg_integer(), binary()}]}) -> binary().
batch({ts_batch, Family, Series, Points}) ->
    Head = append_string(Series, append_string(Family, <<>>)),
    lists:foldl(fun({Timestamp, Value}, Acc) -> append_point(Timestamp, Value, Acc) end, Head, Points).

%% @doc The strings one behind the other, the last one first.
-spec key([binary()]) -> binary().
key(Strings) ->
    lists:foldr(fun append_string/2, <<>>, Strings).

%% @doc A key that sorts by time.
-spec test_key({Family :: binary(), Series :: binary(), Time :: non_neg_integer()}) -> binary().
test_key({Family, Series, Time}) ->
    append_string(Series, append_string(Family, <<Time:64>>)).

%% @doc A value in the form its kind has in a key: a timestamp as 64 bits, a binary as it is, anything else in external term format.
-spec encode(term(), atom()) -> binary().
encode(Value, timestamp) -> <<Value:64>>;
encode(Value, binary) when is_binary(Value) -> Value;
encode(Value, _) -> term_to_binary(Value).
