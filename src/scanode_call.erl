%% @private
%% Single calls: how an API function's arguments become a request, where that goes, and what the answer means.
-module(scanode_call).

-export([ask/3, timed/3, info/1, open/2, write/4, async_write/5, async_get/4]).

%% @doc One call to where a handle's store is.
-spec ask(scanode_link:via(), term(), timeout()) -> term().
ask(Via, Request, Timeout) ->
    case scanode_link:call(Via, Request, Timeout) of
        {reply, Reply} -> Reply;
        {_, Reason} -> {error, Reason}
    end.

%% @doc The same with the time-out among the options; Request makes the request of the others.
-spec timed(scanode_link:via(), term(), fun((map()) -> term())) -> term().
timed(Via, Options, Request) ->
    case scanode_options:timed(Options) of
        {ok, Timeout, Rest} -> ask(Via, Request(Rest), Timeout);
        {error, Reason} -> {error, Reason}
    end.

%% @doc Facts about a program.
-spec info(map() | list()) -> {ok, #{atom() => term()}} | {error, scanode:reason()}.
info(Options) ->
    case scanode_options:target(Options) of
        {ok, Target, Timeout, Rest} when map_size(Rest) =:= 0 -> answer(request(Target, info, Timeout));
        {ok, _, _, Rest} -> {error, scanode_options:bad("unknown: ~0tp", [hd(maps:keys(Rest))])};
        {error, Reason} -> {error, Reason}
    end.

-spec answer({scanode_link:via(), term()} | {error, scanode:reason()}) -> term().
answer({error, Reason}) -> {error, Reason};
answer({_Via, Reply}) -> Reply.

%% Where a request about a directory goes, and the options that are left.
-spec located(term(), term()) -> {ok, scanode_options:target(), file:filename_all(), timeout(), map()} | {error, scanode:reason()}.
located(Dir, Options) ->
    case scanode_options:target(Options) of
        {ok, Target, Timeout, Rest} ->
            case scanode_options:directory(Target, Dir) of
                {ok, Path} -> {ok, Target, Path, Timeout, Rest};
                {error, Reason} -> {error, Reason}
            end;
        {error, Reason} ->
            {error, Reason}
    end.

%% @doc Opens a store: where it is, and its id there.
-spec open(file:filename_all(), term()) -> {ok, scanode_link:via(), scanode_link:db_id()} | {error, scanode:reason()}.
open(Dir, Options) ->
    case located(Dir, Options) of
        {ok, Target, Path, Timeout, Rest} -> open(Target, Path, Rest, Timeout);
        {error, Reason} -> {error, Reason}
    end.

-spec open(scanode_options:target(), file:filename_all(), map(), timeout()) ->
    {ok, scanode_link:via(), scanode_link:db_id()} | {error, scanode:reason()}.
open(Target, Path, Options, Timeout) ->
    Began = erlang:monotonic_time(millisecond),
    case request(Target, {open, Path, Options}, Timeout) of
        {Via, {ok, Id}} ->
            {ok, Via, Id};
        {Via, {error, closed}} when is_port(Via) ->
            %% It ends, and has said so to its owner before it answered: asked again, that one waits for the next program.
            open(Target, Path, Options, scanode_link:remaining(Timeout, Began));
        {_, {error, closed}} ->
            {error, {down, <<"scanode at this node ends">>}};
        {_, {error, Reason}} ->
            {error, Reason};
        {error, Reason} ->
            {error, Reason}
    end.

-spec request(scanode_options:target(), term(), timeout()) -> {scanode_link:via(), term()} | {error, scanode:reason()}.
request({node, Node}, Request, Timeout) ->
    reply({scanode, Node}, Request, Timeout);
request({port, Server}, Request, Timeout) ->
    Began = erlang:monotonic_time(millisecond),
    case scanode_port:port(Server, Timeout) of
        {ok, Port} -> reply(Port, Request, scanode_link:remaining(Timeout, Began));
        {error, Reason} -> {error, Reason}
    end.

-spec reply(scanode_link:via(), term(), timeout()) -> {scanode_link:via(), term()} | {error, scanode:reason()}.
reply(Via, Request, Timeout) ->
    case scanode_link:call(Via, Request, Timeout) of
        {reply, Reply} -> {Via, Reply};
        %% No handle has been given out: that the port is closed means that the program has just ended.
        {not_sent, closed} -> {error, {down, <<"the scanode program ended">>}};
        {_, Reason} -> {error, Reason}
    end.

%% @doc Writes, and waits for the answer.
-spec write(scanode_link:via(), scanode_link:db_id(), term(), term()) -> ok | {error, scanode:write_error()}.
write(Via, Id, Ops, Options) ->
    case scanode_options:timed(Options) of
        {ok, Timeout, Rest} -> written(scanode_link:call(Via, {write, Id, Ops, Rest}, Timeout));
        {error, Reason} -> {error, {rejected, Reason}}
    end.

%% @doc Writes, and has the answer sent to the calling process.
-spec async_write(scanode_link:via(), scanode_link:db_id(), term(), term(), term()) -> ok.
async_write(Via, Id, Context, Ops, Options) ->
    case scanode_options:timed(Options) of
        {ok, Timeout, Rest} ->
            scanode_async:start(Via, {write, Id, Ops, Rest}, Timeout, Context, fun written/1);
        {error, Reason} ->
            _ = self() ! {Context, {error, {rejected, Reason}}},
            ok
    end.

%% @doc Reads, and has the answer sent to the calling process.
-spec async_get(scanode_link:via(), scanode_link:db_id(), term(), term()) -> ok.
async_get(Via, Id, Context, Key) ->
    scanode_async:start(Via, {get, Id, Key}, infinity, Context, fun got/1).

-spec got(scanode_link:outcome()) -> term().
got({reply, Reply}) -> Reply;
got({_, Reason}) -> {error, Reason}.

-spec written(scanode_link:outcome()) -> ok | {error, scanode:write_error()}.
written({reply, ok}) -> ok;
written({reply, {error, {Outcome, Reason}}}) when Outcome =:= rejected; Outcome =:= unknown; Outcome =:= applied -> {error, {Outcome, Reason}};
written({reply, {error, Reason}}) -> refused(Reason);
written({not_sent, Reason}) -> refused(Reason);
written({lost, Reason}) -> {error, {unknown, Reason}}.

-spec refused(scanode:reason()) -> {error, scanode:write_error()}.
refused(closed) -> {error, closed};
refused(Reason) -> {error, {rejected, Reason}}.
