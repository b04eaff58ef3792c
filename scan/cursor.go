package scan

import (
	"bytes"
	"sync/atomic"

	"scanode/storage"
)

// Anchor says where a page of a Cursor begins and which way it goes from there.
type Anchor uint8

// The kinds of Anchor. The first two are about the Cursor's position,
// the last four about a key.
const (
	AtNext  Anchor = iota // the row behind the position, forwards
	AtPrev                // the row before the position, backwards
	AtFirst               // the first row, forwards
	AtLast                // the last row, backwards

	FromKey   // the first row >= the key, forwards
	AfterKey  // the first row > the key, forwards
	BeforeKey // the last row < the key, backwards
	UpToKey   // the last row <= the key, backwards
)

// backwards says which way a page goes.
func (a Anchor) backwards() bool { return a == AtPrev || a == AtLast || a == BeforeKey || a == UpToKey }

// Cursor walks one view in both directions, a page at a time. Its position is
// the last row that it returned, or one of the two ends; it begins before the
// first row. Between pages it keeps the engine's iterator, so that going on is no
// seek, until Rest gives that back.
//
// A Cursor belongs to one goroutine at a time, but for Cancel.
type Cursor struct {
	view storage.Reader
	form former
	it   storage.Iter // nil before the first page and after Rest

	onRow bool // else the position is an end
	atEnd bool // the one behind the last row
	row   []byte
	last  []byte // the last row of the page being made

	cancelled atomic.Pointer[cancellation]
}

type cancellation struct{ err error }

// NewCursor returns a cursor over view, which must outlive it, for rows of the
// form KV or Keys.
func NewCursor(view storage.Reader, kind Kind) *Cursor {
	return &Cursor{view: view, form: *newForm(Form{Kind: kind}, nil)}
}

// Cancel ends the page under way and all later ones with err.
func (c *Cursor) Cancel(err error) { c.cancelled.CompareAndSwap(nil, &cancellation{err}) }

// Rest gives the engine's iterator back; the position stays, and the next page
// seeks it. An idle iterator keeps tables and write buffers alive that its view
// does not need.
func (c *Cursor) Rest() error {
	it := c.it
	c.it = nil
	if it == nil {
		return nil
	}
	return it.Close()
}

// Page appends a list of rows in external format to dst: those from a on, in
// walking order, until there are maxRows, or until the list has maxBytes, which
// it exceeds by at most one row. done says that the end of the view was reached;
// without it there may be more rows. key is for the anchors that need one. After
// an error dst is returned as it was, and the position stays.
func (c *Cursor) Page(dst []byte, a Anchor, key []byte, maxRows, maxBytes int) (page []byte, done bool, err error) {
	b := batch{buf: dst, start: len(dst)}
	b.reset()
	done, err = c.fill(&b, a, key, maxRows, maxBytes)
	if err != nil {
		_ = c.Rest() // it says the same, or less
		return dst, false, err
	}
	if c.onRow = b.rows > 0; c.onRow {
		c.row, c.last = c.last, c.row
	} else {
		c.atEnd = !a.backwards()
	}
	return b.finish(), done, nil
}

// fill adds the rows of one page to b and leaves the key of the last one in
// c.last.
func (c *Cursor) fill(b *batch, a Anchor, key []byte, maxRows, maxBytes int) (done bool, err error) {
	if c.it == nil {
		if c.it, err = c.view.NewIter(storage.Range{}); err != nil {
			return false, err
		}
	}
	step := c.it.Next
	if a.backwards() {
		step = c.it.Prev
	}
	for ok := c.seek(a, key); ok; ok = step() {
		if b.rows%checkRows == 0 {
			if stop := c.cancelled.Load(); stop != nil {
				return false, stop.err
			}
		}
		var value []byte
		if c.form.needsValue {
			if value = c.it.Value(); value == nil && c.it.Err() != nil {
				break
			}
		}
		if _, err := c.form.append(b, c.it.Key(), value); err != nil {
			return false, rowError(c.it, err)
		}
		c.last = append(c.last[:0], c.it.Key()...)
		if int(b.rows) >= maxRows || b.size() >= maxBytes {
			return false, nil
		}
	}
	if stop := c.cancelled.Load(); stop != nil {
		return false, stop.err
	}
	return true, c.it.Err()
}

// seek moves to the first row of a page. Where the iterator stands already, it
// is at most one step away.
func (c *Cursor) seek(a Anchor, key []byte) bool {
	switch a {
	case AtNext, AtPrev:
		switch {
		case c.onRow && a == AtNext:
			return c.seek(AfterKey, c.row)
		case c.onRow:
			return c.seek(BeforeKey, c.row)
		case c.atEnd == (a == AtNext):
			return false // there is nothing beyond an end
		case a == AtNext:
			return c.it.First()
		}
		return c.it.Last()
	case AtFirst:
		return c.it.First()
	case AtLast:
		return c.it.Last()
	}
	stands := c.it.Valid() && bytes.Equal(c.it.Key(), key)
	switch a {
	case FromKey:
		return stands || c.it.SeekGE(key)
	case AfterKey:
		if !stands && !c.it.SeekGE(key) {
			return false
		}
		return !bytes.Equal(c.it.Key(), key) || c.it.Next()
	case BeforeKey:
		if stands {
			return c.it.Prev()
		}
		return c.it.SeekLT(key)
	}
	// The last key <= key is the last one before the first key behind it.
	return stands || c.it.SeekLT(append(bytes.Clone(key), 0))
}
