package btree

import "fmt"

// A Range is a part of the tree in the direction it is gone through. Keys are encoded
// terms; they need not be in the tree. The zero Range is all of it, ascending.
type Range struct {
	Start   []byte // where to begin, inclusive; nil is the edge
	End     []byte // where to end, inclusive; nil is the edge
	EndGT   []byte // where to end, exclusive; if not nil, End does not count
	Reverse bool   // descending: Start is the greatest key then
}

// A Partial is what lies behind a place in a tree, in the direction it was come to: rows
// of the leaf there and reductions of whole subtrees, the latest first. Its final
// reduction is the place's offset, see [Tree.FinalReduce].
type Partial struct {
	Rows []Row
	Reds [][]byte
}

// A Step is what a callback wants next.
type Step uint8

const (
	Next Step = iota
	Skip      // of a subtree: do not descend
	Stop
)

// An Iter goes through a range. It is used by one goroutine:
//
//	for it.Next() {
//		use(it.Key(), it.Value())
//	}
//	return it.Err()
//
// It allocates a few buffers, one for each level of the tree and none for a row. A row is
// valid until the next call of Next.
type Iter struct {
	t        *Tree
	r        Range
	end      []byte
	endGT    bool
	traverse func(lastKey, reduction []byte) (Step, error)

	frames []frame // from the root to the leaf; those behind depth are spare
	depth  int
	leaf   *node // that has the current row
	i      int
	whole  bool // the leaf's rows are all before the end
	state  state
	err    error
}

type state uint8

const (
	unstarted state = iota
	under
	stopped // at the end key, or by a callback: the place is kept
	done    // at the edge, or by an error
)

// frame is a node on the way to the current row.
type frame struct {
	*node
	at      place
	own     *node // filled when nothing else has the node, and used again
	i       int   // the entry gone to
	skipped int   // rows of the leaf that are in front of Range.Start
}

// Iter returns an iterator over r.
func (t Tree) Iter(r Range) *Iter { return t.iter(r, nil) }

func (t *Tree) iter(r Range, traverse func(lastKey, reduction []byte) (Step, error)) *Iter {
	it := &Iter{t: t, r: r, end: r.End, traverse: traverse}
	if r.EndGT != nil {
		it.end, it.endGT = r.EndGT, true
	}
	return it
}

// Key returns the current row's key.
func (it *Iter) Key() []byte { return it.leaf.key(it.i) }

// Value returns the current row's value.
func (it *Iter) Value() []byte { return it.leaf.value(it.i) }

// Row returns the current row.
func (it *Iter) Row() Row { return it.leaf.row(it.i) }

// Err returns what ended the iteration early. A caller that has not asked has not
// seen all rows.
func (it *Iter) Err() error { return it.err }

// Next goes to the next row, at first to the first, and says whether there is one.
func (it *Iter) Next() bool {
	var ok bool
	switch it.state {
	case under:
		ok = it.advance()
	case unstarted:
		ok = it.start()
	default:
		return false
	}
	if ok && !it.whole {
		ok = it.inside()
	}
	if !ok {
		if it.state != stopped {
			it.state = done
		}
	}
	return ok
}

// fail ends the iteration with an error in the node at ptr, which is or would be
// the one at that depth.
func (it *Iter) fail(err error, ptr int64, depth int) bool {
	path := make([]int, depth)
	for i := range path {
		path[i] = it.frames[i].i
	}
	it.err = at(err, ptr, path)
	it.state = done
	return false
}

// stop ends the iteration where it is.
func (it *Iter) stop() bool {
	it.state = stopped
	return false
}

func (it *Iter) start() bool {
	it.state = under
	for _, key := range [][]byte{it.r.Start, it.end} {
		if key != nil {
			if next, _ := scan(key, 0); next != len(key) {
				it.err = fmt.Errorf("%w: key of a range", ErrTerm)
				return false
			}
		}
	}
	if it.t.root.IsNil() {
		return false
	}
	return it.push(it.t.top(), it.r.Start) && it.settle(it.r.Start)
}

// push puts the node at p behind the last frame and goes to its first entry, or
// to that of key.
func (it *Iter) push(p place, key []byte) bool {
	if it.depth == len(it.frames) {
		if it.depth == MaxDepth {
			return it.fail(ErrDepth, p.Ptr, it.depth)
		}
		it.frames = append(it.frames, frame{})
	}
	f := &it.frames[it.depth]
	if f.own == nil {
		f.own = &node{}
	}
	n, err := it.t.fetch(p, f.own, cacheInner)
	if err != nil {
		return it.fail(err, p.Ptr, it.depth)
	}
	f.node, f.at = n, p
	if f.own.cached {
		f.own = nil
	}
	it.depth++
	f.i, f.skipped = 0, 0
	if it.r.Reverse {
		f.i = n.len() - 1
	}
	if key != nil {
		if err := it.seek(f, key); err != nil {
			return it.fail(err, p.Ptr, it.depth-1)
		}
	}
	if n.leaf {
		if err := it.look(f); err != nil {
			return it.fail(err, p.Ptr, it.depth-1)
		}
	}
	return true
}

