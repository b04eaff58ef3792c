package server

import (
	"math"
	"time"

	"scanode/etf"
	"scanode/filter"
	"scanode/scan"
	"scanode/storage"
)

// Bounds of a scan's options.
const (
	defaultBatchBytes   = 128 << 10
	maxBatchBytes       = 16 << 20
	defaultUnackedBytes = 1 << 20
	maxUnackedBytes     = 1 << 30
	maxScanBytes        = 1 << 20 // of the options as they arrive
	maxRanges           = 5000    // Riak TS splits a query into so many quanta at most
	maxColumns          = 1000
)

// scanRequest is a scan as it was asked for.
type scanRequest struct {
	scan.Request
	deadline time.Duration // 0: none
	query    queryHash     // of what a continuation must agree on
}

// parseScan reads the options of a scan.
func parseScan(b []byte) (scanRequest, error) {
	o := newOptions(b)
	r := scanRequest{
		Request: scan.Request{
			Limit:           o.int("limit", 0, 0, math.MaxInt64, "a number of rows, 0 for no limit"),
			MaxBatchBytes:   int(o.int("max_batch_bytes", defaultBatchBytes, 0, maxBatchBytes, "a number of bytes up to 16 MiB")),
			Cost:            o.bool("cost", false),
			SlowStart:       o.bool("slow_start", false),
			MaxUnackedBytes: int(o.int("max_unacked_bytes", defaultUnackedBytes, 0, maxUnackedBytes, "a number of bytes up to 1 GiB")),
		},
		deadline: time.Duration(o.millis("deadline", -1)) * time.Millisecond,
	}
	resume := o.bytes("continue")
	r.query = hashQuery(o) // all that is left decides which rows there are
	r.Reverse = o.bool("reverse", false)
	r.Ranges = o.ranges()
	// Options of rows beside compute are left over, and so unknown.
	if r.Aggregate = o.aggregate(); r.Aggregate == nil {
		r.Form = o.form()
	}
	term, filtered := o.take("filter")
	if err := o.done(); err != nil {
		return r, err
	}
	if filtered {
		expr, err := filter.Parse(term)
		if err != nil {
			return r, err
		}
		r.Filter = expr
	}
	if resume != nil && r.Aggregate != nil {
		return r, reasonf(tagBadOption, "continue goes with rows, not with compute: no aggregate returns a continuation")
	}
	if resume != nil {
		after, err := r.query.position(resume, r.Ranges)
		if err != nil {
			return r, err
		}
		r.After = after
	}
	return r, nil
}

// ranges takes start, end and their inclusivity, or ranges.
func (o *options) ranges() []storage.Range {
	t, several := o.take("ranges")
	if !several {
		return []storage.Range{{
			Start:          o.bytes("start"),
			End:            o.bytes("end"),
			StartExclusive: !o.bool("start_inclusive", true),
			EndInclusive:   o.bool("end_inclusive", false),
		}}
	}
	list, ok := t.(etf.List)
	if !ok || len(list) == 0 || len(list) > maxRanges {
		o.fail("ranges", "a list of 1 to 5000 ranges", t)
		return nil
	}
	ranges := make([]storage.Range, len(list))
	for i, t := range list {
		r, ok := readRange(t)
		if !ok {
			o.fail("ranges", "a list of {Start, End} and {Start, End, {StartInclusive, EndInclusive}}", t)
			return nil
		}
		ranges[i] = r
	}
	return ranges
}

// readRange reads {Start, End} or {Start, End, {boolean(), boolean()}}; a bound
// is a binary or undefined.
func readRange(t etf.Term) (r storage.Range, ok bool) {
	tuple, ok := t.(etf.Tuple)
	if !ok || len(tuple) < 2 || len(tuple) > 3 {
		return r, false
	}
	bound := func(t etf.Term) []byte {
		if b, isBinary := t.([]byte); isBinary {
			return append([]byte{}, b...)
		}
		ok = ok && t == etf.Atom("undefined")
		return nil
	}
	r.Start, r.End = bound(tuple[0]), bound(tuple[1])
	if len(tuple) == 3 {
		flags, isTuple := tuple[2].(etf.Tuple)
		if !isTuple || len(flags) != 2 {
			return r, false
		}
		flag := func(t etf.Term) bool {
			ok = ok && (t == etf.Atom("true") || t == etf.Atom("false"))
			return t == etf.Atom("true")
		}
		r.StartExclusive, r.EndInclusive = !flag(flags[0]), flag(flags[1])
	}
	return r, ok
}

// form takes rows, with_keys and on_foreign; the last two mean nothing for KV and
// Keys.
func (o *options) form() scan.Form {
	f := scan.Form{WithKeys: o.bool("with_keys", false), SkipForeign: o.atom("on_foreign", "error", "error", "skip") == "skip"}
	t, ok := o.take("rows")
	if !ok {
		return f
	}
	kinds := map[etf.Term]scan.Kind{
		etf.Atom("kv"): scan.KV, etf.Atom("keys"): scan.Keys, etf.Atom("terms"): scan.Terms, etf.Atom("cells"): scan.Cells,
	}
	const want = "one of kv, keys, terms, cells, {select, Names}"
	switch t := t.(type) {
	case etf.Atom:
		kind, known := kinds[t]
		if !known {
			o.fail("rows", want, t)
		}
		f.Kind = kind
	case etf.Tuple:
		f.Kind = scan.Select
		if len(t) != 2 || t[0] != etf.Atom("select") {
			o.fail("rows", want, t)
			return f
		}
		f.Columns = o.names("the names of {select, Names}", t[1])
	default:
		o.fail("rows", want, t)
	}
	return f
}

// names reads a list of binaries.
func (o *options) names(what string, t etf.Term) []string {
	list, ok := t.(etf.List)
	if !ok || len(list) == 0 || len(list) > maxColumns {
		o.fail(what, "a list of 1 to 1000 binaries", t)
		return nil
	}
	names := make([]string, len(list))
	for i, t := range list {
		name, ok := t.([]byte)
		if !ok {
			o.fail(what, "binaries", t)
			return nil
		}
		names[i] = string(name)
	}
	return names
}
