%% What the suites share: stores, the program under test, the mailbox.
-module(eleveldb_test).

-export([root/0, dir/2, open/2, fill/3, rows/1, keys/1, os_pid/0, kill/1, info/1, flush/0, await/1, in_process/1]).

%% The top of the checkout. The suites are compiled in a copy of their folder, but know where they come from.
root() ->
    Source = proplists:get_value(source, ?MODULE:module_info(compile)),
    lists:foldl(fun(_, Path) -> filename:dirname(Path) end, Source, lists:seq(1, 4)).

%% A directory's name below the suite's own. Nothing is there.
dir(Config, Case) ->
    Name = lists:flatten(io_lib:format("~ts-~b", [Case, erlang:unique_integer([positive])])),
    filename:join(proplists:get_value(priv_dir, Config), Name).

%% A new store.
open(Config, Case) ->
    {ok, Db} = eleveldb:open(dir(Config, Case), [{create_if_missing, true}]),
    Db.

%% Count rows of Size bytes under the keys 1, 2, …, which are returned.
fill(Db, Count, Size) ->
    Rows = [{<<I:32>>, binary:copy(<<I>>, Size)} || I <- lists:seq(1, Count)],
    ok = eleveldb:write(Db, [{put, K, V} || {K, V} <- Rows], []),
    Rows.

rows(Db) -> lists:reverse(eleveldb:fold(Db, fun(Row, Rows) -> [Row | Rows] end, [], [])).

keys(Db) -> lists:reverse(eleveldb:fold_keys(Db, fun(Key, Keys) -> [Key | Keys] end, [], [])).

%% The program that holds the stores.
os_pid() ->
    {ok, #{os_pid := OsPid}} = info(#{}),
    OsPid.

info(Options) -> scanode:info(Options#{port => eleveldb_sup:program()}).

kill(OsPid) ->
    "" = os:cmd("kill -KILL " ++ integer_to_list(OsPid)),
    ok.

%% All messages in the mailbox.
flush() ->
    receive
        Message -> [Message | flush()]
    after 0 ->
        []
    end.

%% Waits until Condition holds, for what sends no message: it is asked every 20 ms, at most for 30 s.
await(Condition) -> await(Condition, 1500).

await(Condition, Tries) ->
    case Condition() of
        true ->
            ok;
        false when Tries > 0 ->
            receive
            after 20 -> await(Condition, Tries - 1)
            end;
        false ->
            error(never_happened)
    end.

%% What Fun returns in a process of its own, which has ended.
in_process(Fun) ->
    {Pid, Monitor} = spawn_monitor(fun() -> exit({result, Fun()}) end),
    receive
        {'DOWN', Monitor, process, Pid, {result, Result}} -> Result
    end.
