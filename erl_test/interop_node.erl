%% The program as a node for BEAMs that are not this one: an epmd of the tests' own, and nodes with names, cookies and addresses as a case wants them.
-module(interop_node).

-export([start_epmd/1, stop_epmd/1, free_port/1, cookie/0, name/2, start/2, again/1, stop/1, kill/1]).

%% The cookie of all BEAMs and nodes of the interop suite.
cookie() ->
    "the-cookie-of-the-interop-suite".

%% An epmd in the foreground; returns when it answers.
start_epmd(Log) ->
    Port = free_port({127, 0, 0, 1}),
    Program = start_process(["exec epmd -port ", integer_to_list(Port), " -address 127.0.0.1 > '", Log, "' 2>&1"]),
    ok = test_program:await(fun() -> answers(Port) end),
    Program#{port => Port}.

stop_epmd(#{os_pid := OsPid}) ->
    ok = test_program:kill("TERM", OsPid),
    ok = test_program:await_exit(OsPid).

answers(Port) ->
    case gen_tcp:connect({127, 0, 0, 1}, Port, []) of
        {ok, Socket} -> gen_tcp:close(Socket) =:= ok;
        {error, _} -> false
    end.

free_port(Address) ->
    {ok, Listener} = gen_tcp:listen(0, [{ip, Address}]),
    {ok, Port} = inet:port(Listener),
    ok = gen_tcp:close(Listener),
    Port.

name(Prefix, Host) ->
    lists:concat([Prefix, "_", os:getpid(), "_", erlang:unique_integer([positive]), "@", Host]).

%% Starts a node. Options: name, the full name; epmd => port | none; listen => address; nice => true for less than its share of the processor. Does not
%% wait until it can be reached: whoever uses it does.
start(Config, Options) ->
    Name = maps:get(name, Options, name("scanode", "127.0.0.1")),
    CookieFile = test_program:directory(Config, "cookie"),
    ok = file:write_file(CookieFile, cookie()),
    ok = file:change_mode(CookieFile, 8#400),
    again(Options#{
        name => Name,
        node => list_to_atom(Name),
        cookie_file => CookieFile,
        data => test_program:directory(Config, "data"),
        log => test_program:directory(Config, "log")
    }).

%% Starts a node that has ended anew, with the name, the stores and the log it had.
again(#{name := Name, cookie_file := CookieFile, data := Data, log := Log} = Node) ->
    Epmd =
        case maps:get(epmd, Node) of
            none -> "none";
            Port -> "127.0.0.1:" ++ integer_to_list(Port)
        end,
    Nice =
        case maps:get(nice, Node, false) of
            true -> "nice -n 10 ";
            false -> ""
        end,
    Program = start_process([
        "exec ", Nice, "'", test_program:executable(), "' serve --name ", Name, " --epmd ", Epmd, " --listen ", maps:get(listen, Node, "127.0.0.1:0"),
        " --data '", Data, "' --cookie-file '", CookieFile, "' 2>> '", Log, "'"
    ]),
    maps:merge(Node, Program).

%% The shell replaces itself by the program, so its process id is the program's. The program does not end with the port.
start_process(Command) ->
    Port = open_port({spawn_executable, "/bin/sh"}, [{args, ["-c", lists:flatten(Command)]}, exit_status]),
    {os_pid, OsPid} = erlang:port_info(Port, os_pid),
    #{os_pid => OsPid}.

stop(#{os_pid := OsPid}) ->
    case test_program:is_alive(OsPid) of
        true -> ok = test_program:kill("TERM", OsPid);
        false -> ok
    end,
    ok = test_program:await_exit(OsPid).

kill(#{os_pid := OsPid}) ->
    ok = test_program:kill("KILL", OsPid),
    ok = test_program:await_exit(OsPid).
