package storetest

import (
	"fmt"
	"slices"
	"sort"

	"scanode/storage"
)

// cursor is what an iterator has to be: a position in a sorted list of rows.
type cursor struct {
	rows []row
	pos  int
	ok   bool
}

func newCursor(rows []row) *cursor { return &cursor{rows: rows} }

func (c *cursor) at(pos int) bool {
	c.pos, c.ok = pos, pos >= 0 && pos < len(c.rows)
	return c.ok
}

func (c *cursor) search(key string) int {
	return sort.Search(len(c.rows), func(i int) bool { return c.rows[i].key >= key })
}

func (c *cursor) first() bool            { return c.at(0) }
func (c *cursor) last() bool             { return c.at(len(c.rows) - 1) }
func (c *cursor) seekGE(key string) bool { return c.at(c.search(key)) }
func (c *cursor) seekLT(key string) bool { return c.at(c.search(key) - 1) }
func (c *cursor) next() bool             { return c.ok && c.at(c.pos+1) }
func (c *cursor) prev() bool             { return c.ok && c.at(c.pos-1) }

// same compares the outcome of a move, and where it led, with the cursor's.
func (c *cursor) same(it storage.Iter, got, want bool) error {
	if err := it.Err(); err != nil {
		return err
	}
	if got != want || it.Valid() != want {
		return fmt.Errorf("returned %v (valid %v, key %q), want %v", got, it.Valid(), it.Key(), want)
	}
	if !want {
		return nil
	}
	if w := c.rows[c.pos]; string(it.Key()) != w.key || string(it.Value()) != w.value {
		return fmt.Errorf("stands on %q, %.20q, want %q, %.20q", it.Key(), it.Value(), w.key, w.value)
	}
	return nil
}

// inRange returns the rows of a sorted list that a range selects, spelling out
// the words of the contract.
func inRange(all []row, rg storage.Range) []row {
	var out []row
	for _, r := range all {
		start, end := string(rg.Start), string(rg.End)
		if rg.Start != nil && (r.key < start || r.key == start && rg.StartExclusive) {
			continue
		}
		if rg.End != nil && (r.key > end || r.key == end && !rg.EndInclusive) {
			continue
		}
		out = append(out, r)
	}
	return out
}

// describe prints a range as an interval.
func describe(rg storage.Range) string {
	open, shut := "[", ")"
	if rg.StartExclusive {
		open = "("
	}
	if rg.EndInclusive {
		shut = "]"
	}
	bound := func(b []byte) string {
		if b == nil {
			return "nil"
		}
		return fmt.Sprintf("%q", b)
	}
	return open + bound(rg.Start) + ", " + bound(rg.End) + shut
}

// table is the sorted map a store is compared with. It is not changed: with
// returns a new one, so that iterators and snapshots keep theirs.
type table []row

func (t table) find(key string) (int, bool) {
	return sort.Find(len(t), func(i int) int {
		switch k := t[i].key; {
		case key < k:
			return -1
		case key > k:
			return 1
		}
		return 0
	})
}

func (t table) with(ops []storage.Op) table {
	t = slices.Clone(t)
	for _, op := range ops {
		i, found := t.find(string(op.Key))
		switch {
		case op.Kind == storage.Put && found:
			t[i].value = string(op.Value)
		case op.Kind == storage.Put:
			t = slices.Insert(t, i, row{string(op.Key), string(op.Value)})
		case found:
			t = slices.Delete(t, i, i+1)
		}
	}
	return t
}
