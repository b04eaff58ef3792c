%% The application is stopped while handles are in use. Oracle: badarg, which is what eleveldb's functions raise with handles of what is closed; and no
%% message but those of asynchronous writes, one each.
-module(eleveldb_stopped_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0]).
-export([handles/1, opened_anew/1]).

all() -> [handles, opened_anew].

handles(Config) ->
    Db = eleveldb_test:open(Config, ?FUNCTION_NAME),
    _ = eleveldb_test:fill(Db, 10, 10),
    {ok, Itr} = eleveldb:iterator(Db, []),
    {ok, _, _} = eleveldb:iterator_move(Itr, first),
    {ok, Other} = eleveldb:iterator(Db, []),
    Count = fun(_, N) -> N + 1 end,
    ok = application:stop(eleveldb),
    [
        ?assertError(badarg, apply(eleveldb, Name, Args), Name)
     || {Name, Args} <- [
            {get, [Db, <<1:32>>, []]},
            {put, [Db, <<1:32>>, <<>>, []]},
            {write, [Db, [], []]},
            {iterator, [Db, []]},
            {iterator, [Db, [], keys_only]},
            {iterator_move, [Itr, next]},
            {iterator_close, [Itr]},
            {do_fold, [Other, Count, 0, []]},
            {fold, [Db, Count, 0, []]},
            {fold, [Db, Count, 0, [{fold_method, streaming}]]},
            {fold_keys, [Db, Count, 0, []]},
            {is_empty, [Db]},
            {status, [Db, <<"leveldb.stats">>]},
            {close, [Db]}
        ]
    ],
    [] = eleveldb_test:flush().

opened_anew(Config) ->
    Dir = eleveldb_test:dir(Config, ?FUNCTION_NAME),
    {ok, Db} = eleveldb:open(Dir, [{create_if_missing, true}]),
    ok = eleveldb:put(Db, <<"k">>, <<"v">>, []),
    ok = application:stop(eleveldb),
    {ok, Again} = eleveldb:open(Dir, []),
    {ok, <<"v">>} = eleveldb:get(Again, <<"k">>, []),
    ok = application:stop(eleveldb).
