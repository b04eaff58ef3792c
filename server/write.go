package server

import (
	"sync"

	"scanode/etf"
	"scanode/etf/etftext"
	"scanode/storage"
)

// write answers {write, Id, Ops, Opts}. It is called by the peer's reading
// goroutine, so that the writes of one peer to one store are applied in the order
// in which they were sent.
func (s *Server) write(c *call, done func()) {
	id, _, err := readIDAndRest(c.arg())
	var v view
	if err == nil {
		v, err = s.acquire(id)
	}
	if err == nil && v.handle != nil {
		v.release()
		err = reasonf(tagBadRequest, "a snapshot is read-only")
	}
	if err != nil {
		go func() {
			defer done()
			c.failWrite(err)
		}()
		return
	}
	v.writes.add(&write{call: c, done: func() {
		v.release()
		done()
	}})
}

// write is one queued write.
type write struct {
	call *call
	done func()
}

func (w *write) finish(err error) {
	defer w.done()
	if err != nil {
		w.call.failWrite(err)
	} else {
		w.call.ok()
	}
}

// writeQueue applies the writes of one store in order, on a goroutine that
// exists while there are any. Writes that asked for it are made durable
// together: while one sync runs, others gather for the next. The queue is
// bounded by what its peers may have unfinished.
type writeQueue struct {
	store *store

	mu       sync.Mutex
	queued   []*write
	applying bool
	unsynced []*write // applied, waiting for a sync
	syncing  bool
}

func (q *writeQueue) add(w *write) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queued = append(q.queued, w)
	if !q.applying {
		q.applying = true
		go q.applyAll()
	}
}

func (q *writeQueue) applyAll() {
	var ops []storage.Op // reused
	for {
		q.mu.Lock()
		round := q.queued
		q.queued = nil
		q.applying = len(round) > 0
		q.mu.Unlock()
		if len(round) == 0 {
			return
		}
		for _, w := range round {
			var sync bool
			var err error
			ops, sync, err = q.apply(w, ops[:0])
			switch {
			case err != nil || !sync:
				w.finish(err)
			default:
				q.addUnsynced(w)
			}
		}
	}
}

// apply applies one write without making it durable.
func (q *writeQueue) apply(w *write, ops []storage.Op) (_ []storage.Op, sync bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = q.store.s.panicked(p)
		}
	}()
	ops, err = readOps(w.call.arg(), ops)
	if err != nil {
		return ops, false, err
	}
	o := newOptions(w.call.arg())
	sync = o.bool("sync", false)
	if err := o.done(); err != nil {
		return ops, false, err
	}
	return ops, sync, q.store.db.Apply(ops, false)
}

func (q *writeQueue) addUnsynced(w *write) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.unsynced = append(q.unsynced, w)
	if !q.syncing {
		q.syncing = true
		go q.syncAll()
	}
}

func (q *writeQueue) syncAll() {
	for {
		q.mu.Lock()
		group := q.unsynced
		q.unsynced = nil
		q.syncing = len(group) > 0
		q.mu.Unlock()
		if len(group) == 0 {
			return
		}
		err := q.sync()
		for _, w := range group {
			w.finish(err)
		}
	}
}

func (q *writeQueue) sync() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = q.store.s.panicked(p)
		}
	}()
	return q.store.db.Apply(nil, true)
}

// readOps reads a list of {put, Key, Value} and {delete, Key}. The slices of the
// ops alias b.
func readOps(b []byte, ops []storage.Op) ([]storage.Op, error) {
	n, list, err := etf.ReadListHeader(b)
	if err != nil {
		return ops, reasonf(tagBadRequest, "the operations must be a list, got %s", etftext.FormatBytes(b))
	}
	for i := range n {
		op, rest, ok := readOp(list)
		if !ok {
			return ops, reasonf(tagBadRequest, "operation %d of %d must be {put, Key, Value} or {delete, Key} with binaries, got %s",
				i+1, n, etftext.FormatBytes(firstTerm(list)))
		}
		ops, list = append(ops, op), rest
	}
	if tail, _, err := etf.ReadListHeader(list); n > 0 && (err != nil || tail != 0) {
		return ops, reasonf(tagBadRequest, "the operations must be a proper list")
	}
	return ops, nil
}

func readOp(b []byte) (op storage.Op, rest []byte, ok bool) {
	n, b, err := etf.ReadTupleHeader(b)
	if err != nil {
		return op, nil, false
	}
	name, b, err := etf.ReadAtom(b)
	if err != nil {
		return op, nil, false
	}
	switch {
	case string(name) == "put" && n == 3:
		op.Kind = storage.Put
		if op.Key, b, err = etf.ReadBinary(b); err == nil {
			op.Value, b, err = etf.ReadBinary(b)
		}
	case string(name) == "delete" && n == 2:
		op.Kind = storage.Delete
		op.Key, b, err = etf.ReadBinary(b)
	default:
		return op, nil, false
	}
	return op, b, err == nil
}
