package server

import (
	"bytes"
	"slices"
	"testing"

	"scanode/etf"
	"scanode/etf/etftext"
)

func bounds(t ...etf.Term) etf.Term { return etf.Tuple(t) }

func trueFalse(a, b bool) etf.Term {
	atom := func(v bool) etf.Term {
		if v {
			return etf.Atom("true")
		}
		return etf.Atom("false")
	}
	return etf.Tuple{atom(a), atom(b)}
}

func quoted(keys ...string) []string {
	var all []string
	for _, k := range keys {
		all = append(all, `<<"`+k+`">>`)
	}
	return all
}

func TestRangesAndOrder(t *testing.T) {
	b := attach(t, newServerIn(t, DefaultLimits))
	id := b.fill(10, 1)
	for _, c := range []struct {
		opts []etf.Pair
		want []string
	}{
		{[]etf.Pair{opt("start", []byte("k003")), opt("end", []byte("k006")), opt("reverse", etf.Atom("true"))}, quoted("k005", "k004", "k003")},
		{[]etf.Pair{opt("reverse", etf.Atom("true")), opt("limit", int64(2))}, quoted("k009", "k008")},
		{[]etf.Pair{opt("ranges", etf.List{
			bounds([]byte("k007"), etf.Atom("undefined")),
			bounds([]byte("k001"), []byte("k003"), trueFalse(false, true)),
			bounds(etf.Atom("undefined"), []byte("k001")),
			bounds([]byte("k005"), []byte("k004")),
		})}, quoted("k007", "k008", "k009", "k002", "k003", "k000")},
		{[]etf.Pair{opt("reverse", etf.Atom("true")), opt("ranges", etf.List{bounds([]byte("k001"), []byte("k003")), bounds([]byte("k007"), []byte("k009"))})},
			quoted("k002", "k001", "k008", "k007")},
	} {
		rows, end := b.collect(b.startScan(pid(1), id, keysOnly(c.opts...)...))
		if !slices.Equal(rows, c.want) || end[0] != etf.Atom("scan_end") {
			t.Errorf("%v: %v %s", c.opts, rows, etftext.Format(end))
		}
	}
}

// TestContinuation walks a scan page by page, over a restart of the server, and
// compares with the whole.
func TestContinuation(t *testing.T) {
	dir := storeDir(t)
	ranges := opt("ranges", etf.List{bounds([]byte("k005"), []byte("k012")), bounds([]byte("k001"), []byte("k004"), trueFalse(false, true)), bounds([]byte("k030"), []byte("k020"))})
	for _, reverse := range []string{"false", "true"} {
		query := keysOnly(ranges, opt("reverse", etf.Atom(reverse)))
		var whole, paged []string
		var resume []byte
		for page := 0; ; page++ {
			s := newServerIn(t, DefaultLimits)
			b := attach(t, s)
			id := b.open(pid(1), dir)
			if page == 0 {
				for _, k := range quoted("k001", "k002", "k003", "k004", "k005", "k006", "k007", "k008", "k009", "k010", "k011", "k012") {
					b.expect(pid(1), writeReq(id, put(k[3:7], "v")), "ok")
				}
				whole, _ = b.collect(b.startScan(pid(1), id, query...))
			}
			opts := append(slices.Clone(query), opt("limit", int64(2)))
			if resume != nil {
				opts = append(opts, opt("continue", resume))
			}
			rows, end := b.collect(b.startScan(pid(1), id, opts...))
			paged = append(paged, rows...)
			resume = continuationOf(end)
			b.die()
			if resume == nil {
				break
			}
		}
		if len(whole) != 10 || !slices.Equal(whole, paged) {
			t.Errorf("reverse %s: whole %v, in pages %v", reverse, whole, paged)
		}
	}
}

func continuationOf(end etf.Tuple) []byte {
	for _, p := range end[2].(etf.Map) {
		if p.Key == etf.Atom("continuation") {
			return bytes.Clone(p.Value.([]byte))
		}
	}
	return nil
}

