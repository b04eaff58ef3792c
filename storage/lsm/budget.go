package lsm

import (
	"container/list"
	"sync"
)

// budget shares a number of bytes among the large batches of all stores of an
// engine. Pebble copies a batch, copies it again for the log, and keeps batches
// of half a write buffer or more as they are until they are flushed: without a
// bound many at once would take several times their size.
//
// Batches get their share in the order in which they ask.
type budget struct {
	total int64

	mu    sync.Mutex
	used  int64
	queue list.List // of *claim
}

// claim is somebody who waits.
type claim struct {
	bytes int64
	given chan struct{} // closed when the bytes are his
}

// take waits for bytes, or for all there are when that is less, and returns the
// function that gives them back. It returns nil when stop is closed before.
func (b *budget) take(bytes int64, stop <-chan struct{}) (giveBack func()) {
	bytes = min(bytes, b.total)
	c := &claim{bytes: bytes, given: make(chan struct{})}
	b.mu.Lock()
	e := b.queue.PushBack(c)
	b.grant()
	b.mu.Unlock()
	select {
	case <-c.given:
		return func() { b.give(bytes) }
	case <-stop:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-c.given:
		b.used -= bytes
	default:
		b.queue.Remove(e)
	}
	b.grant() // those behind may fit now
	return nil
}

func (b *budget) give(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= bytes
	b.grant()
}

// grant serves the first claims in the queue. b.mu must be held.
func (b *budget) grant() {
	for e := b.queue.Front(); e != nil; e = b.queue.Front() {
		c := e.Value.(*claim)
		if b.used+c.bytes > b.total {
			return
		}
		b.used += c.bytes
		b.queue.Remove(e)
		close(c.given)
	}
}
