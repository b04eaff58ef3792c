%% Starting the program: where it is looked for, what else may be there instead, and what becomes of its last words.
-module(start_SUITE).

-include_lib("common_test/include/ct.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    missing_executable/1,
    wrong_executable/1,
    silent_executable/1,
    other_version/1,
    many_failed_starts/1,
    fault_after_hello/1,
    nonsense_after_hello/1,
    crash_report_is_logged/1,
    log_lines_are_logged/1,
    plain_erl_from_the_checkout/1
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

%% An owner with a stand-in for the program; its end is the end of the test.
owner(Executable) ->
    owner(Executable, []).

owner(Executable, Options) ->
    {ok, Pid} = scanode:start_link([{name, ?MODULE}, {executable, Executable} | Options]),
    Pid.

open_with(Owner) ->
    scanode:open("never-created", #{port => Owner}).

missing_executable(Config) ->
    Path = unicode:characters_to_binary(test_program:directory(Config, "no-such-file")),
    Owner = owner(Path),
    {error, {no_executable, Path}} = open_with(Owner),
    {error, {no_executable, Path}} = open_with(Owner),
    ok = gen_server:stop(Owner),
    %% A directory is no program.
    Other = owner(?config(priv_dir, Config)),
    {error, {no_executable, _}} = open_with(Other),
    ok = gen_server:stop(Other).

wrong_executable(Config) ->
    NotExecutable = test_program:directory(Config, "text"),
    ok = file:write_file(NotExecutable, "no program\n"),
    Chatty = test_program:fake(Config, "chatty", ["echo Usage: not a program that speaks in frames", "cat"]),
    NoTerm = test_program:fake_hello(Config, "no-term", <<"hello">>, ["cat"]),
    NoHello = test_program:fake_hello(Config, "no-hello", term_to_binary({self(), early}), ["cat"]),
    [
        begin
            %% Chatty's first words are the length of a frame that never comes.
            Owner = owner(Path, [{start_timeout, 3000}]),
            {error, {bad_executable, Text}} = open_with(Owner),
            true = is_binary(Text),
            ct:log("~ts: ~ts", [Path, Text]),
            ok = gen_server:stop(Owner)
        end
     || Path <- ["/bin/true", "/bin/false", "/bin/cat", NotExecutable, Chatty, NoTerm, NoHello]
    ],
    [] = test_program:flush().

silent_executable(Config) ->
    Silent = test_program:fake(Config, ?FUNCTION_NAME, ["echo $$ > \"$0.pid\"", "exec cat > /dev/null"]),
    Owner = owner(Silent, [{start_timeout, 500}]),
    {error, {bad_executable, _}} = open_with(Owner),
    {ok, Pid} = file:read_file(Silent ++ ".pid"),
    ok = test_program:await_exit(list_to_integer(string:trim(binary_to_list(Pid)))),
    ok = gen_server:stop(Owner).

other_version(Config) ->
    {ok, Vsn} = application:get_key(scanode, vsn),
    [
        begin
            Frame = term_to_binary({port, {hello, Hello}}),
            Owner = owner(test_program:fake_hello(Config, ?FUNCTION_NAME, Frame, ["cat > /dev/null"])),
            {error, {bad_executable, Text}} = open_with(Owner),
            ct:log("~ts", [Text]),
            ok = gen_server:stop(Owner)
        end
     || Hello <- [
            #{version => <<"0.0.9">>, protocol => 1},
            #{version => list_to_binary(Vsn), protocol => 2},
            #{version => list_to_binary(Vsn)},
            #{}
        ]
    ].

%% A program that will not live costs one start for each open, and never the owner.
many_failed_starts(Config) ->
    Path = test_program:fake(Config, ?FUNCTION_NAME, ["echo started >> \"$0.log\"", "exit 3"]),
    Owner = owner(Path),
    [{error, {bad_executable, _}} = open_with(Owner) || _ <- lists:seq(1, 4)],
    {ok, Log} = file:read_file(Path ++ ".log"),
    4 = length(binary:matches(Log, <<"started">>)),
    %% Those who come while it is tried anew share one start.
    Callers = [spawn_monitor(fun() -> {error, {bad_executable, _}} = open_with(Owner) end) || _ <- lists:seq(1, 20)],
    [
        receive
            {'DOWN', Monitor, _, _, Reason} -> normal = Reason
        end
     || {_, Monitor} <- Callers
    ],
    {ok, Later} = file:read_file(Path ++ ".log"),
    true = length(binary:matches(Later, <<"started">>)) < 20,
    true = is_process_alive(Owner),
    ok = gen_server:stop(Owner).

%% It ends when the first request comes.
fault_after_hello(Config) ->
    ok = test_program:catch_logs(),
    Owner = owner(
        test_program:fake_hello(Config, ?FUNCTION_NAME, test_program:hello(), ["head -c 4 > /dev/null", "echo a line of the report > \"$3\"", "exit 7"])
    ),
    {error, {down, _}} = open_with(Owner),
    #{level := error, report := #{status := 7, report := <<"a line of the report\n">>}, text := Text} =
        test_program:await_log(fun(Report) -> is_map_key(status, Report) end),
    true = string:find(Text, "exit status 7") =/= nomatch,
    true = string:find(Text, "a line of the report") =/= nomatch,
    {error, {down, _}} = open_with(Owner),
    ok = test_program:release_logs(),
    ok = gen_server:stop(Owner).

nonsense_after_hello(Config) ->
    ok = test_program:catch_logs(),
    Nonsense = term_to_binary({not_an_address, message}),
    File = test_program:directory(Config, "nonsense"),
    ok = file:write_file(File, [<<(byte_size(Nonsense)):32>>, Nonsense]),
    Owner = owner(test_program:fake_hello(Config, ?FUNCTION_NAME, test_program:hello(), [["head -c 4 > /dev/null; cat '", File, "'; cat > /dev/null"]])),
    {error, {down, _}} = open_with(Owner),
    #{level := error} = test_program:await_log(fun(Report) -> is_map_key(text, Report) end),
    #{report := #{status := 137}} = test_program:await_log(fun(Report) -> is_map_key(status, Report) end),
    true = is_process_alive(Owner),
    ok = test_program:release_logs(),
    ok = gen_server:stop(Owner).

%% SIGQUIT makes the real program die with the stacks of all its threads of control.
crash_report_is_logged(Config) ->
    {ok, Db} = scanode:open(test_program:directory(Config, ?FUNCTION_NAME), #{}),
    ok = test_program:catch_logs(),
    ok = test_program:kill("QUIT", test_program:os_pid()),
    #{level := error, report := #{report := Report}, text := Text} = test_program:await_log(fun(Report) -> is_map_key(status, Report) end),
    true = byte_size(Report) > 0,
    true = string:find(Text, "goroutine") =/= nomatch,
    ok = test_program:release_logs(),
    {error, closed} = scanode:get(Db, <<"k">>).

log_lines_are_logged(Config) ->
    Lines = [term_to_binary({port, {log, Level, Text}}) || {Level, Text} <- [{warning, <<"~p is no format here">>}, {odd, <<255>>}]],
    File = test_program:directory(Config, "lines"),
    ok = file:write_file(File, [[<<(byte_size(Line)):32>>, Line] || Line <- Lines]),
    ok = test_program:catch_logs(),
    Owner = owner(test_program:fake_hello(Config, ?FUNCTION_NAME, test_program:hello(), [["cat '", File, "'; cat > /dev/null"]])),
    {error, timeout} = scanode:open("never-created", #{port => Owner, timeout => 3000}),
    #{level := warning, text := Text} = test_program:await_log(fun(Report) -> is_map_key(text, Report) end),
    true = string:find(Text, "~p is no format here") =/= nomatch,
    #{level := notice} = test_program:await_log(fun(Report) -> is_map_key(text, Report) end),
    ok = test_program:release_logs(),
    ok = gen_server:stop(Owner),
    [] = [Message || Message <- test_program:flush(), element(1, Message) =/= log].

%% As the README says it: a plain erl with a relative code path and nothing else finds the checkout's program, and shows its end on the terminal.
plain_erl_from_the_checkout(Config) ->
    Root = test_program:root(),
    [] = [Root || not filelib:is_regular(filename:join([Root, "bin", "scanode"]))],
    Ebin = "_build/" ++ filename:basename(filename:dirname(filename:dirname(code:lib_dir(scanode)))) ++ "/lib/scanode/ebin",
    Script = lists:flatten(
        io_lib:format(
            "{ok, _} = application:ensure_all_started(scanode), {ok, Db} = scanode:open(~p, #{}), {ok, #{os_pid := P}} = scanode:info(),"
            "[ok = scanode:put(Db, <<I>>, scanode_row:encode([{<<\"x\">>, 1.7e308}])) || I <- [1, 2]],"
            "{error, {Tag, _}} = scanode:aggregate(Db, #{compute => [{sum, <<\"x\">>}]}), \"over\" ++ \"flow\" = atom_to_list(Tag),"
            "os:cmd(\"kill -9 \" ++ integer_to_list(P)), {error, _} = scanode:close(Db), {ok, _} = scanode:info(), ok = logger_std_h:filesync(default), init:stop().",
            [test_program:directory(Config, ?FUNCTION_NAME)]
        )
    ),
    Port = open_port({spawn_executable, os:find_executable("erl")}, [
        {args, ["-noshell", "-pa", Ebin, "-eval", Script]}, {cd, Root}, {env, [{"SCANODE_EXECUTABLE", false}]}, binary, exit_status, stderr_to_stdout
    ]),
    {0, Output} = output(Port, <<>>),
    true = string:find(Output, "ended: signal 9") =/= nomatch.

output(Port, Sofar) ->
    receive
        {Port, {data, More}} -> output(Port, <<Sofar/binary, More/binary>>);
        {Port, {exit_status, Status}} -> {Status, Sofar}
    end.
