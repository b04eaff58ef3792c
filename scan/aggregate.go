package scan

import (
	"bytes"
	"errors"
	"fmt"

	"scanode/etf"
	"scanode/filter"
)

// Op is one way to make one value of many.
type Op uint8

// The operations. All but CountAll look at one column and ignore the rows in which
// it is NULL or missing; without any other row all but Count give [].
const (
	CountAll Op = iota
	Count
	Sum
	Avg
	Min
	Max
	StddevPop
	StddevSamp
	First
	Last
)

var opNames = [...]string{"count", "count", "sum", "avg", "min", "max", "stddev_pop", "stddev_samp", "first", "last"}

// String returns the name of the operation as clients write it.
func (o Op) String() string { return opNames[o] }

// Aggregate makes a scan send groups instead of rows: for each group of the rows
// that match the list [G, …, A, …] of what its rows agree in and what was computed
// of them. docs/aggregates.md describes it for its users.
type Aggregate struct {
	Compute []Compute
	// GroupBy is what the rows of a group agree in. Without it all rows are one
	// group, which there is without any row too.
	GroupBy []GroupBy
	// Order is how the groups are sent; what it leaves open, and all without
	// it, is decided by the order of the groups' keys.
	Order []Order
	// MaxGroups is how many groups there may be; more are ErrGroups.
	MaxGroups int
	// Partial sends instead of each result what it is made of, so that the
	// groups of several scans can be merged. Order and limit then do not count.
	Partial bool
	// Parallel is how many goroutines may read a large range side by side; less
	// than 2 is one. The groups are the same, and so are errors.
	Parallel int
}

// Compute is one operation on one column; CountAll has none.
type Compute struct {
	Op     Op
	Column string
}

// GroupBy is a column by whose value rows are grouped. With a quantum, which is
// then positive, it holds integers, and the quantum they fall in counts: its first
// integer, a multiple of QuantumMs.
type GroupBy struct {
	Column    string
	QuantumMs int64
}

// Order is a column of the result, counted from 0: first those of GroupBy, then
// those of Compute. NULL comes after everything else, with Descending before.
type Order struct {
	Column     int
	Descending bool
}

// ErrGroups says that there are more groups than the request allows, or that they
// take too much memory.
var ErrGroups = errors.New("too many groups")

// ErrOverflow says that a result is no number that a double can hold.
var ErrOverflow = errors.New("the result is beyond the range of a double")

// maxGroupBytes bounds the memory of one aggregate, about.
const maxGroupBytes = 1 << 30

// perGroupBytes is what a group takes beside its key and its states: an entry in
// the index and in the list of keys.
const perGroupBytes = 64

// aggregator holds the groups of one scan. The states of the groups are in the
// accumulators, each of which has one for every group, by the group's number.
type aggregator struct {
	req     *Aggregate
	columns []string // each once
	groupBy []grouping
	accs    []*accumulator
	outputs []int // Compute → accs

	key   []byte         // of the group of the row at hand; reused
	index map[string]int // key → number
	keys  []string       // number → key
	memo  *memo          // nil unless there is one grouping
	last  int            // the group whose cells are in groupBy; -1: none
	bytes int            // about what all this takes

	maxBytes int
	large    bool // bytes is beyond
}

// grouping is one element of GroupBy and what a row of the group last had there.
type grouping struct {
	column   int
	quantum  int64
	raw      []byte // the cell, of this encoding
	encoding byte
	// from is where the quantum of the cell starts and width how much of it
	// there is, 0 if the cell is no int64 or from is none.
	from  int64
	width uint64
}

func newAggregator(req *Aggregate, maxBytes int) *aggregator {
	a := &aggregator{req: req, index: map[string]int{}, last: -1, maxBytes: maxBytes}
	column := func(name string) int {
		for i, known := range a.columns {
			if known == name {
				return i
			}
		}
		a.columns = append(a.columns, name)
		return len(a.columns) - 1
	}
	for _, g := range req.GroupBy {
		a.groupBy = append(a.groupBy, grouping{column: column(g.Column), quantum: g.QuantumMs})
	}
	for _, c := range req.Compute {
		at := -1
		if c.Op != CountAll {
			at = column(c.Column)
		}
		a.outputs = append(a.outputs, a.accumulator(c, at))
	}
	switch len(req.GroupBy) {
	case 0:
		_, _ = a.newGroup() // one group is within every bound
	case 1:
		a.memo = newMemo()
	}
	return a
}

// accumulator returns the accumulator for c, one that is there already if it can
// serve. Sum, Avg and the deviations of a column share one.
func (a *aggregator) accumulator(c Compute, column int) int {
	want := accumulator{op: c.Op, what: c.Op, column: column, name: c.Column, keys: a.req.Partial}
	switch c.Op {
	case Sum, Avg, StddevPop, StddevSamp:
		want.op = Sum
		want.squares = c.Op == StddevPop || c.Op == StddevSamp
	}
	for i, acc := range a.accs {
		if acc.op == want.op && acc.column == column {
			acc.squares = acc.squares || want.squares
			return i
		}
	}
	a.accs = append(a.accs, &want)
	return len(a.accs) - 1
}

