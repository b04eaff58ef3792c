%% The queries of the benchmark. A query is
%%
%%     #{name, product := fun((Db) -> Result), client := fun((Db) -> Result) | none, original := #{Encoding => Milliseconds}}
%%
%% product leaves to the program what it can do; client has it send stored objects, of the rows that the filter selects, and does the rest in Erlang as
%% riak_kv does: that is what eleveldb and riak_kv divided between them. Both give the same Result. original is what was recorded for them elsewhere.
-module(query).

-export([hundred_thousand/0, million/0, limited/1]).

-define(TWO, [<<"time">>, <<"value">>]).
-define(HOUR, 3600000).

hundred_thousand() ->
    [
        query("all rows: kv, counted", count(#{}), count(#{}), 18, 23),
        query("all rows: keys, kept", keep(#{rows => keys}, fun same/1), keep(#{}, fun key/1), 1601, 1736),
        query("all rows: terms, kept", keep(#{rows => terms}, fun same/1), keep(#{}, fun terms/1), none, none),
        query("all rows: cells, kept", keep(#{rows => cells}, fun same/1), keep(#{}, fun cells/1), 1014, 1792),
        query("all rows: two of five columns, kept", keep(#{rows => {select, ?TWO}}, fun same/1), keep(#{}, fun two/1), 1014, 1792)
    ] ++
        lists:append([filtered(P) || P <- ["0.1 %", "10 %", "100 %"]]) ++
        groups().

%% The client needs half a minute for some of these, so few have one.
million() ->
    Cells = "all rows: cells, kept",
    Names = [Cells, "all rows: kv, counted", "all rows: two of five columns, kept", "filter 0.1 %: aggregate count", "filter 10 %: cells, kept"],
    [Q#{original := #{}, client := case Name of Cells -> Client; _ -> none end} || #{name := Name, client := Client} = Q <- hundred_thousand(), lists:member(Name, Names)] ++
        [Q || aggregates(), Q <- [first_group() | [Q#{client := none} || Q <- [grouped_by_hour(1), second_group(), grouped_by_hour(2)]]]].

first_group() -> (grouped_by_status(1))#{original := #{ttb => 11000, msgpack => 11000}}.

second_group() -> (grouped_by_status(2))#{original := #{ttb => 11000, msgpack => 11000}}.

%% The query of the plot: rows that match, no more than Limit, cells kept.
limited(Limit) ->
    Options = #{filter => filter("100 %"), limit => Limit},
    query(integer_to_list(Limit), keep(Options#{rows => cells}, fun same/1), keep(Options, fun cells/1), none, none).

filtered(Part) ->
    Filter = #{filter => filter(Part)},
    {CountTtb, CountMsgpack, CellsTtb, CellsMsgpack} =
        case Part of
            "0.1 %" -> {36, 38, 41, 36};
            "10 %" -> {41, 39, 94, 132};
            "100 %" -> {50, 69, 1116, 1611}
        end,
    Name = fun(What) -> "filter " ++ Part ++ ": " ++ What end,
    [
        query(Name("keys, counted"), count(Filter#{rows => keys}), count(Filter), CountTtb, CountMsgpack),
        query(Name("cells, kept"), keep(Filter#{rows => cells}, fun same/1), keep(Filter, fun cells/1), CellsTtb, CellsMsgpack)
    ] ++
        [
            query(Name("aggregate count"), aggregated_count(Filter), count(Filter), CountTtb, CountMsgpack)
         || aggregates()
        ].

groups() ->
    [Q || aggregates(), Q <- [grouped_by_status(1), grouped_by_hour(1)]].

aggregates() ->
    {module, scanode} = code:ensure_loaded(scanode),
    erlang:function_exported(scanode, aggregate, 2).

%% Parts are read side by side.
grouped_by_status(Parts) ->
    Compute = [{count, all}, {avg, <<"value">>}],
    Group = fun([_, _, _, {_, Value}, {_, Status}], Groups) -> added(Status, Value, Groups) end,
    query("all rows: count and mean by status, 200 groups" ++ parts(Parts), aggregate(Parts, Compute, [<<"status">>]), group(Group), none, none).

grouped_by_hour(Parts) ->
    Compute = [{count, all}, {avg, <<"value">>}],
    Group = fun([{_, Time}, _, _, {_, Value}, _], Groups) -> added(Time - Time rem ?HOUR, Value, Groups) end,
    query("all rows: count and mean by hour" ++ parts(Parts), aggregate(Parts, Compute, [{time, <<"time">>, ?HOUR}]), group(Group), none, none).

parts(1) -> "";
parts(Parts) -> lists:concat([", in ", Parts, " parts"]).

query(Name, Product, Client, Ttb, Msgpack) ->
    Original = maps:from_list([{E, Ms} || {E, Ms} <- [{ttb, Ttb}, {msgpack, Msgpack}], Ms =/= none]),
    #{name => Name, product => Product, client => Client, original => Original}.

filter("0.1 %") -> {'<', {field, <<"value">>, double}, {const, 0.1}};
filter("10 %") -> {'<', {field, <<"value">>, double}, {const, 10.0}};
filter("100 %") -> {'<', {field, <<"value">>, double}, {const, 1000.0}}.

%% What a query does

count(Options) ->
    fun(Db) -> scanode:fold(Db, fun(_, N) -> N + 1 end, 0, Options) end.

keep(Options, Row) ->
    fun(Db) -> scanode:fold(Db, fun(R, Rows) -> [Row(R) | Rows] end, [], Options) end.

aggregated_count(Options) ->
    fun(Db) ->
        {ok, [[Count]]} = scanode:aggregate(Db, Options#{compute => [{count, all}], parallel => 1}),
        Count
    end.

aggregate(Parts, Compute, By) ->
    fun(Db) ->
        {ok, Groups} = scanode:aggregate(Db, #{compute => Compute, group_by => By, parallel => Parts}),
        lists:sort(Groups)
    end.

group(Add) ->
    fun(Db) ->
        Groups = scanode:fold(Db, fun({_, Object}, Groups) -> Add(riak_client:fields(Object), Groups) end, #{}, #{}),
        lists:sort([[Group, Count, Sum / Count] || {Group, {Count, Sum}} <- maps:to_list(Groups)])
    end.

added(Group, Value, Groups) ->
    case Groups of
        #{Group := {Count, Sum}} -> Groups#{Group := {Count + 1, Sum + Value}};
        #{} -> Groups#{Group => {1, Value}}
    end.

%% What is kept of a row

same(Row) -> Row.
key({Key, _}) -> Key.
terms({_, Object}) -> riak_client:fields(Object).
cells({_, Object}) -> riak_client:cells(Object).
two({_, Object}) -> riak_client:select(?TWO, Object).
