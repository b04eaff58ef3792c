package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/storage/couch/btree"
	"scanode/storage/couch/file"
)

// How fast a tree of small rows is: keys of ten digits, integers, {Count, Sum}, Snappy. These
// are about the recorded bytes; what else the recorded rows were is not known.

// speedCell is one way to write and read it.
type speedCell struct {
	order       string
	batch, rows int
	state       state
	hold        int // rows that come to nodes in memory before they are written; 0: none
}

func (c speedCell) name() string {
	if c.hold > 0 {
		return c.state.name + ", held"
	}
	return c.state.name
}

// An effort is what one operation took.
type effort struct {
	cpu, clock float64 // microseconds; cpu is the system's and the garbage collector's too
}

// speeds are the efforts of each kind of work.
type speeds struct {
	written
	insert, lookup, hundred, row, grouped, ranged effort
}

// measure returns what one of n operations took that do does.
func measure(n int, do func() error) (effort, error) {
	cpu := func() int64 {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			panic(err)
		}
		return u.Utime.Nano() + u.Stime.Nano()
	}
	startCPU, start := cpu(), time.Now()
	err := do()
	each := 1 / (1000 * float64(n))
	return effort{float64(cpu()-startCPU) * each, float64(time.Since(start).Nanoseconds()) * each}, err
}

// run writes the tree in a file below dir and reads it.
func (c speedCell) run(dir string) (r speeds, err error) {
	name := filepath.Join(dir, "speed")
	f, err := file.Create(vfs.Default, name, file.Options{})
	if err != nil {
		return r, err
	}
	defer os.Remove(name)
	defer f.Close()
	o := c.state.options("snappy")
	o.Reducer, o.Cache = countSum{}, btree.NewCache(16<<20)
	if c.hold > 0 {
		o.HoldBytes = 16 << 20
	}
	tree := btree.New(f, btree.Pointer{}, o)
	numbers := order(c.rows, c.order)
	key := func(n int) []byte { return text(fmt.Sprintf("%010d", n)) }
	var batches [][]btree.Row
	for batch := range slices.Chunk(numbers, c.batch) {
		var rows []btree.Row
		for _, n := range batch {
			rows = append(rows, btree.Row{Key: key(n), Value: integer(int64(n))})
		}
		batches = append(batches, rows)
	}
	r.insert, err = measure(c.rows, func() error {
		held := 0
		for _, rows := range batches {
			if tree, err = tree.Add(rows); err != nil {
				return err
			}
			if held += len(rows); c.hold > 0 && held >= c.hold {
				held = 0
				if tree, err = tree.Flush(); err != nil {
					return err
				}
			}
		}
		tree, err = tree.Flush()
		return err
	})
	if err != nil {
		return r, err
	}
	r.written = written{f.Size(), tree.Root().Size}
	return r, c.read(&r, tree, key)
}

