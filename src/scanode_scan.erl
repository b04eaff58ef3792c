%% @private
%% What the API makes of scans: folds, aggregates, scans whose rows are asked for.
-module(scanode_scan).

-export([fold/5, aggregate/3, start/3, next/4, page/2]).

%% @doc See scanode:fold_info/4.
-spec fold(scanode_link:via(), scanode_link:db_id(), fun((scanode:row(), Acc) -> Acc), Acc, term()) -> {Acc, #{atom() => term()}}.
fold(Via, Id, Fun, Acc0, Options) ->
    case scanode_options:timed(Options) of
        {ok, Timeout, Rest} ->
            Batch = fun(Bin, Acc) -> lists:foldl(Fun, Acc, rows(Bin)) end,
            case scanode_link:scan(Via, Id, Rest, Timeout, Batch, Acc0) of
                {ok, Acc, Facts} -> {Acc, Facts};
                {error, Reason} -> erlang:error({scan, Reason})
            end;
        {error, Reason} ->
            erlang:error({scan, Reason})
    end.

%% @doc See scanode:aggregate_info/2.
-spec aggregate(scanode_link:via(), scanode_link:db_id(), term()) ->
    {ok, [scanode:aggregate_row()] | scanode:partial(), #{atom() => term()}} | {error, scanode:reason()}.
aggregate(Via, Id, Options) ->
    case scanode_options:timed(Options) of
        {ok, Timeout, #{compute := _} = Rest} ->
            Batch = fun(Bin, Acc) -> lists:reverse(rows(Bin), Acc) end,
            case scanode_link:scan(Via, Id, Rest, Timeout, Batch, []) of
                {ok, Rows, Facts} -> {ok, aggregated(Rest, lists:reverse(Rows)), Facts};
                {error, Reason} -> {error, Reason}
            end;
        {ok, _, _} ->
            {error, scanode_options:bad("an aggregate needs compute", [])};
        {error, Reason} ->
            {error, Reason}
    end.

-spec aggregated(map(), [scanode:aggregate_row()]) -> [scanode:aggregate_row()] | scanode:partial().
aggregated(#{partial := true} = Options, Rows) -> scanode_aggregate:partial(Options, Rows);
aggregated(_, Rows) -> Rows.

%% @doc Starts a scan for next/4: it, and the time-out of its options.
-spec start(scanode_link:via(), scanode_link:db_id(), term()) -> {ok, {pid(), reference()}, timeout()} | {error, scanode:reason()}.
start(Via, Id, Options) ->
    case scanode_options:timed(Options) of
        {ok, Timeout, Rest} ->
            case scanode_link:start(Via, Id, Rest, Timeout) of
                {ok, Scan} -> {ok, Scan, Timeout};
                {error, Reason} -> {error, Reason}
            end;
        {error, Reason} ->
            {error, Reason}
    end.

%% @doc The next rows of a scan, and what scanode_link:next/4 wants as Pending the next time.
-spec next(scanode_link:via(), {pid(), reference()}, [tuple()], timeout()) ->
    {ok, [scanode:row(), ...], Pending :: [tuple()]} | {done, #{atom() => term()}} | {error, scanode:reason()}.
next(Via, Scan, Pending, Timeout) ->
    case scanode_link:next(Via, Scan, Pending, Timeout) of
        {ok, Bin, More} ->
            try
                {ok, rows(Bin), More}
            catch
                error:{scan, Reason} ->
                    ok = scanode_link:quit(Via, Scan),
                    {error, Reason}
            end;
        Over ->
            Over
    end.

%% @doc The rows of a page of an iterator.
-spec page(binary(), more | done) -> {ok, [scanode:row()], more | done} | {error, scanode:reason()}.
page(Bin, More) ->
    try
        {ok, rows(Bin), More}
    catch
        error:{scan, Reason} -> {error, Reason}
    end.

%% The rows of a batch. Safe, so that no stored byte can make an atom. The list copies what it needs out of Bin, which is garbage from here on.
-spec rows(binary()) -> [scanode:row()].
rows(Bin) ->
    try
        binary_to_term(Bin, [safe])
    catch
        error:badarg -> erlang:error({scan, {internal, <<"a batch of rows is not a term that can be decoded safely">>}})
    end.
