package lsm

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"scanode/storage"
)

// Close implements storage.Store.
//
// Iterators may still be open, and their owners may be reading the slices they
// returned. So Close does not touch them: it makes everything durable, puts the
// fence up, gives the directory back, and leaves pebble itself to the owner of
// the last iterator, who closes it with his next call. Behind the fence that
// cannot disturb whoever has the directory then.
func (s *store) Close() error {
	before := s.state.Swap(stateClosed)
	if before == stateClosed {
		return fmt.Errorf("lsm: %w", storage.ErrClosed)
	}
	quiet := s.bounded(func() {
		s.calls.Lock() // once nobody is in, nobody comes in
		s.calls.Unlock()
	})
	if !quiet {
		// Somebody is in pebble and does not come out. Closing it would free
		// the memory under him; it is lost instead.
		s.abandoned.Store(true)
	}
	close(s.quit)
	s.mu.Lock()
	snapshots := slices.Collect(maps.Keys(s.snapshots))
	iters := s.iters
	s.mu.Unlock()
	s.bounded(func() {
		for _, sn := range snapshots {
			_ = sn.release() // its owner may have been faster
		}
	})

	var err error
	if iters == 0 {
		err = s.finish()
	} else {
		err = s.part()
	}
	if before == stateParked {
		return nil // its owner knows; nothing was lost now
	}
	if cause := s.cause(); cause != nil {
		err = cause
	}
	if err != nil {
		return fmt.Errorf("lsm: close %s: %w", s.dir, err)
	}
	return nil
}

// part gives the directory back while pebble stays open for iterators.
func (s *store) part() error {
	var err error
	if s.cause() == nil {
		s.bounded(func() { err = s.db.LogData(nil, pebble.Sync) })
	}
	s.fence.barrier()
	if uerr := s.fence.unlock(); err == nil {
		err = uerr
	}
	s.engine.unregister(s.dir)
	s.mu.Lock()
	s.lingering = s.iters > 0
	last := !s.lingering
	s.mu.Unlock()
	if last {
		_ = s.finish() // nothing it writes is written
	}
	return err
}

// finish closes pebble and gives the directory back if part has not done so.
func (s *store) finish() error {
	var err error
	done := !s.abandoned.Load() && s.bounded(func() { err = s.db.Close() })
	if !done {
		// Pebble lost a lock to a failure and will not come back. Its memory
		// and goroutines are lost, its files and the directory are not.
		s.member.Unregister()
	}
	if cerr := s.release(); err == nil {
		err = cerr
	}
	return err
}

// release gives back what the fence holds: the directory, and files that pebble
// left open.
func (s *store) release() error {
	s.fence.barrier()
	err := s.fence.unlock()
	s.fence.drop()
	s.engine.unregister(s.dir)
	return err
}

// discard cleans up after a failed Open.
func (s *store) discard() {
	s.state.Store(stateClosed)
	close(s.quit)
	s.fence.up.Store(true)
	if s.db != nil {
		s.bounded(func() { _ = s.db.Close() })
	}
	s.member.Unregister()
	_ = s.release()
}

// forget counts an iterator of pebble's out, and closes pebble after the last
// one of a closed store.
func (s *store) forget() {
	s.mu.Lock()
	s.iters--
	last := s.lingering && s.iters == 0
	s.mu.Unlock()
	if last {
		_ = s.finish()
	}
}
