package btree

import (
	"fmt"
	"slices"
)

// FoldReduce calls emit for each group of rows in r, with the group's first key and what
// there is in it: rows of the edges and reductions of whole subtrees, which FinalReduce
// joins. Subtrees that lie within a group are not read. Rows of both edges of a group
// come in one list, the latest first: a reducer must give the same in any order.
// group nil is GroupAll. Nothing is emitted for a range without rows. emit ends the fold
// with Stop. What it is given is valid until it returns.
//
// Errors: those of reading, of group and of emit.
func (t Tree) FoldReduce(r Range, group Group, emit func(key []byte, p Partial) (Step, error)) error {
	if group == nil {
		group = GroupAll
	}
	f := &grouper{it: t.iter(r, nil), group: group, emit: emit}
	for _, key := range [][]byte{r.Start, f.it.end} {
		if next, _ := scan(key, 0); key != nil && next != len(key) {
			return fmt.Errorf("%w: key of a range", ErrTerm)
		}
	}
	if t.root.IsNil() {
		return nil
	}
	if err := f.node(t.top()); err != nil || f.stopped || f.key == nil {
		return err
	}
	return f.finish()
}

// grouper is one FoldReduce under way.
type grouper struct {
	it      *Iter // for its range and order
	group   Group
	emit    func(key []byte, p Partial) (Step, error)
	key     []byte // of the group under way; nil before the first row
	in      Partial
	stopped bool
	path    []int
}

// node goes through the subtree at p.
func (g *grouper) node(p place) error {
	if len(g.path) == MaxDepth {
		return at(ErrDepth, p.Ptr, g.path)
	}
	// Rows and reductions of the group stay in use while other nodes are read.
	n, err := g.it.t.fetch(p, nil, cacheInner)
	if err == nil {
		if n.leaf {
			err = g.leaf(n)
		} else {
			err = g.inner(n, p)
		}
	}
	if err != nil {
		return at(err, p.Ptr, g.path)
	}
	return nil
}

func (g *grouper) leaf(n *node) error {
	f := frame{node: n}
	i, step := 0, 1
	if g.it.r.Reverse {
		i, step = n.len()-1, -1
	}
	if g.it.r.Start != nil {
		if err := g.it.seek(&f, g.it.r.Start); err != nil {
			return err
		}
		i = f.i
	}
	for ; uint(i) < uint(n.len()); i += step {
		row := n.row(i)
		if g.it.end != nil {
			if ok, err := g.it.before(row.Key); err != nil || !ok {
				return err
			}
		}
		if err := g.row(row); err != nil || g.stopped {
			return err
		}
	}
	return nil
}

func (g *grouper) row(row Row) error {
	if g.key != nil {
		same, err := g.group(g.key, row.Key)
		if err != nil {
			return err
		}
		if same {
			g.in.Rows = append(g.in.Rows, row)
			return nil
		}
		if err := g.finish(); err != nil || g.stopped {
			return err
		}
	}
	g.key = row.Key
	g.in.Rows = append(g.in.Rows[:0], row)
	g.in.Reds = g.in.Reds[:0]
	return nil
}

// finish emits the group under way.
func (g *grouper) finish() error {
	// Both were collected as they came.
	slices.Reverse(g.in.Rows)
	slices.Reverse(g.in.Reds)
	step, err := g.emit(g.key, g.in)
	g.stopped = err == nil && step == Stop
	return err
}

// inner goes through the children of n, which is at p, that can have rows of the range.
func (g *grouper) inner(n *node, p place) error {
	first, count, err := g.children(n)
	if err != nil {
		return err
	}
	step := 1
	if g.it.r.Reverse {
		step = -1
	}
	for count > 0 && !g.stopped {
		// Of the run of children whose last keys are in the group, all but the last
		// lie in it as a whole.
		whole := 0
		for g.key != nil && whole < count {
			same, err := g.group(g.key, n.key(first+whole*step))
			if err != nil {
				return err
			}
			if !same {
				break
			}
			whole++
		}
		for range whole - 1 {
			g.in.Reds = append(g.in.Reds, n.child(first).Reduction)
			first += step
			count--
		}
		g.path = append(g.path, first)
		err := g.node(p.child(n, first))
		g.path = g.path[:len(g.path)-1]
		if err != nil {
			return err
		}
		first += step
		count--
	}
	return nil
}

// children returns the first child to go to and how many there are in the direction of
// the range: from the one that leads to its start to the first whose last key is behind its
// end. Descending, that one has no rows of the range.
func (g *grouper) children(n *node) (first, count int, err error) {
	r := &g.it.r
	f := frame{node: n}
	if r.Reverse {
		f.i = n.len() - 1
	}
	if r.Start != nil {
		if err := g.it.seek(&f, r.Start); err != nil {
			return 0, 0, err
		}
	}
	first, count = f.i, n.len()-f.i
	if r.Reverse {
		count = f.i + 1
	}
	if g.it.end == nil {
		return first, count, nil
	}
	for i := range count {
		at := first + i
		if r.Reverse {
			at = first - i
		}
		ok, err := g.it.before(n.key(at))
		if err != nil {
			return 0, 0, err
		}
		if !ok {
			if r.Reverse {
				return first, i, nil
			}
			return first, i + 1, nil
		}
	}
	return first, count, nil
}
