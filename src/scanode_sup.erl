%% @private
%% Supervises the owner of the default program. The intensity is the supervisor's defence against faults of scanode_port itself: an end of the
%% program is no exit of scanode_port, which backs off on its own (see there), so a program that will not live never brings this application down.
-module(scanode_sup).

-behaviour(supervisor).

-export([start_link/0, init/1]).

-spec start_link() -> supervisor:startlink_ret().
start_link() ->
    supervisor:start_link({local, ?MODULE}, ?MODULE, []).

-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    {ok, {#{strategy => one_for_one, intensity => 3, period => 10}, [scanode:child_spec([])]}}.
