%% A BEAM of some release, seen from the suite: how it is installed, started, called and ended. Each has one process here, which holds the connection over
%% which it is told what to do (interop_peer is the other end); that is no distribution, so it works whatever the links between nodes do.
-module(interop_beam).

-behaviour(gen_server).

-export([own_release/0, prepare/1, clean/1, start/2, stop/1, kill/1, node_of/1, call/4, call/5]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

%% A release made ready: its own compilations of our modules lie in dir, which its BEAMs see under the same name below their root.
-type release() :: #{release := string(), root := string(), dir := string()}.
-export_type([release/0]).

own_release() ->
    erlang:system_info(otp_release).

script() ->
    filename:join([test_program:root(), "scripts", "otp"]).

%% Compiles the application and the modules that the cases need in that release. The error names a release that is not installed.
-spec prepare(string()) -> {ok, release()} | {error, string()}.
prepare(Release) ->
    Root = string:trim(os:cmd("'" ++ script() ++ "' root " ++ Release)),
    case filelib:is_regular(filename:join(Root, "usr/bin/erl")) orelse (Root =:= "/" andalso os:find_executable("erl") =/= false) of
        false ->
            {error, "OTP " ++ Release ++ " is not installed; scripts/otp " ++ Release ++ " does that"};
        true ->
            Dir = lists:concat(["/tmp/scanode-interop-", os:getpid(), "-", erlang:unique_integer([positive]), "-", Release]),
            ok = file:make_dir(below(Root, Dir)),
            ok = file:change_mode(below(Root, Dir), 8#700),
            Sources = sources(),
            [{ok, _} = file:copy(Source, filename:join(below(Root, Dir), filename:basename(Source))) || Source <- Sources],
            Files = lists:append([[" ", filename:basename(S)] || S <- Sources, filename:extension(S) =:= ".erl"]),
            Prepared = #{release => Release, root => Root, dir => Dir},
            "" = run(Prepared, "cd " ++ Dir ++ " && erlc +nowarn_deprecated_catch" ++ lists:append(Files) ++ " 2>&1"),
            {ok, Prepared}
    end.

sources() ->
    Of = fun(Folder, Pattern) -> filelib:wildcard(filename:join([test_program:root(), Folder, Pattern])) end,
    %% The application's description is needed under its own name only for application:ensure_all_started, which no case calls.
    Of("src", "*.erl") ++ Of("erl_test", "interop_{peer,case,link,load,record}*.erl") ++ Of("erl_test", "riak_rows.erl").

clean(#{root := Root, dir := Dir}) ->
    ok = file:del_dir_r(below(Root, Dir)).

below("/", Path) -> Path;
below(Root, Path) -> Root ++ Path.

%% The output of a shell command in the release.
run(#{release := Release}, Command) ->
    Port = open_port({spawn_executable, script()}, [{args, ["exec", Release, "/bin/sh", "-c", Command]}, exit_status, binary, in]),
    run(Port, Command, []).

run(Port, Command, Output) ->
    receive
        {Port, {data, Data}} -> run(Port, Command, [Output, Data]);
        {Port, {exit_status, 0}} -> unicode:characters_to_list(Output);
        {Port, {exit_status, Status}} -> error({Status, Command, unicode:characters_to_list(Output)})
    end.

%% Starts a BEAM of the release. Options: name, name => the node's full name; names => longnames or shortnames; cookie; epmd => the port of epmd; nice => true
%% for less than its share of the processor; args => further arguments of erl; log => the file that gets what it prints.
start(Release, Options) ->
    {ok, Beam} = gen_server:start(?MODULE, {Release, Options}, []),
    Beam.

%% Ends it cleanly and returns when it is gone.
stop(Beam) ->
    gen_server:stop(Beam, normal, 60000).

%% Kills it and returns when it is gone.
kill(Beam) ->
    Monitor = monitor(process, Beam),
    ok = gen_server:call(Beam, kill),
    receive
        {'DOWN', Monitor, _, _, _} -> ok
    end.

node_of(Beam) ->
    gen_server:call(Beam, node).

call(Beam, Module, Function, Args) ->
    call(Beam, Module, Function, Args, 120000).

%% The result, or an error whose text says what failed there and where.
call(Beam, Module, Function, Args, Timeout) ->
    case gen_server:call(Beam, {call, Module, Function, Args}, Timeout) of
        {ok, Result} -> Result;
        {failed, Text} -> ct:fail("~ts", [Text])
    end.

init({#{release := Release, root := Root, dir := Dir}, Options}) ->
    _ = process_flag(trap_exit, true),
    {ok, Listener} = gen_tcp:listen(0, [binary, {packet, 4}, {active, false}, {ip, {127, 0, 0, 1}}]),
    {ok, SuitePort} = inet:port(Listener),
    #{name := Name, cookie := Cookie, epmd := Epmd, log := Log} = Options,
    %% The cookie is where erl looks for it, and in no argument.
    Home = lists:concat([Dir, "/home-", erlang:unique_integer([positive])]),
    ok = file:make_dir(below(Root, Home)),
    CookieFile = filename:join(below(Root, Home), ".erlang.cookie"),
    ok = file:write_file(CookieFile, Cookie),
    ok = file:change_mode(CookieFile, 8#400),
    Nice =
        case maps:get(nice, Options, false) of
            true -> "nice -n 10 ";
            false -> ""
        end,
    NameFlag =
        case maps:get(names, Options, longnames) of
            longnames -> "-name ";
            shortnames -> "-sname "
        end,
    Command = lists:concat([
        "cd ", Home, " && exec ", Nice, "env HOME=", Home, " ERL_EPMD_PORT=", Epmd, " ERL_CRASH_DUMP=/dev/null erl -noinput -start_epmd false ", NameFlag, Name,
        " -pa ", Dir, " -suite_port ", SuitePort, " ", maps:get(args, Options, ""), " -s interop_peer"
    ]),
    Port = open_port({spawn_executable, "/bin/sh"}, [
        {args, ["-c", "exec \"$0\" \"$@\" >'" ++ Log ++ "' 2>&1", script(), "exec", Release, "/bin/sh", "-c", Command]}, exit_status, in
    ]),
    case gen_tcp:accept(Listener, 60000) of
        {ok, Socket} ->
            ok = gen_tcp:close(Listener),
            {ok, Hello} = gen_tcp:recv(Socket, 0, 60000),
            {hello, Node, OsPid} = binary_to_term(Hello),
            ok = inet:setopts(Socket, [{active, true}]),
            {ok, #{node => Node, os_pid => OsPid, socket => Socket, port => Port, calls => #{}, ended => []}};
        {error, Reason} ->
            {stop, {no_beam, Release, Reason, Log}}
    end.

handle_call(node, _From, #{node := Node} = State) ->
    {reply, Node, State};
handle_call(kill, _From, #{os_pid := OsPid} = State) ->
    {reply, test_program:kill("KILL", list_to_integer(OsPid)), State#{killed => true}};
handle_call({call, Module, Function, Args}, From, #{socket := Socket, calls := Calls} = State) ->
    Ref = make_ref(),
    ok = gen_tcp:send(Socket, term_to_binary({Ref, Module, Function, Args})),
    {noreply, State#{calls := Calls#{Ref => From}}}.

handle_cast(_, State) ->
    {noreply, State}.

handle_info({tcp, Socket, Frame}, #{socket := Socket, calls := Calls} = State) ->
    {Ref, Result} = binary_to_term(Frame),
    {From, Rest} = maps:take(Ref, Calls),
    ok = gen_server:reply(From, Result),
    {noreply, State#{calls := Rest}};
handle_info({Port, {exit_status, _}}, #{port := Port, calls := Calls} = State) ->
    _ = [gen_server:reply(From, {failed, <<"the BEAM ended">>}) || From <- maps:values(Calls)],
    {stop, normal, State#{port := undefined}};
handle_info(_Closed, State) ->
    {noreply, State}.

terminate(_Reason, #{port := undefined}) ->
    ok;
terminate(_Reason, #{port := Port, socket := Socket}) ->
    ok = gen_tcp:close(Socket),
    receive
        {Port, {exit_status, _}} -> ok
    end.
