%% @private
%% Reads the options of the API: maps or lists, time-outs, where a request goes, directories. Reasons are those of {@link scanode:reason()}.
-module(scanode_options).

-export([start/1, target/1, timed/1, directory/2, is_timeout/1, bad/2]).
-export_type([target/0]).

-type target() :: {node, node()} | {port, atom() | pid()}.

%% @doc The name and the other options of a program's owner. Anything odd is badarg.
-spec start([scanode:start_option()] | map()) -> {atom(), [scanode_port:option()]}.
start(Options) ->
    case to_map(Options) of
        {ok, Map} ->
            Named = maps:merge(#{name => scanode_port}, Map),
            _ = [erlang:error(badarg, [Options]) || {Key, Value} <- maps:to_list(Named), not is_start_option(Key, Value)],
            {maps:get(name, Named), maps:to_list(maps:remove(name, Named))};
        {error, _} ->
            erlang:error(badarg, [Options])
    end.

-spec is_start_option(term(), term()) -> boolean().
is_start_option(name, Name) -> is_atom(Name) andalso Name =/= undefined;
is_start_option(executable, Path) -> is_list(Path) orelse is_binary(Path);
is_start_option(args, Args) -> is_list(Args);
is_start_option(start_timeout, Time) -> is_timeout(Time);
is_start_option(_, _) -> false.

%% @doc Where a request goes that has no handle yet: of the options `node' and `port', and the time-out and the options that are left.
-spec target(term()) -> {ok, target(), timeout(), map()} | {error, scanode:reason()}.
target(Options) ->
    case to_map(Options) of
        {ok, Map} -> target_of(Map);
        {error, Reason} -> {error, Reason}
    end.

-spec target_of(map()) -> {ok, target(), timeout(), map()} | {error, scanode:reason()}.
target_of(Map) ->
    Rest = maps:without([node, port], Map),
    case {take_timeout(Rest), Map} of
        {{error, Reason}, _} -> {error, Reason};
        {_, #{node := _, port := _}} -> {error, bad("node and port exclude each other", [])};
        {{ok, Timeout, Others}, #{node := Node}} when is_atom(Node) -> {ok, {node, Node}, Timeout, Others};
        {_, #{node := Node}} -> {error, bad("node must be an atom: ~0tP", [Node, 12])};
        {{ok, Timeout, Others}, #{port := Server}} when is_atom(Server); is_pid(Server) -> {ok, {port, Server}, Timeout, Others};
        {_, #{port := Server}} -> {error, bad("port must be an atom or a pid: ~0tP", [Server, 12])};
        {{ok, Timeout, Others}, _} -> {ok, {port, scanode_port}, Timeout, Others}
    end.

%% @doc The time-out among the options, infinity if there is none, and the others.
-spec timed(term()) -> {ok, timeout(), map()} | {error, scanode:reason()}.
timed(Options) ->
    case to_map(Options) of
        {ok, Map} -> take_timeout(Map);
        {error, Reason} -> {error, Reason}
    end.

%% @doc A directory as it is sent: for a program of this host absolute and in the bytes of its file system, for a node as it is.
-spec directory(target(), term()) -> {ok, file:filename_all()} | {error, scanode:reason()}.
directory({node, _}, Dir) when is_list(Dir); is_binary(Dir) ->
    {ok, Dir};
directory({port, _}, Dir) when Dir =:= []; Dir =:= <<>> ->
    {error, bad_directory(Dir)};
directory({port, _}, Dir) when is_list(Dir); is_binary(Dir) ->
    try
        {ok, native(filename:absname(Dir))}
    catch
        error:_ -> {error, bad_directory(Dir)}
    end;
directory(_, Dir) ->
    {error, bad_directory(Dir)}.

%% The bytes the file system of this host knows the name by.
-spec native(file:filename_all()) -> binary().
native(Path) when is_binary(Path) ->
    Path;
native(Path) ->
    Bytes = unicode:characters_to_binary(Path, unicode, file:native_name_encoding()),
    true = is_binary(Bytes),
    Bytes.

-spec bad_directory(term()) -> scanode:reason().
bad_directory(Dir) ->
    {bad_request, iolist_to_binary(io_lib:format("not a directory name: ~0tP", [Dir, 12]))}.

-spec take_timeout(map()) -> {ok, timeout(), map()} | {error, scanode:reason()}.
take_timeout(Map) ->
    Timeout = maps:get(timeout, Map, infinity),
    case is_timeout(Timeout) of
        true -> {ok, Timeout, maps:remove(timeout, Map)};
        false -> {error, bad("timeout must be a number of milliseconds or infinity: ~0tP", [Timeout, 12])}
    end.

%% @doc Whether a receive can wait so long.
-spec is_timeout(term()) -> boolean().
is_timeout(infinity) -> true;
%% The bound of a receive's after.
is_timeout(Time) -> is_integer(Time) andalso Time >= 0 andalso Time =< 16#ffffffff.

%% In a list the first of two equal names counts, as proplists have it, and a name alone means true.
-spec to_map(term()) -> {ok, map()} | {error, scanode:reason()}.
to_map(Options) when is_map(Options) ->
    {ok, Options};
to_map(Options) ->
    try
        {ok, maps:from_list(lists:reverse(proplists:unfold(Options)))}
    catch
        error:_ -> {error, bad("neither a map nor a list of options: ~0tP", [Options, 12])}
    end.

%% @doc What is wrong with an option, as io_lib:format/2 has it.
-spec bad(string(), [term()]) -> scanode:reason().
bad(Format, Args) ->
    {bad_option, unicode:characters_to_binary(io_lib:format(Format, Args))}.
