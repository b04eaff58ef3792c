package btree

import "fmt"

// Diff calls f with each row that t and an older version of it do not have alike, in the
// order of keys: was is its value in old, is that in t, nil where there is no such row. What
// f is given is valid during the call; its error ends the walk and is returned.
//
// Subtrees that both have are passed over unread, so what it costs is what was changed in
// between. t must have come from old by modifications, all of them in one file.
//
// Errors: those of reading, of f; ErrPointer when t has not come from old.
func (t Tree) Diff(old Tree, f func(key, was, is []byte) error) error {
	if t.root.Ptr == old.root.Ptr && t.root.IsNil() == old.root.IsNil() {
		return nil
	}
	d := diff{was: old.Cursor(), is: t.Cursor(), f: f}
	d.was.begin()
	d.is.begin()
	for d.err == nil && (d.was.here() || d.is.here()) {
		d.step()
	}
	for _, err := range []error{d.was.err, d.is.err, d.err} {
		if err != nil {
			return err
		}
	}
	return nil
}

// diff is a Diff under way. Its cursors stand at rows or at entries of inner nodes.
//
// A node that was written before the old root was is in the old tree: a modification uses
// again only what the version before has. So where the new tree has such a node, the old
// one comes to it as well, after what lies in front of it, and nothing in front of it in
// the new tree is still to come.
type diff struct {
	was, is *Cursor
	f       func(key, was, is []byte) error
	err     error
}

func (d *diff) step() {
	if d.is.here() && !d.is.top().leaf {
		d.inner()
		return
	}
	// The old tree must come to rows as well. That may go too far, into a node that both
	// have, which inner then comes back from.
	if d.was.here() && !d.was.top().leaf {
		d.was.enter()
		return
	}
	switch {
	case !d.was.here():
		d.inserted()
	case !d.is.here():
		d.removed()
	default:
		d.rows()
	}
}

// inner goes on from an entry of an inner node of the new tree.
func (d *diff) inner() {
	ptr := d.is.top().child(d.is.top().i).Ptr
	if root := d.was.t.root; root.IsNil() || ptr > root.Ptr {
		d.is.enter()
		return
	}
	for depth := range d.was.depth {
		if d.was.frames[depth].ptr == ptr { // gone into, and no row of it taken
			d.was.depth = depth
			if depth > 0 {
				d.was.pass()
			}
			d.is.pass()
			return
		}
	}
	switch f := d.was; {
	case !f.here():
		d.err = fmt.Errorf("%w: to %d, which the older version does not have", ErrPointer, ptr)
	case f.top().leaf:
		d.removed()
	case f.top().child(f.top().i).Ptr == ptr:
		d.was.pass()
		d.is.pass()
	default:
		d.was.enter()
	}
}

// rows goes on from a row of each.
func (d *diff) rows() {
	was, is := d.was.top(), d.is.top()
	c, err := d.is.t.o.Order(was.key(was.i), is.key(is.i))
	switch {
	case err != nil:
		d.err = err
	case c < 0:
		d.removed()
	case c > 0:
		d.inserted()
	default:
		if string(was.value(was.i)) != string(is.value(is.i)) {
			d.err = d.f(is.key(is.i), was.value(was.i), is.value(is.i))
		}
		d.was.pass()
		d.is.pass()
	}
}

func (d *diff) removed() {
	f := d.was.top()
	d.err = d.f(f.key(f.i), f.value(f.i), nil)
	d.was.pass()
}

func (d *diff) inserted() {
	f := d.is.top()
	d.err = d.f(f.key(f.i), nil, f.value(f.i))
	d.is.pass()
}

// here says whether the cursor has come to no end yet. What follows is for Diff, which
// moves over entries of inner nodes, too.
func (c *Cursor) here() bool { return c.depth > 0 && c.err == nil }

// pass goes on to what lies behind the current entry.
func (c *Cursor) pass() {
	for c.depth > 0 {
		f := c.top()
		if f.i++; f.i < f.len() {
			return
		}
		c.depth--
	}
}

// enter goes to the first entry of the child that the current one leads to.
func (c *Cursor) enter() {
	f := c.top()
	c.push(f.at.child(f.node, f.i))
}
