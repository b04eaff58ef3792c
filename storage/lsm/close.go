package lsm

import (
	"maps"
	"slices"
	"time"

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
		return failed(storage.ErrClosed)
	}
	close(s.closing)
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
	s.ops.printf("closed")

	safe := false // whether what can fail from here on loses nothing
	if quiet && s.cause() == nil {
		safe = s.settle()
	}
	var err error
	if iters == 0 {
		err = s.finish()
	} else {
		err = s.part()
	}
	if before == stateParked {
		return nil // its owner knows; nothing was lost now
	}
	if cause := s.cause(); cause != nil && !safe {
		err = cause
	} else if cause != nil {
		s.log(LevelError, "close: "+cause.Error())
		err = nil
	}
	if err != nil {
		return failedf("close %s: %w", s.dir, bare(err))
	}
	return nil
}

// Bounds of the flush in Close. Beyond them the log is left to the next Open,
// durable and with a clean end.
const (
	maxClosingFlush     = 128 << 20 // bytes of memtables
	maxClosingFlushTime = 4 * time.Second
)

// settle makes everything durable, and then tries to flush it to tables: a log
// is replayed at the next Open, costs room on the disk, and shows damage less
// well than a table. It reports whether everything is durable.
func (s *store) settle() (durable bool) {
	if !s.written.Load() {
		return true // the log is empty
	}
	var err error
	if !s.bounded(func() { err = s.db.LogData(nil, pebble.Sync) }) || err != nil || s.cause() != nil {
		return false
	}
	s.bounded(s.flushForClose)
	return true
}

// flushForClose flushes the memtables unless that would take long or fails.
func (s *store) flushForClose() {
	timer := time.NewTimer(maxClosingFlushTime)
	defer timer.Stop()
	tick := time.NewTicker(pollStall)
	defer tick.Stop()
	// Asked for a flush now, pebble might wait for another one, for as long as
	// that takes.
	for s.wouldStall() {
		select {
		case <-tick.C:
		case <-timer.C:
			return
		case <-s.flushFailed:
			return
		case <-s.parked:
			return
		}
	}
	if s.flushFailures.Load() > 0 || s.db.Metrics().MemTable.Size > maxClosingFlush {
		return
	}
	flushed, err := s.db.AsyncFlush()
	if err != nil {
		return
	}
	select {
	case <-flushed:
	case <-timer.C:
	case <-s.flushFailed:
	case <-s.parked:
	}
}

// pollStall is how often Close looks whether a flush under way has ended.
const pollStall = 10 * time.Millisecond

// wouldStall reports whether pebble would hold up a writer now.
func (s *store) wouldStall() bool {
	m := s.db.Metrics()
	return m.MemTable.Size >= stopWritesBuffers*s.bufferBytes || m.Levels[0].Sublevels >= stopWritesSublevels
}

// tidy removes the logs that pebble, closed now, has kept to use them again, and
// gives back what was preallocated for the last one.
func (s *store) tidy() {
	fs := s.engine.fs
	least, err := checkManifest(fs, s.dir, mark{})
	if err != nil {
		return // Open will say so
	}
	logs, _ := listLogs(fs, s.dir)
	for _, num := range logs {
		path := fs.PathJoin(s.dir, logName(num))
		if num < least {
			_ = s.fence.Remove(path)
		} else {
			s.fence.trim(path)
		}
	}
}

// part gives the directory back while pebble stays open for iterators.
func (s *store) part() error {
	s.bounded(s.ops.flush)
	s.fence.barrier()
	s.fence.synced.close(s.cause() == nil)
	err := s.fence.unlock()
	s.engine.open.Leave(s.dir)
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
	} else if err == nil {
		s.tidy() // the fence is up if there was a cause
	}
	if cerr := s.release(); err == nil {
		err = cerr
	}
	return err
}

// release gives back what the fence holds: the directory, and files that pebble
// left open.
func (s *store) release() error {
	s.bounded(s.ops.flush)
	s.fence.barrier()
	s.fence.synced.close(s.cause() == nil)
	err := s.fence.unlock()
	s.fence.drop()
	s.engine.open.Leave(s.dir)
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
