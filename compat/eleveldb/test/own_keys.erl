%% What one of many processes does with a store that all of them use at the same time: each writes keys with a first byte of its own, so that what it must find
%% under these is known to the row, in gets, folds, and iterators of any age.
-module(own_keys).

-export([run/4]).

-record(own, {module, db, prefix, rows = [], iterators = []}).

%% A snapshot of the process's own rows, and where the iterator is among them; elsewhere is on another process's row, or nowhere.
-record(iterator, {handle, rows, at = elsewhere}).

-define(MOST_ITERATORS, 5).

%% Does Steps things, drawn by the calling process's random numbers; raises at the first that is wrong.
run(Module, Db, Prefix, Steps) -> steps(Steps, #own{module = Module, db = Db, prefix = Prefix}).

steps(0, #own{module = Module, iterators = Iterators}) ->
    lists:foreach(fun(#iterator{handle = Handle}) -> ok = Module:iterator_close(Handle) end, Iterators);
steps(Steps, Own) ->
    Next = step(rand:uniform(20), Own),
    [] = eleveldb_test:flush(),
    steps(Steps - 1, Next).

step(N, #own{module = Module, db = Db} = Own) when N =< 3 ->
    {Key, Value} = {key(Own), value()},
    ok = Module:put(Db, Key, Value, []),
    changed([{put, Key, Value}], Own);
step(4, #own{module = Module, db = Db} = Own) ->
    Key = key(Own),
    ok = Module:delete(Db, Key, []),
    changed([{delete, Key}], Own);
step(5, #own{module = Module, db = Db} = Own) ->
    {Key, Value} = {key(Own), value()},
    Context = {w1c_async_put, {self(), make_ref()}, Key},
    ok = Module:async_put(Db, Context, Key, Value, []),
    receive
        {Context, Result} -> ok = Result
    end,
    changed([{put, Key, Value}], Own);
step(6, #own{module = Module, db = Db} = Own) ->
    Actions = [
        case rand:uniform(3) of
            1 -> {delete, key(Own)};
            _ -> {put, key(Own), value()}
        end
     || _ <- lists:seq(1, rand:uniform(150))
    ],
    ok = Module:write(Db, Actions, [{sync, rand:uniform(10) =:= 1}]),
    changed(Actions, Own);
step(N, #own{module = Module, db = Db, rows = Rows} = Own) when N =< 8 ->
    Key = key(Own),
    same(
        get,
        case orddict:find(Key, Rows) of
            error -> not_found;
            Found -> Found
        end,
        Module:get(Db, Key, [])
    ),
    Own;
step(N, #own{rows = Rows} = Own) when N =< 10 ->
    Fold = rand:uniform(3),
    same({fold, Fold}, Rows, folded(Fold, Own)),
    Own;
step(N, #own{iterators = Iterators} = Own) when N =< 12, length(Iterators) < ?MOST_ITERATORS ->
    #own{module = Module, db = Db, rows = Rows} = Own,
    {ok, Handle} = Module:iterator(Db, []),
    Own#own{iterators = [#iterator{handle = Handle, rows = Rows} | Iterators]};
step(_, #own{iterators = []} = Own) ->
    Own;
step(13, #own{module = Module, iterators = Iterators} = Own) ->
    #iterator{handle = Handle, rows = Rows} = Oldest = lists:last(Iterators),
    Collect = fun({Key, _} = Row, Found) -> [Row || is_own(Key, Own)] ++ Found end,
    same(do_fold, Rows, lists:reverse(Module:do_fold(Handle, Collect, [], []))),
    Own#own{iterators = lists:delete(Oldest, Iterators)};
step(_, #own{iterators = Iterators} = Own) ->
    Which = rand:uniform(length(Iterators)),
    {Before, [Iterator | Behind]} = lists:split(Which - 1, Iterators),
    Walked = lists:foldl(fun(_, I) -> moved(action(I, Own), I, Own) end, Iterator, lists:seq(1, rand:uniform(60))),
    Own#own{iterators = Before ++ [Walked | Behind]}.

key(#own{prefix = Prefix}) -> <<Prefix, (rand:uniform(300)):16>>.

value() -> binary:copy(<<(rand:uniform(256) - 1)>>, rand:uniform(400)).

is_own(Key, #own{prefix = Prefix}) -> binary:first(Key) =:= Prefix.

changed(Actions, #own{rows = Rows} = Own) ->
    Change = fun
        ({put, Key, Value}, Changed) -> orddict:store(Key, Value, Changed);
        ({delete, Key}, Changed) -> orddict:erase(Key, Changed)
    end,
    Own#own{rows = lists:foldl(Change, Rows, Actions)}.

same(_, Same, Same) -> ok;
same(What, Right, Got) -> error({What, {right, Right}, {got, Got}}).

%% The own rows: of a fold over everything, of one that breaks behind them, of a stream with bounds.
folded(1, #own{module = Module, db = Db} = Own) ->
    All = lists:reverse(Module:fold(Db, fun(Row, Rows) -> [Row | Rows] end, [], [])),
    same(order, lists:ukeysort(1, All), All),
    [Row || {Key, _} = Row <- All, is_own(Key, Own)];
folded(2, #own{module = Module, db = Db, prefix = Prefix} = Own) ->
    Until = fun({Key, _} = Row, Rows) ->
        case is_own(Key, Own) of
            true -> [Row | Rows];
            false -> throw({break, Rows})
        end
    end,
    lists:reverse(
        try
            Module:fold(Db, Until, [], [{first_key, <<Prefix>>}])
        catch
            {break, Rows} -> Rows
        end
    );
folded(3, #own{module = Module, db = Db, prefix = Prefix}) ->
    Options = [{fold_method, streaming}, {start_key, <<Prefix>>}, {end_key, <<(Prefix + 1)>>}, {max_batch_bytes, 2000}, {max_unacked_bytes, 8000}],
    lists:reverse(Module:fold(Db, fun(Row, Rows) -> [Row | Rows] end, [], Options)).

%% From elsewhere only a seek is of use.
action(#iterator{at = elsewhere}, Own) -> key(Own);
action(_, Own) ->
    case rand:uniform(12) of
        1 -> key(Own);
        2 -> prev;
        3 -> next;
        4 -> prefetch_stop;
        _ -> prefetch
    end.

moved(Action, #iterator{handle = Handle, rows = Rows, at = At} = Iterator, #own{module = Module} = Own) ->
    Right =
        case Action of
            prev -> lists:reverse([Row || {Key, _} = Row <- Rows, Key < At]);
            Seek when is_binary(Seek) -> [Row || {Key, _} = Row <- Rows, Key >= Seek];
            _ -> [Row || {Key, _} = Row <- Rows, Key > At]
        end,
    case {Right, Module:iterator_move(Handle, Action)} of
        {[{Key, Value} | _], Got} ->
            same({Action, At}, {ok, Key, Value}, Got),
            Iterator#iterator{at = Key};
        {[], {error, invalid_iterator}} ->
            Iterator#iterator{at = elsewhere};
        {[], {ok, Key, _} = Got} ->
            _ = is_own(Key, Own) andalso same({Action, At}, not_an_own_row, Got),
            Iterator#iterator{at = elsewhere}
    end.
