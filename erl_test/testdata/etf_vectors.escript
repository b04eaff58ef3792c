#!/usr/bin/env escript
%% Writes etf_terms.txt and etf_order.txt beside itself: encoded terms without
%% the version byte, in hexadecimal, and what the BEAM makes of them. The output
%% is the same on every run.
-mode(compile).

main(_) ->
    Dir = filename:dirname(escript:script_name()),
    ok = file:write_file(filename:join(Dir, "etf_terms.txt"), [
        "# name, encoded term, and how term_to_binary (minor_version 2) writes it, or refused.\n"
        "# Written by etf_vectors.escript.\n",
        [[Name, $\s, hex(Bytes), $\s, verdict(Bytes), $\n] || {Name, Bytes} <- encodings()]]),
    ok = file:write_file(filename:join(Dir, "etf_order.txt"), [
        "# Terms in ascending order; = for one that is == to the term before, otherwise <.\n"
        "# Written by etf_vectors.escript.\n",
        order(lists:sort([decode(B) || B <- terms()]))]).

hex(Bytes) -> [io_lib:format("~2.16.0b", [C]) || <<C>> <= Bytes].

decode(Bytes) ->
    All = byte_size(Bytes) + 1,
    {Term, All} = binary_to_term(<<131, Bytes/binary>>, [used]),
    Term.

encode(Term) ->
    <<131, Bytes/binary>> = term_to_binary(Term, [{minor_version, 2}]),
    Bytes.

verdict(Bytes) ->
    try hex(encode(decode(Bytes))) catch error:_ -> "refused" end.

order([First | Rest]) -> [["< ", hex(encode(First)), $\n] | order(First, Rest)].

order(_, []) -> [];
order(Before, [Term | Rest]) ->
    [[if Before == Term -> "= "; true -> "< " end, hex(encode(Term)), $\n] | order(Term, Rest)].

atom(Name) -> <<119, (byte_size(Name)), Name/binary>>.