// seek sets f.i to where the range begins in f's node: to the child that can have
// the first row, or to the first row, which may be none.
func (it *Iter) seek(f *frame, key []byte) error {
	order, count := it.t.o.Order, f.len()
	i, err := f.firstGE(order, 0, key)
	if err != nil {
		return err
	}
	if !f.leaf {
		if it.r.Reverse && i == count {
			i-- // all lies before key
		}
		f.i = i
		return nil
	}
	if !it.r.Reverse {
		f.i, f.skipped = i, i
		return nil
	}
	// Rows that are equal to key belong to the range.
	for i < count {
		c, err := order(key, f.key(i))
		if err != nil {
			return err
		}
		if c < 0 {
			break
		}
		i++
	}
	f.i, f.skipped = i-1, count-i
	return nil
}

// look finds out whether all rows of the leaf are before the end of the range.
func (it *Iter) look(f *frame) error {
	it.whole = it.end == nil
	if it.whole {
		return nil
	}
	last := f.len() - 1
	if it.r.Reverse {
		last = 0
	}
	var err error
	it.whole, err = it.before(f.key(last))
	return err
}

// before says whether key is before the end of the range.
func (it *Iter) before(key []byte) (bool, error) {
	c, err := it.t.o.Order(key, it.end)
	if it.r.Reverse {
		c = -c
	}
	return c < 0 || c == 0 && !it.endGT, err
}

// inside stops when the current row is behind the end of the range.
func (it *Iter) inside() bool {
	ok, err := it.before(it.Key())
	if err != nil {
		return it.fail(err, it.frames[it.depth-1].ptr, it.depth-1)
	}
	if !ok {
		return it.stop()
	}
	return true
}

// advance goes to the next row.
func (it *Iter) advance() bool {
	f := &it.frames[it.depth-1]
	if it.r.Reverse {
		f.i--
	} else {
		f.i++
	}
	if uint(f.i) < uint(f.len()) {
		it.i = f.i
		return true
	}
	return it.settle(nil)
}

// settle goes from where the frames point to the first row there or after. key is
// the beginning of the range if no row was gone to yet: the first way down is not
// traversed, and looks for it.
func (it *Iter) settle(key []byte) bool {
	for it.depth > 0 {
		f := &it.frames[it.depth-1]
		if uint(f.i) >= uint(f.len()) {
			// The node is done with. What comes is no more the first way down.
			key = nil
			if it.depth--; it.depth > 0 {
				it.frames[it.depth-1].next(it.r.Reverse)
			}
			continue
		}
		if f.leaf {
			it.leaf, it.i = f.node, f.i
			return true
		}
		p := f.at.child(f.node, f.i)
		if it.traverse != nil && key == nil {
			step, err := it.traverse(f.key(f.i), p.Reduction)
			if err != nil {
				it.err = err
				return false
			}
			if step == Stop {
				return it.stop()
			}
			if step == Skip {
				f.next(it.r.Reverse)
				continue
			}
		}
		if !it.push(p, key) {
			return false
		}
	}
	return false
}

func (f *frame) next(reverse bool) {
	if reverse {
		f.i--
	} else {
		f.i++
	}
}

// Passed returns what lies between the edge of the tree where the iteration came from and
// the current row, rows in front of Range.Start included. After the last call of Next it
// is what lies in front of the end key; if the iteration ran to the edge, it is all of
// the tree as one reduction. It allocates. It is valid until the next call of Next.
func (it *Iter) Passed() Partial {
	if it.state == done || it.state == unstarted {
		if it.state == unstarted || it.t.root.IsNil() {
			return Partial{}
		}
		return Partial{Reds: [][]byte{it.t.root.Reduction}}
	}
	var p Partial
	for d := it.depth - 1; d >= 0; d-- {
		f := &it.frames[d]
		if f.leaf {
			p.Rows = f.passedRows(it.r.Reverse)
			continue
		}
		p.Reds = f.appendPassed(p.Reds, it.r.Reverse)
	}
	return p
}

// passedRows returns the rows of a leaf that were passed: the latest first, and then
// those in front of the beginning as they come, which is couch_btree's order.
func (f *frame) passedRows(reverse bool) []Row {
	n := f.i
	if reverse {
		n = f.len() - 1 - f.i
	}
	if n == 0 {
		return nil
	}
	rows := make([]Row, 0, n)
	nth := func(i int) Row {
		if reverse {
			i = f.len() - 1 - i
		}
		return f.row(i)
	}
	for i := n - 1; i >= f.skipped; i-- {
		rows = append(rows, nth(i))
	}
	for i := range min(f.skipped, n) {
		rows = append(rows, nth(i))
	}
	return rows
}

// appendPassed appends the reductions of the children that were passed, the latest
// first.
func (f *frame) appendPassed(reds [][]byte, reverse bool) [][]byte {
	lo, hi, step := f.i-1, -1, -1
	if reverse {
		lo, hi, step = f.i+1, f.len(), 1
	}
	for i := lo; i != hi; i += step {
		reds = append(reds, f.child(i).Reduction)
	}
	return reds
}
