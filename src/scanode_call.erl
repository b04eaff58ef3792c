%% @private
%% Single calls: how an API function's arguments become a request, where that goes, and what the answer means.
-module(scanode_call).

-export([ask/3, timed/3, info/1, about/3, open/2, write/4, async_write/5, async_get/4]).

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
        {ok, Target, Timeout, Rest} when map_size(Rest) =:= 0 -> answer(request(Target, info, Timeout, again()));
        {ok, _, _, Rest} -> {error, scanode_options:bad("unknown: ~0tp", [hd(maps:keys(Rest))])};
        {error, Reason} -> {error, Reason}
    end.

-spec answer({replied, scanode_link:via(), term()} | {lost, scanode_link:via(), scanode:reason()} | {error, scanode:reason()}) -> term().
answer({replied, _, {error, closed}}) -> {error, {down, <<"scanode is ending">>}};
answer({replied, _, Reply}) -> Reply;
answer({lost, _, Reason}) -> {error, Reason};
answer({error, Reason}) -> {error, Reason}.

%% @doc One request {Word, Dir, Options} about a directory that nobody has open.
-spec about(destroy | repair, file:filename_all(), term()) -> term().
about(Word, Dir, Options) ->
    case located(Dir, Options) of
        {ok, Target, Path, Timeout, Rest} -> answer(request(Target, {Word, Path, Rest}, Timeout, again()));
        {error, Reason} -> {error, Reason}
    end.

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

%% How long, in milliseconds from the first time on, an open that has met the end of the program is tried again with the next one; and how many of these
%% ends may have come while the program was busy with this very open, which may be their cause.
-define(AGAIN_MS, 30000).
-define(LOST, 3).

%% @doc Opens a store: where it is, and its id there. Where the program ends meanwhile the next one is asked, for a while: see AGAIN_MS.
-spec open(file:filename_all(), term()) -> {ok, scanode_link:via(), scanode_link:db_id()} | {error, scanode:reason()}.
open(Dir, Options) ->
    case located(Dir, Options) of
        {ok, Target, Path, Timeout, Rest} -> open(Target, {open, Path, Rest}, Timeout, again());
        {error, Reason} -> {error, Reason}
    end.

-spec open(scanode_options:target(), tuple(), timeout(), again()) -> {ok, scanode_link:via(), scanode_link:db_id()} | {error, scanode:reason()}.
open(Target, Request, Timeout, Again) ->
    Began = erlang:monotonic_time(millisecond),
    case request(Target, Request, Timeout, Again) of
        {replied, Via, {ok, Id}} ->
            {ok, Via, Id};
        {replied, Via, {error, closed}} when is_port(Via) ->
            %% It ends, and has said so to its owner before it answered: asked again, that one waits for the next program.
            open(Target, Request, scanode_link:remaining(Timeout, Began), Again);
        {replied, _, {error, closed}} ->
            {error, {down, <<"scanode at this node ends">>}};
        {replied, _, {error, Reason}} ->
            {error, Reason};
        {lost, Port, {down, _} = Down} when is_port(Port) ->
            case met(Port, lost, Again) of
                over -> {error, Down};
                More -> open(Target, Request, scanode_link:remaining(Timeout, Began), More)
            end;
        {lost, _, Reason} ->
            {error, Reason};
        {error, Reason} ->
            {error, Reason}
    end.

-type again() :: {Gone :: none | port(), Lost :: non_neg_integer(), Until :: infinity | integer()}.
%% What a request has met already: the port of the last program that has ended, how many of them had the request, and when it is time to give up.

-spec again() -> again().
again() -> {none, 0, infinity}.

-spec met(port(), lost | not_sent, again()) -> again() | over.
met(Port, How, {_, Lost, Until}) ->
    Now = erlang:monotonic_time(millisecond),
    Times =
        case How of
            lost -> Lost + 1;
            not_sent -> Lost
        end,
    case Until of
        infinity -> {Port, Times, Now + ?AGAIN_MS};
        _ when Now < Until, Times < ?LOST -> {Port, Times, Until};
        _ -> over
    end.

%% One request, of a program or a node. The end of a program that has not seen it is no answer; the next one is asked.
-spec request(scanode_options:target(), term(), timeout(), again()) ->
    {replied, scanode_link:via(), term()} | {lost, scanode_link:via(), scanode:reason()} | {error, scanode:reason()}.
request({node, Node}, Request, Timeout, _Again) ->
    Via = {scanode, Node},
    case scanode_link:call(Via, Request, Timeout) of
        {reply, Reply} -> {replied, Via, Reply};
        {lost, Reason} -> {lost, Via, Reason};
        {not_sent, Reason} -> {error, Reason}
    end;
request({port, Server} = Target, Request, Timeout, {Gone, _, _} = Again) ->
    Began = erlang:monotonic_time(millisecond),
    case scanode_port:port(Server, Gone, Timeout) of
        {ok, Port} ->
            case scanode_link:call(Port, Request, scanode_link:remaining(Timeout, Began)) of
                {reply, Reply} ->
                    {replied, Port, Reply};
                {lost, Reason} ->
                    {lost, Port, Reason};
                {not_sent, closed} ->
                    case met(Port, not_sent, Again) of
                        over -> {error, scanode_link:down(Port)};
                        More -> request(Target, Request, scanode_link:remaining(Timeout, Began), More)
                    end;
                {not_sent, Reason} ->
                    {error, Reason}
            end;
        {error, Reason} ->
            {error, Reason}
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
        {ok, Timeout, #{result := Result} = Rest} when is_function(Result, 1) ->
            Send = fun(Outcome) -> Result(written(Outcome)) end,
            scanode_async:start(Via, {write, Id, Ops, maps:remove(result, Rest)}, Timeout, Context, Send);
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
