%% The other transport: stores on a node of the cluster, used from more than one BEAM.
-module(node_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    key_value/1,
    handle_on_another_node/1,
    fold_on_another_node/1,
    opener_node_ends/1,
    node_killed_during_fold/1,
    node_killed_between_calls/1,
    node_terminated/1,
    directories/1,
    no_such_node/1,
    too_large_a_write/1,
    hidden/1
]).
-export([prepend/2]).

suite() -> [{timetrap, {seconds, 120}}].

all() ->
    [F || {F, 1} <- ?MODULE:module_info(exports), F =/= module_info].

init_per_testcase(_Case, Config) ->
    [{program, test_node:start(Config)} | Config].

end_per_testcase(_Case, Config) ->
    ok = test_node:stop(?config(program, Config)).

scan_node(Config) ->
    maps:get(node, ?config(program, Config)).

open(Config) ->
    {ok, Db} = scanode:open("store", #{node => scan_node(Config)}),
    Db.

%% Another BEAM with our code.
start_peer() ->
    {ok, Peer, Node} = peer:start(#{
        name => peer:random_name(),
        host => "127.0.0.1",
        longnames => true,
        args => ["-setcookie", atom_to_list(erlang:get_cookie()), "-pa", filename:dirname(code:which(scanode)), filename:dirname(code:which(?MODULE))]
    }),
    {Peer, Node}.

