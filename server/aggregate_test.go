package server

import (
	"testing"

	"scanode/etf"
	"scanode/etf/etftext"
)

// TestAggregateRequest sends an aggregate and one that cannot be.
func TestAggregateRequest(t *testing.T) {
	b := attach(t, newServerIn(t, DefaultLimits))
	id := b.open(pid(1), storeDir(t))
	row := "\x35\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x08\x02\x82\xa1g\x01\xa1x\x07" // {g: 1, x: 7}
	b.expect(pid(1), writeReq(id, put("a", row), put("b", row)), "ok")
	compute := opt("compute", etf.List{etf.Tuple{etf.Atom("count"), etf.Atom("all")}, etf.Tuple{etf.Atom("sum"), []byte("x")}})
	groupBy := opt("group_by", etf.List{[]byte("g"), etf.Tuple{etf.Atom("time"), []byte("x"), int64(5)}})
	for _, c := range []struct {
		opts []etf.Pair
		want string
	}{
		{[]etf.Pair{compute}, `[2,14]`},
		{[]etf.Pair{compute, groupBy, opt("order", etf.List{etf.Tuple{int64(4), etf.Atom("desc")}}), opt("limit", int64(1))}, `[1,5,2,14]`},
		{[]etf.Pair{compute, opt("partial", etf.Atom("true"))}, `[2,{2,0,14,0}]`},
		{[]etf.Pair{compute, opt("parallel", int64(64))}, `[2,14]`},
	} {
		rows, end := b.collect(b.startScan(pid(1), id, c.opts...))
		if len(rows) != 1 || rows[0] != c.want || end[0] != etf.Atom("scan_end") {
			t.Errorf("%v: %v %s", c.opts, rows, etftext.Format(end))
		}
	}
	for _, opts := range [][]etf.Pair{
		{opt("compute", etf.List{})}, {opt("compute", etf.Atom("count"))}, {groupBy}, {compute, opt("rows", etf.Atom("keys"))},
		{compute, opt("continue", []byte("x"))}, {compute, opt("max_groups", int64(0))}, {compute, opt("parallel", int64(0))}, {compute, opt("parallel", int64(65))}, {opt("parallel", int64(2))}, {compute, opt("order", etf.List{etf.Tuple{int64(3), etf.Atom("asc")}})},
		{compute, opt("group_by", etf.List{etf.Tuple{etf.Atom("time"), []byte("x"), int64(-1)}})},
	} {
		rows, end := b.collect(b.startScan(pid(1), id, opts...))
		if reason, ok := end[2].(etf.Tuple); !ok || len(rows) > 0 || reason[0] != etf.Atom("bad_option") {
			t.Errorf("%v: %v %s", opts, rows, etftext.Format(end))
		}
	}
}

// TestDeepestFilter: a request holds a filter of as many levels as filters may have, and
// one more is the filter's fault.
func TestDeepestFilter(t *testing.T) {
	b := attach(t, newServerIn(t, DefaultLimits))
	id := b.open(pid(1), storeDir(t))
	field := etf.Tuple{etf.Atom("field"), []byte("x"), etf.Atom("sint64")}
	deep := etf.Tuple{etf.Atom("in"), field, etf.List{etf.Tuple{etf.Atom("const"), int64(1)}}}
	for levels := 1; levels <= 251; levels++ {
		if levels >= 249 {
			_, end := b.collect(b.startScan(pid(1), id, opt("filter", deep)))
			got := end[0]
			if reason, ok := end[2].(etf.Tuple); ok {
				got = reason[0]
			}
			want := etf.Term(etf.Atom("scan_end"))
			if levels > 250 {
				want = etf.Atom("bad_filter")
			}
			if got != want {
				t.Errorf("%d levels: %s", levels, etftext.Format(end))
			}
		}
		deep = etf.Tuple{etf.Atom("not_"), deep}
	}
}
