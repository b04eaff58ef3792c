%% The benchmark of `make bench-node': peers of several kinds in the same run. Every repetition measures each peer once, so that what else the machine
%% does meets all of them; a table gives the median of the repetitions, their least and greatest, and the ratio to the first column.
-module(node_bench).

-export([main/0]).

-define(PINGS, 3000).
-define(SMALL, 100000).
-define(LISTS, 8000).
-define(BINARIES, 300).
-define(BATCHES, 800).

main() ->
    Repetitions = list_to_integer(os:getenv("REPETITIONS", "5")),
    Dir = os:getenv("BENCH_DIR"),
    true = is_list(Dir),
    machine(),
    _ = os:cmd("epmd -daemon"),
    {ok, _} = net_kernel:start([name("bench"), longnames]),
    Cookie = binary_to_list(binary:encode_hex(crypto:strong_rand_bytes(16))),
    CookieFile = filename:join(Dir, "cookie"),
    ok = file:write_file(CookieFile, Cookie),
    ok = file:change_mode(CookieFile, 8#600),
    true = erlang:set_cookie(node(), list_to_atom(Cookie)),
    Programs = start(Dir, CookieFile),
    peers(Repetitions, Dir),
    transports(Repetitions, Dir),
    lists:foreach(fun transport:stop/1, Programs),
    product_bench:run(Repetitions, Dir, CookieFile),
    halt().

name(Alive) -> list_to_atom(Alive ++ "_" ++ os:getpid() ++ "@127.0.0.1").

machine() ->
    {ok, Info} = file:read_file("/proc/meminfo"),
    {match, [KiB]} = re:run(Info, "MemTotal: *([0-9]+)", [{capture, [1], list}]),
    io:format("~b cores, ~b GiB of memory, OTP ~s, load ~s~n", [
        erlang:system_info(logical_processors_available), list_to_integer(KiB) div 1048576, erlang:system_info(otp_release), load()
    ]).

load() ->
    {ok, Load} = file:read_file("/proc/loadavg"),
    hd(string:split(Load, " ")).

start(Dir, CookieFile) ->
    Errors = filename:join(Dir, "errors"),
    Self = atom_to_list(node()),
    Erl = os:find_executable("erl"),
    Beam = [
        "-noinput", "-name", atom_to_list(name("beam")), "-pa", filename:dirname(code:which(?MODULE)), "-hidden", "-eval",
        "{ok,[C]}=file:consult(\"" ++ CookieFile ++ ".term\"),erlang:set_cookie(C),beam_echo:start()."
    ],
    ok = file:write_file(CookieFile ++ ".term", io_lib:format("~tp.~n", [erlang:get_cookie()])),
    ok = file:change_mode(CookieFile ++ ".term", 8#600),
    [CAlive, Host] = string:split(atom_to_list(name("c")), "@"),
    Programs = [
        transport:start(Erl, [case A of "-noinput" -> "-noshell"; _ -> A end || A <- Beam], Errors),
        transport:start(filename:join(Dir, "cecho"), [CAlive, Host, CookieFile, Self], Errors),
        transport:start(filename:join(Dir, "ergo"), [atom_to_list(name("ergo")), CookieFile], Errors),
        transport:start(filename:join(Dir, "echo"), ["node", atom_to_list(name("scanode")), CookieFile], Errors),
        transport:start(filename:join(Dir, "echo"), ["unix", filename:join(Dir, "socket")], Errors)
    ],
    [transport:await(fun() -> net_kernel:hidden_connect_node(name(N)) =:= true end) || N <- ["beam", "ergo", "scanode"]],
    transport:await(fun() -> lists:member(name("c"), nodes(hidden)) end),
    transport:await(fun() -> filelib:is_file(filename:join(Dir, "socket")) orelse exists(filename:join(Dir, "socket")) end),
    Programs.

exists(Path) -> element(1, file:read_link_info(Path)) =:= ok.

%% Peers

peers(Repetitions, Dir) ->
    Echo = filename:join(Dir, "echo"),
    Peers = [
        {"BEAM", fun() -> transport:node("BEAM", name("beam")) end},
        {"C node", fun() -> transport:node("C node", name("c")) end},
        {"ergo", fun() -> transport:node("ergo", name("ergo")) end},
        {"scanode node", fun() -> transport:node("scanode node", name("scanode")) end},
        {"scanode port", fun() -> transport:port("scanode port", Echo, []) end}
    ],
    Measures = [
        {"ping p50, us", fun ping/1, 1},
        {"ping p99, us", ping, 2},
        {"call p50, us", fun call/1, 1},
        {"call p99, us", call, 2},
        {"small messages in, 1000/s", fun small_in/1, 1},
        {"small messages out, 1000/s", fun small_out/1, 1},
        {"lists of 100 in, MB/s", fun lists_in/1, 1},
        {"1 MB binaries in, MB/s", fun binaries_in/1, 1}
    ],
    table("Peers", Repetitions, Peers, Measures).

%% The same frames over each, batches of 128 KiB that the consumer decodes.
transports(Repetitions, Dir) ->
    Echo = filename:join(Dir, "echo"),
    Port = fun(Name, Args) -> {Name, fun() -> transport:port(Name, Echo, Args) end} end,
    Transports = [
        Port("port", []),
        {"Unix socket", fun() -> transport:unix("Unix socket", filename:join(Dir, "socket")) end},
        {"node", fun() -> transport:node("node", name("scanode")) end},
        Port("port, 64 KiB pipe to the BEAM", ["-pipe-out", "65536"]),
        Port("port, 256 KiB pipe to the BEAM", ["-pipe-out", "262144"]),
        Port("port, 1 MiB pipe from the BEAM too", ["-pipe-in", "1048576"]),
        Port("port, buffer of 1 MiB", ["-buffer", "1048576"]),
        Port("port, poller", ["-poller"])
    ],
    Measures = [
        {"batches in, MB/s", fun batches_in/1, 1},
        {"call p50, us", fun call/1, 1},
        {"call p99, us", call, 2},
        {"small messages in, 1000/s", fun small_in/1, 1},
        {"small messages out, 1000/s", fun small_out/1, 1},
        {"1 MB binaries in, MB/s", fun binaries_in/1, 1}
    ],
    table("Transports", Repetitions, Transports, Measures).

%% A measure gives a tuple; a line that names another one's function shows another element of it.
table(Title, Repetitions, Peers, Measures) ->
    Functions = [{element(2, erlang:fun_info(F, name)), F} || {_, F, _} <- Measures, is_function(F)],
    Runs = [{{Peer, Name}, once(Make, F)} || _ <- lists:seq(1, Repetitions), {Name, F} <- Functions, {Peer, Make} <- Peers],
    io:format("~n## ~s, ~b repetitions, load ~s~n~n|  |~s~n|---|~s~n", [
        Title, Repetitions, load(), [[" ", P, " |"] || {P, _} <- Peers], ["---|" || _ <- Peers]
    ]),
    lists:foreach(
        fun({Line, F, Element}) ->
            Name =
                case is_function(F) of
                    true -> element(2, erlang:fun_info(F, name));
                    false -> F
                end,
            [{_, First} | _] = Columns = [{P, [element(Element, V) || {{Q, N}, V} <- Runs, Q =:= P, N =:= Name]} || {P, _} <- Peers],
            io:format("| ~s |~s~n", [Line, [cell(Values, median(First)) || {_, Values} <- Columns]])
        end,
        Measures
    ).

cell(Values, First) ->
    M = median(Values),
    io_lib:format(" ~s (~s-~s) ~.2fx |", [number(M), number(lists:min(Values)), number(lists:max(Values)), M / First]).

number(X) when X >= 100 -> integer_to_list(round(X));
number(X) -> float_to_list(float(X), [{decimals, 1}]).

median(Values) -> lists:nth((length(Values) + 1) div 2, lists:sort(Values)).

%% In a process of its own, so that nothing of one measure is left for the next.
once(Make, F) ->
    Self = self(),
    {Pid, Monitor} = spawn_opt(
        fun() ->
            Peer = Make(),
            Result = F(Peer),
            case Peer of
                #{close := Close} -> Close();
                _ -> ok
            end,
            Self ! {self(), Result}
        end,
        [monitor]
    ),
    receive
        {Pid, Result} ->
            receive
                {'DOWN', Monitor, _, _, _} -> Result
            end;
        {'DOWN', Monitor, _, _, Why} ->
            io:format("failed: ~0tP~n", [Why, 20]),
            {0.001, 0.001}
    end.

%% Measures

ping(#{send := Send, next := Next}) ->
    Round = fun() -> ok = Send({ping, self()}), pong = Next() end,
    latency(Round).

call(#{call := Call}) ->
    latency(Call).

latency(Round) ->
    _ = [Round() || _ <- lists:seq(1, 200)],
    Times = lists:sort([microseconds(Round) || _ <- lists:seq(1, ?PINGS)]),
    {lists:nth(?PINGS div 2, Times), lists:nth(?PINGS * 99 div 100, Times)}.

microseconds(F) ->
    Began = erlang:monotonic_time(nanosecond),
    _ = F(),
    (erlang:monotonic_time(nanosecond) - Began) / 1000.

small_in(#{send := Send, next := Next}) ->
    Time = microseconds(fun() -> ok = Send({small, self(), ?SMALL}), take(?SMALL, Next) end),
    {?SMALL * 1000 / Time}.

small_out(#{send := Send, next := Next}) ->
    Time = microseconds(fun() ->
        _ = [ok = Send({m, 1000}) || _ <- lists:seq(1, ?SMALL)],
        ok = Send({count, self()}),
        ?SMALL = Next()
    end),
    {?SMALL * 1000 / Time}.

lists_in(#{send := Send, next := Next}) ->
    Time = microseconds(fun() -> ok = Send({lists, self(), ?LISTS}), take(?LISTS, Next) end),
    {?LISTS * 100 * 116 / Time}.

binaries_in(#{send := Send, next := Next}) ->
    Time = microseconds(fun() -> ok = Send({binaries, self(), ?BINARIES}), take(?BINARIES, Next) end),
    {?BINARIES * 1000000 / Time}.

%% The rows are decoded and counted, as a fold does.
batches_in(#{send := Send, next := Next}) ->
    Time = microseconds(fun() ->
        ok = Send({batches, self(), ?BATCHES}),
        rows(?BATCHES, Next, 0)
    end),
    {?BATCHES * 131000 / Time}.

rows(0, _, Rows) ->
    Rows;
rows(N, Next, Rows) ->
    {batch, Bin} = Next(),
    rows(N - 1, Next, lists:foldl(fun(_, R) -> R + 1 end, Rows, binary_to_term(Bin, [safe]))).

take(0, _) ->
    ok;
take(N, Next) ->
    _ = Next(),
    take(N - 1, Next).
