package lsm

import (
	"bytes"
	"fmt"
	"math"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Expired rows are hidden at once; their space comes back by a sweep, which reads
// all rows and deletes those that are expired, as a caller would. Sweeps are a tenth
// of the limit apart, or as far as no row can have expired: a row is read about ten
// times in its life.
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
	sweepRun  = 64
	sweepLook = 64 << 10 // rows that are looked at through one iterator
	// A sweep is due a tenth of the limit after the last one, but not sooner than
	// this.
	sweepShare       = 10
	minSweepInterval = time.Minute
)

// sweeper sweeps from time to time until the store is closed.
func (s *store) sweeper() {
	every := s.expiry.sweepInterval()
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
		n, oldest, err := s.sweep()
		if s.state.Load() != stateLive {
			return
		}
		if err != nil {
			s.log(LevelError, "sweep of expired rows: "+err.Error())
			s.ops.printf("Expiry error: %v", err)
		} else if n > 0 {
			s.log(LevelInfo, fmt.Sprintf("%d expired rows deleted", n))
		}
		next := every
		if err == nil {
			next = s.expiry.nextSweep(oldest)
		}
		timer.Reset(next)
	}
}

// sweepInterval is how far sweeps are apart where rows expire all the time.
func (x *expiry) sweepInterval() time.Duration {
	return max(time.Duration(x.limit/sweepShare)*time.Microsecond, minSweepInterval)
}

// nextSweep is when to sweep again after one that left oldest: when the first row
// can have expired. Whatever oldest is, that is within the limit: the next row to
// be written expires then.
func (x *expiry) nextSweep(oldest uint64) time.Duration {
	left := min(int64(max(oldest, x.cutoff())-x.cutoff()), x.limit, math.MaxInt64/int64(time.Microsecond))
	return max(time.Duration(left)*time.Microsecond, x.sweepInterval())
}

// sweep deletes the rows that are expired now and returns how many it deleted, and
// a time at or before which no row that it left was written but those that stay
// with their neighbours; of an empty store a large one, of a sweep that was cut
// short one that is expired.
func (s *store) sweep() (deleted int, oldest uint64, err error) {
	w := sweep{s: s, cutoff: s.expiry.cutoff(), oldest: math.MaxInt64}
	for from := []byte(nil); w.cutoff > 0; {
		if from, err = w.step(from); from == nil || err != nil {
			break
		}
	}
	return w.deleted, w.oldest, err
}

// sweep is one sweep under way.
type sweep struct {
	s       *store
	cutoff  uint64
	oldest  uint64
	deleted int
}

// step looks for an expired row at or behind from, a stored key, and deletes those
// that it finds there. next is where to go on; nil at the end.
func (w *sweep) step(from []byte) (next []byte, err error) {
	s := w.s
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	defer s.guard(&err)
	at, found, err := w.look(from)
	if !found || err != nil {
		return at, err
	}
	if s.wouldStall() {
		w.oldest = w.cutoff
		return nil, nil // it would keep writers waiting; the next sweep comes
	}
	s.writers.Lock()
	defer s.writers.Unlock()
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: at})
	if err != nil {
		return nil, s.translate(err)
	}
	b := s.db.NewBatch()
	defer b.Close()
	gathered := sweepBatch{b: b, runsOnly: s.wholeFile}
	next, err = w.gather(it, &gathered)
	if cerr := it.Close(); err == nil {
		err = s.translate(cerr)
	}
	if err != nil || gathered.deleted == 0 {
		return next, err
	}
	s.written.Store(true)
	if err := s.db.Apply(b, pebble.NoSync); err != nil {
		return nil, s.translate(err)
	}
	w.deleted += gathered.deleted
	return next, s.cause()
}

// look returns the first expired row at or behind from, or where to look on.
func (w *sweep) look(from []byte) (at []byte, found bool, err error) {
	it, err := w.s.db.NewIter(&pebble.IterOptions{LowerBound: from})
	if err != nil {
		return nil, false, w.s.translate(err)
	}
	rows := 0
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.ValueAndErr()
		if err != nil {
			break // Close has it too
		}
		written, timed := timeOf(v)
		if found = timed && written <= w.cutoff; found || rows == sweepLook {
			at = bytes.Clone(it.Key())
			break
		}
		if timed {
			w.oldest = min(w.oldest, written)
		}
		if rows++; w.s.state.Load() != stateLive {
			break
		}
	}
	return at, found, w.s.translate(it.Close())
}

// gather goes through the rows of a step. next is where to go on; nil at the end.
func (w *sweep) gather(it *pebble.Iterator, b *sweepBatch) (next []byte, err error) {
	ok := it.First()
	for n, size := 0, 0; ok && n < sweepRows && size < sweepBytes; n++ {
		v, err := it.ValueAndErr()
		if err != nil {
			return nil, w.s.translate(err)
		}
		size += len(it.Key())
		written, timed := timeOf(v)
		if timed && written <= w.cutoff {
			b.expired(it.Key())
		} else if err := b.endRun(it.Key()); err != nil {
			return nil, err
		} else if timed {
			w.oldest = min(w.oldest, written)
		}
		next = append(append(next[:0], it.Key()...), 0)
		ok = it.Next()
	}
	return next, b.endRun(next)
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
