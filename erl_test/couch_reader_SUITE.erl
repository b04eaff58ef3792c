%% The reader of B+tree files that the tests of the Go side call, against what CouchDB has recorded of its own files: storage/couch/testdata.
-module(couch_reader_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([checksums/1, trees/1, headers/1, databases_and_views/1, damage/1, stores/1]).

suite() -> [{timetrap, {seconds, 120}}].

all() -> [checksums, trees, headers, databases_and_views, damage, stores].

%% Published values, and one for each way by which a length is hashed, from the C library.
checksums(_Config) ->
    Bytes = fun(N) -> <<<<((I * I * 7 + (I bsr 3)) band 255)>> || I <- lists:seq(0, N - 1)>> end,
    [
        ?assertEqual(Sum, couch_xxh3:hash(In))
     || {In, Sum} <- [
            {<<>>, <<16#99AA06D3014798D86001C324468D497F:128>>},
            {<<"a">>, <<16#A96FAF705AF16834E6C632B61E964E1F:128>>},
            {binary:copy(<<"abc">>, 300), <<16#4D9125E941BE6697C830818B7D87ADB0:128>>},
            {Bytes(1), <<16#A6CD5E9392000F6AC44BDFF4074EECDB:128>>},
            {Bytes(3), <<16#EA71935C563C9D19C18747DD6A92C907:128>>},
            {Bytes(5), <<16#07456356E4170250C4302C2F78C36A46:128>>},
            {Bytes(8), <<16#CF06CEF0B74D268D6D58E81B4FAC6D31:128>>},
            {Bytes(12), <<16#CB7658BB1CC7945C717A69022283BED1:128>>},
            {Bytes(16), <<16#F3310E4D99B25D101F6869E62480AA94:128>>},
            {Bytes(17), <<16#D7BBE65479C022E2A30A4C336D0E5909:128>>},
            {Bytes(64), <<16#4033F9F5F2D204303B2C439BB6EC7C89:128>>},
            {Bytes(100), <<16#47819FC81E76D1555040C4AE139A0A2A:128>>},
            {Bytes(128), <<16#A3768078C934E88C4FB66D02733AC913:128>>},
            {Bytes(129), <<16#D80208B2FEF9327CF042B4499725858D:128>>},
            {Bytes(200), <<16#FF8A099C5D873DE8FF59F16B52DA5068:128>>},
            {Bytes(240), <<16#B43F882E1DC70AC2764A0C65F51DC53A:128>>},
            {Bytes(241), <<16#F72763EAC454B44E8D5C049E1495B464:128>>},
            {Bytes(1024), <<16#2BEA920826A8296522663C414B8B8679:128>>},
            {Bytes(1025), <<16#A2BEDFEBD60D5E00EB491FFCABAE6ECA:128>>},
            {Bytes(2923), <<16#CCFD61C19D8949D9D36EA0B9D1BF55DB:128>>}
        ]
    ].

%% Two trees a file, of integers and of a view, in every compression.
trees(_Config) ->
    Files = [
        with(Name, fun(Reader) ->
            {ok, _, {vectors_header, 1, Ints, View}} = couch_reader:header(Reader),
            [tree(Reader, Tree, Root) || {Tree, Root} <- lists:zip(Trees, [Ints, View])]
        end)
     || #{<<"file">> := Name, <<"trees">> := Trees} <- manifest("trees.manifest.json.gz")
    ],
    ?assertEqual(7, length(Files)).

%% The newest header that is whole, whatever is behind it.
headers(_Config) ->
    [header(File) || File <- manifest("headers.manifest.json")].

header(#{<<"file">> := Name, <<"chunks">> := Chunks}) ->
    with(Name, fun(Reader) -> [?assertEqual({Ptr, content(Binary)}, {Ptr, content(Reader, Ptr)}) || #{<<"ptr">> := Ptr, <<"binary">> := Binary} <- Chunks] end);
header(#{<<"file">> := Name, <<"appended">> := Chunks}) ->
    with(Name, fun(Reader) -> [?assertMatch({_, Size}, couch_reader:chunk(Reader, Ptr)) || [Ptr, Size] <- Chunks] end);
header(#{<<"file">> := Name, <<"result">> := Result}) ->
    with(Name, fun(Reader) -> header(Reader, Name, Result) end).

header(Reader, Name, #{<<"no_valid_header">> := true}) ->
    ?assertEqual({Name, no_valid_header}, {Name, couch_reader:header(Reader)});
header(Reader, _, #{<<"class">> := <<"badarg">>}) ->
    ?assertError(badarg, couch_reader:header(Reader));
header(Reader, Name, #{<<"header_term">> := #{<<"etf">> := Etf}} = Result) ->
    {ok, _, Term} = couch_reader:header(Reader),
    ?assertEqual({Name, term(Etf)}, {Name, Term}),
    header_tree(Reader, element(3, Term), maps:get(<<"tree">>, Result, none)).

with(Name, Fun) ->
    {ok, Reader} = couch_reader:open(testdata(Name)),
    try
        Fun(Reader)
    after
        couch_reader:close(Reader)
    end.

content(#{<<"class">> := <<"file_corruption">>}) -> wrong_checksum;
content(#{<<"len">> := Size, <<"sha256">> := Hash}) -> {Size, Hash}.

content(Reader, Ptr) ->
    try couch_reader:chunk(Reader, Ptr) of
        {Bytes, _} -> {byte_size(Bytes), hex(crypto:hash(sha256, Bytes))}
    catch
        throw:wrong_checksum -> wrong_checksum
    end.

header_tree(_, _, none) ->
    ok;
header_tree(Reader, Root, #{<<"class">> := Class}) ->
    Reason = try couch_reader:walk(Reader, Root, #{}) of _ -> none catch throw:R -> R end,
    case Class of
        <<"read_beyond_eof">> -> {read_beyond_eof, _, _, _} = Reason;
        <<"file_corruption">> -> wrong_checksum = Reason;
        <<"invalid_compression">> -> invalid_compression = Reason
    end;
header_tree(Reader, Root, #{<<"rows">> := Rows, <<"rows_sha256">> := Hash}) ->
    #{rows := Rows, sha256 := Sum} = couch_reader:walk(Reader, Root, #{reduction => count}),
    ?assertEqual(Hash, hex(Sum)).

%% Files of CouchDB itself: all trees that their headers lead to.
databases_and_views(_Config) ->
    Files = [
        with(Name, fun(Reader) ->
            {ok, _, Header} = couch_reader:header(Reader),
            [tree(Reader, Tree, Root) || {Tree, Root} <- lists:zip(Trees, roots(Header))]
        end)
     || #{<<"file">> := Name, <<"trees">> := Trees} <- manifest("couch.manifest.json.gz")
    ],
    ?assertEqual(14, length(Files)).

roots(Header) when element(1, Header) =:= db_header -> [element(I, Header) || I <- lists:seq(5, 9)];
roots({_, nil}) -> [nil, nil, nil, nil];
roots({_, {mrheader, _, _, Ids, _, Views}}) -> [Ids | [element(1, View) || View <- Views]].

tree(Reader, #{<<"name">> := Name, <<"less">> := Less, <<"root">> := #{<<"etf">> := Root}, <<"stats">> := Stats} = Tree, Found) ->
    ?assertEqual(term(Root), Found),
    Options = #{order => order(Less), reduction => reduction(Name, Tree)},
    Summary = couch_reader:walk(Reader, Found, Options),
    #{<<"rows">> := Rows, <<"rows_sha256">> := Hash} = Tree,
    #{<<"depth">> := Depth, <<"kp_nodes">> := Kp, <<"kv_nodes">> := Kv} = Stats,
    Size = case Found of nil -> 0; _ -> element(3, Found) end,
    ?assertEqual(
        #{rows => Rows, depth => Depth, kp => counts(Kp), kv => counts(Kv), bytes => Size, sha256 => Hash},
        (maps:without([reduction], Summary))#{sha256 := hex(maps:get(sha256, Summary))}
    ),
    ?assertEqual(Rows, length(couch_reader:rows(Reader, Found))).

counts(#{<<"count">> := Count, <<"min">> := Min, <<"max">> := Max}) -> {Count, Min, Max}.

order(<<"raw">>) -> term;
order(<<"json_ids">>) -> view.

reduction(<<"ints">>, _) -> count_sum;
reduction(<<"view">>, _) -> view;
reduction(<<"seq_tree">>, _) -> count;
reduction(<<"purge_tree">>, _) -> count;
reduction(<<"purge_seq_tree">>, _) -> count;
reduction(<<"local_tree">>, _) -> none;
reduction(<<"id_tree">>, #{<<"root">> := #{<<"etf">> := Root}}) ->
    case term(Root) of
        {_, {_, _, {size_info, _, _}}, _} -> documents;
        {_, [], _} -> none;
        nil -> none
    end;
reduction(_, #{<<"reduce_funs">> := []}) -> view;
reduction(_, _) -> unknown.

%% Every byte of a small file's nodes with one bit changed: the reader does not say the same of it.
damage(_Config) ->
    {ok, Whole} = file:read_file(testdata("tree_none_10.cf")),
    Expected = read(Whole),
    {_, #{rows := 10}, #{rows := 10}} = Expected,
    <<_:478/binary, Nodes:(83 + 308)/binary, _/binary>> = Whole,
    [
        begin
            <<Before:At/binary, Byte, After/binary>> = Whole,
            Damaged = read(<<Before/binary, (Byte bxor (1 bsl (At rem 8))), After/binary>>),
            ?assertNotEqual({At, Expected}, {At, Damaged})
        end
     || At <- lists:seq(478, 478 + byte_size(Nodes) - 1)
    ].

read(Bytes) ->
    Name = "damaged.cf",
    ok = file:write_file(Name, Bytes),
    {ok, Reader} = couch_reader:open(Name),
    try
        {ok, _, {vectors_header, 1, Ints, View} = Header} = couch_reader:header(Reader),
        {Header, couch_reader:walk(Reader, Ints, #{reduction => count_sum}), couch_reader:walk(Reader, View, #{order => view, reduction => view})}
    catch
        _:Reason -> Reason
    after
        couch_reader:close(Reader)
    end.

%% A store of the engine couch, closed: its file has the rows that were put, whichever way they were committed.
stores(Config) ->
    _ = test_program:executable(),
    {ok, _} = application:ensure_all_started(scanode),
    [store(test_program:directory(Config, "store-" ++ atom_to_list(Commit)), Commit) || Commit <- [header, log]],
    ok = application:stop(scanode).

store(Dir, Commit) ->
    {ok, Db} = scanode:open(Dir, #{engine => couch, commit => Commit}),
    Row = fun(I) -> {<<(erlang:phash2(I, 100000)):32>>, binary:copy(<<I:16>>, I rem 700)} end,
    Rows = maps:from_list([Row(I) || I <- lists:seq(1, 3000)]),
    [ok = scanode:put(Db, K, V) || {K, V} <- maps:to_list(Rows)],
    Gone = [K || {I, K} <- lists:zip(lists:seq(1, maps:size(Rows)), maps:keys(Rows)), I rem 5 =:= 0],
    [ok = scanode:delete(Db, K) || K <- Gone],
    ok = scanode:close(Db),
    {ok, Reader} = couch_reader:open(filename:join(Dir, "store.couch")),
    {ok, _, Header} = couch_reader:header(Reader),
    scanode_store = element(1, Header),
    Root = element(6, Header),
    Expected = lists:sort(maps:to_list(maps:without(Gone, Rows))),
    ?assertEqual(Expected, couch_reader:rows(Reader, Root)),
    #{rows := Count} = couch_reader:walk(Reader, Root, #{keys => between, reduction => count}),
    ?assertEqual(length(Expected), Count),
    couch_reader:close(Reader).

testdata(Name) ->
    filename:join([test_program:root(), "storage", "couch", "testdata", Name]).

term(Hex) -> binary_to_term(binary:decode_hex(Hex)).

hex(Bytes) -> string:lowercase(binary:encode_hex(Bytes)).

%% The value in a manifest. This reads the JSON that the manifests are, not all there is: the BEAM has a decoder of its own only since release 27.
manifest(Name) ->
    {ok, Bytes} = file:read_file(testdata(Name)),
    Text = case filename:extension(Name) of ".gz" -> zlib:gunzip(Bytes); _ -> Bytes end,
    {Value, _} = value(Text),
    Value.

value(<<C, Rest/binary>>) when C =:= $\s; C =:= $\n -> value(Rest);
value(<<"true", Rest/binary>>) -> {true, Rest};
value(<<"false", Rest/binary>>) -> {false, Rest};
value(<<"null", Rest/binary>>) -> {null, Rest};
value(<<$", Rest/binary>>) -> string(Rest, <<>>);
value(<<$[, Rest/binary>>) -> list(space(Rest), []);
value(<<${, Rest/binary>>) -> object(space(Rest), #{});
value(Text) ->
    {match, [{0, Size}]} = re:run(Text, "^[-+.eE0-9]+", [{capture, first}]),
    <<Number:Size/binary, Rest/binary>> = Text,
    {try binary_to_integer(Number) catch error:badarg -> binary_to_float(Number) end, Rest}.

string(<<$", Rest/binary>>, Text) -> {Text, Rest};
string(<<$\\, $u, Hex:4/binary, Rest/binary>>, Text) -> string(Rest, <<Text/binary, (binary_to_integer(Hex, 16))/utf8>>);
string(<<$\\, C, Rest/binary>>, Text) -> string(Rest, <<Text/binary, (escaped(C))>>);
string(<<C, Rest/binary>>, Text) -> string(Rest, <<Text/binary, C>>).

escaped($n) -> $\n;
escaped($t) -> $\t;
escaped($r) -> $\r;
escaped(C) -> C.

list(<<$], Rest/binary>>, List) -> {lists:reverse(List), Rest};
list(Text, List) ->
    {Value, Rest} = value(Text),
    list(comma(Rest), [Value | List]).

object(<<$}, Rest/binary>>, Object) -> {Object, Rest};
object(Text, Object) ->
    {Name, Rest} = value(Text),
    <<$:, Rest1/binary>> = space(Rest),
    {Value, Rest2} = value(Rest1),
    object(comma(Rest2), Object#{Name => Value}).

comma(Text) ->
    case space(Text) of
        <<$,, Rest/binary>> -> space(Rest);
        Rest -> Rest
    end.

space(<<C, Rest/binary>>) when C =:= $\s; C =:= $\n -> space(Rest);
space(Text) -> Text.
