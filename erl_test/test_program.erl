%% The program under test: where it is, its process, and stand-ins for it.
-module(test_program).

-export([executable/0, os_pid/0, os_pid/1, kill/2, is_alive/1, await/1, await_exit/1, flush/0]).
-export([root/0]).
-export([fake/3, fake_hello/4, hello/0, directory/2, catch_logs/0, release_logs/0, await_log/1, log/2]).

%% The real binary; SCANODE_EXECUTABLE names another than the checkout's.
executable() ->
    case scanode_executable:find(undefined) of
        {ok, Path} -> Path;
        {error, Reason} -> error({build_the_program_first, Reason})
    end.

%% The top of the checkout. The suites are compiled in a copy of their folder, but know where they come from.
root() ->
    filename:dirname(filename:dirname(proplists:get_value(source, ?MODULE:module_info(compile)))).

os_pid() ->
    os_pid(#{}).

os_pid(Options) ->
    {ok, #{os_pid := OsPid}} = scanode:info(Options),
    OsPid.

kill(Signal, OsPid) ->
    "" = os:cmd("kill -" ++ Signal ++ " " ++ integer_to_list(OsPid)),
    ok.

%% A process that ended and that nobody has waited for is dead.
is_alive(OsPid) ->
    case string:trim(os:cmd("ps -o stat= -p " ++ integer_to_list(OsPid))) of
        "" -> false;
        "Z" ++ _ -> false;
        _ -> true
    end.

await_exit(OsPid) ->
    await(fun() -> not is_alive(OsPid) end).

%% Waits until Condition holds, for what sends no message: it is asked every 20 ms, at most for 30 s. The only place in these tests that waits for time to
%% pass.
await(Condition) ->
    await(Condition, 1500).

await(Condition, Tries) ->
    case Condition() of
        true ->
            ok;
        false when Tries > 0 ->
            receive
            after 20 -> await(Condition, Tries - 1)
            end;
        false ->
            error(never_happened)
    end.

%% All messages in the mailbox.
flush() ->
    receive
        Message -> [Message | flush()]
    after 0 ->
        []
    end.

%% An empty directory's name below the suite's own.
directory(Config, Case) ->
    PrivDir = proplists:get_value(priv_dir, Config),
    filename:join(PrivDir, lists:concat([Case, "-", erlang:unique_integer([positive])])).

%% A shell script instead of the program.
fake(Config, Name, Lines) ->
    Path = directory(Config, Name),
    ok = file:write_file(Path, ["#!/bin/sh\n", [[Line, "\n"] || Line <- Lines]]),
    ok = file:change_mode(Path, 8#755),
    Path.

%% A script whose first frame is Frame and that then goes on with Lines.
fake_hello(Config, Name, Frame, Lines) ->
    File = directory(Config, Name),
    ok = file:write_file(File, [<<(byte_size(Frame)):32>>, Frame]),
    fake(Config, Name, [["cat '", File, "'"] | Lines]).

%% The first frame of the right program.
hello() ->
    {ok, Vsn} = application:get_key(scanode, vsn),
    term_to_binary({port, {hello, #{version => list_to_binary(Vsn), protocol => 1}}}).

%% What the application logs, as messages {log, Event} to the caller.
catch_logs() ->
    ok = logger:add_handler(?MODULE, ?MODULE, #{
        config => self(),
        level => all,
        filter_default => stop,
        filters => [{scanode, {fun only_of/2, scanode_port}}]
    }),
    ok = logger:set_module_level(scanode_port, all).

%% A filter of logger: what Module logs.
only_of(#{meta := #{mfa := {Module, _, _}}} = Event, Module) -> Event;
only_of(_, _) -> stop.

release_logs() ->
    ok = logger:unset_module_level(scanode_port),
    ok = logger:remove_handler(?MODULE).

log(Event, #{config := Pid}) ->
    _ = Pid ! {log, Event},
    ok.

%% The first event whose report fits, as #{level, report, text}.
await_log(Fits) ->
    receive
        {log, #{level := Level, msg := {report, Report}, meta := #{report_cb := Format}}} ->
            case Fits(Report) of
                true ->
                    {Pattern, Args} = Format(Report),
                    #{level => Level, report => Report, text => lists:flatten(io_lib:format(Pattern, Args))};
                false ->
                    await_log(Fits)
            end
    end.
