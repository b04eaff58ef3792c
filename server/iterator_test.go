package server

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"scanode/etf"
	"scanode/etf/etftext"
)

func iteratorReq(id int64, opts ...etf.Pair) etf.Term {
	return etf.Tuple{etf.Atom("iterator"), id, etf.Map(opts)}
}

func readReq(id int64, from etf.Term, opts ...etf.Pair) etf.Term {
	return etf.Tuple{etf.Atom("iterator_read"), id, from, etf.Map(opts)}
}

func at(word, key string) etf.Term { return etf.Tuple{etf.Atom(word), []byte(key)} }

// handle makes a snapshot or an iterator.
func (b *bean) handle(from etf.Pid, req etf.Term) int64 {
	b.t.Helper()
	reply := b.ask(from, req)
	if t, isTuple := reply.(etf.Tuple); isTuple && t[0] == ok {
		return t[1].(int64)
	}
	b.t.Fatalf("%s: %s", etftext.Format(req), etftext.Format(reply))
	return 0
}

// page reads and returns the rows as text, joined, and how the read ended.
func (b *bean) page(from etf.Pid, req etf.Term) string {
	b.t.Helper()
	reply := b.ask(from, req)
	t, isTuple := reply.(etf.Tuple)
	if !isTuple || t[0] != ok || len(t) != 3 {
		return etftext.Format(reply)
	}
	return strings.Join(batchRows(b.t, t[1].([]byte)), " ") + " " + etftext.Format(t[2])
}

func fill(b *bean, id int64, n int) {
	b.t.Helper()
	var ops []etf.Term
	for i := range n {
		ops = append(ops, put(fmt.Sprintf("%03d", i), "v"))
	}
	b.expect(pid(1), writeReq(id, ops...), "ok")
}

func TestIterator(t *testing.T) {
	b := attach(t, newServerIn(t, DefaultLimits))
	me := pid(1)
	id := b.open(me, storeDir(t))
	fill(b, id, 10)
	keys := opt("rows", etf.Atom("keys"))
	it := b.handle(me, iteratorReq(id, keys))
	b.expect(me, writeReq(id, put("0000", "later"), etf.Tuple{etf.Atom("delete"), []byte("001")}), "ok")
	two := opt("max_rows", int64(2))
	for _, c := range []struct {
		req  etf.Term
		want string
	}{
		{readReq(it, etf.Atom("prev")), " done"},
		{readReq(it, etf.Atom("next"), two), `<<"000">> <<"001">> more`},
		{readReq(it, etf.Atom("next"), two), `<<"002">> <<"003">> more`},
		{readReq(it, etf.Atom("prev"), two), `<<"002">> <<"001">> more`},
		{readReq(it, at("from", "0075"), two), `<<"008">> <<"009">> more`},
		{readReq(it, etf.Atom("next"), two), " done"},
		{readReq(it, etf.Atom("next"), two), " done"},
		{readReq(it, etf.Atom("prev"), two), `<<"009">> <<"008">> more`},
		{readReq(it, at("after", "007")), `<<"008">> <<"009">> done`},
		{readReq(it, at("before", "002")), `<<"001">> <<"000">> done`},
		{readReq(it, at("upto", "002"), two), `<<"002">> <<"001">> more`},
		{readReq(it, at("upto", "")), " done"},
		{readReq(it, etf.Atom("first"), opt("max_bytes", int64(0))), `<<"000">> more`},
		{readReq(it, etf.Atom("last"), two), `<<"009">> <<"008">> more`},
		{readReq(it, etf.Atom("middle")), `{error,{bad_request,<<"a read begins at…`},
		{readReq(it, etf.Tuple{etf.Atom("from"), etf.Atom("k")}), `{error,{bad_request,…`},
		{readReq(it, at("beyond", "k")), `{error,{bad_request,…`},
		{readReq(it, etf.Atom("first"), opt("max_rows", int64(0))), `{error,{bad_option,<<"max_rows must be…`},
		{readReq(it, etf.Atom("first"), opt("maxrows", int64(1))), `{error,{bad_option,<<"unknown: maxrows">>}}`},
		{readReq(id, etf.Atom("first")), `{error,{bad_request,<<"` + fmt.Sprint(id) + ` is not an iterator's id">>}}`},
		{get(it, "000"), `{error,{bad_request,<<"` + fmt.Sprint(it) + ` is an iterator's id,…`},
		{writeReq(it, put("a", "b")), `{error,{rejected,{bad_request,…`},
		{iteratorReq(it), `{error,{bad_request,…`},
		{iteratorReq(id, opt("rows", etf.Atom("terms"))), `{error,{bad_option,…`},
		{iteratorReq(id, opt("orphan_ms", int64(-1))), `{error,{bad_option,…`},
	} {
		got := b.page(me, c.req)
		if head, open := strings.CutSuffix(c.want, "…"); got != c.want && !(open && strings.HasPrefix(got, head)) {
			t.Errorf("%s: got %s, want %s", etftext.Format(c.req), got, c.want)
		}
	}
	kv := b.handle(me, iteratorReq(id))
	if got := b.page(me, readReq(kv, etf.Atom("first"), two)); got != `{<<"000">>,<<"v">>} {<<"0000">>,<<"later">>} more` {
		t.Errorf("kv: %s", got)
	}
	// One of a snapshot outlives it.
	snapshot := b.handle(me, etf.Tuple{etf.Atom("snapshot"), id, etf.Map{opt("orphan_ms", etf.Atom("infinity"))}})
	b.expect(me, writeReq(id, put("zzz", "v")), "ok")
	of := b.handle(me, iteratorReq(snapshot, keys))
	b.expect(me, etf.Tuple{etf.Atom("close"), snapshot}, "ok")
	if got := b.page(me, readReq(of, etf.Atom("last"), two)); got != `<<"009">> <<"008">> more` {
		t.Errorf("of a snapshot: %s", got)
	}
	b.expect(me, etf.Tuple{etf.Atom("close"), it}, "ok")
	b.expect(me, etf.Tuple{etf.Atom("close"), it}, "{error,closed}")
	b.expect(me, readReq(it, etf.Atom("first")), "{error,closed}")
	b.expect(me, etf.Tuple{etf.Atom("close"), id}, "ok")
	b.expect(me, readReq(kv, etf.Atom("first")), "{error,closed}")
	b.expect(me, etf.Tuple{etf.Atom("close"), of}, "{error,closed}")
}

