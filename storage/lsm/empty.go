package lsm

import (
	"bytes"
	"context"

	"github.com/cockroachdb/pebble/v2"

	"scanode/storage"
)

// IsEmpty implements storage.Store. It looks for the first row. In front of it lie
// deletions that no compaction has taken away yet, and rows that are expired; they
// are passed over. When these were many, they are cleaned up in the background, so
// that the next call, or the next walk, meets few: what a call costs is bounded by
// what was deleted since the last one.
func (s *store) IsEmpty() (bool, error) {
	if err := s.enter(); err != nil {
		return false, err
	}
	defer s.leave()
	one, err := s.newIter(s.db, storage.Range{})
	if err != nil {
		return false, err
	}
	it := one.(*iter)
	empty := !it.First()
	var end []byte // the stored form of the first key; nil at the end of the store
	passed := 0
	if it.it != nil {
		stats := it.it.Stats()
		passed = stats.ForwardStepCount[pebble.InternalIterCall] + int(stats.InternalStats.PointCount)
		if !empty {
			end = bytes.Clone(it.it.Key())
		}
	}
	if err := it.Close(); err != nil {
		return false, err
	}
	if passed > manyPassed {
		s.tidyBelow(end)
	}
	return empty, nil
}

// manyPassed is how many deletions IsEmpty passes over without having them cleaned
// up: some milliseconds.
const manyPassed = 10_000

// tidyBelow has the deletions below end, a stored key, cleaned up in the
// background: expired rows by a sweep, deletions by a compaction of these keys. One
// such compaction runs at a time in a store.
func (s *store) tidyBelow(end []byte) {
	select {
	case s.sweepNow <- struct{}{}:
	default:
	}
	if !s.tidying.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer s.tidying.Store(false)
		if s.enter() != nil {
			return
		}
		defer s.leave()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		go func() {
			select {
			case <-s.closing:
				cancel()
			case <-s.parked:
				cancel()
			case <-ctx.Done():
			}
		}()
		var err error
		defer s.guard(&err)
		if end == nil {
			s.flushOnce()
			if end = s.lastPossible(); end == nil {
				return
			}
		}
		if err = s.db.Compact(ctx, []byte{0}, end, false); err != nil && ctx.Err() == nil {
			s.ops.printf("Compaction error: %v", err)
		}
	}()
}

// flushOnce flushes what is in memory, unless that has to wait.
func (s *store) flushOnce() {
	if s.wouldStall() {
		return
	}
	flushed, err := s.db.AsyncFlush()
	if err != nil {
		return
	}
	select {
	case <-flushed:
	case <-s.closing:
	case <-s.parked:
	}
}

// lastPossible is a key behind all that tables hold, nil if there are none.
func (s *store) lastPossible() (end []byte) {
	levels, err := s.db.SSTables()
	if err != nil {
		return nil // no more than a chance to tidy is lost
	}
	for _, tables := range levels {
		for _, t := range tables {
			if k := t.Largest.UserKey; bytes.Compare(k, end) >= 0 {
				end = append(bytes.Clone(k), 0)
			}
		}
	}
	return end
}
