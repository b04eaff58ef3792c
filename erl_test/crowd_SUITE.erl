%% Many at once on one store: all get on, the slow hold up nobody, and closing the store ends them all.
-module(crowd_SUITE).

-include_lib("common_test/include/ct.hrl").

-export([all/0, groups/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_group/2, end_per_group/2, end_per_testcase/2]).
-export([all_get_on/1, the_stuck_hold_up_nobody/1, more_than_the_cap/1]).

-define(ROWS, 2000).
%% So small that a scan of all rows waits for its consumer many times.
-define(SMALL, #{max_batch_bytes => 500, max_unacked_bytes => 500}).

suite() -> [{timetrap, {seconds, 120}}].

all() -> [{group, port}, {group, node}].

groups() ->
    Cases = [all_get_on, the_stuck_hold_up_nobody, more_than_the_cap],
    [{port, [], Cases}, {node, [], Cases}].

init_per_suite(Config) ->
    _ = test_program:executable(),
    Config.

end_per_suite(_Config) ->
    ok.

init_per_group(port, Config) ->
    {ok, _} = application:ensure_all_started(scanode),
    [{target, #{}} | Config];
init_per_group(node, Config) ->
    #{node := Node} = Program = test_node:start(Config),
    [{target, #{node => Node}}, {program, Program} | Config].

end_per_group(port, _Config) ->
    ok = application:stop(scanode);
end_per_group(node, Config) ->
    ok = test_node:stop(?config(program, Config)).

end_per_testcase(_Case, _Config) ->
    [] = test_program:flush(),
    ok.

open(Config, Case) ->
    Dir =
        case ?config(target, Config) of
            #{node := _} -> filename:basename(test_program:directory(Config, Case));
            #{} -> test_program:directory(Config, Case)
        end,
    {ok, Db} = scanode:open(Dir, ?config(target, Config)),
    ok = scanode:write(Db, [{put, <<I:32>>, <<"v">>} || I <- lists:seq(1, ?ROWS)], #{}),
    Db.

%% Folds that stop at a row until they are told to go on. What becomes of each is {Pid, Result} to the caller.
stopped_folds(Db, Count, At) ->
    Self = self(),
    Stop = fun
        (_, N) when N =:= At ->
            Self ! {self(), there},
            receive
                go_on -> N + 1
            end;
        (_, N) ->
            N + 1
    end,
    Folds = [
        spawn_link(fun() ->
            Result =
                try
                    scanode:fold(Db, Stop, 0, ?SMALL)
                catch
                    error:{scan, Reason} -> Reason
                end,
            [] = test_program:flush(),
            Self ! {self(), Result}
        end)
     || _ <- lists:seq(1, Count)
    ],
    [receive {Fold, there} -> ok end || Fold <- Folds],
    Folds.

results(Folds) ->
    [receive {Fold, Result} -> Result end || Fold <- Folds].

%% 60 scans are in the middle of the store at the same time, and all come to its end.
all_get_on(Config) ->
    Db = open(Config, ?FUNCTION_NAME),
    Folds = stopped_folds(Db, 60, ?ROWS div 2),
    {ok, #{streams := 60}} = scanode:info(Db),
    [Fold ! go_on || Fold <- Folds],
    [?ROWS = Result || Result <- results(Folds)],
    ok = scanode:close(Db).

the_stuck_hold_up_nobody(Config) ->
    Db = open(Config, ?FUNCTION_NAME),
    Stuck = stopped_folds(Db, 200, 10),
    ?ROWS = scanode:fold(Db, fun(_, N) -> N + 1 end, 0, ?SMALL),
    ok = scanode:write(Db, [{put, <<"new">>, <<>>}], [sync]),
    {ok, <<>>} = scanode:get(Db, <<"new">>),
    {ok, Iterator} = scanode:iterator(Db, #{}),
    {ok, [_ | _], done} = scanode:iterator_read(Iterator, first, #{max_rows => 10000}),
    ok = scanode:close(Db),
    [Fold ! go_on || Fold <- Stuck],
    [closed = Result || Result <- results(Stuck)].

more_than_the_cap(Config) ->
    Db = open(Config, ?FUNCTION_NAME),
    Folds = stopped_folds(Db, 256, 10),
    busy =
        try
            scanode:fold(Db, fun(_, N) -> N + 1 end, 0, #{})
        catch
            error:{scan, Reason} -> Reason
        end,
    [First | Others] = Folds,
    First ! go_on,
    [?ROWS] = results([First]),
    ?ROWS = scanode:fold(Db, fun(_, N) -> N + 1 end, 0, #{}),
    [Fold ! go_on || Fold <- Others],
    [?ROWS = Result || Result <- results(Others)],
    ok = scanode:close(Db).