// TestIteratorTurns: many walk one iterator at once; each row is read by one of
// them, and each gets its own answer.
func TestIteratorTurns(t *testing.T) {
	b := attach(t, newServerIn(t, DefaultLimits))
	id := b.open(pid(1), storeDir(t))
	fill(b, id, 500)
	it := b.handle(pid(1), iteratorReq(id, opt("rows", etf.Atom("keys"))))
	var mu sync.Mutex
	var all []string
	var wg sync.WaitGroup
	var reqs []etf.Ref
	for range 600 {
		ref := newRef()
		reqs = append(reqs, ref)
		b.send(etf.Tuple{etf.Atom("$gen_call"), etf.Tuple{pid(2), etf.Improper{Elems: etf.List{etf.Atom("alias")}, Tail: ref}},
			readReq(it, etf.Atom("next"), opt("max_rows", int64(1)))})
	}
	for _, ref := range reqs {
		wg.Go(func() {
			reply := b.receive(ref).(etf.Tuple)[1].(etf.Tuple)
			rows := batchRows(t, reply[1].([]byte))
			mu.Lock()
			defer mu.Unlock()
			all = append(all, rows...)
		})
	}
	wg.Wait()
	slices.Sort(all)
	if len(all) != 500 || len(slices.Compact(all)) != 500 {
		t.Errorf("%d rows, %d different ones, want 500", len(all), len(slices.Compact(all)))
	}
}

