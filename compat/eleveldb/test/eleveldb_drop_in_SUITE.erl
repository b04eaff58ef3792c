%% A project that depends on eleveldb, and takes this application by two lines: fetched by git, built by rebar3, used. Nothing is fetched from elsewhere
%% but what Go may still lack.
-module(eleveldb_drop_in_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([two_lines/1, without_go/1]).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [two_lines, without_go].

%% A repository of the checkout as it is, committed or not.
init_per_suite(Config) ->
    Repository = eleveldb_test:dir(Config, repository),
    Root = eleveldb_test:root(),
    Script =
        "set -e; mkdir -p '~ts'; cd '~ts'; git ls-files -z --cached --others --exclude-standard | tar --null --files-from - --ignore-failed-read -cf - |"
        " tar -xf - -C '~ts'; cd '~ts'; git init -q -b main; git add -A;"
        " git -c user.name=test -c user.email=test@localhost commit -qm checkout",
    {0, _} = sh(Script, [Repository, Root, Repository, Repository], []),
    [{repository, Repository} | Config].

end_per_suite(_Config) ->
    ok.

two_lines(Config) ->
    Project = project(Config),
    {0, _} = sh("rebar3 compile", [], in(Project)),
    {Status, Said} = run(Project),
    ?assertEqual({0, "{ok,<<\"v\">>}"}, {Status, string:trim(Said)}),
    %% The program is its own, not the checkout's.
    [_] = filelib:wildcard(filename:join(Project, "_build/default/lib/scanode/priv/*/scanode")).

%% The compilation says so, and the first open does.
without_go(Config) ->
    Project = project(Config),
    Path = filename:join(Project, "bin"),
    ok = file:make_dir(Path),
    _ = [
        ok = file:make_symlink(os:find_executable(Command), filename:join(Path, Command))
     || Command <- ["sh", "git", "rebar3", "escript", "erl", "cp", "rm", "mkdir", "mv", "ln", "dirname", "basename", "sed", "tar", "cat", "uname", "env", "readlink"],
        os:find_executable(Command) =/= false
    ],
    {0, Said} = sh("rebar3 compile", [], [{env, [{"PATH", Path}]} | in(Project)]),
    {match, _} = re:run(Said, "no go command"),
    {1, Failed} = run(Project),
    {match, _} = re:run(Failed, "no scanode program at .*scanode").

%% `rebar3 path' does not name what is in a folder of a repository.
run(Project) ->
    sh("erl -noshell -pa $(find _build/default/lib -name ebin) -s uses_it run", [], in(Project)).

%% What a user of eleveldb has, but for the two lines.
project(Config) ->
    Project = eleveldb_test:dir(Config, project),
    Url = "file://" ++ ?config(repository, Config),
    Write = fun(Name, Text) ->
        File = filename:join(Project, Name),
        ok = filelib:ensure_dir(File),
        ok = file:write_file(File, Text)
    end,
    Write("rebar.config", [
        "{deps, [\n",
        io_lib:format("    {scanode, {git, ~p, {branch, \"main\"}}},~n", [Url]),
        io_lib:format("    {eleveldb, {git_subdir, ~p, {branch, \"main\"}, \"compat/eleveldb\"}}~n", [Url]),
        "]}.\n"
    ]),
    Write("src/uses_it.app.src", "{application, uses_it, [{vsn, \"1\"}, {description, \"uses eleveldb\"}, {applications, [kernel, stdlib, eleveldb]}]}.\n"),
    Write("src/uses_it.erl", [
        "-module(uses_it).\n-export([run/0]).\n",
        "run() ->\n",
        "    case eleveldb:open(\"data\", [{create_if_missing, true}]) of\n",
        "        {ok, Db} ->\n",
        "            ok = eleveldb:put(Db, <<\"k\">>, <<\"v\">>, [{sync, true}]),\n",
        "            io:format(\"~p~n\", [eleveldb:get(Db, <<\"k\">>, [])]),\n",
        "            ok = eleveldb:close(Db),\n",
        "            ok = application:stop(eleveldb),\n",
        "            halt(0);\n",
        "        {error, {db_open, Text}} ->\n",
        "            io:format(\"~s~n\", [Text]),\n",
        "            halt(1)\n",
        "    end.\n"
    ]),
    Project.

%% Without what this run of the tests tells its own BEAM.
in(Project) -> [{cd, Project}, {env, [{"ERL_LIBS", false}, {"SCANODE_EXECUTABLE", false}, {"ERL_FLAGS", false}, {"REBAR_CONFIG", false}]}].

%% The exit status of a shell command, and what it said.
sh(Format, Args, Options) ->
    Command = lists:flatten(io_lib:format(Format, Args)),
    Env = lists:append([Env || {env, Env} <- Options]),
    Cd = [Option || {cd, _} = Option <- Options],
    Port = open_port({spawn_executable, "/bin/sh"}, [{args, ["-c", Command]}, {env, Env}, exit_status, stderr_to_stdout, binary, hide | Cd]),
    said(Port, Command, []).

said(Port, Command, Said) ->
    receive
        {Port, {data, Data}} ->
            said(Port, Command, [Said, Data]);
        {Port, {exit_status, Status}} ->
            Text = unicode:characters_to_list(iolist_to_binary(Said)),
            ct:log("~ts~n~ts~nexit status ~b", [Command, Text, Status]),
            {Status, Text}
    end.
