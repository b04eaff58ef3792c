package server

import (
	"fmt"
	"slices"
	"testing"

	"scanode/etf"
	"scanode/etf/etftext"
)

// fill opens a store with the keys k000 … under values of size bytes.
func (b *bean) fill(n, size int) int64 {
	b.t.Helper()
	id := b.open(pid(1), storeDir(b.t))
	var ops []etf.Term
	for i := range n {
		ops = append(ops, put(fmt.Sprintf("k%03d", i), string(make([]byte, size))))
	}
	b.expect(pid(1), writeReq(id, ops...), "ok")
	return id
}

func keysOnly(opts ...etf.Pair) []etf.Pair { return append(opts, opt("rows", etf.Atom("keys"))) }

func TestScan(t *testing.T) {
	b := attach(t, newServerIn(t, DefaultLimits))
	id := b.fill(10, 3)
	rows, end := b.collect(b.startScan(pid(1), id, keysOnly(opt("start", []byte("k003")), opt("end", []byte("k006")))...))
	if want := []string{`<<"k003">>`, `<<"k004">>`, `<<"k005">>`}; !slices.Equal(rows, want) || end[0] != etf.Atom("scan_end") {
		t.Errorf("got %v %s", rows, etftext.Format(end))
	}
	rows, _ = b.collect(b.startScan(pid(1), id, keysOnly(opt("start", []byte("k003")), opt("start_inclusive", etf.Atom("false")),
		opt("end", []byte("k006")), opt("end_inclusive", etf.Atom("true")), opt("limit", int64(2)), opt("max_batch_bytes", int64(1)))...))
	if want := []string{`<<"k004">>`, `<<"k005">>`}; !slices.Equal(rows, want) {
		t.Errorf("got %v", rows)
	}
}

func TestScanErrors(t *testing.T) {
	b := attach(t, newServerIn(t, DefaultLimits))
	id := b.fill(3, 3)
	filter := etf.Tuple{etf.Atom("="), etf.Tuple{etf.Atom("field"), []byte("x"), etf.Atom("sint64")}, etf.Tuple{etf.Atom("const"), int64(1)}}
	for _, c := range []struct {
		id   int64
		opts []etf.Pair
		want string
	}{
		{id + 1, nil, "closed"},
		{id, []etf.Pair{opt("rows", etf.Atom("cells!"))}, `{bad_option,<<"rows must be one of kv, keys, terms, cells, {select, Names}, got 'cells!'">>}`},
		{id, []etf.Pair{opt("limit", int64(-1))}, `{bad_option,<<"limit must be a number of rows, 0 for no limit, got -1">>}`},
		{id, []etf.Pair{opt("start", etf.Atom("a"))}, `{bad_option,<<"start must be a binary, got a">>}`},
		{id, []etf.Pair{opt("max_batch_bytes", int64(1)<<40)}, `{bad_option,…`},
		{id, []etf.Pair{opt("range_filter", filter)}, `{bad_option,<<"unknown: range_filter">>}`},
		{id, []etf.Pair{opt("filter", etf.Tuple{etf.Atom("~")})}, `{bad_filter,…`},
		{id, []etf.Pair{opt("rows", etf.Tuple{etf.Atom("select"), etf.List{}})}, `{bad_option,…`},
		{id, []etf.Pair{opt("rows", etf.Tuple{etf.Atom("select"), etf.List{etf.Atom("x")}})}, `{bad_option,…`},
		{id, []etf.Pair{opt("ranges", etf.List{})}, `{bad_option,…`},
		{id, []etf.Pair{opt("ranges", etf.List{etf.Tuple{[]byte("a"), int64(1)}})}, `{bad_option,…`},
		{id, []etf.Pair{opt("continue", []byte("made up"))}, `{bad_option,…`},
		{id, []etf.Pair{opt("rows", etf.Atom("cells"))}, `{bad_row,<<"row with key <<\"k000\">>: …`},
		{id, []etf.Pair{opt("filter", filter)}, `{bad_row,<<"row with key <<\"k000\">>: …`},
	} {
		rows, end := b.collect(b.startScan(pid(1), c.id, c.opts...))
		got := etftext.Format(end[2])
		head := c.want
		if n := len(head) - len("…"); head[n:] == "…" {
			head, got = head[:n], got[:min(n, len(got))]
		}
		if end[0] != etf.Atom("scan_error") || len(rows) > 0 || got != head {
			t.Errorf("%v: %v %s, want %s", c.opts, rows, etftext.Format(end), c.want)
		}
	}
}

