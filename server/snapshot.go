package server

import (
	"time"

	"scanode/etf"
	"scanode/storage"
)

// maxSnapshots bounds the snapshots of one store; each keeps files alive that
// compaction would remove.
const maxSnapshots = 1024

// snapshot is an unchanging view of a store with an id of its own, under which it
// can be read and scanned. It ends with its store, by close, or when its maker is
// dead and it was not used for a while.
type snapshot struct {
	storage.Reader
	inner storage.Snapshot // the Reader
	store *store
	id    int64
	lease lease
}

// Snapshot makes a snapshot a scan.Source of several ranges: it is its own view.
func (sn *snapshot) Snapshot() (storage.Snapshot, error) { return sameView{sn}, nil }

// sameView is a view that is not closed with the scan.
type sameView struct{ storage.Reader }

func (sameView) Close() error { return nil }

// snapshot answers {snapshot, Id}.
func (c *call) snapshot() {
	id, _, err := readIDAndRest(c.arg())
	if err != nil {
		c.fail(err)
		return
	}
	v, err := c.link.s.acquire(id)
	if err != nil {
		c.fail(err)
		return
	}
	defer v.release()
	sn, err := c.newSnapshot(v)
	if err != nil {
		c.fail(err)
		return
	}
	sn.lease.watch(c.link.peer, c.to.pid)
	reply := etf.AppendAtom(etf.AppendTupleHeader(c.begin(16), 2), "ok")
	c.send(etf.AppendInt64(reply, sn.id))
}

func (c *call) newSnapshot(v view) (*snapshot, error) {
	if v.snapshot != nil {
		return nil, reasonf(tagBadRequest, "a snapshot cannot be made of a snapshot")
	}
	inner, err := v.db.Snapshot()
	if err != nil {
		return nil, err
	}
	sn := &snapshot{Reader: inner, inner: inner, store: v.store}
	sn.lease.orphan = defaultOrphanMs * time.Millisecond
	sn.lease.expire = func() { _ = sn.close() }
	v.mu.Lock()
	full := len(v.snapshots) >= maxSnapshots
	if !full {
		v.snapshots[sn] = struct{}{}
	}
	v.mu.Unlock()
	if full {
		_ = inner.Close()
		return nil, errBusy
	}
	s := v.s
	s.mu.Lock()
	sn.id = s.newID()
	s.snapshots[sn.id] = sn
	s.mu.Unlock()
	return sn, nil
}

// close releases the view. Everybody but the first gets errClosed. A scan of it
// that is running goes on.
func (sn *snapshot) close() error {
	st := sn.store
	st.mu.Lock()
	_, open := st.snapshots[sn]
	delete(st.snapshots, sn)
	st.mu.Unlock()
	if !open {
		return errClosed
	}
	st.s.mu.Lock()
	delete(st.s.snapshots, sn.id)
	st.s.mu.Unlock()
	sn.lease.end()
	return sn.inner.Close()
}
