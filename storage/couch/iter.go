package couch

import (
	"bytes"

	"scanode/etf"
	"scanode/storage"
	"scanode/storage/couch/btree"
)

// iter walks a range of a version: its tree, with the overlay in front of it. Nothing is
// locked on the way: the state of the store, one atomic load a call, says when the walk is
// over.
//
// The two cursors stand at the current row or, in the direction of the last move, behind
// it: each at its nearest row, or at none.
type iter struct {
	s            *store   // nil within this package
	v            *version // nil after release
	lower, upper []byte   // encoded: from, and up to but not with; nil is no bound
	empty        bool     // nothing is in the range
	tree         *btree.Cursor
	over         overCursor
	layered      bool // there is an overlay

	back           bool // the last move was backwards
	onTree, onOver bool // who stands at the current row
	valid          bool
	done           bool // the walk has ended by itself, or the iterator is closed
	err            error
	key, value     []byte
	seek           []byte // room for an encoded key
}

// newIter makes an iterator over v, whose generation the caller holds for it.
func newIter(s *store, v *version, r storage.Range) *iter {
	i := &iter{s: s, v: v}
	i.bound(r)
	i.tree = v.tree.Cursor()
	if v.over != nil {
		i.layered = true
		i.over.init(v.over)
	}
	return i
}

// bound sets the bounds, which are the iterator's own memory from then on.
func (i *iter) bound(r storage.Range) {
	lower, upper := bounds(r)
	i.empty = upper != nil && bytes.Compare(lower, upper) >= 0
	if len(lower) > 0 {
		i.lower = etf.AppendBinary(nil, lower)
	}
	if upper != nil {
		i.upper = etf.AppendBinary(nil, upper)
	}
}

// bounds returns a range as the first key in it and the first one behind it, nil if there
// is none.
func bounds(r storage.Range) (lower, upper []byte) {
	lower, upper = r.Start, r.End
	if r.Start != nil && r.StartExclusive {
		lower = next(r.Start)
	}
	if r.End != nil && r.EndInclusive {
		upper = next(r.End)
	}
	return lower, upper
}

// next returns the key right behind key.
func next(key []byte) []byte { return append(bytes.Clone(key), 0) }

// ready begins a call that positions anew. It returns false when there is nothing to walk.
func (i *iter) ready() bool {
	i.valid = false
	if !i.live() {
		return false
	}
	if i.done = i.v == nil || i.empty; i.done {
		return false
	}
	return i.err == nil
}

// live looks whether the store takes calls.
func (i *iter) live() bool {
	if i.s == nil || i.s.state.Load() == stateLive {
		return true
	}
	i.valid = false
	if i.err == nil {
		i.err = i.s.refusal()
	}
	if i.s.state.Load() == stateClosed {
		i.release()
	}
	return false
}

// First implements storage.Iter.
func (i *iter) First() bool { return i.ready() && i.begin(i.lower) }

// Last implements storage.Iter.
func (i *iter) Last() bool { return i.ready() && i.finish(i.upper) }

// SeekGE implements storage.Iter.
func (i *iter) SeekGE(key []byte) bool {
	if !i.ready() {
		return false
	}
	at := i.encode(key)
	if i.lower != nil && bytes.Compare(key, i.lower[binaryHead:]) < 0 {
		at = i.lower
	}
	return i.begin(at)
}

// SeekLT implements storage.Iter.
func (i *iter) SeekLT(key []byte) bool {
	if !i.ready() {
		return false
	}
	at := i.encode(key)
	if i.upper != nil && bytes.Compare(key, i.upper[binaryHead:]) > 0 {
		at = i.upper
	}
	return i.finish(at)
}

func (i *iter) encode(key []byte) []byte {
	i.seek = etf.AppendBinary(i.seek[:0], key)
	return i.seek
}

// begin goes to the first row that is not before at, nil for the first of all.
func (i *iter) begin(at []byte) bool {
	i.back = false
	if at == nil {
		i.tree.First()
	} else {
		i.tree.SeekGE(at)
	}
	switch {
	case !i.layered:
	case at == nil:
		i.over.first()
	default:
		i.over.seekGE(at)
	}
	return i.pick()
}

// finish goes to the last row before at, nil for the last of all.
func (i *iter) finish(at []byte) bool {
	i.back = true
	if at == nil {
		i.tree.Last()
	} else {
		i.tree.SeekLT(at)
	}
	switch {
	case !i.layered:
	case at == nil:
		i.over.last()
	default:
		i.over.seekLT(at)
	}
	return i.pick()
}

// Next implements storage.Iter.
func (i *iter) Next() bool { return i.live() && i.valid && i.move(false) }

