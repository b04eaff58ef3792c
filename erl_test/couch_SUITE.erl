%% Stores of the engine couch, over a port: the whole of the API on one, what survives a program that is killed, and what is left of a store that was
%% written again and again. That folds, rows, aggregates and iterators are the same as on the other engine is in their own suites.
-module(couch_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([whole_api/1, killed/1, checked/1, compacted/1, engines_keep_apart/1, bad_options/1]).

suite() -> [{timetrap, {seconds, 120}}].

all() -> [whole_api, killed, checked, compacted, engines_keep_apart, bad_options].

init_per_suite(Config) ->
    _ = test_program:executable(),
    {ok, _} = application:ensure_all_started(scanode),
    Config.

end_per_suite(_Config) ->
    ok = application:stop(scanode).

open(Config, Case, Opts) ->
    Dir = test_program:directory(Config, Case),
    {ok, Db} = scanode:open(Dir, Opts#{engine => couch}),
    {Dir, Db}.

row(Device, Time, Temperature) ->
    {<<Device/binary, Time:32>>, scanode_row:encode([{<<"device">>, Device}, {<<"time">>, Time}, {<<"temp">>, Temperature}])}.

%% Readings of a few devices, and what is asked of them.
whole_api(Config) ->
    {_, Db} = open(Config, ?FUNCTION_NAME, #{}),
    Rows = [row(D, T, T * 0.5) || D <- [<<"a">>, <<"b">>, <<"c">>], T <- lists:seq(1, 1000)],
    ok = scanode:write(Db, [{put, K, V} || {K, V} <- Rows], #{sync => true}),
    {K1, V1} = hd(Rows),
    {ok, V1} = scanode:get(Db, K1),
    not_found = scanode:get(Db, <<"absent">>),
    3000 = scanode:fold(Db, fun({_, _}, N) -> N + 1 end, 0, #{}),
    Hot = {'>', {field, <<"temp">>, double}, {const, 499.0}},
    OfB = #{start => <<"b">>, 'end' => <<"c">>},
    [{<<"b">>, 999}, {<<"b">>, 1000}] = lists:reverse(
        scanode:fold(Db, fun([D, T], Acc) -> [{D, T} | Acc] end, [], OfB#{filter => Hot, rows => {select, [<<"device">>, <<"time">>]}})
    ),
    {ok, Snapshot} = scanode:snapshot(Db),
    ok = scanode:delete(Db, K1),
    not_found = scanode:get(Db, K1),
    {ok, V1} = scanode:get(Snapshot, K1),
    2999 = scanode:fold(Db, fun(_, N) -> N + 1 end, 0, #{}),
    3000 = scanode:fold(Snapshot, fun(_, N) -> N + 1 end, 0, #{}),
    {ok, Iterator} = scanode:iterator(Snapshot, #{}),
    ok = scanode:close(Iterator),
    ok = scanode:close(Snapshot),
    {ok, #{engine := <<"couch">>, text := Text}} = scanode:info(Db),
    [?assertNotEqual(nomatch, string:find(Text, Word)) || Word <- ["rows, depth", "garbage", "compaction: would leave", "commits:", "log:"]],
    ok = scanode:close(Db).

%% With a log, what was put without a sync survives the program's end; with headers, what was synced.
killed(Config) ->
    lists:foreach(
        fun({Mode, Survives}) ->
            {Dir, Db} = open(Config, list_to_atom("killed_" ++ atom_to_list(Mode)), #{commit => Mode, flush_ms => 3600000}),
            ok = scanode:write(Db, [{put, <<"synced">>, <<"1">>}], #{sync => true}),
            ok = scanode:put(Db, <<"put">>, <<"2">>),
            OsPid = test_program:os_pid(),
            ok = test_program:kill("KILL", OsPid),
            ok = test_program:await_exit(OsPid),
            {ok, Again} = scanode:open(Dir, #{engine => couch, create_if_missing => false, paranoid_checks => true}),
            {ok, <<"1">>} = scanode:get(Again, <<"synced">>),
            Survives = scanode:get(Again, <<"put">>),
            ok = scanode:close(Again)
        end,
        [{log, {ok, <<"2">>}}, {header, not_found}]
    ).

%% `scanode check' finds nothing wrong, and knows what is behind the header of an open store.
checked(Config) ->
    {Dir, Db} = open(Config, ?FUNCTION_NAME, #{}),
    [ok = scanode:put(Db, <<I:32>>, <<"value">>) || I <- lists:seq(1, 500)],
    Check = fun() -> os:cmd(lists:flatten(["'", test_program:executable(), "' check '", Dir, "/store.couch'; echo status $?"])) end,
    Open = Check(),
    ?assertNotEqual(nomatch, string:find(Open, "500 batches lie in a log")),
    ?assertNotEqual(nomatch, string:find(Open, "status 0")),
    ok = scanode:close(Db),
    Closed = Check(),
    ?assertNotEqual(nomatch, string:find(Closed, "500 rows")),
    ?assertEqual(nomatch, string:find(Closed, "in a log")),
    ?assertNotEqual(nomatch, string:find(Closed, "status 0")).

%% A store that is written again and again stays small.
compacted(Config) ->
    {Dir, Db} = open(Config, ?FUNCTION_NAME, #{compact_min_size => 100000, write_buffer_size => 65536}),
    Value = binary:copy(<<"v">>, 500),
    [ok = scanode:put(Db, <<(I rem 100):32>>, <<I:32, Value/binary>>) || I <- lists:seq(1, 10000)],
    Compacted = fun() ->
        {ok, #{text := Text}} = scanode:info(Db),
        {match, [Count]} = re:run(Text, "compactions: ([0-9]+) since open, 0 failed", [{capture, [1], list}]),
        list_to_integer(Count) > 0
    end,
    ok = test_program:await(Compacted),
    100 = scanode:fold(Db, fun(_, N) -> N + 1 end, 0, #{}),
    {ok, <<10000:32, Value/binary>>} = scanode:get(Db, <<0:32>>),
    ok = scanode:close(Db),
    %% 5 MB were written.
    ?assert(filelib:file_size(filename:join(Dir, "store.couch")) < 2000000).

%% Each engine refuses the other's stores, and destroys only its own.
engines_keep_apart(Config) ->
    {Dir, Db} = open(Config, ?FUNCTION_NAME, #{}),
    ok = scanode:put(Db, <<"k">>, <<"v">>),
    ok = scanode:close(Db),
    {error, {foreign, _}} = scanode:open(Dir, #{}),
    {error, {foreign, _}} = scanode:destroy(Dir, #{}),
    {ok, #{rows := 1, lost := []}} = scanode:repair(Dir, #{engine => couch}),
    {ok, Again} = scanode:open(Dir, #{engine => couch, create_if_missing => false}),
    {ok, <<"v">>} = scanode:get(Again, <<"k">>),
    ok = scanode:close(Again),
    ok = scanode:destroy(Dir, #{engine => couch}),
    false = filelib:is_dir(Dir),
    {ok, Lsm} = scanode:open(Dir, #{}),
    ok = scanode:close(Lsm),
    {error, {foreign, _}} = scanode:open(Dir, #{engine => couch}),
    {error, {foreign, _}} = scanode:destroy(Dir, #{engine => couch}).

bad_options(Config) ->
    Dir = test_program:directory(Config, ?FUNCTION_NAME),
    [
        {error, {bad_option, _}} = scanode:open(Dir, #{engine => couch, Name => Value})
     || {Name, Value} <- [{commit, sometimes}, {log_batches, 0}, {compact_percent, 100}, {policy, none}, {compression, lz4}, {use_bloomfilter, true}]
    ],
    false = filelib:is_dir(Dir).
