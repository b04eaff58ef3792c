%% A state machine over the module: two stores, three processes that use them, three iterators; the model is a sorted list of rows a store and a copy of it
%% for each iterator and each fold under way.
%%
%% Commands name stores, processes and iterators by their places, so that a sequence stays a sequence when commands are left out of it. What a command did is
%% returned with the messages that it left in the mailbox of its process: there must be none.
-module(prop_eleveldb).

-behaviour(proper_statem).

-include_lib("proper/include/proper.hrl").

-export([check/2, replay/2]).
-export([filling/3]).
-export([initial_state/0, command/1, precondition/2, next_state/3, postcondition/3]).

-define(PROCESSES, [1, 2, 3]).
-define(ITERATORS, [1, 2, 3]).

%% The sizes that sequences are made of, in turn.
-define(SIZES, {10, 20, 40, 60, 80}).

%% A sequence that takes longer has met something that will not end.
-define(PATIENCE_MS, 60000).

%% `is': absent, closed, open; orphaned is open, by a process that is dead. Of a store that has been opened there is a handle, and of one that has been opened
%% twice an old one, too.
-record(store, {is = absent, opener = 0, rows = [], handles = 0}).

%% `is': open; closed; ghost, when its store has been given to another meanwhile: it may say so or go on with what it has.
-record(iterator, {is = open, store, rows, kind, at = nowhere}).