func TestContinuationOfAnotherQuery(t *testing.T) {
	b := attach(t, newServerIn(t, DefaultLimits))
	id := b.fill(10, 1)
	_, end := b.collect(b.startScan(pid(1), id, keysOnly(opt("limit", int64(2)))...))
	resume := continuationOf(end)
	for _, other := range [][]etf.Pair{
		{opt("start", []byte("k"))}, {opt("reverse", etf.Atom("true"))}, {opt("rows", etf.Atom("kv"))}, {opt("end_inclusive", etf.Atom("true"))},
	} {
		opts := append(slices.Clone(other), opt("continue", resume))
		if other[0].Key != etf.Atom("rows") {
			opts = keysOnly(opts...)
		}
		if _, end := b.collect(b.startScan(pid(1), id, opts...)); end[0] != etf.Atom("scan_error") {
			t.Errorf("%v: %s", other, etftext.Format(end))
		}
	}
	// One that was tampered with names no row outside the range.
	head := len(resume) - len("k001")
	for _, key := range []string{"", "a", "k00", "zzz"} {
		made := append(bytes.Clone(resume[:head]), key...)
		opts := keysOnly(opt("continue", made))
		rows, end := b.collect(b.startScan(pid(1), id, opts...))
		if end[0] == etf.Atom("scan_end") && len(rows) > 10 {
			t.Errorf("behind %q: %v", key, rows)
		}
	}
	_, end = b.collect(b.startScan(pid(1), id, keysOnly(opt("start", []byte("k003")), opt("limit", int64(1)))...))
	outside := append(bytes.Clone(continuationOf(end)[:head]), "k001"...)
	if _, end := b.collect(b.startScan(pid(1), id, keysOnly(opt("start", []byte("k003")), opt("continue", outside))...)); end[0] != etf.Atom("scan_error") {
		t.Errorf("a continuation before the range: %s", etftext.Format(end))
	}
	// Another limit, and other sizes, are the same query.
	rows, _ := b.collect(b.startScan(pid(1), id, keysOnly(opt("limit", int64(1)), opt("max_batch_bytes", int64(1)), opt("continue", resume))...))
	if !slices.Equal(rows, quoted("k002")) {
		t.Errorf("got %v", rows)
	}
}

func TestSnapshot(t *testing.T) {
	s := newServerIn(t, DefaultLimits)
	b := attach(t, s)
	id := b.fill(3, 1)
	snapReq := etf.Tuple{etf.Atom("snapshot"), id}
	snap := b.ask(pid(2), snapReq).(etf.Tuple)[1].(int64)
	b.expect(pid(1), writeReq(id, put("k000", "new"), put("k003", "new"), etf.Tuple{etf.Atom("delete"), []byte("k001")}), "ok")
	b.expect(pid(3), get(snap, "k000"), `{ok,<<0>>}`)
	b.expect(pid(3), get(snap, "k003"), "not_found")
	for _, opts := range [][]etf.Pair{nil, {opt("ranges", etf.List{bounds(etf.Atom("undefined"), []byte("k001")), bounds([]byte("k001"), etf.Atom("undefined"))})}} {
		rows, _ := b.collect(b.startScan(pid(1), snap, keysOnly(opts...)...))
		if !slices.Equal(rows, quoted("k000", "k001", "k002")) {
			t.Errorf("the snapshot has %v", rows)
		}
	}
	b.expect(pid(1), writeReq(snap, put("a", "b")), `{error,{rejected,{bad_request,<<"a snapshot is read-only">>}}}`)
	b.expect(pid(1), etf.Tuple{etf.Atom("snapshot"), snap}, `{error,{bad_request,…`)
	b.expect(pid(1), etf.Tuple{etf.Atom("close"), snap}, "ok")
	b.expect(pid(1), etf.Tuple{etf.Atom("close"), snap}, "{error,closed}")
	b.expect(pid(1), get(snap, "k000"), "{error,closed}")

	snap = b.ask(pid(2), snapReq).(etf.Tuple)[1].(int64)
	b.expect(pid(1), etf.Tuple{etf.Atom("close"), id}, "ok")
	b.expect(pid(1), get(snap, "k000"), "{error,closed}")
}

func TestDeadlineAndCost(t *testing.T) {
	b := attach(t, newServerIn(t, DefaultLimits))
	id := b.fill(10, 1000)
	stuck := []etf.Pair{opt("max_batch_bytes", int64(1)), opt("max_unacked_bytes", int64(1)), opt("deadline", int64(1))}
	ref := b.startScan(pid(1), id, stuck...)
	msg := b.receive(ref).(etf.Tuple)
	for msg[0] == etf.Atom("scan_batch") {
		msg = b.receive(ref).(etf.Tuple)
	}
	if msg[0] != etf.Atom("scan_error") || msg[2] != etf.Atom("deadline") {
		t.Errorf("after the deadline: %s", etftext.Format(msg))
	}
	_, end := b.collect(b.startScan(pid(1), id, opt("cost", etf.Atom("true"))))
	cost := map[etf.Term]int64{}
	for _, p := range end[2].(etf.Map) {
		cost[p.Key] = p.Value.(int64)
	}
	if cost[etf.Atom("rows_read")] != 10 || cost[etf.Atom("bytes")] < 10_000 || len(cost) != 8 {
		t.Errorf("cost: %s", etftext.Format(end))
	}
}
