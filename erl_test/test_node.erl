%% A `scanode serve' for tests, and a distributed BEAM to talk to it.
-module(test_node).

-export([start/1, stop/1, distribute/0]).

-define(HOST, "127.0.0.1").
-define(COOKIE, cookie_of_the_scanode_tests).

%% Makes this BEAM a node, where it is none.
distribute() ->
    case node() of
        nonode@nohost ->
            %% erl -name would have started it.
            _ = os:cmd("epmd -daemon"),
            Name = list_to_atom("scanode_test_" ++ os:getpid() ++ "@" ++ ?HOST),
            %% An epmd that has just been started may not listen yet.
            ok = test_program:await(fun() -> element(1, net_kernel:start([Name, longnames])) =:= ok end),
            true = erlang:set_cookie(node(), ?COOKIE),
            ok;
        _ ->
            ok
    end.

%% Starts a node whose stores are below a fresh directory and waits until it can be reached. Its log goes to the file named in the result.
start(Config) ->
    ok = distribute(),
    Data = test_program:directory(Config, "data"),
    CookieFile = test_program:directory(Config, "cookie"),
    Log = test_program:directory(Config, "log"),
    ok = file:write_file(CookieFile, atom_to_list(erlang:get_cookie())),
    ok = file:change_mode(CookieFile, 8#600),
    [_, Host] = string:split(atom_to_list(node()), "@"),
    Name = lists:concat(["scanode_", os:getpid(), "_", erlang:unique_integer([positive]), "@", Host]),
    %% The shell replaces itself by the program, so the port's process id is the program's.
    Command = ["exec '", test_program:executable(), "' serve --name ", Name, " --data '", Data, "' --cookie-file '", CookieFile, "' 2> '", Log, "'"],
    Port = open_port({spawn_executable, "/bin/sh"}, [{args, ["-c", lists:flatten(Command)]}, exit_status]),
    {os_pid, OsPid} = erlang:port_info(Port, os_pid),
    Node = list_to_atom(Name),
    ok = test_program:await(fun() -> net_kernel:hidden_connect_node(Node) end),
    #{node => Node, port => Port, os_pid => OsPid, log => Log, data => Data}.

%% Asks it to end; returns when it has.
stop(#{os_pid := OsPid}) ->
    case test_program:is_alive(OsPid) of
        true -> ok = test_program:kill("TERM", OsPid);
        false -> ok
    end,
    ok = test_program:await_exit(OsPid).
