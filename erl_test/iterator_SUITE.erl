%% Iterators: what they read, against a sorted list; who may use them; how they end. Everything runs over a port and against a node.
-module(iterator_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, groups/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_group/2, end_per_group/2, end_per_testcase/2]).
-export([
    every_place/1,
    position/1,
    moves/1,
    bounds_of_a_read/1,
    sees_a_snapshot/1,
    of_a_snapshot/1,
    rows_pin_no_batch/1,
    used_by_others/1,
    taken_in_turns/1,
    maker_dies/1,
    listed_and_killed/1,
    closed/1,
    closed_under_readers/1,
    wrong_arguments/1,
    timeouts/1
]).

suite() -> [{timetrap, {seconds, 240}}].

all() -> [{group, port}, {group, node}, {group, couch}].

groups() ->
    Cases = [
        F
     || {F, 1} <- ?MODULE:module_info(exports), not lists:member(F, [init_per_suite, end_per_suite, module_info])
    ],
    [{port, [], Cases}, {node, [], Cases}, {couch, [], Cases}].

init_per_suite(Config) ->
    _ = test_program:executable(),
    Config.

end_per_suite(_Config) ->
    ok.

init_per_group(port, Config) ->
    {ok, _} = application:ensure_all_started(scanode),
    [{target, #{}} | Config];
%% The other engine, with so little memory for writes that they are in the tree, in the log and in memory.
init_per_group(couch, Config) ->
    {ok, _} = application:ensure_all_started(scanode),
    [{target, #{engine => couch, write_buffer_size => 65536}} | Config];
init_per_group(node, Config) ->
    #{node := Node} = Program = test_node:start(Config),
    [{target, #{node => Node}}, {program, Program} | Config].

end_per_group(Group, _Config) when Group =:= port; Group =:= couch ->
    ok = application:stop(scanode);
end_per_group(node, Config) ->
    ok = test_node:stop(?config(program, Config)).

end_per_testcase(_Case, _Config) ->
    [] = test_program:flush(),
    ok.

open(Config, Case, Keys) ->
    Dir =
        case ?config(target, Config) of
            #{node := _} -> filename:basename(test_program:directory(Config, Case));
            #{} -> test_program:directory(Config, Case)
        end,
    {ok, Db} = scanode:open(Dir, ?config(target, Config)),
    ok = scanode:write(Db, [{put, Key, <<"v", Key/binary>>} || Key <- Keys], #{}),
    Db.

numbered(Count) ->
    [<<I:16>> || I <- lists:seq(1, Count)].

iterator(Db) ->
    {ok, Iterator} = scanode:iterator(Db, #{rows => keys}),
    Iterator.

in_a_process(Fun) ->
    {Pid, Monitor} = spawn_monitor(Fun),
    receive
        {'DOWN', Monitor, _, _, Reason} -> normal = Reason
    end,
    Pid.

%% Every place to begin at, over every kind of neighbour, against the definition.
every_place(Config) ->
    Keys = [<<>>, <<0>>, <<0, 0>>, <<"a">>, <<"a", 0>>, <<"ab">>, <<"a", 255>>, <<"b">>, <<255>>, <<255, 255>>],
    Stored = [Key || {I, Key} <- lists:zip(lists:seq(1, length(Keys)), Keys), I rem 3 =/= 0],
    Db = open(Config, ?FUNCTION_NAME, Stored),
    It = iterator(Db),
    {ok, Stored, done} = scanode:iterator_read(It, first, #{}),
    Backwards = lists:reverse(Stored),
    {ok, Backwards, done} = scanode:iterator_read(It, last, []),
    [
        begin
            Want = [K || K <- Walked, Is(K, Key)],
            [
                begin
                    Some = lists:sublist(Want, N),
                    {_, _, {ok, Some, More}} = {Word, Key, scanode:iterator_read(It, {Word, Key}, [{max_rows, N}])},
                    More = case N > length(Want) of true -> done; false -> more end
                end
             || N <- [1, 2, 5, 100]
            ]
        end
     || Key <- Keys,
        {Word, Walked, Is} <- [
            {from, Stored, fun(K, L) -> K >= L end},
            {'after', Stored, fun(K, L) -> K > L end},
            {upto, Backwards, fun(K, L) -> K =< L end},
            {before, Backwards, fun(K, L) -> K < L end}
        ]
    ],
    ok = scanode:close(It),
    ok = scanode:close(Db).

position(Config) ->
    Db = open(Config, ?FUNCTION_NAME, numbered(5)),
    It = iterator(Db),
    Read = fun(From, Rows) ->
        {ok, Keys, More} = scanode:iterator_read(It, From, #{max_rows => Rows}),
        {[I || <<I:16>> <- Keys], More}
    end,
    {[], done} = Read(prev, 3),
    {[1, 2, 3], more} = Read(next, 3),
    {[2], more} = Read(prev, 1),
    {[3, 4], more} = Read(next, 2),
    {[5], done} = Read(next, 2),
    {[], done} = Read(next, 2),
    {[], done} = Read(next, 2),
    {[5, 4], more} = Read(prev, 2),
    {[3, 2, 1], done} = Read(prev, 9),
    {[], done} = Read(prev, 9),
    {[1], more} = Read(next, 1),
    {[4], more} = Read({from, <<4:16>>}, 1),
    {[5], done} = Read(next, 2),
    {[], done} = Read({from, <<6:16>>}, 1),
    {[5], more} = Read(prev, 1),
    ok = scanode:close(Db).

moves(Config) ->
    Db = open(Config, ?FUNCTION_NAME, numbered(3)),
    {ok, It} = scanode:iterator(Db, []),
    Row = fun(I) -> {ok, {<<I:16>>, <<"v", I:16>>}} end,
    {One, Two, Three} = {Row(1), Row(2), Row(3)},
    One = scanode:iterator_move(It, next),
    Two = scanode:iterator_move(It, next),
    Three = scanode:iterator_move(It, last),
    done = scanode:iterator_move(It, next),
    Three = scanode:iterator_move(It, prev),
    Two = scanode:iterator_move(It, <<2:16>>),
    Three = scanode:iterator_move(It, <<2:16, 0>>),
    done = scanode:iterator_move(It, <<4:16>>),
    One = scanode:iterator_move(It, first),
    done = scanode:iterator_move(It, prev),
    {error, {bad_request, _}} = scanode:iterator_move(It, prefetch),
    One = scanode:iterator_move(It, next),
    ok = scanode:close(It),
    {error, closed} = scanode:iterator_move(It, first),
    ok = scanode:close(Db).

bounds_of_a_read(Config) ->
    Count = 2000,
    Keys = numbered(Count),
    Db = open(Config, ?FUNCTION_NAME, Keys),
    It = iterator(Db),
    {ok, Hundred, more} = scanode:iterator_read(It, first, #{}),
    100 = length(Hundred),
    {ok, [_], more} = scanode:iterator_read(It, first, #{max_bytes => 0}),
    {ok, Some, more} = scanode:iterator_read(It, first, #{max_bytes => 1000, max_rows => 1000}),
    %% A key of two bytes takes seven.
    142 = length(Some),
    {ok, Keys, done} = scanode:iterator_read(It, first, #{max_rows => Count + 1}),
    {ok, Keys, more} = scanode:iterator_read(It, first, #{max_rows => Count}),
    {ok, [], done} = scanode:iterator_read(It, next, #{}),
    ok = scanode:close(Db).

sees_a_snapshot(Config) ->
    Db = open(Config, ?FUNCTION_NAME, numbered(3)),
    It = iterator(Db),
    ok = scanode:write(Db, [{delete, <<2:16>>}, {put, <<0:16>>, <<>>}, {put, <<4:16>>, <<>>}], [sync]),
    {ok, [<<1:16>>, <<2:16>>], more} = scanode:iterator_read(It, first, #{max_rows => 2}),
    ok = scanode:delete(Db, <<3:16>>),
    {ok, [<<3:16>>], done} = scanode:iterator_read(It, next, #{}),
    {ok, [<<3:16>>, <<2:16>>, <<1:16>>], done} = scanode:iterator_read(It, last, #{}),
    Now = iterator(Db),
    {ok, [<<0:16>>, <<1:16>>, <<4:16>>], done} = scanode:iterator_read(Now, first, #{}),
    ok = scanode:close(Db).

of_a_snapshot(Config) ->
    Db = open(Config, ?FUNCTION_NAME, numbered(3)),
    {ok, Snapshot} = scanode:snapshot(Db, [{orphan_ms, infinity}]),
    ok = scanode:delete(Db, <<1:16>>),
    It = iterator(Snapshot),
    ok = scanode:close(Snapshot),
    {error, closed} = scanode:get(Snapshot, <<1:16>>),
    {ok, [<<1:16>>, <<2:16>>, <<3:16>>], done} = scanode:iterator_read(It, first, #{}),
    ok = scanode:close(Db),
    {error, closed} = scanode:iterator_read(It, first, #{}).

%% What is handed out holds its own bytes and no more.
rows_pin_no_batch(Config) ->
    Db = open(Config, ?FUNCTION_NAME, []),
    ok = scanode:write(Db, [{put, <<I:16>>, binary:copy(<<I>>, 1000)} || I <- lists:seq(1, 100)], []),
    {ok, It} = scanode:iterator(Db, #{}),
    {ok, Rows, done} = scanode:iterator_read(It, first, #{max_rows => 1000}),
    [1000 = binary:referenced_byte_size(Value) || {_, Value} <- Rows],
    ok = scanode:close(Db).

%% Made by one process, used and closed by others, the maker dead.
used_by_others(Config) ->
    Db = open(Config, ?FUNCTION_NAME, numbered(3)),
    Self = self(),
    _ = in_a_process(fun() -> Self ! {iterator, iterator(Db)} end),
    It =
        receive
            {iterator, Made} -> Made
        end,
    {ok, [<<1:16>>], more} = scanode:iterator_read(It, first, #{max_rows => 1}),
    _ = in_a_process(fun() -> {ok, [<<2:16>>, <<3:16>>], done} = scanode:iterator_read(It, next, #{}) end),
    _ = in_a_process(fun() -> ok = scanode:close(It) end),
    {error, closed} = scanode:iterator_read(It, next, #{}),
    ok = scanode:close(Db).

%% Many walk one iterator at once: each row goes to one of them, and each answer to who asked.
taken_in_turns(Config) ->
    Count = 3000,
    Db = open(Config, ?FUNCTION_NAME, numbered(Count)),
    It = iterator(Db),
    Self = self(),
    Walk = fun Walk() ->
        case scanode:iterator_move(It, next) of
            {ok, <<I:16>>} -> [I | Walk()];
            done -> []
        end
    end,
    Walkers = [
        spawn_link(fun() ->
            Rows = Walk(),
            [] = test_program:flush(),
            Self ! {self(), Rows}
        end)
     || _ <- lists:seq(1, 20)
    ],
    Walked = [receive {Walker, Rows} -> Rows end || Walker <- Walkers],
    [true = Rows =:= lists:sort(Rows) || Rows <- Walked],
    true = lists:sort(lists:append(Walked)) =:= lists:seq(1, Count),
    ok = scanode:close(Db).

maker_dies(Config) ->
    Db = open(Config, ?FUNCTION_NAME, numbered(3)),
    Self = self(),
    _ = in_a_process(fun() ->
        {ok, Short} = scanode:iterator(Db, #{orphan_ms => 0}),
        {ok, Long} = scanode:iterator(Db, #{orphan_ms => infinity}),
        Self ! {made, Short, Long}
    end),
    {Short, Long} =
        receive
            {made, S, L} -> {S, L}
        end,
    ok = test_program:await(fun() -> scanode:iterator_read(Short, first, #{}) =:= {error, closed} end),
    {ok, [_, _, _], done} = scanode:iterator_read(Long, first, #{}),
    ok = scanode:close(Db).

listed_and_killed(Config) ->
    Db = open(Config, ?FUNCTION_NAME, numbered(3)),
    {ok, []} = scanode:handles(Db),
    It = iterator(Db),
    {ok, Snapshot} = scanode:snapshot(Db),
    {ok, Handles} = scanode:handles(Db),
    Self = self(),
    [
        #{handle := It, kind := iterator, maker := Self, orphaned := false, idle_ms := _},
        #{handle := Snapshot, kind := snapshot, maker := Self, orphaned := false, idle_ms := _}
    ] = lists:sort(fun(#{kind := A}, #{kind := B}) -> A =< B end, Handles),
    [ok = scanode:close(Handle) || #{handle := Handle} <- Handles],
    {error, closed} = scanode:iterator_read(It, first, #{}),
    {error, closed} = scanode:get(Snapshot, <<1:16>>),
    {ok, []} = scanode:handles(Db),
    ok = scanode:close(Db).

closed(Config) ->
    Db = open(Config, ?FUNCTION_NAME, numbered(3)),
    [It, Other] = [iterator(Db), iterator(Db)],
    ok = scanode:close(It),
    {error, closed} = scanode:close(It),
    {error, closed} = scanode:iterator_read(It, first, #{}),
    {ok, [_ | _], done} = scanode:iterator_read(Other, first, #{}),
    ok = scanode:close(Db),
    {error, closed} = scanode:iterator_read(Other, next, #{}),
    {error, closed} = scanode:close(Other),
    {error, closed} = scanode:iterator(Db, #{}),
    {error, closed} = scanode:handles(Db).

%% The store is closed under readers, folders and writers of all kinds. They hear of it, all of them, and nothing else comes.
closed_under_readers(Config) ->
    Db = open(Config, ?FUNCTION_NAME, numbered(5000)),
    Self = self(),
    Shared = iterator(Db),
    Until = fun Until(Step) ->
        case Step() of
            {error, closed} -> ok;
            {error, {rejected, closed}} -> ok;
            {ok, _, _} -> Until(Step);
            ok -> Until(Step)
        end
    end,
    Fold = fun(Opts) ->
        try
            _ = scanode:fold(Db, fun(_, N) -> N + 1 end, 0, Opts),
            ok
        catch
            error:{scan, closed} -> {error, closed}
        end
    end,
    Steps = lists:append([
        [
            fun() -> scanode:iterator_read(Own, first, #{max_rows => 10000}) end,
            fun() -> scanode:iterator_read(Shared, last, #{max_rows => 1000}) end,
            fun() -> Fold(#{}) end,
            fun() -> Fold(#{max_batch_bytes => 100, max_unacked_bytes => 100}) end,
            fun() -> scanode:put(Db, <<N:16, "w">>, <<"w">>) end,
            fun() -> scanode:write(Db, [{put, <<N:16, "s">>, <<"w">>}], [sync]) end
        ]
     || N <- lists:seq(1, 4), Own <- [iterator(Db)]
    ]),
    Workers = [
        spawn_link(fun() ->
            _ = Step(),
            Self ! {self(), started},
            ok = Until(Step),
            [] = test_program:flush(),
            Self ! {self(), ended}
        end)
     || Step <- Steps
    ],
    [receive {Worker, started} -> ok end || Worker <- Workers],
    {Time, ok} = timer:tc(fun() -> scanode:close(Db) end),
    [receive {Worker, ended} -> ok end || Worker <- Workers],
    ct:log("closing took ~b ms", [Time div 1000]).

wrong_arguments(Config) ->
    Db = open(Config, ?FUNCTION_NAME, numbered(3)),
    It = iterator(Db),
    [
        {_, {error, {bad_request, _}}} = {From, scanode:iterator_read(It, From, #{})}
     || From <- [<<"k">>, 1, [], {from}, {from, k}, {from, "k"}, {from, <<1:3>>}, {beyond, <<"k">>}, {from, <<>>, <<>>}, prefetch, self()]
    ],
    [
        {_, {error, {bad_option, _}}} = {Options, scanode:iterator_read(It, first, Options)}
     || Options <- [#{max_rows => 0}, #{max_rows => 100001}, #{max_rows => many}, #{max_bytes => -1}, #{rows => keys}, #{timeout => -1}, [1], 1]
    ],
    [
        {_, {error, {bad_option, _}}} = {Options, scanode:iterator(Db, Options)}
     || Options <- [#{rows => terms}, #{rows => {select, []}}, #{orphan_ms => -1}, #{start => <<>>}, [{timeout, x}], 1]
    ],
    ?assertError(badarg, scanode:iterator_read(Db, first, #{})),
    ?assertError(badarg, scanode:iterator(It, #{})),
    ?assertError(badarg, scanode:get(It, <<"k">>)),
    ?assertError(badarg, scanode:handles(It)),
    {ok, [_, _, _], done} = scanode:iterator_read(It, first, #{}),
    ok = scanode:close(Db).

%% A late answer vanishes.
timeouts(Config) ->
    Db = open(Config, ?FUNCTION_NAME, numbered(1000)),
    It = iterator(Db),
    [
        case scanode:iterator_read(It, first, #{max_rows => 1000, timeout => 0}) of
            {error, timeout} -> ok;
            {ok, _, _} -> ok
        end
     || _ <- lists:seq(1, 100)
    ],
    {ok, [_ | _], more} = scanode:iterator_read(It, first, #{}),
    ok = scanode:close(Db).
