%% The default transport: a program of this BEAM's own. What a user sees of opening, reading and writing, of its handles, and of the program's end.
-module(port_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    key_value/1,
    write_is_one_batch/1,
    open_options/1,
    relative_directory/1,
    directory_name_in_unicode/1,
    handle_in_other_processes/1,
    second_open_is_locked/1,
    yields_when_its_opener_is_dead/1,
    handle_after_close/1,
    program_killed_between_calls/1,
    program_killed_during_fold/1,
    program_terminated/1,
    beam_killed/1,
    application_stopped/1,
    own_program/1,
    own_program_under_a_supervisor/1,
    too_large_a_write/1,
    large_values/1,
    wrong_types/1,
    timeouts/1,
    no_application/1,
    crowded_mailbox/1
]).

suite() -> [{timetrap, {seconds, 120}}].

all() ->
    [F || {F, 1} <- ?MODULE:module_info(exports), not lists:member(F, [init_per_suite, end_per_suite, module_info])].

init_per_suite(Config) ->
    _ = test_program:executable(),
    Config.

end_per_suite(_Config) ->
    ok.

init_per_testcase(_Case, Config) ->
    {ok, _} = application:ensure_all_started(scanode),
    Config.

end_per_testcase(_Case, _Config) ->
    ok = application:stop(scanode).

