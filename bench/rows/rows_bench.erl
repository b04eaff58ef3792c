%% The benchmark of `make bench-rows': queries over tables in ttb, in MessagePack, and in both, by the program and by an Erlang client in the same run, over
%% both transports. Every repetition measures each query once, the program and the client in turns, each in a process of its own.
-module(rows_bench).

-export([main/0]).

-define(TABLES, [ttb, msgpack, mixed]).
-define(LIMITS, [N * M || M <- [1, 10, 100, 1000, 10000], N <- [1, 2, 5]] ++ [100000]).

main() ->
    Repetitions = list_to_integer(os:getenv("REPETITIONS", "5")),
    Sizes = [list_to_integer(S) || S <- string:lexemes(os:getenv("ROWS", "100000 1000000"), " ")],
    Dir = os:getenv("BENCH_DIR"),
    true = is_list(Dir),
    machine(Repetitions),
    {ok, _} = application:ensure_all_started(scanode),
    Data = filename:join(Dir, "data"),
    [ok = table:load(filename:join(Data, table:name(T, Size)), T, Size) || Size <- Sizes, T <- ?TABLES],
    transport("port", Data, #{}, Sizes, Repetitions),
    ok = application:stop(scanode),
    {ok, _} = application:ensure_all_started(scanode),
    transport("node", none, #{node => serve(Dir, Data)}, Sizes, Repetitions),
    halt().

machine(Repetitions) ->
    {ok, Info} = file:read_file("/proc/meminfo"),
    {match, [KiB]} = re:run(Info, "MemTotal: *([0-9]+)", [{capture, [1], list}]),
    io:format("~b cores, ~b GiB of memory, OTP ~s, ~s, load ~s at the start. Medians of ~b repetitions (least-greatest), milliseconds.~n", [
        erlang:system_info(logical_processors_available), list_to_integer(KiB) div 1048576, erlang:system_info(otp_release), os:getenv("GO_VERSION", "Go"), load(),
        Repetitions
    ]).

load() ->
    {ok, Load} = file:read_file("/proc/loadavg"),
    hd(string:split(Load, " ")).

%% The program as a node. Only a signal ends it: whoever started this benchmark sends it, to the process in the file pid.
serve(Dir, Data) ->
    _ = os:cmd("epmd -daemon"),
    At = "_" ++ os:getpid() ++ "@127.0.0.1",
    {ok, _} = net_kernel:start([list_to_atom("rows" ++ At), longnames]),
    Cookie = binary_to_list(binary:encode_hex(crypto:strong_rand_bytes(16))),
    CookieFile = filename:join(Dir, "cookie"),
    ok = file:write_file(CookieFile, Cookie),
    ok = file:change_mode(CookieFile, 8#600),
    true = erlang:set_cookie(node(), list_to_atom(Cookie)),
    Node = list_to_atom("store" ++ At),
    Program = transport:start(
        os:getenv("SCANODE_EXECUTABLE"), ["serve", "--name", atom_to_list(Node), "--data", Data, "--cookie-file", CookieFile], filename:join(Dir, "errors")
    ),
    {os_pid, OsPid} = erlang:port_info(Program, os_pid),
    ok = file:write_file(filename:join(Dir, "pid"), integer_to_list(OsPid)),
    transport:await(fun() -> net_kernel:hidden_connect_node(Node) =:= true end),
    Node.

transport(Name, Data, Options, Sizes, Repetitions) ->
    lists:foreach(
        fun(Size) ->
            Tables = [{T, open(Data, T, Size, Options)} || T <- ?TABLES],
            {ok, #{os_pid := OsPid}} = scanode:info(Options),
            ok = queries(Name, Size, Tables, OsPid, Repetitions),
            ok = curve(Name, Size, Tables, OsPid, Repetitions),
            [ok = scanode:close(Db) || {_, Db} <- Tables]
        end,
        Sizes
    ).

%% A node is told where below its directory.
open(none, Table, Size, Options) ->
    {ok, Db} = scanode:open(table:name(Table, Size), Options),
    Db;
open(Data, Table, Size, Options) ->
    {ok, Db} = scanode:open(filename:join(Data, table:name(Table, Size)), Options),
    Db.

%% Queries

queries(Name, Size, Tables, OsPid, Repetitions) ->
    Queries = [{Q, Table, Db, sides(Name, Size, Table, Q)} || Q <- of_size(Size), {Table, Db} <- Tables],
    ok = agree(Queries, Tables, Size),
    Runs = [
        {{Query, Table, Side}, once(Run, Db, OsPid)}
     || _ <- lists:seq(1, Repetitions), {#{name := Query}, Table, Db, Sides} <- Queries, {Side, Run} <- Sides
    ],
    io:format("~n## ~b rows, ~s, load ~s~n~n", [Size, Name, load()]),
    io:format(
        "| query | table | scanode | CPU program + BEAM | Erlang client | CPU program + BEAM | client / scanode, time | CPU | original, recorded elsewhere |~n"
        "|---|---|---|---|---|---|---|---|---|~n"
    ),
    [line(Q, Table, Runs) || {Q, Table, _, _} <- Queries],
    ok.

of_size(Size) when Size < 1000000 -> query:hundred_thousand();
of_size(_) -> query:million().

sides(_, _, _, #{product := Product, client := none}) -> [{product, Product}];
sides(Name, Size, Table, #{product := Product}) when Size >= 1000000, {Name, Table} =/= {"port", ttb} -> [{product, Product}];
sides(_, _, _, #{product := Product, client := Client}) -> [{product, Product}, {client, Client}].

line(#{name := Name, original := Original}, Table, Runs) ->
    Of = fun(Side) -> lists:unzip3([R || {Key, R} <- Runs, Key =:= {Name, Table, Side}]) end,
    {Times, Program, Beam} = Of(product),
    Compared =
        case Of(client) of
            {[], [], []} ->
                ["", "", "", ""];
            {Slow, SlowProgram, SlowBeam} ->
                Ratio = fun(A, B) -> io_lib:format("~.1fx", [A / B]) end,
                Cpu = fun(P, B) -> median(P) + median(B) end,
                [range(Slow), both(SlowProgram, SlowBeam), Ratio(median(Slow), median(Times)), Ratio(Cpu(SlowProgram, SlowBeam), Cpu(Program, Beam))]
        end,
    Recorded =
        case Original of
            #{Table := Ms} -> integer_to_list(Ms);
            #{} -> ""
        end,
    io:format("| ~s |~n", [lists:join(" | ", [Name, atom_to_list(Table), range(Times), both(Program, Beam)] ++ Compared ++ [Recorded])]).

both(Program, Beam) -> [number(median(Program)), " + ", number(median(Beam))].

%% The program and the client give the same, up to the last digits of a mean. This warms the caches too.
agree(Queries, Tables, Size) ->
    [
        case [result(Run, Db) || {_, Run} <- Sides] of
            [_] -> ok;
            [Same, Same] -> ok
        end
     || {_, _, Db, Sides} <- Queries
    ],
    [Size = scanode:fold(Db, fun(_, N) -> N + 1 end, 0, #{rows => keys}) || {_, Db} <- Tables],
    ok.

result(Run, Db) ->
    in_process(fun() ->
        case Run(Db) of
            Rows when is_list(Rows) -> {length(Rows), erlang:phash2([rounded(R) || R <- Rows])};
            Count -> Count
        end
    end).

rounded([G, C, Mean]) when is_float(Mean) -> [G, C, round(Mean * 1000000)];
rounded(Row) -> Row.

%% Latency against rows

curve(Name, 100000, Tables, OsPid, Repetitions) ->
    {ok, File} = file:open(filename:join(os:getenv("BENCH_DIR"), "curve.tsv"), [append]),
    Points = [{Limit, T, Db, Side, Run} || Limit <- ?LIMITS, {T, Db} <- Tables, T =/= mixed, {Side, Run} <- sides(Name, 100000, T, query:limited(Limit))],
    Runs = [
        {{Limit, T, Side}, element(1, once(Run, Db, OsPid))}
     || Repetition <- lists:seq(1, 4 * Repetitions), {Limit, T, Db, Side, Run} <- Points, Limit =< 1000 orelse Repetition =< Repetitions
    ],
    [
        begin
            Times = [Time || {Key, Time} <- Runs, Key =:= {Limit, T, Side}],
            ok = io:format(File, "~s\t~s ~s\t~b\t~f\t~f\t~f~n", [T, side(Side), Name, Limit, median(Times), lists:min(Times), lists:max(Times)])
        end
     || {Limit, T, _, Side, _} <- Points
    ],
    ok = file:close(File);
curve(_, _, _, _, _) ->
    ok.

side(product) -> "scanode,";
side(client) -> "Erlang client,".

%% Measuring

%% Milliseconds, and those that the program and this BEAM were on a processor meanwhile.
once(Run, Db, OsPid) ->
    in_process(fun() ->
        {Program, Beam} = {on_processor(OsPid), on_processor(os:getpid())},
        Began = erlang:monotonic_time(nanosecond),
        _ = Run(Db),
        Time = erlang:monotonic_time(nanosecond) - Began,
        {Time / 1.0e6, (on_processor(OsPid) - Program) / 1.0e6, (on_processor(os:getpid()) - Beam) / 1.0e6}
    end).

in_process(F) ->
    Self = self(),
    {Pid, Monitor} = spawn_monitor(fun() -> Self ! {self(), F()} end),
    receive
        {Pid, Result} ->
            receive
                {'DOWN', Monitor, _, _, _} -> Result
            end;
        {'DOWN', Monitor, _, _, Why} ->
            error(Why)
    end.

%% The first number of a task's schedstat is its nanoseconds.
on_processor(OsPid) ->
    lists:sum([
        case file:read_file(Task) of
            {ok, Text} -> binary_to_integer(hd(binary:split(Text, <<" ">>)));
            {error, _} -> 0
        end
     || Task <- filelib:wildcard(lists:concat(["/proc/", OsPid, "/task/*/schedstat"]))
    ]).

median(Values) -> lists:nth((length(Values) + 1) div 2, lists:sort(Values)).

range(Values) ->
    io_lib:format("~s (~s-~s)", [number(median(Values)), number(lists:min(Values)), number(lists:max(Values))]).

number(X) when X >= 100 -> integer_to_list(round(X));
number(X) -> float_to_list(float(X), [{decimals, 1}]).
