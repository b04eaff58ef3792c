%% All partitions of a ring on one program: they open at the same moment, they write, and the program is killed under them.
-module(riak_ring_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    opened_at_once/1,
    killed_under_writers/1,
    killed_while_all_open/1,
    no_program/1
]).

%% A ring of 64 has a vnode and a hash tree in each partition.
-define(PARTITIONS, 64).

-define(KILLS, 3).

%% What Riak gives a vnode to open its store, in milliseconds.
-define(BUDGET_MS, 60000).

suite() -> [{timetrap, {seconds, 300}}].

all() -> [opened_at_once, killed_under_writers, killed_while_all_open, no_program].

init_per_testcase(_Case, Config) ->
    {ok, _} = application:ensure_all_started(eleveldb),
    Config.

end_per_testcase(_Case, _Config) ->
    ok = application:stop(eleveldb),
    [] = eleveldb_test:flush().

%% As a node starts: 128 stores, by as many processes, new and then with data; and as it stops. How long it took is in the log. Towards 5 s.
opened_at_once(Config) ->
    Root = eleveldb_test:dir(Config, ?FUNCTION_NAME),
    [
        begin
            {Opened, Vnodes} = timer:tc(fun() ->
                at_once([fun() -> riak_vnode:start(filename:join([Root, Kind, integer_to_list(N)]), [{is_internal_db, Kind =:= "trees"}]) end || Kind <- ["vnodes", "trees"], N <- partitions()])
            end),
            ?assertEqual(2 * ?PARTITIONS, length([Vnode || {ok, Vnode} <- Vnodes])),
            [ok = riak_vnode:put(Vnode, <<"b">>, <<Round:32>>, [], rand:bytes(1000)) || {ok, Vnode} <- Vnodes],
            ?assertEqual([Round], lists:usort([length(eleveldb_test:keys(riak_vnode:ref(Vnode))) || {ok, Vnode} <- Vnodes])),
            {Closed, _} = timer:tc(fun() -> at_once([fun() -> riak_vnode:stop(Vnode) end || {ok, Vnode} <- Vnodes]) end),
            ct:pal("round ~b: ~b stores opened in ~b ms, closed in ~b ms", [Round, 2 * ?PARTITIONS, Opened div 1000, Closed div 1000])
        end
     || Round <- [1, 2, 3]
    ].

partitions() -> [N * 22835963083295358096932575511191922182123945984 || N <- lists:seq(0, ?PARTITIONS - 1)].

%% The results of all, each called in a process of its own, and all of these at the same time.
at_once(Funs) ->
    Processes = [spawn_monitor(fun() -> exit({result, Fun(), eleveldb_test:flush()}) end) || Fun <- Funs],
    [
        receive
            {'DOWN', Monitor, process, Pid, {result, Result, Messages}} ->
                [] = Messages,
                Result;
            {'DOWN', Monitor, process, Pid, Why} ->
                error(Why)
        end
     || {Pid, Monitor} <- Processes
    ].

%% Vnodes that write, and are started anew when they end, as Riak's supervisor does. Each time, all must have their stores back within what Riak gives them,
%% having seen no error but that of a lock; and nothing that was acknowledged as synced may be missing, nor anything be there that was not written.
killed_under_writers(Config) ->
    Root = eleveldb_test:dir(Config, ?FUNCTION_NAME),
    Self = self(),
    Partitions = [spawn_link(fun() -> partition(Self, filename:join(Root, integer_to_list(N)), 0, 0) end) || N <- partitions()],
    [
        begin
            [
                receive
                    {Partition, writes, Round} -> ok
                end
             || Partition <- Partitions
            ],
            ok = eleveldb_test:kill(eleveldb_test:os_pid()),
            Killed = erlang:monotonic_time(millisecond),
            Waited = [
                receive
                    {Partition, opened, Next, Tries} when Next =:= Round + 1 -> {erlang:monotonic_time(millisecond) - Killed, Tries}
                end
             || Partition <- Partitions
            ],
            {Last, _} = lists:max(Waited),
            ct:pal("round ~b: ~b stores are back after ~b ms, ~b of them by trying again", [Round, ?PARTITIONS, Last, length([T || {_, T} <- Waited, T > 0])])
        end
     || Round <- lists:seq(0, ?KILLS - 1)
    ],
    [
        begin
            receive
                {Partition, writes, ?KILLS} -> Partition ! finish
            end,
            receive
                {Partition, finished, Written} -> true = Written > 0
            end
        end
     || Partition <- Partitions
    ].

