%% @private
%% What scanode says of a failure, in the words callers of eleveldb match on. Texts are lists of characters, as there.
-module(eleveldb_error).

-export([open/2, destroy/2, repair/2, write/1, written/1, get/1, text/1]).

%% @doc Why a directory could not be opened. Riak tries again, 30 times and 2 seconds apart, on a text that begins with "IO error: lock " and on nothing
%% else. So this is how the text begins while another has the store, and while the program is being started anew: what takes a moment to pass.
-spec open(string(), scanode:reason()) -> {error, {db_open, string()}}.
open(Dir, Reason) ->
    {error, {db_open, opening(Dir, Reason)}}.

-spec opening(string(), scanode:reason()) -> string().
opening(Dir, {locked, _}) ->
    "IO error: lock " ++ lock_file(Dir) ++ ": already held by process";
opening(Dir, {down, Text}) ->
    "IO error: lock " ++ lock_file(Dir) ++ ": " ++ chars(Text);
opening(Dir, {missing, _}) ->
    "Invalid argument: " ++ Dir ++ ": does not exist (create_if_missing is false)";
opening(Dir, {exists, _}) ->
    "Invalid argument: " ++ Dir ++ ": exists (error_if_exists is true)";
opening(_, Reason) ->
    text(Reason).

%% No file of ours is called so; the name is the one in the original's text.
-spec lock_file(string()) -> string().
lock_file(Dir) ->
    filename:join(Dir, "LOCK").

%% @doc Why a store could not be removed.
-spec destroy(string(), scanode:reason()) -> {error, {error_db_destroy, string()}}.
destroy(Dir, Reason) ->
    {error, {error_db_destroy, opening(Dir, Reason)}}.

%% @doc Why a store could not be repaired.
-spec repair(string(), scanode:reason()) -> {error, {error_db_repair, string()}}.
repair(Dir, Reason) ->
    {error, {error_db_repair, opening(Dir, Reason)}}.

%% @doc Why a write failed. Riak's vnode ends itself on `db_write', to open the store anew: right for a store that cannot go on or of which nobody knows
%% what it holds, and wrong for a write that was refused for its own sake, which is `db_write_rejected'.
-spec write(scanode:write_error()) -> {error, {db_write | db_write_rejected, string()}}.
write({rejected, {Tag, _} = Reason}) when Tag =:= bad_request; Tag =:= bad_option ->
    {error, {db_write_rejected, text(Reason)}};
write({rejected, busy}) ->
    {error, {db_write_rejected, text(busy)}};
write({Outcome, Reason}) ->
    {error, {db_write, atom_to_list(Outcome) ++ ": " ++ text(Reason)}}.

%% @doc What is sent of a write for which nobody waited. Its store may be closed meanwhile.
-spec written(ok | {error, scanode:write_error()}) -> ok | {error, {db_write | db_write_rejected, string()}}.
written(ok) -> ok;
written({error, closed}) -> {error, {db_write, "rejected: the store is closed"}};
written({error, Error}) -> write(Error).

%% @doc Why a value could not be read. The doubled atom is the original's.
-spec get(scanode:reason()) -> {error, {error, string()}}.
get(Reason) ->
    {error, {error, text(Reason)}}.

%% @doc A reason as a text, beginning as LevelDB's do.
-spec text(scanode:reason()) -> string().
text({corrupt, Text}) -> "Corruption: " ++ chars(Text);
text({Tag, Text}) when Tag =:= bad_request; Tag =:= bad_option; Tag =:= bad_path; Tag =:= foreign; Tag =:= missing; Tag =:= exists ->
    "Invalid argument: " ++ chars(Text);
text({Tag, Text}) when Tag =:= bad_filter; Tag =:= bad_row -> chars(Text);
text({no_executable, Path}) -> "IO error: no scanode program at " ++ chars(Path);
text({bad_executable, Text}) -> "IO error: not the scanode program this application was made with: " ++ chars(Text);
text({_, Text}) when is_binary(Text) -> "IO error: " ++ chars(Text);
text(Reason) -> "IO error: " ++ lists:flatten(io_lib:format("~0tp", [Reason])).

-spec chars(binary()) -> string().
chars(Text) ->
    case unicode:characters_to_list(Text) of
        Chars when is_list(Chars) -> Chars;
        _ -> binary_to_list(Text)
    end.
