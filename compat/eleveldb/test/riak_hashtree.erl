%% Stands for a hash tree of Riak's anti-entropy: what that makes of a store and of an iterator, which it keeps as its snapshot.
%%
%% Keys are `<<$t, TreeId:22/binary, $s, Segment:64, Key/binary>>', values are hashes.
-module(riak_hashtree).

-export([new/1, insert/3, flush/1, delete/2, snapshot/1, select/2, clear_buckets/1, write_meta/3, read_meta/2, close/1, destroy/1]).

-record(tree, {dir, ref, buffer = [], count = 0, iterator}).

-define(ID, <<"0123456789012345678901">>).
-define(BUFFERED, 200).

new(Dir) ->
    Options = [{create_if_missing, true}, {is_internal_db, true}, {use_bloomfilter, true}, {write_buffer_size, 4194304 + rand:uniform(10485760)}],
    {Known, _} = eleveldb:validate_options(open, Options),
    {ok, Ref} = eleveldb:open(Dir, Known),
    #tree{dir = Dir, ref = Ref}.

%% Updates wait until there are two hundred.
insert(Segment, Key, Tree) -> buffered({put, encode(Segment, Key), erlang:md5(Key)}, Tree).

delete({Segment, Key}, Tree) -> buffered({delete, encode(Segment, Key)}, Tree).

buffered(Update, #tree{buffer = Buffer, count = Count} = Tree) ->
    case Tree#tree{buffer = [Update | Buffer], count = Count + 1} of
        #tree{count = ?BUFFERED} = Full -> flush(Full);
        More -> More
    end.

flush(#tree{ref = Ref, buffer = Buffer} = Tree) ->
    ok = eleveldb:write(Ref, lists:reverse(Buffer), []),
    Tree#tree{buffer = [], count = 0}.

%% The tree as it is now, for select/2, instead of the one before.
snapshot(Tree) ->
    #tree{ref = Ref, iterator = Old} = Flushed = flush(Tree),
    _ =
        try
            Old =/= undefined andalso eleveldb:iterator_close(Old)
        catch
            error:badarg -> ok
        end,
    {ok, Iterator} = eleveldb:iterator(Ref, []),
    Flushed#tree{iterator = Iterator}.

%% The keys of these segments, which are in order: a seek to the first, then on by prefetch, over a gap by another seek; and at the end prefetch_stop. From
%% any process.
select(#tree{iterator = Iterator}, [First | Rest] = Segments) ->
    Found = selected(move(Iterator, encode(First, <<>>)), Iterator, First, Rest, []),
    _ = move(Iterator, prefetch_stop),
    case Found of
        {error, _} = Error -> Error;
        _ -> gathered(Segments, Found)
    end.

gathered([], []) ->
    [];
gathered([Segment | Segments], Found) ->
    {Own, Others} = lists:splitwith(fun({S, _}) -> S =:= Segment end, Found),
    [{Segment, [Key || {_, Key} <- Own]} | gathered(Segments, Others)].

selected({error, invalid_iterator, closed}, _, _, _, _) -> {error, invalid_iterator};
selected({error, invalid_iterator}, _, _, _, Found) -> lists:reverse(Found);
selected({ok, Stored, _}, Iterator, Current, Rest, Found) ->
    case decode(Stored) of
        {Current, Key} ->
            selected(move(Iterator, prefetch), Iterator, Current, Rest, [{Current, Key} | Found]);
        Other ->
            case {Rest, Other} of
                {[], _} ->
                    lists:reverse(Found);
                {[Next | More], {Next, Key}} ->
                    selected(move(Iterator, prefetch), Iterator, Next, More, [{Next, Key} | Found]);
                {[Next | More], _} ->
                    _ = move(Iterator, prefetch_stop),
                    selected(move(Iterator, encode(Next, <<>>)), Iterator, Next, More, Found)
            end
    end.

%% A tree that is closed has no iterator.
move(Iterator, Action) ->
    try
        eleveldb:iterator_move(Iterator, Action)
    catch
        error:badarg -> {error, invalid_iterator, closed}
    end.

%% Deletes the levels of the tree, in a fold over them.
clear_buckets(#tree{ref = Ref} = Tree) ->
    First = <<$b, ?ID/binary, $b>>,
    Delete = fun
        ({<<$b, _:22/binary, $b, _/binary>> = Key, _}, Count) ->
            ok = eleveldb:delete(Ref, Key, []),
            Count + 1;
        (_, Count) ->
            throw({break, Count})
    end,
    Cleared =
        try
            eleveldb:fold(Ref, Delete, 0, [{first_key, First}])
        catch
            {break, Count} -> Count
        end,
    {Cleared, Tree}.

write_meta(Name, Value, #tree{ref = Ref} = Tree) ->
    ok = eleveldb:put(Ref, <<$m, Name/binary>>, Value, []),
    Tree.

read_meta(Name, #tree{ref = Ref}) -> eleveldb:get(Ref, <<$m, Name/binary>>, []).

close(#tree{ref = Ref, iterator = Iterator}) ->
    _ = [eleveldb:iterator_close(Iterator) || Iterator =/= undefined],
    eleveldb:close(Ref).

destroy(#tree{dir = Dir} = Tree) ->
    ok = close(Tree),
    eleveldb:destroy(Dir, []).

encode(Segment, Key) -> <<$t, ?ID/binary, $s, Segment:64, Key/binary>>.

decode(<<$t, Id:22/binary, $s, Segment:64, Key/binary>>) when Id =:= ?ID -> {Segment, Key};
decode(_) -> other.
