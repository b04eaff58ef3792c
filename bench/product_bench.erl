%% The program itself, by the Erlang application, over both transports: a large scan beside small calls, what a slow consumer costs, and what messages
%% of others cost a fold.
-module(product_bench).

-export([run/3]).

-define(VALUE, 1000).
-define(CALLS, 2000).
-define(OTHERS, 100000).
-define(FOLD_ROWS, 400000).

run(Repetitions, Dir, CookieFile) ->
    MiB = list_to_integer(os:getenv("SCAN_MIB", "1024")),
    Program = os:getenv("SCANODE_EXECUTABLE"),
    {ok, _} = application:ensure_all_started(scanode),
    Data = filename:join(Dir, "data"),
    load(filename:join(Data, "store"), max(?FOLD_ROWS, MiB * 1048576 div ?VALUE)),
    io:format("~n## A scan of ~b MiB beside small calls on one link, ~b repetitions~n", [MiB, Repetitions]),
    io:format("~n|  | get alone p50 / p99, us | get beside the scan p50 / p99, us | scan, MB/s | slow consumer, BEAM | slow consumer, program |~n|---|---|---|---|---|---|~n"),
    with(#{}, filename:join(Data, "store"), "port", Repetitions),
    mailbox(#{}, filename:join(Data, "store"), "port", Repetitions),
    ok = application:stop(scanode),
    {ok, _} = application:ensure_all_started(scanode),
    Node = list_to_atom("store_" ++ os:getpid() ++ "@127.0.0.1"),
    %% A signal ends it, not the end of its standard input.
    _ = transport:start(Program, ["serve", "--name", atom_to_list(Node), "--data", Data, "--cookie-file", CookieFile], filename:join(Dir, "errors")),
    transport:await(fun() -> net_kernel:hidden_connect_node(Node) =:= true end),
    {ok, #{os_pid := OsPid}} = scanode:info(#{node => Node}),
    with(#{node => Node}, "store", "node", Repetitions),
    mailbox(#{node => Node}, "store", "node", Repetitions),
    _ = os:cmd("kill -TERM " ++ integer_to_list(OsPid)),
    transport:await(fun() -> net_adm:ping(Node) =:= pang end),
    Lines = lists:reverse(get(mailbox)),
    io:format("~n## A fold of ~b rows beside ~b messages of others~n~n|  | none, ms | arriving | present |~n|---|---|---|---|~n~s", [?FOLD_ROWS, ?OTHERS, Lines]).

load(Store, Rows) ->
    {ok, Db} = scanode:open(Store, #{}),
    lists:foreach(
        fun(First) ->
            Ops = [{put, <<I:64>>, rand:bytes(?VALUE)} || I <- lists:seq(First, min(Rows, First + 999))],
            ok = scanode:write(Db, Ops, #{})
        end,
        lists:seq(1, Rows, 1000)
    ),
    ok = scanode:close(Db).

with(Options, Store, Name, Repetitions) ->
    {ok, Db} = scanode:open(Store, Options),
    Runs = [beside(Db) || _ <- lists:seq(1, Repetitions)],
    Column = fun(N) -> [element(N, R) || R <- Runs] end,
    {Beam, Program} = slow(Db, Options),
    io:format("| ~s | ~s / ~s | ~s / ~s | ~s | ~b KiB | ~b KiB |~n", [
        Name | [range(Column(N)) || N <- [1, 2, 3, 4, 5]] ++ [Beam div 1024, Program div 1024]
    ]),
    ok = scanode:close(Db).

beside(Db) ->
    {P50, P99} = gets(Db, fun(N) -> N > ?CALLS end),
    Self = self(),
    Pid = spawn_link(fun() ->
        Began = erlang:monotonic_time(microsecond),
        Bytes = scanode:fold(Db, fun({_, Value}, N) -> N + 8 + byte_size(Value) end, 0, #{}),
        Self ! {scanned, self(), Bytes / (erlang:monotonic_time(microsecond) - Began)}
    end),
    {BusyP50, BusyP99} = gets(Db, fun(_) -> scanned(Pid) end),
    receive
        {scanned, Pid, Rate} -> {P50, P99, BusyP50, BusyP99, Rate}
    end.

scanned(Pid) -> not is_process_alive(Pid).

gets(Db, Enough) -> gets(Db, Enough, 1, []).

gets(Db, Enough, N, Times) ->
    case Enough(N) of
        true ->
            Sorted = lists:sort(Times),
            Count = length(Sorted),
            {lists:nth(max(1, Count div 2), Sorted), lists:nth(max(1, Count * 99 div 100), Sorted)};
        false ->
            Began = erlang:monotonic_time(nanosecond),
            {ok, _} = scanode:get(Db, <<(1 + N rem 1000):64>>),
            gets(Db, Enough, N + 1, [(erlang:monotonic_time(nanosecond) - Began) / 1000 | Times])
    end.

%% What a fold that takes no further row holds: in this BEAM, and resident in the program.
slow(Db, Options) ->
    {ok, #{os_pid := OsPid}} = scanode:info(Options),
    Self = self(),
    erlang:garbage_collect(),
    BeamBefore = memory(),
    Before = resident(OsPid),
    Pid = spawn(fun() -> scanode:fold(Db, fun(_, N) -> wait(Self, N) end, 0, #{}) end),
    receive
        {waiting, Pid} -> ok
    end,
    %% Whatever more is on its way arrives.
    receive
    after 2000 -> ok
    end,
    Held = {memory() - BeamBefore, resident(OsPid) - Before},
    exit(Pid, kill),
    Held.

wait(Self, 0) ->
    Self ! {waiting, self()},
    receive
        never -> 1
    end.

memory() -> erlang:memory(processes_used) + erlang:memory(binary).

resident(OsPid) ->
    {ok, Status} = file:read_file(["/proc/", integer_to_list(OsPid), "/status"]),
    {match, [KiB]} = re:run(Status, "VmRSS:\\s*([0-9]+)", [{capture, [1], list}]),
    list_to_integer(KiB) * 1024.

mailbox(Options, Store, Name, Repetitions) ->
    {ok, Db} = scanode:open(Store, Options),
    Fold = fun() ->
        ?FOLD_ROWS = scanode:fold(Db, fun(_, N) -> N + 1 end, 0, #{limit => ?FOLD_ROWS})
    end,
    _ = time(fun() -> ok end, Fold),
    Runs = [
        {
            time(fun() -> ok end, Fold),
            time(fun() -> Self = self(), spawn(fun() -> others(Self) end) end, Fold),
            time(fun() -> others(self()) end, Fold)
        }
     || _ <- lists:seq(1, Repetitions)
    ],
    [None, Arriving, Present] = [[element(N, R) || R <- Runs] || N <- [1, 2, 3]],
    Line = io_lib:format("| ~s | ~s | ~s ~.2fx | ~s ~.2fx |~n", [
        Name, range(None), range(Arriving), median(Arriving) / median(None), range(Present), median(Present) / median(None)
    ]),
    _ = put(mailbox, [Line | case get(mailbox) of undefined -> []; Lines -> Lines end]),
    ok = scanode:close(Db).

others(Pid) -> [Pid ! {other, I} || I <- lists:seq(1, ?OTHERS)].

%% Milliseconds of F in a process of its own.
time(Prepare, F) ->
    Self = self(),
    Pid = spawn_link(fun() ->
        _ = Prepare(),
        Began = erlang:monotonic_time(microsecond),
        _ = F(),
        Self ! {self(), (erlang:monotonic_time(microsecond) - Began) / 1000}
    end),
    receive
        {Pid, Time} -> Time
    end.

median(Values) -> lists:nth((length(Values) + 1) div 2, lists:sort(Values)).

range(Values) ->
    io_lib:format("~s (~s-~s)", [number(median(Values)), number(lists:min(Values)), number(lists:max(Values))]).

number(X) when X >= 100 -> integer_to_list(round(X));
number(X) -> float_to_list(float(X), [{decimals, 1}]).
