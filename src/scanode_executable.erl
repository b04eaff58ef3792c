%% @private
%% Where the program is, and whether it is the one this application was written for.
%%
%% It is looked for in this order; the first place that is named decides, also when nothing is there:
%%   1. the option `executable' of scanode:start_link/1,
%%   2. the environment variable SCANODE_EXECUTABLE,
%%   3. the application's environment, `executable',
%% and then among these, the first file that exists:
%%   4. priv/OS-ARCH/scanode of the application, in Go's words (linux-amd64, darwin-arm64),
%%   5. bin/scanode at the top of the checkout the application was compiled in.
-module(scanode_executable).

-export([find/1, check/1, protocol/0]).

%% @doc The path to start. Nothing is run: whether it is the right program shows in its first frame, see check/1.
-spec find(undefined | file:filename_all()) -> {ok, file:filename_all()} | {error, {no_executable, binary()}}.
find(Option) ->
    Named = [Option, os:getenv("SCANODE_EXECUTABLE"), application:get_env(scanode, executable, undefined)],
    case [Path || Path <- Named, is_list(Path) orelse is_binary(Path), Path =/= "", Path =/= <<>>] of
        [Path | _] -> first([Path], text(Path));
        [] -> first(shipped(), text(hd(shipped())))
    end.

-spec first([file:filename_all()], binary()) -> {ok, file:filename_all()} | {error, {no_executable, binary()}}.
first(Paths, Missing) ->
    case [Path || Path <- Paths, is_file(Path)] of
        [Path | _] -> {ok, filename:absname(Path)};
        [] -> {error, {no_executable, Missing}}
    end.

-spec is_file(file:filename_all()) -> boolean().
is_file(Path) ->
    %% A path with a zero byte in it, or a list that is no path, is no file either.
    try
        filelib:is_regular(Path)
    catch
        error:_ -> false
    end.

-spec shipped() -> [file:filename_all(), ...].
shipped() ->
    Root = application_root(),
    InPriv = filename:join([Root, "priv", platform(), "scanode"]),
    %% rebar3 puts the application in CHECKOUT/_build/PROFILE/lib/scanode; with erlc or in a release of one's own the root is the checkout itself.
    Checkout =
        case lists:reverse(filename:split(Root)) of
            [_, "lib", _, "_build" | Above] -> filename:join(lists:reverse(Above));
            _ -> Root
        end,
    [InPriv, filename:join([Checkout, "bin", "scanode"])].

-spec application_root() -> file:filename().
application_root() ->
    case code:lib_dir(scanode) of
        {error, bad_name} ->
            %% The code path names the directory of the beam files only, or its parent is not called scanode.
            case code:which(?MODULE) of
                Beam when is_list(Beam), Beam =/= "" -> filename:dirname(filename:dirname(filename:absname(Beam)));
                _ -> filename:absname("")
            end;
        Dir ->
            %% Relative where the code path is: erl -pa _build/default/lib/scanode/ebin.
            filename:absname(Dir)
    end.

-spec platform() -> string().
platform() ->
    {_, Os} = os:type(),
    [Cpu | _] = string:split(erlang:system_info(system_architecture), "-"),
    atom_to_list(Os) ++ "-" ++ go_arch(Cpu).

-spec go_arch(string()) -> string().
go_arch("x86_64") -> "amd64";
go_arch("aarch64") -> "arm64";
go_arch(Other) -> Other.

%% @doc Judges the program's first frame: it must be of this application's own version, so that the two are always upgraded together.
-spec check(term()) -> ok | {error, {bad_executable, binary()}}.
check({port, {hello, #{version := Version, protocol := Protocol}}}) ->
    Ours = version(),
    case Protocol =:= protocol() andalso Version =:= Ours of
        true ->
            ok;
        false ->
            Said = io_lib:format("it has version ~tp, protocol ~tp; this application has version ~ts, protocol ~b", [
                Version, Protocol, Ours, protocol()
            ]),
            {error, {bad_executable, text(Said)}}
    end;
check(Other) ->
    {error, {bad_executable, text(io_lib:format("it did not say hello but ~0tP", [Other, 12]))}}.

%% @doc The number of the protocol this application speaks.
-spec protocol() -> pos_integer().
protocol() ->
    1.

-spec version() -> binary().
version() ->
    %% The application need not be started, nor even loaded, by those who run the program in a tree of their own.
    _ = application:load(scanode),
    {ok, Version} = application:get_key(scanode, vsn),
    text(Version).

-spec text(unicode:chardata()) -> binary().
text(Chars) ->
    case unicode:characters_to_binary(Chars) of
        Text when is_binary(Text) -> Text;
        _ -> iolist_to_binary(io_lib:format("~w", [Chars]))
    end.
