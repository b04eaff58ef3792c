package scan

import (
	"math"

	"scanode/filter"
)

// memoBits is the logarithm of a memo's size.
const memoBits = 10

// memo remembers the groups of integers met lately, where rows are grouped by one
// column: it answers without the key being written and looked up. Two integers of
// one place displace each other.
type memo [1 << memoBits]noted

// noted is the group of the integer value, or of the quantum that begins there;
// -1: there is none.
type noted struct {
	value int64
	group int32
}

func newMemo() *memo {
	m := new(memo)
	for i := range m {
		m[i].group = -1
	}
	return m
}

// of returns the place of the row at hand and what stands for its group there; ok is
// false if the memo is not for it.
func (m *memo) of(g *grouping, row *filter.Matcher) (at *noted, v int64, ok bool) {
	if v, ok = int64Of(row.Number(g.column)); !ok {
		return nil, 0, false
	}
	if g.quantum > 0 {
		if v, ok = g.start(v); !ok {
			return nil, 0, false
		}
	}
	const golden = 0x9e3779b97f4a7c15 // spreads integers that are near each other
	return &m[uint64(v)*golden>>(64-memoBits)], v, true
}

// start returns the beginning of the quantum that v falls in, false if that is no
// int64.
func (g *grouping) start(v int64) (from int64, ok bool) {
	over := v % g.quantum
	if over < 0 {
		over += g.quantum
	}
	from = v - over
	return from, from <= v
}

// int64Of returns the integer that Matcher.Number described, false if it is none or
// no int64.
func int64Of(kind filter.Kind, mag uint64, negative bool) (v int64, ok bool) {
	if negative {
		return -int64(mag), kind == filter.KindInt && mag <= 1<<63
	}
	return int64(mag), kind == filter.KindInt && mag <= math.MaxInt64
}
