%% @private
%% Supervises the owner of the program and the iterators.
%%
%% The program is one of this application's own, beside the one the application scanode may run: its memory is what the environment of `eleveldb' says at
%% this moment, as the original reads it when its library is loaded, and whoever uses scanode as well keeps the settings made there.
-module(eleveldb_sup).

-behaviour(supervisor).

-export([start_link/0, start_iterators/0, program/0, init/1]).

%% @doc The name the program's owner is registered under, for the option `port' of the functions of scanode.
-spec program() -> atom().
program() ->
    eleveldb_program.

-spec start_link() -> supervisor:startlink_ret().
start_link() ->
    supervisor:start_link({local, ?MODULE}, ?MODULE, top).

-spec start_iterators() -> supervisor:startlink_ret().
start_iterators() ->
    supervisor:start_link({local, eleveldb_iterator_sup}, ?MODULE, iterators).

-spec init(top | iterators) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(top) ->
    Program = scanode:child_spec([{name, program()}, {args, eleveldb_options:program_args()}]),
    Iterators = #{id => eleveldb_iterator_sup, start => {?MODULE, start_iterators, []}, type => supervisor},
    %% Stopped in the reverse order: the iterators give back what they hold before the program goes.
    {ok, {#{strategy => one_for_one, intensity => 3, period => 10}, [Program, Iterators]}};
init(iterators) ->
    Iterator = #{id => eleveldb_iterator, start => {eleveldb_iterator, start_link, []}, restart => temporary},
    {ok, {#{strategy => simple_one_for_one}, [Iterator]}}.
