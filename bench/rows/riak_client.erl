%% The Erlang client beside which rows are measured: reads a stored object as riak_kv does for a query, every field by Erlang code but the built-in
%% binary_to_term, and makes the rows of each form from it. And writes such objects for the tables of the benchmark.
-module(riak_client).

-export([object/2, fields/1, cells/1, select/2]).
-export_type([encoding/0]).

-type encoding() :: ttb | msgpack.
-type field() :: {binary(), term()}.

-record(content, {metadata, value}).

%% @doc A version 1 object with one sibling, a vector clock of one actor, and metadata of 24 bytes.
-spec object(encoding(), [field()]) -> binary().
object(Encoding, Fields) ->
    Clock = term_to_binary([{<<"actor0001">>, {1, 63636363636}}]),
    Value =
        case Encoding of
            ttb -> <<0, (term_to_binary(Fields))/binary>>;
            msgpack -> <<2, (pack(Fields))/binary>>
        end,
    Meta = <<1500:32, 123456:32, 654321:32, 10, "aXNlZm9y8Q", 0>>,
    <<53, 1, (byte_size(Clock)):32, Clock/binary, 1:32, (byte_size(Value)):32, Value/binary, (byte_size(Meta)):32, Meta/binary>>.

%% Of what the rows of this benchmark hold.
pack([{_, _} | _] = Fields) when length(Fields) < 16 -> <<8:4, (length(Fields)):4, <<<<(pack(N))/binary, (pack(V))/binary>> || {N, V} <- Fields>>/binary>>;
pack(B) when is_binary(B), byte_size(B) < 32 -> <<5:3, (byte_size(B)):5, B/binary>>;
pack(F) when is_float(F) -> <<16#cb, F/float>>;
pack(I) when is_integer(I), I >= 0, I < 16#80 -> <<I>>;
pack(I) when is_integer(I), I >= 0, I < 16#100 -> <<16#cc, I>>;
pack(I) when is_integer(I), I >= 0 -> <<16#cf, I:64>>.

%% @doc The fields of a stored object, `[{Name, Cell}]'.
-spec fields(binary()) -> [field()].
fields(<<53, 1, Length:32, Clock:Length/binary, Count:32, Siblings/binary>>) ->
    %% All of the object is made, as riak_object:from_binary does, though only the value is asked for.
    _ = binary_to_term(Clock),
    [#content{value = Fields}] = contents(Count, Siblings),
    Fields.

contents(0, <<>>) ->
    [];
contents(Count, <<ValueLength:32, Value:ValueLength/binary, MetaLength:32, Meta:MetaLength/binary, Rest/binary>>) ->
    [#content{metadata = metadata(Meta), value = value(Value)} | contents(Count - 1, Rest)].

metadata(<<Mega:32, Seconds:32, Micro:32, Length, Tag:Length/binary, Deleted, Rest/binary>>) ->
    Known = [{<<"X-Riak-Last-Modified">>, {Mega, Seconds, Micro}}, {<<"X-Riak-VTag">>, binary_to_list(Tag)}],
    dict:from_list([{<<"X-Riak-Deleted">>, "true"} || Deleted =:= 1] ++ Known ++ user(Rest)).

user(<<>>) -> [];
user(<<NameLength:32, Name:NameLength/binary, Length:32, Value:Length/binary, Rest/binary>>) -> [{Name, Value} | user(Rest)].

value(<<0, Term/binary>>) ->
    binary_to_term(Term);
value(<<2, Packed/binary>>) ->
    {Fields, <<>>} = unpack(Packed),
    Fields.

%% @doc `[Cell]'.
-spec cells(binary()) -> [term()].
cells(Object) ->
    [Cell || {_, Cell} <- fields(Object)].

%% @doc `[Cell]' of the columns named.
-spec select([binary()], binary()) -> [term()].
select(Names, Object) ->
    Fields = fields(Object),
    [cell(lists:keyfind(Name, 1, Fields)) || Name <- Names].

cell({_, Cell}) -> Cell;
cell(false) -> [].

%% MessagePack, all of it but extensions; a clause with one binary matched in its head, so that no sub-binary is made on the way.
unpack(<<0:1, I:7, Rest/binary>>) -> {I, Rest};
unpack(<<2#101:3, L:5, B:L/binary, Rest/binary>>) -> {B, Rest};
unpack(<<16#cb, F/float, Rest/binary>>) -> {F, Rest};
unpack(<<16#cf, I:64, Rest/binary>>) -> {I, Rest};
unpack(<<16#cc, I, Rest/binary>>) -> {I, Rest};
unpack(<<2#1000:4, N:4, Rest/binary>>) -> pairs(N, Rest, []);
unpack(<<16#90, Rest/binary>>) -> {[], Rest};
unpack(<<16#c0, Rest/binary>>) -> {[], Rest};
unpack(<<16#c2, Rest/binary>>) -> {false, Rest};
unpack(<<16#c3, Rest/binary>>) -> {true, Rest};
unpack(<<2#111:3, I:5, Rest/binary>>) -> {I - 32, Rest};
unpack(<<16#cd, I:16, Rest/binary>>) -> {I, Rest};
unpack(<<16#ce, I:32, Rest/binary>>) -> {I, Rest};
unpack(<<16#d0, I/signed, Rest/binary>>) -> {I, Rest};
unpack(<<16#d1, I:16/signed, Rest/binary>>) -> {I, Rest};
unpack(<<16#d2, I:32/signed, Rest/binary>>) -> {I, Rest};
unpack(<<16#d3, I:64/signed, Rest/binary>>) -> {I, Rest};
unpack(<<16#ca, F:32/float, Rest/binary>>) -> {F, Rest};
unpack(<<16#d9, L, B:L/binary, Rest/binary>>) -> {B, Rest};
unpack(<<16#da, L:16, B:L/binary, Rest/binary>>) -> {B, Rest};
unpack(<<16#db, L:32, B:L/binary, Rest/binary>>) -> {B, Rest};
unpack(<<16#c4, L, B:L/binary, Rest/binary>>) -> {B, Rest};
unpack(<<16#c5, L:16, B:L/binary, Rest/binary>>) -> {B, Rest};
unpack(<<16#c6, L:32, B:L/binary, Rest/binary>>) -> {B, Rest};
unpack(<<2#1001:4, N:4, Rest/binary>>) -> elements(N, Rest, []);
unpack(<<16#dc, N:16, Rest/binary>>) -> elements(N, Rest, []);
unpack(<<16#dd, N:32, Rest/binary>>) -> elements(N, Rest, []);
unpack(<<16#de, N:16, Rest/binary>>) -> pairs(N, Rest, []);
unpack(<<16#df, N:32, Rest/binary>>) -> pairs(N, Rest, []).

pairs(0, Rest, Pairs) ->
    {lists:reverse(Pairs), Rest};
pairs(N, Packed, Pairs) ->
    {Name, Behind} = unpack(Packed),
    {Value, Rest} = unpack(Behind),
    pairs(N - 1, Rest, [{Name, Value} | Pairs]).

elements(0, Rest, Elements) ->
    {lists:reverse(Elements), Rest};
elements(N, Packed, Elements) ->
    {Element, Rest} = unpack(Packed),
    elements(N - 1, Rest, [Element | Elements]).
