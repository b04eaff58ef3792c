%% docs/protocol.md, spoken by hand: what a program without the application scanode sends and gets. Frames over a port, messages to a node.
-module(call_SUITE).

-include_lib("common_test/include/ct.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([
    hello_is_first/1,
    every_call_has_a_reply/1,
    reply_addresses/1,
    unknown_requests/1,
    gen_server_call_to_a_node/1,
    late_replies_of_a_node_vanish/1,
    scan_by_hand/1,
    scan_to_an_alias/1,
    scan_errors/1,
    too_much_acknowledged/1,
    stop_and_strangers/1,
    consumer_is_watched/1,
    deep_terms/1,
    odd_messages/1,
    malformed_frame/1,
    frame_too_large/1,
    half_a_frame/1,
    end_of_file/1
]).

suite() -> [{timetrap, {seconds, 120}}].

all() ->
    [F || {F, 1} <- ?MODULE:module_info(exports), not lists:member(F, [init_per_suite, end_per_suite, module_info])].

init_per_suite(Config) ->
    Node = test_node:start(Config),
    [{program, Node} | Config].

end_per_suite(Config) ->
    ok = test_node:stop(?config(program, Config)).

end_per_testcase(_Case, _Config) ->
    [] = [Message || Message <- test_program:flush(), not is_port(element(1, Message))],
    ok.

%% The program, as anybody can start it.
start() ->
    start([{packet, 4}]).

start(Settings) ->
    Port = open_port({spawn_executable, test_program:executable()}, [binary, exit_status, {args, ["port"]} | Settings]),
    {os_pid, OsPid} = erlang:port_info(Port, os_pid),
    {Port, OsPid}.

started() ->
    {Port, OsPid} = start(),
    {port, {hello, _}} = frame(Port),
    {Port, OsPid}.

send(Port, Term) ->
    true = port_command(Port, term_to_binary(Term)),
    ok.

frame(Port) ->
    receive
        {Port, {data, Frame}} -> binary_to_term(Frame);
        {Port, {exit_status, Status}} -> error({program_ended, Status})
    end.

%% The next frame for somebody else than us: watching processes and log lines are ours.
message(Port) ->
    case frame(Port) of
        {port, {Word, _}} when Word =:= monitor; Word =:= demonitor -> message(Port);
        {port, {log, _, _}} -> message(Port);
        {port, ending} -> message(Port);
        Message -> Message
    end.

call(Port, Request) ->
    Tag = make_ref(),
    Self = self(),
    ok = send(Port, {'$gen_call', {Self, Tag}, Request}),
    {Self, {Tag, Reply}} = message(Port),
    Reply.

stop({Port, OsPid}) ->
    true = port_close(Port),
    ok = test_program:await_exit(OsPid).