// TestHandlesEnd: what becomes of snapshots and iterators when their maker dies, and
// what is said of them.
func TestHandlesEnd(t *testing.T) {
	s := newServerIn(t, DefaultLimits)
	b := attach(t, s)
	id := b.open(pid(1), storeDir(t))
	fill(b, id, 3)
	kept := b.handle(pid(2), iteratorReq(id, opt("orphan_ms", etf.Atom("infinity"))))
	short := b.handle(pid(2), iteratorReq(id, opt("orphan_ms", int64(0))))
	snap := b.handle(pid(3), etf.Tuple{etf.Atom("snapshot"), id, etf.Map{opt("orphan_ms", int64(0))}})
	list := func() string { return etftext.Format(b.ask(pid(1), etf.Tuple{etf.Atom("handles"), id})) }
	if got := list(); strings.Count(got, "kind => iterator,") != 2 || strings.Count(got, "kind => snapshot,") != 1 || strings.Contains(got, "orphaned => true") {
		t.Errorf("handles: %s", got)
	}
	b.kill(pid(2))
	b.kill(pid(3))
	until := func(want string, req etf.Term) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); !strings.HasPrefix(b.page(pid(1), req), want); {
			if time.Now().After(deadline) {
				t.Fatalf("%s never answers %s", etftext.Format(req), want)
			}
		}
	}
	until("{error,closed}", readReq(short, etf.Atom("first")))
	until("{error,closed}", get(snap, "000"))
	if got := list(); strings.Count(got, "kind => ") != 1 || !strings.Contains(got, "orphaned => true") || !strings.Contains(got, fmt.Sprint(kept)) {
		t.Errorf("handles: %s", got)
	}
	if got := b.page(pid(9), readReq(kept, etf.Atom("last"), opt("max_rows", int64(1)))); got != `{<<"002">>,<<"v">>} more` {
		t.Error(got)
	}
	for range maxHandles - 1 {
		b.handle(pid(1), iteratorReq(id))
	}
	b.expect(pid(1), iteratorReq(id), "{error,busy}")
	b.handle(pid(1), etf.Tuple{etf.Atom("snapshot"), id})
	b.expect(pid(1), etf.Tuple{etf.Atom("close"), id}, "ok")
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.handles) > 0 {
		t.Errorf("%d handles have outlived their store", len(s.handles))
	}
}

// TestIteratorRests: an idle iterator gives the engine's one back and goes on where it
// was.
func TestIteratorRests(t *testing.T) {
	s := newServerIn(t, DefaultLimits)
	b := attach(t, s)
	id := b.open(pid(1), storeDir(t))
	fill(b, id, 5)
	it := b.handle(pid(1), iteratorReq(id, opt("rows", etf.Atom("keys"))))
	iterators := func() string {
		_, after, _ := strings.Cut(etftext.Format(b.ask(pid(1), etf.Tuple{etf.Atom("info"), id})), "iterators => ")
		n, _, _ := strings.Cut(after, ",")
		return n
	}
	next := readReq(it, etf.Atom("next"), opt("max_rows", int64(2)))
	b.page(pid(1), next)
	s.mu.Lock()
	iterator := s.handles[it].iterator
	s.mu.Unlock()
	iterator.rest() // as if the time had come: too early
	if iterators() != "1" {
		t.Errorf("%s iterators, want 1", iterators())
	}
	iterator.mu.Lock()
	iterator.used = iterator.used.Add(-restAfter)
	iterator.mu.Unlock()
	iterator.rest()
	if iterators() != "0" {
		t.Errorf("%s iterators, want 0", iterators())
	}
	if got := b.page(pid(1), next); got != `<<"002">> <<"003">> more` {
		t.Error(got)
	}
}

// TestCloseUnderIterators: closing a store with reads under way ends them all, with
// rows or with closed.
func TestCloseUnderIterators(t *testing.T) {
	b := attach(t, newServerIn(t, DefaultLimits))
	id := b.open(pid(1), storeDir(t))
	value := string(bytes.Repeat([]byte("v"), 1000))
	for i := range 20 {
		var ops []etf.Term
		for j := range 100 {
			ops = append(ops, put(fmt.Sprintf("%02d%02d", i, j), value))
		}
		b.expect(pid(1), writeReq(id, ops...), "ok")
	}
	var wg sync.WaitGroup
	started := make(chan struct{}, 64)
	for i := range 16 {
		it := b.handle(pid(1), iteratorReq(id))
		wg.Go(func() {
			for n := 0; ; n++ {
				got := b.page(pid(uint32(100+i)), readReq(it, etf.Atom([]string{"first", "last"}[n%2]), opt("max_rows", int64(100000))))
				if n == 0 {
					started <- struct{}{}
				}
				if got == "{error,closed}" {
					return
				}
				if !strings.HasSuffix(got, " more") && !strings.HasSuffix(got, " done") {
					t.Errorf("got %.100s", got)
					return
				}
			}
		})
	}
	for range 16 {
		<-started
	}
	b.expect(pid(1), etf.Tuple{etf.Atom("close"), id}, "ok")
	wg.Wait()
}
