%% The end of the program, as seen by those who have stores open or want to: everybody gets his store back, with all that was acknowledged as synced.
-module(restart_SUITE).

-include_lib("common_test/include/ct.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([all_come_back/1, open_waits_for_the_next_program/1, open_gives_up/1, opens_and_the_end_of_the_application/1, open_before_the_owner_knows/1]).

-define(STORES, 64).
-define(KILLS, 3).

suite() -> [{timetrap, {seconds, 180}}].

all() ->
    [F || {F, 1} <- ?MODULE:module_info(exports), F =/= module_info].

init_per_testcase(_Case, Config) ->
    _ = test_program:executable(),
    {ok, _} = application:ensure_all_started(scanode),
    Config.

end_per_testcase(_Case, _Config) ->
    ok = application:stop(scanode),
    [] = test_program:flush(),
    ok.

%% Writers on many stores, the program killed under them several times.
all_come_back(Config) ->
    Dir = test_program:directory(Config, ?FUNCTION_NAME),
    ok = file:make_dir(Dir),
    Self = self(),
    Openers = [
        spawn_link(fun() ->
            Store = filename:join(Dir, integer_to_list(N)),
            opener(Self, Store, 0, 0)
        end)
     || N <- lists:seq(1, ?STORES)
    ],
    [
        begin
            %% Everybody writes.
            [receive {Opener, writes, Round, _} -> ok end || Opener <- Openers],
            OsPid = test_program:os_pid(),
            ok = test_program:kill("KILL", OsPid),
            Killed = erlang:monotonic_time(millisecond),
            [receive {Opener, open, _} -> ok end || Opener <- Openers],
            ct:log("~b stores are back after ~b ms", [?STORES, erlang:monotonic_time(millisecond) - Killed])
        end
     || Round <- lists:seq(0, ?KILLS - 1)
    ],
    [
        begin
            receive {Opener, writes, ?KILLS, _} -> ok end,
            Opener ! finish
        end
     || Opener <- Openers
    ],
    [
        receive
            {Opener, finished, Written} -> true = Written > 0
        end
     || Opener <- Openers
    ].

%% Opens, checks that everything acknowledged is there, and writes until the store is gone; and so on. Acknowledged is how many writes were.
opener(Test, Dir, Round, Acknowledged) ->
    {ok, Db} = scanode:open(Dir, #{}),
    [Test ! {self(), open, Round} || Round > 0],
    Keys = scanode:fold(Db, fun(_, N) -> N + 1 end, 0, #{rows => keys}),
    %% One more at most: that was under way.
    true = Keys =:= Acknowledged orelse Keys =:= Acknowledged + 1,
    writer(Test, Dir, Db, Round, Keys, Keys).

writer(Test, Dir, Db, Round, First, Written) ->
    receive
        finish ->
            [] = test_program:flush(),
            ok = scanode:close(Db),
            Test ! {self(), finished, Written}
    after 0 ->
        case scanode:write(Db, [{put, <<Written:32>>, <<"v">>}], [sync]) of
            ok ->
                [Test ! {self(), writes, Round, Written} || Written =:= First],
                writer(Test, Dir, Db, Round, First, Written + 1);
            {error, {unknown, {down, _}}} ->
                opener(Test, Dir, Round + 1, Written);
            {error, closed} ->
                opener(Test, Dir, Round + 1, Written)
        end
    end.

%% Killed at any moment of an open: what the opener gets is a store.
open_waits_for_the_next_program(Config) ->
    [
        begin
            OsPid = test_program:os_pid(),
            Self = self(),
            Openers = [
                spawn_link(fun() ->
                    {ok, Db} = scanode:open(test_program:directory(Config, ?FUNCTION_NAME), #{}),
                    ok = scanode:close(Db),
                    [] = test_program:flush(),
                    Self ! {self(), done}
                end)
             || _ <- lists:seq(1, 8)
            ],
            ok = test_program:kill("KILL", OsPid),
            [receive {Opener, done} -> ok end || Opener <- Openers]
        end
     || _ <- lists:seq(1, 4)
    ].

%% A program that ends whenever it is asked for something.
open_gives_up(Config) ->
    File = test_program:directory(Config, "count"),
    Fatal = test_program:fake_hello(Config, ?FUNCTION_NAME, test_program:hello(), ["echo >> '" ++ File ++ "'", "head -c 10 > /dev/null", "exit 1"]),
    {ok, Owner} = scanode:start_link([{name, ?MODULE}, {executable, Fatal}]),
    {error, {down, _}} = scanode:open("never-created", #{port => Owner}),
    %% Three runs, a line each.
    3 = filelib:file_size(File),
    %% Nobody has to wait longer than he wants.
    {error, timeout} = scanode:open("never-created", #{port => Owner, timeout => 50}),
    ok = gen_server:stop(Owner).

opens_and_the_end_of_the_application(Config) ->
    Self = self(),
    Openers = [
        spawn_link(fun() ->
            Self ! {self(), until_down(fun() -> scanode:open(test_program:directory(Config, ?FUNCTION_NAME), #{}) end)}
        end)
     || _ <- lists:seq(1, 8)
    ],
    {ok, _} = scanode:open(test_program:directory(Config, ?FUNCTION_NAME), #{}),
    ok = application:stop(scanode),
    [receive {Opener, Reason} -> {down, _} = Reason end || Opener <- Openers],
    ok = application:start(scanode).

until_down(Open) ->
    case Open() of
        {ok, _} -> until_down(Open);
        {error, Reason} -> Reason
    end.

%% The port is closed and its owner has not heard of it: it is kept from listening.
open_before_the_owner_knows(Config) ->
    {ok, Db} = scanode:open(test_program:directory(Config, ?FUNCTION_NAME), #{}),
    OsPid = test_program:os_pid(),
    Owner = whereis(scanode_port),
    Self = self(),
    Opener = spawn_link(fun() ->
        receive
            now -> Self ! {self(), scanode:open(test_program:directory(Config, ?FUNCTION_NAME), #{})}
        end
    end),
    {ok, Port} = scanode_port:port(scanode_port, none, infinity),
    ok = sys:suspend(Owner),
    ok = test_program:kill("KILL", OsPid),
    ok = test_program:await(fun() -> erlang:port_info(Port, id) =:= undefined end),
    {error, closed} = scanode:get(Db, <<"k">>),
    Opener ! now,
    ok = sys:resume(Owner),
    receive
        {Opener, {ok, Again}} -> ok = scanode:close(Again)
    end.
