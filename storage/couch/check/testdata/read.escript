#!/usr/bin/env escript
%% -*- erlang -*-
%% Reads files of CouchDB's by the format alone, and shares nothing with the Go code:
%% the newest header, all trees, bodies, attachments. For each file named it prints a
%% line for each thing found, without anything that says where it lies:
%%
%%   file NAME TYPE | doc ID SEQ DELETED | rev ID POS REV LEAF VALUE-HASH | att ID POS REV
%%   NAME HASH | seq SEQ ID | row TREE HASH | term NAME HASH
%%
%% It ends with an error when a tree's keys do not ascend, a last key, a reduction (of
%% documents and counts), or a size is wrong, or an MD5 is. It knows no xxHash: sums of
%% that kind are not looked at.

-mode(compile).

main(Files) ->
    lists:foreach(fun file/1, Files).

file(Name) ->
    {ok, Fd} = file:open(Name, [read, raw, binary]),
    {ok, Size} = file:position(Fd, eof),
    Header = header(Fd, (Size - 1) div 4096 * 4096),
    io:format("file ~ts ~p~n", [filename:basename(Name), element(1, Header)]),
    top(Fd, Header),
    ok = file:close(Fd).

%% The newest block that begins a header whose length is in the file and that is a term.
header(_Fd, At) when At < 0 -> error(no_header);
header(Fd, At) ->
    case file:pread(Fd, At, 5) of
        {ok, <<1, Length:32>>} ->
            <<Sum:16/binary, Term/binary>> = content(Fd, At + 5, Length),
            case erlang:md5(Term) =:= Sum orelse Sum of
                true -> binary_to_term(Term, [safe]);
                _ -> binary_to_term(Term)
            end;
        _ -> header(Fd, At - 4096)
    end.

%% Length bytes of content from At on, without the tags at block edges.
content(Fd, At, Length) ->
    {ok, Raw} = file:pread(Fd, At, Length + Length div 4095 + 2),
    content(Raw, At rem 4096, Length, []).

content(_Raw, _Offset, 0, Acc) -> iolist_to_binary(lists:reverse(Acc));
content(<<_Tag, Raw/binary>>, 0, Length, Acc) -> content(Raw, 1, Length, Acc);
content(Raw, Offset, Length, Acc) ->
    N = min(4096 - Offset, Length),
    <<Part:N/binary, Rest/binary>> = Raw,
    content(Rest, (Offset + N) rem 4096, Length - N, [Part | Acc]).

%% {Payload, SizeInFile}. The tag behind a chunk that ends with a block is its own.
chunk(Fd, Ptr) ->
    <<Summed:1, Length:31>> = content(Fd, Ptr, 4),
    case Summed of
        0 ->
            <<_:4/binary, Payload/binary>> = content(Fd, Ptr, 4 + Length),
            {Payload, size_in_file(Ptr, 4 + Length)};
        1 ->
            <<_:4/binary, Sum:16/binary, Payload/binary>> = content(Fd, Ptr, 20 + Length),
            put(summed, erlang:md5(Payload) =:= Sum),
            {Payload, size_in_file(Ptr, 20 + Length)}
    end.

size_in_file(Ptr, N) -> walk(Ptr rem 4096, N, 0).

walk(0, N, Size) -> walk(1, N, Size + 1);
walk(_, 0, Size) -> Size;
walk(Offset, N, Size) -> walk((Offset + 1) rem 4096, N - 1, Size + 1).

term(<<1, Snappy/binary>>) -> binary_to_term(unsnap(Snappy));
term(<<131, _/binary>> = Term) -> binary_to_term(Term).

unsnap(Bin) ->
    {Size, Rest} = varint(Bin, 0, 0),
    Size = byte_size(Out = unsnap(Rest, <<>>)),
    Out.

varint(<<0:1, V:7, Rest/binary>>, Shift, Acc) -> {Acc bor (V bsl Shift), Rest};
varint(<<1:1, V:7, Rest/binary>>, Shift, Acc) -> varint(Rest, Shift + 7, Acc bor (V bsl Shift)).

unsnap(<<>>, Out) -> Out;
unsnap(<<L:6, 0:2, Rest/binary>>, Out) when L < 60 -> literal(L + 1, Rest, Out);
unsnap(<<60:6, 0:2, L, Rest/binary>>, Out) -> literal(L + 1, Rest, Out);
unsnap(<<61:6, 0:2, L:16/little, Rest/binary>>, Out) -> literal(L + 1, Rest, Out);
unsnap(<<62:6, 0:2, L:24/little, Rest/binary>>, Out) -> literal(L + 1, Rest, Out);
unsnap(<<High:3, L:3, 1:2, Low, Rest/binary>>, Out) -> copy(High bsl 8 bor Low, L + 4, Rest, Out);
unsnap(<<L:6, 2:2, Offset:16/little, Rest/binary>>, Out) -> copy(Offset, L + 1, Rest, Out);
unsnap(<<L:6, 3:2, Offset:32/little, Rest/binary>>, Out) -> copy(Offset, L + 1, Rest, Out).

literal(N, Rest, Out) ->
    <<Part:N/binary, More/binary>> = Rest,
    unsnap(More, <<Out/binary, Part/binary>>).

copy(Offset, N, Rest, Out) ->
    From = byte_size(Out) - Offset,
    Part = case N =< Offset of
        true -> binary:part(Out, From, N);
        false ->
            Piece = binary:part(Out, From, Offset),
            binary:part(binary:copy(Piece, N div Offset + 1), 0, N)
    end,
    unsnap(Rest, <<Out/binary, Part/binary>>).

