%% Every supported release of Erlang/OTP against the real program, over real links: a matrix of releases and cases, one line each on the terminal.
%%
%% SCANODE_OTP names the releases, by default this BEAM's own alone; the others are installed by scripts/otp. SCANODE_INTEROP=full makes a hundred reconnects
%% each way instead of five. What a BEAM does is in interop_case and interop_load, which its release compiles.
-module(interop_SUITE).

-include_lib("common_test/include/ct.hrl").

-export([all/0, groups/0, suite/0]).
-export([init_per_suite/1, end_per_suite/1, init_per_group/2, end_per_group/2, init_per_testcase/2, end_per_testcase/2]).
-export([ping/1, send/1, call/1, cast/1, carry/1, monitors/1, links/1, exits/1, spawns/1, wrong_cookie/1, client/1, records/1]).
-export([node_killed/1, node_terminated/1, beam_killed/1, beam_ends/1, reconnect_to_killed_node/1, reconnect_of_killed_beam/1]).
-export([global_and_pg/1, short_names/1, hidden_beam/1, without_epmd/1, without_epmd_listener/1, ticktime_8/1, ticktime_60/1, together/1]).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [{group, group_of(R)} || R <- releases()] ++ [together].

groups() ->
    [{group_of(R), [], cases(list_to_integer(R))} || R <- releases()].

group_of(Release) ->
    list_to_atom("otp_" ++ Release).

cases(Release) ->
    [ping, send, call, cast, carry, monitors, links, exits, spawns, wrong_cookie, client] ++
        [records || Release >= 29] ++
        [node_killed, node_terminated, beam_killed, beam_ends, reconnect_to_killed_node, reconnect_of_killed_beam] ++
        [global_and_pg, short_names, hidden_beam, without_epmd, without_epmd_listener, ticktime_8, ticktime_60].

releases() ->
    case os:getenv("SCANODE_OTP", "") of
        "" -> [interop_beam:own_release()];
        Named -> string:lexemes(Named, " ,")
    end.

reconnects() ->
    case os:getenv("SCANODE_INTEROP") of
        "full" -> 100;
        _ -> 5
    end.

init_per_suite(Config0) ->
    _ = test_program:executable(),
    Started = erlang:monotonic_time(second),
    Prepared = maps:from_list(at_once(fun(R) -> {R, prepared(interop_beam:prepare(R))} end, releases())),
    Epmd = interop_node:start_epmd(test_program:directory(Config0, "epmd-log")),
    Config = [{epmd, Epmd}, {started, Started} | Config0],
    %% What waits for time does so beside the cases of all releases; they ask for the outcome at last.
    Ticks = maps:from_list([
        {{R, Seconds}, spawn(fun() -> tell(ticktime(Seconds, Ms, maps:get(R, Prepared), Config)) end)}
     || R <- releases(), {Seconds, Ms} <- [{8, 25000}, {60, 80000}]
    ]),
    [{results, results()}, {prepared, Prepared}, {ticks, Ticks} | Config].

prepared({ok, Release}) -> Release;
prepared({error, Text}) -> ct:fail("~ts", [Text]).

%% Applies Fun to all of List at the same time.
at_once(Fun, List) ->
    Runs = [spawn_monitor(fun() -> exit({result, Fun(Element)}) end) || Element <- List],
    [
        receive
            {'DOWN', Monitor, process, Pid, {result, Result}} -> Result;
            {'DOWN', Monitor, process, Pid, Reason} -> error(Reason)
        end
     || {Pid, Monitor} <- Runs
    ].

%% A process that waits to be asked for Result.
tell(Result) ->
    receive
        {From, result} -> From ! {self(), Result}
    end.

%% A process that collects what end_per_testcase finds.
results() ->
    spawn(fun() -> results([]) end).

results(Results) ->
    receive
        {result, Release, Case, Result} -> results([{Release, Case, Result} | Results]);
        {From, results} -> From ! {self(), lists:sort(Results)}
    end.

