package server

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"scanode/etf"
	"scanode/etf/etftext"
)

func TestCalls(t *testing.T) {
	b := attach(t, newServerIn(t, DefaultLimits))
	me := pid(1)
	id := b.open(me, storeDir(t))
	b.expect(me, writeReq(id, put("a", "1"), put("b", ""), put("a", "2")), "ok")
	b.expect(me, writeReq(id), "ok")
	b.expect(me, get(id, "a"), `{ok,<<"2">>}`)
	b.expect(me, get(id, "b"), `{ok,<<>>}`)
	b.expect(me, get(id, "c"), "not_found")
	b.expect(me, writeReq(id, etf.Tuple{etf.Atom("delete"), []byte("a")}, etf.Tuple{etf.Atom("delete"), []byte("none")}), "ok")
	b.expect(me, get(id, "a"), "not_found")
	b.expect(me, etf.Tuple{etf.Atom("write"), id, etf.List{put("s", "synced")}, etf.Map{opt("sync", etf.Atom("true"))}}, "ok")
	b.expect(me, get(id, "s"), `{ok,<<"synced">>}`)
	b.expect(me, etf.Atom("info"), "{ok,#{…")
	b.expect(me, etf.Tuple{etf.Atom("info"), id}, "{ok,#{…")
	b.expect(me, etf.Tuple{etf.Atom("close"), id}, "ok")
	b.expect(me, etf.Tuple{etf.Atom("close"), id}, "{error,closed}")
	b.expect(me, get(id, "s"), "{error,closed}")
	b.expect(me, writeReq(id, put("a", "1")), "{error,closed}")
	b.expect(me, etf.Tuple{etf.Atom("info"), id}, "{error,closed}")
}

// TestReplyAddresses: a reply goes to the process, or to the alias in the tag,
// and carries the tag as it came.
func TestReplyAddresses(t *testing.T) {
	b := attach(t, newServerIn(t, DefaultLimits))
	ref := newRef()
	alias := etf.Improper{Elems: etf.List{etf.Atom("alias")}, Tail: ref}
	for _, c := range []struct {
		tag, to etf.Term
	}{
		{ref, pid(1)},
		{alias, ref},
		{etf.List{alias, int64(1)}, ref},
		{etf.Improper{Elems: etf.List{alias}, Tail: int64(1)}, ref},
		{etf.List{etf.Atom("alias"), ref}, pid(1)},
		{etf.Tuple{etf.Atom("any"), []byte("term")}, pid(1)},
	} {
		b.send(etf.Tuple{etf.Atom("$gen_call"), etf.Tuple{pid(1), c.tag}, etf.Atom("info")})
		reply := b.receive(c.to).(etf.Tuple)
		if got, want := etftext.Format(reply[0]), etftext.Format(c.tag); got != want {
			t.Errorf("tag came back as %s, want %s", got, want)
		}
	}
}