// Prev implements storage.Iter.
func (i *iter) Prev() bool { return i.live() && i.valid && i.move(true) }

func (i *iter) move(back bool) bool {
	if i.layered && i.back != back {
		i.turn(back)
	}
	i.back = back
	i.advance()
	return i.pick()
}

// turn moves whoever does not stand at the current row to the other side of it.
func (i *iter) turn(back bool) {
	if !i.onTree {
		switch {
		case i.tree.Valid() && back:
			i.tree.Prev()
		case i.tree.Valid():
			i.tree.Next()
		case back:
			i.tree.Last()
		default:
			i.tree.First()
		}
	}
	if !i.onOver {
		switch {
		case i.over.valid && back:
			i.over.prev()
		case i.over.valid:
			i.over.next()
		case back:
			i.over.last()
		default:
			i.over.first()
		}
	}
}

// advance moves those who stand at the current row on.
func (i *iter) advance() {
	if i.onTree {
		if i.back {
			i.tree.Prev()
		} else {
			i.tree.Next()
		}
	}
	if i.onOver {
		if i.back {
			i.over.prev()
		} else {
			i.over.next()
		}
	}
}

// pick makes the nearest row of the two the current one. Deletions are passed over.
func (i *iter) pick() bool {
	for {
		i.onTree, i.onOver = i.tree.Valid(), i.over.valid
		if !i.onTree && i.tree.Err() != nil {
			return i.fail(i.tree.Err())
		}
		if !i.onTree && !i.onOver {
			return i.end()
		}
		if i.onTree {
			var err error
			if i.key, err = userBytes(i.tree.Key()); err != nil {
				return i.fail(err)
			}
		}
		var over entry
		if i.onOver {
			over = i.over.entry()
			i.choose(over.user())
		}
		if i.beyond() {
			return i.end()
		}
		if !i.onOver {
			var err error
			if i.value, err = userBytes(i.tree.Value()); err != nil {
				return i.fail(err)
			}
			i.valid = true
			return true
		}
		if over.value != nil {
			i.value = over.value[binaryHead:]
			i.valid = true
			return true
		}
		i.advance()
	}
}

// choose decides between the tree's row, if it has one, and that of the overlay.
func (i *iter) choose(overKey []byte) {
	if i.onTree {
		c := bytes.Compare(i.key, overKey)
		if i.back {
			c = -c
		}
		i.onTree, i.onOver = c <= 0, c >= 0
	}
	if i.onOver {
		i.key = overKey
	}
}

// beyond reports whether the current key lies outside the range, where the walk leads.
func (i *iter) beyond() bool {
	if i.back {
		return i.lower != nil && bytes.Compare(i.key, i.lower[binaryHead:]) < 0
	}
	return i.upper != nil && bytes.Compare(i.key, i.upper[binaryHead:]) >= 0
}

// end ends the walk without a row.
func (i *iter) end() bool {
	i.valid, i.done = false, true
	return false
}

func (i *iter) fail(err error) bool {
	i.valid = false
	if i.err = corrupt(err); i.s != nil {
		i.err = i.s.readError(err)
	}
	return false
}

// Valid implements storage.Iter. It stays true when the store is closed under the iterator,
// until the owner moves it.
func (i *iter) Valid() bool { return i.valid }

// Key implements storage.Iter. It is nil without a position.
func (i *iter) Key() []byte {
	if !i.valid {
		return nil
	}
	return i.key
}

// Value implements storage.Iter.
func (i *iter) Value() []byte {
	if !i.valid {
		return nil
	}
	return i.value
}

// encoded returns key and value of the current row as the terms they are.
func (i *iter) encoded() (key, value []byte) {
	if i.onOver {
		e := i.over.entry()
		return e.key, e.value
	}
	return i.tree.Key(), i.tree.Value()
}

// Err implements storage.Iter. A walk that came to its end before the store was closed or
// parked stays without error.
func (i *iter) Err() error {
	if i.err == nil && !i.done {
		if err := i.s.refusal(); err != nil {
			return err
		}
	}
	return i.err
}

// Close implements storage.Iter.
func (i *iter) Close() error {
	i.err = i.Err()
	i.release()
	i.valid, i.done = false, true
	return i.err
}

// release gives up what the iterator holds. Its cursors go too, lest an iterator that
// nobody needs any more keep nodes and an overlay alive.
func (i *iter) release() {
	if i.v == nil {
		return
	}
	v := i.v
	i.v, i.tree, i.over, i.layered = nil, nil, overCursor{}, false
	i.s.iters.Add(-1)
	v.gen.release()
}
