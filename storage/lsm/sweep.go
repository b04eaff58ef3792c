package lsm

import (
	"bytes"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Expired rows are hidden at once; their space comes back by a sweep, which
// deletes them as a caller would. Tables say from when on their rows are, so that a
// sweep reads only blocks that hold an old row, and rows in memory.
//
// A sweep goes through the keys in short steps. In a step writers wait: a row that
// is found expired must not be written anew before it is deleted. Deletions hide
// all older versions, so nothing shows through them.
const (
	sweepRows  = 512     // rows that a step looks at
	sweepBytes = 1 << 20 // bytes of keys that it takes
	// Expired rows beside each other are deleted together from this many on. With
	// whole_file_expiry others stay where they are, hidden, until their neighbours
	// have expired as well.
	sweepRun = 64
	// A sweep is due a tenth of the limit after the last one, within these bounds.
	sweepShare                         = 10
	minSweepInterval, maxSweepInterval = time.Minute, time.Hour
)

// sweeper sweeps from time to time until the store is closed.
func (s *store) sweeper() {
	every := min(max(time.Duration(s.expiry.limit)*time.Microsecond/sweepShare, minSweepInterval), maxSweepInterval)
	timer := time.NewTimer(every)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-s.sweepNow:
		case <-s.parked:
			return
		case <-s.quit:
			return
		}
		if n, err := s.sweep(); err != nil {
			s.log(LevelError, "sweep of expired rows: "+err.Error())
			s.ops.printf("Expiry error: %v", err)
		} else if n > 0 {
			s.log(LevelInfo, fmt.Sprintf("%d expired rows deleted", n))
		}
		timer.Reset(every)
	}
}

// sweep deletes the rows that are expired now and returns how many it deleted.
func (s *store) sweep() (deleted int, err error) {
	cutoff := s.expiry.cutoff()
	if cutoff == 0 {
		return 0, nil
	}
	var from []byte // a stored key
	for {
		next, n, err := s.sweepStep(from, cutoff)
		deleted += n
		if next == nil || err != nil {
			return deleted, err
		}
		from = next
	}
}

// sweepStep looks for an expired row at or behind from and deletes those that it
// finds there. next is where to go on; nil at the end.
func (s *store) sweepStep(from []byte, cutoff uint64) (next []byte, deleted int, err error) {
	if err := s.enter(); err != nil {
		return nil, 0, err
	}
	defer s.leave()
	defer s.guard(&err)
	candidate, err := s.candidate(from, cutoff)
	if candidate == nil || err != nil {
		return nil, 0, err
	}
	if s.wouldStall() {
		return nil, 0, nil // it would keep writers waiting; the next sweep comes
	}
	s.writers.Lock()
	defer s.writers.Unlock()
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: candidate})
	if err != nil {
		return nil, 0, s.translate(err)
	}
	defer func() {
		if cerr := it.Close(); err == nil {
			err = s.translate(cerr)
		}
	}()
	b := s.db.NewBatch()
	defer b.Close()
	step := sweepBatch{b: b, runsOnly: s.wholeFile}
	next = append(bytes.Clone(candidate), 0)
	ok := it.First()
	for n, size := 0, 0; ok && n < sweepRows && size < sweepBytes; n++ {
		v, err := it.ValueAndErr()
		if err != nil {
			return nil, 0, s.translate(err)
		}
		size += len(it.Key())
		if written, ok := timeOf(v); ok && written <= cutoff {
			step.expired(it.Key())
		} else if err := step.endRun(it.Key()); err != nil {
			return nil, 0, err
		}
		next = append(append(next[:0], it.Key()...), 0)
		ok = it.Next()
	}
	if err := step.endRun(next); err != nil || step.deleted == 0 {
		return next, 0, err
	}
	s.written.Store(true)
	if err := s.db.Apply(b, pebble.NoSync); err != nil {
		return nil, 0, s.translate(err)
	}
	if cause := s.cause(); cause != nil {
		return nil, 0, cause
	}
	return next, step.deleted, nil
}

// candidate returns the first key at or behind from that may be an expired row, or
// nil.
func (s *store) candidate(from []byte, cutoff uint64) (key []byte, err error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: from, PointKeyFilters: writtenUntil(cutoff)})
	if err != nil {
		return nil, s.translate(err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.ValueAndErr()
		if err != nil {
			break // the iterator has it too
		}
		if written, ok := timeOf(v); ok && written <= cutoff {
			key = bytes.Clone(it.Key())
			break
		}
		if s.state.Load() != stateLive {
			break
		}
	}
	return key, s.translate(it.Close())
}

// sweepBatch gathers the deletions of a step.
type sweepBatch struct {
	b        *pebble.Batch
	runsOnly bool
	run      [][]byte // expired rows beside each other
	deleted  int
}

func (w *sweepBatch) expired(key []byte) { w.run = append(w.run, bytes.Clone(key)) }

// endRun deletes the run; end is the key behind it.
func (w *sweepBatch) endRun(end []byte) error {
	run := w.run
	w.run = w.run[:0]
	switch {
	case len(run) >= sweepRun:
		w.deleted += len(run)
		return w.b.DeleteRange(run[0], end, nil)
	case w.runsOnly:
		return nil
	}
	w.deleted += len(run)
	for _, key := range run {
		if err := w.b.Delete(key, nil); err != nil {
			return err
		}
	}
	return nil
}
