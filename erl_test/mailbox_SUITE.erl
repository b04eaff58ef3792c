%% A fold beside what others send to its process: their messages stay, in order, none of the fold's does, and the process is as it was. What it costs is
%% measured by `make bench-node'.
-module(mailbox_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, groups/0, suite/0, init_per_group/2, end_per_group/2]).
-export([present/1, arriving/1, thrown/1, short/1, killed/1, program_ends/1, slow/1, nested/1]).

-define(ROWS, 2000).
-define(OTHERS, 5000).

suite() -> [{timetrap, {seconds, 120}}].

all() -> [{group, port}, {group, node}].

groups() ->
    Cases = [present, arriving, thrown, short, killed, slow, nested, program_ends],
    [{port, Cases}, {node, Cases}].

init_per_group(Transport, Config) ->
    {ok, _} = application:ensure_all_started(scanode),
    Program =
        case Transport of
            port -> none;
            node -> test_node:start(Config)
        end,
    [{program, Program} | Config].

end_per_group(_, Config) ->
    case ?config(program, Config) of
        none -> ok;
        Program -> ok = test_node:stop(Program)
    end,
    ok = application:stop(scanode).

open(Config, Case) ->
    {ok, Db} =
        case ?config(program, Config) of
            none -> scanode:open(test_program:directory(Config, Case), #{});
            #{node := Node} -> scanode:open(atom_to_list(Case), #{node => Node})
        end,
    ok = scanode:write(Db, [{put, <<I:32>>, <<I:32>>} || I <- lists:seq(1, ?ROWS)], []),
    Db.

%% A fold of many batches.
fold(Db, Fun, Acc) ->
    scanode:fold(Db, Fun, Acc, #{max_batch_bytes => 200, max_unacked_bytes => 1000, rows => keys}).

count(_Row, N) -> N + 1.

present(Config) ->
    Db = open(Config, ?FUNCTION_NAME),
    _ = [self() ! {other, I} || I <- lists:seq(1, ?OTHERS)],
    ?ROWS = fold(Db, fun count/2, 0),
    others_are_all(),
    as_it_was(),
    ok = scanode:close(Db).

%% One after each row, so some before the relay is asked and most after.
arriving(Config) ->
    Db = open(Config, ?FUNCTION_NAME),
    Fun = fun(_, N) ->
        _ = [self() ! {other, I} || I <- lists:seq(N * 5 + 1, N * 5 + 5), I =< ?OTHERS],
        N + 1
    end,
    ?ROWS = fold(Db, Fun, 0),
    others_are_all(),
    as_it_was(),
    ok = scanode:close(Db).

%% After a row of the first batch, of one that came unasked, and of later ones.
thrown(Config) ->
    Db = open(Config, ?FUNCTION_NAME),
    [
        begin
            _ = [self() ! {other, I} || I <- lists:seq(1, ?OTHERS)],
            Fun = fun
                (_, N) when N =:= At -> throw(enough);
                (_, N) -> N + 1
            end,
            ?assertThrow(enough, fold(Db, Fun, 0)),
            others_are_all(),
            as_it_was()
        end
     || At <- [0, 1, 30, 70, 200, 1000, 1999]
    ],
    no_streams(Db),
    ok = scanode:close(Db).

%% A limit makes a scan short: no process is started for it.
short(Config) ->
    Db = open(Config, ?FUNCTION_NAME),
    1 = erlang:trace(self(), true, [procs]),
    10 = scanode:fold(Db, fun count/2, 0, #{limit => 10}),
    1 = erlang:trace(self(), false, [procs]),
    [] = [Pid || {trace, _, spawn, Pid, _} <- test_program:flush()],
    as_it_was(),
    ok = scanode:close(Db).

%% The relay ends with the process whose fold it serves, and the scan with it.
killed(Config) ->
    Db = open(Config, ?FUNCTION_NAME),
    Self = self(),
    Fun = fun
        (_, 1000) ->
            Self ! {there, self()},
            receive
            after infinity -> ok
            end;
        (_, N) ->
            N + 1
    end,
    {Pid, Monitor} = spawn_monitor(fun() -> fold(Db, Fun, 0) end),
    receive
        {there, Pid} -> true = exit(Pid, kill)
    end,
    receive
        {'DOWN', Monitor, process, Pid, killed} -> ok
    end,
    as_it_was(),
    no_streams(Db),
    ok = scanode:close(Db).

%% Rows that were sent before the program's end may be handed out; then the fold raises.
program_ends(Config) ->
    Db = open(Config, ?FUNCTION_NAME),
    OsPid =
        case ?config(program, Config) of
            none -> test_program:os_pid();
            #{os_pid := Of} -> Of
        end,
    Fun = fun
        (_, 1000) ->
            ok = test_program:kill("KILL", OsPid),
            ok = test_program:await_exit(OsPid),
            1001;
        (_, N) ->
            N + 1
    end,
    ?assertError({scan, {down, _}}, fold(Db, Fun, 0)),
    as_it_was().

%% A time-out is between signs of life, not of the fold, and leaves nothing either.
slow(Config) ->
    Db = open(Config, ?FUNCTION_NAME),
    ?ROWS = scanode:fold(Db, fun count/2, 0, #{timeout => 60000, max_batch_bytes => 200}),
    ?assertError({scan, timeout}, scanode:fold(Db, fun count/2, 0, #{timeout => 0, max_batch_bytes => 200, max_unacked_bytes => 1000})),
    as_it_was(),
    no_streams(Db),
    ok = scanode:close(Db).

nested(Config) ->
    Db = open(Config, ?FUNCTION_NAME),
    _ = [self() ! {other, I} || I <- lists:seq(1, ?OTHERS)],
    Inner = fun
        (<<I:32>>, N) when I rem 500 =:= 0 -> N + fold(Db, fun count/2, 0);
        (_, N) -> N
    end,
    8000 = fold(Db, Inner, 0),
    others_are_all(),
    as_it_was(),
    ok = scanode:close(Db).

%% The mailbox holds what others sent, in order, and nothing else.
others_are_all() ->
    ?assertEqual([{other, I} || I <- lists:seq(1, ?OTHERS)], test_program:flush()).

as_it_was() ->
    [] = test_program:flush(),
    ?assertEqual({message_queue_data, on_heap}, process_info(self(), message_queue_data)),
    ?assertEqual({monitors, []}, process_info(self(), monitors)),
    ok = test_program:await(fun() -> relays() =:= [] end).

relays() ->
    [Pid || Pid <- processes(), {current_function, {scanode_relay, _, _}} <- [process_info(Pid, current_function)]].

no_streams(Db) ->
    ok = test_program:await(fun() ->
        {ok, #{streams := Streams, iterators := Iterators}} = scanode:info(Db),
        {Streams, Iterators} =:= {0, 0}
    end).
