package server

import (
	"fmt"
	"math"
	"runtime"

	"scanode/etf"
	"scanode/scan"
)

// Bounds of an aggregate's options.
const (
	defaultMaxGroups = 10_000
	maxMaxGroups     = 1_000_000
	maxComputed      = 1000 // and columns to group by, and to order by
	maxParallel      = 64
)

// defaultParallel leaves a processor to everybody else.
func defaultParallel() int64 { return int64(max(1, min(4, runtime.GOMAXPROCS(0)-1))) }

var computeOps = map[etf.Term]scan.Op{
	etf.Atom("count"): scan.Count, etf.Atom("sum"): scan.Sum, etf.Atom("avg"): scan.Avg,
	etf.Atom("min"): scan.Min, etf.Atom("max"): scan.Max,
	etf.Atom("stddev_pop"): scan.StddevPop, etf.Atom("stddev_samp"): scan.StddevSamp,
	etf.Atom("first"): scan.First, etf.Atom("last"): scan.Last,
}

// aggregate takes compute, group_by, order, max_groups, partial and parallel. It returns
// nil if there is no compute; the others are then not taken.
func (o *options) aggregate() *scan.Aggregate {
	t, ok := o.take("compute")
	if !ok {
		return nil
	}
	a := &scan.Aggregate{
		MaxGroups: int(o.int("max_groups", defaultMaxGroups, 1, maxMaxGroups, "a number of groups from 1 to 1000000")),
		Partial:   o.bool("partial", false),
		Parallel:  int(o.int("parallel", defaultParallel(), 1, maxParallel, "a number of parts from 1 to 64")),
	}
	for _, t := range o.list("compute", t) {
		a.Compute = append(a.Compute, o.compute(t))
	}
	if t, ok := o.take("group_by"); ok {
		for _, t := range o.list("group_by", t) {
			a.GroupBy = append(a.GroupBy, o.groupBy(t))
		}
	}
	if t, ok := o.take("order"); ok {
		for _, t := range o.list("order", t) {
			a.Order = append(a.Order, o.order(t, len(a.GroupBy)+len(a.Compute)))
		}
	}
	if len(a.Compute)+len(a.GroupBy) == 0 {
		o.fail("compute", "not empty without group_by", t)
	}
	return a
}

// list returns the elements of an option's value.
func (o *options) list(name string, t etf.Term) etf.List {
	list, ok := t.(etf.List)
	if !ok || len(list) > maxComputed {
		o.fail(name, fmt.Sprintf("a list of up to %d elements", maxComputed), t)
		return nil
	}
	return list
}

// compute reads {count, all} or {Operation, Field}.
func (o *options) compute(t etf.Term) scan.Compute {
	if pair, ok := t.(etf.Tuple); ok && len(pair) == 2 {
		op, known := computeOps[pair[0]]
		field, named := pair[1].([]byte)
		switch {
		case known && named:
			return scan.Compute{Op: op, Column: string(field)}
		case known && op == scan.Count && pair[1] == etf.Atom("all"):
			return scan.Compute{Op: scan.CountAll}
		}
	}
	o.fail("compute", "a list of {count, all} and of {count | sum | avg | min | max | stddev_pop | stddev_samp | first | last, Field}, Field a binary", t)
	return scan.Compute{}
}

// groupBy reads Field or {time, Field, QuantumMs}.
func (o *options) groupBy(t etf.Term) scan.GroupBy {
	switch t := t.(type) {
	case []byte:
		return scan.GroupBy{Column: string(t)}
	case etf.Tuple:
		if len(t) != 3 || t[0] != etf.Atom("time") {
			break
		}
		field, named := t[1].([]byte)
		quantum, whole := t[2].(int64)
		if named && whole && quantum > 0 {
			return scan.GroupBy{Column: string(field), QuantumMs: quantum}
		}
	}
	o.fail("group_by", fmt.Sprintf("a list of fields, binaries, and of {time, Field, Milliseconds}, from 1 to %d of them", math.MaxInt64), t)
	return scan.GroupBy{}
}

// order reads {Position, asc | desc}; there are so many columns.
func (o *options) order(t etf.Term, columns int) scan.Order {
	if pair, ok := t.(etf.Tuple); ok && len(pair) == 2 {
		at, whole := pair[0].(int64)
		if whole && at >= 1 && at <= int64(columns) && (pair[1] == etf.Atom("asc") || pair[1] == etf.Atom("desc")) {
			return scan.Order{Column: int(at) - 1, Descending: pair[1] == etf.Atom("desc")}
		}
	}
	o.fail("order", fmt.Sprintf("a list of {Position, asc | desc}, Position from 1 to %d, the columns of the result", columns), t)
	return scan.Order{}
}
