%% @private
%% Owns the program: starts it when somebody first asks for it, forwards what it says, watches processes on its behalf, and reports its end.
%%
%% ```
%%   caller ──port_command──► program            calls, scans, acknowledgements: scanode_link
%%   caller ◄──To ! Msg── scanode_port ◄──{To, Msg}── program
%% '''
%%
%% The program is never started anew by itself: an end costs every handle anyway, so the next port/2 (an open) is what starts it, after a pause that
%% doubles while starts fail or runs are short. Those who come during the pause wait for the start. So a program that will not live costs one start per
%% pause and some log lines, and never an exit of this process, which would count against the supervisor's intensity.
%%
%% The port is closed with this process, even when it is killed, and with the BEAM: the program then reads the end of its standard input, flushes
%% and exits.
-module(scanode_port).

-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").

-export([start_link/2, port/3, format_report/1, words/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).
-export_type([option/0]).

-type option() :: {executable, file:filename_all()} | {start_timeout, timeout()} | {args, [string() | binary()]}.

-define(MIN_PAUSE_MS, 100).
-define(MAX_PAUSE_MS, 10000).
%% A run of this length clears the record: the next end is followed by the shortest pause.
-define(LONG_RUN_MS, 60000).
%% The program has 10 seconds to flush and close; then it is not doing so.
-define(STOP_MS, 12000).
-define(MAX_REPORT_BYTES, 65536).

-record(state, {
    executable :: file:filename_all() | undefined,
    args :: [string() | binary()],
    start_timeout :: timeout(),
    %% idle: no program. pausing: waiters, but it is too early to start. starting: no hello yet. running. ending: it has said that it closes everything.
    phase = idle :: idle | pausing | starting | running | ending,
    port :: port() | undefined,
    os_pid :: non_neg_integer() | undefined,
    report_file :: file:filename() | undefined,
    %% In phase pausing and starting: what ends it.
    timer :: reference() | undefined,
    waiters = [] :: [{pid(), term()}],
    monitors = #{} :: #{pid() => reference()},
    pause = 0 :: non_neg_integer(),
    started_at :: integer() | undefined,
    not_before :: integer() | undefined
}).

%% @doc Name is registered locally.
-spec start_link(atom(), [option()]) -> {ok, pid()} | ignore | {error, term()}.
start_link(Name, Options) ->
    gen_server:start_link({local, Name}, ?MODULE, Options, []).

%% @doc The port of the running program, which is started where it does not run. Gone is the port of a program whose end the caller has met and the owner
%% has perhaps not heard of yet; then the next one's is waited for. Timeout is in milliseconds.
-spec port(atom() | pid(), none | port(), timeout()) -> {ok, port()} | {error, scanode:reason()}.
port(Server, Gone, Timeout) ->
    try
        gen_server:call(Server, {port, Gone}, Timeout)
    catch
        exit:{timeout, _} -> {error, timeout};
        exit:_ -> {error, {down, <<"the owner of the scanode program is not running; is the application scanode started?">>}}
    end.

-spec init([option()]) -> {ok, #state{}}.
init(Options) ->
    %% So that terminate/2 runs, and so that an end of the port is a message.
    _ = process_flag(trap_exit, true),
    {ok, #state{
        executable = proplists:get_value(executable, Options),
        args = proplists:get_value(args, Options, []),
        start_timeout = proplists:get_value(start_timeout, Options, 30000)
    }}.

-spec handle_call(term(), {pid(), term()}, #state{}) -> {reply, term(), #state{}} | {noreply, #state{}}.
handle_call({port, Gone}, From, #state{phase = running, port = Port, waiters = Waiters} = State) ->
    case Gone =:= Port andalso erlang:port_info(Port, id) =:= undefined of
        true -> {noreply, State#state{waiters = [From | Waiters]}};
        false -> {reply, {ok, Port}, State}
    end;
handle_call({port, _}, From, #state{phase = idle} = State) ->
    {noreply, wake(State#state{waiters = [From]})};
handle_call({port, _}, From, #state{waiters = Waiters} = State) ->
    {noreply, State#state{waiters = [From | Waiters]}};
handle_call(Request, _From, State) ->
    {reply, {error, {bad_request, iolist_to_binary(io_lib:format("~0tP", [Request, 12]))}}, State}.

-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(_Msg, State) ->
    {noreply, State}.

-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info({Port, {data, Frame}}, #state{port = Port} = State) ->
    {noreply, frame(decode(Frame), State)};
handle_info({'DOWN', Monitor, process, Pid, _}, #state{monitors = Monitors} = State) ->
    case Monitors of
        #{Pid := Monitor} ->
            ok = tell(State#state.port, {down, Pid}),
            {noreply, State#state{monitors = maps:remove(Pid, Monitors)}};
        #{} ->
            {noreply, State}
    end;
handle_info({Port, {exit_status, Status}}, #state{port = Port} = State) ->
    {noreply, ended(Status, State)};
handle_info({'EXIT', Port, Reason}, #state{port = Port} = State) ->
    %% Without an exit status before it: the pipe broke.
    {noreply, ended(Reason, State)};
handle_info({timeout, Timer, Phase}, #state{timer = Timer, phase = Phase} = State) ->
    {noreply, expired(Phase, State#state{timer = undefined})};
handle_info(_Late, State) ->
    %% A frame, an exit or a timer of a run that is over, a late reply of gen_server.
    {noreply, State}.

-spec terminate(term(), #state{}) -> ok.
terminate(_Reason, #state{port = undefined}) ->
    ok;
terminate(_Reason, #state{port = Port, os_pid = OsPid} = State) ->
    %% Closing the port would do, but then nobody could tell when the program has let go of its stores, and they are opened again at once when an
    %% application is restarted.
    ok = signal("TERM", OsPid),
    case await_exit(Port, erlang:monotonic_time(millisecond) + ?STOP_MS, State) of
        {exit, Status} ->
            ok = report(Status, State);
        timeout ->
            ok = signal("KILL", OsPid),
            ok = report(stuck, State)
    end,
    ok = close(Port).

%% Starting

%% Somebody waits and no program runs: start it now, or when the pause is over.
-spec wake(#state{}) -> #state{}.
wake(#state{not_before = undefined} = State) ->
    start(State);
wake(#state{not_before = NotBefore} = State) ->
    case NotBefore - erlang:monotonic_time(millisecond) of
        Wait when Wait > 0 ->
            State#state{phase = pausing, timer = erlang:start_timer(Wait, self(), pausing)};
        _ ->
            start(State)
    end.

-spec start(#state{}) -> #state{}.
start(#state{executable = Executable} = State) ->
    case scanode_executable:find(Executable) of
        {ok, Path} ->
            spawn_program(Path, State);
        {error, Reason} ->
            %% Nothing was started, so there is nothing to pause for.
            answer({error, Reason}, State#state{phase = idle})
    end.

-spec spawn_program(file:filename_all(), #state{}) -> #state{}.
spawn_program(Path, #state{args = Args, start_timeout = StartTimeout} = State) ->
    Report = report_file(),
    Settings = [binary, {packet, 4}, exit_status, use_stdio, hide, {args, ["port", "--crash-report", Report | Args]}],
    try erlang:open_port({spawn_executable, Path}, Settings) of
        Port ->
            OsPid =
                case erlang:port_info(Port, os_pid) of
                    {os_pid, Number} -> Number;
                    undefined -> undefined
                end,
            State#state{
                phase = starting,
                port = Port,
                os_pid = OsPid,
                report_file = Report,
                started_at = erlang:monotonic_time(millisecond),
                timer = start_timer(StartTimeout, starting)
            }
    catch
        error:Why ->
            Text = iolist_to_binary(io_lib:format("~ts cannot be run: ~0tp", [Path, Why])),
            answer({error, {bad_executable, Text}}, pause(State#state{phase = idle}))
    end.

-spec start_timer(timeout(), starting) -> reference() | undefined.
start_timer(infinity, _) -> undefined;
start_timer(Time, Phase) -> erlang:start_timer(Time, self(), Phase).

-spec expired(pausing | starting, #state{}) -> #state{}.
expired(pausing, State) ->
    start(State);
expired(starting, State) ->
    refuse({bad_executable, <<"it did not say hello in time">>}, State).

%% The program is not one we can talk to.
-spec refuse(scanode:reason(), #state{}) -> #state{}.
refuse(Reason, #state{port = Port, os_pid = OsPid} = State) ->
    %% It may not know that an end of file on standard input means the end.
    ok = signal("KILL", OsPid),
    ok = close(Port),
    _ = take_report(State),
    answer({error, Reason}, pause(stopped(State))).

-spec answer({ok, port()} | {error, scanode:reason()}, #state{}) -> #state{}.
answer(Reply, #state{waiters = Waiters} = State) ->
    ok = lists:foreach(fun(From) -> gen_server:reply(From, Reply) end, lists:reverse(Waiters)),
    State#state{waiters = []}.

%% What the program says

%% Safe: whatever the program says makes no atom here. Rows are a binary inside this term and stay one. A message with an atom that words/0 lacks is a fault
%% of ours; it costs the call or the scan that it is for, and nobody else.
-spec decode(binary()) -> term().
decode(Frame) ->
    try
        binary_to_term(Frame, [safe])
    catch
        error:badarg -> undecodable(Frame)
    end.

%% {To, {Tag, Reply}} and {To, {scan_error, Ref, Reason}} and the like, as far as the parts in front can be decoded.
-spec undecodable(binary()) -> term().
undecodable(<<131, 104, 2, Tail/binary>>) ->
    Why = {internal, <<"the program's answer holds a word that this application does not know">>},
    try
        {To, <<104, Arity, Parts/binary>>} = part(Tail),
        {First, More} = part(Parts),
        case Arity of
            2 ->
                {To, {First, {error, Why}}};
            3 ->
                {Ref, _} = part(More),
                {To, {scan_error, Ref, Why}}
        end
    catch
        error:_ -> malformed
    end;
undecodable(_) ->
    malformed.

-spec part(binary()) -> {term(), binary()}.
part(Parts) ->
    {Term, Used} = binary_to_term(<<131, Parts/binary>>, [safe, used]),
    %% Used counts the 131.
    {Term, binary:part(Parts, Used - 1, byte_size(Parts) - Used + 1)}.

%% @doc The atoms of the protocol, those that the program says among them. They exist from the time this module is loaded, so decode/1 knows them.
-spec words() -> [atom(), ...].
words() ->
    %% erlfmt-ignore
    [port, hello, ending, log, monitor, demonitor, version, protocol, debug, info, notice, warning, error,
     ok, not_found, rejected, unknown, applied, alias,
     scan_batch, scan_progress, scan_moved, scan_end, scan_error, rows_read, rows, batches, continuation, bytes, credit_waits, engine_us, credit_us, send_us,
     filter, outcome, all, none, depends, key, fields, every_row, matching_rows, extractors, etf, msgpack, undefined,
     '=', '!=', '<', '=<', '>', '>=', and_, or_, not_, is_null, in, between, prefix, match, field, const,
     varchar, sint64, timestamp, double, boolean, any, infinity, kv, keys, terms, cells, select,
     count, sum, avg, min, max, stddev_pop, stddev_samp, first, last, time, asc, desc,
     closed, busy, deadline, too_many_groups, overflow, bad_request, bad_option, bad_filter, bad_row, bad_path, missing, exists, locked, foreign, corrupt, parked, io, internal,
     more, done, id, kind, snapshot, iterator, maker, orphaned, idle_ms, lost, aside, level_files, table_bytes, block_cache_bytes, file_cache_bytes, table,
     stores, streams, links, memory_bytes, os_pid,
     engine, dir, disk_bytes, files, iterators, snapshots, read_errors, text, true, false].

-spec frame(term(), #state{}) -> #state{}.
frame(Hello, #state{phase = starting, port = Port} = State) ->
    case scanode_executable:check(Hello) of
        ok ->
            ok = cancel(State#state.timer),
            answer({ok, Port}, State#state{phase = running, timer = undefined});
        {error, Reason} ->
            refuse(Reason, State)
    end;
frame({port, Msg}, State) ->
    own(Msg, State);
frame({To, Msg}, State) when is_pid(To); is_reference(To) ->
    _ = To ! Msg,
    State;
frame(Other, #state{os_pid = OsPid} = State) ->
    %% Nothing it says from here on can be trusted. Its end will be reported to us as any other.
    Text = iolist_to_binary(io_lib:format("killed for a frame that is none of the protocol's: ~0tP", [Other, 12])),
    ok = log(error, #{text => Text, os_pid => OsPid}),
    ok = signal("KILL", OsPid),
    State.

-spec own(term(), #state{}) -> #state{}.
own({monitor, Pid}, #state{monitors = Monitors} = State) when is_map_key(Pid, Monitors) ->
    State;
own({monitor, Pid}, #state{monitors = Monitors} = State) ->
    State#state{monitors = Monitors#{Pid => erlang:monitor(process, Pid)}};
own({demonitor, Pid}, #state{monitors = Monitors} = State) ->
    case Monitors of
        #{Pid := Monitor} ->
            true = erlang:demonitor(Monitor, [flush]),
            State#state{monitors = maps:remove(Pid, Monitors)};
        #{} ->
            State
    end;
own(ending, State) ->
    %% Who asks for the program from here on waits for the next one.
    State#state{phase = ending};
own({log, Level, Text}, State) ->
    ok = log(level(Level), #{text => Text, os_pid => State#state.os_pid}),
    State;
own(_Other, State) ->
    State.

-spec tell(port(), term()) -> ok.
tell(Port, Msg) ->
    try erlang:port_command(Port, erlang:term_to_iovec(Msg)) of
        true -> ok
    catch
        %% It has just ended; the message that says so is in the mailbox.
        error:badarg -> ok
    end.

%% Its end

-spec ended(term(), #state{}) -> #state{}.
ended(Status, #state{phase = Phase} = State) ->
    Report = take_report(State),
    ok = log(severity(Status), #{status => Status, report => Report, os_pid => State#state.os_pid}),
    Paused = pause(stopped(State)),
    case Phase of
        starting ->
            Text = iolist_to_binary(io_lib:format("it ended before it said hello: ~ts", [status_text(Status)])),
            answer({error, {unborn(Status), Text}}, Paused);
        _ when State#state.waiters =/= [] ->
            wake(Paused);
        _ ->
            Paused
    end.

%% A program that is killed may be the right one.
-spec unborn(term()) -> down | bad_executable.
unborn(Status) when is_integer(Status), Status > 128 -> down;
unborn(_) -> bad_executable.

-spec stopped(#state{}) -> #state{}.
stopped(#state{monitors = Monitors, timer = Timer} = State) ->
    ok = cancel(Timer),
    ok = lists:foreach(fun(Monitor) -> true = erlang:demonitor(Monitor, [flush]) end, maps:values(Monitors)),
    State#state{phase = idle, port = undefined, os_pid = undefined, report_file = undefined, timer = undefined, monitors = #{}}.

-spec pause(#state{}) -> #state{}.
pause(#state{pause = Last, started_at = StartedAt} = State) ->
    Now = erlang:monotonic_time(millisecond),
    Pause =
        case StartedAt =/= undefined andalso Now - StartedAt >= ?LONG_RUN_MS of
            true -> ?MIN_PAUSE_MS;
            false -> min(?MAX_PAUSE_MS, max(?MIN_PAUSE_MS, 2 * Last))
        end,
    State#state{pause = Pause, not_before = Now + Pause, started_at = undefined}.

-spec cancel(reference() | undefined) -> ok.
cancel(undefined) ->
    ok;
cancel(Timer) ->
    _ = erlang:cancel_timer(Timer),
    ok.

-spec close(port()) -> ok.
close(Port) ->
    try erlang:port_close(Port) of
        true -> ok
    catch
        error:badarg -> ok
    end.

%% While we wait the program finishes what it was asked before, so its replies are still forwarded.
-spec await_exit(port(), integer(), #state{}) -> {exit, term()} | timeout.
await_exit(Port, Deadline, State) ->
    receive
        {Port, {data, Frame}} ->
            case decode(Frame) of
                {port, Msg} when element(1, Msg) =/= log -> await_exit(Port, Deadline, State);
                Message -> await_exit(Port, Deadline, frame(Message, State#state{phase = running}))
            end;
        {Port, {exit_status, Status}} ->
            {exit, Status};
        {'EXIT', Port, Reason} ->
            {exit, Reason}
    after max(0, Deadline - erlang:monotonic_time(millisecond)) ->
        timeout
    end.

%% Erlang has no call for this, and the name of the signal and a number are all that reaches the shell. The exit of this process id has not been
%% reported yet, so the number is not somebody else's.
-spec signal(string(), non_neg_integer() | undefined) -> ok.
signal(_Name, undefined) ->
    ok;
signal(Name, OsPid) ->
    _ = os:cmd("kill -" ++ Name ++ " " ++ integer_to_list(OsPid)),
    ok.

%% The report of a fatal fault

%% A name nobody can guess, as the directory may be everybody's.
-spec report_file() -> file:filename().
report_file() ->
    Dir =
        case os:getenv("TMPDIR") of
            Set when is_list(Set), Set =/= "" -> Set;
            _ -> "/tmp"
        end,
    Secret = erlang:md5(term_to_binary({make_ref(), os:getpid(), os:timestamp(), rand:uniform(1 bsl 58)})),
    filename:join(Dir, lists:flatten(["scanode-", [io_lib:format("~2.16.0b", [Byte]) || <<Byte>> <= Secret], ".crash"])).

%% Reads the report, if there is one, and removes the file.
-spec take_report(#state{}) -> binary().
take_report(#state{report_file = undefined}) ->
    <<>>;
take_report(#state{report_file = File}) ->
    Report =
        case file:open(File, [read, binary, raw]) of
            {ok, Device} ->
                Read = file:read(Device, ?MAX_REPORT_BYTES),
                _ = file:close(Device),
                case Read of
                    {ok, Bytes} -> Bytes;
                    _ -> <<>>
                end;
            {error, _} ->
                <<>>
        end,
    _ = file:delete(File),
    Report.

-spec report(term(), #state{}) -> ok.
report(Status, State) ->
    Report = take_report(State),
    case {Status, Report} of
        {0, <<>>} -> ok;
        _ -> log(severity(Status), #{status => Status, report => Report, os_pid => State#state.os_pid})
    end.

%% Logging

-spec log(logger:level(), map()) -> ok.
log(Level, Report) ->
    %% The macro, so that logger:set_module_level(scanode_port, debug) works for the program's lines. No domain: the default handler of a plain erl shows
    %% none but OTP's own.
    ?LOG(Level, Report, #{report_cb => fun ?MODULE:format_report/1}).

-spec level(term()) -> logger:level().
level(Level) ->
    case lists:member(Level, [debug, info, notice, warning, error]) of
        true -> Level;
        false -> notice
    end.

-spec severity(term()) -> logger:level().
severity(0) -> notice;
severity(_) -> error.

%% @doc What logger calls to print our reports.
-spec format_report(map()) -> {io:format(), [term()]}.
format_report(#{text := Text, os_pid := OsPid}) ->
    {"scanode (~tp): ~ts", [OsPid, printable(Text)]};
format_report(#{status := Status, report := <<>>, os_pid := OsPid}) ->
    {"scanode (~tp) ended: ~ts", [OsPid, status_text(Status)]};
format_report(#{status := Status, report := Report, os_pid := OsPid}) ->
    {"scanode (~tp) ended: ~ts~n~ts", [OsPid, status_text(Status), printable(Report)]}.

%% Bytes that are no UTF-8 (a report that was cut, say) are printed one by one, as logger would refuse the whole line.
-spec printable(term()) -> unicode:chardata().
printable(Text) when is_binary(Text) ->
    case unicode:characters_to_list(Text) of
        Chars when is_list(Chars) -> Chars;
        _ -> binary_to_list(Text)
    end;
printable(Other) ->
    io_lib:format("~0tP", [Other, 12]).

-spec status_text(term()) -> iodata().
status_text(Status) when is_integer(Status), Status > 128 -> io_lib:format("signal ~b", [Status - 128]);
status_text(Status) when is_integer(Status) -> io_lib:format("exit status ~b", [Status]);
status_text(stuck) -> "killed, as it did not end when asked to";
status_text(Reason) -> io_lib:format("~0tp", [Reason]).