%% A header.
top(Fd, Header) when element(1, Header) =:= db_header ->
    [_, Version, UpdateSeq, TimeSeq, Ids, Seqs, Local, P1, P2, Security | More] = tuple_to_list(Header),
    io:format("update_seq ~p~n", [UpdateSeq]),
    Docs = tree(Fd, Ids, fun id_reduction/2),
    Sequences = tree(Fd, Seqs, fun count/2),
    lists:foreach(fun({Id, Value}) -> document(Fd, Id, Value) end, Docs),
    [io:format("seq ~p ~ts~n", [Seq, element(1, Value)]) || {Seq, Value} <- Sequences],
    same(lists:sort([{Seq, {Id, D, S, T}} || {Id, {Seq, D, S, T}} <- Docs]), Sequences),
    rows(local, tree(Fd, Local, fun none/2)),
    case Version > 6 of
        true ->
            rows(purge, tree(Fd, P1, fun count/2)),
            rows(purge_seq, tree(Fd, P2, fun count/2)),
            pointer(Fd, time_seq, TimeSeq);
        false -> io:format("purge ~p~n", [P1]), pointer(Fd, purged, P2)
    end,
    pointer(Fd, security, Security),
    Props = case length(More) >= 6 of true -> lists:nth(6, More); false -> undefined end,
    pointer(Fd, props, Props);
top(_Fd, {_Sig, nil}) -> ok;
top(Fd, {_Sig, {mrheader, Seq, PurgeSeq, Ids, _Info, States}}) ->
    io:format("view ~p ~p~n", [Seq, PurgeSeq]),
    rows(ids, [{K, lists:sort(V)} || {K, V} <- tree(Fd, Ids, fun none/2)]),
    [rows(view, tree(Fd, element(1, S), fun view_count/2)) || S <- States].

same(X, X) -> ok.

hash(Term) -> binary:encode_hex(binary:part(crypto:hash(sha256, term_to_binary(Term)), 0, 12)).

rows(Name, Rows) -> [io:format("row ~p ~ts~n", [Name, hash(R)]) || R <- Rows].

pointer(_Fd, _Name, Ptr) when Ptr =:= nil; Ptr =:= undefined -> ok;
pointer(Fd, Name, Ptr) -> {Payload, _} = chunk(Fd, Ptr), io:format("term ~p ~ts~n", [Name, hash(term(Payload))]).

%% All rows of a tree, in order.
tree(_Fd, nil, _Check) -> [];
tree(Fd, Root, Check) -> {Rows, _, _} = subtree(Fd, Root, Check), Rows.

subtree(Fd, {Ptr, Red, Size}, Check) ->
    {Payload, Own} = chunk(Fd, Ptr),
    case term(Payload) of
        {kv_node, Rows} ->
            {Size, _} = {Own, Ptr},
            ok = Check(Rows, Red),
            {Rows, element(1, lists:last(Rows)), Size};
        {kp_node, Children} ->
            {Parts, Total} = lists:mapfoldl(fun({Last, P}, Sum) ->
                {Rows, Last, Bytes} = subtree(Fd, P, Check),
                {Rows, Sum + Bytes}
            end, Own, Children),
            Total = Size,
            All = lists:append(Parts),
            ok = Check(All, Red),
            {All, element(1, lists:last(Children)), Size}
    end.

none(Rows, []) -> ascending(Rows).

count(Rows, N) -> N = length(Rows), ascending(Rows).

id_reduction(Rows, {Live, Deleted, Sizes}) ->
    {Live, Deleted} = {length([1 || {_, {_, 0, _, _}} <- Rows]), length([1 || {_, {_, 1, _, _}} <- Rows])},
    {size_info, A, E} = Sizes,
    A = lists:sum([element(1, S) || {_, {_, _, S, _}} <- Rows]),
    E = lists:sum([element(2, S) || {_, {_, _, S, _}} <- Rows]),
    ascending(Rows).

ascending([{K, _}, {L, _} = Next | Rest]) when K < L -> ascending([Next | Rest]);
ascending([_]) -> ok.

%% Views have another order of keys.
view_count(Rows, Red) ->
    N = lists:sum([case V of {dups, L} -> length(L); _ -> 1 end || {_, V} <- Rows]),
    N = element(1, Red),
    ok.

document(Fd, Id, {Seq, Deleted, _Sizes, Branches}) ->
    io:format("doc ~ts ~p ~p~n", [Id, Seq, Deleted]),
    [revision(Fd, Id, Pos, Node) || {Pos, Node} <- Branches].

revision(Fd, Id, Pos, {Rev, Value, Children}) ->
    Name = binary:encode_hex(Rev),
    case Value of
        [] -> io:format("rev ~ts ~p ~ts ~p none~n", [Id, Pos, Name, Children =:= []]);
        _ ->
            {Payload, _} = chunk(Fd, element(2, Value)),
            {Body, Atts} = binary_to_term(Payload),
            io:format("rev ~ts ~p ~ts ~p ~p ~ts~n", [Id, Pos, Name, Children =:= [], element(3, Value), hash(term(Body))]),
            [attachment(Fd, Id, Pos, Name, A) || A <- term(Atts)]
    end,
    [revision(Fd, Id, Pos + 1, Child) || Child <- Children].

attachment(Fd, Id, Pos, Rev, {Name, Type, Pieces, AttLen, DiskLen, RevPos, Md5, Encoding}) ->
    Content = iolist_to_binary([begin
        {Piece, _} = chunk(Fd, Ptr),
        Length = byte_size(Piece),
        Piece
    end || {Ptr, Length} <- Pieces]),
    AttLen = byte_size(Content),
    Md5 = erlang:md5(Content),
    io:format("att ~ts ~p ~ts ~ts ~ts~n", [Id, Pos, Rev, Name, hash({Type, DiskLen, RevPos, Encoding, Content})]).
