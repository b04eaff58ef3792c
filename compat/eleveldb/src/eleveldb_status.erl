%% @private
%% The names of eleveldb:status/2, and what of scanode:info/1 answers them.
-module(eleveldb_status).

-export([value/2]).

%% @doc The value of a name, in the original's form: numbers are decimal.
-spec value(binary(), #{atom() => term()}) -> {ok, binary()} | error.
value(<<"leveldb.stats">>, #{text := Text}) -> {ok, Text};
value(<<"leveldb.total-bytes">>, #{disk_bytes := Bytes}) -> {ok, integer_to_binary(Bytes)};
value(<<"leveldb.ReadBlockError">>, #{read_errors := Errors}) -> {ok, integer_to_binary(Errors)};
value(_, _) -> error.