func TestBadRequests(t *testing.T) {
	s := newServerIn(t, DefaultLimits)
	b := attach(t, s)
	me := pid(1)
	dir := storeDir(t)
	id := b.open(me, dir)
	open := func(dir etf.Term, opts etf.Term) etf.Term { return etf.Tuple{etf.Atom("open"), dir, opts} }
	for _, c := range []struct {
		req  etf.Term
		want string
	}{
		{etf.Atom("nonsense"), `{error,{bad_request,<<"unknown request nonsense">>}}`},
		{int64(7), `{error,{bad_request,<<"unknown request 7">>}}`},
		{etf.Tuple{}, `{error,{bad_request,<<"unknown request {}">>}}`},
		{etf.Tuple{etf.Atom("get"), id}, `{error,{bad_request,<<"unknown request {get,…`},
		{etf.Tuple{etf.Atom("get"), []byte("x"), []byte("k")}, `{error,{bad_request,<<"a store's id must be an integer, got…`},
		{etf.Tuple{etf.Atom("get"), id, etf.Atom("k")}, `{error,{bad_request,<<"a key must be a binary, got k">>}}`},
		{writeReq(id, etf.Tuple{etf.Atom("put"), []byte("k")}), `{error,{rejected,{bad_request,<<"operation 1 of 1 must be…`},
		{writeReq(id, put("k", "v"), etf.Atom("clear")), `{error,{rejected,{bad_request,<<"operation 2 of 2 must be…`},
		{etf.Tuple{etf.Atom("write"), id, etf.Improper{Elems: etf.List{put("k", "v")}, Tail: int64(1)}, etf.Map{}}, `{error,{rejected,{bad_request,…`},
		{etf.Tuple{etf.Atom("write"), id, etf.Atom("x"), etf.Map{}}, `{error,{rejected,{bad_request,<<"the operations must be a list, got x">>}}}`},
		{etf.Tuple{etf.Atom("write"), id, etf.List{put("k", "v")}, etf.List{}}, `{error,{rejected,{bad_request,<<"options must be a map, got []">>}}}`},
		{etf.Tuple{etf.Atom("write"), id, etf.List{put("k", "v")}, etf.Map{opt("sink", etf.Atom("true"))}}, `{error,{rejected,{bad_option,<<"unknown: sink">>}}}`},
		{etf.Tuple{etf.Atom("write"), id, etf.List{put("k", "v")}, etf.Map{opt("sync", int64(1))}}, `{error,{rejected,{bad_option,<<"sync must be true or false, got 1">>}}}`},
		{open(etf.Atom("x"), etf.Map{}), `{error,{bad_request,<<"a directory must be a binary or a string, got x">>}}`},
		{open([]byte("relative"), etf.Map{}), `{error,{bad_path,<<"relative: the path must be absolute">>}}`},
		{open([]byte{}, etf.Map{}), `{error,{bad_request,…`},
		{open([]byte("/tmp/a\x00b"), etf.Map{}), `{error,{bad_request,…`},
		{open([]byte(dir), etf.Map{opt("engine", etf.Atom("none"))}), `{error,{bad_option,<<"engine must be one of lsm, got none">>}}`},
		{open([]byte(dir+"2"), etf.Map{opt("no_such_option", int64(1))}), `{error,{bad_option,…`},
		{open([]byte(dir), etf.Map{}), `{error,{locked,…`},
		{open([]byte(dir+"3"), etf.Map{opt("create_if_missing", etf.Atom("false"))}), `{error,{missing,…`},
	} {
		b.expect(me, c.req, c.want)
	}
	b.expect(me, get(id, "k"), "not_found") // no part of a rejected batch

	// Messages that cannot be answered are dropped; the link goes on.
	for _, msg := range []etf.Term{
		etf.Atom("hello"), int64(1), etf.Tuple{}, etf.Tuple{int64(1)}, etf.Tuple{etf.Atom("$gen_call"), etf.Atom("x"), etf.Atom("info")},
		etf.Tuple{etf.Atom("scan"), etf.Atom("x"), id, etf.Map{}}, etf.Tuple{etf.Atom("scan_ack"), etf.Atom("x"), int64(1)},
		etf.Tuple{etf.Atom("scan_ack"), newRef(), int64(1)}, etf.Tuple{etf.Atom("scan_stop"), int64(1)}, etf.Tuple{etf.Atom("scan_stop"), newRef()},
		etf.Tuple{etf.Atom("$gen_cast"), etf.Atom("x")},
	} {
		b.send(msg)
	}
	b.expect(me, get(id, "k"), "not_found")
}

