%% @private
%% The names of eleveldb:status/2, and what of scanode:info/1 answers them.
-module(eleveldb_status).

-export([value/2]).

%% @doc The value of a name, in the original's form: numbers are decimal.
-spec value(binary(), #{atom() => term()}) -> {ok, binary()} | error.
value(<<"leveldb.stats">>, #{table := Table}) -> {ok, Table};
value(<<"leveldb.sstables">>, #{text := Text}) -> {ok, Text};
%% Of the tables; what is only in the log does not count, as in the original.
value(<<"leveldb.total-bytes">>, #{table_bytes := Bytes}) -> number(Bytes);
value(<<"leveldb.ReadBlockError">>, #{read_errors := Errors}) -> number(Errors);
value(<<"leveldb.block-cache">>, #{block_cache_bytes := Bytes}) -> number(Bytes);
value(<<"leveldb.file-cache">>, #{file_cache_bytes := Bytes}) -> number(Bytes);
value(<<"leveldb.num-files-at-level", Level>>, #{level_files := Files}) when Level >= $0, Level =< $9, Level - $0 < length(Files) ->
    number(lists:nth(Level - $0 + 1, Files));
value(_, _) ->
    error.

-spec number(non_neg_integer()) -> {ok, binary()}.
number(N) -> {ok, integer_to_binary(N)}.
