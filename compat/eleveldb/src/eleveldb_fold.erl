%% @private
%% Folds: a scan whose rows are asked for, batch by batch, in the process that folds. So all that fails is known apart from what the callback raises, no
%% message of it comes unasked, and a callback that blocks holds up nothing but its own scan.
-module(eleveldb_fold).

-export([rows/3, stream/2, iterator_error/1]).
-export_type([source/0]).

-type source() :: #{
    %% What is folded over: a store, or a view of one that an iterator keeps.
    view := scanode:db(),
    %% The store itself, and the mark that it is closed.
    db := scanode:db(),
    closed := atomics:atomics_ref(),
    rows := kv | keys,
    %% The same mark of the iterator whose view it is.
    ended => atomics:atomics_ref(),
    %% Milliseconds after which a new view is taken.
    refresh := timeout()
}.

-type callback(Acc) :: fun((term(), Acc) -> Acc).

%% How the faults of a scan are raised.
-type raise() :: fun((scanode:reason()) -> no_return()).

%% @doc Folds over all rows from a key on, or from the first.
-spec rows(source(), first | binary(), {callback(Acc), Acc}) -> Acc.
rows(#{view := View, rows := Rows, refresh := Refresh} = Source, Start, {Fun, Acc}) ->
    Options = bounds(Start, options(Rows)),
    case run(View, Options, until(Refresh), Source, Fun, Acc, fun iterator_error/1) of
        {refresh, Last, Folded} -> again(Source, Last, {Fun, Folded});
        {done, Folded} -> Folded
    end.

%% With a new view, behind the last key.
-spec again(source(), binary(), {callback(Acc), Acc}) -> Acc.
again(#{db := Db, rows := Rows, refresh := Refresh} = Source, Key, {Fun, Acc}) ->
    Options = (options(Rows))#{start => Key, start_inclusive => false},
    case run(Db, Options, until(Refresh), Source, Fun, Acc, fun iterator_error/1) of
        {refresh, Last, Folded} -> again(Source, Last, {Fun, Folded});
        {done, Folded} -> Folded
    end.

%% @doc Folds over a range, with the options of scanode:fold/4.
-spec stream(source(), {map(), callback(Acc), Acc}) -> Acc.
stream(#{view := View} = Source, {Options, Fun, Acc}) ->
    {done, Folded} = run(View, Options, infinity, Source, Fun, Acc, fun streaming_error/1),
    Folded.

%% No end is known, and what ends the fold is mostly an exception of the callback, as soon as it has what it wants.
-spec options(kv | keys) -> map().
options(Rows) -> #{rows => Rows, slow_start => true}.

-spec bounds(first | binary(), map()) -> map().
bounds(first, Options) -> Options;
bounds(Key, Options) -> Options#{start => Key}.

-spec until(timeout()) -> integer() | infinity.
until(infinity) -> infinity;
until(Refresh) -> erlang:monotonic_time(millisecond) + Refresh.

-spec run(scanode:db(), map(), integer() | infinity, source(), callback(Acc), Acc, raise()) -> {done, Acc} | {refresh, binary(), Acc}.
run(View, Options, Until, Source, Fun, Acc, Raise) ->
    case scanode:scan_start(View, Options) of
        {ok, Scan} -> next(Scan, Until, Source, Fun, Acc, Raise);
        {error, Reason} -> Raise(Reason)
    end.

-spec next(scanode:scan(), integer() | infinity, source(), callback(Acc), Acc, raise()) ->
    {done, Acc} | {refresh, binary(), Acc}.
next(Scan, Until, Source, Fun, Acc, Raise) ->
    case scanode:scan_next(Scan) of
        {ok, Rows, Next} ->
            Folded = batch(Fun, Acc, Rows, Source, Next),
            ok = still_open(Source, Next),
            case Until =/= infinity andalso erlang:monotonic_time(millisecond) >= Until of
                true ->
                    ok = scanode:scan_stop(Next),
                    {refresh, key(lists:last(Rows)), Folded};
                false ->
                    next(Next, Until, Source, Fun, Folded, Raise)
            end;
        {done, _Facts} ->
            {done, Acc};
        {error, Reason} ->
            Raise(Reason)
    end.

%% The last row may be handed out already when the callback closes the store, or the iterator, and the scan complete; the fold is to fail all the same.
-spec still_open(source(), scanode:scan()) -> ok.
still_open(Source, Scan) ->
    case is_open(Source) of
        true ->
            ok;
        false ->
            ok = scanode:scan_stop(Scan),
            erlang:error(badarg)
    end.

-spec is_open(source()) -> boolean().
is_open(#{closed := Closed, ended := Ended}) -> atomics:get(Closed, 1) =:= 0 andalso atomics:get(Ended, 1) =:= 0;
is_open(#{closed := Closed}) -> atomics:get(Closed, 1) =:= 0.

-spec batch(callback(Acc), Acc, [term(), ...], source(), scanode:scan()) -> Acc.
batch(Fun, Acc, Rows, #{closed := Closed}, Scan) ->
    try
        each(Fun, Acc, Rows, Closed)
    catch
        Class:Reason:Stack ->
            ok = scanode:scan_stop(Scan),
            erlang:raise(Class, Reason, Stack)
    end.

%% Looks before each row, as a callback may be long about one, and there are many in a batch: none is handed out once the store is closed.
-spec each(callback(Acc), Acc, [term()], atomics:atomics_ref()) -> Acc.
each(Fun, Acc, [Row | Rows], Closed) ->
    case atomics:get(Closed, 1) of
        0 -> each(Fun, Fun(Row, Acc), Rows, Closed);
        _ -> erlang:error(badarg)
    end;
each(_, Acc, [], _) ->
    Acc.

-spec key({binary(), binary()} | binary()) -> binary().
key({Key, _}) -> Key;
key(Key) -> Key.

%% @doc Raises what a fold or a move is failed with.
%%
%% Differs from eleveldb, where an iterator that meets a damaged table is at its end, and the fold returns what it has.
-spec iterator_error(scanode:reason()) -> no_return().
iterator_error(closed) -> erlang:error(badarg);
iterator_error(Reason) -> erlang:error({iterator_error, eleveldb_error:text(Reason)}).

%% A filter that cannot be used is refused before the first row, in the original with a term that its caller does not match.
%%
%% Differs from eleveldb, which logs the error of a stream and returns what it has.
-spec streaming_error(scanode:reason()) -> no_return().
streaming_error(closed) -> erlang:error(badarg);
streaming_error({bad_filter, _} = Reason) -> erlang:error({badmatch, {error, make_ref(), eleveldb_error:text(Reason)}});
streaming_error(Reason) -> erlang:error({streaming_error, eleveldb_error:text(Reason)}).
