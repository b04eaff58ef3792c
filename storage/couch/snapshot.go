package couch

import (
	"sync"

	"scanode/storage"
)

// snapshot is a version that somebody keeps.
type snapshot struct {
	s  *store
	mu sync.RWMutex // read-held by those who take v
	v  *version     // nil after Close
}

// Snapshot implements storage.Store.
func (s *store) Snapshot() (storage.Snapshot, error) {
	if err := s.refusal(); err != nil {
		return nil, err
	}
	s.snapshots.Add(1)
	return &snapshot{s: s, v: s.acquire()}, nil
}

// hold returns the version with its generation held once more.
func (sn *snapshot) hold() (*version, error) {
	if err := sn.s.refusal(); err != nil {
		return nil, err
	}
	sn.mu.RLock()
	defer sn.mu.RUnlock()
	if sn.v == nil || !sn.v.gen.hold() {
		return nil, failedf("snapshot: %w", storage.ErrClosed)
	}
	return sn.v, nil
}

// Get implements storage.Reader.
func (sn *snapshot) Get(dst, key []byte) ([]byte, error) {
	v, err := sn.hold()
	if err != nil {
		return dst, err
	}
	defer v.gen.release()
	return sn.s.get(v, dst, key)
}

// NewIter implements storage.Reader.
func (sn *snapshot) NewIter(r storage.Range) (storage.Iter, error) {
	v, err := sn.hold()
	if err != nil {
		return nil, err
	}
	sn.s.iters.Add(1)
	return newIter(sn.s, v, r), nil
}

// Close implements storage.Snapshot.
func (sn *snapshot) Close() error {
	sn.mu.Lock()
	v := sn.v
	sn.v = nil
	sn.mu.Unlock()
	if v != nil {
		sn.s.snapshots.Add(-1)
		v.gen.release()
	}
	switch sn.s.state.Load() {
	case stateParked:
		return nil // Close of the store releases it
	case stateLive:
		if v == nil {
			return failedf("snapshot: %w", storage.ErrClosed)
		}
		return nil
	}
	return sn.s.refusal()
}
