%% Where the commands of prop_eleveldb are done: the module under test, the directories of two stores, three processes that take turns, and the handles.
-module(prop_world).

-export([enter/2, leave/0, tidy/2, renew/0, ran/0]).
-export([run/1]).

-define(PROCESSES, [1, 2, 3]).
-define(STORES, [a, b]).

%% Makes it, below the directory Root, as a sequence finds it: the first store is open, by the first process, and empty.
enter(Module, Root) ->
    _ = ets:new(?MODULE, [named_table, public]),
    true = ets:insert(?MODULE, [{module, Module}, {root, Root}, {number, 0}]),
    begun().

leave() ->
    ok = closed(),
    true = ets:delete(?MODULE),
    ok.

%% After a sequence: Folding are the processes with a fold under way; FirstIsOpen is `{true, Keys}' if the first store is open by the first process, with these
%% rows.
tidy(Folding, FirstIsOpen) ->
    _ = [run({resume, P}) || P <- Folding],
    _ = [attempt(iterator_close, [Iterator]) || [Iterator] <- ets:match(?MODULE, {{iterator, '_'}, '$1'})],
    true = ets:match_delete(?MODULE, {{iterator, '_'}, '_'}),
    true = ets:match_delete(?MODULE, {{old, '_'}, '_'}),
    gone(b),
    case FirstIsOpen of
        {true, Keys} ->
            ok = call(write, [value({handle, a}), [{delete, Key} || Key <- Keys], []]),
            ok;
        false ->
            gone(a),
            first()
    end.

gone(D) ->
    _ = [attempt(close, [Handle]) || [Handle] <- ets:match(?MODULE, {{handle, D}, '$1'})],
    true = ets:delete(?MODULE, {handle, D}),
    ok = again(true, fun() -> call(destroy, [value({dir, D}), []]) end).

%% After a sequence that failed: nobody knows what there is, so all of it is new.
renew() ->
    ok = closed(),
    begun().

begun() ->
    Number = ets:update_counter(?MODULE, number, 1),
    Dir = fun(D) -> filename:join([value(root), integer_to_list(Number), atom_to_list(D)]) end,
    true = ets:insert(?MODULE, [{{dir, D}, Dir(D)} || D <- ?STORES]),
    _ = [work(P) || P <- ?PROCESSES],
    first().

first() ->
    {ok, []} = run({open, 1, a, [{create_if_missing, true}], false}),
    ok.

closed() ->
    _ = [fired(P) || P <- ?PROCESSES],
    _ = [attempt(close, [Handle]) || [Handle] <- ets:match(?MODULE, {{handle, '_'}, '$1'})],
    _ = [ets:match_delete(?MODULE, {{Kind, '_'}, '_'}) || Kind <- [handle, old, iterator]],
    ok.

value(Key) -> ets:lookup_element(?MODULE, Key, 2).

call(Function, Args) -> apply(value(module), Function, Args).

attempt(Function, Args) ->
    try
        call(Function, Args)
    catch
        Class:Reason -> {raised, Class, Reason}
    end.

%% The processes

work(P) ->
    Process = spawn(fun worker/0),
    true = ets:insert(?MODULE, {{process, P}, Process}),
    ok.

worker() ->
    receive
        {do, To, Fun} ->
            _ = put(to, To),
            Result =
                try
                    Fun()
                catch
                    Class:Reason -> {raised, Class, Reason}
                end,
            reply(Result),
            worker()
    end.

%% The messages are those that nobody should have sent.
reply(Result) ->
    {Asker, Ref} = get(to),
    _ = Asker ! {Ref, Result, eleveldb_test:flush()},
    ok.

fired(P) ->
    Process = value({process, P}),
    Monitor = erlang:monitor(process, Process),
    true = exit(Process, kill),
    receive
        {'DOWN', Monitor, process, Process, _} -> ok
    end.

%% What the process of that number makes of a message.
ask(P, Message) ->
    Process = value({process, P}),
    Ref = erlang:monitor(process, Process),
    _ = Process ! Message({self(), Ref}),
    receive
        {Ref, Result, Messages} ->
            true = erlang:demonitor(Ref, [flush]),
            {Result, Messages};
        {'DOWN', Ref, process, Process, Why} ->
            {{its_process_died, Why}, []}
    end.

in(P, Fun) -> ask(P, fun(To) -> {do, To, Fun} end).

%% The commands

%% What was returned or `{raised, Class, Reason}', in the words of the model, and the messages that it left.
run(Command) ->
    _ = ets:update_counter(?MODULE, {ran, element(1, Command)}, 1, {{ran, element(1, Command)}, 0}),
    ran(Command).

%% How often each command was done.
ran() -> lists:sort([{Name, Times} || [Name, Times] <- ets:match(?MODULE, {{ran, '$1'}, '$2'})]).

ran({die, P}) ->
    ok = fired(P),
    ok = work(P),
    {died, []};
ran({resume, P}) ->
    ask(P, fun(To) -> {go_on, To} end);
ran(Command) ->
    {Result, Messages} = in(element(2, Command), fun() -> done(Command) end),
    {named(Result), Messages}.

done({open, _, D, Options, Again}) ->
    case again(Again, fun() -> call(open, [value({dir, D}), Options]) end) of
        {ok, Handle} ->
            _ = [true = ets:insert(?MODULE, {{old, D}, Old}) || [Old] <- ets:match(?MODULE, {{handle, D}, '$1'})],
            true = ets:insert(?MODULE, {{handle, D}, Handle}),
            ok;
        Error ->
            Error
    end;
