%% The keys Riak stores under: terms in the sortable form of the library sext, so that keys sort as terms do, tuples by their sizes first.
-module(riak_key).

-export([encode/1, prefix/1, decode/1]).
-export([object/2, index/4, marker/0]).

object(Bucket, Key) -> encode({o, Bucket, Key}).

index(Bucket, Field, Term, Key) -> encode({i, Bucket, Field, Term, Key}).

%% What says that the indexes of a store are in the present form.
marker() -> encode({md, fixed_indexes}).

%% Of the terms, those that are here: tuples, lists, atoms, binaries, and integers from 0 to 2147483647.
encode(Tuple) when is_tuple(Tuple) -> <<16, (tuple_size(Tuple)):32, (list_to_binary([encode(Term) || Term <- tuple_to_list(Tuple)]))/binary>>;
encode(List) when is_list(List) -> <<17, (list_to_binary([encode(Term) || Term <- List]))/binary, 2>>;
encode(Atom) when is_atom(Atom) -> <<12, (bytes(atom_to_binary(Atom, utf8)))/binary>>;
encode(Bin) when is_binary(Bin) -> <<18, (bytes(Bin))/binary>>;
encode(N) when is_integer(N), N >= 0, N =< 16#7fffffff -> <<10, N:31, 0:1>>.

%% A bit before each byte that there is one, so that what is longer sorts behind its beginning.
bytes(<<>>) -> <<8>>;
bytes(Bin) -> <<(<<<<1:1, Byte>> || <<Byte>> <= Bin>>)/bitstring, 0:(8 - byte_size(Bin) rem 8), 8>>.

%% What all tuples begin with that are so up to the first '_'.
prefix(Tuple) -> <<16, (tuple_size(Tuple)):32, (prefixes(tuple_to_list(Tuple)))/binary>>.

prefixes(['_' | _]) -> <<>>;
prefixes([Tuple | Terms]) when is_tuple(Tuple) ->
    case lists:member('_', tuple_to_list(Tuple)) of
        true -> prefix(Tuple);
        false -> <<(encode(Tuple))/binary, (prefixes(Terms))/binary>>
    end;
prefixes([Term | Terms]) -> <<(encode(Term))/binary, (prefixes(Terms))/binary>>;
prefixes([]) -> <<>>.

%% The term, or undefined for what is none.
decode(Bin) ->
    try term(Bin) of
        {Term, <<>>} -> Term;
        _ -> undefined
    catch
        error:_ -> undefined
    end.

term(<<16, Size:32, Rest/binary>>) when Size < 16 ->
    {Terms, Behind} = lists:mapfoldl(fun(_, Bin) -> term(Bin) end, Rest, lists:seq(1, Size)),
    {list_to_tuple(Terms), Behind};
term(<<17, Rest/binary>>) -> elements(Rest);
term(<<12, Rest/binary>>) ->
    {Name, Behind} = unbytes(Rest, <<>>),
    {binary_to_existing_atom(Name, utf8), Behind};
term(<<18, Rest/binary>>) -> unbytes(Rest, <<>>);
term(<<10, N:31, 0:1, Rest/binary>>) -> {N, Rest}.

elements(<<2, Rest/binary>>) -> {[], Rest};
elements(Bin) ->
    {Term, Rest} = term(Bin),
    {Terms, Behind} = elements(Rest),
    {[Term | Terms], Behind}.

unbytes(<<8, Rest/binary>>, <<>>) -> {<<>>, Rest};
unbytes(<<1:1, Byte, Rest/bitstring>>, Bytes) -> unbytes(Rest, <<Bytes/binary, Byte>>);
unbytes(Rest, Bytes) ->
    %% Zeroes to the next byte, at least one, and an 8.
    Padding = 8 - byte_size(Bytes) rem 8,
    <<0:Padding, 8, Behind/binary>> = Rest,
    {Bytes, Behind}.