%% Keeps a vnode, and the ledger: how many writes it has acknowledged.
partition(Test, Dir, Round, Acknowledged) ->
    Own = self(),
    {Vnode, Monitor} = spawn_monitor(fun() -> vnode(Own, Dir, Acknowledged) end),
    receive
        %% Of the first opens nobody is told.
        {Vnode, opened, Tries} -> Round > 0 andalso (Test ! {self(), opened, Round, Tries})
    end,
    Written = ledger(Test, Vnode, Round, Acknowledged, first),
    receive
        {'DOWN', Monitor, process, Vnode, finished} ->
            Test ! {self(), finished, Written};
        {'DOWN', Monitor, process, Vnode, {ended, Why}} when Why =:= badarg; element(1, Why) =:= db_write ->
            partition(Test, Dir, Round + 1, Written)
    end.

ledger(Test, Vnode, Round, Written, Which) ->
    receive
        {Vnode, acknowledged, N} when N =:= Written ->
            _ = Which =:= first andalso (Test ! {self(), writes, Round}),
            ledger(Test, Vnode, Round, N + 1, later);
        %% The one under way when the store went may be there.
        {Vnode, found, N} when N =:= Written; N =:= Written + 1 ->
            ledger(Test, Vnode, Round, N, Which);
        {Vnode, ends} ->
            Written;
        finish ->
            _ = Vnode ! finish,
            ledger(Test, Vnode, Round, Written, Which)
    end.

%% Opens as Riak does, tells what it finds, and writes until it cannot.
vnode(Partition, Dir, Acknowledged) ->
    {ok, Db, Tries} = opened(Dir, erlang:monotonic_time(millisecond) + ?BUDGET_MS, 0),
    _ = Partition ! {self(), opened, Tries},
    Ended =
        try
            Keys = eleveldb:fold_keys(Db, fun(<<N:32>>, Next) when N =:= Next -> Next + 1 end, 0, []),
            true = Keys >= Acknowledged,
            _ = Partition ! {self(), found, Keys},
            write(Partition, Db, Keys)
        catch
            error:badarg -> {ended, badarg};
            %% The program ended under the fold.
            error:{iterator_error, "IO error: " ++ _} -> {ended, badarg}
        end,
    [] = eleveldb_test:flush(),
    _ = Partition ! {self(), ends},
    exit(Ended).

opened(Dir, Deadline, Tries) ->
    case riak_vnode:open(Dir, [], {1, 2000}) of
        {ok, Db} ->
            {ok, Db, Tries};
        {error, {db_open, "IO error: lock " ++ _}} ->
            true = erlang:monotonic_time(millisecond) < Deadline,
            opened(Dir, Deadline, Tries + 1)
    end.

write(Partition, Db, N) ->
    receive
        finish ->
            ok = eleveldb:close(Db),
            finished
    after 0 ->
        case eleveldb:write(Db, [{put, <<N:32>>, <<"value">>}], [{sync, true}]) of
            ok ->
                _ = Partition ! {self(), acknowledged, N},
                write(Partition, Db, N + 1);
            {error, {db_write, [_ | _]} = Why} ->
                {ended, Why}
        end
    end.

%% In the middle of the opens.
killed_while_all_open(Config) ->
    Root = eleveldb_test:dir(Config, ?FUNCTION_NAME),
    [
        begin
            OsPid = eleveldb_test:os_pid(),
            Self = self(),
            Opens = [
                fun() ->
                    _ = N =:= 0 andalso (Self ! begun),
                    {ok, Db, _} = opened(filename:join(Root, integer_to_list(N)), erlang:monotonic_time(millisecond) + ?BUDGET_MS, 0),
                    %% It may be killed between the two, or in the close.
                    try eleveldb:close(Db) of
                        ok -> ok;
                        {error, {db_close, [_ | _]}} -> ok
                    catch
                        error:badarg -> ok
                    end
                end
             || N <- lists:seq(0, ?PARTITIONS - 1)
            ],
            {Opener, Monitor} = spawn_monitor(fun() -> at_once(Opens) end),
            _ = Opener,
            receive
                begun -> ok
            end,
            ok = eleveldb_test:kill(OsPid),
            receive
                {'DOWN', Monitor, process, Opener, Why} -> ?assertEqual(normal, Why)
            end
        end
     || _ <- lists:seq(1, 3)
    ].

%% A backend that fails to start stops the node; so this must not look like a lock, and say what is missing.
no_program(Config) ->
    Real = os:getenv("SCANODE_EXECUTABLE"),
    ok = application:stop(eleveldb),
    true = os:putenv("SCANODE_EXECUTABLE", "/none/such"),
    try
        {error, {db_open, Text}} = riak_vnode:open(eleveldb_test:dir(Config, ?FUNCTION_NAME), []),
        ?assertNotMatch("IO error: lock " ++ _, Text),
        ?assertNotEqual(nomatch, string:find(Text, "/none/such"))
    after
        true = os:putenv("SCANODE_EXECUTABLE", Real)
    end.