done({close, _, D}) -> call(close, [value({handle, D})]);
done({destroy, _, D, Again}) -> again(Again, fun() -> call(destroy, [value({dir, D}), []]) end);
done({write, _, D, Actions, Sync}) -> call(write, [value({handle, D}), Actions, [{sync, Sync}]]);
done({put, _, D, Key, Value}) -> call(put, [value({handle, D}), Key, Value, []]);
done({delete, _, D, Key}) -> call(delete, [value({handle, D}), Key, []]);
done({fill, _, D, From, Count, Step}) -> call(write, [value({handle, D}), prop_eleveldb:filling(From, Count, Step), []]);
done({async_put, P, D, Key, Value}) ->
    Context = {w1c_async_put, {self(), make_ref()}, P, Key},
    ok = call(async_put, [value({handle, D}), Context, Key, Value, []]),
    receive
        {Context, Result} -> Result
    end;
done({get, _, D, Key}) -> call(get, [value({handle, D}), Key, []]);
done({is_empty, _, D}) -> call(is_empty, [value({handle, D})]);
done({fold, _, D, Bounds, Break}) -> fold(value({handle, D}), Bounds, breaking(Break));
done({fold_over_writes, _, D, Method, Actions}) ->
    Handle = value({handle, D}),
    fold(Handle, {Method, first}, at_first(fun() -> ok = call(write, [Handle, Actions, []]) end));
done({fold_over_close, _, D, Method}) ->
    Handle = value({handle, D}),
    fold(Handle, {Method, first}, at_first(fun() -> ok = call(close, [Handle]) end));
done({pause, _, D, Method}) ->
    fold(value({handle, D}), {Method, first}, at_first(fun pause/0));
done({iterator, _, D, I, Kind}) ->
    Made =
        case Kind of
            kv -> call(iterator, [value({handle, D}), []]);
            keys -> call(iterator, [value({handle, D}), [], keys_only])
        end,
    {ok, Iterator} = Made,
    _ = [attempt(iterator_close, [Old]) || [Old] <- ets:match(?MODULE, {{iterator, I}, '$1'})],
    true = ets:insert(?MODULE, {{iterator, I}, Iterator}),
    ok;
done({move, _, I, Action}) -> call(iterator_move, [value({iterator, I}), Action]);
done({iterator_close, _, I}) -> call(iterator_close, [value({iterator, I})]);
done({do_fold, _, I, Start, Break}) -> rows(call(do_fold, [value({iterator, I}), breaking(Break), [], [{first_key, Start}]]));
done({stale, _, D, get}) -> call(get, [value({old, D}), <<>>, []]);
done({stale, _, D, put}) -> call(put, [value({old, D}), <<>>, <<>>, []]);
done({stale, _, D, fold}) -> fold(value({old, D}), {fold, first}, breaking(none));
done({stale, _, D, iterator}) -> call(iterator, [value({old, D}), []]).

fold(Handle, {fold, Start}, Fun) -> rows(call(fold, [Handle, Fun, [], [{first_key, Start}]]));
fold(Handle, {fold_keys, Start}, Fun) -> rows(call(fold_keys, [Handle, Fun, [], [{start_key, Start}]]));
fold(Handle, {stream, first}, Fun) -> fold(Handle, {stream, <<>>, undefined, true, false, 0, 100}, Fun);
fold(Handle, {stream, Start, End, StartIn, EndIn, Limit, BatchBytes}, Fun) ->
    Sizes = [{max_batch_bytes, BatchBytes}, {max_unacked_bytes, 10 * BatchBytes}],
    Options = [{start_key, Start}, {end_key, End}, {start_inclusive, StartIn}, {end_inclusive, EndIn}, {limit, Limit} | Sizes],
    rows(call(fold, [Handle, Fun, [], [{fold_method, streaming} | Options]])).

rows(Rows) when is_list(Rows) -> lists:reverse(Rows);
rows(Other) -> Other.

breaking(Break) ->
    fun(Row, Rows) ->
        case length(Rows) + 1 of
            Break -> throw({break, lists:reverse([Row | Rows])});
            _ -> [Row | Rows]
        end
    end.

at_first(Fun) ->
    fun
        (Row, []) ->
            _ = Fun(),
            [Row];
        (Row, Rows) ->
            [Row | Rows]
    end.

%% Answers the command, and waits for the one that goes on.
pause() ->
    reply(paused),
    receive
        {go_on, To} -> put(to, To)
    end.

%% Until the program has heard of the opener's death, as long as Riak tries.
again(false, Fun) -> Fun();
again(true, Fun) -> again(Fun, 3000);
again(Fun, Tries) ->
    case Fun() of
        {error, {_, "IO error: lock " ++ _}} when Tries > 0 ->
            receive
            after 20 -> again(Fun, Tries - 1)
            end;
        Result ->
            Result
    end.

named({error, {Tag, "IO error: lock " ++ _}}) when Tag =:= db_open; Tag =:= error_db_destroy -> {error, {Tag, lock}};
named({error, {db_open, "Invalid argument: " ++ Text}}) ->
    case {lists:suffix(": does not exist (create_if_missing is false)", Text), lists:suffix(": exists (error_if_exists is true)", Text)} of
        {true, false} -> {error, {db_open, missing}};
        {false, true} -> {error, {db_open, exists}};
        _ -> {error, {db_open, Text}}
    end;
named({error, {db_write, "rejected: the store is closed"}}) -> rejected;
named({einval, Ref}) when is_reference(Ref) -> {einval, ref};
named(Result) -> Result.
