package lsm

import (
	"github.com/cockroachdb/pebble/v2"

	"scanode/storage"
)

// iter walks a range. Only its owner touches the pebble iterator, so nothing is
// locked on the way: the state of the store, one atomic load a call, says when
// the walk is over, and the owner then closes the pebble iterator himself. See
// store.Close for the other half.
type iter struct {
	s      *store
	it     *pebble.Iterator // nil for a range without keys and after release
	valid  bool
	moving bool // a call into pebble has not come back
	done   bool // the walk has ended by itself, or the iterator is closed
	err    error
	seek   []byte // room for the stored form of a key sought
}

// newIter makes an iterator of the store or a snapshot, within enter and leave.
func (s *store) newIter(r pebble.Reader, rg storage.Range) (_ storage.Iter, err error) {
	o, empty := bounds(rg)
	if empty {
		return &iter{s: s}, nil
	}
	s.mu.Lock()
	s.iters++
	s.mu.Unlock()
	defer func() {
		if err != nil {
			s.forget()
		}
	}()
	defer s.guard(&err)
	it, err := r.NewIter(&o)
	if err != nil {
		return nil, s.translate(err)
	}
	return &iter{s: s, it: it}, nil
}

// ready begins a call that positions anew. It returns false when there is
// nothing to walk.
func (i *iter) ready() bool {
	if i.s.state.Load() != stateLive {
		i.end()
	}
	i.done = i.it == nil && i.err == nil
	i.moving = i.it != nil && i.err == nil
	return i.moving
}

// landed ends such a call.
func (i *iter) landed(ok bool) bool {
	i.moving = false
	if i.valid = ok; ok {
		return true
	}
	return i.stopped()
}

// end notes that the store takes no more calls. In a closed store it gives the
// pebble iterator back: the caller has no claim to the slices any more.
func (i *iter) end() {
	i.valid = false
	if i.err == nil {
		i.err = i.s.refusal()
	}
	if i.s.state.Load() == stateClosed {
		i.release()
	}
}

// release closes the pebble iterator.
func (i *iter) release() {
	if i.it == nil {
		return
	}
	it := i.it
	i.it = nil
	if i.s.cause() != nil {
		i.s.bounded(func() { _ = it.Close() }) // it may want a lock that was lost
	} else if err := i.closeSafely(it); i.err == nil {
		i.err = i.s.translate(err)
	}
	i.s.forget()
}

func (i *iter) closeSafely(it *pebble.Iterator) (err error) {
	defer i.s.guard(&err)
	return it.Close()
}

// stopped ends a positioning call that found no key.
func (i *iter) stopped() bool {
	i.valid = false
	if i.it == nil || i.err != nil {
		return false // the store ended on the way
	}
	if err := i.it.Error(); err != nil {
		i.err = i.s.translate(err)
		return false
	}
	i.done = true
	return false
}

// failed, deferred, contains a panic of a positioning call. It asks recover,
// which costs as much as a step, only after a call that did not come back.
func (i *iter) failed() {
	if !i.moving {
		return
	}
	i.moving = false
	if r := recover(); r != nil {
		i.valid = false
		i.err = i.s.crashed(r)
	}
}

// First implements storage.Iter.
func (i *iter) First() bool {
	if !i.ready() {
		return false
	}
	defer i.failed()
	return i.landed(i.it.First() && i.forward())
}

// Last implements storage.Iter.
func (i *iter) Last() bool {
	if !i.ready() {
		return false
	}
	defer i.failed()
	return i.landed(i.it.Last() && i.backward())
}

// SeekGE implements storage.Iter.
func (i *iter) SeekGE(key []byte) bool {
	if !i.ready() {
		return false
	}
	defer i.failed()
	return i.landed(i.it.SeekGE(i.sought(key)) && i.forward())
}

// sought returns the stored form of key.
func (i *iter) sought(key []byte) []byte {
	stored := storedKey(i.seek, key)
	if len(stored) > len(key) {
		i.seek = stored
	}
	return stored
}

// SeekLT implements storage.Iter.
func (i *iter) SeekLT(key []byte) bool {
	if !i.ready() {
		return false
	}
	defer i.failed()
	return i.landed(i.it.SeekLT(i.sought(key)) && i.backward())
}

// Next implements storage.Iter.
func (i *iter) Next() bool {
	if i.s.state.Load() != stateLive {
		i.end()
	}
	if !i.valid {
		return false
	}
	i.moving = true
	defer i.failed()
	ok := i.it.Next() && i.forward()
	i.moving = false
	return ok || i.stopped()
}

// Prev implements storage.Iter.
func (i *iter) Prev() bool {
	if i.s.state.Load() != stateLive {
		i.end()
	}
	if !i.valid {
		return false
	}
	i.moving = true
	defer i.failed()
	ok := i.it.Prev() && i.backward()
	i.moving = false
	return ok || i.stopped()
}

// Valid implements storage.Iter. It stays true when the store is closed under
// the iterator, until the owner moves it.
func (i *iter) Valid() bool { return i.valid }

// Key implements storage.Iter. It is nil without a position.
func (i *iter) Key() []byte {
	if !i.valid {
		return nil
	}
	return userKey(i.it.Key())
}

// Value implements storage.Iter.
func (i *iter) Value() []byte {
	if !i.valid {
		return nil
	}
	v, err := i.it.ValueAndErr()
	if err != nil {
		i.valid = false
		i.err = i.s.translate(err)
		return nil
	}
	if i.s.expiry.timed {
		if len(v) < timeBytes {
			i.valid = false
			i.s.corruptBlocks.Add(1)
			i.err = failed(errNoTime)
			return nil
		}
		return v[timeBytes:]
	}
	return v
}

// Written returns when the current row was written, in microseconds since 1970; 0 where
// the store keeps no times, and without a position.
func (i *iter) Written() uint64 {
	if !i.valid || !i.s.expiry.timed {
		return 0
	}
	v, err := i.it.ValueAndErr()
	if err != nil {
		return 0 // Value says why
	}
	written, _ := timeOf(v)
	return written
}

// forward passes over expired rows, and reports whether there is another behind
// them. It and backward are called with pebble on a row.
func (i *iter) forward() bool { return i.s.expiry.limit == 0 || i.pass(i.it.Next) }

// backward is forward in the other direction.
func (i *iter) backward() bool { return i.s.expiry.limit == 0 || i.pass(i.it.Prev) }

// pass steps on until a row is not expired. One that cannot be read ends it, so
// that Value says so.
func (i *iter) pass(step func() bool) bool {
	cutoff := i.s.expiry.cutoff()
	for {
		v, err := i.it.ValueAndErr()
		if written, ok := timeOf(v); err != nil || !ok || written > cutoff {
			return true
		}
		if i.s.state.Load() != stateLive {
			i.end() // in a closed store it gives pebble's iterator back
			return false
		}
		if !step() {
			return false
		}
	}
}

// Err implements storage.Iter. A walk that came to its end before the store was
// closed or parked stays without error.
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
