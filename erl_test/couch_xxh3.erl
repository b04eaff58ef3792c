%% XXH3 with 128 bits and seed 0, the checksum of CouchDB's files since 3.4, in plain Erlang: written from the algorithm's description (xxHash's
%% specification, "XXH3 Algorithm Overview") so that files written in Go are read by code that has nothing in common with the writer. Slow, and meant to be
%% read; for tests only.
-module(couch_xxh3).

-export([hash/1]).

-define(M64, 16#FFFFFFFFFFFFFFFF).
-define(P32_1, 16#9E3779B1).
-define(P32_2, 16#85EBCA77).
-define(P32_3, 16#C2B2AE3D).
-define(P64_1, 16#9E3779B185EBCA87).
-define(P64_2, 16#C2B2AE3D27D4EB4F).
-define(P64_3, 16#165667B19E3779F9).
-define(P64_4, 16#85EBCA77C2B2AE63).
-define(P64_5, 16#27D4EB2F165667C5).
-define(MX1, 16#165667919E3779F9).
-define(MX2, 16#9FB21C651E98DF25).
-define(STRIPE, 64).
-define(STRIPES, 16).

%% @doc Returns the 16 bytes of In's hash in canonical order: big endian, the high half first.
-spec hash(binary()) -> binary().
hash(In) ->
    {Low, High} = case byte_size(In) of
        0 -> {avalanche64(s(64) bxor s(72)), avalanche64(s(80) bxor s(88))};
        N when N =< 3 -> hash_3(In, N);
        N when N =< 8 -> hash_8(In, N);
        N when N =< 16 -> hash_16(In, N);
        N when N =< 128 -> hash_128(In, N);
        N when N =< 240 -> hash_240(In, N);
        N -> hash_long(In, N)
    end,
    <<High:64, Low:64>>.

hash_3(In, N) ->
    First = binary:at(In, 0),
    Low = (First bsl 16) bor (binary:at(In, N bsr 1) bsl 24) bor binary:at(In, N - 1) bor (N bsl 8),
    Swapped = swap32(Low),
    High = ((Swapped bsl 13) bor (Swapped bsr 19)) band 16#FFFFFFFF,
    {avalanche64(Low bxor (s32(0) bxor s32(4))), avalanche64(High bxor (s32(8) bxor s32(12)))}.

hash_8(In, N) ->
    Keyed = (r32(In, 0) + (r32(In, N - 4) bsl 32)) bxor (s(16) bxor s(24)),
    {L0, H0} = halves(Keyed * m(?P64_1 + (N bsl 2))),
    H1 = m(H0 + (L0 bsl 1)),
    L1 = L0 bxor (H1 bsr 3),
    L2 = m((L1 bxor (L1 bsr 35)) * ?MX2),
    {L2 bxor (L2 bsr 28), avalanche(H1)}.

hash_16(In, N) ->
    Lo = r64(In, 0),
    Hi = r64(In, N - 8),
    {L0, H0} = halves((Lo bxor Hi bxor s(32) bxor s(40)) * ?P64_1),
    L1 = m(L0 + ((N - 1) bsl 54)),
    Hi1 = Hi bxor (s(48) bxor s(56)),
    H1 = m(H0 + Hi1 + (Hi1 band 16#FFFFFFFF) * (?P32_2 - 1)),
    {L2, H2} = halves((L1 bxor swap64(H1)) * ?P64_2),
    {avalanche(L2), avalanche(m(H2 + H1 * ?P64_2))}.

hash_128(In, N) ->
    From = (N - 1) div 32,
    Acc = lists:foldl(
        fun(I, Acc) -> mix32(Acc, In, 16 * I, N - 16 * (I + 1), 32 * I) end,
        {m(N * ?P64_1), 0},
        lists:seq(From, 0, -1)
    ),
    finish(Acc, N).

hash_240(In, N) ->
    Mix = fun(I, Secret, Acc) -> mix32(Acc, In, I - 32, I - 16, Secret) end,
    {L, H} = lists:foldl(fun(I, Acc) -> Mix(I, I - 32, Acc) end, {m(N * ?P64_1), 0}, lists:seq(32, 159, 32)),
    Acc = lists:foldl(fun(I, Acc) -> Mix(I, 3 + I - 160, Acc) end, {avalanche(L), avalanche(H)}, lists:seq(160, N, 32)),
    finish(mix32(Acc, In, N - 16, N - 32, 136 - 17 - 16), N).

finish({L, H}, N) ->
    {avalanche(m(L + H)), m(-avalanche(m(L * ?P64_1 + H * ?P64_4 + N * ?P64_2)))}.

mix32({L, H}, In, At1, At2, Secret) ->
    L1 = m(L + mix16(In, At1, Secret)) bxor m(r64(In, At2) + r64(In, At2 + 8)),
    H1 = m(H + mix16(In, At2, Secret + 16)) bxor m(r64(In, At1) + r64(In, At1 + 8)),
    {L1, H1}.

mix16(In, At, Secret) ->
    fold((r64(In, At) bxor s(Secret)), (r64(In, At + 8) bxor s(Secret + 8))).

%% More than 240 bytes: eight sums over stripes of 64 bytes, stirred after every 16 stripes.
hash_long(In, N) ->
    Start = {?P32_3, ?P64_1, ?P64_2, ?P64_3, ?P64_4, ?P32_2, ?P64_5, ?P32_1},
    Whole = (N - 1) div (?STRIPE * ?STRIPES),
    Sums = lists:foldl(
        fun(Block, Acc) -> stir(stripes(Acc, In, Block * ?STRIPE * ?STRIPES, ?STRIPES)) end, Start, lists:seq(0, Whole - 1)
    ),
    Rest = Whole * ?STRIPE * ?STRIPES,
    Last = stripe(stripes(Sums, In, Rest, (N - 1 - Rest) div ?STRIPE), In, N - ?STRIPE, 192 - ?STRIPE - 7),
    {merge(Last, 11, m(N * ?P64_1)), merge(Last, 192 - ?STRIPE - 11, m(bnot (N * ?P64_2)))}.

stripes(Sums, In, At, Count) ->
    lists:foldl(fun(I, Acc) -> stripe(Acc, In, At + I * ?STRIPE, 8 * I) end, Sums, lists:seq(0, Count - 1)).

stripe(Sums, In, At, Secret) ->
    lists:foldl(
        fun(I, Acc) ->
            Data = r64(In, At + 8 * I),
            Key = Data bxor s(Secret + 8 * I),
            Other = (I bxor 1) + 1,
            Acc1 = setelement(Other, Acc, m(element(Other, Acc) + Data)),
            setelement(I + 1, Acc1, m(element(I + 1, Acc1) + (Key band 16#FFFFFFFF) * (Key bsr 32)))
        end,
        Sums,
        lists:seq(0, 7)
    ).

stir(Sums) ->
    list_to_tuple([m(((A bxor (A bsr 47)) bxor s(128 + 8 * I)) * ?P32_1) || {I, A} <- lists:zip(lists:seq(0, 7), tuple_to_list(Sums))]).

merge(Sums, Secret, Start) ->
    Folds = [
        fold(element(2 * I + 1, Sums) bxor s(Secret + 16 * I), element(2 * I + 2, Sums) bxor s(Secret + 16 * I + 8))
     || I <- lists:seq(0, 3)
    ],
    avalanche(m(Start + lists:sum(Folds))).

avalanche(H0) ->
    H = m((H0 bxor (H0 bsr 37)) * ?MX1),
    H bxor (H bsr 32).

avalanche64(H0) ->
    H1 = m((H0 bxor (H0 bsr 33)) * ?P64_2),
    H2 = m((H1 bxor (H1 bsr 29)) * ?P64_3),
    H2 bxor (H2 bsr 32).

fold(A, B) ->
    {L, H} = halves(A * B),
    L bxor H.

halves(N) -> {m(N), m(N bsr 64)}.

m(N) -> N band ?M64.

r64(In, At) ->
    <<_:At/binary, V:64/little, _/binary>> = In,
    V.

r32(In, At) ->
    <<_:At/binary, V:32/little, _/binary>> = In,
    V.

swap32(N) ->
    <<V:32/little>> = <<N:32>>,
    V.

swap64(N) ->
    <<V:64/little>> = <<N:64>>,
    V.

s(At) -> r64(secret(), At).

s32(At) -> r32(secret(), At).

secret() ->
    <<16#b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c:512,
      16#3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364:512,
      16#eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e:512>>.
