package lsm

import (
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"scanode/storage"
)

// snapshot is a view of a store. Lock order: store.calls, snapshot.mu,
// store.mu.
type snapshot struct {
	s      *store
	mu     sync.RWMutex // read-held by calls into sn
	sn     *pebble.Snapshot
	closed bool // sn must not be used any more; belongs to mu
}

// Snapshot implements storage.Store.
func (s *store) Snapshot() (_ storage.Snapshot, err error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	defer s.guard(&err)
	sn := &snapshot{s: s, sn: s.db.NewSnapshot()}
	s.mu.Lock()
	s.snapshots[sn] = struct{}{}
	s.mu.Unlock()
	return sn, nil
}

// enter begins a call; leave must follow when it returns nil.
func (sn *snapshot) enter() error {
	if err := sn.s.enter(); err != nil {
		return err
	}
	sn.mu.RLock()
	if sn.closed {
		sn.leave()
		return failedf("snapshot: %w", storage.ErrClosed)
	}
	return nil
}

func (sn *snapshot) leave() {
	sn.mu.RUnlock()
	sn.s.leave()
}

// Get implements storage.Reader.
func (sn *snapshot) Get(dst, key []byte) ([]byte, error) {
	if err := sn.enter(); err != nil {
		return dst, err
	}
	defer sn.leave()
	return sn.s.get(sn.sn, dst, key)
}

// NewIter implements storage.Reader.
func (sn *snapshot) NewIter(r storage.Range) (storage.Iter, error) {
	if err := sn.enter(); err != nil {
		return nil, err
	}
	defer sn.leave()
	return sn.s.newIter(sn.sn, r)
}

// Close implements storage.Snapshot.
func (sn *snapshot) Close() error {
	switch sn.s.state.Load() {
	case stateLive:
		if err := sn.s.enter(); err == nil {
			defer sn.s.leave()
			return sn.release()
		}
	case stateParked:
		return nil // Close of the store releases it
	}
	return sn.s.refusal()
}

// release ends the view.
func (sn *snapshot) release() (err error) {
	sn.mu.Lock()
	defer sn.mu.Unlock()
	if sn.closed {
		return failedf("snapshot: %w", storage.ErrClosed)
	}
	sn.closed = true
	sn.s.mu.Lock()
	delete(sn.s.snapshots, sn)
	sn.s.mu.Unlock()
	defer sn.s.guard(&err)
	return sn.s.translate(sn.sn.Close())
}
