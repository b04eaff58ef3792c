%% The module against a model of it, with random sequences of commands whose processes take turns (prop_eleveldb), and with processes that run at the same time
%% (own_keys); and a module that is wrong, which both must find out.
%%
%% The log has the seed. ELEVELDB_SEED=A,B,C begins with it again, ELEVELDB_SEQUENCES=N runs N sequences however long that takes.
-module(eleveldb_model_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([like_the_model/1, live_iterators_are_found_out/1, processes_at_once/1, live_iterators_at_once_are_found_out/1]).

%% As many as this, unless they take longer than that.
-define(SEQUENCES, 4000).
-define(SECONDS, 90).

%% Of the processes that run at the same time.
-define(PROCESSES, 8).
-define(STEPS, 600).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [like_the_model, live_iterators_are_found_out, processes_at_once, live_iterators_at_once_are_found_out].

init_per_suite(Config) ->
    {ok, _} = application:ensure_all_started(eleveldb),
    Config.

end_per_suite(_Config) ->
    ok = application:stop(eleveldb).

end_per_testcase(_Case, _Config) ->
    [] = eleveldb_test:flush(),
    ok = eleveldb_test:await(fun() -> supervisor:which_children(eleveldb_iterator_sup) =:= [] end).

like_the_model(Config) ->
    {Count, Deadline} =
        case os:getenv("ELEVELDB_SEQUENCES") of
            false -> {?SEQUENCES, erlang:monotonic_time(second) + ?SECONDS};
            Number -> {list_to_integer(Number), 1 bsl 60}
        end,
    Seed = seed(),
    ct:pal("seed ~w", [Seed]),
    Checked = prop_eleveldb:check(eleveldb, #{root => eleveldb_test:dir(Config, ?FUNCTION_NAME), seed => Seed, count => Count, deadline => Deadline * 1000}),
    ct:pal("~p", [Checked]),
    ?assertMatch({ok, _, _}, Checked).

%% An iterator that reads the store as it is now, and not as it was: the sequences find it, and those left of the one that did show it.
live_iterators_are_found_out(Config) ->
    Seed = seed(),
    ct:pal("seed ~w", [Seed]),
    Root = eleveldb_test:dir(Config, ?FUNCTION_NAME),
    {failed, #{commands := Commands} = Found} = prop_eleveldb:check(live_iterators, #{root => Root, seed => Seed, count => 1000, deadline => 1 bsl 60}),
    ct:pal("~p", [Found]),
    %% Right where the iterators are: in what remains, one is made, and used when the store has changed.
    true = lists:keymember(iterator, 1, Commands),
    ?assert(lists:member(element(1, lists:last(Commands)), [move, do_fold])),
    ?assertMatch({failed, _}, prop_eleveldb:replay(live_iterators, #{root => Root ++ "-again", commands => Commands})),
    ok = prop_eleveldb:replay(eleveldb, #{root => Root ++ "-right", commands => Commands}).

%% On one store, whose small write buffers are flushed and merged meanwhile.
processes_at_once(Config) ->
    ?assertEqual([ok], lists:usort(at_once(Config, eleveldb))).

live_iterators_at_once_are_found_out(Config) ->
    Outcomes = at_once(Config, live_iterators),
    ?assertNotEqual([ok], lists:usort(Outcomes)).

at_once(Config, Module) ->
    Seed = seed(),
    ct:pal("seed ~w", [Seed]),
    {ok, Db} = Module:open(eleveldb_test:dir(Config, ?FUNCTION_NAME), [{create_if_missing, true}, {write_buffer_size, 65536}]),
    Processes = [
        spawn_monitor(fun() ->
            _ = rand:seed(exsss, setelement(3, Seed, element(3, Seed) + Prefix)),
            exit({run, own_keys:run(Module, Db, Prefix, ?STEPS)})
        end)
     || Prefix <- lists:seq(1, ?PROCESSES)
    ],
    Outcomes = [
        receive
            {'DOWN', Monitor, process, Pid, {run, Result}} -> Result;
            {'DOWN', Monitor, process, Pid, Why} -> Why
        end
     || {Pid, Monitor} <- Processes
    ],
    _ = [ct:log("~P", [Outcome, 60]) || Outcome <- Outcomes, Outcome =/= ok],
    ok = Module:close(Db),
    Outcomes.

seed() ->
    case os:getenv("ELEVELDB_SEED") of
        false ->
            erlang:timestamp();
        Text ->
            [A, B, C] = [list_to_integer(Part) || Part <- string:split(Text, ",", all)],
            {A, B, C}
    end.
