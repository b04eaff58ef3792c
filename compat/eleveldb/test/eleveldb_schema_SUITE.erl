%% The schemas for riak.conf: they are read as cuttlefish reads them, and know the settings the original's know.
-module(eleveldb_schema_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, settings/1, targets/1, translations/1]).

all() -> [settings, targets, translations].

%% In riak.conf, by eleveldb 3.0.
names() ->
    ["data_root", "maximum_memory.percent", "maximum_memory", "sync_on_write", "limited_developer_mem", "write_buffer_size_min",
        "write_buffer_size_max", "bloomfilter", "block_cache_threshold", "block.size", "block.restart_interval", "block.size_steps",
        "verify_checksums", "verify_compaction", "threads", "fadvise_willneed", "compression", "compression.algorithm",
        "compaction.trigger.tombstone_count", "tiered", "cache_object_warming", "expiration", "expiration.retention_time", "expiration.mode"].

settings(_Config) ->
    Paths = fun(Name) -> ["tiered." ++ Name ++ Kind || Kind <- [".fast", ".slow"]] end,
    ?assertEqual(
        lists:sort(["leveldb." ++ Name || Name <- names() ++ Paths("path")]),
        lists:sort([Name || {mapping, Name, _, _} <- schema("eleveldb.schema")])
    ),
    ?assertEqual(
        lists:sort(["multi_backend.$name.leveldb." ++ Name || Name <- names() ++ Paths("mountpoint")]),
        lists:sort([Name || {mapping, Name, "riak_kv.multi_backend", _} <- schema("eleveldb_multi.schema")])
    ),
    [?assertNotEqual(undefined, proplists:get_value(datatype, Attributes)) || {mapping, _, _, Attributes} <- schema("eleveldb.schema")].

%% What is set is an option of open, of reads or of writes, or one of the few that others than eleveldb look at.
targets(_Config) ->
    Options = [Name || Kind <- [open, read, write], {Name, _} <- eleveldb:option_types(Kind)],
    Known = [data_root, write_buffer_size_min, write_buffer_size_max, verify_compaction | Options],
    [
        ?assert(lists:member(list_to_atom(Option), Known))
     || {mapping, _, "eleveldb." ++ Option, _} <- schema("eleveldb.schema")
    ].

translations(_Config) ->
    Translations = maps:from_list([{To, Fun} || {translation, To, Fun} <- schema("eleveldb.schema")]),
    Translate = fun(To, Conf) -> (maps:get("eleveldb." ++ To, Translations))(Conf) end,
    false = Translate("compression", #{"leveldb.compression" => false}),
    snappy = Translate("compression", #{"leveldb.compression" => true}),
    lz4 = Translate("compression", #{"leveldb.compression" => true, "leveldb.compression.algorithm" => lz4}),
    0 = Translate("delete_threshold", #{"leveldb.compaction.trigger.tombstone_count" => off}),
    7 = Translate("delete_threshold", #{"leveldb.compaction.trigger.tombstone_count" => 7}),
    0 = Translate("tiered_slow_level", #{"leveldb.tiered" => off}),
    3 = Translate("tiered_slow_level", #{"leveldb.tiered" => 3}).

%% Its terms. What translations call of cuttlefish is looked up in a map.
schema(Name) ->
    {ok, Text} = file:read_file(filename:join([eleveldb_test:root(), "compat", "eleveldb", "priv", Name])),
    {ok, Tokens, _} = erl_scan:string(binary_to_list(Text)),
    [term(Form) || Form <- forms(Tokens, [])].

forms([], []) -> [];
forms([{dot, _} = Dot | Tokens], Form) -> [lists:reverse(Form, [Dot]) | forms(Tokens, [])];
forms([Token | Tokens], Form) -> forms(Tokens, [Token | Form]).

term(Tokens) ->
    {ok, Expressions} = erl_parse:parse_exprs(Tokens),
    {value, Term, _} = erl_eval:exprs(Expressions, [], none, {value, fun call/2}),
    Term.

call({cuttlefish, conf_get}, [Name, Conf]) -> maps:get(Name, Conf);
call({cuttlefish, conf_get}, [Name, Conf, Default]) -> maps:get(Name, Conf, Default).
