%% @doc Rows of a time series as they are stored: a riak object of one value, the row in the external term format or in MessagePack. For programs that have no
%% Riak to write them, and for those that read what is stored.
%%
%% ```
%% 53, 1 | length, clock | 1 | length, encoding byte, payload | length, metadata          all lengths 32 bits, big-endian
%%
%% encoding byte 0 (ttb): payload is term_to_binary of [{Name, Cell}]
%% encoding byte 2 (msgpack): payload is a map, of the old specification: one family for strings and binaries, NULL is an empty array
%% '''
%%
%% Scans with filters, row forms and aggregates read both, row by row.
-module(scanode_row).

-export([encode/1, encode/2, decode/1]).
-export_type([cell/0, row/0, encoding/0]).

-type cell() :: integer() | float() | boolean() | binary() | [].
%% `[]' is NULL. Filters compare integers of 64 bits.

-type row() :: [{Name :: binary(), cell()}, ...].
-type encoding() :: ttb | msgpack.

-define(TTB, 0).
-define(RAW, 1).
-define(MSGPACK, 2).

%% @equiv encode(Row, ttb)
-spec encode(row()) -> binary().
encode(Row) ->
    encode(Row, ttb).

%% @doc The object to store for a row. ttb is what reads fastest in the BEAM, msgpack is smaller. Integers beyond 64 bits have no MessagePack: badarg.
-spec encode(row(), encoding()) -> binary().
encode([_ | _] = Row, Encoding) when length(Row) > 0, Encoding =:= ttb orelse Encoding =:= msgpack ->
    Value =
        case Encoding of
            ttb ->
                ok = lists:foreach(fun check/1, Row),
                [?TTB, term_to_binary(Row)];
            msgpack ->
                [?MSGPACK, map_header(length(Row)), [[string(Name), pack(Cell)] || {Name, Cell} <- Row, check({Name, Cell}) =:= ok]]
        end,
    Clock = term_to_binary([]),
    %% No time of change, the tag "e" for none, not deleted, nothing else.
    Meta = <<0:32, 0:32, 0:32, 1, "e", 0>>,
    iolist_to_binary([<<53, 1, (byte_size(Clock)):32>>, Clock, <<1:32, (iolist_size(Value)):32>>, Value, <<(byte_size(Meta)):32>>, Meta]);
encode(Row, Encoding) ->
    erlang:error(badarg, [Row, Encoding]).

-spec check({binary(), cell()}) -> ok.
check({Name, Cell}) when is_binary(Name), is_number(Cell); is_binary(Name), is_boolean(Cell); is_binary(Name), is_binary(Cell) -> ok;
check({Name, []}) when is_binary(Name) -> ok;
check(Field) -> erlang:error(badarg, [Field]).