%% A fold that waits in its callback. `is' as for iterators.
-record(fold, {is = open, store, rows}).

-record(model, {stores = #{}, iterators = #{}, folds = #{}}).

%% The property

%% Runs up to `count' sequences made from `seed', a triple of integers, on stores below the directory `root', at most until `deadline' (in milliseconds of
%% the monotonic clock). Returns how many that were, and how often each command was done. A sequence that fails is made shorter, while it still fails.
check(Module, #{root := Root, seed := Seed, count := Count, deadline := Deadline}) ->
    ok = prop_world:enter(Module, Root),
    try
        checked(Seed, 0, Count, Deadline)
    after
        prop_world:leave()
    end.

checked(_, Done, Done, _) ->
    {ok, Done, prop_world:ran()};
checked({A, B, C} = Seed, Done, Count, Deadline) ->
    Commands = drawn(Seed),
    case outcome(Commands) of
        ok ->
            case erlang:monotonic_time(millisecond) < Deadline of
                true -> checked({A, B, C + 1}, Done + 1, Count, Deadline);
                false -> {ok, Done + 1, prop_world:ran()}
            end;
        {failed, Why} ->
            {Fewest, FewestWhy} = shorter(Commands, Why),
            {failed, #{seed => Seed, sequences => Done + 1, commands => operations(Fewest), why => FewestWhy}}
    end.

%% One sequence again, by what was said of it: its seed, or its commands.
replay(Module, #{root := Root} = What) ->
    Commands =
        case What of
            #{seed := Seed} -> drawn(Seed);
            #{commands := Operations} -> [{set, {var, N}, {call, prop_world, run, [Operation]}} || {N, Operation} <- numbered(Operations)]
        end,
    ok = prop_world:enter(Module, Root),
    try
        outcome(Commands)
    after
        prop_world:leave()
    end.

numbered(List) -> lists:zip(lists:seq(1, length(List)), List).

%% PropEr 1.2 on its own draws from a seed nobody knows.
drawn({_, _, C} = Seed) ->
    {ok, Commands} = proper_gen:pick(proper_statem:commands(?MODULE), element(1 + C rem tuple_size(?SIZES), ?SIZES), Seed),
    Commands.

operations(Commands) -> [Operation || {set, _, {call, prop_world, run, [Operation]}} <- Commands].

outcome(Commands) ->
    case within(fun() -> proper_statem:run_commands(?MODULE, Commands) end) of
        {ok, {_, Model, ok}} ->
            prop_world:tidy([P || P <- maps:keys(Model#model.folds)], is_as_first(Model));
        {ok, {History, Model, How}} ->
            Failed = lists:nth(length(History), operations(Commands)),
            {_, Result} = lists:last(History),
            ok = prop_world:renew(),
            {failed, #{failed => Failed, result => Result, expected => element(1, model(Failed, Model)), how => How}};
        {crashed, Why} ->
            ok = prop_world:renew(),
            {failed, Why}
    end.

%% Whether the first store is open as it is when a sequence begins, but for its rows.
is_as_first(Model) ->
    case store(a, Model) of
        #store{is = open, opener = 1, rows = Rows} -> {true, [Key || {Key, _} <- Rows]};
        _ -> false
    end.

%% In a process of its own, as PropEr dies of what is raised, and what does not end would end nothing.
within(Fun) ->
    {Pid, Monitor} = spawn_monitor(fun() -> exit({result, Fun()}) end),
    receive
        {'DOWN', Monitor, process, Pid, {result, Result}} -> {ok, Result};
        {'DOWN', Monitor, process, Pid, Why} -> {crashed, Why}
    after ?PATIENCE_MS ->
        {current_stacktrace, Stack} = process_info(Pid, current_stacktrace),
        true = exit(Pid, kill),
        receive
            {'DOWN', Monitor, process, Pid, _} -> {crashed, {does_not_end, Stack}}
        end
    end.

%% Leaves out halves, quarters, …, single commands, from the end on.
shorter(Commands, Why) -> shorter(Commands, Why, max(1, length(Commands) div 2)).

shorter(Commands, Why, Size) ->
    case without(Commands, Size, length(Commands) - Size + 1) of
        {failed, Fewer, FewerWhy} -> shorter(Fewer, FewerWhy, min(Size, max(1, length(Fewer) div 2)));
        none when Size > 1 -> shorter(Commands, Why, Size div 2);
        none -> {Commands, Why}
    end.

without(_, _, From) when From < 1 ->
    none;
without(Commands, Size, From) ->
    Fewer = lists:sublist(Commands, From - 1) ++ lists:nthtail(From - 1 + Size, Commands),
    case is_sequence(operations(Fewer), initial_state()) andalso outcome(Fewer) of
        {failed, Why} -> {failed, Fewer, Why};
        _ -> without(Commands, Size, From - Size)
    end.

is_sequence([], _) -> true;
is_sequence([Operation | Operations], Model) -> allowed(Operation, Model) andalso is_sequence(Operations, element(2, model(Operation, Model))).

%% Sequences

initial_state() -> #model{stores = #{a => #store{is = open, opener = 1, handles = 1}, b => #store{}}}.

command(Model) -> {call, prop_world, run, [?SUCHTHAT(Operation, operation(Model), allowed(Operation, Model))]}.

operation(#model{folds = Folds} = Model) ->
    Free = [P || P <- ?PROCESSES, not maps:is_key(P, Folds)],
    case Free of
        [] -> busy(Model);
        _ -> frequency([{30, ?LAZY(used(Free, Model))}, {2, busy(Model)}, {1, {die, oneof(?PROCESSES)}}])
    end.

busy(_) -> frequency([{5, {resume, oneof(?PROCESSES)}}, {1, {die, oneof(?PROCESSES)}}]).

%% Only what may be there is drawn from, as drawing again costs more than drawing.
used(Free, #model{stores = Stores, iterators = Iterators} = Model) ->
    P = oneof(Free),
    Opened = [D || {D, #store{handles = Handles}} <- maps:to_list(Stores), Handles > 0],
    Old = [D || {D, #store{handles = 2}} <- maps:to_list(Stores)],
    Open = [D || D <- [a, a, a, b], is_open(D, Model)],
    Is = [I || I <- maps:keys(Iterators), (maps:get(I, Iterators))#iterator.is =/= closed],
    frequency(
        [{3, {open, P, oneof([a, b, b]), opening(), boolean()}}, {1, {destroy, P, oneof([a, b, b]), boolean()}}] ++
            [command_on(P, oneof(Open ++ Opened)) || Opened =/= []] ++
            [{8, over_open(P, oneof(Open))} || Open =/= []] ++
            [{40, {move, P, oneof(Is), action()}} || Is =/= []] ++
            [{2, {do_fold, P, oneof(Is), oneof([first, key()]), break()}} || Is =/= []] ++
            [{1, {iterator_close, P, oneof(Is)}} || Is =/= []] ++
            [{1, {move, P, oneof(maps:keys(Iterators)), action()}} || map_size(Iterators) > 0] ++
            [{4, {stale, P, oneof(Old), oneof([get, put, fold, iterator])}} || Old =/= []]
    ).

opening() -> oneof([[{create_if_missing, true}], [{create_if_missing, true}], [], [{create_if_missing, true}, {error_if_exists, true}]]).

%% On a store that is open or was.
command_on(P, D) ->
    {36,
        frequency([
            {1, {close, P, D}},
            {6, {write, P, D, actions(), frequency([{9, false}, {1, true}])}},
            {4, {put, P, D, key(), value()}},
            {4, {delete, P, D, key()}},
            {2, {async_put, P, D, key(), value()}},
            {3, {fill, P, D, range(0, 255), range(1, 300), range(1, 3)}},
            {5, {get, P, D, key()}},
            {1, {is_empty, P, D}},
            {4, {fold, P, D, bounds(), break()}},
            {6, {iterator, P, D, oneof(?ITERATORS), oneof([kv, keys])}}
        ])}.

over_open(P, D) ->
    frequency([{4, {fold_over_writes, P, D, method(), actions()}}, {1, {fold_over_close, P, D, method()}}, {3, {pause, P, D, method()}}]).

%% Few enough to meet again, and such that one is often the beginning of another.
key() -> frequency([{4, ?LET(Bytes, resize(3, list(oneof([0, $a, $b, 255]))), list_to_binary(Bytes))}, {1, ?LET(N, range(0, 65535), <<N:16>>)}]).

%% Some are larger than what a lone move reads.
value() -> frequency([{6, ?LET(N, range(0, 30), binary:copy(<<"v">>, N))}, {1, ?LET(N, range(1, 255), binary:copy(<<N>>, 3000))}]).

actions() -> resize(6, list(frequency([{6, {put, key(), value()}}, {4, {delete, key()}}, {1, clear}]))).

action() -> frequency([{2, first}, {2, last}, {5, next}, {4, prev}, {8, prefetch}, {2, prefetch_stop}, {5, key()}, {1, odd}]).

method() -> oneof([fold, fold_keys, stream]).

bounds() ->
    oneof([
        {fold, oneof([first, key()])},
        {fold_keys, oneof([first, key()])},
        {stream, key(), oneof([undefined, key()]), boolean(), boolean(), oneof([0, 1, 3, 100]), oneof([1, 100, 5000, 1 bsl 20])}
    ]).

break() -> frequency([{4, none}, {1, range(1, 5)}]).

precondition(Model, {call, prop_world, run, [Operation]}) -> allowed(Operation, Model).

next_state(Model, _Result, {call, prop_world, run, [Operation]}) -> element(2, model(Operation, Model)).

postcondition(Model, {call, prop_world, run, [Operation]}, Result) ->
    {Expected, _} = model(Operation, Model),
    case Result of
        {Got, []} -> Got =:= Expected orelse is_one_of(Got, Expected);
        {_, _} -> false
    end.

is_one_of(Got, {one_of, Results}) -> lists:member(Got, Results);
is_one_of(_, _) -> false.

%% The model

allowed({die, _}, _) ->
    true;
allowed({resume, P}, #model{folds = Folds}) ->
    maps:is_key(P, Folds);
allowed(Operation, #model{folds = Folds} = Model) ->
    not maps:is_key(element(2, Operation), Folds) andalso is_there(Operation, Model).

%% Whether what it names is there. Where the opener of a store is dead, the program may not know it yet: then, and only then, it is asked again.
is_there({open, _, D, _, Again}, Model) -> Again =:= is_orphaned(D, Model);
is_there({destroy, _, D, Again}, Model) -> Again =:= is_orphaned(D, Model);
is_there({stale, _, D, _}, Model) -> (store(D, Model))#store.handles > 1;
is_there({pause, _, D, _}, Model) -> is_open(D, Model) andalso (store(D, Model))#store.rows =/= [];
is_there({fold_over_close, _, D, _}, Model) -> is_open(D, Model) andalso (store(D, Model))#store.rows =/= [];
is_there({fold_over_writes, _, D, _, _}, Model) -> is_open(D, Model);
is_there({move, _, I, _}, #model{iterators = Iterators}) -> maps:is_key(I, Iterators);
is_there({iterator_close, _, I}, #model{iterators = Iterators}) -> maps:is_key(I, Iterators);
is_there({do_fold, _, I, _, _}, #model{iterators = Iterators}) -> maps:is_key(I, Iterators);
is_there(Operation, Model) -> (store(element(3, Operation), Model))#store.handles > 0.

store(D, #model{stores = Stores}) -> maps:get(D, Stores).

is_orphaned(D, Model) -> (store(D, Model))#store.is =:= orphaned.

is_open(D, Model) -> lists:member((store(D, Model))#store.is, [open, orphaned]).

%% What is returned, or one_of what, and the model afterwards.
model({open, P, D, Options, _}, Model) ->
    #store{is = Is, rows = Rows, handles = Handles} = store(D, Model),
    Exists = lists:member({error_if_exists, true}, Options),
    Creates = lists:member({create_if_missing, true}, Options),
    Opened = #store{is = open, opener = P, handles = min(2, Handles + 1)},
    case Is of
        open -> {{error, {db_open, lock}}, Model};
        absent when Creates -> {ok, stored(D, Opened, Model)};
        absent -> {{error, {db_open, missing}}, Model};
        _ when Exists -> {{error, {db_open, exists}}, yielded(D, closed, Model)};
        _ -> {ok, stored(D, Opened#store{rows = Rows}, yielded(D, closed, Model))}
    end;
model({close, _, D}, Model) ->
    case is_open(D, Model) of
        true -> {ok, ended(D, closed, stored(D, (store(D, Model))#store{is = closed}, Model))};
        false -> {badarg(), Model}
    end;
model({destroy, _, D, _}, Model) ->
    case (store(D, Model))#store.is of
        open -> {{error, {error_db_destroy, lock}}, Model};
        _ -> {ok, stored(D, (store(D, Model))#store{is = absent, rows = []}, yielded(D, absent, Model))}
    end;
model({write, _, D, Actions, _}, Model) -> changed(D, Actions, Model);
model({put, _, D, Key, Value}, Model) -> changed(D, [{put, Key, Value}], Model);
model({delete, _, D, Key}, Model) -> changed(D, [{delete, Key}], Model);
model({async_put, _, D, Key, Value}, Model) ->
    case changed(D, [{put, Key, Value}], Model) of
        {ok, Changed} -> {ok, Changed};
        %% Where the store was not closed, but given to another, only the program knows.
        {Badarg, Model} -> {{one_of, [Badarg, rejected]}, Model}
    end;
model({fill, _, D, From, Count, Step}, Model) ->
    case is_open(D, Model) of
        true ->
            #store{rows = Rows} = Store = store(D, Model),
            %% In order, as the keys of a filling do not run over.
            {ok, stored(D, Store#store{rows = lists:ukeymerge(1, [{Key, Value} || {put, Key, Value} <- filling(From, Count, Step)], Rows)}, Model)};
        false ->
            {badarg(), Model}
    end;
model({get, _, D, Key}, Model) ->
    asked(D, Model, fun(Rows) ->
        case orddict:find(Key, Rows) of
            error -> not_found;
            Found -> Found
        end
    end);
model({is_empty, _, D}, Model) -> asked(D, Model, fun(Rows) -> Rows =:= [] end);
model({fold, _, D, Bounds, Break}, Model) -> asked(D, Model, fun(Rows) -> folded(bounded(Bounds, Rows), Break) end);
model({fold_over_writes, _, D, Method, Actions}, Model) ->
    #store{rows = Rows} = store(D, Model),
    %% Its callback writes at the first row.
    {ok, Written} =
        case Rows of
            [] -> {ok, Model};
            _ -> changed(D, Actions, Model)
        end,
    {bounded({Method, first}, Rows), Written};
model({fold_over_close, _, D, _}, Model) ->
    {ok, Closed} = model({close, 0, D}, Model),
    {badarg(), Closed};
model({pause, P, D, Method}, #model{folds = Folds} = Model) ->
    Fold = #fold{store = D, rows = bounded({Method, first}, (store(D, Model))#store.rows)},
    {paused, Model#model{folds = Folds#{P => Fold}}};
model({resume, P}, #model{folds = Folds} = Model) ->
    #fold{is = Is, rows = Rows} = maps:get(P, Folds),
    Resumed = Model#model{folds = maps:remove(P, Folds)},
    case Is of
        open -> {Rows, Resumed};
        closed -> {badarg(), Resumed};
        ghost -> {{one_of, [badarg(), Rows]}, Resumed}
    end;
model({iterator, _, D, I, Kind}, #model{iterators = Iterators} = Model) ->
    case is_open(D, Model) of
        true -> {ok, Model#model{iterators = Iterators#{I => #iterator{store = D, rows = (store(D, Model))#store.rows, kind = Kind}}}};
        false -> {badarg(), Model}
    end;
model({move, _, I, Action}, #model{iterators = Iterators} = Model) ->
    #iterator{is = Is} = Iterator = maps:get(I, Iterators),
    {Result, Moved} = moved(Action, Iterator),
    After = Model#model{iterators = Iterators#{I := Moved}},
    case Is of
        open -> {Result, After};
        closed -> {badarg(), Model};
        ghost -> {{one_of, [badarg(), Result]}, After}
    end;
model({iterator_close, _, I}, #model{iterators = Iterators} = Model) ->
    #iterator{is = Is} = Iterator = maps:get(I, Iterators),
    Closed = Model#model{iterators = Iterators#{I := Iterator#iterator{is = closed}}},
    case Is of
        open -> {ok, Closed};
        closed -> {badarg(), Closed};
        ghost -> {{one_of, [ok, badarg()]}, Closed}
    end;
model({do_fold, _, I, Start, Break}, #model{iterators = Iterators} = Model) ->
    #iterator{is = Is, kind = Kind, rows = Rows} = Iterator = maps:get(I, Iterators),
    Method =
        case Kind of
            kv -> fold;
            keys -> fold_keys
        end,
    Closed = Model#model{iterators = Iterators#{I := Iterator#iterator{is = closed}}},
    case Is of
        open -> {folded(bounded({Method, Start}, Rows), Break), Closed};
        _ -> {badarg(), Closed}
    end;
model({stale, _, _, _}, Model) ->
    {badarg(), Model};
%% Its stores are open and unlocked, its iterators remain, and its fold is over.
model({die, P}, #model{stores = Stores, folds = Folds} = Model) ->
    Orphan = fun
        (_, #store{is = open, opener = Opener} = Store) when Opener =:= P -> Store#store{is = orphaned};
        (_, Store) -> Store
    end,
    {died, Model#model{stores = maps:map(Orphan, Stores), folds = maps:remove(P, Folds)}}.

badarg() -> {raised, error, badarg}.

stored(D, Store, #model{stores = Stores} = Model) -> Model#model{stores = Stores#{D := Store}}.

%% A store whose opener is dead goes to the next who wants the directory. Others have not closed it, so who uses it may not know at once.
yielded(D, Is, Model) ->
    #store{is = Was} = Store = store(D, Model),
    case Was of
        orphaned -> ended(D, ghost, stored(D, Store#store{is = Is}, Model));
        _ -> stored(D, Store#store{is = Is}, Model)
    end.

%% What there is of the store ends with it.
ended(D, How, #model{iterators = Iterators, folds = Folds} = Model) ->
    Model#model{
        iterators = maps:map(
            fun
                (_, #iterator{store = Of, is = Is} = Iterator) when Of =:= D, Is =:= open -> Iterator#iterator{is = How};
                (_, Iterator) -> Iterator
            end,
            Iterators
        ),
        folds = maps:map(
            fun
                (_, #fold{store = Of, is = Is} = Fold) when Of =:= D, Is =:= open -> Fold#fold{is = How};
                (_, Fold) -> Fold
            end,
            Folds
        )
    }.

asked(D, Model, Fun) ->
    case is_open(D, Model) of
        true -> {Fun((store(D, Model))#store.rows), Model};
        false -> {badarg(), Model}
    end.

changed(D, Actions, Model) ->
    case is_open(D, Model) of
        true ->
            #store{rows = Rows} = Store = store(D, Model),
            {ok, stored(D, Store#store{rows = lists:foldl(fun change/2, Rows, effective(Actions))}, Model)};
        false ->
            {badarg(), Model}
    end.

%% Behind the last `clear'.
effective(Actions) -> lists:reverse(lists:takewhile(fun(Action) -> Action =/= clear end, lists:reverse(Actions))).

change({put, Key, Value}, Rows) -> orddict:store(Key, Value, Rows);
change({delete, Key}, Rows) -> orddict:erase(Key, Rows).

filling(From, Count, Step) -> [{put, <<(From * 256 + N * Step):16>>, <<N:16>>} || N <- lists:seq(0, Count - 1), From * 256 + N * Step < 65536].

%% What a fold is to hand out, in order.
bounded({fold, first}, Rows) -> Rows;
bounded({stream, first}, Rows) -> Rows;
bounded({fold, Start}, Rows) -> [Row || {Key, _} = Row <- Rows, Key >= Start];
bounded({fold_keys, Start}, Rows) -> [Key || {Key, _} <- Rows, Start =:= first orelse Key >= Start];
bounded({stream, Start, End, StartIn, EndIn, Limit, _}, Rows) ->
    Within = [
        Row
     || {Key, _} = Row <- Rows,
        Key > Start orelse (StartIn andalso Key =:= Start),
        End =:= undefined orelse Key < End orelse (EndIn andalso Key =:= End)
    ],
    case Limit of
        0 -> Within;
        _ -> lists:sublist(Within, Limit)
    end.

folded(Rows, Break) when is_integer(Break), length(Rows) >= Break -> {raised, throw, {break, lists:sublist(Rows, Break)}};
folded(Rows, _) -> Rows.

moved(odd, Iterator) ->
    {{einval, ref}, Iterator};
moved(Action, #iterator{rows = Rows, kind = Kind, at = At} = Iterator) ->
    case {place(Action, At, Rows), Kind} of
        {nowhere, _} -> {{error, invalid_iterator}, Iterator#iterator{at = nowhere}};
        {{Key, Value}, kv} -> {{ok, Key, Value}, Iterator#iterator{at = Key}};
        {{Key, _}, keys} -> {{ok, Key}, Iterator#iterator{at = Key}}
    end.

place(first, _, Rows) -> leftmost(Rows);
place(last, _, Rows) -> leftmost(lists:reverse(Rows));
place(Key, _, Rows) when is_binary(Key) -> leftmost(lists:dropwhile(fun({K, _}) -> K < Key end, Rows));
place(_, nowhere, _) -> nowhere;
place(prev, At, Rows) -> leftmost(lists:reverse(lists:takewhile(fun({K, _}) -> K < At end, Rows)));
place(_, At, Rows) -> leftmost(lists:dropwhile(fun({K, _}) -> K =< At end, Rows)).

leftmost([Row | _]) -> Row;
leftmost([]) -> nowhere.