// TestScanCredit: no batch goes out beyond the window, and too large an
// acknowledgement ends the scan.
func TestScanCredit(t *testing.T) {
	b := attach(t, newServerIn(t, DefaultLimits))
	id := b.fill(20, 1000)
	ref := b.startScan(pid(1), id, opt("max_batch_bytes", int64(1)), opt("max_unacked_bytes", int64(3000)))
	var first []int
	for range 3 {
		first = append(first, len(b.receive(ref).(etf.Tuple)[2].([]byte)))
	}
	b.expect(pid(1), get(id, "none"), "not_found") // small calls get through meanwhile
	b.mu.Lock()
	if n := len(b.inbox[etftext.Format(ref)]); n != 0 {
		t.Errorf("%d batches beyond the window", n)
	}
	b.mu.Unlock()
	for _, n := range first {
		b.send(etf.Tuple{etf.Atom("scan_ack"), ref, int64(n)})
	}
	rows, end := b.collect(ref)
	if len(rows) != 17 || end[0] != etf.Atom("scan_end") {
		t.Errorf("%d rows after the first three, then %s", len(rows), etftext.Format(end))
	}

	for _, ack := range []etf.Term{int64(1 << 40), int64(-1), etf.Atom("all")} {
		ref = b.startScan(pid(1), id, opt("max_batch_bytes", int64(1)), opt("max_unacked_bytes", int64(1)))
		b.receive(ref)
		b.send(etf.Tuple{etf.Atom("scan_ack"), ref, ack})
		if end := b.receive(ref).(etf.Tuple); end[0] != etf.Atom("scan_error") {
			t.Errorf("acknowledging %v: %s", ack, etftext.Format(end))
		}
	}
}

// TestScanEndsWithItsConsumer: whichever way the consumer goes, the scan ends and
// its iterator with it.
func TestScanEndsWithItsConsumer(t *testing.T) {
	s := newServerIn(t, DefaultLimits)
	b := attach(t, s)
	id := b.fill(50, 1000)
	stuck := func(b *bean) etf.Ref {
		ref := b.startScan(pid(5), id, opt("max_batch_bytes", int64(1)), opt("max_unacked_bytes", int64(1)))
		b.receive(ref)
		return ref
	}
	ref := stuck(b)
	b.send(etf.Tuple{etf.Atom("scan_stop"), ref})
	b.expectNoStreams(id)

	stuck(b)
	b.killWatched(pid(5))
	b.expectNoStreams(id)

	other := attach(t, s)
	stuck(other)
	other.die()
	b.expectNoStreams(id)

	ref = stuck(b)
	b.expect(pid(1), etf.Tuple{etf.Atom("close"), id}, "ok")
	if end := b.receive(ref).(etf.Tuple); etftext.Format(end[2]) != "closed" {
		t.Errorf("after close the scan ends with %s", etftext.Format(end))
	}
}

// TestScanMoves: a new consumer gets what was not sent yet, in order, and from then on
// it is the one whose death ends the scan.
func TestScanMoves(t *testing.T) {
	b := attach(t, newServerIn(t, DefaultLimits))
	id := b.fill(20, 1000)
	ref := b.startScan(pid(5), id, opt("max_batch_bytes", int64(1)), opt("max_unacked_bytes", int64(1)))
	var rows []string
	take := func(from etf.Term) {
		t.Helper()
		msg := b.receive(from).(etf.Tuple)
		if msg[0] != etf.Atom("scan_batch") || etftext.Format(msg[1]) != etftext.Format(ref) {
			t.Fatalf("got %.100s", etftext.Format(msg))
		}
		rows = append(rows, batchRows(t, msg[2].([]byte))...)
		b.send(etf.Tuple{etf.Atom("scan_ack"), ref, int64(len(msg[2].([]byte)))})
	}
	move := func(to etf.Pid) { b.send(etf.Tuple{etf.Atom("scan_to"), ref, to}) }
	moved := func(from etf.Term) {
		t.Helper()
		if got, want := etftext.Format(b.receive(from)), etftext.Format(etf.Tuple{etf.Atom("scan_moved"), ref}); got != want {
			t.Fatalf("got %.100s, want %s", got, want)
		}
	}
	take(ref)
	first := b.receive(ref).(etf.Tuple) // and now it waits
	move(pid(6))
	move(pid(7)) // nobody has heard of the move before
	b.send(etf.Tuple{etf.Atom("scan_ack"), ref, int64(len(first[2].([]byte)))})
	rows = append(rows, batchRows(t, first[2].([]byte))...)
	moved(ref)
	take(pid(7))
	b.kill(pid(5))
	take(pid(7))
	move(pid(8))
	for { // one was perhaps on its way
		msg := b.receive(pid(7)).(etf.Tuple)
		if msg[0] == etf.Atom("scan_moved") {
			break
		}
		rows = append(rows, batchRows(t, msg[2].([]byte))...)
		b.send(etf.Tuple{etf.Atom("scan_ack"), ref, int64(len(msg[2].([]byte)))})
	}
	for range 3 {
		take(pid(8))
	}
	for i, row := range rows {
		if want := fmt.Sprintf(`{<<"k%03d">>,`, i); row[:len(want)] != want {
			t.Fatalf("row %d is %.20s", i, row)
		}
	}
	b.killWatched(pid(8))
	b.expectNoStreams(id)
	move(pid(9)) // it is over
	b.send(etf.Tuple{etf.Atom("scan_to"), ref, etf.Atom("x")})
	b.send(etf.Tuple{etf.Atom("scan_to"), etf.Atom("x"), pid(1)})
	b.expect(pid(1), get(id, "none"), "not_found")
}

