package server

import (
	"sync"
	"time"

	"scanode/scan"
	"scanode/storage"
)

// store is an open store: the engine's, who opened it, and who uses it now.
//
// It lives until somebody closes it, until its opener's BEAM is gone, until its
// directory is opened anew after its opener's death, or until its lease ends.
type store struct {
	s      *Server
	id     int64
	dir    string
	db     storage.Store
	link   *Link // of the opener
	lease  lease
	writes writeQueue

	mu        sync.Mutex
	closing   bool
	users     sync.WaitGroup // calls and streams under way
	streams   map[*stream]struct{}
	snapshots map[*snapshot]struct{}
}

func newStore(s *Server, dir string, link *Link, orphan time.Duration) *store {
	st := &store{s: s, dir: dir, link: link, streams: map[*stream]struct{}{}, snapshots: map[*snapshot]struct{}{}}
	st.writes.store = st
	st.lease.orphan = orphan
	st.lease.expire = func() { s.closeAll([]*store{st}, "its opener is dead and nobody used it") }
	return st
}

// view is what an id names, in use: a store, or a snapshot of one.
type view struct {
	*store
	source   scan.Source
	snapshot *snapshot // nil for the store itself
}

// acquire finds what id names and keeps its store open until release.
func (s *Server) acquire(id int64) (view, error) {
	s.mu.Lock()
	v := view{store: s.stores[id], snapshot: s.snapshots[id]}
	s.mu.Unlock()
	if v.snapshot != nil {
		v.store = v.snapshot.store
	}
	if v.store == nil {
		return view{}, errClosed
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closing {
		return view{}, errClosed
	}
	v.users.Add(1)
	v.lease.hold(+1)
	v.source = v.db
	if v.snapshot != nil {
		v.snapshot.lease.hold(+1)
		v.source = v.snapshot
	}
	return v, nil
}

func (v view) release() {
	if v.snapshot != nil {
		v.snapshot.lease.hold(-1)
	}
	v.lease.hold(-1)
	v.users.Done()
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

// close ends the store's scans and snapshots, waits for calls under way, flushes
// and releases the directory. Everybody but the first gets errClosed.
func (st *store) close() error {
	st.mu.Lock()
	if st.closing {
		st.mu.Unlock()
		return errClosed
	}
	st.closing = true
	for stream := range st.streams {
		stream.window.Close(errClosed)
	}
	var snapshots []*snapshot
	for snap := range st.snapshots {
		snapshots = append(snapshots, snap)
	}
	st.mu.Unlock()

	st.lease.end()
	st.users.Wait()
	for _, snap := range snapshots {
		_ = snap.close() // errClosed: somebody else was faster
	}
	err := st.db.Close()
	s := st.s
	s.mu.Lock()
	delete(s.stores, st.id)
	delete(s.dirs, st.dir)
	s.change.Broadcast()
	s.mu.Unlock()
	return err
}

func (st *store) isClosing() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.closing
}
