%% The demonstration behind `make demo': 100,000 rows of a Riak TS table, half of them ETF and half MessagePack, interleaved in one store, and range scans with
%% filters whose every answer is compared with a plain Erlang evaluation of the same rows.
%%
%% run(port, Dir) does it under a plain erl, with the program as a supervised port. run(node, Dir) does it in a cluster: this BEAM loads, and it and a second
%% one scan through the hidden node whose name is in the environment variable DEMO_NODE.
-module(demo).

-export([run/2, query/2]).

-define(ROWS, 100000).
-define(TABLE, <<"Readings">>).
%% Written per batch, so that no write is large.
-define(BATCH, 1000).

-spec run(port | node, file:filename()) -> no_return().
run(Transport, Dir) ->
    try
        Compared = transport(Transport, Dir),
        io:format("~s: ~b answers compared, all equal~n", [Transport, Compared]),
        halt(0)
    catch
        Class:Reason:Stack ->
            io:format(standard_error, "demo failed: ~p: ~p~n~p~n", [Class, Reason, Stack]),
            halt(1)
    end.

transport(port, Dir) ->
    {ok, _} = application:ensure_all_started(scanode),
    {ok, Db} = scanode:open(Dir, #{}),
    Rows = load(Db),
    heading(),
    Compared = queries("port", Rows, fun(Opts) -> query(Db, Opts) end),
    ok = scanode:close(Db),
    Compared;
transport(node, Dir) ->
    Node = list_to_atom(os:getenv("DEMO_NODE")),
    ok = await(Node, 100),
    {ok, Peer, Second} = peer:start_link(#{name => "demo_second", host => "127.0.0.1", args => ["-pa" | code:get_path()]}),
    pong = erpc:call(Second, net_adm, ping, [Node]),
    io:format("cluster: ~s and ~s, and ~s, hidden (~p)~n", [node(), Second, Node, lists:member(Node, nodes(hidden))]),
    {ok, Db} = scanode:open(Dir, #{node => Node}),
    Rows = load(Db),
    heading(),
    Here = queries("node", Rows, fun(Opts) -> query(Db, Opts) end),
    There = queries("node, other BEAM", Rows, fun(Opts) -> erpc:call(Second, ?MODULE, query, [Db, Opts]) end),
    ok = scanode:close(Db),
    ok = peer:stop(Peer),
    Here + There.

%% The node registers with epmd a moment after it was started.
await(_, 0) ->
    error(node_does_not_answer);
await(Node, Tries) ->
    case net_adm:ping(Node) of
        pong ->
            ok;
        pang ->
            receive
            after 100 -> await(Node, Tries - 1)
            end
    end.

%% Every other row is MessagePack. Returns the rows by key, with what is stored for each.
load(Db) ->
    Rows = riak_rows:generate(20161, ?ROWS),
    Stored = [{key(Row), riak_rows:encode(Row, encoding(N)), Row} || {N, Row} <- lists:enumerate(Rows)],
    {Micros, ok} = timer:tc(fun() -> write(Db, Stored) end),
    io:format("loaded ~b rows, half ttb and half msgpack, in ~b ms~n", [?ROWS, Micros div 1000]),
    lists:keysort(1, Stored).

encoding(N) when N rem 2 =:= 0 -> ttb;
encoding(_) -> msgpack.

write(_, []) ->
    ok;
write(Db, Stored) ->
    {Now, Later} = lists:split(min(?BATCH, length(Stored)), Stored),
    ok = scanode:write(Db, [{put, Key, Object} || {Key, Object, _} <- Now], #{sync => Later =:= []}),
    write(Db, Later).

%% The key of a TS row: {o, {Table, Table}, {Station, Time}}, so that the rows of a station lie together in the order of their time.
key(Row) ->
    {_, Station} = lists:keyfind(<<"station">>, 1, Row),
    {_, Time} = lists:keyfind(<<"time">>, 1, Row),
    key(Station, Time).

key(Station, Time) -> sext({o, {?TABLE, ?TABLE}, {Station, Time}}).

%% Sortable encoding of terms, as Riak's keys are: every byte of a string is preceded by a set bit and its end is a clear one, so that a prefix sorts
%% first; integers beyond 31 bits carry their length in front.
sext(T) when is_tuple(T) -> <<16, (tuple_size(T)):32, (<<<<(sext(E))/binary>> || E <- tuple_to_list(T)>>)/binary>>;
sext(A) when is_atom(A) -> <<12, (marked(atom_to_binary(A, latin1)))/binary>>;
sext(B) when is_binary(B) -> <<18, (marked(B))/binary>>;
sext(I) when is_integer(I), I >= 0, I < 1 bsl 31 -> <<10, I:31, 0:1>>;
sext(I) when is_integer(I), I > 0 ->
    Bytes = binary:encode_unsigned(I),
    <<11, (marked(<<255, (byte_size(Bytes)), Bytes/binary>>))/binary, 0>>.

marked(<<>>) -> <<8>>;
marked(B) -> <<(<<<<1:1, X>> || <<X>> <= B>>)/bitstring, 0:(8 - byte_size(B) rem 8), 8>>.

heading() ->
    io:format("~n~-44s ~8s ~8s ~7s ~10s  ~-24s ~s~n", ["query", "rows", "matches", "ms", "rows/s", "encodings met", "transport"]).

%% {Title, Options of the fold}.
cases() ->
    Day = 1500000000000,
    Station = <<"station3">>,
    From = key(Station, Day + 10000000),
    To = key(Station, Day + 60000000),
    [
        {"all", #{}},
        {"keys of all", #{rows => keys}},
        {"temperature > 30.0", #{filter => {'>', field(temperature, double), {const, 30.0}}}},
        {"note IS NULL", #{filter => {'=', field(note, varchar), {const, []}}}},
        {"note IS NOT NULL and valid", #{filter => {and_, {'!=', field(note, varchar), {const, []}}, {'=', field(valid, boolean), {const, true}}}}},
        {"count < -900000 or count >= 900000",
            #{filter => {or_, {'<', field(count, sint64), {const, -900000}}, {'>=', field(count, sint64), {const, 900000}}}}},
        {"station = station7, first 100", #{limit => 100, filter => {'=', field(station, varchar), {const, <<"station7">>}}}},
        {"one station, 50000 s", #{start => From, 'end' => To}},
        {"one station, 50000 s, temperature =< 0", #{start => From, 'end' => To, filter => {'=<', field(temperature, double), {const, 0}}}},
        {"one station, bounds (From, To]", #{start => From, start_inclusive => false, 'end' => To, end_inclusive => true, rows => keys}},
        {"nothing matches", #{filter => {'=', field(time, timestamp), {const, 1}}}}
    ].

field(Name, Type) -> {field, atom_to_binary(Name, utf8), Type}.

queries(Transport, Rows, Ask) ->
    lists:sum([one(Transport, Case, Rows, Ask) || Case <- cases()]).

one(Transport, {Title, Opts}, Rows, Ask) ->
    Range = [Row || {Key, _, _} = Row <- Rows, in_range(Key, Opts)],
    Expected = expected(Range, Opts),
    {Micros, Answer} = timer:tc(fun() -> Ask(Opts) end),
    Answer =:= Expected orelse error({wrong_answer, Title, length(Answer), length(Expected)}),
    io:format("~-44ts ~8b ~8b ~7.1f ~10b  ~-24s ~s~n", [
        Title, length(Range), length(Answer), Micros / 1000, round(length(Range) * 1.0e6 / max(1, Micros)), met(Answer), Transport
    ]),
    1.

%% What the store is asked, in the simplest client: rows as they come.
-spec query(scanode:db(), map()) -> [scanode:row()].
query(Db, Opts) ->
    lists:reverse(scanode:fold(Db, fun(Row, Acc) -> [Row | Acc] end, [], Opts)).

%% The same in Erlang over the rows in memory.
expected(Range, Opts) ->
    Kept =
        case Opts of
            #{filter := Filter} -> [Row || {_, _, Cells} = Row <- Range, riak_rows:matches(Filter, Cells) =:= true];
            #{} -> Range
        end,
    Limited =
        case Opts of
            #{limit := N} -> lists:sublist(Kept, N);
            #{} -> Kept
        end,
    case Opts of
        #{rows := keys} -> [Key || {Key, _, _} <- Limited];
        #{} -> [{Key, Object} || {Key, Object, _} <- Limited]
    end.

in_range(Key, Opts) ->
    Above =
        case Opts of
            #{start := From, start_inclusive := false} -> Key > From;
            #{start := From} -> Key >= From;
            #{} -> true
        end,
    Below =
        case Opts of
            #{'end' := To, end_inclusive := true} -> Key =< To;
            #{'end' := To} -> Key < To;
            #{} -> true
        end,
    Above andalso Below.

%% How many rows of each encoding an answer holds.
met(Answer) ->
    Count = fun(Tag) -> length([x || {_, Object} <- Answer, tag(Object) =:= Tag]) end,
    case {Count(0), Count(2)} of
        {0, 0} -> "-";
        {Ttb, Msgpack} -> io_lib:format("ttb ~b, msgpack ~b", [Ttb, Msgpack])
    end.

tag(<<53, 1, Clock:32, _:Clock/binary, 1:32, _:32, Tag, _/binary>>) -> Tag.