func TestOpenErrors(t *testing.T) {
	b := attach(t, newServerIn(t, DefaultLimits))
	base := t.TempDir()
	file := filepath.Join(base, "file")
	foreign := filepath.Join(base, "foreign")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(foreign, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(foreign, "CURRENT"), []byte("MANIFEST-000001\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	open := func(dir string, opts ...etf.Pair) etf.Term {
		return etf.Tuple{etf.Atom("open"), []byte(dir), etf.Map(opts)}
	}
	b.expect(pid(1), open(foreign), `{error,{foreign,…`)
	got := etftext.Format(b.ask(pid(1), open(file)))
	if !strings.HasPrefix(got, "{error,{foreign,") && !strings.HasPrefix(got, "{error,{io,") {
		t.Errorf("opening a file: %s", got)
	}
	dir := filepath.Join(base, "db")
	id := b.open(pid(1), dir)
	b.expect(pid(1), etf.Tuple{etf.Atom("close"), id}, "ok")
	b.expect(pid(1), open(dir, opt("error_if_exists", etf.Atom("true"))), `{error,{exists,…`)
	if left, _ := os.ReadDir(foreign); len(left) != 1 {
		t.Errorf("a foreign directory was written to: %v", left)
	}
	// A string is a directory's name, too.
	var name etf.List
	for _, r := range dir {
		name = append(name, int64(r))
	}
	b.expect(pid(1), etf.Tuple{etf.Atom("open"), name, etf.Map{}}, "{ok,…")
}

// TestOwnership: what becomes of a store when its opener or its BEAM dies.
func TestOwnership(t *testing.T) {
	s := newServerIn(t, DefaultLimits)
	dir := storeDir(t)
	one, two := attach(t, s), attach(t, s)
	id := one.open(pid(1), dir)
	one.expect(pid(1), writeReq(id, put("k", "v")), "ok")
	open := etf.Tuple{etf.Atom("open"), []byte(dir), etf.Map{}}
	two.expect(pid(1), open, `{error,{locked,…`)
	two.expect(pid(9), get(id, "k"), `{ok,<<"v">>}`) // any process of any peer may use it

	one.kill(pid(1))
	two.expect(pid(9), get(id, "k"), `{ok,<<"v">>}`) // the opener's death alone takes nothing away
	id2 := two.open(pid(2), dir)                     // an open does
	one.expect(pid(1), get(id, "k"), "{error,closed}")
	two.expect(pid(2), get(id2, "k"), `{ok,<<"v">>}`)

	two.die()
	one.expect(pid(1), get(id2, "k"), "{error,closed}")
	id3 := one.open(pid(3), dir, opt("orphan_ms", int64(0)))
	one.kill(pid(3))
	for len(etftext.Format(one.ask(pid(1), get(id3, "k")))) > 0 { // ends once nobody has used it for 0 ms
		if etftext.Format(one.ask(pid(1), etf.Tuple{etf.Atom("info"), id3})) == "{error,closed}" {
			break
		}
	}
}

func TestWritesKeepTheirOrder(t *testing.T) {
	b := attach(t, newServerIn(t, DefaultLimits))
	id := b.open(pid(1), storeDir(t))
	const n = 2000
	var refs []etf.Ref
	for i := range n {
		ref := newRef()
		refs = append(refs, ref)
		sync := etf.Atom(fmt.Sprint(i%7 == 0))
		b.send(etf.Tuple{etf.Atom("$gen_call"), etf.Tuple{pid(1), etf.Improper{Elems: etf.List{etf.Atom("alias")}, Tail: ref}},
			etf.Tuple{etf.Atom("write"), id, etf.List{put("k", fmt.Sprint(i))}, etf.Map{opt("sync", sync)}}})
	}
	for i, ref := range refs {
		if reply := b.receive(ref).(etf.Tuple)[1]; reply != ok {
			t.Fatalf("write %d: %s", i, etftext.Format(reply))
		}
	}
	b.expect(pid(1), get(id, "k"), fmt.Sprintf(`{ok,<<"%d">>}`, n-1))
}

// TestReasons compares the table of reasons with the Erlang type and with the
// protocol's description.
func TestReasons(t *testing.T) {
	erl, err := os.ReadFile("../src/scanode.erl")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	_, typ, found := strings.Cut(string(erl), "-type reason() ::")
	if !found {
		t.Fatal("src/scanode.erl has no -type reason()")
	}
	typ, _, _ = strings.Cut(typ, ".\n")
	var inErl, inDoc, inGo []string
	for _, alt := range strings.Split(typ, "|") {
		alt, _, _ = strings.Cut(strings.Trim(strings.TrimSpace(alt), "{"), ",")
		inErl = append(inErl, strings.TrimSpace(strings.TrimRight(alt, "} \n")))
	}
	_, section, _ := strings.Cut(string(doc), "## 4. Reasons")
	section, _, _ = strings.Cut(section, "The Erlang application adds")
	for _, line := range strings.Split(section, "\n") {
		if name, isRow := strings.CutPrefix(line, "| `"); isRow {
			name, _, _ = strings.Cut(strings.TrimPrefix(name, "{"), "`")
			name, _, _ = strings.Cut(name, ",")
			inDoc = append(inDoc, name)
		}
	}
	for _, tags := range [][]tag{bareTags, textTags} {
		for _, tag := range tags {
			inGo = append(inGo, string(tag))
		}
	}
	ofTheClient := []string{"timeout", "down", "no_executable", "bad_executable"}
	for _, list := range [][]string{inErl, inDoc, inGo} {
		slices.Sort(list)
	}
	if !slices.Equal(inDoc, inGo) {
		t.Errorf("docs/protocol.md has %v, the program %v", inDoc, inGo)
	}
	want := append(slices.Clone(inGo), ofTheClient...)
	slices.Sort(want)
	if !slices.Equal(inErl, want) {
		t.Errorf("src/scanode.erl has %v, want %v", inErl, want)
	}
}

// TestTagsComeBack: what a BEAM would refuse to hear is not taken as a tag, for it
// would come back. The fake BEAM checks what is sent.
func TestTagsComeBack(t *testing.T) {
	b := attach(t, newServerIn(t, DefaultLimits))
	id := b.open(pid(1), storeDir(t))
	badAtom := []byte{etf.TagSmallAtomUTF8, 1, 0x88}
	badRef := append(append([]byte{etf.TagNewerReference, 0, 1}, badAtom...), 0, 0, 0, 1, 0, 0, 0, 1)
	for _, tag := range [][]byte{badAtom, badRef, append(append([]byte{104, 1}, badAtom...), 0)[:5]} {
		from := append(etf.AppendPid(etf.AppendTupleHeader(nil, 2), pid(1)), tag...)
		for _, msg := range [][]byte{
			append(append(encoded(3, "$gen_call"), from...), encoded("info")...),
			etf.AppendMapHeader(etf.AppendInt64(append(encoded(4, "scan"), from...), id), 0),
		} {
			if err := b.link.Message(msg); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.expect(pid(1), get(id, "k"), "not_found")
	b.mu.Lock()
	defer b.mu.Unlock()
	if left := b.inbox[etftext.Format(pid(1))]; len(left) > 0 {
		t.Errorf("answers to them: %v", left)
	}
}

// TestDeepRequests: a request that is nested too deep is answered; a message that
// is no term is an error for the transport.
func TestDeepRequests(t *testing.T) {
	b := attach(t, newServerIn(t, DefaultLimits))
	id := b.open(pid(1), storeDir(t))
	deep := func(levels int) etf.Term {
		var v etf.Term = int64(1)
		for range levels {
			v = etf.Tuple{v}
		}
		return v
	}
	for _, levels := range []int{etf.MaxDepth, 10 * etf.MaxDepth, 100_000} {
		raw := etf.AppendAtom(etf.AppendTupleHeader(nil, 3), "$gen_call")
		ref := newRef()
		raw = etf.AppendRef(etf.AppendPid(etf.AppendTupleHeader(raw, 2), pid(1)), ref)
		raw = append(raw, bytes.Repeat([]byte{104, 1}, levels)...)
		if err := b.link.Message(etf.AppendInt64(raw, 1)); err != nil {
			t.Fatal(err)
		}
		if got := etftext.Format(b.receive(pid(1)).(etf.Tuple)[1]); !strings.HasPrefix(got, "{error,{bad_request,") {
			t.Errorf("%d levels: %s", levels, got)
		}
	}
	rows, end := b.collect(b.startScan(pid(1), id, opt("filter", deep(etf.MaxDepth-10))))
	if len(rows) > 0 || end[0] != etf.Atom("scan_error") {
		t.Errorf("a deep filter: %s", etftext.Format(end))
	}
	for _, raw := range [][]byte{nil, {104}, {104, 2, 97, 1}, {97, 1, 97, 2}, {108, 255, 255, 255, 255}} {
		if err := b.link.Message(raw); err == nil {
			t.Errorf("%x was taken for a term", raw)
		}
	}
	b.expect(pid(1), get(id, "k"), "not_found")
}
