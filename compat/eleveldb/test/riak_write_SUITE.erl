%% What Riak's vnodes expect of writes, synced, packed and asynchronous, and of their failure; and that nothing is left of a call but its result.
-module(riak_write_SUITE).

-include_lib("stdlib/include/assert.hrl").
-include_lib("common_test/include/ct.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([
    objects_and_indexes_at_once/1,
    empty_write/1,
    sync_by_keyreplace/1,
    failed_write_ends_the_vnode/1,
    full_disk/1,
    async_put_contexts/1,
    async_puts_leave_the_vnode_free/1,
    async_puts_answer_when_the_store_closes/1,
    sync_put_and_sync_write/1,
    batches_of_a_mebibyte/1,
    no_stray_messages/1,
    binaries_pin_nothing/1
]).

suite() -> [{timetrap, {seconds, 180}}].

all() ->
    [F || {F, 1} <- ?MODULE:module_info(exports), not lists:member(F, [module_info, init_per_suite, end_per_suite])].

init_per_suite(Config) ->
    {ok, _} = application:ensure_all_started(eleveldb),
    Config.

end_per_suite(_Config) ->
    ok = application:stop(eleveldb).

end_per_testcase(_Case, _Config) ->
    [] = eleveldb_test:flush(),
    [] = supervisor:which_children(eleveldb_iterator_sup).

%% A vnode with a store of its own.
vnode(Config, Case) ->
    {ok, Vnode} = riak_vnode:start(eleveldb_test:dir(Config, Case), []),
    Vnode.

%% The whole or nothing of it, and an object may be missing.
objects_and_indexes_at_once(Config) ->
    Vnode = vnode(Config, ?FUNCTION_NAME),
    ok = riak_vnode:put(Vnode, <<"b">>, <<"k">>, [{add, <<"age_int">>, 7}, {add, <<"name_bin">>, <<"x">>}], <<"v1">>),
    ok = riak_vnode:put(Vnode, <<"b">>, <<"k">>, [{remove, <<"age_int">>, 7}, {add, <<"age_int">>, 8}], <<"v2">>),
    ok = riak_vnode:put(Vnode, <<"b">>, <<"k">>, [{add, <<"more_int">>, 1}], undefined),
    {ok, <<"v2">>} = riak_vnode:get(Vnode, <<"b">>, <<"k">>),
    Ref = riak_vnode:ref(Vnode),
    Indexes = [{<<"age_int">>, 8}, {<<"more_int">>, 1}, {<<"name_bin">>, <<"x">>}],
    ?assertEqual([riak_key:index(<<"b">>, Field, Term, <<"k">>) || {Field, Term} <- Indexes], tl(eleveldb_test:keys(Ref))),
    {error, _, {bad_write_action, odd}} = eleveldb:write(Ref, [{put, <<"new">>, <<>>}, odd], []),
    not_found = eleveldb:get(Ref, <<"new">>, []),
    ok = riak_vnode:delete(Vnode, <<"b">>, <<"k">>, [{remove, Field, Term} || {Field, Term} <- Indexes]),
    true = eleveldb:is_empty(Ref),
    ok = riak_vnode:stop(Vnode).

empty_write(Config) ->
    Vnode = vnode(Config, ?FUNCTION_NAME),
    ok = eleveldb:write(riak_vnode:ref(Vnode), [], []),
    ok = eleveldb:write(riak_vnode:ref(Vnode), [], [{sync, true}]),
    ok = riak_vnode:put(Vnode, <<"b">>, <<"k">>, [], undefined),
    ok = riak_vnode:stop(Vnode).

