%% A reader of append-only B+tree files as CouchDB writes them, made from the format's description alone: it shares no code, and no language, with the writer,
%% and is what its files are held against. It reads files whole, checks all that can be checked, and is in no hurry.
%%
%% A file has blocks of 4,096 bytes. The first byte of each is a tag, 0 for data and 1 where a header begins, and belongs to no payload. A chunk is a length word
%% of four bytes, whose first bit says that 16 bytes of checksum follow, and the payload. A node is a compressed term {kv_node, [{Key, Value}]} or
%% {kp_node, [{LastKey, {Ptr, Reduction, Size}}]}.
-module(couch_reader).

-export([main/0]).
-export([open/1, close/1, header/1, chunk/2, term/2, walk/3, rows/2]).

-export_type([reader/0, order/0, reduction/0, summary/0]).

-define(BLOCK, 4096).

-opaque reader() :: #{file := file:fd(), eof := non_neg_integer()}.
%% term: Erlang's order. view: keys are {Json, DocId}; see before/3.
-type order() :: term | view.
%% What the reductions of a tree are: nothing, the number of rows, {Count, Sum}, Sum, the sum of integers, that of a view without functions of its own, that of
%% a database's documents, or unknown, and then they are not looked at.
-type reduction() :: none | count | count_sum | sum | view | documents | unknown.
-type summary() :: #{
    rows := non_neg_integer(),
    sha256 := binary(),
    depth := non_neg_integer(),
    kp := {non_neg_integer(), non_neg_integer(), non_neg_integer()},
    kv := {non_neg_integer(), non_neg_integer(), non_neg_integer()},
    bytes := non_neg_integer(),
    reduction := term()
}.

%% @doc Walks the trees that the lines of the file named by JOBS ask for, a line Name Order Reduction Keys each, and prints a line for each: what it found, or
%% error and why. The header of a file is the root itself. Keys is last, or between where inner nodes may have shorter keys than the last ones below.
-spec main() -> no_return().
main() ->
    {ok, Jobs} = file:read_file(os:getenv("JOBS")),
    lists:foreach(
        fun(Job) ->
            [Name, Order, Reduction, Keys] = binary:split(Job, <<" ">>, [global]),
            Options = #{order => binary_to_atom(Order), reduction => binary_to_atom(Reduction), keys => binary_to_atom(Keys)},
            io:format("~ts~n", [answer(Name, Options)])
        end,
        binary:split(Jobs, <<"\n">>, [global, trim])
    ),
    halt(0).

answer(Name, Options) ->
    {ok, Reader} = open(Name),
    try
        {ok, _, Root} = header(Reader),
        #{rows := Rows, sha256 := Hash, depth := Depth, kp := {C1, Min1, Max1}, kv := {C2, Min2, Max2}, bytes := Bytes} = walk(Reader, Root, Options),
        io_lib:format("ok rows=~b depth=~b kp=~b,~b,~b kv=~b,~b,~b bytes=~b sha256=~s", [
            Rows, Depth, C1, Min1, Max1, C2, Min2, Max2, Bytes, string:lowercase(binary:encode_hex(Hash))
        ])
    catch
        _:Reason -> io_lib:format("error ~0P", [Reason, 12])
    after
        close(Reader)
    end.

