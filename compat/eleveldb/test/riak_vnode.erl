%% Stands for a partition's process of Riak with its eleveldb backend: what that calls, in what order, and what it relies on. Each function that is called with
%% a process's id is a request to it; the others are what the backend does, in the calling process.
-module(riak_vnode).

-behaviour(gen_server).

-export([start/2, stop/1, put/5, flush_put/4, w1c_put/4, get/3, delete/4, ref/1, fold/5, is_empty/1, data_size/1, drop/1]).
-export([options/2, open/2, open/3]).
-export([fold_buckets/3, fold_keys/4, fold_objects/4, fold_index/5]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

%% As Riak has them: tries of 2000 ms are a budget of a minute.
-define(TRIES, 30).
-define(DELAY_MS, 2000).

-record(state, {dir, ref, write_options, fold_options, w1c_pending = 0}).

%% Requests

start(Dir, Config) -> gen_server:start(?MODULE, {Dir, Config}, []).

%% Waits until it has terminated, as a node that shuts down does.
stop(Vnode) -> gen_server:stop(Vnode, shutdown, infinity).

%% An object and what it adds to and removes from indexes, `{add | remove, Field, Term}', at once. An object may be undefined: only the indexes change.
put(Vnode, Bucket, Key, Specs, Value) -> gen_server:call(Vnode, {put, Bucket, Key, Specs, Value, []}, infinity).

%% The same without indexes, on the disk when it returns.
flush_put(Vnode, Bucket, Key, Value) -> gen_server:call(Vnode, {put, Bucket, Key, [], Value, [flush]}, infinity).

%% A value that is written once. The process does other things until the store has answered; From gets the reply then.
w1c_put(Vnode, Bucket, Key, Value) -> gen_server:send_request(Vnode, {w1c_put, Bucket, Key, Value}).

get(Vnode, Bucket, Key) -> gen_server:call(Vnode, {get, Bucket, Key}, infinity).

delete(Vnode, Bucket, Key, Specs) -> gen_server:call(Vnode, {delete, Bucket, Key, Specs}, infinity).

%% The handle, for processes that work for the vnode.
ref(Vnode) -> gen_server:call(Vnode, ref, infinity).

%% By How: sync, the accumulator; async, `{async, F}', F being for another process, where the snapshot is taken; snap_prefold, `{queue, F}', the snapshot having
%% been taken.
fold(Vnode, How, Fun, Acc, Options) -> gen_server:call(Vnode, {fold, How, Fun, Acc, Options}, infinity).

is_empty(Vnode) -> gen_server:call(Vnode, is_empty, infinity).

data_size(Vnode) -> gen_server:call(Vnode, data_size, infinity).

drop(Vnode) -> gen_server:call(Vnode, drop, infinity).

%% The process

init({Dir, Config}) ->
    %% So that terminate/2 is called.
    _ = process_flag(trap_exit, true),
    {_, Write, Fold} = options(Config, true),
    case open(Dir, Config) of
        {ok, Ref} -> {ok, #state{dir = Dir, ref = Ref, write_options = Write, fold_options = Fold}};
        {error, Reason} -> {stop, Reason}
    end.

handle_call({put, Bucket, Key, Specs, Value, Flags}, _From, #state{ref = Ref, write_options = Options} = State) ->
    Object =
        case Value of
            undefined -> [];
            _ -> [{put, riak_key:object(Bucket, Key), Value}]
        end,
    Sync =
        case Flags of
            [flush] -> lists:keyreplace(sync, 1, Options, {sync, true});
            [] -> Options
        end,
    written(eleveldb:write(Ref, Object ++ changes(Bucket, Key, Specs), Sync), State);
handle_call({delete, Bucket, Key, Specs}, _From, #state{ref = Ref, write_options = Options} = State) ->
    written(eleveldb:write(Ref, [{delete, riak_key:object(Bucket, Key)} | changes(Bucket, Key, Specs)], Options), State);
handle_call({w1c_put, Bucket, Key, Value}, From, #state{ref = Ref, write_options = Options, w1c_pending = Pending} = State) ->
    Context = {w1c_async_put, From, w1c_type, Bucket, Key, Value, os:timestamp()},
    ok = eleveldb:async_put(Ref, Context, riak_key:object(Bucket, Key), Value, Options),
    {noreply, State#state{w1c_pending = Pending + 1}};
handle_call({get, Bucket, Key}, _From, #state{ref = Ref} = State) ->
    {reply, eleveldb:get(Ref, riak_key:object(Bucket, Key), []), State};
handle_call(ref, _From, #state{ref = Ref} = State) ->
    {reply, Ref, State};
handle_call({fold, How, Fun, Acc, Options}, _From, #state{ref = Ref, fold_options = FoldOptions} = State) ->
    All = Options ++ FoldOptions,
    Reply =
        case How of
            sync ->
                broken(fun() -> eleveldb:fold(Ref, Fun, Acc, All) end);
            async ->
                {async, fun() -> broken(fun() -> eleveldb:fold(Ref, Fun, Acc, All) end) end};
            snap_prefold ->
                {ok, Iterator} = eleveldb:iterator(Ref, All),
                {queue, fun() -> broken(fun() -> eleveldb:do_fold(Iterator, Fun, Acc, All) end) end}
        end,
    {reply, Reply, State};
handle_call(is_empty, _From, #state{ref = Ref} = State) ->
    {reply, is_empty_but_for_the_marker(Ref), State};
handle_call(data_size, _From, #state{ref = Ref} = State) ->
    {reply, total_bytes(Ref), State};
handle_call(drop, _From, #state{ref = Ref, dir = Dir} = State) ->
    ok = eleveldb:close(Ref),
    {reply, eleveldb:destroy(Dir, []), State#state{ref = undefined}}.

handle_cast(_, State) -> {noreply, State}.

handle_info({{w1c_async_put, From, _Type, _Bucket, _Key, _Value, _Start}, Reply}, #state{w1c_pending = Pending} = State) ->
    _ = gen_server:reply(From, Reply),
    {noreply, State#state{w1c_pending = Pending - 1}};
handle_info({'EXIT', _, Reason}, State) ->
    {stop, Reason, State};
handle_info(Message, State) ->
    {stop, {stray_message, Message}, State}.

terminate(_Reason, #state{ref = undefined}) ->
    ok;
terminate(_Reason, #state{ref = Ref}) ->
    try
        eleveldb:close(Ref)
    catch
        error:badarg -> ok
    end.

%% What cannot be written ends the vnode, so that the store is opened anew; what was refused for its own sake does not.
written(ok, State) -> {reply, ok, State};
written({error, {db_write, _} = Reason} = Error, State) -> {stop, Reason, Error, State};
written(Error, State) -> {reply, Error, State}.

changes(Bucket, Key, Specs) ->
    [
        case Change of
            add -> {put, riak_key:index(Bucket, Field, Term, Key), <<>>};
            remove -> {delete, riak_key:index(Bucket, Field, Term, Key)}
        end
     || {Change, Field, Term} <- Specs
    ].

%% Opening

%% What the store is opened, written and folded with: the application's environment under the backend's own settings, and of that what the module says it knows.
%% The size of the write buffer is drawn, so that stores are not flushed at the same moment.
options(Config, CreateIfMissing) ->
    Merged = orddict:merge(fun(_, _, Own) -> Own end, orddict:from_list(application:get_all_env(eleveldb)), orddict:from_list(Config)),
    Least = proplists:get_value(write_buffer_size_min, Merged, 30 * 1024 * 1024),
    Most = proplists:get_value(write_buffer_size_max, Merged, 60 * 1024 * 1024),
    All = orddict:store(create_if_missing, CreateIfMissing, orddict:store(write_buffer_size, Least + rand:uniform(1 + Most - Least), Merged)),
    {Open, _} = eleveldb:validate_options(open, All),
    {Read, _} = eleveldb:validate_options(read, All),
    {Write, _} = eleveldb:validate_options(write, All),
    {Open, Write, orddict:store(fill_cache, false, Read)}.

open(Dir, Config) -> open(Dir, Config, {?TRIES, ?DELAY_MS}).

%% Tries again only for the text of a lock.
open(Dir, Config, {Tries, DelayMs}) ->
    ok = filelib:ensure_dir(filename:join(Dir, "dummy")),
    {Options, _, _} = options(Config, true),
    retry(Dir, Options, Tries, DelayMs, undefined).

retry(_, _, 0, _, Error) ->
    Error;
retry(Dir, Options, Tries, DelayMs, _) ->
    case eleveldb:open(Dir, Options) of
        {ok, Ref} ->
            {ok, Ref};
        {error, {db_open, Text}} = Error ->
            case lists:prefix("IO error: lock ", Text) of
                true ->
                    receive
                    after DelayMs -> retry(Dir, Options, Tries - 1, DelayMs, Error)
                    end;
                false ->
                    Error
            end
    end.

%% Folding

broken(Fold) ->
    try
        Fold()
    catch
        {break, Acc} -> Acc
    end.

%% A marker is there always. So beyond the store's own word the first other key counts.
is_empty_but_for_the_marker(Ref) ->
    Marker = riak_key:marker(),
    Other = fun
        (Key, true) when Key =:= Marker -> true;
        (_, true) -> throw({break, false})
    end,
    eleveldb:is_empty(Ref) orelse broken(fun() -> eleveldb:fold_keys(Ref, Other, true, [{fill_cache, false}]) end).

total_bytes(Ref) ->
    {ok, Bytes} = eleveldb:status(Ref, <<"leveldb.total-bytes">>),
    {binary_to_integer(Bytes), bytes}.

%% The buckets, found by jumping from one to the next as the keys come.
fold_buckets(Ref, Fun, Acc) ->
    From = riak_key:encode({o, {<<>>, <<>>}, <<>>}),
    Each = fun(Key, {Last, Folded}) ->
        case riak_key:decode(Key) of
            {o, Last, _} -> {Last, Folded};
            {o, Bucket, _} -> {Bucket, Fun(Bucket, Folded)};
            _ -> throw({break, {Last, Folded}})
        end
    end,
    {_, Buckets} = broken(fun() -> eleveldb:fold_keys(Ref, Each, {none, Acc}, [{first_key, From}, {fill_cache, false}]) end),
    Buckets.

%% Of one bucket or of all. The end is where another bucket, or no object, comes; keys that mean nothing are passed over.
fold_keys(Ref, Bucket, Fun, Acc) ->
    broken(fun() -> eleveldb:fold_keys(Ref, until_other(Bucket, fun(B, K, _, A) -> Fun(B, K, A) end), Acc, from(Bucket)) end).

fold_objects(Ref, Bucket, Fun, Acc) ->
    broken(fun() -> eleveldb:fold(Ref, until_other(Bucket, Fun), Acc, [{iterator_refresh, true} | from(Bucket)]) end).

from(all) -> [{first_key, riak_key:encode({o, {<<>>, <<>>}, <<>>})}, {fill_cache, false}];
from(Bucket) -> [{first_key, riak_key:object(Bucket, <<>>)}, {fill_cache, false}].

until_other(Wanted, Fun) ->
    fun(Row, Acc) ->
        {Stored, Value} =
            case Row of
                {_, _} -> Row;
                _ -> {Row, none}
            end,
        case riak_key:decode(Stored) of
            {o, Bucket, Key} when Wanted =:= all; Bucket =:= Wanted -> Fun(Bucket, Key, Value, Acc);
            undefined -> Acc;
            _ -> throw({break, Acc})
        end
    end.

%% Entries of an index from a term, or from behind an entry, to a term; at most Max.
fold_index(Ref, Bucket, Field, {From, To}, Max) ->
    {First, Last} =
        case From of
            {'after', LastTerm, LastKey} -> {riak_key:index(Bucket, Field, LastTerm, LastKey), {LastTerm, LastKey}};
            _ -> {riak_key:index(Bucket, Field, From, <<>>), none}
        end,
    Each = fun(Stored, Found) ->
        case riak_key:decode(Stored) of
            {i, Bucket, Field, Term, Key} when {Term, Key} =:= Last -> Found;
            {i, Bucket, Field, Term, Key} when Term =< To, length(Found) < Max -> [{Term, Key} | Found];
            _ -> throw({break, Found})
        end
    end,
    lists:reverse(broken(fun() -> eleveldb:fold_keys(Ref, Each, [], [{first_key, First}, {fill_cache, false}]) end)).