open(Config, Case) ->
    {ok, Db} = scanode:open(test_program:directory(Config, Case), #{}),
    Db.

key_value(Config) ->
    Db = open(Config, ?FUNCTION_NAME),
    not_found = scanode:get(Db, <<"k">>),
    ok = scanode:put(Db, <<"k">>, <<"v">>),
    {ok, <<"v">>} = scanode:get(Db, <<"k">>),
    ok = scanode:put(Db, <<"k">>, <<>>),
    {ok, <<>>} = scanode:get(Db, <<"k">>),
    ok = scanode:put(Db, <<>>, <<"of the empty key">>),
    {ok, <<"of the empty key">>} = scanode:get(Db, <<>>, 60000),
    ok = scanode:delete(Db, <<"k">>),
    ok = scanode:delete(Db, <<"was never there">>),
    not_found = scanode:get(Db, <<"k">>),
    {ok, #{engine := <<"lsm">>, streams := 0}} = scanode:info(Db),
    {ok, #{stores := 1, protocol := 1, version := Version}} = scanode:info(),
    {ok, Vsn} = application:get_key(scanode, vsn),
    Version = list_to_binary(Vsn),
    ok = scanode:close(Db).

write_is_one_batch(Config) ->
    Db = open(Config, ?FUNCTION_NAME),
    ok = scanode:write(Db, [], #{}),
    ok = scanode:write(Db, [{put, <<"a">>, <<"1">>}, {put, <<"b">>, <<"2">>}, {delete, <<"a">>}, {put, <<"b">>, <<"3">>}], [sync]),
    not_found = scanode:get(Db, <<"a">>),
    {ok, <<"3">>} = scanode:get(Db, <<"b">>),
    {error, {rejected, {bad_request, _}}} = scanode:write(Db, [{put, <<"c">>, <<"4">>}, {put, c, <<"5">>}], #{sync => true}),
    not_found = scanode:get(Db, <<"c">>),
    {error, {rejected, {bad_option, _}}} = scanode:write(Db, [{put, <<"c">>, <<"4">>}], #{sink => true}),
    not_found = scanode:get(Db, <<"c">>),
    ok = scanode:close(Db).

open_options(Config) ->
    Dir = test_program:directory(Config, ?FUNCTION_NAME),
    {error, {missing, _}} = scanode:open(Dir, #{create_if_missing => false}),
    {error, {bad_option, _}} = scanode:open(Dir, [{no_such_option_of_any_engine, 1}]),
    {error, {bad_option, _}} = scanode:open(Dir, #{create_if_missing => maybe_so}),
    {error, {bad_option, _}} = scanode:open(Dir, #{engine => steam}),
    {error, {bad_option, _}} = scanode:open(Dir, #{timeout => soon}),
    {error, {bad_option, _}} = scanode:open(Dir, #{node => "n@h"}),
    {error, {bad_option, _}} = scanode:open(Dir, #{node => n@h, port => scanode_port}),
    {error, {bad_option, _}} = scanode:open(Dir, #{port => 1}),
    {error, {bad_option, _}} = scanode:open(Dir, #{"create_if_missing" => true}),
    {error, {bad_option, _}} = scanode:open(Dir, 1),
    {error, {bad_option, _}} = scanode:open(Dir, [1]),
    {error, {bad_option, _}} = scanode:open(Dir, [create_if_missing | true]),
    false = filelib:is_file(Dir),
    {ok, Db} = scanode:open(Dir, [create_if_missing, {error_if_exists, true}, {engine, lsm}, {orphan_ms, infinity}, {timeout, 60000}]),
    ok = scanode:close(Db),
    {error, {exists, _}} = scanode:open(Dir, [error_if_exists]).

relative_directory(Config) ->
    Name = lists:concat([?FUNCTION_NAME, erlang:unique_integer([positive])]),
    {ok, Cwd} = file:get_cwd(),
    ok = file:set_cwd(?config(priv_dir, Config)),
    {ok, Db} = scanode:open(Name, #{}),
    ok = file:set_cwd(Cwd),
    true = filelib:is_dir(filename:join(?config(priv_dir, Config), Name)),
    ok = scanode:close(Db).

directory_name_in_unicode(Config) ->
    Dir = test_program:directory(Config, "größe-測定"),
    {ok, Db} = scanode:open(Dir, #{}),
    ok = scanode:close(Db),
    true = filelib:is_dir(Dir),
    {ok, Again} = scanode:open(unicode:characters_to_binary(Dir), #{create_if_missing => false}),
    ok = scanode:close(Again).

handle_in_other_processes(Config) ->
    Db = open(Config, ?FUNCTION_NAME),
    Write = fun(N) -> [ok = scanode:put(Db, <<N, I>>, <<I>>) || I <- lists:seq(1, 100)] end,
    Monitors = [element(2, spawn_monitor(fun() -> Write(N) end)) || N <- lists:seq(1, 8)],
    [
        receive
            {'DOWN', Monitor, _, _, Reason} -> normal = Reason
        end
     || Monitor <- Monitors
    ],
    800 = scanode:fold(Db, fun(_, Count) -> Count + 1 end, 0, #{}),
    in_a_process(fun() -> ok = scanode:close(Db) end),
    {error, closed} = scanode:get(Db, <<1, 1>>).

in_a_process(Fun) ->
    {_, Monitor} = spawn_monitor(Fun),
    receive
        {'DOWN', Monitor, _, _, Reason} -> normal = Reason
    end.

second_open_is_locked(Config) ->
    Dir = test_program:directory(Config, ?FUNCTION_NAME),
    {ok, Db} = scanode:open(Dir, #{}),
    {error, {locked, _}} = scanode:open(Dir, #{}),
    in_a_process(fun() -> {error, {locked, _}} = scanode:open(Dir, #{}) end),
    ok = scanode:close(Db),
    {ok, Again} = scanode:open(Dir, #{}),
    ok = scanode:close(Again).

yields_when_its_opener_is_dead(Config) ->
    Dir = test_program:directory(Config, ?FUNCTION_NAME),
    Self = self(),
    in_a_process(fun() ->
        {ok, Db} = scanode:open(Dir, #{}),
        ok = scanode:put(Db, <<"k">>, <<"v">>),
        Self ! {db, Db}
    end),
    Db = receive {db, D} -> D end,
    %% Still there for whoever has the handle,
    {ok, <<"v">>} = scanode:get(Db, <<"k">>),
    %% and gone as soon as somebody wants the directory.
    New = open_soon(Dir),
    {error, closed} = scanode:get(Db, <<"k">>),
    {ok, <<"v">>} = scanode:get(New, <<"k">>),
    ok = scanode:close(New).

%% The news of the opener's death and our open come to the program by different ways.
open_soon(Dir) ->
    Self = self(),
    ok = test_program:await(fun() ->
        case scanode:open(Dir, #{}) of
            {ok, Db} ->
                Self ! {opened, Db},
                true;
            {error, {locked, _}} ->
                false
        end
    end),
    receive
        {opened, Db} -> Db
    end.

handle_after_close(Config) ->
    Db = open(Config, ?FUNCTION_NAME),
    ok = scanode:put(Db, <<"k">>, <<"v">>),
    ok = scanode:close(Db),
    says_closed(Db).

says_closed(Db) ->
    {error, closed} = scanode:close(Db),
    {error, closed} = scanode:get(Db, <<"k">>),
    {error, closed} = scanode:put(Db, <<"k">>, <<"v">>),
    {error, closed} = scanode:delete(Db, <<"k">>),
    {error, closed} = scanode:write(Db, [], [sync]),
    {error, closed} = scanode:info(Db),
    ?assertError({scan, closed}, scanode:fold(Db, fun(_, A) -> A end, [], #{})).

program_killed_between_calls(Config) ->
    Dir = test_program:directory(Config, ?FUNCTION_NAME),
    {ok, Db} = scanode:open(Dir, #{}),
    ok = scanode:write(Db, [{put, <<"k">>, <<"synced">>}], #{sync => true}),
    OsPid = test_program:os_pid(),
    Owner = whereis(scanode_port),
    ok = test_program:kill("KILL", OsPid),
    %% The next calls either meet the dying program or find it dead.
    case scanode:put(Db, <<"j">>, <<"v">>) of
        {error, {unknown, {down, _}}} -> ok;
        {error, closed} -> ok
    end,
    says_closed(Db),
    {ok, Again} = scanode:open(Dir, #{create_if_missing => false}),
    {ok, <<"synced">>} = scanode:get(Again, <<"k">>),
    %% A handle of the last run means nothing in this one.
    says_closed(Db),
    true = OsPid =/= test_program:os_pid(),
    Owner = whereis(scanode_port),
    ok = scanode:close(Again).

program_killed_during_fold(Config) ->
    Dir = test_program:directory(Config, ?FUNCTION_NAME),
    {ok, Db} = scanode:open(Dir, #{}),
    Ops = [{put, <<I:32>>, binary:copy(<<I>>, 1000)} || I <- lists:seq(1, 2000)],
    ok = scanode:write(Db, Ops, #{sync => true}),
    OsPid = test_program:os_pid(),
    %% Little enough under way that the fold cannot end with what was sent before the kill.
    Small = #{max_batch_bytes => 2000, max_unacked_bytes => 2000},
    Kill = fun
        (_, 0) ->
            ok = test_program:kill("KILL", OsPid),
            1;
        (_, Count) ->
            Count + 1
    end,
    ?assertError({scan, {down, _}}, scanode:fold(Db, Kill, 0, Small)),
    [] = test_program:flush(),
    {ok, Again} = scanode:open(Dir, #{}),
    2000 = scanode:fold(Again, fun(_, Count) -> Count + 1 end, 0, Small),
    ok = scanode:close(Again).

program_terminated(Config) ->
    Dir = test_program:directory(Config, ?FUNCTION_NAME),
    ok = test_program:catch_logs(),
    {ok, Db} = scanode:open(Dir, #{}),
    ok = scanode:put(Db, <<"k">>, <<"not synced">>),
    ok = test_program:kill("TERM", test_program:os_pid()),
    #{report := #{status := 0, report := <<>>}} = test_program:await_log(fun(Report) -> is_map_key(status, Report) end),
    ok = test_program:release_logs(),
    says_closed(Db),
    {ok, Again} = scanode:open(Dir, #{}),
    {ok, <<"not synced">>} = scanode:get(Again, <<"k">>),
    ok = scanode:close(Again).

%% A second BEAM with a program of its own is killed: nobody is left to close the program's standard input but the kernel.
beam_killed(Config) ->
    Dir = test_program:directory(Config, ?FUNCTION_NAME),
    Script = lists:flatten(
        io_lib:format(
            "{ok, _} = application:ensure_all_started(scanode), {ok, Db} = scanode:open(~p, []),"
            "ok = scanode:write(Db, [{put, <<\"synced\">>, <<\"1\">>}], [sync]), ok = scanode:put(Db, <<\"put\">>, <<\"2\">>),"
            "{ok, #{os_pid := P}} = scanode:info(), io:format(\"~~s ~~b~~n\", [os:getpid(), P]).",
            [Dir]
        )
    ),
    Ebin = filename:dirname(code:which(scanode)),
    Erl = filename:join([code:root_dir(), "bin", "erl"]),
    Env = [{"SCANODE_EXECUTABLE", unicode:characters_to_list(test_program:executable())}],
    Beam = open_port({spawn_executable, Erl}, [{args, ["-noshell", "-pa", Ebin, "-eval", Script]}, {env, Env}, {line, 1000}, exit_status]),
    [BeamPid, ProgramPid] =
        receive
            {Beam, {data, {eol, Line}}} -> [list_to_integer(Word) || Word <- string:lexemes(Line, " ")]
        end,
    try
        true = test_program:is_alive(ProgramPid),
        {error, {locked, _}} = scanode:open(Dir, #{})
    after
        ok = test_program:kill("KILL", BeamPid)
    end,
    ok = test_program:await_exit(ProgramPid),
    {ok, Db} = scanode:open(Dir, #{create_if_missing => false}),
    {ok, <<"1">>} = scanode:get(Db, <<"synced">>),
    %% The program was not killed: it had the time to flush.
    {ok, <<"2">>} = scanode:get(Db, <<"put">>),
    ok = scanode:close(Db).

application_stopped(Config) ->
    Dir = test_program:directory(Config, ?FUNCTION_NAME),
    {ok, Db} = scanode:open(Dir, #{}),
    ok = scanode:put(Db, <<"k">>, <<"v">>),
    OsPid = test_program:os_pid(),
    ok = application:stop(scanode),
    false = test_program:is_alive(OsPid),
    says_closed(Db),
    ok = application:start(scanode),
    {ok, Again} = scanode:open(Dir, #{create_if_missing => false}),
    {ok, <<"v">>} = scanode:get(Again, <<"k">>),
    ok = scanode:close(Again).

own_program(Config) ->
    Dir = test_program:directory(Config, ?FUNCTION_NAME),
    ok = application:stop(scanode),
    {ok, Pid} = scanode:start_link([{name, my_stores}, {executable, test_program:executable()}]),
    {ok, Db} = scanode:open(Dir, #{port => my_stores}),
    ok = scanode:put(Db, <<"k">>, <<"v">>),
    OsPid = test_program:os_pid(#{port => Pid}),
    %% Two programs side by side know of each other's locks.
    ok = application:start(scanode),
    {error, {locked, _}} = scanode:open(Dir, #{}),
    true = OsPid =/= test_program:os_pid(),
    ok = gen_server:stop(Pid),
    false = test_program:is_alive(OsPid),
    {ok, Again} = scanode:open(Dir, #{}),
    {ok, <<"v">>} = scanode:get(Again, <<"k">>),
    ok = scanode:close(Again).

own_program_under_a_supervisor(_Config) ->
    Spec = scanode:child_spec(#{name => my_stores}),
    ok = supervisor:check_childspecs([Spec]),
    #{id := my_stores} = Spec,
    {ok, Pid} = supervisor:start_child(scanode_sup, Spec),
    Pid = whereis(my_stores),
    ok = supervisor:terminate_child(scanode_sup, my_stores),
    ?assertError(badarg, scanode:child_spec([{no_such_option, 1}])),
    ?assertError(badarg, scanode:child_spec([{name, "a string"}])),
    ?assertError(badarg, scanode:start_link([{start_timeout, -1}])).

too_large_a_write(Config) ->
    Db = open(Config, ?FUNCTION_NAME),
    {error, {rejected, {bad_request, _}}} = scanode:put(Db, <<"k">>, binary:copy(<<0>>, 64 bsl 20)),
    %% It has cost nothing but itself.
    ok = scanode:put(Db, <<"k">>, <<"v">>),
    ok = scanode:close(Db).

large_values(Config) ->
    Db = open(Config, ?FUNCTION_NAME),
    Values = [{<<I>>, binary:copy(<<I>>, Size)} || {I, Size} <- [{1, 65535}, {2, 65536}, {3, 1 bsl 20}, {4, 20 bsl 20}]],
    ok = scanode:write(Db, [{put, K, V} || {K, V} <- Values], [sync]),
    [{ok, V} = scanode:get(Db, K) || {K, V} <- Values],
    Values = lists:reverse(scanode:fold(Db, fun(Row, Rows) -> [Row | Rows] end, [], #{})),
    ok = scanode:close(Db).

wrong_types(Config) ->
    Db = open(Config, ?FUNCTION_NAME),
    Wrong = [1, -1, 1.5, atom, "list", [], {}, #{}, <<1:3>>, self(), make_ref(), fun() -> ok end],
    [{error, {bad_request, _}} = scanode:get(Db, Key) || Key <- Wrong],
    [{error, {rejected, {bad_request, _}}} = scanode:put(Db, Key, <<"v">>) || Key <- Wrong],
    [{error, {rejected, {bad_request, _}}} = scanode:put(Db, <<"k">>, Value) || Value <- Wrong],
    [{error, {rejected, {bad_request, _}}} = scanode:delete(Db, Key) || Key <- Wrong],
    [{error, {rejected, {bad_request, _}}} = scanode:write(Db, [Op], []) || Op <- [{put, <<"k">>}, {delete, <<"k">>, <<"v">>}, {get, <<"k">>} | Wrong]],
    [{error, {rejected, {bad_request, _}}} = scanode:write(Db, Ops, []) || Ops <- [[{delete, <<"k">>} | improper] | Wrong], Ops =/= []],
    [{error, {rejected, {bad_option, _}}} = scanode:write(Db, [], Opts) || Opts <- [#{sync => 1}, #{timeout => -1}, 1, [1], <<>>]],
    [{error, {bad_request, _}} = scanode:open(Dir, #{}) || Dir <- [1, 1.5, atom, {}, #{}, self(), [-1], [$a | $b]]],
    [?assertError(badarg, scanode:get(NoDb, <<"k">>)) || NoDb <- Wrong],
    [?assertError(badarg, scanode:close(NoDb)) || NoDb <- Wrong],
    [?assertError(badarg, scanode:put(NoDb, <<"k">>, <<"v">>)) || NoDb <- Wrong],
    [?assertError(badarg, scanode:info(NoDb)) || NoDb <- Wrong, not is_list(NoDb), not is_map(NoDb)],
    [?assertError(badarg, scanode:fold(NoDb, fun(_, A) -> A end, [], #{})) || NoDb <- Wrong],
    [?assertError(badarg, scanode:fold(Db, NoFun, [], #{})) || NoFun <- Wrong],
    ?assertError(badarg, scanode:get(Db, <<"k">>, -1)),
    {error, {bad_option, _}} = scanode:info(#{dir => "x"}),
    0 = scanode:fold(Db, fun(_, Count) -> Count + 1 end, 0, #{}),
    ok = scanode:close(Db),
    [] = test_program:flush().

timeouts(Config) ->
    %% A program that never answers.
    Silent = test_program:fake_hello(Config, ?FUNCTION_NAME, test_program:hello(), ["cat > /dev/null"]),
    {ok, Owner} = scanode:start_link([{name, ?MODULE}, {executable, Silent}]),
    {error, timeout} = scanode:open("never-created", #{port => Owner, timeout => 100}),
    {error, timeout} = scanode:info(#{port => Owner, timeout => 0}),
    ok = gen_server:stop(Owner),
    %% A reply that is late vanishes.
    Db = open(Config, ?FUNCTION_NAME),
    [
        case scanode:get(Db, <<"k">>, 0) of
            {error, timeout} -> ok;
            not_found -> ok
        end
     || _ <- lists:seq(1, 200)
    ],
    not_found = scanode:get(Db, <<"k">>),
    case scanode:write(Db, [{put, <<"k">>, <<"v">>}], #{timeout => 0}) of
        {error, {unknown, timeout}} -> ok;
        ok -> ok
    end,
    ok = scanode:close(Db),
    [] = test_program:flush().

no_application(_Config) ->
    ok = application:stop(scanode),
    {error, {down, _}} = scanode:open("never-created", #{}),
    {error, {down, _}} = scanode:open("never-created", #{node => 'scanode@nowhere.invalid'}),
    ok = application:start(scanode).

%% What others have sent before is not looked at, and stays.
crowded_mailbox(Config) ->
    Db = open(Config, ?FUNCTION_NAME),
    Count = 100000,
    ok = scanode:write(Db, [{put, <<I:16>>, <<I:16>>} || I <- lists:seq(1, 1000)], []),
    Work = fun() ->
        [{ok, _} = scanode:get(Db, <<I:16>>) || I <- lists:seq(1, 1000)],
        1000 = scanode:fold(Db, fun(_, N) -> N + 1 end, 0, #{max_batch_bytes => 100})
    end,
    {Empty, _} = timer:tc(Work),
    _ = [self() ! {foreign, I} || I <- lists:seq(1, Count)],
    {Crowded, _} = timer:tc(Work),
    ct:log("1000 gets and a fold of 1000 batches: ~b us, with ~b messages of others ~b us", [Empty, Count, Crowded]),
    Count = length(test_program:flush()),
    ok = scanode:close(Db).