%% What was flushed is there after the program was killed. (Riak asks for it where its settings have `sync'.)
sync_by_keyreplace(Config) ->
    Dir = eleveldb_test:dir(Config, ?FUNCTION_NAME),
    {ok, Vnode} = riak_vnode:start(Dir, [{sync, false}]),
    [ok = riak_vnode:flush_put(Vnode, <<"b">>, <<N:32>>, <<"v">>) || N <- lists:seq(1, 50)],
    ok = eleveldb_test:kill(eleveldb_test:os_pid()),
    %% Its store is gone, whoever asks.
    ok = eleveldb_test:await(fun() -> not alive(Vnode) end),
    {ok, Db} = riak_vnode:open(Dir, []),
    ?assertEqual(50, length(eleveldb_test:keys(Db))),
    ok = eleveldb:close(Db).

%% Asks for an object, on which a vnode without a store ends.
alive(Vnode) ->
    try
        _ = riak_vnode:get(Vnode, <<"b">>, <<"k">>),
        true
    catch
        exit:_ -> false
    end.

%% It ends on purpose when a write says `db_write'; or with badarg, where it finds its store gone. Nothing else may come.
failed_write_ends_the_vnode(Config) ->
    Vnode = vnode(Config, ?FUNCTION_NAME),
    {Killer, Monitor} = spawn_monitor(fun() -> eleveldb_test:kill(eleveldb_test:os_pid()) end),
    Why = written_until_it_ends(Vnode),
    ?assert(element(1, Why) =:= db_write orelse element(1, Why) =:= badarg),
    receive
        {'DOWN', Monitor, process, Killer, normal} -> ok
    end.

written_until_it_ends(Vnode) ->
    Monitor = erlang:monitor(process, Vnode),
    Put = fun Put(N) ->
        case riak_vnode:put(Vnode, <<"b">>, <<N:32>>, [], <<"v">>) of
            ok -> Put(N + 1);
            {error, {db_write, [_ | _]}} -> ok
        end
    end,
    try
        Put(1)
    catch
        exit:{_, {gen_server, call, _}} -> ok
    end,
    receive
        {'DOWN', Monitor, process, Vnode, Why} -> Why
    end.

%% A program whose files may not grow beyond a size: what it says is `db_write', and what it had acknowledged is there when there is room again.
full_disk(Config) ->
    Dir = eleveldb_test:dir(Config, ?FUNCTION_NAME),
    Real = os:getenv("SCANODE_EXECUTABLE"),
    Cramped = eleveldb_test:dir(Config, "cramped"),
    ok = file:write_file(Cramped, ["#!/bin/sh\nulimit -f 4096\nexec '", Real, "' \"$@\"\n"]),
    ok = file:change_mode(Cramped, 8#755),
    ok = application:stop(eleveldb),
    true = os:putenv("SCANODE_EXECUTABLE", Cramped),
    Written =
        try
            {ok, Db} = riak_vnode:open(Dir, []),
            filled(Db, 0)
        after
            _ = application:stop(eleveldb),
            true = os:putenv("SCANODE_EXECUTABLE", Real)
        end,
    {ok, Again} = riak_vnode:open(Dir, []),
    Keys = length(eleveldb_test:keys(Again)),
    ?assert(Keys =:= Written orelse Keys =:= Written + 1),
    ok = eleveldb:close(Again).

filled(Db, Written) when Written < 1000 ->
    case eleveldb:write(Db, [{put, <<Written:32>>, rand:bytes(100000)}], [{sync, true}]) of
        ok ->
            filled(Db, Written + 1);
        {error, {db_write, [_ | _] = Text}} ->
            ct:log("after ~b rows: ~ts", [Written, Text]),
            Written
    end.

%% Each reply bears its context, any term.
async_put_contexts(Config) ->
    Db = eleveldb_test:open(Config, ?FUNCTION_NAME),
    Odd = [ctx, 1, {}, [], <<"c">>, make_ref(), self(), fun() -> ok end, #{a => 1}, {ok, {error, ctx}}],
    Contexts = [{w1c_async_put, {self(), make_ref()}, <<"type">>, <<"b">>, <<N:32>>, <<"v">>, os:timestamp()} || N <- lists:seq(1, 2000)] ++ Odd,
    [ok = eleveldb:async_put(Db, Context, <<N:32>>, <<"v">>, []) || {N, Context} <- lists:zip(lists:seq(1, length(Contexts)), Contexts)],
    [
        receive
            {Context, Reply} -> ?assertEqual(ok, Reply)
        end
     || Context <- Contexts
    ],
    ?assertEqual(length(Contexts), length(eleveldb_test:keys(Db))),
    ok = eleveldb:close(Db).

%% While many are under way others are answered; each of those that wait gets its own reply.
async_puts_leave_the_vnode_free(Config) ->
    Vnode = vnode(Config, ?FUNCTION_NAME),
    ok = riak_vnode:put(Vnode, <<"b">>, <<"other">>, [], <<"v">>),
    Asked = [{riak_vnode:w1c_put(Vnode, <<"b">>, <<N:32>>, binary:copy(<<N>>, 1000)), riak_vnode:get(Vnode, <<"b">>, <<"other">>)} || N <- lists:seq(1, 2000)],
    ?assertEqual([{reply, ok}], lists:usort([gen_server:wait_response(Request, infinity) || {Request, _} <- Asked])),
    ?assertEqual([{ok, <<"v">>}], lists:usort([Got || {_, Got} <- Asked])),
    ?assertEqual({ok, binary:copy(<<2000>>, 1000)}, riak_vnode:get(Vnode, <<"b">>, <<2000:32>>)),
    ok = riak_vnode:stop(Vnode).

async_puts_answer_when_the_store_closes(Config) ->
    Db = eleveldb_test:open(Config, ?FUNCTION_NAME),
    [ok = eleveldb:async_put(Db, {ctx, N}, <<N:32>>, <<"v">>, [{sync, true}]) || N <- lists:seq(1, 500)],
    ok = eleveldb_test:in_process(fun() -> eleveldb:close(Db) end),
    [
        receive
            {{ctx, N}, Reply} -> ?assert(Reply =:= ok orelse element(1, Reply) =:= error)
        end
     || N <- lists:seq(1, 500)
    ].

%% The reply is returned, and no message comes.
sync_put_and_sync_write(Config) ->
    Db = eleveldb_test:open(Config, ?FUNCTION_NAME),
    ok = eleveldb:sync_put(Db, {ctx, self()}, <<"a">>, <<"1">>, [{sync, true}]),
    ok = eleveldb:sync_write({ctx, self()}, Db, [{put, <<"b">>, <<"2">>}], []),
    {error, {ctx, 1}, {bad_write_action, odd}} = eleveldb:sync_write({ctx, 1}, Db, [odd], []),
    ?assertEqual([{<<"a">>, <<"1">>}, {<<"b">>, <<"2">>}], eleveldb_test:rows(Db)),
    ok = eleveldb:close(Db).

%% What Riak TS packs into one write; and one that is larger than a write buffer.
batches_of_a_mebibyte(Config) ->
    Db = eleveldb_test:open(Config, ?FUNCTION_NAME),
    Batch = fun(From) -> [{put, <<N:32>>, binary:copy(<<N>>, 1000)} || N <- lists:seq(From, From + 1047)] end,
    [ok = eleveldb:sync_write(ctx, Db, Batch(From), []) || From <- lists:seq(1, 10 * 1048, 1048)],
    ok = eleveldb:write(Db, [{put, <<N:32>>, binary:copy(<<"x">>, 1000)} || N <- lists:seq(1, 20000)], []),
    ?assertEqual(20000, length(eleveldb_test:keys(Db))),
    ok = eleveldb:close(Db).

%% After each call there is nothing but its result, also for those who were interrupted in one.
no_stray_messages(Config) ->
    Db = eleveldb_test:open(Config, ?FUNCTION_NAME),
    _ = eleveldb_test:fill(Db, 2000, 100),
    Calls = [
        fun() -> eleveldb:get(Db, <<1:32>>, []) end,
        fun() -> eleveldb:put(Db, <<"k">>, <<"v">>, []) end,
        fun() -> eleveldb:write(Db, [odd], []) end,
        fun() -> eleveldb:status(Db, <<"leveldb.stats">>) end,
        fun() -> eleveldb:is_empty(Db) end,
        fun() -> catch eleveldb:fold(Db, fun(_, _) -> throw({break, ok}) end, ok, []) end,
        fun() -> catch eleveldb:fold(Db, fun(_, _) -> error(odd) end, ok, [{fold_method, streaming}, {max_batch_bytes, 100}]) end,
        fun() ->
            {ok, It} = eleveldb:iterator(Db, []),
            [eleveldb:iterator_move(It, M) || M <- [first, prefetch, prefetch_stop]],
            eleveldb:iterator_close(It)
        end,
        fun() -> catch eleveldb:open("/proc/none-such", [{create_if_missing, true}]) end,
        fun() -> eleveldb:destroy(eleveldb_test:dir(Config, "none"), []) end
    ],
    [
        begin
            _ = Call(),
            ?assertEqual({N, []}, {N, eleveldb_test:flush()})
        end
     || {N, Call} <- lists:zip(lists:seq(1, length(Calls)), Calls)
    ],
    ok = eleveldb:close(Db).

%% What is kept for long is no more than itself: the values of a get, of a fold and of an iterator hold no batch.
binaries_pin_nothing(Config) ->
    Db = eleveldb_test:open(Config, ?FUNCTION_NAME),
    Rows = eleveldb_test:fill(Db, 3000, 200),
    {ok, It} = eleveldb:iterator(Db, []),
    Walked = [eleveldb:iterator_move(It, Action) || Action <- [first | lists:duplicate(2999, prefetch)]],
    ok = eleveldb:iterator_close(It),
    Got = [element(2, eleveldb:get(Db, K, [])) || {K, _} <- Rows],
    Kept = Got ++ [V || {ok, _, V} <- Walked] ++ [V || {_, V} <- eleveldb_test:rows(Db)],
    ?assertEqual({9000, [200]}, {length(Kept), lists:usort([binary:referenced_byte_size(V) || V <- Kept])}),
    ok = eleveldb:close(Db).

