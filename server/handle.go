package server

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"scanode/etf"
	"scanode/scan"
	"scanode/storage"
)

// handleKind is what a handle is of.
type handleKind string

const (
	kindSnapshot handleKind = "snapshot"
	kindIterator handleKind = "iterator"
)

// maxHandles bounds the handles of one kind of one store; each keeps rows alive
// that compaction would remove.
const maxHandles = 1024

// handle is what has an id beside a store itself: a snapshot or an iterator of
// it. It ends with its store, by close, or when its maker is dead and it was not
// used for a while.
type handle struct {
	store    *store
	id       int64
	kind     handleKind
	maker    etf.Pid
	view     *sharedView
	iterator *iterator // nil for a snapshot
	lease    lease
}

// sharedView is an unchanging view of a store with several holders: its handle,
// iterators made of it, and scans of it. The last one to let it go releases it.
// It is a scan.Source of several ranges, being its own view.
type sharedView struct {
	storage.Reader
	inner   storage.Snapshot // the Reader
	of      storage.Store
	holders atomic.Int64
}

func newSharedView(inner storage.Snapshot, of storage.Store) *sharedView {
	v := &sharedView{Reader: inner, inner: inner, of: of}
	v.holders.Store(1)
	return v
}

// hold adds a holder. Somebody must hold v already.
func (v *sharedView) hold() { v.holders.Add(1) }

func (v *sharedView) letGo() error {
	if v.holders.Add(-1) > 0 {
		return nil
	}
	return v.inner.Close()
}

// Snapshot implements scan.Source.
func (v *sharedView) Snapshot() (storage.Snapshot, error) { return sameView{v}, nil }

// EstimateBytes implements scan.Source: by the store as it is now.
func (v *sharedView) EstimateBytes(r storage.Range) (int64, error) { return v.of.EstimateBytes(r) }

// sameView is a view that is not closed with the scan.
type sameView struct{ storage.Reader }

func (sameView) Close() error { return nil }

// snapshot answers {snapshot, Id} and {snapshot, Id, Opts}.
func (c *call) snapshot() {
	v, o, err := c.handleArgs()
	if err != nil {
		c.fail(err)
		return
	}
	defer v.release()
	orphan := o.orphan()
	err = o.done()
	if err == nil && v.handle != nil {
		err = reasonf(tagBadRequest, "a snapshot cannot be made of a snapshot")
	}
	if err != nil {
		c.fail(err)
		return
	}
	c.okHandle(c.newHandle(v, kindSnapshot, scan.KV, orphan))
}

// handleArgs reads what snapshots and iterators are made from: what Id names, in
// use, and options.
func (c *call) handleArgs() (view, *options, error) {
	id, _, err := readIDAndRest(c.arg())
	if err != nil {
		return view{}, nil, err
	}
	o := &options{}
	if c.n > 1 {
		o = newOptions(c.arg())
	}
	v, err := c.link.s.acquire(id)
	return v, o, err
}

// orphan takes orphan_ms.
func (o *options) orphan() time.Duration {
	return time.Duration(o.millis("orphan_ms", defaultOrphanMs)) * time.Millisecond
}

// okHandle replies {ok, Id} with the id of a handle that newHandle has made, or
// its error.
func (c *call) okHandle(h *handle, err error) {
	if err != nil {
		c.fail(err)
		return
	}
	reply := etf.AppendAtom(etf.AppendTupleHeader(c.begin(16), 2), "ok")
	c.send(etf.AppendInt64(reply, h.id))
}

// newHandle makes a handle for the caller: of a store with a view of its own, of
// a snapshot with that one's. rows is for an iterator.
func (c *call) newHandle(v view, kind handleKind, rows scan.Kind, orphan time.Duration) (*handle, error) {
	h := &handle{store: v.store, kind: kind, maker: c.to.pid}
	if v.handle != nil {
		h.view = v.handle.view
		h.view.hold()
	} else {
		inner, err := v.db.Snapshot()
		if err != nil {
			return nil, err
		}
		h.view = newSharedView(inner, v.db)
	}
	if kind == kindIterator {
		h.iterator = &iterator{cursor: scan.NewCursor(h.view, rows)}
	}
	h.lease.orphan = orphan
	h.lease.expire = func() { _ = h.close() } // errClosed: somebody was faster
	s := v.s
	s.mu.Lock()
	h.id = s.newID()
	s.handles[h.id] = h // names nothing as long as the store does not know it
	s.mu.Unlock()
	if err := v.addHandle(h); err != nil {
		s.mu.Lock()
		delete(s.handles, h.id)
		s.mu.Unlock()
		_ = h.view.letGo()
		return nil, err
	}
	h.lease.watch(c.link.peer, c.to.pid)
	return h, nil
}

func (st *store) addHandle(h *handle) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	n := 0
	for other := range st.handles {
		if other.kind == h.kind {
			n++
		}
	}
	if n >= maxHandles {
		return errBusy
	}
	if st.closing {
		return errClosed
	}
	st.handles[h] = struct{}{}
	return nil
}

// close ends the handle. Everybody but the first gets errClosed. A scan of its
// view that is running goes on.
func (h *handle) close() error {
	st := h.store
	st.mu.Lock()
	_, open := st.handles[h]
	delete(st.handles, h)
	st.mu.Unlock()
	if !open {
		return errClosed
	}
	st.s.mu.Lock()
	delete(st.s.handles, h.id)
	st.s.mu.Unlock()
	h.lease.end()
	if h.iterator != nil {
		h.iterator.close()
	}
	return h.view.letGo()
}

// handles answers {handles, Id}: the snapshots and iterators of a store.
func (c *call) handles() {
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
	v.mu.Lock()
	var all []*handle
	for h := range v.store.handles {
		all = append(all, h)
	}
	v.mu.Unlock()
	slices.SortFunc(all, func(a, b *handle) int { return cmp.Compare(a.id, b.id) })
	list := make(etf.List, 0, len(all))
	for _, h := range all {
		orphaned, idle := h.lease.describe()
		list = append(list, etf.Map{
			{Key: etf.Atom("id"), Value: h.id},
			{Key: etf.Atom("kind"), Value: etf.Atom(h.kind)},
			{Key: etf.Atom("maker"), Value: h.maker},
			{Key: etf.Atom("orphaned"), Value: boolTerm(orphaned)},
			{Key: etf.Atom("idle_ms"), Value: idle.Milliseconds()},
		})
	}
	c.okTerm(list)
}
