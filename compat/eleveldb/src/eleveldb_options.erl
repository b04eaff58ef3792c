%% @private
%% The options of eleveldb, and what becomes of them here.
%%
%% An option is a pair in a list. As in the original, whatever else stands in the list is passed over, and so is a pair whose name or kind of value nobody
%% knows; of two pairs with one name the later counts. README.md lists the options without meaning here.
-module(eleveldb_options).

-export([types/1, validate/2]).
-export([open/1, without_expiry/1, sync/1, refresh/1, start/2, stream/1, program_args/0]).
-export_type([type/0]).

-type type() :: bool | integer | any | [snappy | lz4 | false, ...] | [unlimited | integer, ...].

-define(COMPRESSION, [snappy, lz4, false]).
-define(MINUTES, [unlimited, integer]).

%% What a number may be to be taken, where the original reads an unsigned of 32 bits.
-define(IS_UINT32(N), (is_integer(N) andalso N >= 0 andalso N =< 16#ffffffff)).

%% What the program takes where a developer runs many nodes on one machine.
-define(DEVELOPER_BYTES, (128 bsl 20)).

%% A total_memory below this is no machine's, and counts as none, as in the original.
-define(LEAST_TOTAL, (1 bsl 30)).

%% @doc The names of the options and the kinds of their values, in the original's order.
-spec types(open | read | write) -> [{atom(), type()}].
types(open) ->
    [
        {create_if_missing, bool},
        {error_if_exists, bool},
        {write_buffer_size, integer},
        {block_size, integer},
        {sst_block_size, integer},
        {block_restart_interval, integer},
        {block_size_steps, integer},
        {paranoid_checks, bool},
        {verify_compactions, bool},
        {compression, ?COMPRESSION},
        {use_bloomfilter, any},
        {total_memory, integer},
        {total_leveldb_mem, integer},
        {total_leveldb_mem_percent, integer},
        {is_internal_db, bool},
        {limited_developer_mem, bool},
        {eleveldb_threads, integer},
        {eleveldb_stream_threads, integer},
        {fadvise_willneed, bool},
        {block_cache_threshold, integer},
        {delete_threshold, integer},
        {tiered_slow_level, integer},
        {tiered_fast_prefix, any},
        {tiered_slow_prefix, any},
        {cache_object_warming, bool},
        {expiry_enabled, bool},
        {expiry_minutes, ?MINUTES},
        {whole_file_expiry, bool}
    ];
types(read) ->
    [{verify_checksums, bool}, {fill_cache, bool}, {iterator_refresh, bool}];
types(write) ->
    [{sync, bool}].

%% @doc Parts a list of pairs in those that are an option of this kind with a value of its type, and the others, both in their order.
-spec validate(open | read | write, [{atom(), term()}]) -> {[{atom(), term()}], [{atom(), term()}]}.
validate(Kind, Options) ->
    Types = maps:from_list(types(Kind)),
    lists:partition(fun({Name, Value}) -> fits(maps:get(Name, Types, none), Value) end, Options).

-spec fits(type() | none, term()) -> boolean().
fits(bool, Value) -> is_boolean(Value);
fits(integer, Value) -> is_integer(Value);
fits(any, _) -> true;
fits(?MINUTES, Value) -> Value =:= unlimited orelse is_integer(Value);
fits(?COMPRESSION, Value) -> lists:member(Value, ?COMPRESSION);
fits(none, _) -> false.

%% @doc The options of scanode:open/2.
-spec open([term()]) -> #{atom() => term()}.
open(Options) ->
    Port = eleveldb_sup:program(),
    %% Differs from eleveldb, which closes a store when the last process that has its handle is gone: that cannot be seen from here. It stays open until its
    %% directory is opened anew or the program ends.
    Defaults = #{port => Port, create_if_missing => false, error_if_exists => false, orphan_ms => infinity, is_internal_db => false},
    expiring(fold(fun open/3, Defaults, Options)).

%% Without expiry its settings say nothing. Nor do they for Riak's hash trees: rows that went away by themselves would make the trees wrong.
-spec expiring(map()) -> map().
expiring(#{expiry_enabled := true, is_internal_db := false} = Map) -> maps:remove(is_internal_db, Map);
expiring(Map) -> maps:remove(is_internal_db, without_expiry(Map)).

%% @doc Options of scanode:open/2 without those of expiry.
-spec without_expiry(#{atom() => term()}) -> #{atom() => term()}.
without_expiry(Map) -> maps:without([expiry_enabled, expiry_minutes, whole_file_expiry], Map).

-spec open(atom(), term(), map()) -> map().
open(create_if_missing, Value, Map) -> Map#{create_if_missing => Value =:= true};
open(error_if_exists, Value, Map) -> Map#{error_if_exists => Value =:= true};
%% The engine refuses what is out of its bounds; the original takes it.
open(write_buffer_size, Bytes, Map) when is_integer(Bytes) -> Map#{write_buffer_size => clamp(Bytes, 1 bsl 16, 1 bsl 30)};
open(sst_block_size, Bytes, Map) when is_integer(Bytes) -> Map#{sst_block_size => clamp(Bytes, 1 bsl 10, 1 bsl 22)};
open(compression, Value, Map) -> Map#{compression => compression(Value)};
open(is_internal_db, Value, Map) -> Map#{is_internal_db => Value =:= true};
open(expiry_enabled, Value, Map) -> Map#{expiry_enabled => Value =:= true};
open(expiry_minutes, unlimited, Map) -> Map#{expiry_minutes => 0};
open(expiry_minutes, Minutes, Map) when is_integer(Minutes) -> Map#{expiry_minutes => clamp(Minutes, 0, 1 bsl 30)};
open(whole_file_expiry, Value, Map) -> Map#{whole_file_expiry => Value =:= true};
open(Name, Path, Map) when Name =:= tiered_fast_prefix; Name =:= tiered_slow_prefix -> prefix(Name, Path, Map);
open(paranoid_checks, Value, Map) -> Map#{paranoid_checks => Value =:= true};
open(use_bloomfilter, true, Map) -> Map#{use_bloomfilter => 16};
open(use_bloomfilter, Bits, Map) when is_integer(Bits) -> Map#{use_bloomfilter => clamp(Bits, 0, 64)};
open(use_bloomfilter, _, Map) -> Map#{use_bloomfilter => false};
open(_, _, Map) -> Map.

%% As the original: a string shorter than 256, or no prefix.
-spec prefix(atom(), term(), map()) -> map().
prefix(Name, Path, Map) ->
    try unicode:characters_to_binary(Path) of
        <<_, _/binary>> = Bytes when is_list(Path), length(Path) < 256 -> Map#{Name => Bytes};
        _ -> maps:remove(Name, Map)
    catch
        error:badarg -> maps:remove(Name, Map)
    end.

-spec compression(term()) -> snappy | lz4 | none.
compression(lz4) -> lz4;
compression(Value) when Value =:= snappy; Value =:= on; Value =:= true -> snappy;
compression(_) -> none.

%% @doc Whether a write is to be synced.
-spec sync([term()]) -> boolean().
sync([]) -> false;
sync(Options) -> fold(fun sync/3, false, Options).

-spec sync(atom(), term(), boolean()) -> boolean().
sync(sync, Value, _) -> Value =:= true;
sync(_, _, Sync) -> Sync.

%% @doc Whether an iterator is to take a new view now and then.
-spec refresh([term()]) -> boolean().
refresh(Options) -> fold(fun refresh/3, false, Options).

-spec refresh(atom(), term(), boolean()) -> boolean().
refresh(iterator_refresh, Value, _) -> Value =:= true;
refresh(_, _, Refresh) -> Refresh.

%% @doc Where a fold starts: the option has one name in the main line of eleveldb and another in Riak TS. Read as proplists does: the first counts.
-spec start([term()], Default) -> term() | Default.
start(Options, Default) ->
    case proplists:get_value(first_key, Options) of
        undefined -> proplists:get_value(start_key, Options, Default);
        Key -> Key
    end.

%% @doc The options of a scan by which a streaming fold is done, but for its bounds.
-spec stream([term()]) -> #{atom() => term()}.
stream(Options) ->
    fold(fun stream/3, #{max_batch_bytes => 1 bsl 20, max_unacked_bytes => 10 bsl 20}, Options).

-spec stream(atom(), term(), map()) -> map().
stream(start_inclusive, Value, Map) -> Map#{start_inclusive => Value =:= true};
stream(end_inclusive, Value, Map) -> Map#{end_inclusive => Value =:= true};
stream(limit, Rows, Map) when ?IS_UINT32(Rows) -> Map#{limit => Rows};
stream(range_filter, Filter, Map) -> Map#{filter => Filter};
%% 0 is what 1 is: a batch for each row, one batch under way. The original's sender never goes on when 0 bytes may be unacknowledged.
stream(max_batch_bytes, Bytes, Map) when ?IS_UINT32(Bytes) -> Map#{max_batch_bytes => clamp(Bytes, 1, 16 bsl 20)};
stream(max_unacked_bytes, Bytes, Map) when ?IS_UINT32(Bytes) -> Map#{max_unacked_bytes => clamp(Bytes, 1, 1 bsl 30)};
stream(_, _, Map) -> Map.

-spec clamp(integer(), integer(), integer()) -> integer().
clamp(N, Least, Most) -> max(Least, min(N, Most)).

%% The tail of an improper list is passed over too.
-spec fold(fun((atom(), term(), Acc) -> Acc), Acc, term()) -> Acc.
fold(Fun, Acc, [{Name, Value} | Options]) when is_atom(Name) -> fold(Fun, Fun(Name, Value, Acc), Options);
fold(Fun, Acc, [_ | Options]) -> fold(Fun, Acc, Options);
fold(_, Acc, _) -> Acc.

%% @doc What the program is started with: its memory, by the application's environment. Nothing there leaves the choice to the program.
-spec program_args() -> [string()].
program_args() ->
    Env = fun(Name) -> application:get_env(eleveldb, Name, undefined) end,
    memory(Env(limited_developer_mem), Env(total_leveldb_mem), Env(total_leveldb_mem_percent), Env(total_memory)).

%% Shares are of what the program finds, which is the machine or the limit of its control group, unless total_memory says what there is.
-spec memory(term(), term(), term(), term()) -> [string()].
memory(true, _, _, _) ->
    mebibytes(?DEVELOPER_BYTES);
memory(_, Bytes, _, _) when is_integer(Bytes), Bytes > 0 ->
    mebibytes(Bytes);
memory(_, _, Percent, Total) when is_integer(Percent), Percent >= 1, Percent =< 100, is_integer(Total), Total >= ?LEAST_TOTAL ->
    mebibytes(Total * Percent div 100);
memory(_, _, Percent, _) when is_integer(Percent), Percent >= 1, Percent =< 100 ->
    ["--memory-percent", integer_to_list(Percent)];
memory(_, _, _, _) ->
    [].

%% Within the program's bounds.
-spec mebibytes(pos_integer()) -> [string()].
mebibytes(Bytes) ->
    ["--memory-mib", integer_to_list(clamp(Bytes bsr 20, 128, 1 bsl 24))].
