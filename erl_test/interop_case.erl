%% The cases that one BEAM of any release plays through with one scanode node, in that BEAM. Each returns or raises. Compiled by the release it runs in, so
%% it uses nothing newer than OTP 23; what a release lacks is asked for at run time.
-module(interop_case).

-export([ping/1, send/1, call/1, cast/1, carry/1, monitors/1, links/1, exits/1, end_of_node/3, spawns/1, wrong_cookie/1]).
-export([process_of/1, kept/1, otp/0, is_up/1, join/2, see/2, open_and_stay/2, links_of/1, records/1]).

-import(interop_peer, [await/1]).

otp() ->
    list_to_integer(erlang:system_info(otp_release)).

server(Node) ->
    {scanode, Node}.

%% Runs Play and makes sure that the link that was there before is the one that is there after.
kept(Node, Play) ->
    pong = net_adm:ping(Node),
    true = erlang:monitor_node(Node, true),
    ok = Play(),
    {ok, #{protocol := 1}} = gen_server:call(server(Node), info),
    receive
        {nodedown, Node} -> error(link_lost)
    after 0 ->
        true = erlang:monitor_node(Node, false),
        [] = flush(),
        ok
    end.

kept(Node) ->
    kept(Node, fun() -> ok end).

is_up(Node) ->
    net_adm:ping(Node) =:= pong andalso lists:member(Node, nodes(hidden)).

flush() ->
    receive
        Message -> [Message | flush()]
    after 0 ->
        []
    end.

ping(Node) ->
    pong = net_adm:ping(Node),
    true = lists:member(Node, nodes(hidden)),
    false = lists:member(Node, nodes()),
    false = lists:member(Node, nodes(visible)),
    %% By itself the link stays up through many of them.
    kept(Node, fun() ->
        [pong] = lists:usort([net_adm:ping(Node) || _ <- lists:seq(1, 100)]),
        ok
    end),
    %% And it comes back, whoever asks for it.
    lists:foreach(
        fun(_) ->
            true = erlang:disconnect_node(Node),
            false = lists:member(Node, nodes(hidden)),
            pong = net_adm:ping(Node),
            true = erlang:disconnect_node(Node),
            {ok, _} = gen_server:call(server(Node), info)
        end,
        lists:seq(1, 10)
    ),
    pang = net_adm:ping(list_to_atom("nobody" ++ atom_to_list(Node))),
    ok.

%% The pid behind the registered name. Nothing tells it outright; but it monitors the opener of a store, and that can be looked up.
process_of(Node) ->
    Server = server(Node),
    Dir = iolist_to_binary(["process_of_", integer_to_list(erlang:unique_integer([positive])), "_", os:getpid()]),
    {ok, Id} = gen_server:call(Server, {open, Dir, #{}}),
    Watchers = fun() ->
        {monitored_by, By} = process_info(self(), monitored_by),
        [Pid || Pid <- By, is_pid(Pid), node(Pid) =:= Node]
    end,
    ok = await(fun() -> Watchers() =/= [] end),
    [Pid] = Watchers(),
    ok = gen_server:call(Server, {close, Id}),
    ok = await(fun() -> Watchers() =:= [] end),
    Pid.

%% A pid of that node which no process has ever had: all of Pid but its number, which for OTP 23 has 15 bits.
stranger(Pid) ->
    Encoded = term_to_binary(Pid),
    Kept = byte_size(Encoded) - 12,
    <<131, 88, _/binary>> = Encoded,
    <<Start:Kept/binary, _Id:32, Serial:32, Creation:32>> = Encoded,
    binary_to_term(<<Start/binary, 9999:32, Serial:32, Creation:32>>).

send(Node) ->
    kept(Node, fun() ->
        Pid = process_of(Node),
        lists:foreach(
            fun(To) ->
                Ref = make_ref(),
                To ! {'$gen_call', {self(), Ref}, info},
                receive
                    {Ref, {ok, #{os_pid := _}}} -> ok
                end
            end,
            [server(Node), Pid]
        ),
        %% What nobody there understands, and what goes to nobody, is dropped.
        _ = [To ! Term || To <- [server(Node), Pid, stranger(Pid), {nobody, Node}], Term <- terms()],
        %% In order between two processes: writes that overwrite each other.
        {ok, Id} = gen_server:call(Pid, {open, <<"send">>, #{}}),
        _ = [server(Node) ! {'$gen_call', {self(), {sent, I}}, {write, Id, [{put, <<"k">>, <<I:32>>}], #{}}} || I <- lists:seq(1, 2000)],
        _ = [receive {{sent, I}, Reply} -> ok = Reply end || I <- lists:seq(1, 2000)],
        {ok, <<2000:32>>} = gen_server:call(Pid, {get, Id, <<"k">>}),
        ok = gen_server:call(Pid, {close, Id})
    end).

%% One of every kind.
terms() ->
    Big = 1 bsl 3000,
    [
        0, -1, 255, 256, 1 bsl 31, -(1 bsl 31) - 1, 1 bsl 62, -(1 bsl 63), 1 bsl 64, Big, -Big,
        0.0, -1.5, 1.0e308, 5.0e-324,
        '', ok, 'two words', list_to_atom([233]), list_to_atom([26085, 26412]), list_to_atom(lists:duplicate(255, 26085)),
        <<>>, <<"abc">>, <<5:3>>, <<1, 2, 3:7>>, binary:copy(<<"x">>, 100000),
        [], "abc", lists:seq(1, 300), [a | b], [[[]], [a, [b | c]]], lists:duplicate(70000, $a),
        {}, {a}, list_to_tuple(lists:seq(1, 300)),
        #{}, #{a => 1, [] => 2, {} => 3, <<"k">> => 4, 1.0 => 5, 1 => 6, #{} => 7}, maps:from_list([{I, I} || I <- lists:seq(1, 100)]),
        self(), make_ref(), hd(erlang:ports()),
        fun lists:map/2, fun(X) -> {X, Big} end,
        nested(200)
    ].

nested(Depth) ->
    lists:foldl(fun(I, Inner) -> {I, [Inner], #{I => Inner}} end, leaf, lists:seq(1, Depth div 16)).

%% Terms travel there and back as the tags of calls, encoded by nobody but the BEAM.
carry(Node) ->
    kept(Node, fun() ->
        Carry = fun(Term) ->
            Tag = {make_ref(), Term},
            server(Node) ! {'$gen_call', {self(), Tag}, info},
            receive
                {Back, {ok, _}} when element(1, Back) =:= element(1, Tag) ->
                    case Back =:= Tag of
                        true -> ok;
                        false -> error({came_back_changed, Term, Back})
                    end
            end
        end,
        ok = lists:foreach(Carry, terms()),
        %% So deep that the request is refused, and the link lives.
        Deep = lists:foldl(fun(_, Inner) -> [Inner] end, leaf, lists:seq(1, 5000)),
        server(Node) ! {'$gen_call', {self(), Deep}, info},
        {error, {bad_request, _}} = gen_server:call(server(Node), {get, 1, Deep}),
        {error, {bad_request, _}} = gen_server:call(server(Node), {unknown, terms()}),
        ok
    end).

call(Node) ->
    Server = server(Node),
    kept(Node, fun() ->
        {ok, Info} = gen_server:call(Server, info),
        true = is_integer(maps:get(os_pid, Info)),
        {error, {bad_request, _}} = gen_server:call(Server, nonsense),
        {noproc, _} = caught(fun() -> gen_server:call({nobody, Node}, info) end),
        %% From many processes at once, each its own answer.
        {ok, Id} = gen_server:call(Server, {open, <<"call">>, #{}}),
        Callers = [
            spawn_monitor(fun() ->
                Key = <<I:32>>,
                ok = gen_server:call(Server, {write, Id, [{put, Key, Key}], #{}}),
                _ = [{ok, Key} = gen_server:call(Server, {get, Id, Key}) || _ <- lists:seq(1, 20)]
            end)
         || I <- lists:seq(1, 100)
        ],
        _ = [receive {'DOWN', M, process, P, Reason} -> normal = Reason end || {P, M} <- Callers],
        ok = gen_server:call(Server, {close, Id}),
        late(Server)
    end).

%% Replies that come after the caller has given up: from OTP 24 on they go to an alias and vanish.
late(Server) ->
    Late = 200,
    Outcomes = [caught(fun() -> {in_time, gen_server:call(Server, info, 0)} end) || _ <- lists:seq(1, Late)],
    Missed = length([late || {timeout, _} <- Outcomes]),
    true = Missed > 0,
    _ = [{ok, _} = gen_server:call(Server, info) || _ <- lists:seq(1, 50)],
    case erlang:function_exported(erlang, monitor, 3) of
        true ->
            %% Also with an alias made by hand that is gone before the request is sent.
            Dead = apply(erlang, alias, []),
            true = apply(erlang, unalias, [Dead]),
            Server ! {'$gen_call', {self(), [alias | Dead]}, info},
            Once = apply(erlang, alias, [[reply]]),
            Server ! {'$gen_call', {self(), [[alias | Once] | more]}, info},
            receive
                {[[alias | Once] | more], {ok, _}} -> ok
            end,
            _ = [{ok, _} = gen_server:call(Server, info) || _ <- lists:seq(1, 50)],
            [] = flush(),
            ok;
        false ->
            %% Each is a stray message, exactly once.
            Refs = stray(Missed, []),
            Missed = length(lists:usort(Refs)),
            [] = flush(),
            ok
    end.

stray(0, Refs) ->
    Refs;
stray(N, Refs) ->
    receive
        {Ref, {ok, #{protocol := 1}}} when is_reference(Ref) -> stray(N - 1, [Ref | Refs])
    end.

%% What a call that fails exits with.
caught(Call) ->
    try
        Call()
    catch
        exit:{Reason, Where} -> {Reason, Where}
    end.

cast(Node) ->
    kept(Node, fun() ->
        _ = [ok = gen_server:cast(server(Node), Term) || Term <- terms()],
        _ = [ok = gen_server:cast({nobody, Node}, Term) || Term <- terms()],
        abcast = gen_server:abcast([Node], scanode, all),
        {[{Node, {ok, _}}], []} = gen_server:multi_call([Node], scanode, info),
        ok
    end).

monitors(Node) ->
    kept(Node, fun() ->
        Pid = process_of(Node),
        _ = [noproc = reason_of_down(Item, Item) || Item <- [{nobody, Node}, stranger(Pid)]],
        %% Made and taken back, at once and after some traffic.
        lists:foreach(
            fun(Item) ->
                Refs = [erlang:monitor(process, Item) || _ <- lists:seq(1, 500)],
                {ok, _} = gen_server:call(Item, info),
                _ = [true = erlang:demonitor(Ref) || Ref <- Refs],
                true = erlang:demonitor(erlang:monitor(process, Item), [flush])
            end,
            [server(Node), Pid]
        ),
        %% The other direction: a process of ours that dies is noticed, for its store can be opened by another at once.
        lists:foreach(
            fun(Reason) ->
                Self = self(),
                {Opener, Ref} = spawn_monitor(fun() ->
                    {ok, Id} = gen_server:call(server(Node), {open, <<"monitors">>, #{}}),
                    Self ! {opened, Id},
                    receive
                        go -> exit(Reason)
                    end
                end),
                Id = receive {opened, I} -> I end,
                {error, {locked, _}} = gen_server:call(server(Node), {open, <<"monitors">>, #{}}),
                Opener ! go,
                receive
                    {'DOWN', Ref, process, Opener, Reason} -> ok
                end,
                {ok, Other} = gen_server:call(server(Node), {open, <<"monitors">>, #{}}),
                {error, closed} = gen_server:call(server(Node), {get, Id, <<"k">>}),
                ok = gen_server:call(server(Node), {close, Other})
            end,
            [normal, kill, shutdown, {any, "term", 1.5}, nested(200), lists:foldl(fun(_, A) -> [A] end, x, lists:seq(1, 5000))]
        ),
        ok
    end).

reason_of_down(Item, Object) ->
    Ref = erlang:monitor(process, Item),
    receive
        {'DOWN', Ref, process, Object, Reason} -> Reason
    end.

links(Node) ->
    Old = process_flag(trap_exit, true),
    ok = kept(Node, fun() ->
        Pid = process_of(Node),
        Stranger = stranger(Pid),
        true = link(Stranger),
        receive
            {'EXIT', Stranger, noproc} -> ok
        end,
        %% Made and taken back, also quickly: the acknowledgements of unlinks must fit.
        _ = [{true, true} = {link(Pid), unlink(Pid)} || _ <- lists:seq(1, 2000)],
        true = link(Pid),
        {ok, _} = gen_server:call(Pid, info),
        {links, Links} = process_info(self(), links),
        true = lists:member(Pid, Links),
        true = unlink(Pid),
        %% A linked process of ours that dies takes nothing with it, whatever it dies of.
        lists:foreach(
            fun(Reason) ->
                {Linked, Ref} = spawn_monitor(fun() ->
                    true = link(Pid),
                    {ok, _} = gen_server:call(Pid, info),
                    exit(Reason)
                end),
                receive
                    {'DOWN', Ref, process, Linked, Reason} -> ok
                end,
                {ok, _} = gen_server:call(Pid, info)
            end,
            [normal, kill, shutdown, {any, "term"}, nested(200)]
        ),
        ok
    end),
    true = process_flag(trap_exit, Old),
    ok.

%% exit/2 does not end what traps exits, and its reason may be anything.
exits(Node) ->
    kept(Node, fun() ->
        Pid = process_of(Node),
        Deep = lists:foldl(fun(_, Inner) -> [Inner] end, leaf, lists:seq(1, 5000)),
        _ = [true = exit(To, Reason) || To <- [Pid, stranger(Pid)], Reason <- [normal, kill, shutdown, noconnection, Deep | terms()]],
        {ok, _} = gen_server:call(Pid, info),
        ok
    end).

%% The program ends, by signal Signal: everybody who watches it hears of it. Returns the reasons that monitors by pid and by name and a link got.
end_of_node(Node, Signal, OsPid) ->
    Old = process_flag(trap_exit, true),
    Pid = process_of(Node),
    ok = net_kernel:monitor_nodes(true, [{node_type, all}]),
    true = erlang:monitor_node(Node, true),
    ByPid = erlang:monitor(process, Pid),
    ByName = erlang:monitor(process, server(Node)),
    true = link(Pid),
    {ok, Id} = gen_server:call(server(Node), {open, <<"end">>, #{}}),
    Caller = spawn_monitor(fun() -> call_until_it_ends(Node, Id) end),
    "" = os:cmd("kill -" ++ Signal ++ " " ++ integer_to_list(OsPid)),
    Reasons = #{
        pid => receive {'DOWN', ByPid, process, Pid, R1} -> R1 end,
        name => receive {'DOWN', ByName, process, {scanode, Node}, R2} -> R2 end,
        link => receive {'EXIT', Pid, R3} -> R3 end
    },
    receive
        {nodedown, Node} -> ok
    end,
    receive
        {nodedown, Node, Facts} -> hidden = proplists:get_value(node_type, Facts)
    end,
    {CallerPid, CallerRef} = Caller,
    receive
        {'DOWN', CallerRef, process, CallerPid, {Ended, _}} -> true = lists:member(Ended, [noconnection, shutdown, {nodedown, Node}, ended])
    end,
    ok = net_kernel:monitor_nodes(false, [{node_type, all}]),
    true = process_flag(trap_exit, Old),
    _ = flush(),
    Reasons.

call_until_it_ends(Node, Id) ->
    case gen_server:call(server(Node), {get, Id, <<"k">>}) of
        not_found -> call_until_it_ends(Node, Id);
        {error, closed} -> exit({ended, closed})
    end.

%% What needs processes there is refused, soon, and the link stays.
spawns(Node) ->
    Old = process_flag(trap_exit, true),
    ok = kept(Node, fun() ->
        {badrpc, _} = rpc:call(Node, erlang, node, []),
        {badrpc, _} = rpc:call(Node, erlang, node, [], 5000),
        {badrpc, _} = rpc:block_call(Node, erlang, node, []),
        true = rpc:cast(Node, erlang, node, []),
        {Results, Bad} = rpc:multicall([Node], erlang, node, []),
        true = Bad =:= [Node] orelse [badrpc] =:= [element(1, R) || R <- Results],
        {error, {erpc, notsup}} = try erpc:call(Node, erlang, node, []) catch C1:E1 -> {C1, E1} end,
        {error, {erpc, notsup}} = try erpc:call(Node, fun() -> ok end, 5000) catch C2:E2 -> {C2, E2} end,
        ok = erpc:cast(Node, erlang, node, []),
        [{error, {erpc, notsup}}] = erpc:multicall([Node], erlang, node, []),
        Request = erlang:spawn_request(Node, erlang, node, [], [{reply_tag, refused}, monitor, link]),
        receive
            {refused, Request, error, notsup} -> ok
        end,
        %% OTP 23 then tries what was before spawn requests, and raises.
        case try spawn(Node, erlang, node, []) catch error:E4 -> E4 end of
            noproc -> 23 = otp();
            Spawned -> ok = noproc_or(notsup, reason_of_down(Spawned, Spawned))
        end,
        case try spawn_link(Node, erlang, node, []) catch error:E5 -> E5 end of
            noproc ->
                23 = otp();
            Linked ->
                receive
                    {'EXIT', Linked, notsup} -> ok
                end
        end,
        {error, notsup} = try spawn_monitor(Node, erlang, node, []) catch C3:E3 -> {C3, E3} end,
        %% What other services of a BEAM are asked for.
        [{noproc, _} = caught(fun() -> gen_server:call({Name, Node}, anything, 5000) end) || Name <- [net_kernel, rex, global_name_server, kernel_sup]],
        ok
    end),
    true = process_flag(trap_exit, Old),
    ok.

noproc_or(_, noproc) -> ok;
noproc_or(Reason, Reason) -> ok.

wrong_cookie(Node) ->
    Right = erlang:get_cookie(),
    true = erlang:disconnect_node(Node),
    _ = [
        begin
            true = erlang:set_cookie(Node, Wrong),
            pang = net_adm:ping(Node)
        end
     || Wrong <- [wrong, '', list_to_atom(lists:duplicate(255, $a))]
    ],
    true = erlang:set_cookie(Node, Right),
    kept(Node).

%% global and pg of two BEAMs, this one and Other, go on as if the node were not there; it is connected to both.
join(Node, Other) ->
    pong = net_adm:ping(Node),
    pong = net_adm:ping(Other),
    %% The scope's process must outlive this one.
    ok = await(fun() -> whereis(pg) =/= undefined orelse element(1, apply(pg, start, [pg])) =:= ok end),
    Member = spawn(fun() -> receive stop -> ok end end),
    ok = pg:join(the_group, Member),
    yes = global:register_name({member, node()}, Member),
    ok = global:sync(),
    Nodes = nodes(),
    true = lists:member(Other, Nodes),
    false = lists:member(Node, Nodes),
    Member.

%% What join/2 on Other left is seen here.
see(Node, Other) ->
    ok = await(fun() -> lists:member(Other, [node(Pid) || Pid <- pg:get_members(the_group)]) end),
    ok = global:sync(),
    Pid = global:whereis_name({member, Other}),
    Other = node(Pid),
    false = lists:any(fun(P) -> node(P) =:= Node end, pg:get_members(the_group)),
    %% A lock of all known nodes; the hidden one is not asked.
    true = global:trans({a_lock, self()}, fun() -> true end),
    kept(Node).

%% Opens a store from a process that stays.
open_and_stay(Node, Dir) ->
    Self = self(),
    _ = spawn(fun() ->
        Self ! {self(), gen_server:call(server(Node), {open, Dir, #{}})},
        receive
            never -> ok
        end
    end),
    receive
        {_, {ok, Id}} -> Id
    end.

links_of(Node) ->
    {ok, #{links := Links}} = gen_server:call(server(Node), info),
    Links.

%% Native records (OTP 29, tag 67) come although this node does not announce them: they are carried where terms are carried unread, are refused where they
%% are not wanted, and cost no link. Their module is compiled here, for other releases cannot read it.
records(Node) ->
    Forms = [
        "-module(interop_records).",
        "-export([records/0]).",
        "-export_record([point]).",
        "-record #point{x = 0, y, 'Z' = <<\"z\">>}.",
        "-record #empty{}.",
        "records() -> [#point{x = 1, y = [a, #empty{}]}, #empty{}, #point{y = #{#empty{} => 1.5}}]."
    ],
    Parsed = [begin {ok, Tokens, _} = erl_scan:string(F), {ok, Form} = erl_parse:parse_form(Tokens), Form end || F <- Forms],
    {ok, Module, Beam} = compile:forms(Parsed),
    {module, Module} = code:load_binary(Module, "interop_records", Beam),
    Records = apply(Module, records, []),
    kept(Node, fun() ->
        Pid = process_of(Node),
        Old = process_flag(trap_exit, true),
        lists:foreach(
            fun(Record) ->
                <<131, 67, _/binary>> = term_to_binary(Record),
                _ = [To ! Record || To <- [server(Node), Pid, {nobody, Node}]],
                ok = gen_server:cast(server(Node), {cast, Record}),
                Tag = {make_ref(), [Record | Record], #{k => Record}},
                server(Node) ! {'$gen_call', {self(), Tag}, info},
                receive
                    {Tag, {ok, _}} -> ok
                end,
                {error, {bad_request, _}} = gen_server:call(Pid, Record),
                {error, {bad_request, _}} = gen_server:call(Pid, {open, Record, #{}}),
                {error, {_, _}} = gen_server:call(Pid, {open, <<"records">>, #{Record => Record}}),
                true = exit(Pid, Record),
                {Linked, Ref} = spawn_monitor(fun() -> true = link(Pid), {ok, _} = gen_server:call(Pid, info), exit(Record) end),
                receive
                    {'DOWN', Ref, process, Linked, Record} -> ok
                end
            end,
            Records
        ),
        true = process_flag(trap_exit, Old),
        ok
    end).