end_per_suite(Config) ->
    Collector = ?config(results, Config),
    Collector ! {self(), results},
    Results = receive {Collector, R} -> R end,
    Failed = [{Release, Case} || {Release, Case, failed} <- Results],
    io:format(user, "~ninterop: ~b passed, ~b failed: OTP ~ts, ~b reconnects each way, ~b s~n", [
        length(Results) - length(Failed),
        length(Failed),
        lists:join(", ", releases()),
        reconnects(),
        erlang:monotonic_time(second) - ?config(started, Config)
    ]),
    _ = [io:format(user, "interop: failed: OTP ~ts ~ts~n", [Release, Case]) || {Release, Case} <- Failed],
    _ = [interop_beam:clean(Release) || Release <- maps:values(?config(prepared, Config))],
    interop_node:stop_epmd(?config(epmd, Config)).

init_per_group(Group, Config) ->
    "otp_" ++ Release = atom_to_list(Group),
    Prepared = maps:get(Release, ?config(prepared, Config)),
    [{release, Prepared}, {beam, start_beam(Prepared, Config, #{})} | Config].

end_per_group(_Group, Config) ->
    interop_beam:stop(?config(beam, Config)).

init_per_testcase(Case, Config) ->
    case lists:member(Case, [together, ticktime_8, ticktime_60, short_names, hidden_beam, without_epmd, without_epmd_listener]) of
        true -> Config;
        false -> [{scanode, start_node(Config, #{})} | Config]
    end.

end_per_testcase(Case, Config) ->
    Release =
        case ?config(release, Config) of
            undefined -> "all";
            #{release := R} -> R
        end,
    Result =
        case ?config(tc_status, Config) of
            ok -> ok;
            _ -> failed
        end,
    ?config(results, Config) ! {result, Release, Case, Result},
    io:format(user, "interop: OTP ~ts  ~-26ts ~ts~n", [Release, Case, Result]),
    case ?config(scanode, Config) of
        undefined -> ok;
        Node -> interop_node:stop(current(Node))
    end.

start_node(Config, Options) ->
    #{port := Epmd} = ?config(epmd, Config),
    interop_node:start(Config, maps:merge(#{epmd => Epmd}, Options)).

start_beam(Config, Options) ->
    start_beam(?config(release, Config), Config, Options).

start_beam(Release, Config, Options) ->
    #{port := Epmd} = ?config(epmd, Config),
    Defaults = #{
        name => interop_node:name("beam", "127.0.0.1"),
        cookie => interop_node:cookie(),
        epmd => Epmd,
        log => test_program:directory(Config, "beam-log")
    },
    interop_beam:start(Release, maps:merge(Defaults, Options)).

%% A node that was started anew during a case has another process; its case keeps that one here.
current(#{node := Node} = Started) ->
    case get({started, Node}) of
        undefined -> Started;
        Newer -> Newer
    end.

restart(#{node := Node} = Ended) ->
    Started = interop_node:again(Ended),
    _ = put({started, Node}, Started),
    Started.

%% Waits until Beam reaches the node.
reach(Beam, Node) ->
    ok = test_program:await(fun() -> interop_beam:call(Beam, interop_case, is_up, [Node]) end).

play(Function, Config) ->
    play(interop_case, Function, [], Config).

play(Module, Function, Args, Config) ->
    Beam = ?config(beam, Config),
    #{node := Node} = ?config(scanode, Config),
    ok = reach(Beam, Node),
    interop_beam:call(Beam, Module, Function, [Node | Args]).

ping(Config) -> ok = play(ping, Config).
send(Config) -> ok = play(send, Config).
call(Config) -> ok = play(call, Config).
cast(Config) -> ok = play(cast, Config).
carry(Config) -> ok = play(carry, Config).
monitors(Config) -> ok = play(monitors, Config).
links(Config) -> ok = play(links, Config).
exits(Config) -> ok = play(exits, Config).
spawns(Config) -> ok = play(spawns, Config).
wrong_cookie(Config) -> ok = play(wrong_cookie, Config).
client(Config) -> ok = play(interop_load, client, ["client"], Config).
records(Config) -> ok = play(interop_case, records, [], Config).

%% kill -9: the connection ends without a word.
node_killed(Config) ->
    #{os_pid := OsPid} = ?config(scanode, Config),
    #{pid := noconnection, name := noconnection, link := noconnection} = play(interop_case, end_of_node, ["KILL", OsPid], Config).

%% SIGTERM: it says that its processes are gone before it goes.
node_terminated(Config) ->
    #{os_pid := OsPid} = ?config(scanode, Config),
    #{pid := shutdown, name := shutdown, link := shutdown} = play(interop_case, end_of_node, ["TERM", OsPid], Config).

beam_killed(Config) ->
    beam_goes(fun interop_beam:kill/1, Config).

beam_ends(Config) ->
    beam_goes(fun interop_beam:stop/1, Config).

%% What a BEAM had open is closed with it; other BEAMs notice nothing else.
beam_goes(End, Config) ->
    #{node := Node} = ?config(scanode, Config),
    Other = start_beam(Config, #{}),
    ok = reach(Other, Node),
    Id = interop_beam:call(Other, interop_case, open_and_stay, [Node, <<"goes">>]),
    ok = play(ping, Config),
    Beam = ?config(beam, Config),
    2 = interop_beam:call(Beam, interop_case, links_of, [Node]),
    {error, {locked, _}} = interop_beam:call(Beam, gen_server, call, [{scanode, Node}, {open, <<"goes">>, #{}}]),
    ok = End(Other),
    ok = test_program:await(fun() -> interop_beam:call(Beam, interop_case, links_of, [Node]) =:= 1 end),
    {error, closed} = interop_beam:call(Beam, gen_server, call, [{scanode, Node}, {get, Id, <<"k">>}]),
    {ok, _} = interop_beam:call(Beam, gen_server, call, [{scanode, Node}, {open, <<"goes">>, #{}}]).

reconnect_to_killed_node(Config) ->
    Beam = ?config(beam, Config),
    Started = ?config(scanode, Config),
    #{node := Node} = Started,
    ok = reach(Beam, Node),
    lists:foldl(
        fun(_, Running) ->
            ok = interop_node:kill(Running),
            Again = restart(Running),
            ok = reach(Beam, Node),
            ok = interop_beam:call(Beam, interop_case, kept, [Node]),
            Again
        end,
        Started,
        lists:seq(1, reconnects())
    ).

%% The BEAM comes back under its name, as another incarnation.
reconnect_of_killed_beam(Config) ->
    #{node := Node} = ?config(scanode, Config),
    ok = reach(?config(beam, Config), Node),
    Name = interop_node:name("again", "127.0.0.1"),
    lists:foreach(
        fun(_) ->
            Beam = start_beam(Config, #{name => Name}),
            ok = reach(Beam, Node),
            _ = interop_beam:call(Beam, interop_case, open_and_stay, [Node, <<"again">>]),
            ok = interop_beam:kill(Beam)
        end,
        lists:seq(1, reconnects())
    ),
    ok = test_program:await(fun() -> interop_beam:call(?config(beam, Config), interop_case, links_of, [Node]) =:= 1 end).

global_and_pg(Config) ->
    #{node := Node} = ?config(scanode, Config),
    Beams = [One, Two] = [?config(beam, Config), start_beam(Config, #{})],
    [NodeOne, NodeTwo] = [interop_beam:node_of(B) || B <- Beams],
    _ = [ok = reach(B, Node) || B <- Beams],
    _ = interop_beam:call(One, interop_case, join, [Node, NodeTwo]),
    _ = interop_beam:call(Two, interop_case, join, [Node, NodeOne]),
    ok = interop_beam:call(One, interop_case, see, [Node, NodeTwo]),
    ok = interop_beam:call(Two, interop_case, see, [Node, NodeOne]),
    ok = interop_beam:stop(Two),
    ok = interop_beam:call(One, interop_case, kept, [Node]).

short_names(Config) ->
    with(
        start_node(Config, #{name => interop_node:name("scanode", "localhost")}),
        start_beam(Config, #{name => interop_node:name("beam", "localhost"), names => shortnames}),
        [{interop_case, ping, []}, {interop_case, call, []}, {interop_case, monitors, []}, {interop_load, client, ["short"]}]
    ).

%% The node is in no epmd and the BEAM asks none: the port is agreed. OTP 23 then opens with the handshake of old.
without_epmd(Config) ->
    without_epmd(Config, "").

%% Nor does the BEAM listen.
without_epmd_listener(Config) ->
    without_epmd(Config, " -dist_listen false").

%% A BEAM that hides, too.
hidden_beam(Config) ->
    with(start_node(Config, #{}), start_beam(Config, #{args => "-hidden"}), [{interop_case, ping, []}, {interop_case, call, []}, {interop_case, spawns, []}]).

without_epmd(Config, Args) ->
    %% The BEAM takes the agreed port for its own, too, on another address.
    Port = interop_node:free_port({127, 0, 0, 2}),
    with(
        start_node(Config, #{name => interop_node:name("scanode", "127.0.0.2"), epmd => none, listen => "127.0.0.2:" ++ integer_to_list(Port)}),
        start_beam(Config, #{args => lists:concat(["-erl_epmd_port ", Port, " -kernel inet_dist_use_interface '{127,0,0,1}'", Args])}),
        [{interop_case, ping, []}, {interop_case, call, []}, {interop_load, client, ["without"]}]
    ).

with(#{node := Node} = Started, Beam, Calls) ->
    try
        ok = reach(Beam, Node),
        [ok = interop_beam:call(Beam, M, F, [Node | Args]) || {M, F, Args} <- Calls]
    after
        ok = interop_beam:stop(Beam),
        ok = interop_node:stop(Started)
    end.

ticktime_8(Config) -> outcome_of_ticktime(8, Config).
ticktime_60(Config) -> outcome_of_ticktime(60, Config).

outcome_of_ticktime(Seconds, Config) ->
    #{release := Release} = ?config(release, Config),
    Run = maps:get({Release, Seconds}, ?config(ticks, Config)),
    Monitor = monitor(process, Run),
    Run ! {self(), result},
    receive
        {Run, Result} -> ok = Result;
        {'DOWN', Monitor, process, Run, Reason} -> ct:fail("~0p", [Reason])
    end.

%% One BEAM holds two links for longer than it takes to give up a silent one: one that nobody uses, one that is busy.
ticktime(Seconds, Ms, Release, Config) ->
    Nodes = [start_node(Config, #{nice => true}) || _ <- [idle, busy]],
    Beam = start_beam(Release, Config, #{nice => true, args => lists:concat(["-kernel net_ticktime ", Seconds])}),
    try
        [ok, ok] = at_once(
            fun({#{node := Node}, Load}) ->
                ok = reach(Beam, Node),
                interop_beam:call(Beam, interop_load, tick, [Node, Seconds, Load, Ms], infinity)
            end,
            lists:zip(Nodes, [idle, busy])
        ),
        ok
    after
        ok = interop_beam:stop(Beam),
        _ = [ok = interop_node:stop(N) || N <- Nodes]
    end.

%% Two BEAMs of every release use one node at the same time.
together(Config) ->
    #{node := Node} = Started = start_node(Config, #{}),
    Beams = at_once(fun(Release) -> start_beam(Release, Config, #{}) end, [R || R <- maps:values(?config(prepared, Config)), _ <- [first, second]]),
    try
        Folds = at_once(
            fun(Beam) ->
                ok = reach(Beam, Node),
                Dir = iolist_to_binary(["together_", atom_to_binary(interop_beam:node_of(Beam), utf8)]),
                interop_beam:call(Beam, interop_load, shared, [Node, Dir, 500])
            end,
            Beams
        ),
        ct:log("folds: ~w", [Folds]),
        Links = interop_beam:call(hd(Beams), interop_case, links_of, [Node]),
        Links = length(Beams)
    after
        _ = [ok = interop_beam:stop(Beam) || Beam <- Beams],
        ok = interop_node:stop(Started)
    end.
