%% What the documents show is run as it stands there: the examples of docs/protocol.md and the session of README.md.
-module(protocol_SUITE).

-include_lib("common_test/include/ct.hrl").

-export([all/0, suite/0]).
-export([node_example/1, port_example/1, readme_session/1]).
-export([examples/1, evaluate/2]).

suite() -> [{timetrap, {seconds, 60}}].

all() -> [node_example, port_example, readme_session].

node_example(Config) ->
    #{node := Node} = Program = test_node:start(Config),
    [Example, _] = examples("docs/protocol.md"),
    ok = run(Example, #{'Node' => Node}),
    ok = test_node:stop(Program).

port_example(Config) ->
    [_, Example] = examples("docs/protocol.md"),
    true = run(Example, #{'Executable' => test_program:executable(), 'Dir' => test_program:directory(Config, ?FUNCTION_NAME)}).

readme_session(Config) ->
    [Session, Rows | _] = examples("README.md"),
    Dir = test_program:directory(Config, ?FUNCTION_NAME),
    %% One after the other in one shell.
    Both = string:replace(Session, "/tmp/fruit", Dir ++ "-fruit") ++ "\n" ++ string:replace(Rows, "/tmp/weather", Dir ++ "-weather"),
    {ok, [_, _]} = run(Both, #{}),
    ok = application:stop(scanode).

%% The Erlang parts of a document.
examples(Document) ->
    {ok, Text} = file:read_file(filename:join(test_program:root(), Document)),
    {match, Parts} = re:run(Text, "```erlang\n(.*?)```", [global, dotall, {capture, [1], list}]),
    [Part || [Part] <- Parts].

%% As the shell does it: expression lists one after the other. The value of the last one.
run(Text, Bindings) ->
    {Value, _} = evaluate(Text, maps:to_list(Bindings)),
    Value.

%% The same, with the variables bound afterwards.
evaluate(Text, Bindings) ->
    {ok, Tokens, _} = erl_scan:string(lists:flatten(Text)),
    lists:foldl(
        fun(Form, {_, Bound}) ->
            {ok, Exprs} = erl_parse:parse_exprs(Form),
            {value, Value, Now} = erl_eval:exprs(Exprs, Bound),
            {Value, Now}
        end,
        {undefined, Bindings},
        forms(Tokens, [])
    ).

forms([], []) -> [];
forms([{dot, _} = Dot | Tokens], Form) -> [lists:reverse([Dot | Form]) | forms(Tokens, [])];
forms([Token | Tokens], Form) -> forms(Tokens, [Token | Form]).
