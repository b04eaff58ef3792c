%% Nodes of other kinds use a store of a scanode node: a C node made with erl_interface, a Go node made with ergo, and Elixir. Each is a program of
%% its own below erl_test/peers that opens a store, writes rows, reads one, scans all and closes the store, and prints what it did.
-module(peers_SUITE).

-include_lib("common_test/include/ct.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([c_node/1, ergo/1, elixir/1]).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [c_node, ergo, elixir].

init_per_suite(Config) ->
    [{program, test_node:start(Config)} | Config].

end_per_suite(Config) ->
    ok = test_node:stop(?config(program, Config)).

c_node(Config) ->
    Peer = test_program:directory(Config, "c_node"),
    Lib = code:root_dir() ++ "/usr",
    %% The library's makefiles define _REENTRANT; without it ei.h declares another erl_errno.
    run(Config, "gcc", [
        "-D_REENTRANT", "-Wall", "-Wextra", "-Werror", "-o", Peer, source("cnode/peer.c"), "-I" ++ Lib ++ "/include", "-L" ++ Lib ++ "/lib", "-lei", "-lpthread"
    ]),
    [Alive, Host] = string:split(name(), "@"),
    saw_all(run(Config, Peer, [Alive, Host | cookie_and_node(Config)])).

ergo(Config) ->
    Peer = test_program:directory(Config, "ergo"),
    run(Config, "go", ["-C", source("ergo"), "build", "-o", Peer, "."]),
    saw_all(run(Config, Peer, [name() | cookie_and_node(Config)])).

elixir(Config) ->
    Ebin = filename:dirname(code:which(scanode)),
    Lines = run(Config, "elixir", ["--name", name(), "-pa", Ebin, source("elixir/peer.exs") | cookie_and_node(Config)]),
    {ByApplication, ByMessages} = lists:split(5, Lines),
    saw_all(ByApplication),
    saw_all(ByMessages).

saw_all(Lines) ->
    [<<"opened">>, <<"wrote 1000 rows">>, <<"got one row">>, <<"scanned 1000 rows in batches">>, <<"closed">>] = Lines.

source(Name) ->
    filename:join([test_program:root(), "erl_test", "peers", Name]).

%% A name of a node on this host that no other has.
name() ->
    lists:concat(["peer_", os:getpid(), "_", erlang:unique_integer([positive]), "@127.0.0.1"]).

cookie_and_node(Config) ->
    File = test_program:directory(Config, "cookie"),
    ok = file:write_file(File, atom_to_list(erlang:get_cookie())),
    ok = file:change_mode(File, 8#600),
    [File, atom_to_list(maps:get(node, ?config(program, Config)))].

%% The lines a program prints on standard output; what it says on standard error goes to the file named in the test's log. It must end with status 0.
run(Config, Program, Args) ->
    Executable = os:find_executable(Program),
    true = is_list(Executable),
    Errors = test_program:directory(Config, "stderr"),
    ct:log("~ts ~0tp, standard error in ~ts", [Executable, Args, Errors]),
    Port = open_port({spawn_executable, "/bin/sh"}, [
        binary, exit_status, {args, ["-c", "errors=$1; shift; exec \"$@\" 2> \"$errors\"", "sh", Errors, Executable | Args]}
    ]),
    {Status, Out} = output(Port, <<>>),
    {ok, Said} = file:read_file(Errors),
    ct:log("status ~b~n~ts~n~ts", [Status, Out, Said]),
    0 = Status,
    binary:split(Out, <<"\n">>, [global, trim]).

output(Port, Out) ->
    receive
        {Port, {data, Data}} -> output(Port, <<Out/binary, Data/binary>>);
        {Port, {exit_status, Status}} -> {Status, Out}
    end.