// add takes one row that m has matched. The error is not yet a *RowError.
func (a *aggregator) add(key []byte, m *filter.Matcher) error {
	g := a.last
	if len(a.groupBy) > 0 {
		var err error
		if g, err = a.group(m); err != nil {
			return err
		}
	}
	var c filter.Cell
	at := -1 // the column that c is of
	for _, acc := range a.accs {
		if acc.op == CountAll {
			acc.counts[g]++
			continue
		}
		kind, mag, negative := m.Number(acc.column)
		if kind <= filter.KindNull {
			continue
		}
		if acc.op == Sum && !acc.squares { // by far the most frequent
			switch {
			case kind == filter.KindFloat && finite(mag):
				acc.moments[g].addFloat(mag)
				continue
			case kind == filter.KindInt:
				acc.moments[g].addInt(mag, negative)
				continue
			}
		}
		if acc.column != at {
			at, c = acc.column, m.Cell(acc.column)
		}
		if kind == filter.KindOther && isNull(&c) {
			continue
		}
		grown, err := acc.add(g, &c, key)
		if err != nil {
			return fmt.Errorf("field %s: %s %w", show(acc.name), acc.what, err)
		}
		if a.bytes += grown; a.bytes > a.maxBytes {
			return a.tooLarge()
		}
	}
	return nil
}

// group returns the number of the group of the row at hand.
func (a *aggregator) group(m *filter.Matcher) (int, error) {
	// Rows that lie side by side mostly are of one group.
	if a.sameGroup(m) {
		return a.last, nil
	}
	if a.memo == nil {
		return a.find(m)
	}
	at, v, ok := a.memo.of(&a.groupBy[0], m)
	if !ok {
		return a.find(m)
	}
	if at.group >= 0 && at.value == v {
		return int(at.group), nil
	}
	g, err := a.find(m)
	if err == nil {
		*at = noted{value: v, group: int32(g)}
	}
	return g, err
}

// find returns the number of the group of the row at hand by its key.
func (a *aggregator) find(m *filter.Matcher) (int, error) {
	a.last = -1
	key := etf.AppendListHeader(a.key[:0], len(a.groupBy))
	for i := range a.groupBy {
		g := &a.groupBy[i]
		c := m.Cell(g.column)
		var err error
		if g.quantum > 0 {
			key, err = g.appendQuantum(key, &c)
		} else {
			key, err = appendCanonical(key, &c)
			g.raw, g.encoding = append(g.raw[:0], c.Bytes...), c.Encoding
		}
		if err != nil {
			return 0, fmt.Errorf("field %s: group_by %w", show(a.columns[g.column]), err)
		}
	}
	a.key = etf.AppendNil(key)
	g, ok := a.index[string(a.key)]
	if !ok {
		return a.newGroup()
	}
	a.last = g
	return g, nil
}

// sameGroup reports whether the row at hand is surely of the group last, without
// looking into what its cells are.
func (a *aggregator) sameGroup(m *filter.Matcher) bool {
	if a.last < 0 {
		return false
	}
	for i := range a.groupBy {
		g := &a.groupBy[i]
		if g.quantum > 0 {
			v, ok := int64Of(m.Number(g.column))
			if !ok || v < g.from || uint64(v)-uint64(g.from) >= g.width {
				return false
			}
		} else if c := m.Cell(g.column); g.encoding != c.Encoding || string(g.raw) != string(c.Bytes) {
			return false
		}
	}
	return true
}

// newGroup makes a group for a.key.
func (a *aggregator) newGroup() (int, error) {
	g := len(a.keys)
	if g == a.req.MaxGroups && len(a.req.GroupBy) > 0 {
		return 0, fmt.Errorf("%w: more than %d, which max_groups allows", ErrGroups, a.req.MaxGroups)
	}
	key := string(a.key)
	a.index[key] = g
	a.keys = append(a.keys, key)
	a.bytes += len(key) + perGroupBytes
	for _, acc := range a.accs {
		a.bytes += acc.grow()
	}
	if a.bytes > a.maxBytes {
		return 0, a.tooLarge()
	}
	a.last = g
	return g, nil
}

func (a *aggregator) tooLarge() error {
	a.large = true
	return fmt.Errorf("%w: the first %d take more than %d MiB", ErrGroups, len(a.keys), a.maxBytes>>20)
}

// compareTerms orders canonical terms: as Erlang does, and terms that are equal
// there by comparing integers before floats, as keys of maps are. So only identical
// terms are equal.
func compareTerms(a, b []byte) (int, error) {
	r, err := etf.Compare(a, b)
	if r != 0 || err != nil || bytes.Equal(a, b) {
		return r, err
	}
	return compareExact(a, b)
}

// compareExact orders canonical terms as keys of maps are ordered.
func compareExact(a, b []byte) (int, error) {
	asKey := func(term []byte) []byte {
		return etf.AppendNil(append(etf.AppendMapHeader(nil, 1), term...))
	}
	return etf.Compare(asKey(a), asKey(b))
}
