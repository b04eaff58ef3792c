package btree

import "fmt"

// A Cursor stands on a row of a tree and goes both ways from there. It is used by one
// goroutine. It starts without a row, and is without one again when a move leads nowhere,
// until it is placed anew; an error stays.
//
// Like an Iter it allocates a few buffers, one for each level of the tree and none for a
// row. A row is valid until the next move.
type Cursor struct {
	t      Tree
	frames []frame // from the root to the leaf; those behind depth are spare
	depth  int
	leaf   *node // that has the row; nil without one
	i      int
	err    error
}

// Cursor returns a cursor over all rows.
func (t Tree) Cursor() *Cursor { return &Cursor{t: t} }

// Valid says whether the cursor stands on a row.
func (c *Cursor) Valid() bool { return c.leaf != nil }

// Key returns the key of the row.
func (c *Cursor) Key() []byte { return c.leaf.key(c.i) }

// Value returns the value of the row.
func (c *Cursor) Value() []byte { return c.leaf.value(c.i) }

// Err returns what has made a move fail.
//
// Errors: ErrTerm, those of reading.
func (c *Cursor) Err() error { return c.err }

// First goes to the first row of the tree.
func (c *Cursor) First() bool { return c.begin() && c.settle(false) }

// Last goes to the last row of the tree.
func (c *Cursor) Last() bool {
	if !c.begin() {
		return false
	}
	c.top().i = c.top().len() - 1
	return c.settle(true)
}

// SeekGE goes to the first row whose key is not before key.
func (c *Cursor) SeekGE(key []byte) bool { return c.seek(key, false) }

// SeekLT goes to the last row whose key is before key.
func (c *Cursor) SeekLT(key []byte) bool { return c.seek(key, true) }

// Next goes to the row behind; it needs a row.
func (c *Cursor) Next() bool { return c.step(false) }

// Prev goes to the row in front; it needs a row.
func (c *Cursor) Prev() bool { return c.step(true) }

func (c *Cursor) top() *frame { return &c.frames[c.depth-1] }

// begin goes to the root. It returns false when there is nothing to go to.
func (c *Cursor) begin() bool {
	c.depth, c.leaf = 0, nil
	return c.err == nil && !c.t.root.IsNil() && c.push(place{Pointer: c.t.root})
}

// push puts the node at p behind the last frame, at its first entry.
func (c *Cursor) push(p place) bool {
	if c.depth == len(c.frames) {
		if c.depth == MaxDepth {
			return c.fail(ErrDepth, p.Ptr)
		}
		c.frames = append(c.frames, frame{})
	}
	f := &c.frames[c.depth]
	if f.own == nil {
		f.own = &node{}
	}
	n, err := c.t.fetch(p, f.own, cacheInner)
	if err != nil {
		return c.fail(err, p.Ptr)
	}
	if f.own.cached {
		f.own = nil
	}
	f.node, f.at, f.i = n, p, 0
	c.depth++
	return true
}

// fail ends the cursor with an error at the node at ptr, which is below the last frame.
func (c *Cursor) fail(err error, ptr int64) bool {
	path := make([]int, c.depth)
	for i := range path {
		path[i] = c.frames[i].i
	}
	c.err, c.leaf = at(err, ptr, path), nil
	return false
}

// seek goes to the last row in front of key, or to the first one that is not.
func (c *Cursor) seek(key []byte, back bool) bool {
	if next, _ := scan(key, 0); next != len(key) {
		c.err, c.leaf = fmt.Errorf("%w: key", ErrTerm), nil
		return false
	}
	if !c.begin() {
		return false
	}
	for {
		f := c.top()
		i, err := f.firstGE(c.t.o.Order, 0, key)
		if err != nil {
			c.depth--
			return c.fail(err, f.at.Ptr)
		}
		if f.i = i; f.leaf {
			break
		}
		if i == f.len() {
			if !back {
				return c.settle(false) // all below is in front of key
			}
			f.i--
		}
		if !c.push(f.at.child(f.node, f.i)) {
			return false
		}
	}
	if back {
		c.top().i--
	}
	return c.settle(back)
}

// step goes to a neighbouring row.
func (c *Cursor) step(back bool) bool {
	if c.leaf == nil {
		return false
	}
	f := c.top()
	f.next(back)
	if uint(f.i) < uint(f.len()) {
		c.i = f.i
		return true
	}
	return c.settle(back)
}

// settle goes from where the frames point, which may be beside the last one's node, to the
// nearest row in that direction.
func (c *Cursor) settle(back bool) bool {
	for c.depth > 0 {
		f := c.top()
		if uint(f.i) >= uint(f.len()) {
			if c.depth--; c.depth > 0 {
				c.top().next(back)
			}
			continue
		}
		if f.leaf {
			c.leaf, c.i = f.node, f.i
			return true
		}
		if !c.push(f.at.child(f.node, f.i)) {
			return false
		}
		if back {
			c.top().i = c.top().len() - 1
		}
	}
	c.leaf = nil
	return false
}
