package server

import (
	"errors"
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

	mu      sync.Mutex
	closing bool
	users   sync.WaitGroup // calls and streams under way
	streams map[*stream]struct{}
	handles map[*handle]struct{}
}

func newStore(s *Server, dir string, link *Link, orphan time.Duration) *store {
	st := &store{s: s, dir: dir, link: link, streams: map[*stream]struct{}{}, handles: map[*handle]struct{}{}}
	st.writes.store = st
	st.lease.orphan = orphan
	st.lease.expire = func() { s.closeAll([]*store{st}, "its opener is dead and nobody used it") }
	return st
}

// view is what an id names, in use: a store, or a handle of one.
type view struct {
	*store
	source scan.Source
	handle *handle // nil for the store itself
}

// acquire finds the store or the snapshot that id names and keeps its store open
// until release.
func (s *Server) acquire(id int64) (view, error) {
	v, err := s.acquireAny(id)
	if err == nil && v.handle != nil && v.handle.kind == kindIterator {
		v.release()
		return view{}, reasonf(tagBadRequest, "%d is an iterator's id, not a store's or a snapshot's", id)
	}
	return v, err
}

// acquireAny finds whatever id names and keeps its store open until release.
func (s *Server) acquireAny(id int64) (view, error) {
	s.mu.Lock()
	v := view{store: s.stores[id], handle: s.handles[id]}
	s.mu.Unlock()
	if v.handle != nil {
		v.store = v.handle.store
	}
	if v.store == nil {
		return view{}, errClosed
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closing {
		return view{}, errClosed
	}
	v.source = v.db
	if h := v.handle; h != nil {
		if _, open := v.store.handles[h]; !open {
			return view{}, errClosed
		}
		h.view.hold()
		h.lease.hold(+1)
		v.source = h.view
	}
	v.users.Add(1)
	v.lease.hold(+1)
	return v, nil
}

func (v view) release() {
	if h := v.handle; h != nil {
		h.lease.hold(-1)
		if err := h.view.letGo(); err != nil && !errors.Is(err, storage.ErrClosed) {
			v.s.log.Error("closing a snapshot", "dir", v.dir, "error", err)
		}
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

// close ends the store's scans and handles, waits for calls under way, flushes
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
	var handles []*handle // none is added from here on
	for h := range st.handles {
		handles = append(handles, h)
		if h.iterator != nil {
			h.iterator.cursor.Cancel(errClosed)
		}
	}
	st.mu.Unlock()

	st.lease.end()
	st.users.Wait()
	for _, h := range handles {
		_ = h.close() // errClosed: somebody else was faster
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
