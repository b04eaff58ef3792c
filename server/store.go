package server

import (
	"sync"
	"sync/atomic"
	"time"

	"scanode/storage"
)

// store is an open store: the engine's, who opened it, and who uses it now.
//
// It lives until somebody closes it, until its opener's BEAM is gone, until its
// directory is opened anew after its opener's death, or until nobody has used it
// for orphan after that.
type store struct {
	s      *Server
	id     int64
	dir    string
	db     storage.Store
	link   *Link // of the opener
	orphan time.Duration
	writes writeQueue
	used   atomic.Int64 // time of the last use

	mu       sync.Mutex
	orphaned bool // the opener is dead
	timer    *time.Timer
	unwatch  func()
	closing  bool
	users    sync.WaitGroup // calls and streams under way
	streams  map[*stream]struct{}
}

// acquire finds an open store and keeps it open until release.
func (s *Server) acquire(id int64) (*store, error) {
	s.mu.Lock()
	st := s.stores[id]
	s.mu.Unlock()
	if st == nil {
		return nil, errClosed
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.closing {
		return nil, errClosed
	}
	st.users.Add(1)
	st.used.Store(now())
	return st, nil
}

func (st *store) release() {
	st.used.Store(now())
	st.users.Done()
}

func (st *store) addStream(stream *stream) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if len(st.streams) >= st.s.cfg.Limits.StreamsPerStore {
		return errBusy
	}
	if st.closing {
		return errClosed
	}
	st.streams[stream] = struct{}{}
	return nil
}

func (st *store) removeStream(stream *stream) {
	st.mu.Lock()
	delete(st.streams, stream)
	st.mu.Unlock()
}

// close ends the store's scans, waits for calls under way, flushes and releases
// the directory. Everybody but the first gets errClosed.
func (st *store) close() error {
	st.mu.Lock()
	if st.closing {
		st.mu.Unlock()
		return errClosed
	}
	st.closing = true
	if st.timer != nil {
		st.timer.Stop()
	}
	for stream := range st.streams {
		stream.window.Close(errClosed)
	}
	unwatch := st.unwatch
	st.mu.Unlock()

	st.users.Wait()
	err := st.db.Close()
	s := st.s
	s.mu.Lock()
	delete(s.stores, st.id)
	delete(s.dirs, st.dir)
	s.change.Broadcast()
	s.mu.Unlock()
	unwatch()
	return err
}

// openerDied leaves the store to whoever still uses it, for a while.
func (st *store) openerDied() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.orphaned = true
	if !st.closing && st.orphan >= 0 {
		st.timer = time.AfterFunc(st.orphan, st.checkOrphan)
	}
}

// checkOrphan closes the store if nobody has used it for long enough, and
// otherwise looks again when that may be so.
func (st *store) checkOrphan() {
	st.mu.Lock()
	idle := time.Duration(now() - st.used.Load())
	busy := len(st.streams) > 0
	if st.closing || busy || idle < st.orphan {
		if !st.closing {
			st.timer.Reset(max(st.orphan-idle, time.Second))
		}
		st.mu.Unlock()
		return
	}
	st.mu.Unlock()
	st.s.closeAll([]*store{st}, "its opener is dead and nobody used it")
}

func (st *store) isOrphaned() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.orphaned
}