// read measures what reads the tree.
func (c speedCell) read(r *speeds, tree btree.Tree, key func(int) []byte) (err error) {
	rng := rand.New(rand.NewPCG(3, 4))
	keys := make([][]byte, 20_000)
	for i := range keys {
		keys[i] = key(rng.IntN(c.rows))
	}
	r.lookup, err = measure(len(keys), func() error {
		for _, k := range keys {
			if _, found, err := tree.Get(k); err != nil || !found {
				return fmt.Errorf("%s is missing (%w)", k, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.hundred, err = measure(len(keys), func() error {
		for some := range slices.Chunk(keys, 100) {
			if _, err := tree.Lookup(some); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	folds := max(1, 500_000/c.rows)
	r.row, err = measure(folds*c.rows, func() error {
		n := 0
		for range folds {
			it := tree.Iter(btree.Range{})
			for it.Next() {
				n++
			}
			if err := it.Err(); err != nil {
				return err
			}
		}
		if n != folds*c.rows {
			return fmt.Errorf("%d rows in %d folds", n, folds)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.reduce(r, tree, rng, key)
}

// reduce measures reductions: of all rows in groups of 100, and of random ranges.
func (c speedCell) reduce(r *speeds, tree btree.Tree, rng *rand.Rand, key func(int) []byte) (err error) {
	final := func(_ []byte, p btree.Partial) (btree.Step, error) {
		_, err := tree.FinalReduce(nil, p)
		return btree.Next, err
	}
	hundreds := func(a, b []byte) (bool, error) { return bytes.Equal(a[:len(a)-2], b[:len(b)-2]), nil }
	folds := max(1, 200_000/c.rows)
	r.grouped, err = measure(folds*c.rows, func() error {
		for range folds {
			if err := tree.FoldReduce(btree.Range{}, hundreds, final); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	const ranges = 5000
	r.ranged, err = measure(ranges, func() error {
		for range ranges {
			from, to := rng.IntN(c.rows/2), c.rows/2+rng.IntN(c.rows/2)
			if err := tree.FoldReduce(btree.Range{Start: key(from), End: key(to)}, nil, final); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// median runs a cell some times and returns the median of each effort.
func (c speedCell) median(dir string, times int) (speeds, error) {
	var runs []speeds
	for range times {
		r, err := c.run(dir)
		if err != nil {
			return r, fmt.Errorf("%+v: %w", c, err)
		}
		runs = append(runs, r)
	}
	m := runs[0]
	for _, get := range []func(*speeds) *effort{
		func(s *speeds) *effort { return &s.insert }, func(s *speeds) *effort { return &s.lookup }, func(s *speeds) *effort { return &s.hundred },
		func(s *speeds) *effort { return &s.row }, func(s *speeds) *effort { return &s.grouped }, func(s *speeds) *effort { return &s.ranged },
	} {
		middle := func(of func(effort) float64) float64 {
			var all []float64
			for i := range runs {
				all = append(all, of(*get(&runs[i])))
			}
			slices.Sort(all)
			return all[(len(all)-1)/2]
		}
		*get(&m) = effort{middle(func(e effort) float64 { return e.cpu }), middle(func(e effort) float64 { return e.clock })}
	}
	return m, nil
}

// speedCells are what was recorded, in order, and with our own policies.
func speedCells() (all []speedCell) {
	for _, w := range []struct {
		order       string
		batch, rows int
	}{{"seq", 1, 5000}, {"rand", 1, 5000}, {"rand", 1, 100_000}, {"seq", 100, 100_000}, {"rand", 100, 100_000}, {"seq", 10_000, 100_000}, {"rand", 10_000, 100_000}} {
		for _, s := range []state{theirs[0], theirs[1], theirs[3], ours[0], ours[1]} {
			all = append(all, speedCell{w.order, w.batch, w.rows, s, 0})
		}
		if w.batch < 1000 {
			all = append(all, speedCell{w.order, w.batch, w.rows, ours[0], 1000})
		}
	}
	return all
}

func printSpeed(w io.Writer, dir string) error {
	times, _ := strconv.Atoi(os.Getenv("REPETITIONS"))
	if times < 1 {
		times = 3
	}
	cpu := table{columns: []string{"keys", "a batch", "rows", "state", "bytes", "beside recorded", "insert", "recorded", "x", "lookup", "recorded", "x", "in hundreds", "row", "recorded", "x", "range", "recorded", "x"}}
	clock := table{columns: []string{"keys", "a batch", "rows", "state", "inserts", "recorded", "lookups", "recorded", "in hundreds", "recorded", "rows", "recorded", "grouped rows", "recorded", "ranges", "recorded"}}
	for _, c := range speedCells() {
		m, err := c.median(dir, times)
		if err != nil {
			return err
		}
		work := []string{"order", c.order, "batch", strconv.Itoa(c.batch), "rows", strconv.Itoa(c.rows)}
		same := find(recorded("speed"), append(work, "state", c.state.name)...)
		// What was not recorded of this state is held against today's.
		r := same
		if r == nil {
			r = find(recorded("speed"), append(work, "state", "compat")...)
		}
		row := []any{c.order, c.batch, c.rows, c.name()}
		times := func(e effort, name string) []any {
			if r == nil {
				return []any{e.cpu, "", ""}
			}
			return []any{e.cpu, r.number(name), fmt.Sprintf("%.1f", r.number(name)/e.cpu)}
		}
		cells := append(slices.Clone(row), m.bytes, beside(float64(m.bytes), same.number("bytes")))
		cells = append(cells, times(m.insert, "insert_us")...)
		cells = append(cells, times(m.lookup, "lookup_us")...)
		cells = append(cells, m.hundred.cpu)
		cells = append(cells, times(m.row, "row_us")...)
		cpu.add(append(cells, times(m.ranged, "range_us")...)...)
		for _, e := range []struct {
			effort
			name string
		}{{m.insert, "inserts/s"}, {m.lookup, "lookups/s"}, {m.hundred, "lookups100/s"}, {m.row, "rows/s"}, {m.grouped, "grouped/s"}, {m.ranged, "ranges/s"}} {
			row = append(row, fmt.Sprintf("%.0f", 1e6/e.clock), r.number(e.name))
		}
		clock.add(row...)
	}
	fmt.Fprintf(w, `## (e) Speed

Small rows; Snappy; each number the median of as many runs: %d. CPU time in microseconds of one operation, x: how many times the recorded one that is. Recorded are the same state without a cache of its own, or
today's where there is none of it. Ours has a cache of 16 MiB. held: Flush every 1,000 rows.

`, times)
	cpu.print(w)
	fmt.Fprint(w, "By the clock, a second:\n\n")
	clock.print(w)
	return nil
}
