%% Answers a benchmark as echo does, by a process of another BEAM.
-module(beam_echo).

-export([start/0]).

start() ->
    true = register(echo, spawn(fun init/0)),
    %% Until the benchmark ends.
    eof = io:get_line(""),
    halt().

init() ->
    List = [{iolist_to_binary(io_lib:format("~16..0b", [I])), <<0:800>>} || I <- lists:seq(0, 99)],
    loop(List, binary:copy(<<0>>, 1000000), 0).

loop(List, Binary, Count) ->
    receive
        {m, _} ->
            loop(List, Binary, Count + 1);
        {'$gen_call', From, _} ->
            gen_server:reply(From, pong),
            loop(List, Binary, Count);
        {ping, Pid} ->
            Pid ! pong,
            loop(List, Binary, Count);
        {count, Pid} ->
            Pid ! Count,
            loop(List, Binary, 0);
        {small, Pid, N} ->
            repeat(N, Pid, {m, 1000}),
            loop(List, Binary, Count);
        {lists, Pid, N} ->
            repeat(N, Pid, List),
            loop(List, Binary, Count);
        {binaries, Pid, N} ->
            repeat(N, Pid, Binary),
            loop(List, Binary, Count)
    end.

repeat(0, _, _) ->
    ok;
repeat(N, Pid, Msg) ->
    Pid ! Msg,
    repeat(N - 1, Pid, Msg).
