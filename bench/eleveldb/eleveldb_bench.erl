%% The benchmark of `make bench-eleveldb': measures a module by the functions of eleveldb that programs use, and nothing else, so that it runs with the
%% original, too. Rows are those of bench/rows: five fields, a key of 40 bytes, an object of about 190 bytes (ttb) or 147 (msgpack).
%%
%% Each repetition of each measurement is a process of its own. Decoding is what riak_kv does in Erlang with a stored object, bench/rows/riak_client.erl.
-module(eleveldb_bench).

-export([main/0]).

%% Of 100,000 rows: eleveldb of riak_ts-1.5.2 in a BEAM of OTP 25, on a quiet machine of two cores.
-define(RECORDED, #{
    {scan, ttb, count} => 18,
    {scan, msgpack, count} => 23,
    {scan, ttb, decode} => 1014,
    {scan, msgpack, decode} => 1792,
    {0.1, ttb, count} => 36,
    {0.1, msgpack, count} => 38,
    {0.1, ttb, decode} => 41,
    {0.1, msgpack, decode} => 36,
    {10, ttb, count} => 41,
    {10, msgpack, count} => 39,
    {10, ttb, decode} => 94,
    {10, msgpack, decode} => 132,
    {100, ttb, count} => 50,
    {100, msgpack, count} => 69,
    {100, ttb, decode} => 1116,
    {100, msgpack, decode} => 1611,
    {fold, ttb} => 1647,
    {fold, msgpack} => 1736,
    {fold_keys, ttb} => 1601,
    {limit, 1} => 0.04,
    {limit, 10} => 0.03,
    {limit, 100} => 0.39,
    {limit, 1000} => 1.9,
    get_p50 => 17.6,
    get_p99 => 85,
    put => 36500,
    {batch, ttb} => 342000,
    {batch, msgpack} => 528000
}).

main() ->
    Module = list_to_atom(os:getenv("MODULE", "eleveldb")),
    Rows = list_to_integer(os:getenv("ROWS", "100000")),
    Repetitions = list_to_integer(os:getenv("REPETITIONS", "5")),
    io:format("~s, ~b rows, medians of ~b repetitions (least to greatest), OTP ~s, load ~s at the start~n~n", [
        Module, Rows, Repetitions, erlang:system_info(otp_release), load()
    ]),
    io:format("| | ~s | original, recorded | times as fast |~n|---|---|---|---|~n", [Module]),
    %% Writing comes first, and makes what is read.
    Stores = [{Encoding, written(Module, Encoding, Rows, Repetitions)} || Encoding <- [ttb, msgpack]],
    [scans(Module, Db, Encoding, Rows, Repetitions) || {Encoding, Db} <- Stores],
    {ttb, Db} = hd(Stores),
    folds(Module, Stores, Rows, Repetitions),
    short(Module, Db, Repetitions),
    moves(Module, Db, Rows, Repetitions),
    gets(Module, Db, Rows, Repetitions),
    puts(Module, Repetitions),
    [ok = Module:close(Opened) || {_, Opened} <- Stores],
    halt().

load() ->
    case file:read_file("/proc/loadavg") of
        {ok, Load} -> hd(string:split(Load, " "));
        {error, _} -> "?"
    end.

open(Module, Name) ->
    Dir = filename:join(os:getenv("BENCH_DIR"), Name),
    {ok, Db} = Module:open(Dir, [{create_if_missing, true}, {write_buffer_size, 60 bsl 20}, {use_bloomfilter, true}]),
    Db.

%% Batches of 100 rows, into a new store each time.
written(Module, Encoding, Rows, Repetitions) ->
    Batches = [[{put, table:key(I), riak_client:object(Encoding, table:row(I))} || I <- lists:seq(N, N + 99)] || N <- lists:seq(0, Rows - 1, 100)],
    Made = [
        begin
            Db = open(Module, lists:concat([Encoding, N])),
            Ms = timed(fun() -> [ok = Module:write(Db, Batch, []) || Batch <- Batches] end),
            {Rows / Ms * 1000, Db}
        end
     || N <- lists:seq(1, Repetitions)
    ],
    {Rates, [Last | Others]} = lists:unzip(lists:reverse(Made)),
    [ok = Module:close(Db) || Db <- Others],
    line(io_lib:format("batches of 100, ~s, rows/s", [Encoding]), "~b", [round(Rate) || Rate <- Rates], {batch, Encoding}),
    Last.

scans(Module, Db, Encoding, Rows, Repetitions) ->
    Queries = [
        {scan, "streaming scan", [], Rows}
        | [
            {Percent, io_lib:format("filter ~p %", [Percent]), [{range_filter, {'<', {field, <<"value">>, double}, {const, Percent * 1.0}}}], Rows * Percent / 100}
         || Percent <- [0.1, 10, 100]
        ]
    ],
    [
        begin
            Ms = times(Repetitions, fun() -> Right = Module:fold(Db, fold_fun(How), 0, [{fold_method, streaming} | Options]) end),
            line(io_lib:format("~s, ~s, ~s, ms", [Name, How, Encoding]), "~.1f", Ms, {Query, Encoding, How})
        end
     || {Query, Name, Options, Exact} <- Queries, How <- [count, decode], Right <- [round(Exact)]
    ].

fold_fun(count) ->
    fun(_, N) -> N + 1 end;
fold_fun(decode) ->
    fun({_, Object}, N) ->
        [_, _, _, _, _] = riak_client:cells(Object),
        N + 1
    end.

folds(Module, Stores, Rows, Repetitions) ->
    [
        begin
            Ms = times(Repetitions, fun() -> Rows = Module:fold(Db, fold_fun(count), 0, []) end),
            line(io_lib:format("fold, ~s, ms", [Encoding]), "~.1f", Ms, {fold, Encoding})
        end
     || {Encoding, Db} <- Stores
    ],
    Keys = times(Repetitions, fun() -> Rows = Module:fold_keys(proplists:get_value(ttb, Stores), fold_fun(count), 0, []) end),
    line("fold_keys, ms", "~.1f", Keys, {fold_keys, ttb}).

%% Rows from a place on, decoded; a thousand at different places, one after the other.
short(Module, Db, Repetitions) ->
    [
        begin
            Query = fun(I) ->
                Limit = Module:fold(Db, fold_fun(decode), 0, [{fold_method, streaming}, {start_key, table:key(I * 50)}, {limit, Limit}])
            end,
            Ms = times(Repetitions, fun() -> [Query(I) || I <- lists:seq(1, 100)] end),
            line(io_lib:format("short query of ~b, ms", [Limit]), "~.3f", [T / 100 || T <- Ms], {limit, Limit})
        end
     || Limit <- [1, 10, 100, 1000]
    ].

%% As Riak's hash trees move: a segment's first key, and on; and lone seeks.
moves(Module, Db, Rows, Repetitions) ->
    Segment = fun(It, I) ->
        {ok, _, _} = Module:iterator_move(It, table:key(I)),
        [{ok, _, _} = Module:iterator_move(It, prefetch) || _ <- lists:seq(1, 99)],
        {ok, _, _} = Module:iterator_move(It, prefetch_stop)
    end,
    Places = [I * 7919 rem (Rows - 200) || I <- lists:seq(1, 500)],
    Moved = fun(Move) ->
        times(Repetitions, fun() ->
            {ok, It} = Module:iterator(Db, []),
            [Move(It, I) || I <- Places],
            ok = Module:iterator_close(It)
        end)
    end,
    line("seek and 100 prefetches, microseconds", "~.1f", [Ms * 1000 / 500 || Ms <- Moved(Segment)], segment),
    Seek = fun(It, I) -> {ok, _, _} = Module:iterator_move(It, table:key(I)) end,
    line("seek alone, microseconds", "~.1f", [Ms * 1000 / 500 || Ms <- Moved(Seek)], seek),
    Fold = fun(_) ->
        {ok, It} = Module:iterator(Db, []),
        ok = Module:iterator_close(It)
    end,
    line("iterator and iterator_close, microseconds", "~.1f", [Ms * 1000 / 500 || Ms <- times(Repetitions, fun() -> lists:foreach(Fold, Places) end)], iterator).

gets(Module, Db, Rows, Repetitions) ->
    Sorted = [
        apart(fun() ->
            lists:sort([
                begin
                    Key = table:key(I * 7919 rem Rows),
                    T0 = erlang:monotonic_time(nanosecond),
                    {ok, _} = Module:get(Db, Key, []),
                    erlang:monotonic_time(nanosecond) - T0
                end
             || I <- lists:seq(1, 20000)
            ])
        end)
     || _ <- lists:seq(1, Repetitions)
    ],
    line("get p50, microseconds", "~.1f", [lists:nth(10000, Times) / 1000 || Times <- Sorted], get_p50),
    line("get p99, microseconds", "~.1f", [lists:nth(19800, Times) / 1000 || Times <- Sorted], get_p99).

puts(Module, Repetitions) ->
    Db = open(Module, "puts"),
    Value = riak_client:object(ttb, table:row(1)),
    Puts = times(Repetitions, fun() -> [ok = Module:put(Db, table:key(I), Value, []) || I <- lists:seq(1, 20000)] end),
    line("put, not synced, rows/s", "~b", [round(20000 / Ms * 1000) || Ms <- Puts], put),
    Async = times(Repetitions, fun() ->
        [ok = Module:async_put(Db, I, table:key(I), Value, []) || I <- lists:seq(1, 20000)],
        [
            receive
                {I, ok} -> ok
            end
         || I <- lists:seq(1, 20000)
        ]
    end),
    line("async_put, not synced, rows/s", "~b", [round(20000 / Ms * 1000) || Ms <- Async], async_put),
    ok = Module:close(Db).

%% Milliseconds of each of some runs.
times(Repetitions, Fun) -> [timed(Fun) || _ <- lists:seq(1, Repetitions)].

timed(Fun) ->
    apart(fun() ->
        T0 = erlang:monotonic_time(microsecond),
        _ = Fun(),
        (erlang:monotonic_time(microsecond) - T0) / 1000
    end).

%% In a process of its own.
apart(Fun) ->
    {Pid, Monitor} = spawn_monitor(fun() -> exit({result, Fun()}) end),
    receive
        {'DOWN', Monitor, process, Pid, {result, Result}} -> Result
    end.

%% Whole numbers are rates, the others times.
line(What, Format, Figures, Key) ->
    Sorted = lists:sort(Figures),
    Median = lists:nth((length(Sorted) + 1) div 2, Sorted),
    Number = fun(N) -> io_lib:format(Format, [N]) end,
    {Recorded, Ratio} =
        case ?RECORDED of
            #{Key := Rate} when Format =:= "~b" -> {io_lib:format("~p", [Rate]), io_lib:format("~.2f", [Median / Rate])};
            #{Key := Time} -> {io_lib:format("~p", [Time]), io_lib:format("~.2f", [Time / Median])};
            #{} -> {"", ""}
        end,
    io:format("| ~ts | ~ts (~ts to ~ts) | ~ts | ~ts |~n", [What, Number(Median), Number(hd(Sorted)), Number(lists:last(Sorted)), Recorded, Ratio]).
