%% A scan delivers what the plainest evaluation of the same rows gives: random tables, filters, row forms, ranges, pages and snapshots.
%%
%% A table is a list of {Key, Stored}, the last of equal keys counts. Stored is
%%   {row, Encoding, [{Name, Value}], Damage}   Value being {plain, Cell} or {odd, Atom}, see riak_rows:odd/1. Damage: none; {cut, N, Bytes}, the row
%%                                              ends so many bytes before the end of field N; {no_field, N, Kind}, field N is none
%%   tombstone, {broken, N}, deleted            a deleted row; one of riak_rows:broken/0; no such key
%%
%% A query is a map:
%%   view      snapshot, which does not see the changes, or store
%%   filter    none, or a filter in which every field has its type; spelling says how it is sent, see spell/2
%%   form      the options rows, with_keys, on_foreign; or #{rows => {groups, GroupBy, Counted}}, an aggregate
%%   ranges    [{Start, End, StartInclusive, EndInclusive, How}], bounds being undefined or keys; How is alone for the options of one range
%%   limit     of the whole; pages is none, or the limit of each page
%%   options   all others
-module(prop_rows).

-export([as_evaluated/2, every_odd_value/2]).

-include_lib("proper/include/proper.hrl").

%% Db is empty, and is so again after every case. Count is called with what every query came to and its number of rows.
as_evaluated(Db, Count) ->
    ?FORALL(
        {Table, Changes, Queries},
        random_rows:scenario(),
        begin
            Result = trial(Db, Count, Table, Changes, Queries),
            ?WHENFAIL(report(Db, Table, Changes, Result), Result =:= ok)
        end
    ).

%% The outcome as a value, exceptions too; Db is empty again.
trial(Db, Count, Table, Changes, Queries) ->
    Result =
        try
            run(Db, Count, Table, Changes, Queries)
        catch
            Class:Reason:Stack -> {Class, Reason, Stack}
        end,
    ok = write(Db, [{Key, deleted} || {Key, _} <- Table ++ Changes]),
    Result.

