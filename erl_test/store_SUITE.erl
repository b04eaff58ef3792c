%% Stores as a whole: removed, repaired, asked whether they are empty, left by their openers. Everything runs over a port and against a node.
-module(store_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, groups/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_group/2, end_per_group/2, end_per_testcase/2]).
-export([
    destroyed/1,
    destroyed_and_opened_at_once/1,
    destroy_of_what_is_no_store/1,
    repaired/1,
    damaged/1,
    open_stores_are_locked/1,
    left_by_its_opener/1,
    paths/1,
    is_empty/1,
    empty_again/1,
    facts/1,
    left_for_ever/1
]).

suite() -> [{timetrap, {seconds, 240}}].

all() -> [{group, port}, {group, node}].

groups() ->
    Cases = [
        F
     || {F, 1} <- ?MODULE:module_info(exports), not lists:member(F, [init_per_suite, end_per_suite, module_info])
    ],
    [{port, [], Cases}, {node, [], Cases}].

init_per_suite(Config) ->
    _ = test_program:executable(),
    Config.

end_per_suite(_Config) ->
    ok.

init_per_group(port, Config) ->
    {ok, _} = application:ensure_all_started(scanode),
    [{target, #{}} | Config];
init_per_group(node, Config) ->
    #{node := Node} = Program = test_node:start(Config),
    [{target, #{node => Node}}, {program, Program} | Config].

end_per_group(port, _Config) ->
    ok = application:stop(scanode);
end_per_group(node, Config) ->
    ok = test_node:stop(?config(program, Config)).

end_per_testcase(_Case, _Config) ->
    [] = test_program:flush(),
    ok.

%% The name to open, and where that is.
directory(Config, Case) ->
    case {?config(target, Config), test_program:directory(Config, Case)} of
        {#{node := _}, Dir} ->
            #{data := Data} = ?config(program, Config),
            {filename:basename(Dir), filename:join(Data, filename:basename(Dir))};
        {_, Dir} ->
            {Dir, Dir}
    end.

open(Config, Name) ->
    {ok, Db} = scanode:open(Name, ?config(target, Config)),
    Db.

filled(Config, Name, Count) ->
    Db = open(Config, Name),
    ok = scanode:write(Db, [{put, <<I:32>>, <<"v">>} || I <- lists:seq(1, Count)], [sync]),
    Db.

keys(Db) ->
    lists:reverse(scanode:fold(Db, fun(Key, Keys) -> [Key | Keys] end, [], #{rows => keys})).

in_a_process(Fun) ->
    {_, Monitor} = spawn_monitor(Fun),
    receive
        {'DOWN', Monitor, _, _, Reason} -> normal = Reason
    end.

destroyed(Config) ->
    Target = ?config(target, Config),
    {Name, Path} = directory(Config, ?FUNCTION_NAME),
    ok = scanode:close(filled(Config, Name, 10)),
    true = filelib:is_dir(Path),
    ok = scanode:destroy(Name, Target),
    false = filelib:is_file(Path),
    {error, {missing, _}} = scanode:open(Name, Target#{create_if_missing => false}),
    ok = scanode:destroy(Name, Target),
    Db = open(Config, Name),
    [] = keys(Db),
    ok = scanode:close(Db),
    %% What is not the store's stays.
    ok = file:write_file(filename:join(Path, "note"), "mine"),
    ok = scanode:destroy(Name, Target),
    {ok, ["note"]} = file:list_dir(Path),
    {error, {foreign, _}} = scanode:destroy(Name, Target).

destroyed_and_opened_at_once(Config) ->
    Target = ?config(target, Config),
    {Name, _} = directory(Config, ?FUNCTION_NAME),
    [
        begin
            Db = filled(Config, Name, 10),
            ok = scanode:close(Db),
            ok = scanode:destroy(Name, Target)
        end
     || _ <- lists:seq(1, 5)
    ].

destroy_of_what_is_no_store(Config) ->
    Target = ?config(target, Config),
    {Name, Path} = directory(Config, ?FUNCTION_NAME),
    ok = file:make_dir(Path),
    ok = scanode:destroy(Name, Target),
    ok = file:make_dir(Path),
    File = filename:join(Path, "CURRENT"),
    ok = file:write_file(File, "MANIFEST-000001\n"),
    Left = [scanode:destroy(Name, Target), element(1, scanode:repair(Name, Target))],
    {ok, <<"MANIFEST-000001\n">>} = file:read_file(File),
    ct:log("~p", [Left]).

repaired(Config) ->
    Target = ?config(target, Config),
    {Name, _} = directory(Config, ?FUNCTION_NAME),
    {ok, #{rows := 0, lost := [], aside := <<>>}} = scanode:repair(Name, Target),
    Db = filled(Config, Name, 1000),
    Keys = keys(Db),
    ok = scanode:close(Db),
    {ok, #{rows := 1000, lost := [], aside := Aside}} = scanode:repair(Name, Target),
    true = filelib:is_dir(Aside),
    Again = open(Config, Name),
    Keys = keys(Again),
    ok = scanode:close(Again).

%% A store that is refused for the damage of a table comes back with what can be read.
damaged(Config) ->
    Target = ?config(target, Config),
    {Name, Path} = directory(Config, ?FUNCTION_NAME),
    Db = open(Config, Name),
    [ok = scanode:write(Db, [{put, <<I:32>>, rand:bytes(1000)} || I <- lists:seq(N, N + 999)], []) || N <- lists:seq(1, 5000, 1000)],
    Keys = keys(Db),
    ok = scanode:close(Db),
    [Table | _] = filelib:wildcard(filename:join(Path, "*.sst")),
    {ok, Bytes} = file:read_file(Table),
    Middle = byte_size(Bytes) div 2,
    <<Head:Middle/binary, Byte, Tail/binary>> = Bytes,
    ok = file:write_file(Table, [Head, Byte bxor 16#ff, Tail]),
    {ok, #{rows := Rows, lost := [_ | _] = Lost}} = scanode:repair(Name, Target),
    true = lists:all(fun is_binary/1, Lost),
    ct:log("~b of ~b rows are left; lost: ~p", [Rows, length(Keys), Lost]),
    Again = open(Config, Name),
    Left = keys(Again),
    Rows = length(Left),
    [] = Left -- Keys,
    true = Rows > 0 andalso Rows < length(Keys),
    ok = scanode:close(Again).

open_stores_are_locked(Config) ->
    Target = ?config(target, Config),
    {Name, _} = directory(Config, ?FUNCTION_NAME),
    Db = filled(Config, Name, 10),
    {error, {locked, _}} = scanode:destroy(Name, Target),
    {error, {locked, _}} = scanode:repair(Name, Target),
    10 = length(keys(Db)),
    ok = scanode:close(Db),
    {ok, #{rows := 10}} = scanode:repair(Name, Target).

%% A dead opener's store yields to who wants to remove it.
left_by_its_opener(Config) ->
    Target = ?config(target, Config),
    {Name, _} = directory(Config, ?FUNCTION_NAME),
    in_a_process(fun() -> filled(Config, Name, 10) end),
    ok = test_program:await(fun() -> scanode:destroy(Name, Target) =:= ok end),
    Db = open(Config, Name),
    [] = keys(Db),
    ok = scanode:close(Db).

paths(Config) ->
    Target = ?config(target, Config),
    [
        begin
            {error, {bad_option, _}} = scanode:Call(element(1, directory(Config, x)), Target#{create_if_missing => true}),
            {error, {bad_option, _}} = scanode:Call(element(1, directory(Config, x)), Target#{engine => steam}),
            {error, {bad_request, _}} = scanode:Call(atom, Target),
            {error, {bad_request, _}} = scanode:Call(<<>>, Target)
        end
     || Call <- [destroy, repair]
    ],
    case Target of
        #{node := _} ->
            [{error, {bad_path, _}} = scanode:Call(Dir, Target) || Call <- [destroy, repair], Dir <- ["..", "/tmp/x", "a/../../b"]];
        #{} ->
            ok
    end.

is_empty(Config) ->
    {Name, _} = directory(Config, ?FUNCTION_NAME),
    Db = open(Config, Name),
    {ok, true} = scanode:is_empty(Db),
    {ok, Empty} = scanode:snapshot(Db),
    ok = scanode:put(Db, <<>>, <<>>),
    {ok, false} = scanode:is_empty(Db),
    {ok, true} = scanode:is_empty(Empty),
    {ok, Full} = scanode:snapshot(Db),
    ok = scanode:delete(Db, <<>>),
    {ok, true} = scanode:is_empty(Db),
    {ok, false} = scanode:is_empty(Full),
    ok = scanode:close(Db),
    {error, closed} = scanode:is_empty(Db),
    {error, closed} = scanode:is_empty(Full),
    ?assertError(badarg, scanode:is_empty(Name)).

%% Many deleted rows in front.
empty_again(Config) ->
    {Name, _} = directory(Config, ?FUNCTION_NAME),
    Db = filled(Config, Name, 50000),
    ok = scanode:write(Db, [{delete, <<I:32>>} || I <- lists:seq(1, 49999)], []),
    {ok, false} = scanode:is_empty(Db),
    ok = scanode:delete(Db, <<50000:32>>),
    [{ok, true} = scanode:is_empty(Db) || _ <- lists:seq(1, 10)],
    ok = scanode:close(Db).

facts(Config) ->
    {Name, _} = directory(Config, ?FUNCTION_NAME),
    Db = filled(Config, Name, 1000),
    ok = scanode:close(Db),
    Again = open(Config, Name),
    {ok, #{level_files := Levels, table_bytes := TableBytes, block_cache_bytes := _, file_cache_bytes := _, table := Table, read_errors := 0, files := Files}} =
        scanode:info(Again),
    Files = lists:sum(Levels),
    true = TableBytes > 0 andalso Files > 0,
    true = is_binary(Table) andalso byte_size(Table) > 0,
    ok = scanode:close(Again).

%% orphan_ms: a store nobody uses stays open after its opener's death as long as that says.
left_for_ever(Config) ->
    Target = ?config(target, Config),
    Self = self(),
    Open = fun(Orphan) ->
        {Name, _} = directory(Config, ?FUNCTION_NAME),
        in_a_process(fun() ->
            {ok, Db} = scanode:open(Name, Target#{orphan_ms => Orphan}),
            Self ! {db, Db}
        end),
        receive
            {db, Db} -> Db
        end
    end,
    [Kept, Short] = [Open(infinity), Open(0)],
    ok = test_program:await(fun() -> scanode:info(Short) =:= {error, closed} end),
    {ok, true} = scanode:is_empty(Kept),
    in_a_process(fun() -> ok = scanode:close(Kept) end),
    {error, closed} = scanode:is_empty(Kept).
