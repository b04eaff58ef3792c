%% A store behaves as a sorted dictionary, whatever is done to it.
-module(prop_store).

-export([like_a_dictionary/1]).

-include_lib("proper/include/proper.hrl").

%% Open makes an empty store.
like_a_dictionary(Open) ->
    ?FORALL(
        Ops,
        list(operation()),
        begin
            Db = Open(),
            Result =
                try
                    run(Ops, Db, orddict:new())
                catch
                    Class:Reason:Stack -> {Class, Reason, Stack}
                after
                    ok = scanode:close(Db)
                end,
            ?WHENFAIL(io:format("operations ~p~nresult ~p~n", [Ops, Result]), Result =:= ok)
        end
    ).

operation() ->
    frequency([
        {4, {put, key(), value()}},
        {2, {delete, key()}},
        {2, {write, list(oneof([{put, key(), value()}, {delete, key()}])), boolean()}},
        {2, {get, key()}},
        {3, {fold, bound(), bound(), boolean(), boolean(), range(0, 5), oneof([kv, keys]), range(1, 60)}}
    ]).

%% Few enough to meet again, and such that one is often the beginning of another.
key() -> ?LET(Bytes, resize(3, list(oneof([0, $a, $b, 255]))), list_to_binary(Bytes)).

value() -> oneof([<<>>, binary(), ?LET(N, range(1, 300), binary:copy(<<"v">>, N))]).

bound() -> oneof([none, key()]).

run([], _Db, _Model) ->
    ok;
run([Op | Ops], Db, Model) ->
    case step(Op, Db, Model) of
        {ok, Next} -> run(Ops, Db, Next);
        {differ, Got, Want} -> {Op, got, Got, want, Want}
    end.

step({put, K, V}, Db, Model) ->
    same(scanode:put(Db, K, V), ok, orddict:store(K, V, Model));
step({delete, K}, Db, Model) ->
    same(scanode:delete(Db, K), ok, orddict:erase(K, Model));
step({write, Ops, Sync}, Db, Model) ->
    same(scanode:write(Db, Ops, #{sync => Sync}), ok, lists:foldl(fun apply_op/2, Model, Ops));
step({get, K}, Db, Model) ->
    Want =
        case orddict:find(K, Model) of
            error -> not_found;
            Found -> Found
        end,
    same(scanode:get(Db, K), Want, Model);
step({fold, Start, End, StartIn, EndIn, Limit, Shape, BatchBytes}, Db, Model) ->
    Opts = [{start, Start} || Start =/= none] ++ [{'end', End} || End =/= none],
    Got = scanode:fold(
        Db,
        fun(Row, Rows) -> [Row | Rows] end,
        [],
        Opts ++
            [{start_inclusive, StartIn}, {end_inclusive, EndIn}, {limit, Limit}, {rows, Shape}, {max_batch_bytes, BatchBytes}, {max_unacked_bytes, 100}]
    ),
    InRange = [
        Row
     || {K, _} = Row <- Model,
        Start =:= none orelse K > Start orelse (StartIn andalso K =:= Start),
        End =:= none orelse K < End orelse (EndIn andalso K =:= End)
    ],
    Limited =
        case Limit of
            0 -> InRange;
            _ -> lists:sublist(InRange, Limit)
        end,
    Want =
        case Shape of
            kv -> Limited;
            keys -> [K || {K, _} <- Limited]
        end,
    same(lists:reverse(Got), Want, Model).

apply_op({put, K, V}, Model) -> orddict:store(K, V, Model);
apply_op({delete, K}, Model) -> orddict:erase(K, Model).

same(Same, Same, Model) -> {ok, Model};
same(Got, Want, _) -> {differ, Got, Want}.