%% @doc The row of a stored object; `deleted' for what a deleted row leaves behind. Objects of several values, of other versions and with other contents are
%% errors. No atom is made.
-spec decode(binary()) -> {ok, row()} | deleted | {error, binary()}.
decode(<<53, 1, ClockSize:32, _:ClockSize/binary, 1:32, ValueSize:32, Value:ValueSize/binary, _/binary>>) ->
    try payload(Value) of
        deleted -> deleted;
        Row -> {ok, Row}
    catch
        throw:Text -> {error, Text};
        error:_ -> {error, <<"the value is not a row">>}
    end;
decode(Object) when is_binary(Object) ->
    {error, <<"not a riak object of version 1 with one value">>}.

-spec payload(binary()) -> row() | deleted.
payload(<<?TTB, Term/binary>>) ->
    [_ | _] = Row = binary_to_term(Term, [safe]),
    true = lists:all(fun({Name, _Cell}) -> is_binary(Name) end, Row),
    Row;
payload(<<?MSGPACK, Map/binary>>) ->
    {Row, <<>>} = unpack_row(Map),
    Row;
payload(<<?RAW>>) ->
    deleted;
payload(_) ->
    throw(<<"the value is of another encoding than a row">>).

%% MessagePack

-spec pack(cell()) -> iodata().
pack([]) -> <<16#90>>;
pack(true) -> <<16#c3>>;
pack(false) -> <<16#c2>>;
pack(Float) when is_float(Float) -> <<16#cb, Float:64/float>>;
pack(Binary) when is_binary(Binary) -> string(Binary);
pack(Integer) when Integer >= 0 -> pack_unsigned(Integer);
pack(Integer) -> pack_negative(Integer).

-spec pack_unsigned(non_neg_integer()) -> binary().
pack_unsigned(N) when N < 1 bsl 7 -> <<N>>;
pack_unsigned(N) when N < 1 bsl 8 -> <<16#cc, N>>;
pack_unsigned(N) when N < 1 bsl 16 -> <<16#cd, N:16>>;
pack_unsigned(N) when N < 1 bsl 32 -> <<16#ce, N:32>>;
pack_unsigned(N) when N < 1 bsl 64 -> <<16#cf, N:64>>;
pack_unsigned(N) -> erlang:error(badarg, [N]).

-spec pack_negative(neg_integer()) -> binary().
pack_negative(N) when N >= -32 -> <<N:8>>;
pack_negative(N) when N >= -(1 bsl 7) -> <<16#d0, N:8>>;
pack_negative(N) when N >= -(1 bsl 15) -> <<16#d1, N:16>>;
pack_negative(N) when N >= -(1 bsl 31) -> <<16#d2, N:32>>;
pack_negative(N) when N >= -(1 bsl 63) -> <<16#d3, N:64>>;
pack_negative(N) -> erlang:error(badarg, [N]).

-spec string(binary()) -> iodata().
string(B) when byte_size(B) < 1 bsl 5 -> [<<2#101:3, (byte_size(B)):5>>, B];
string(B) when byte_size(B) < 1 bsl 16 -> [<<16#da, (byte_size(B)):16>>, B];
string(B) -> [<<16#db, (byte_size(B)):32>>, B].

-spec map_header(pos_integer()) -> binary().
map_header(N) when N < 1 bsl 4 -> <<2#1000:4, N:4>>;
map_header(N) when N < 1 bsl 16 -> <<16#de, N:16>>;
map_header(N) -> <<16#df, N:32>>.

-spec unpack_row(binary()) -> {row(), binary()}.
unpack_row(<<2#1000:4, N:4, Rest/binary>>) when N > 0 -> unpack_fields(N, Rest, []);
unpack_row(<<16#de, N:16, Rest/binary>>) when N > 0 -> unpack_fields(N, Rest, []);
unpack_row(<<16#df, N:32, Rest/binary>>) when N > 0 -> unpack_fields(N, Rest, []).

-spec unpack_fields(non_neg_integer(), binary(), row() | []) -> {row() | [], binary()}.
unpack_fields(0, Rest, Fields) ->
    {lists:reverse(Fields), Rest};
unpack_fields(N, B, Fields) ->
    {Name, Rest} = unpack(B),
    true = is_binary(Name),
    {Cell, Rest1} = unpack(Rest),
    unpack_fields(N - 1, Rest1, [{Name, Cell} | Fields]).

%% The values that rows hold, in every width; bin too, which the old specification does not know.
-spec unpack(binary()) -> {cell(), binary()}.
unpack(<<0:1, N:7, Rest/binary>>) -> {N, Rest};
unpack(<<2#101:3, Size:5, B:Size/binary, Rest/binary>>) -> {B, Rest};
unpack(<<2#111:3, N:5, Rest/binary>>) -> {N - 32, Rest};
unpack(<<16#90, Rest/binary>>) -> {[], Rest};
unpack(<<16#c0, Rest/binary>>) -> {[], Rest};
unpack(<<16#c2, Rest/binary>>) -> {false, Rest};
unpack(<<16#c3, Rest/binary>>) -> {true, Rest};
unpack(<<16#c4, Size:8, B:Size/binary, Rest/binary>>) -> {B, Rest};
unpack(<<16#c5, Size:16, B:Size/binary, Rest/binary>>) -> {B, Rest};
unpack(<<16#c6, Size:32, B:Size/binary, Rest/binary>>) -> {B, Rest};
unpack(<<16#ca, F:32/float, Rest/binary>>) -> {F, Rest};
unpack(<<16#cb, F:64/float, Rest/binary>>) -> {F, Rest};
unpack(<<16#cc, N:8, Rest/binary>>) -> {N, Rest};
unpack(<<16#cd, N:16, Rest/binary>>) -> {N, Rest};
unpack(<<16#ce, N:32, Rest/binary>>) -> {N, Rest};
unpack(<<16#cf, N:64, Rest/binary>>) -> {N, Rest};
unpack(<<16#d0, N:8/signed, Rest/binary>>) -> {N, Rest};
unpack(<<16#d1, N:16/signed, Rest/binary>>) -> {N, Rest};
unpack(<<16#d2, N:32/signed, Rest/binary>>) -> {N, Rest};
unpack(<<16#d3, N:64/signed, Rest/binary>>) -> {N, Rest};
unpack(<<16#d9, Size:8, B:Size/binary, Rest/binary>>) -> {B, Rest};
unpack(<<16#da, Size:16, B:Size/binary, Rest/binary>>) -> {B, Rest};
unpack(<<16#db, Size:32, B:Size/binary, Rest/binary>>) -> {B, Rest}.