store(Port, Config, Case, Count) ->
    {ok, Id} = call(Port, {open, test_program:directory(Config, Case), #{}}),
    ok = call(Port, {write, Id, [{put, <<I:16>>, <<"v">>} || I <- lists:seq(1, Count)], #{}}),
    Id.

hello_is_first(_Config) ->
    {Port, OsPid} = start(),
    %% Nothing must be awaited.
    Tag = make_ref(),
    ok = send(Port, {'$gen_call', {self(), Tag}, info}),
    {port, {hello, #{version := Version, protocol := 1}}} = frame(Port),
    Self = self(),
    {Self, {Tag, {ok, #{version := Version, protocol := 1, os_pid := OsPid}}}} = message(Port),
    ok = stop({Port, OsPid}).

every_call_has_a_reply(Config) ->
    {Port, _} = Program = started(),
    {ok, Id} = call(Port, {open, unicode:characters_to_binary(test_program:directory(Config, ?FUNCTION_NAME)), #{}}),
    not_found = call(Port, {get, Id, <<"k">>}),
    ok = call(Port, {write, Id, [], #{}}),
    ok = call(Port, {write, Id, [{put, <<"k">>, <<"1">>}, {put, <<"k">>, <<"2">>}, {delete, <<"j">>}], #{sync => true}}),
    {ok, <<"2">>} = call(Port, {get, Id, <<"k">>}),
    {ok, #{engine := _, dir := _, streams := 0, parked := _, text := _}} = call(Port, {info, Id}),
    {ok, #{stores := 1, streams := 0, links := _, memory_bytes := _}} = call(Port, info),
    ok = call(Port, {close, Id}),
    {error, closed} = call(Port, {close, Id}),
    {error, closed} = call(Port, {get, Id, <<"k">>}),
    {error, closed} = call(Port, {write, Id, [{delete, <<"k">>}], #{}}),
    {error, closed} = call(Port, {info, Id}),
    ok = stop(Program).

%% A tag is any term; in two shapes it is an alias to reply to.
reply_addresses(_Config) ->
    {Port, _} = Program = started(),
    Self = self(),
    Ref = make_ref(),
    [
        begin
            ok = send(Port, {'$gen_call', {Self, Tag}, {get, 0, <<>>}}),
            {To, {Tag, {error, closed}}} = message(Port)
        end
     || {Tag, To} <- [
            {Ref, Self},
            {[alias | Ref], Ref},
            {[[alias | Ref] | {any, term}], Ref},
            {tag, Self},
            {<<"tag">>, Self},
            {#{1 => [2.5, "three"]}, Self},
            {[alias], Self},
            {[], Self}
        ]
    ],
    ok = stop(Program).

unknown_requests(Config) ->
    {Port, _} = Program = started(),
    Id = store(Port, Config, ?FUNCTION_NAME, 1),
    [
        {Request, {error, {bad_request, _}}} = {Request, call(Port, Request)}
     || Request <- [
            stop,
            1,
            <<"info">>,
            [],
            {},
            {open},
            {open, "dir"},
            {open, dir, #{}},
            {open, [-1], #{}},
            {open, <<>>, #{}},
            {close},
            {get, Id},
            {get, Id, k},
            {get, Id, <<"k">>, #{}},
            {get, <<"k">>, Id},
            {get, -1, "k"},
            {info, Id, Id},
            fun() -> ok end,
            self()
        ]
    ],
    [
        case call(Port, {write, Id, Ops, #{}}) of
            {error, {bad_request, _}} -> ok;
            {error, {rejected, {bad_request, _}}} -> ok
        end
     || Ops <- [op, {put, <<>>, <<>>}, [{put, <<>>}], [{put, k, <<>>}], [{put, <<>>, v}], [{delete, 1}], [{put, <<>>, <<>>} | tail], [[]], "ops"]
    ],
    not_found = call(Port, {get, Id, <<>>}),
    ok = stop(Program).

gen_server_call_to_a_node(Config) ->
    #{node := Node} = ?config(program, Config),
    To = {scanode, Node},
    {ok, #{protocol := 1}} = gen_server:call(To, info),
    {ok, Id} = gen_server:call(To, {open, "by-hand", #{}}),
    ok = gen_server:call(To, {write, Id, [{put, <<"k">>, <<"v">>}], #{sync => true}}),
    {ok, <<"v">>} = gen_server:call(To, {get, Id, <<"k">>}),
    Request = gen_server:send_request(To, {get, Id, <<"j">>}),
    {reply, not_found} = gen_server:wait_response(Request, infinity),
    {error, {bad_request, _}} = gen_server:call(To, nonsense),
    {[{Node, {error, closed}}], []} = gen_server:multi_call([Node], scanode, {get, 0, <<>>}),
    ok = gen_server:call(To, {close, Id}).

late_replies_of_a_node_vanish(Config) ->
    #{node := Node} = ?config(program, Config),
    To = {scanode, Node},
    [
        try
            {ok, _} = gen_server:call(To, info, 0)
        catch
            exit:{timeout, _} -> ok
        end
     || _ <- lists:seq(1, 100)
    ],
    {ok, _} = gen_server:call(To, info).

scan_by_hand(Config) ->
    {Port, _} = Program = started(),
    Id = store(Port, Config, ?FUNCTION_NAME, 5),
    Ref = make_ref(),
    Self = self(),
    ok = send(Port, {scan, {Self, Ref}, Id, #{rows => keys, start => <<2:16>>, max_batch_bytes => 1, max_unacked_bytes => 1}}),
    Sizes = [
        begin
            {Self, {scan_batch, Ref, Bin}} = message(Port),
            [<<I:16>>] = binary_to_term(Bin, [safe]),
            %% The next one comes for the credit only; the end needs none.
            [{ok, #{streams := 1}} = call(Port, info) || I < 5],
            ok = send(Port, {scan_ack, Ref, byte_size(Bin)}),
            byte_size(Bin)
        end
     || I <- [2, 3, 4, 5]
    ],
    {Self, {scan_end, Ref, #{rows := 4, rows_read := 4, batches := 4}}} = message(Port),
    4 = length(Sizes),
    {ok, #{streams := 0}} = call(Port, info),
    ok = stop(Program).

scan_to_an_alias(Config) ->
    {Port, _} = Program = started(),
    Id = store(Port, Config, ?FUNCTION_NAME, 1),
    Ref = make_ref(),
    ok = send(Port, {scan, {self(), [alias | Ref]}, Id, #{}}),
    {Ref, {scan_batch, Ref, Bin}} = message(Port),
    [{<<1:16>>, <<"v">>}] = binary_to_term(Bin, [safe]),
    {Ref, {scan_end, Ref, _}} = message(Port),
    ok = stop(Program).

scan_errors(Config) ->
    {Port, _} = Program = started(),
    Id = store(Port, Config, ?FUNCTION_NAME, 1),
    Self = self(),
    [
        begin
            Ref = make_ref(),
            ok = send(Port, {scan, {Self, Ref}, Store, Opts}),
            {Self, {scan_error, Ref, Reason}} = message(Port),
            Tag =
                case Reason of
                    {Word, Text} when is_binary(Text) -> Word;
                    Word -> Word
                end
        end
     || {Store, Opts, Tag} <- [
            {0, #{}, closed},
            {Id, #{no_such => 1}, bad_option},
            {Id, #{filter => nonsense}, bad_filter},
            {Id, #{filter => {'=', {field, <<"a">>, sint64}, {const, 1}}}, bad_row},
            {id, #{}, bad_request},
            {Id, [], bad_request}
        ]
    ],
    {ok, #{streams := 0}} = call(Port, info),
    ok = stop(Program).

too_much_acknowledged(Config) ->
    {Port, _} = Program = started(),
    Id = store(Port, Config, ?FUNCTION_NAME, 5),
    Self = self(),
    [
        begin
            Ref = make_ref(),
            ok = send(Port, {scan, {Self, Ref}, Id, #{max_batch_bytes => 1, max_unacked_bytes => 1}}),
            {Self, {scan_batch, Ref, Bin}} = message(Port),
            ok = send(Port, {scan_ack, Ref, Bytes(byte_size(Bin))}),
            {Self, {scan_error, Ref, {bad_request, _}}} = message(Port)
        end
     || Bytes <- [fun(Sent) -> Sent + 1 end, fun(_) -> 1 bsl 62 end]
    ],
    {ok, #{streams := 0}} = call(Port, info),
    ok = stop(Program).

stop_and_strangers(Config) ->
    {Port, _} = Program = started(),
    Id = store(Port, Config, ?FUNCTION_NAME, 5),
    Self = self(),
    Ref = make_ref(),
    ok = send(Port, {scan_stop, make_ref()}),
    ok = send(Port, {scan_ack, make_ref(), 1}),
    ok = send(Port, {down, Self}),
    ok = send(Port, {scan, {Self, Ref}, Id, #{max_batch_bytes => 1, max_unacked_bytes => 1}}),
    {Self, {scan_batch, Ref, Bin}} = message(Port),
    ok = send(Port, {scan_stop, Ref}),
    ok = send(Port, {scan_ack, Ref, byte_size(Bin)}),
    ok = test_program:await(fun() ->
        {ok, #{streams := Streams}} = call(Port, info),
        Streams =:= 0
    end),
    ok = stop(Program).

%% The program asks to watch the consumer, and ends the scan when told of its death.
consumer_is_watched(Config) ->
    {Port, _} = Program = started(),
    Id = store(Port, Config, ?FUNCTION_NAME, 5),
    {Consumer, Monitor} = spawn_monitor(fun() -> ok end),
    receive
        {'DOWN', Monitor, _, _, _} -> ok
    end,
    Ref = make_ref(),
    ok = send(Port, {scan, {Consumer, [alias | Ref]}, Id, #{max_batch_bytes => 1, max_unacked_bytes => 1}}),
    ok = until(Port, {port, {monitor, Consumer}}),
    {ok, #{streams := 1}} = call_among_others(Port, info),
    ok = send(Port, {down, Consumer}),
    ok = test_program:await(fun() ->
        {ok, #{streams := Streams}} = call_among_others(Port, info),
        Streams =:= 0
    end),
    ok = stop(Program).

until(Port, Frame) ->
    case frame(Port) of
        Frame -> ok;
        _ -> until(Port, Frame)
    end.

call_among_others(Port, Request) ->
    Tag = make_ref(),
    ok = send(Port, {'$gen_call', {self(), Tag}, Request}),
    reply_among_others(Port, Tag).

reply_among_others(Port, Tag) ->
    case frame(Port) of
        {_, {Tag, Reply}} -> Reply;
        _ -> reply_among_others(Port, Tag)
    end.

deep_terms(Config) ->
    {Port, _} = Program = started(),
    Id = store(Port, Config, ?FUNCTION_NAME, 1),
    Deep = fun(Depth) -> lists:foldl(fun(_, Term) -> {Term} end, <<"k">>, lists:seq(1, Depth)) end,
    [{error, {bad_request, _}} = call(Port, {get, Id, Deep(Depth)}) || Depth <- [1, 200]],
    %% Beyond the bound of nesting a request is answered where its address can still be read.
    [{error, {bad_request, _}} = call(Port, Request) || Depth <- [300, 100000], Request <- [{get, Id, Deep(Depth)}, Deep(Depth)]],
    {ok, <<"v">>} = call(Port, {get, Id, <<1:16>>}),
    ok = stop(Program).

%% Terms that are none of the protocol's messages cost nobody anything.
odd_messages(Config) ->
    {Port, _} = Program = started(),
    Id = store(Port, Config, ?FUNCTION_NAME, 1),
    Odd = [
        1,
        -1.5,
        atom,
        <<"binary">>,
        <<5:3>>,
        [],
        [a | b],
        {},
        #{},
        self(),
        make_ref(),
        Port,
        fun erlang:abs/1,
        fun() -> Id end,
        1 bsl 2000,
        {'$gen_call', from, info},
        {'$gen_call', {1, 2}, info},
        {'$gen_call', {self()}, info},
        {'$gen_call'},
        {'$gen_cast', info},
        {scan},
        {scan, self(), Id, #{}},
        {scan, {self(), 1}, Id, #{}},
        {scan, {1, make_ref()}, Id, #{}},
        {scan, {self(), [alias]}, Id, #{}},
        {scan_ack, 1, 1},
        {scan_ack, make_ref(), bytes},
        {scan_ack, make_ref(), -1},
        {scan_ack, make_ref(), 1 bsl 70},
        {scan_stop, 1},
        {down, 1},
        {down}
    ],
    [ok = send(Port, Message) || Message <- Odd],
    {ok, <<"v">>} = call_among_others(Port, {get, Id, <<1:16>>}),
    ok = stop(Program),
    #{node := Node} = ?config(program, Config),
    [{scanode, Node} ! Message || Message <- Odd],
    {ok, _} = gen_server:call({scanode, Node}, info),
    ok.

%% A frame that holds no term ends the link, and with it the program.
malformed_frame(Config) ->
    [
        begin
            {Port, OsPid} = started(),
            Dir = test_program:directory(Config, ?FUNCTION_NAME),
            {ok, Id} = call(Port, {open, Dir, #{}}),
            ok = call(Port, {write, Id, [{put, <<"k">>, <<"v">>}], #{}}),
            true = port_command(Port, Frame),
            ok = ends(Port),
            ok = test_program:await_exit(OsPid),
            {Again, _} = Program = started(),
            {ok, New} = call(Again, {open, Dir, #{create_if_missing => false}}),
            {ok, <<"v">>} = call(Again, {get, New, <<"k">>}),
            ok = stop(Program)
        end
     || Frame <- [<<>>, <<0>>, <<131>>, <<131, 104, 5>>, <<"text">>, <<131, 97, 1, 97>>]
    ].

ends(Port) ->
    receive
        {Port, {exit_status, _}} -> ok;
        {Port, {data, _}} -> ends(Port)
    end.

frame_too_large(_Config) ->
    {Port, OsPid} = start([]),
    true = port_command(Port, <<(64 * 1024 * 1024 + 1):32, 131>>),
    ok = ends(Port),
    ok = test_program:await_exit(OsPid).

half_a_frame(_Config) ->
    [
        begin
            {Port, OsPid} = start([]),
            true = port_command(Port, Bytes),
            true = port_close(Port),
            ok = test_program:await_exit(OsPid)
        end
     || Bytes <- [<<0>>, <<1000:32, 131>>]
    ].

end_of_file(Config) ->
    %% A closed port gives no exit status any more, so a shell writes it down.
    File = test_program:directory(Config, "status"),
    Command = lists:flatten(["'", test_program:executable(), "' port; echo $? > '", File, "'"]),
    Port = open_port({spawn_executable, "/bin/sh"}, [binary, {packet, 4}, {args, ["-c", Command]}]),
    {port, {hello, _}} = frame(Port),
    Dir = test_program:directory(Config, ?FUNCTION_NAME),
    Tag = make_ref(),
    ok = send(Port, {'$gen_call', {self(), Tag}, {open, Dir, #{}}}),
    {ok, Id} = reply_among_others(Port, Tag),
    ok = call(Port, {write, Id, [{put, <<"k">>, <<"not synced">>}], #{}}),
    %% It has something to say to a pipe that nobody reads any more.
    ok = send(Port, {scan, {self(), make_ref()}, Id, #{}}),
    true = port_close(Port),
    ok = test_program:await(fun() -> filelib:file_size(File) > 0 end),
    {ok, <<"0\n">>} = file:read_file(File),
    {Again, _} = Program = started(),
    {ok, New} = call(Again, {open, Dir, #{create_if_missing => false}}),
    {ok, <<"not synced">>} = call(Again, {get, New, <<"k">>}),
    ok = stop(Program).
