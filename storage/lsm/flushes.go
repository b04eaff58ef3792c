package lsm

import "sync"

// flushes follows the flushes of a store, of which pebble runs one at a time.
// Its methods may be called with pebble's mutex held.
type flushes struct {
	mu     sync.Mutex
	begun  int64         // number of the last one that was begun
	ended  int64         // number of the last one that was begun and has succeeded
	change chan struct{} // closed when one ends; nil if nobody waits
}

// begin is told of a flush that begins.
func (f *flushes) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun++
}

// end is told of a flush that ends.
func (f *flushes) end(ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ok {
		f.ended = f.begun
	}
	if f.change != nil {
		close(f.change)
		f.change = nil
	}
}

// now is the number of the last flush that was begun.
func (f *flushes) now() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.begun
}

// after reports whether a flush that was begun after number n has succeeded, and
// returns a channel that is closed when the next one ends.
func (f *flushes) after(n int64) (done bool, change <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.change == nil {
		f.change = make(chan struct{})
	}
	return f.ended > n, f.change
}

// giveBackFlushed gives back the share of a large batch that was applied. One of
// half a write buffer or more stays in memory as it is until it is flushed, and
// keeps its share as long: until a flush that began after it has ended, or nothing
// waits for one.
func (s *store) giveBackFlushed(size uint64, giveBack func()) {
	if 2*size < s.bufferBytes {
		giveBack()
		return
	}
	n := s.flushes.now()
	go func() {
		defer giveBack()
		for {
			done, change := s.flushes.after(n)
			if done || s.unflushed() <= 1 {
				return
			}
			select {
			case <-change:
			case <-s.parked:
				return
			case <-s.quit:
				return
			}
		}
	}()
}

// unflushed is the number of write buffers and large batches that are not
// flushed, the write buffer in use among them; 0 if the store takes no calls.
func (s *store) unflushed() (n int64) {
	if s.enter() != nil {
		return 0
	}
	defer s.leave()
	var err error
	defer s.guard(&err) // parked then, and 0
	return s.db.Metrics().MemTable.Count
}
