%% Work for a scanode node over a link, through the client application and beside it, and what a link must survive meanwhile. Runs in a BEAM of any release,
%% compiled there: nothing newer than OTP 23.
-module(interop_load).

-export([client/2, shared/3, tick/4]).

-import(interop_peer, [await/1]).

%% Open, write, read, fold and filter with the application's own functions; the model is a list.
client(Node, Dir) ->
    {ok, Db} = scanode:open(Dir, #{node => Node}),
    Rows = riak_rows:generate(7, 2000),
    Objects = lists:keysort(1, [{riak_rows:key(Row), riak_rows:encode(Row, encoding(Row)), Row} || Row <- Rows]),
    ok = scanode:write(Db, [{put, Key, Object} || {Key, Object, _} <- Objects], [sync]),
    Collect = fun(Row, Acc) -> [Row | Acc] end,
    All = lists:reverse(scanode:fold(Db, Collect, [], #{})),
    All = [{Key, Object} || {Key, Object, _} <- Objects],
    Keys = lists:reverse(scanode:fold(Db, Collect, [], [{rows, keys}, {max_batch_bytes, 500}, {max_unacked_bytes, 2000}])),
    Keys = [Key || {Key, _, _} <- Objects],
    Filter = {and_, {'>', {field, <<"temperature">>, double}, {const, 12.5}}, {'=', {field, <<"station">>, varchar}, {const, <<"station3">>}}},
    Matching = lists:reverse(scanode:fold(Db, Collect, [], #{rows => keys, filter => Filter})),
    Matching = [Key || {Key, _, Row} <- Objects, riak_rows:matches(Filter, Row) =:= true],
    true = length(Matching) > 10,
    {First, _, _} = hd(Objects),
    {ok, _} = scanode:get(Db, First),
    ok = scanode:delete(Db, First),
    not_found = scanode:get(Db, First),
    [_, _, _] = scanode:fold(Db, Collect, [], #{limit => 3}),
    %% A fold that its caller leaves, and one whose store is closed.
    thrown = try scanode:fold(Db, fun(_, _) -> throw(thrown) end, [], #{max_batch_bytes => 500}) catch throw:T -> T end,
    ok = await(fun() -> {ok, #{streams := Streams}} = scanode:info(Db), Streams =:= 0 end),
    %% Pages in both directions, and answers that come as messages.
    {ok, Iterator} = scanode:iterator(Db, #{rows => keys}),
    [_ | Left] = Keys,
    Backwards = lists:reverse(Left),
    {ok, Left, done} = scanode:iterator_read(Iterator, first, #{max_rows => 10000}),
    {ok, Backwards, done} = scanode:iterator_read(Iterator, last, #{max_rows => 10000}),
    _ = [ok = scanode:async_write(Db, {ctx, I}, [{put, <<I:32, "async">>, <<>>}, {delete, <<I:32, "async">>}], #{}) || I <- lists:seq(1, 1000)],
    _ = [receive {{ctx, I}, ok} -> ok end || I <- lists:seq(1, 1000)],
    ok = scanode:close(Iterator),
    {error, {bad_path, _}} = scanode:open("/absolute", #{node => Node}),
    {error, {bad_option, _}} = scanode:open(Dir ++ "2", #{node => Node, no_such_option => 1}),
    {error, {locked, _}} = scanode:open(Dir, #{node => Node}),
    ok = scanode:close(Db),
    {error, closed} = scanode:get(Db, First),
    {scan, closed} = try scanode:fold(Db, Collect, [], #{}) catch error:E -> E end,
    %% Values from nothing to larger than any buffer on the way.
    {ok, Large} = scanode:open(Dir ++ "_large", #{node => Node}),
    Values = [{<<I>>, binary:copy(<<I>>, Size)} || {I, Size} <- [{1, 0}, {2, 1}, {3, 65535}, {4, 1 bsl 20}, {5, 10 bsl 20}]],
    _ = [ok = scanode:put(Large, Key, Value) || {Key, Value} <- Values],
    Values = [begin {ok, Value} = scanode:get(Large, Key), {Key, Value} end || {Key, _} <- Values],
    Values = lists:reverse(scanode:fold(Large, Collect, [], #{})),
    ok = scanode:close(Large),
    nothing_left().

nothing_left() ->
    receive
        Message -> error({left_behind, Message})
    after 0 ->
        ok
    end.

encoding(Row) ->
    case erlang:phash2(Row, 2) of
        0 -> ttb;
        1 -> msgpack
    end.

%% Several BEAMs use one node at the same time: each writes Count rows to a store of its own in small writes while it reads the whole of it again and again.
shared(Node, Dir, Count) ->
    {ok, Db} = scanode:open(Dir, #{node => Node}),
    Row = fun(I) -> {<<I:32>>, <<I:32, 0:800>>} end,
    {Writer, Ref} = spawn_monitor(fun() ->
        _ = [ok = scanode:write(Db, [{put, K, V} || {K, V} <- [Row(I), Row(I + Count)]], #{}) || I <- lists:seq(1, Count)]
    end),
    Folds = fold_until(Writer, Ref, Db, Row, Count, 0),
    All = [Row(I) || I <- lists:seq(1, 2 * Count)],
    All = lists:reverse(scanode:fold(Db, fun(R, Acc) -> [R | Acc] end, [], #{max_batch_bytes => 4096})),
    ok = scanode:close(Db),
    Folds.

%% Every fold sees both rows of a write or none, and all writes before one that it sees.
fold_until(Writer, Ref, Db, Row, Count, Folds) ->
    Rows = scanode:fold(Db, fun(R, Acc) -> [R | Acc] end, [], #{max_batch_bytes => 1024, max_unacked_bytes => 4096}),
    Written = lists:seq(1, length(Rows) div 2),
    Rows = lists:reverse([Row(I) || I <- Written] ++ [Row(I + Count) || I <- Written]),
    receive
        {'DOWN', Ref, process, Writer, normal} -> Folds + 1
    after 0 ->
        fold_until(Writer, Ref, Db, Row, Count, Folds + 1)
    end.

%% The link to Node lives for Ms milliseconds with this BEAM's net_ticktime of Ticktime seconds: idle, or while folds and writes keep it busy.
tick(Node, Ticktime, Load, Ms) ->
    Ticktime = net_kernel:get_net_ticktime(),
    pong = net_adm:ping(Node),
    true = erlang:monitor_node(Node, true),
    Worker =
        case Load of
            idle -> none;
            busy -> spawn_link(fun() -> busy(Node) end)
        end,
    receive
        {nodedown, Node} -> error(link_lost)
    after Ms ->
        ok
    end,
    %% Looked at before anything is sent, which would bring it up again.
    true = lists:member(Node, nodes(hidden)),
    case Worker of
        none ->
            {ok, _} = gen_server:call({scanode, Node}, info);
        Pid ->
            Pid ! {stop, self()},
            receive
                {Pid, Rounds} when Rounds > 0 -> ok
            end
    end,
    true = erlang:monitor_node(Node, false),
    ok.

busy(Node) ->
    {ok, Db} = scanode:open(iolist_to_binary(["busy_", os:getpid()]), #{node => Node}),
    Value = binary:copy(<<"v">>, 10000),
    busy(Db, Value, 0).

busy(Db, Value, Rounds) ->
    ok = scanode:write(Db, [{put, <<I:32>>, Value} || I <- lists:seq(1, 200)], #{}),
    200 = scanode:fold(Db, fun({_, V}, N) when V =:= Value -> N + 1 end, 0, #{}),
    receive
        {stop, From} ->
            ok = scanode:close(Db),
            From ! {self(), Rounds + 1}
    after 0 ->
        busy(Db, Value, Rounds + 1)
    end.
