%% The module with a fault: its iterators, and folds over them, read the store as it is at that moment.
-module(live_iterators).

-export([open/2, close/1, destroy/2, is_empty/1, get/3, put/4, delete/3, write/3, async_put/5, fold/4, fold_keys/4]).
-export([iterator/2, iterator/3, iterator_move/2, iterator_close/1, do_fold/4]).

open(Dir, Options) -> eleveldb:open(Dir, Options).
close(Db) -> eleveldb:close(Db).
destroy(Dir, Options) -> eleveldb:destroy(Dir, Options).
is_empty(Db) -> eleveldb:is_empty(Db).
get(Db, Key, Options) -> eleveldb:get(Db, Key, Options).
put(Db, Key, Value, Options) -> eleveldb:put(Db, Key, Value, Options).
delete(Db, Key, Options) -> eleveldb:delete(Db, Key, Options).
write(Db, Actions, Options) -> eleveldb:write(Db, Actions, Options).
async_put(Db, Context, Key, Value, Options) -> eleveldb:async_put(Db, Context, Key, Value, Options).
fold(Db, Fun, Acc, Options) -> eleveldb:fold(Db, Fun, Acc, Options).
fold_keys(Db, Fun, Acc, Options) -> eleveldb:fold_keys(Db, Fun, Acc, Options).

iterator(Db, Options) -> made(Db, fun() -> eleveldb:iterator(Db, Options) end).

iterator(Db, Options, keys_only) -> made(Db, fun() -> eleveldb:iterator(Db, Options, keys_only) end).

%% Of the position there is only the key. Each move has an iterator of its own.
made(Db, Make) ->
    {ok, First} = Make(),
    ok = eleveldb:iterator_close(First),
    {ok, {live, spawn(fun() -> loop(Db, Make, nowhere) end)}}.

iterator_move({live, Pid}, Action) -> ask(Pid, {move, Action}).

iterator_close({live, Pid}) -> ask(Pid, close).

do_fold({live, Pid}, Fun, Acc, Options) ->
    {ok, Iterator} = ask(Pid, fold),
    eleveldb:do_fold(Iterator, Fun, Acc, Options).

ask(Pid, Question) ->
    Ref = erlang:monitor(process, Pid),
    _ = Pid ! {Question, self(), Ref},
    receive
        {Ref, {raised, Reason}} ->
            true = erlang:demonitor(Ref, [flush]),
            error(Reason);
        {Ref, Answer} ->
            true = erlang:demonitor(Ref, [flush]),
            Answer;
        {'DOWN', Ref, process, Pid, _} ->
            error(badarg)
    end.

loop(Db, Make, At) ->
    receive
        {Question, From, Ref} ->
            Answer =
                try
                    answer(Question, Make, At)
                catch
                    error:Reason -> {{raised, Reason}, At}
                end,
            case {Question, Answer} of
                {{move, _}, {Result, Next}} ->
                    _ = From ! {Ref, Result},
                    loop(Db, Make, Next);
                {_, {Result, _}} ->
                    From ! {Ref, Result}
            end
    end.

answer(close, Make, At) ->
    {ok, Iterator} = Make(),
    {eleveldb:iterator_close(Iterator), At};
answer(fold, Make, At) ->
    {Make(), At};
answer({move, Action}, Make, At) ->
    {ok, Iterator} = Make(),
    Result = moved(Iterator, Action, At),
    ok = eleveldb:iterator_close(Iterator),
    {Result, next(Result, At)}.

moved(Iterator, Action, At) when is_binary(At), Action =/= first, Action =/= last, is_atom(Action) ->
    case {eleveldb:iterator_move(Iterator, At), Action} of
        {Row, _} when element(1, Row) =:= ok, element(2, Row) =:= At -> eleveldb:iterator_move(Iterator, Action);
        {_, prev} -> eleveldb:iterator_move(Iterator, prev);
        {Row, _} -> Row
    end;
moved(Iterator, Action, _) ->
    eleveldb:iterator_move(Iterator, Action).

next({error, _}, _) -> nowhere;
next({einval, _}, At) -> At;
next(Row, _) -> element(2, Row).