// expectNoStreams returns once the store has no streams and iterators.
func (b *bean) expectNoStreams(id int64) {
	b.t.Helper()
	for {
		info := b.ask(pid(1), etf.Tuple{etf.Atom("info"), id}).(etf.Tuple)[1].(etf.Map)
		left := int64(0)
		for _, p := range info {
			if p.Key == etf.Atom("streams") || p.Key == etf.Atom("iterators") {
				left += p.Value.(int64)
			}
		}
		if left == 0 {
			return
		}
	}
}

// killWatched kills a process once it is monitored.
func (b *bean) killWatched(pid etf.Pid) {
	for {
		b.mu.Lock()
		watched := len(b.monitors[pid]) > 0
		b.mu.Unlock()
		if watched {
			b.kill(pid)
			return
		}
		b.ask(pid, etf.Atom("info")) // lets the scan go on
	}
}

func TestStreamCaps(t *testing.T) {
	limits := DefaultLimits
	limits.StreamsPerStore, limits.StreamsPerNode = 2, 3
	b := attach(t, newServerIn(t, limits))
	one, two := b.fill(10, 1000), b.fill(10, 1000)
	stuck := []etf.Pair{opt("max_batch_bytes", int64(1)), opt("max_unacked_bytes", int64(1))}
	first := func(id int64) (etf.Ref, etf.Tuple) {
		ref := b.startScan(pid(1), id, stuck...)
		return ref, b.receive(ref).(etf.Tuple)
	}
	a, _ := first(one)
	first(one)
	if _, msg := first(one); etftext.Format(msg[2]) != "busy" {
		t.Errorf("a third scan on one store: %s", etftext.Format(msg))
	}
	first(two)
	if _, msg := first(two); etftext.Format(msg[2]) != "busy" {
		t.Errorf("a fourth scan on the node: %s", etftext.Format(msg))
	}
	b.send(etf.Tuple{etf.Atom("scan_stop"), a})
	for {
		if _, msg := first(two); msg[0] == etf.Atom("scan_batch") {
			break // the place is free again
		}
	}
	// A running scan's reference cannot be taken by another.
	ref := newRef()
	alias := etf.Improper{Elems: etf.List{etf.Atom("alias")}, Tail: ref}
	start := etf.Tuple{etf.Atom("scan"), etf.Tuple{pid(1), alias}, one, etf.Map(stuck)}
	b.send(start)
	b.receive(ref)
	b.send(start)
	if msg := b.receive(ref).(etf.Tuple); msg[0] != etf.Atom("scan_error") {
		t.Errorf("a second scan under the same reference: %s", etftext.Format(msg))
	}
	b.expect(pid(1), get(one, "none"), "not_found")
	b.mu.Lock()
	if left := b.inbox[etftext.Format(ref)]; len(left) > 0 {
		t.Errorf("after the error: %v", left)
	}
	b.mu.Unlock()
}

// TestBelowPath: a node opens nothing outside its data directory.
func TestPathsBelow(t *testing.T) {
	root, out := t.TempDir(), t.TempDir()
	symlink(t, out, root+"/out")
	symlink(t, root, root+"/self")
	resolve := BelowPath(root)
	for dir, good := range map[string]bool{
		"db": true, "a/b/c": true, "a/../b": true, "./x": true, "self/db": true,
		"": false, "..": false, "../x": false, "a/../../x": false, "/etc": false, "out": false, "out/db": false, "out/../../x": false,
	} {
		if path, err := resolve(dir); (err == nil) != good {
			t.Errorf("%q: %q, %v", dir, path, err)
		}
	}
}
