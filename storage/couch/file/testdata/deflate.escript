#!/usr/bin/env escript
%% Reads deflated terms from standard input, each after a byte that is the level and
%% four that are its length, until the end. Answers each with the plain term and
%% with the term as term_to_binary deflates it at that level, each after its length.
-mode(compile).

main([]) ->
    ok = io:setopts(standard_io, [binary, {encoding, latin1}]),
    loop().

loop() ->
    case file:read(standard_io, 5) of
        {ok, <<Level, Size:32>>} ->
            {ok, Data} = file:read(standard_io, Size),
            Term = binary_to_term(Data),
            answer(term_to_binary(Term, [{minor_version, 1}])),
            answer(term_to_binary(Term, [{minor_version, 1}, {compressed, Level}])),
            loop();
        eof ->
            ok
    end.

answer(Bytes) ->
    ok = file:write(standard_io, [<<(byte_size(Bytes)):32>>, Bytes]).
