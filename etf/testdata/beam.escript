#!/usr/bin/env escript
%%! -noinput +pc unicode
%% Answers, on standard input and output, frames of {packet,4} with what the BEAM
%% makes of encoded terms. Terms come and go without the version byte.
%%
%%   1 Term              -> 1 Term | 0              binary_to_term, term_to_binary
%%   2 Size:32 A B       -> 1 Order:8 Same:8 | 0    0 <, 1 ==, 2 >; whether =:=
%%   3 Seed:32 Size:8    -> 1 Term                  a random term
%%   4 Term              -> 1 Text | 0              ~0tp
%%   5 Text              -> 1 Term | 0              erl_scan, erl_parse
%%   6                   -> 1 Text                  the release
%%
%% Every release from OTP 23 on runs this.
-mode(compile).

main(_) ->
    loop(open_port({fd, 0, 1}, [{packet, 4}, binary, eof])).

loop(Port) ->
    receive
        {Port, {data, Request}} ->
            port_command(Port, try answer(Request) catch error:_ -> <<0>> end),
            loop(Port);
        {Port, eof} ->
            ok
    end.

answer(<<1, Term/binary>>) -> <<1, (encode(decode(Term)))/binary>>;
answer(<<2, Size:32, A0:Size/binary, B0/binary>>) ->
    A = decode(A0), B = decode(B0),
    Order = if A < B -> 0; A == B -> 1; A > B -> 2 end,
    <<1, Order, (if A =:= B -> 1; true -> 0 end)>>;
answer(<<3, Seed:32, Size>>) ->
    _ = rand:seed(exsss, Seed),
    <<1, (encode(random(Size)))/binary>>;
answer(<<4, Term/binary>>) ->
    <<1, (unicode:characters_to_binary(io_lib:format("~0tp", [decode(Term)])))/binary>>;
answer(<<5, Text/binary>>) ->
    {ok, Tokens, _} = erl_scan:string(unicode:characters_to_list(Text) ++ "."),
    {ok, Exprs} = erl_parse:parse_exprs(Tokens),
    {value, Term, _} = erl_eval:exprs(Exprs, []),
    <<1, (encode(Term))/binary>>;
answer(<<6>>) ->
    <<1, (list_to_binary(erlang:system_info(otp_release)))/binary>>.

%% All bytes must be used: binary_to_term alone ignores what follows the term.
decode(Bytes) ->
    All = byte_size(Bytes) + 1,
    {Term, All} = binary_to_term(<<131, Bytes/binary>>, [used]),
    Term.

encode(Term) ->
    <<131, Bytes/binary>> = term_to_binary(Term, [{minor_version, 2}]),
    Bytes.

random(Size) when Size =< 1 -> leaf(rand:uniform(16));
random(Size) ->
    case rand:uniform(9) of
        1 -> list_to_tuple(several(Size));
        2 -> several(Size);
        3 -> several(Size) ++ random(Size div 2);
        4 -> maps:from_list([{random(Size div 3), random(Size div 3)} || _ <- several(Size div 2)]);
        5 -> {random(Size div 2), random(Size div 2)};
        6 -> [random(Size div 2)];
        7 -> fun_of(random(Size div 2));
        8 -> leaf(rand:uniform(16));
        9 -> record(list_to_integer(erlang:system_info(otp_release)), Size)
    end.

several(Size) ->
    N = rand:uniform(min(Size, 6)) - 1,
    [random(Size div (N + 1)) || _ <- lists:seq(1, N)].

leaf(1) -> rand:uniform(300) - 20;
leaf(2) -> rand:uniform(1 bsl 33) - (1 bsl 32);
leaf(3) -> (rand:uniform(1 bsl 65) - (1 bsl 64));
leaf(4) -> (rand:uniform(1 bsl 62) bsl rand:uniform(3000)) * (2 * rand:uniform(2) - 3);
leaf(5) -> float_of(bytes(8));
leaf(6) -> lists:nth(rand:uniform(4), [-0.0, 1.0, 5.0e-324, (rand:uniform() - 0.5) * 1000]);
leaf(7) -> lists:nth(rand:uniform(6), [ok, error, '', 'two words', 'é', list_to_atom([26085, 26412])]);
leaf(8) -> bytes(rand:uniform(20) - 1);
leaf(9) -> N = rand:uniform(40), <<B:N/bitstring, _/bitstring>> = bytes(5), B;
leaf(10) -> [rand:uniform(256) - 1 || _ <- lists:seq(1, rand:uniform(10))];
leaf(11) -> self();
leaf(12) -> make_ref();
leaf(13) -> hd(erlang:ports());
leaf(14) -> lists:nth(rand:uniform(4), [[], {}, #{}, <<>>]);
leaf(15) -> fun lists:map/2;
leaf(16) -> decode(<<88, 119, 3, "n@h", (rand:uniform(1 bsl 15) - 1):32, (rand:uniform(1 bsl 13) - 1):32, (rand:uniform(1 bsl 32) - 1):32>>).

bytes(N) -> << <<(rand:uniform(256) - 1)>> || _ <- lists:seq(1, N) >>.

%% A native record, which no syntax of older releases makes.
record(Release, Size) when Release >= 29 ->
    Names = lists:sublist([<<119, 1, C>> || {_, C} <- lists:sort([{rand:uniform(), C} || C <- "abcdef"])], rand:uniform(7) - 1),
    Values = [encode(random(Size div 3)) || _ <- Names],
    decode(iolist_to_binary([67, <<(length(Names)):32>>, rand:uniform(2) - 1, <<119, 1, "m">>, <<119, 1, "r">>, Names, Values]));
record(_, Size) ->
    random(Size div 2).

float_of(<<F/float>>) -> F;
float_of(_) -> 0.5.

fun_of(Free) -> fun(X) -> {X, Free} end.
