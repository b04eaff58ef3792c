%% @private
%% What goes to the log of the BEAM.
-module(eleveldb_log).

-include_lib("kernel/include/logger.hrl").

-export([repaired/2, without_expiry/1, format_report/1]).

%% @doc Says what a repair kept and lost.
-spec repaired(string(), scanode:repaired()) -> ok.
repaired(_, #{aside := <<>>, lost := []}) ->
    %% There was no store.
    ok;
repaired(Dir, #{lost := Lost} = Repaired) ->
    Level =
        case Lost of
            [] -> notice;
            _ -> warning
        end,
    ?LOG(Level, Repaired#{dir => Dir}, #{report_cb => fun ?MODULE:format_report/1}).

%% @doc Says that rows of a store do not expire although they were meant to.
-spec without_expiry(string()) -> ok.
without_expiry(Dir) ->
    ?LOG(warning, #{dir => Dir, expiry => none}, #{report_cb => fun ?MODULE:format_report/1}).

%% @doc What logger calls to print our reports.
-spec format_report(map()) -> {io:format(), [term()]}.
format_report(#{dir := Dir, expiry := none}) ->
    {"eleveldb opened ~ts without expiry: the store was made without it, so its rows have no times and stay", [Dir]};
format_report(#{dir := Dir, rows := Rows, lost := [], aside := Aside}) ->
    {"eleveldb repaired ~ts: ~b rows, nothing was lost; old files: ~ts", [Dir, Rows, Aside]};
format_report(#{dir := Dir, rows := Rows, lost := Lost, aside := Aside}) ->
    {"eleveldb repaired ~ts: ~b rows; old files: ~ts; lost:~n~ts", [Dir, Rows, Aside, lists:join("\n", Lost)]}.
