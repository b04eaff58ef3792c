%% The tables of the benchmark: rows of five fields as Riak TS stores them, a key of 40 bytes and about 190 bytes of ttb or 147 of MessagePack.
-module(table).

-export([load/3, key/1, row/1, name/2]).

-define(WRITE, 1000).

%% @doc The name of the table of Count rows; encoding mixed is ttb and msgpack in turns.
-spec name(ttb | msgpack | mixed, pos_integer()) -> string().
name(Encoding, Count) ->
    lists:concat([Encoding, "_", Count]).

%% @doc Stores a table of scanode's own.
-spec load(file:filename(), ttb | msgpack | mixed, pos_integer()) -> ok.
load(Dir, Encoding, Count) ->
    {ok, Db} = scanode:open(Dir, #{}),
    lists:foreach(
        fun(First) ->
            Ops = [{put, key(I), riak_client:object(encoding(Encoding, I), row(I))} || I <- lists:seq(First, First + ?WRITE - 1)],
            ok = scanode:write(Db, Ops, #{})
        end,
        lists:seq(0, Count - 1, ?WRITE)
    ),
    ok = scanode:close(Db).

encoding(mixed, I) when I band 1 =:= 0 -> ttb;
encoding(mixed, _) -> msgpack;
encoding(Encoding, _) -> Encoding.

%% @doc Family, series, quantum and time.
-spec key(non_neg_integer()) -> binary().
key(I) ->
    Time = time(I),
    <<"family1", 0, "seriesX", 0, 0:64, (Time - Time rem 3600000):64, Time:64>>.

time(I) -> 1467563367600 + I * 1000.

%% @doc The fields of a row. The values are spread evenly over 0 to 100 and far from sorted, so that a bound selects an exact part of the rows.
-spec row(non_neg_integer()) -> [{binary(), term()}].
row(I) ->
    [
        {<<"time">>, time(I)},
        {<<"family">>, <<"family1">>},
        {<<"series">>, <<"seriesX">>},
        {<<"value">>, (I * 7919 rem 1000) / 10 + 0.05},
        {<<"status">>, I * 7907 rem 200}
    ].