%% With as few rows as show the fault: PropEr's own shrinking takes minutes.
report(Db, Table, Changes, {#{view := _} = Query, sent, _, got, _, want, _}) ->
    Try = fun(Few, Others) -> trial(Db, fun(_, _, _) -> ok end, Few, Others, [Query]) end,
    FewChanges = fewer(fun(Some) -> Try(Table, Some) =/= ok end, Changes),
    FewRows = fewer(fun(Some) -> Try(Some, FewChanges) =/= ok end, Table),
    io:format("~ntable ~p~nchanges ~p~n~p~n", [FewRows, FewChanges, Try(FewRows, FewChanges)]);
report(_, Table, Changes, Result) ->
    io:format("~ntable ~p~nchanges ~p~n~p~n", [Table, Changes, Result]).

%% Drops elements while Fails holds for the rest, in ever smaller pieces.
fewer(Fails, List) -> fewer(Fails, [], List, (length(List) + 1) div 2).

fewer(_, [], [], _) ->
    [];
fewer(_, Kept, [], 1) ->
    Kept;
fewer(Fails, Kept, [], Size) ->
    fewer(Fails, [], Kept, Size div 2);
fewer(Fails, Kept, List, Size) ->
    {Piece, Rest} = lists:split(min(Size, length(List)), List),
    case Fails(Kept ++ Rest) of
        true -> fewer(Fails, Kept, Rest, Size);
        false -> fewer(Fails, Kept ++ Piece, Rest, Size)
    end.

%% Each value of riak_rows:odd/1 and each of riak_rows:broken/0, in every form and under every type. Returns ok or the first fault.
every_odd_value(Db, Count) ->
    Odd = [
        {iolist_to_binary(io_lib:format("~s ~s", [Encoding, Name])), {row, Encoding, [{<<"n">>, {plain, 1}}, {<<"v">>, {odd, Name}}], none}}
     || Encoding <- [ttb, msgpack], {Name, _} <- riak_rows:odd(Encoding)
    ],
    Table = [{<<"tombstone">>, tombstone}] ++ Odd ++ [{<<"broken ", N>>, {broken, N}} || {N, _} <- lists:enumerate(riak_rows:broken())],
    Types = [sint64, timestamp, double, boolean, varchar, any],
    Fields = [{field, <<"v">>, Type} || Type <- Types],
    Filters =
        [none, {'=', {const, 1}, {const, 1}}, {'=', key, {const, <<"tombstone">>}}] ++
            [{is_null, Field} || Field <- Fields] ++
            [{not_, {'=', Field, {const, 1}}} || {field, _, Type} = Field <- Fields, Type =/= varchar, Type =/= any] ++
            [{'>', Field, {const, 2}} || {field, _, Type} = Field <- Fields, lists:member(Type, [sint64, timestamp, double])] ++
            [{'!=', Field, {const, <<"a">>}} || {field, _, Type} = Field <- Fields, Type =:= varchar orelse Type =:= any] ++
            [{prefix, {field, <<"v">>, varchar}, {const, <<>>}}, {'=', {field, <<"v">>, varchar}, {field, <<"v">>, varchar}}],
    Rows = [keys, terms, {select, [<<"v">>, <<"n">>]}, {select, [<<"n">>]}, {groups, [<<"v">>], [<<"v">>]}, {groups, [], [<<"v">>]}],
    Forms = [#{rows => Form} || Form <- Rows] ++ [#{rows => Form, on_foreign => skip, with_keys => true} || Form <- [cells, {select, [<<"v">>]}]],
    Queries = [
        #{
            view => store,
            filter => Filter,
            spelling => plain,
            form => Form,
            options => #{},
            ranges => [{Key, Key, true, true, alone}],
            limit => 0,
            pages => none
        }
     || {Key, _} <- Table, Filter <- Filters, Form <- Forms, Filter =:= none orelse map_get(rows, Form) =:= keys
    ],
    run(Db, Count, Table, [], Queries).

%% Every query sees the table as it was, by a snapshot, or as the changes left it.
run(Db, Count, Table, Changes, Queries) ->
    ok = write(Db, Table),
    {ok, Snapshot} = scanode:snapshot(Db),
    ok = write(Db, Changes),
    Before = change(Table, []),
    After = change(Changes, Before),
    try
        first_fault(
            [fun() -> gets(View, Rows, Table ++ Changes) end || {View, Rows} <- [{Snapshot, Before}, {Db, After}]] ++
                [
                    case Query of
                        #{view := snapshot} -> fun() -> query(Snapshot, Before, Count, Query) end;
                        #{view := store} -> fun() -> query(Db, After, Count, Query) end
                    end
                 || Query <- Queries
                ]
        )
    after
        ok = scanode:close(Snapshot)
    end.

first_fault([]) ->
    ok;
first_fault([Check | Checks]) ->
    case Check() of
        ok -> first_fault(Checks);
        Fault -> Fault
    end.

write(Db, Changes) ->
    scanode:write(Db, [operation(Change) || Change <- Changes], #{}).

operation({Key, deleted}) -> {delete, Key};
operation({Key, Stored}) -> {put, Key, bytes(Stored)}.

change(Changes, Rows) ->
    lists:foldl(
        fun
            ({Key, deleted}, Acc) -> orddict:erase(Key, Acc);
            ({Key, Stored}, Acc) -> orddict:store(Key, read(Stored), Acc)
        end,
        Rows,
        Changes
    ).

gets(Db, Rows, Changes) ->
    Keys = lists:sublist([Key || {Key, _} <- Changes], 3),
    Got = [scanode:get(Db, Key) || Key <- Keys],
    case [found(orddict:find(Key, Rows)) || Key <- Keys] of
        Got -> ok;
        Want -> {get, Keys, got, Got, want, Want}
    end.

found({ok, {Bytes, _, _}}) -> {ok, Bytes};
found(error) -> not_found.

%% What is stored: {its bytes, its first fields [{Name, Delivered, Seen, Bytes}], how they go on}: whole; damaged; tombstone; broken.
read({row, Encoding, Fields, Damage} = Stored) ->
    Read = [{Name, Term, Seen, Bytes} || {Name, Value} <- Fields, {Term, Seen, Bytes} <- [value(Encoding, Value)]],
    case Damage of
        none -> {bytes(Stored), Read, whole};
        {_, N, _} -> {bytes(Stored), lists:sublist(Read, N - 1), damaged}
    end;
read(Stored) ->
    {bytes(Stored), [],
        case Stored of
            tombstone -> tombstone;
            {broken, _} -> broken
        end}.

value(Encoding, {plain, Cell}) -> {Cell, Cell, riak_rows:cell(Encoding, Cell)};
value(Encoding, {odd, Name}) -> proplists:get_value(Name, riak_rows:odd(Encoding)).

bytes(tombstone) ->
    riak_rows:tombstone();
bytes({broken, N}) ->
    lists:nth(N, riak_rows:broken());
bytes({row, Encoding, Fields, Damage}) ->
    Stored = [{Name, element(3, value(Encoding, Value))} || {Name, Value} <- Fields],
    Payload =
        case Damage of
            none ->
                riak_rows:payload(Encoding, Stored);
            {cut, N, Bytes} ->
                Field = byte_size(field(Encoding, lists:nth(N, Stored))),
                Head = byte_size(whole(Encoding, Stored)) - byte_size(rest(Encoding, Stored, N - 1)),
                binary:part(riak_rows:payload(Encoding, Stored), 0, Head + max(0, Field - Bytes));
            {no_field, N, Kind} ->
                Rest = rest(Encoding, Stored, N),
                Head = binary:part(whole(Encoding, Stored), 0, byte_size(whole(Encoding, Stored)) - byte_size(rest(Encoding, Stored, N - 1))),
                <<Head/binary, (no_field(Encoding, Kind))/binary, Rest/binary>>
        end,
    riak_rows:object(maps:get(Encoding, #{ttb => 0, msgpack => 2}), Payload).

%% The payload up to the end of its fields, and what of it follows the first N.
whole(ttb, Stored) ->
    Payload = riak_rows:payload(ttb, Stored),
    binary:part(Payload, 0, byte_size(Payload) - 1);
whole(msgpack, Stored) ->
    riak_rows:payload(msgpack, Stored).

rest(Encoding, Stored, N) ->
    iolist_to_binary([field(Encoding, Field) || Field <- lists:nthtail(N, Stored)]).

field(ttb, {Name, Bytes}) -> <<104, 2, (riak_rows:cell(ttb, Name))/binary, Bytes/binary>>;
field(msgpack, {Name, Bytes}) -> <<(riak_rows:cell(msgpack, Name))/binary, Bytes/binary>>.

no_field(ttb, 1) -> riak_rows:cell(ttb, site);
no_field(ttb, 2) -> riak_rows:cell(ttb, {<<"n">>, 5, 6});
no_field(ttb, _) -> riak_rows:cell(ttb, {site, 5});
no_field(msgpack, 1) -> <<16#c0, 5>>;
no_field(msgpack, 2) -> <<16#c4, 1, "n", 5>>;
no_field(msgpack, _) -> <<5, 5>>.

%% One query: groups, or rows as a whole or page by page.
query(Db, Rows, Count, #{filter := Filter, spelling := Spelling, form := #{rows := {groups, By, Counted}} = Form, options := Options, ranges := Ranges} = Query) ->
    Asked = maps:merge(Options, range_options(Ranges)),
    Compute = [{count, all} | [{count, Name} || Name <- Counted]],
    Filtered = filtered(Spelling, Filter, Asked#{group_by => By, compute => Compute}),
    Want =
        case evaluate(judge(Filter, Form), visited(Ranges, false, Rows), 0, [], 0) of
            {Sent, complete, _} -> {ordered(grouped(Sent, By, Counted)), complete};
            {_, failed, _} -> {[], failed}
        end,
    Got =
        case scanode:aggregate(Db, Filtered) of
            {ok, Groups} -> {ordered([lists:split(length(By), Group) || Group <- Groups]), complete};
            {error, {bad_row, _}} -> {[], failed};
            {error, Reason} -> Reason
        end,
    same(Got, Want, Filtered, Count, Query);
query(Db, Rows, Count, #{filter := Filter, spelling := Spelling, form := Form, options := Options, ranges := Ranges, limit := Limit, pages := Pages} = Query) ->
    Reverse = maps:get(reverse, Options, false),
    Visited = visited(Ranges, Reverse, Rows),
    Judge = judge(Filter, Form),
    Asked = maps:merge(maps:merge(Options, Form), range_options(Ranges)),
    Filtered = filtered(Spelling, Filter, Asked),
    {WantRows, WantEnd, WantRead} = evaluate(Judge, Visited, Limit, [], 0),
    Got =
        case Pages of
            none -> whole_scan(Db, Filtered#{limit => Limit});
            Size -> pages(Db, Filtered#{limit => Size}, Size, [])
        end,
    Want =
        case {Pages, WantEnd} of
            {none, failed} -> {WantRows, failed};
            {none, _} -> {WantRows, WantEnd, #{rows => length(WantRows), rows_read => WantRead}};
            {_, failed} -> {WantRows, failed};
            {_, complete} -> {WantRows, complete}
        end,
    same(Got, Want, Filtered, Count, Query).

%% Encoded, 0.0 and -0.0 differ.
same(Got, Want, Sent, Count, Query) ->
    case term_to_binary(Got) =:= term_to_binary(Want) of
        true ->
            Count(element(2, Want), length(element(1, Want)), Query),
            ok;
        false ->
            {Query, sent, Sent, got, Got, want, Want}
    end.

filtered(_, none, Options) -> Options;
filtered(Spelling, Filter, Options) -> Options#{filter => spell(Spelling, Filter)}.

%% 1 and 1.0 are two groups, and equal.
ordered(Groups) -> [Group || {_, Group} <- lists:sort([{term_to_binary(Group), Group} || Group <- Groups])].

%% How many rows there are of every group, and in how many a column has a value.
grouped(Sent, By, Counted) ->
    Alone = #{[] => [0 || _ <- [all | Counted]]},
    maps:to_list(
        lists:foldl(
            fun({Group, Ones}, Groups) -> maps:update_with(Group, fun(Sums) -> lists:zipwith(fun erlang:'+'/2, Sums, Ones) end, Ones, Groups) end,
            maps:filter(fun(_, _) -> By =:= [] end, Alone),
            Sent
        )
    ).

whole_scan(Db, Options) ->
    case scan(Db, Options) of
        {Rows, #{continuation := More, rows := N, rows_read := Read}} when is_binary(More) -> {Rows, limited, #{rows => N, rows_read => Read}};
        {Rows, #{rows := N, rows_read := Read}} -> {Rows, complete, #{rows => N, rows_read => Read}};
        Failed -> Failed
    end.

pages(Db, Options, Size, Before) ->
    case scan(Db, Options) of
        {Rows, failed} when length(Rows) < Size -> {Before ++ Rows, failed};
        {Rows, #{continuation := More}} when length(Rows) =:= Size -> pages(Db, Options#{continue => More}, Size, Before ++ Rows);
        {Rows, Facts} when is_map(Facts), length(Rows) < Size, not is_map_key(continuation, Facts) -> {Before ++ Rows, complete};
        Other -> {page, Other, before, Before}
    end.

scan(Db, Options) ->
    _ = put(?MODULE, []),
    Keep = fun(Row, ok) ->
        _ = put(?MODULE, [Row | get(?MODULE)]),
        ok
    end,
    try scanode:fold_info(Db, Keep, ok, Options) of
        {ok, Facts} -> {lists:reverse(get(?MODULE)), Facts}
    catch
        error:{scan, {bad_row, Text}} when is_binary(Text) -> {lists:reverse(get(?MODULE)), failed};
        error:{scan, Reason} -> {lists:reverse(get(?MODULE)), Reason}
    end.

range_options([{Start, End, StartIn, EndIn, alone}]) ->
    maps:from_list(
        [{start, Start} || Start =/= undefined] ++ [{'end', End} || End =/= undefined] ++
            [{start_inclusive, StartIn} || not StartIn] ++ [{end_inclusive, EndIn} || EndIn]
    );
range_options(Ranges) ->
    #{
        ranges => [
            case {StartIn, EndIn} of
                {true, false} -> {Start, End};
                Both -> {Start, End, Both}
            end
         || {Start, End, StartIn, EndIn, _} <- Ranges
        ]
    }.

visited(Ranges, Reverse, Rows) ->
    lists:append([
        begin
            Within = [Row || {Key, _} = Row <- Rows, above(Key, Start, StartIn), below(Key, End, EndIn)],
            case Reverse of
                true -> lists:reverse(Within);
                false -> Within
            end
        end
     || {Start, End, StartIn, EndIn, _} <- Ranges
    ]).

above(_, undefined, _) -> true;
above(Key, Start, true) -> Key >= Start;
above(Key, Start, false) -> Key > Start.

below(_, undefined, _) -> true;
below(Key, End, true) -> Key =< End;
below(Key, End, false) -> Key < End.

evaluate(_, Rows, Limit, Sent, Read) when Rows =:= []; Limit > 0, length(Sent) =:= Limit ->
    End =
        case Limit > 0 andalso length(Sent) =:= Limit of
            true -> limited;
            false -> complete
        end,
    {lists:reverse(Sent), End, Read};
evaluate(Judge, [{Key, Stored} | Rows], Limit, Sent, Read) ->
    case Judge(Key, Stored) of
        {send, Row} -> evaluate(Judge, Rows, Limit, [Row | Sent], Read + 1);
        leave -> evaluate(Judge, Rows, Limit, Sent, Read + 1);
        bad_row -> {lists:reverse(Sent), failed, Read + 1}
    end.

%% Whether a row is sent, and how.
judge(Filter, #{rows := Form} = Options) ->
    fun(Key, Stored) ->
        case passes(Filter, Key, Stored) of
            true -> shape(Form, Options, Key, Stored);
            false -> leave;
            bad_row -> bad_row
        end
    end.

passes(none, _, _) -> true;
passes(_, _, {_, _, broken}) -> bad_row;
passes(_, _, {_, _, tombstone}) -> false;
passes(Filter, Key, {_, Fields, End}) ->
    case reaches(names(Filter), Fields, End) of
        true -> riak_rows:matches(Filter, Key, [{Name, Seen, Bytes} || {Name, _, Seen, Bytes} <- Fields]);
        false -> bad_row
    end.

%% A row is read until the names are found.
reaches(_, _, whole) -> true;
reaches(Names, Fields, damaged) -> Names -- [Name || {Name, _, _, _} <- Fields] =:= [].

names(Filter) -> lists:usort(named(Filter)).

named({field, Name, _}) -> [Name];
named({const, _}) -> [];
named(Filter) when is_tuple(Filter) -> lists:append([named(Part) || Part <- tl(tuple_to_list(Filter))]);
named(_) -> [].

shape(kv, _, Key, {Bytes, _, _}) -> {send, {Key, Bytes}};
shape(keys, _, Key, _) -> {send, Key};
shape(_, _, _, {_, _, broken}) -> bad_row;
shape(_, _, _, {_, _, tombstone}) -> leave;
shape({select, Names}, Options, Key, {_, Fields, End}) ->
    case reaches(lists:usort(Names), Fields, End) of
        true -> sent([{Name, selected(Name, Fields)} || Name <- Names], cells, Options, Key);
        false -> bad_row
    end;
shape({groups, By, Counted}, _, _, {_, Fields, End}) ->
    Group = [unsigned(selected(Name, Fields)) || Name <- By],
    case reaches(lists:usort(By ++ Counted), Fields, End) andalso not lists:member(foreign, Group) of
        true -> {send, {Group, [1 | [one(selected(Name, Fields)) || Name <- Counted]]}};
        false -> bad_row
    end;
shape(Form, Options, Key, {_, Fields, End}) ->
    case sent([{Name, Term} || {Name, Term, _, _} <- Fields], Form, Options, Key) of
        {send, _} when End =:= damaged -> bad_row;
        Outcome -> Outcome
    end.

unsigned(Zero) when is_float(Zero), Zero == 0 -> 0.0;
unsigned(Term) -> Term.

one([]) -> 0;
one(_) -> 1.

selected(Name, Fields) ->
    case lists:keyfind(Name, 1, Fields) of
        {_, Term, _, _} -> Term;
        false -> []
    end.

sent(Fields, Form, Options, Key) ->
    Row =
        case Form of
            terms -> Fields;
            cells -> [Term || {_, Term} <- Fields]
        end,
    case {lists:keymember(foreign, 2, Fields), Options} of
        {true, #{on_foreign := skip}} -> leave;
        {true, _} -> bad_row;
        {false, #{with_keys := true}} -> {send, {Key, Row}};
        {false, _} -> {send, Row}
    end.

%% The same filter written otherwise: operators as strings, types left out where they are known, constants with something behind them.
spell(plain, Filter) ->
    Filter;
spell(otherwise, Filter) ->
    {Spelt, _} = respell(Filter, #{}),
    Spelt.

respell({field, Name, Type}, Known) ->
    case Known of
        #{Name := Type} -> {{field, Name}, Known};
        _ -> {{field, Name, Type}, Known#{Name => Type}}
    end;
respell({const, Value}, Known) ->
    {{const, Value, ignored}, Known};
respell(Filter, Known) when is_tuple(Filter) ->
    [Op | Parts] = tuple_to_list(Filter),
    {Spelt, Types} = lists:mapfoldl(fun respell/2, Known, Parts),
    {list_to_tuple([atom_to_list(Op) | Spelt]), Types};
respell(List, Known) when is_list(List) ->
    lists:mapfoldl(fun respell/2, Known, List);
respell(key, Known) ->
    {key, Known}.