encodings() ->
    A = atom(<<"a">>),
    [{"small_integer", <<97, 255>>},
     {"integer", <<98, -1:32>>},
     {"integer_small", <<98, 5:32>>},
     {"small_big", <<110, 8, 0, 0:56, 128>>},
     {"small_big_negative", <<110, 8, 1, 0:56, 128>>},
     {"small_big_empty", <<110, 0, 0>>},
     {"small_big_padded", <<110, 12, 0, 5, 0:88>>},
     {"small_big_minus_zero", <<110, 1, 1, 0>>},
     {"small_big_sign_2", <<110, 1, 2, 5>>},
     {"large_big", <<111, 300:32, 0, 1, 0:2384, 7>>},
     {"large_big_small", <<111, 1:32, 0, 5>>},
     {"new_float", <<70, 1.5/float>>},
     {"new_float_nan", <<70, 16#7ff8:16, 0:48>>},
     {"new_float_infinity", <<70, 16#7ff0:16, 0:48>>},
     {"float", <<99, "1.50000000000000000000e+00", 0:40>>},
     {"float_short", <<99, "-1.0", 0:216>>},
     {"float_large", <<99, "1.0e400", 0:192>>},
     {"float_tiny", <<99, "1.0e-400", 0:184>>},
     {"float_integer", <<99, "1", 0:240>>},
     {"float_no_fraction", <<99, "1.e5", 0:216>>},
     {"float_trailing", <<99, "1.0x", 0:216>>},
     {"float_nan", <<99, "nan", 0:224>>},
     {"atom", <<100, 2:16, "ok">>},
     {"atom_latin1", <<100, 1:16, 233>>},
     {"small_atom", <<115, 2, "ok">>},
     {"atom_utf8", <<118, 2:16, 195, 169>>},
     {"small_atom_utf8", <<119, 2, 195, 169>>},
     {"atom_empty", <<119, 0>>},
     {"atom_nul", <<119, 1, 0>>},
     {"atom_bad_utf8", <<119, 1, 255>>},
     {"atom_overlong", <<119, 2, 16#c0, 16#80>>},
     {"atom_surrogate", <<119, 3, 16#ed, 16#a0, 16#80>>},
     {"atom_255", <<118, 510:16, (binary:copy(<<195, 169>>, 255))/binary>>},
     {"atom_256", <<118, 512:16, (binary:copy(<<195, 169>>, 256))/binary>>},
     {"atom_latin1_256", <<100, 256:16, 0:2048>>},
     {"nil", <<106>>},
     {"string", <<107, 2:16, "ab">>},
     {"string_empty", <<107, 0:16>>},
     {"list", <<108, 2:32, 97, 1, 98, 1000:32, 106>>},
     {"list_improper", <<108, 1:32, 97, 1, 97, 2>>},
     {"list_in_pieces", <<108, 1:32, 97, 1, 108, 1:32, 97, 2, 107, 1:16, 3>>},
     {"list_empty", <<108, 0:32, 106>>},
     {"list_of_none", <<108, 0:32, 97, 1>>},
     {"list_truncated", <<108, 2:32, 97, 1>>},
     {"small_tuple", <<104, 1, 97, 1>>},
     {"large_tuple", <<105, 1:32, 97, 1>>},
     {"large_tuple_empty", <<105, 0:32>>},
     {"map", <<116, 1:32, A/binary, 97, 1>>},
     {"map_number_keys", <<116, 2:32, 97, 1, 97, 2, 70, 1.0/float, 97, 3>>},
     {"map_key_twice", <<116, 2:32, 97, 1, 97, 2, 98, 1:32, 97, 3>>},
     {"map_nested_key_twice", <<104, 1, 116, 2:32, 104, 1, 107, 1:16, 7, 97, 2, 104, 1, 108, 1:32, 97, 7, 106, 97, 3>>},
     {"map_zero_keys", <<116, 1:32, 70, -0.0/float, 97, 1>>},
     {"binary", <<109, 2:32, "ab">>},
     {"bit_binary", <<77, 2:32, 3, 1, 160>>},
     {"bit_binary_dirty", <<77, 1:32, 3, 255>>},
     {"bit_binary_whole", <<77, 1:32, 8, 5>>},
     {"bit_binary_empty", <<77, 0:32, 0>>},
     {"bit_binary_no_bits", <<77, 1:32, 0, 5>>},
     {"bit_binary_9_bits", <<77, 1:32, 9, 5>>},
     {"bit_binary_bits_of_none", <<77, 0:32, 3>>},
     {"pid", <<103, A/binary, 1:32, 2:32, 3>>},
     {"pid_creation_4", <<103, A/binary, 1:32, 2:32, 4>>},
     {"new_pid", <<88, A/binary, -1:32, -2:32, -3:32>>},
     {"new_pid_node_no_atom", <<88, 97, 1, 1:32, 2:32, 3:32>>},
     {"port", <<102, A/binary, 1:32, 3>>},
     {"new_port", <<89, A/binary, 1:32, 9:32>>},
     {"v4_port", <<120, A/binary, -1:64, 9:32>>},
     {"reference", <<101, A/binary, 1:32, 3>>},
     {"reference_19_bits", <<101, A/binary, (1 bsl 18):32, 3>>},
     {"new_reference", <<114, 3:16, A/binary, 3, 1:32, 2:32, 3:32>>},
     {"new_reference_19_bits", <<114, 3:16, A/binary, 3, (1 bsl 18):32, 2:32, 3:32>>},
     {"newer_reference", <<90, 5:16, A/binary, 9:32, 1:32, 2:32, 3:32, 4:32, 5:32>>},
     {"newer_reference_6", <<90, 6:16, A/binary, 9:32, 1:32, 2:32, 3:32, 4:32, 5:32, 6:32>>},
     {"export", <<113, A/binary, A/binary, 97, 2>>},
     {"new_fun", fun_of(<<"m">>, 1, 7, [<<97, 1>>])},
     {"new_fun_nan", fun_of(<<"m">>, 1, 7, [<<70, 16#7ff8:16, 0:48>>])},
     {"fun_old", <<117, 0:32, 103, A/binary, 1:32, 2:32, 3, A/binary, 97, 1, 97, 2>>},
     {"compressed", <<80, 2:32, (zlib:compress(<<97, 1>>))/binary>>},
     {"unknown", <<0>>}].

fun_of(Module, Index, OldUniq, Free) ->
    Body = [0, <<0:128, Index:32, (length(Free)):32>>, atom(Module), <<97, 0, 98, OldUniq:32>>,
            <<88, (atom(<<"a">>))/binary, 1:32, 2:32, 3:32>>, Free],
    <<112, (iolist_size(Body) + 4):32, (iolist_to_binary(Body))/binary>>.

%% Terms to put in order, encoded: those the BEAM can make, and those of other nodes.
terms() ->
    Big = 1 bsl 70,
    Numbers = [-Big, -Big - 1, float(-Big), -(1 bsl 63), -(1 bsl 63) - 1, -1, -1.0, -0.5, 0, 0.0, 0.5, 1, 1.0, 2, 255, 256,
               (1 bsl 53), float(1 bsl 53), (1 bsl 53) + 1, (1 bsl 60), (1 bsl 63), (1 bsl 64) - 1, float(1 bsl 64),
               (1 bsl 64), (1 bsl 64) + 1, Big, Big + 1, float(Big), 1.0e300, 5.0e-324],
    Others = ['', a, aa, b, 'A', 'é', list_to_atom([26085]), {}, {1}, {1.0}, {2}, {a, 1}, {1, 1, 1}, #{}, #{1 => 2},
              #{1.0 => 1}, #{2 => 1}, #{a => 1}, #{a => 1.0}, #{a => 2}, #{a => 1, b => 1}, #{a => 0, c => 0}, #{{1} => 1},
              #{{1.0} => 0}, [], [1], [1.0], [1, 2], [1 | a], [1 | 2], [1 | <<>>], [a], "ab", "abc", [97 | b], [97, 98.0],
              [97, b], [[]], <<>>, <<0>>, <<0:1>>, <<1:1>>, <<1>>, <<1, 2>>, <<1, 2:3>>, <<255>>, fun a:b/1, fun a:b/2,
              fun a:c/0, fun b:a/0],
    Pids = [<<88, (atom(N))/binary, I:32, S:32, C:32>> || {N, I, S, C} <-
            [{<<"a">>, 1, 0, 1}, {<<"a">>, 1, 0, 2}, {<<"b">>, 1, 0, 1}, {<<"a">>, 2, 0, 1}, {<<"a">>, 1, 1, 1}, {<<"a">>, 1, -1, 1}]],
    Ports = [<<120, (atom(N))/binary, I:64, C:32>> || {N, I, C} <-
             [{<<"a">>, 1, 1}, {<<"a">>, 1, 2}, {<<"b">>, 1, 1}, {<<"a">>, 2, 1}, {<<"a">>, -1, 1}]],
    Refs = [<<90, (length(W)):16, (atom(N))/binary, C:32, << <<I:32>> || I <- W >>/binary>> || {N, C, W} <-
            [{<<"a">>, 1, [1]}, {<<"a">>, 1, [1, 0]}, {<<"a">>, 1, [2]}, {<<"a">>, 1, [1, 1]}, {<<"a">>, 1, [2, 1, 0]},
             {<<"a">>, 2, [1]}, {<<"b">>, 1, [1]}, {<<"a">>, 1, [0, 0, 0, 0, 1]}]],
    Funs = [fun_of(M, I, U, F) || {M, I, U, F} <-
            [{<<"m">>, 1, 1, []}, {<<"m">>, 1, -1, []}, {<<"m">>, 2, 0, []}, {<<"l">>, 9, 9, []}, {<<"m">>, 1, 1, [<<97, 1>>]},
             {<<"m">>, 1, 1, [<<70, 1.0/float>>]}, {<<"m">>, 1, 1, [<<97, 2>>]}]],
    [encode(T) || T <- Numbers ++ Others] ++ Pids ++ Ports ++ Refs ++ Funs.