%% @doc Opens a file for reading. Close it from the same process.
-spec open(file:name_all()) -> {ok, reader()} | {error, file:posix()}.
open(Name) ->
    case file:open(Name, [read, raw, binary]) of
        {ok, File} ->
            {ok, Eof} = file:position(File, eof),
            {ok, #{file => File, eof => Eof}};
        {error, _} = Error ->
            Error
    end.

-spec close(reader()) -> ok.
close(#{file := File}) ->
    file:close(File).

%% @doc Returns the newest header whose checksum is right: its offset and term. A term that cannot be decoded is badarg; older headers are not for taking then.
-spec header(reader()) -> {ok, non_neg_integer(), term()} | no_valid_header.
header(#{eof := Eof} = Reader) ->
    header(Reader, Eof div ?BLOCK).

header(_, Block) when Block < 0 ->
    no_valid_header;
header(Reader, Block) ->
    try header_bytes(Reader, Block * ?BLOCK) of
        Term -> {ok, Block * ?BLOCK, binary_to_term(Term)}
    catch
        throw:_ -> header(Reader, Block - 1)
    end.

header_bytes(Reader, At) ->
    case bytes(Reader, At, 5) of
        <<1, Size:32>> when Size >= 16 ->
            <<Sum:16/binary, Term/binary>> = payload(Reader, At + 5, Size),
            summed(Sum, Term),
            Term;
        _ ->
            throw(no_header)
    end.

summed(Sum, Bytes) ->
    Sum =:= couch_xxh3:hash(Bytes) orelse Sum =:= erlang:md5(Bytes) orelse throw(wrong_checksum).

%% @doc Returns the term in the chunk at Ptr.
-spec term(reader(), non_neg_integer()) -> term().
term(Reader, Ptr) ->
    {Payload, _} = chunk(Reader, Ptr),
    uncompress(Payload).

%% @doc Returns a tree's rows in order, from its root as the header has it.
-spec rows(reader(), nil | tuple()) -> [{term(), term()}].
rows(_, nil) ->
    [];
rows(Reader, Root) ->
    case term(Reader, element(1, Root)) of
        {kv_node, Rows} -> Rows;
        {kp_node, Children} -> lists:append([rows(Reader, Child) || {_, Child} <- Children])
    end.

%% @doc Reads all of a tree and checks what it finds: that keys ascend in nodes and across them, that those of inner nodes are the last ones of their children
%% (keys => last, the default) or lie between a child's last and its neighbour's first (between), that reductions and sizes are those of what is below, and that
%% pointers lead back. sha256 is over the terms {Key, Value} in order, each as term_to_binary makes it. Throws what is wrong.
-spec walk(reader(), nil | tuple(), #{order => order(), reduction => reduction(), keys => last | between}) -> summary().
walk(Reader, Root, Options0) ->
    Options = maps:merge(#{order => term, reduction => unknown, keys => last}, Options0),
    Empty = #{rows => 0, hash => crypto:hash_init(sha256), depth => 0, kp => {0, 0, 0}, kv => {0, 0, 0}, last => none, bound => none},
    {Reduction, Bytes, All} =
        case Root of
            nil ->
                {nil, 0, Empty};
            _ ->
                {Red, Size, Walked} = node(Reader, Root, maps:get(eof, Reader), 1, Options, Empty),
                same(reduction, element(2, Root), Red, Options),
                {element(2, Root), Size, Walked}
        end,
    Summary = maps:with([rows, depth, kp, kv], All),
    Summary#{bytes => Bytes, reduction => Reduction, sha256 => crypto:hash_final(maps:get(hash, All))}.

%% A node below a place that knows of it no more than Pointer. Returns what its parent has to know: the reduction and the size of all below, and Acc for the
%% nodes to the right.
node(Reader, Pointer, Before, Depth, Options, Acc0) ->
    Ptr = element(1, Pointer),
    is_integer(Ptr) andalso Ptr >= 0 andalso Ptr < Before orelse throw({pointer, Ptr, Before}),
    {Payload, Own} = chunk(Reader, Ptr),
    {Red, Size, Acc} =
        case uncompress(Payload) of
            {kv_node, [_ | _] = Rows} ->
                Acc1 = lists:foldl(fun(Row, A) -> row(Row, Ptr, Options, A) end, Acc0, Rows),
                {reduce(Options, Rows), Own, counted(kv, Rows, Depth, Acc1)};
            {kp_node, [_ | _] = Children} ->
                {Reds, Sizes, Acc1} = lists:foldl(
                    fun(Child, {Reds, Sizes, A}) ->
                        {R, S, A1} = child(Reader, Child, Ptr, Depth, Options, A),
                        {[R | Reds], [S | Sizes], A1}
                    end,
                    {[], [], Acc0},
                    Children
                ),
                {rereduce(Options, lists:reverse(Reds)), Own + lists:sum(Sizes), counted(kp, Children, Depth, Acc1)};
            Other ->
                throw({no_node, Ptr, Other})
        end,
    tuple_size(Pointer) =:= 2 orelse element(3, Pointer) =:= Size orelse throw({size, Ptr, element(3, Pointer), Size}),
    {Red, Size, Acc}.

child(Reader, {Key, Pointer}, Parent, Depth, #{order := Order} = Options, Acc) ->
    {Red, Size, #{last := {Last}} = Acc1} = node(Reader, Pointer, Parent, Depth + 1, Options, Acc),
    same(reduction, element(2, Pointer), Red, Options),
    case maps:get(keys, Options) of
        last -> Key =:= Last orelse throw({last_key, Parent, Key, Last});
        between -> before(Order, Key, Last) =/= true orelse throw({last_key, Parent, Key, Last})
    end,
    {Red, Size, Acc1#{bound := {Key}}}.

row({Key, _} = Row, Ptr, #{order := Order}, #{last := Last, bound := Bound, rows := Rows, hash := Hash} = Acc) ->
    after_key(Order, Last, Key, Ptr),
    after_key(Order, Bound, Key, Ptr),
    Acc#{last := {Key}, rows := Rows + 1, hash := crypto:hash_update(Hash, term_to_binary(Row, [{minor_version, 1}]))};
row(Row, Ptr, _, _) ->
    throw({no_row, Ptr, Row}).

after_key(_, none, _, _) ->
    ok;
after_key(Order, {Key}, Next, Ptr) ->
    before(Order, Key, Next) =/= false orelse throw({order, Ptr, Key, Next}),
    ok.

counted(Kind, List, Depth, #{depth := Deepest} = Acc) ->
    N = length(List),
    Counts =
        case maps:get(Kind, Acc) of
            {0, _, _} -> {1, N, N};
            {Count, Min, Max} -> {Count + 1, min(Min, N), max(Max, N)}
        end,
    Acc#{Kind := Counts, depth := max(Deepest, Depth)}.

same(_, _, _, #{reduction := unknown}) -> ok;
same(_, Same, Same, _) -> ok;
same(What, Stored, Found, _) -> throw({What, Stored, Found}).

reduce(#{reduction := unknown}, _) -> unknown;
reduce(#{reduction := none}, _) -> [];
reduce(#{reduction := count}, Rows) -> length(Rows);
reduce(#{reduction := sum}, Rows) -> lists:sum([V || {_, V} <- Rows]);
reduce(#{reduction := count_sum}, Rows) -> {length(Rows), lists:sum([V || {_, V} <- Rows])};
reduce(#{reduction := view}, Rows) ->
    All = lists:append([values(Row) || Row <- Rows]),
    {length(All), [], erlang:external_size([]) + lists:sum([size_of(K) + size_of(V) || {K, V} <- All])};
reduce(#{reduction := documents}, Rows) ->
    {Active, External} = lists:unzip([Sizes || {_, {_, _, Sizes, _}} <- Rows]),
    Live = length([live || {_, {_, 0, _, _}} <- Rows]),
    {Live, length(Rows) - Live, {size_info, lists:sum(Active), lists:sum(External)}}.

values({{Key, _}, {dups, Values}}) -> [{Key, V} || V <- Values];
values({{Key, _}, Value}) -> [{Key, Value}].

size_of(Term) -> byte_size(term_to_binary(Term, [{minor_version, 1}])).

rereduce(#{reduction := unknown}, _) -> unknown;
rereduce(#{reduction := none}, _) -> [];
rereduce(#{reduction := R}, Reds) when R =:= count; R =:= sum -> lists:sum(Reds);
rereduce(#{reduction := count_sum}, Reds) -> {lists:sum([C || {C, _} <- Reds]), lists:sum([S || {_, S} <- Reds])};
rereduce(#{reduction := view}, Reds) -> {lists:sum([C || {C, _, _} <- Reds]), [], lists:sum([E || {_, _, E} <- Reds])};
rereduce(#{reduction := documents}, Reds) ->
    Sum = fun(Get) -> lists:sum(lists:map(Get, Reds)) end,
    {Sum(fun({L, _, _}) -> L end), Sum(fun({_, D, _}) -> D end),
        {size_info, Sum(fun({_, _, {_, A, _}}) -> A end), Sum(fun({_, _, {_, _, E}}) -> E end)}}.

%% Whether A comes before B: true, false, or unknown. Strings of views have an order here only if they consist of digits and small letters, which collate as
%% bytes; others would need the tables of Unicode.
before(term, A, B) -> A < B;
before(view, {A, IdA}, {B, IdB}) ->
    case json(A, B) of
        same -> IdA < IdB;
        unknown -> unknown;
        Result -> Result =:= less
    end.

json(A, B) ->
    case {kind(A), kind(B)} of
        {Kind, Kind} -> json(Kind, A, B);
        {KindA, KindB} when KindA < KindB -> less;
        _ -> more
    end.

json(3, A, B) -> plain(A, B);
json(4, A, A) -> same;
json(4, A, B) ->
    Simple = fun(C) -> (C >= $a andalso C =< $z) orelse (C >= $0 andalso C =< $9) end,
    case lists:all(Simple, binary_to_list(<<A/binary, B/binary>>)) of
        true -> plain(A, B);
        false -> unknown
    end;
json(5, [], []) -> same;
json(5, [], _) -> less;
json(5, _, []) -> more;
json(5, [A | As], [B | Bs]) -> then(json(A, B), fun() -> json(5, As, Bs) end);
json(6, {As}, {Bs}) -> json(5, [[K, V] || {K, V} <- As], [[K, V] || {K, V} <- Bs]);
json(_, A, A) -> same.

then(same, Next) -> Next();
then(Result, _) -> Result.

plain(A, B) when A < B -> less;
plain(A, B) when A == B -> same;
plain(_, _) -> more.

kind(null) -> 0;
kind(false) -> 1;
kind(true) -> 2;
kind(N) when is_number(N) -> 3;
kind(B) when is_binary(B) -> 4;
kind(L) when is_list(L) -> 5;
kind({L}) when is_list(L) -> 6.

%% @doc Returns the payload of the chunk at Ptr, and how many bytes of the file the chunk takes. Throws wrong_checksum where it has one that is.
-spec chunk(reader(), non_neg_integer()) -> {binary(), pos_integer()}.
chunk(Reader, Ptr) ->
    <<Summed:1, Size:31>> = payload(Reader, Ptr, 4),
    After = past(Ptr, 4),
    case Summed of
        0 ->
            {payload(Reader, After, Size), stored(Ptr, 4 + Size)};
        1 ->
            <<Sum:16/binary, Payload/binary>> = payload(Reader, After, 16 + Size),
            summed(Sum, Payload),
            {Payload, stored(Ptr, 20 + Size)}
    end.

%% Where the byte lies that follows Size bytes of payload from At on.
past(At, 0) ->
    At;
past(At, Size) ->
    Start = skip_tag(At),
    Left = ?BLOCK - Start rem ?BLOCK,
    if
        Size =< Left -> Start + Size;
        true -> past(Start + Left, Size - Left)
    end.

%% The writer puts the tag of the next block behind a payload that ends with its block, and counts it.
stored(Ptr, Size) ->
    skip_tag(past(Ptr, Size)) - Ptr.

skip_tag(At) when At rem ?BLOCK =:= 0 -> At + 1;
skip_tag(At) -> At.

%% Size bytes of payload from At on, without the tags between them.
payload(Reader, At, Size) ->
    Start = skip_tag(At),
    Raw = bytes(Reader, Start, past(At, Size) - Start),
    untag(Raw, ?BLOCK - Start rem ?BLOCK).

untag(Raw, Left) when byte_size(Raw) =< Left ->
    Raw;
untag(Raw, Left) ->
    <<Part:Left/binary, _Tag, Rest/binary>> = Raw,
    <<Part/binary, (untag(Rest, ?BLOCK - 1))/binary>>.

bytes(#{eof := Eof}, At, Size) when At + Size > Eof ->
    throw({read_beyond_eof, At, Size, Eof});
bytes(_, _, 0) ->
    <<>>;
bytes(#{file := File}, At, Size) ->
    {ok, Bytes} = file:pread(File, At, Size),
    Bytes.

%% The term that is stored as a plain or a compressed one.
uncompress(<<131, _/binary>> = Plain) -> binary_to_term(Plain);
uncompress(<<1, Snappy/binary>>) -> binary_to_term(snappy(Snappy));
uncompress(_) -> throw(invalid_compression).

%% A block of Snappy: the size, then literals and copies of what has come out.
snappy(Block) ->
    {Size, Elements} = varint(Block, 0, 0),
    Out = elements(Elements, <<>>),
    byte_size(Out) =:= Size orelse throw(invalid_compression),
    Out.

varint(<<1:1, Low:7, Rest/binary>>, Shift, Sum) when Shift < 28 -> varint(Rest, Shift + 7, Sum + (Low bsl Shift));
varint(<<0:1, Low:7, Rest/binary>>, Shift, Sum) -> {Sum + (Low bsl Shift), Rest};
varint(_, _, _) -> throw(invalid_compression).

elements(<<>>, Out) -> Out;
elements(<<N:6, 0:2, Rest/binary>>, Out) when N < 60 -> literal(N + 1, Rest, Out);
elements(<<N:6, 0:2, Rest/binary>>, Out) ->
    Bits = 8 * (N - 59),
    case Rest of
        <<Size:Bits/little, Rest1/binary>> -> literal(Size + 1, Rest1, Out);
        _ -> throw(invalid_compression)
    end;
elements(<<High:3, N:3, 1:2, Low, Rest/binary>>, Out) -> copy(N + 4, (High bsl 8) + Low, Rest, Out);
elements(<<N:6, 2:2, Offset:16/little, Rest/binary>>, Out) -> copy(N + 1, Offset, Rest, Out);
elements(<<N:6, 3:2, Offset:32/little, Rest/binary>>, Out) -> copy(N + 1, Offset, Rest, Out);
elements(_, _) -> throw(invalid_compression).

literal(Size, Rest, Out) ->
    case Rest of
        <<Literal:Size/binary, Rest1/binary>> -> elements(Rest1, <<Out/binary, Literal/binary>>);
        _ -> throw(invalid_compression)
    end.

%% A copy may reach into what it makes itself: it then repeats the last Offset bytes.
copy(Size, Offset, Rest, Out) when Offset > 0, Offset =< byte_size(Out) ->
    Pattern = binary:part(Out, byte_size(Out) - Offset, min(Offset, Size)),
    Repeated = binary:copy(Pattern, Size div byte_size(Pattern) + 1),
    elements(Rest, <<Out/binary, (binary:part(Repeated, 0, Size))/binary>>);
copy(_, _, _, _) ->
    throw(invalid_compression).