key_value(Config) ->
    Db = open(Config),
    not_found = scanode:get(Db, <<"k">>),
    ok = scanode:put(Db, <<"k">>, <<"v">>),
    {ok, <<"v">>} = scanode:get(Db, <<"k">>, 60000),
    ok = scanode:write(Db, [{delete, <<"k">>}, {put, <<"j">>, <<"w">>}], [sync]),
    not_found = scanode:get(Db, <<"k">>),
    {ok, #{streams := 0}} = scanode:info(Db),
    {ok, #{stores := 1}} = scanode:info(#{node => scan_node(Config)}),
    {error, {rejected, {bad_request, _}}} = scanode:put(Db, k, <<"v">>),
    ok = scanode:close(Db),
    says_closed(Db),
    [] = test_program:flush().

says_closed(Db) ->
    {error, closed} = scanode:close(Db),
    {error, closed} = scanode:get(Db, <<"k">>),
    {error, closed} = scanode:put(Db, <<"k">>, <<"v">>),
    ?assertError({scan, closed}, scanode:fold(Db, fun(_, A) -> A end, [], #{})).

handle_on_another_node(Config) ->
    Db = open(Config),
    {Peer, Node} = start_peer(),
    ok = rpc:call(Node, scanode, put, [Db, <<"k">>, <<"from there">>]),
    {ok, <<"from there">>} = scanode:get(Db, <<"k">>),
    {error, {locked, _}} = rpc:call(Node, scanode, open, ["store", #{node => scan_node(Config)}]),
    ok = rpc:call(Node, scanode, close, [Db]),
    says_closed(Db),
    ok = peer:stop(Peer).

fold_on_another_node(Config) ->
    Db = open(Config),
    Rows = [{<<I:32>>, binary:copy(<<I>>, 100)} || I <- lists:seq(1, 5000)],
    ok = scanode:write(Db, [{put, K, V} || {K, V} <- Rows], #{}),
    {Peer, Node} = start_peer(),
    Small = #{rows => keys, max_batch_bytes => 1000, max_unacked_bytes => 5000},
    %% A fun of a module that node has.
    Keys = rpc:call(Node, scanode, fold, [Db, fun ?MODULE:prepend/2, [], Small]),
    Keys = [K || {K, _} <- lists:reverse(Rows)],
    Rows = lists:reverse(scanode:fold(Db, fun(Row, Acc) -> [Row | Acc] end, [], #{max_batch_bytes => 1000, max_unacked_bytes => 5000})),
    ok = test_program:await(fun() ->
        {ok, #{streams := Streams}} = scanode:info(Db),
        Streams =:= 0
    end),
    ok = peer:stop(Peer),
    ok = scanode:close(Db).

prepend(Row, Rows) ->
    [Row | Rows].

%% The store goes with the link to the BEAM that opened it, whoever uses it.
opener_node_ends(Config) ->
    {Peer, Node} = start_peer(),
    {ok, Db} = rpc:call(Node, scanode, open, ["store", #{node => scan_node(Config)}]),
    ok = scanode:put(Db, <<"k">>, <<"v">>),
    ok = peer:stop(Peer),
    ok = test_program:await(fun() -> scanode:get(Db, <<"k">>) =:= {error, closed} end),
    Again = open(Config),
    {ok, <<"v">>} = scanode:get(Again, <<"k">>),
    ok = scanode:close(Again).

node_killed_during_fold(Config) ->
    #{os_pid := OsPid} = ?config(program, Config),
    Db = open(Config),
    ok = scanode:write(Db, [{put, <<I:32>>, binary:copy(<<I>>, 1000)} || I <- lists:seq(1, 2000)], #{}),
    Kill = fun
        (_, 0) ->
            ok = test_program:kill("KILL", OsPid),
            1;
        (_, Count) ->
            Count + 1
    end,
    ?assertError({scan, {down, _}}, scanode:fold(Db, Kill, 0, #{max_batch_bytes => 2000, max_unacked_bytes => 2000})),
    [] = [Message || Message <- test_program:flush(), not is_port(element(1, Message))].

node_killed_between_calls(Config) ->
    #{os_pid := OsPid} = ?config(program, Config),
    Db = open(Config),
    ok = test_program:kill("KILL", OsPid),
    ok = test_program:await_exit(OsPid),
    {error, {down, _}} = scanode:get(Db, <<"k">>),
    case scanode:put(Db, <<"k">>, <<"v">>) of
        {error, {unknown, {down, _}}} -> ok;
        {error, {rejected, {down, _}}} -> ok
    end,
    ?assertError({scan, {down, _}}, scanode:fold(Db, fun(_, A) -> A end, [], #{})),
    {error, {down, _}} = scanode:info(#{node => scan_node(Config)}).

node_terminated(Config) ->
    #{os_pid := OsPid} = ?config(program, Config),
    Db = open(Config),
    ok = scanode:put(Db, <<"k">>, <<"v">>),
    ok = test_program:kill("TERM", OsPid),
    ok = test_program:await_exit(OsPid),
    {error, {down, _}} = scanode:get(Db, <<"k">>).

directories(Config) ->
    Node = scan_node(Config),
    [{error, {bad_path, _}} = scanode:open(Dir, #{node => Node}) || Dir <- ["/tmp/absolute", "../above", "a/../../above", <<"..">>]],
    {ok, Db} = scanode:open("a/b", #{node => Node}),
    true = filelib:is_dir(filename:join(maps:get(data, ?config(program, Config)), "a/b")),
    ok = scanode:close(Db).

no_such_node(_Config) ->
    {error, {down, _}} = scanode:open("store", #{node => 'nobody@127.0.0.1'}),
    %% A node without scanode.
    {Peer, Node} = start_peer(),
    {error, {down, _}} = scanode:open("store", #{node => Node}),
    ok = peer:stop(Peer).

too_large_a_write(Config) ->
    Db = open(Config),
    {error, {rejected, {bad_request, _}}} = scanode:put(Db, <<"k">>, binary:copy(<<0>>, 64 bsl 20)),
    ok = scanode:put(Db, <<"k">>, binary:copy(<<0>>, 20 bsl 20)),
    {ok, Value} = scanode:get(Db, <<"k">>),
    20971520 = byte_size(Value),
    ok = scanode:close(Db).

hidden(Config) ->
    Node = scan_node(Config),
    true = lists:member(Node, nodes(hidden)),
    false = lists:member(Node, nodes()).
