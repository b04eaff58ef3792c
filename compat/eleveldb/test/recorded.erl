%% What was recorded of eleveldb (riak_ts-1.5.2): files of one JSON object a line, compressed.
-module(recorded).

-export([filters/0, multirow/0, ranges/0, iterators/0, datasets/0]).
-export([bin/1]).

%% The filters' are the Go package's, too.
filters() -> read(shared("filter_cases")) ++ read(shared("filter_unstable")).

multirow() -> read(shared("multirow_cases")).

ranges() -> read(own("range_cases")).

iterators() -> read(own("iterator_cases")).

%% Dataset => its rows, in order.
datasets() ->
    maps:from_list([
        {Name, [{bin(K), bin(V)} || [K, V] <- Rows]}
     || #{<<"dataset">> := Name, <<"rows">> := Rows} <- read(own("range_datasets"))
    ]).

%% A field that holds bytes.
bin(Base64) -> base64:decode(Base64).

own(Name) -> filename:join([eleveldb_test:root(), "compat", "eleveldb", "test", "testdata", Name ++ ".jsonl.gz"]).

shared(Name) -> filename:join([eleveldb_test:root(), "filter", "testdata", Name ++ ".jsonl.gz"]).

read(File) ->
    {ok, Packed} = file:read_file(File),
    [element(1, value(Line)) || Line <- binary:split(zlib:gunzip(Packed), <<"\n">>, [global]), Line =/= <<>>].

%% JSON. Objects are maps, strings binaries.

value(<<C, T/binary>>) when C =:= $\s -> value(T);
value(<<"{", T/binary>>) -> object(skip(T), #{});
value(<<"[", T/binary>>) -> array(skip(T), []);
value(<<"\"", T/binary>>) -> string(T, <<>>);
value(<<"true", T/binary>>) -> {true, T};
value(<<"false", T/binary>>) -> {false, T};
value(<<"null", T/binary>>) -> {null, T};
value(Number) ->
    {match, [{0, Length}]} = re:run(Number, "^-?[0-9]+", []),
    <<Digits:Length/binary, T/binary>> = Number,
    {binary_to_integer(Digits), T}.

object(<<"}", T/binary>>, Map) ->
    {Map, T};
object(<<"\"", T/binary>>, Map) ->
    {Name, T1} = string(T, <<>>),
    <<":", T2/binary>> = skip(T1),
    {Value, T3} = value(skip(T2)),
    object(comma(skip(T3)), Map#{Name => Value}).

array(<<"]", T/binary>>, Values) ->
    {lists:reverse(Values), T};
array(T, Values) ->
    {Value, T1} = value(T),
    array(comma(skip(T1)), [Value | Values]).

comma(<<",", T/binary>>) -> skip(T);
comma(T) -> T.

skip(<<" ", T/binary>>) -> skip(T);
skip(T) -> T.

string(<<"\"", T/binary>>, S) -> {S, T};
string(<<"\\u", Hex:4/binary, T/binary>>, S) -> string(T, <<S/binary, (binary_to_integer(Hex, 16))/utf8>>);
string(<<"\\", C, T/binary>>, S) -> string(T, <<S/binary, (escaped(C))>>);
string(<<C, T/binary>>, S) -> string(T, <<S/binary, C>>).

escaped($n) -> $\n;
escaped($r) -> $\r;
escaped($t) -> $\t;
escaped($b) -> $\b;
escaped($f) -> $\f;
escaped(C) -> C.
