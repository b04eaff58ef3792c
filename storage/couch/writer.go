package couch

import (
	"sync/atomic"
	"time"

	"scanode/storage/couch/btree"
	"scanode/storage/couch/file"
)

// writer makes versions. It belongs to whoever leads the queue.
//
// A batch goes into the overlay, and so that it can be found again
//
//	commit => log       into the log, at once
//	commit => header    into the tree with a new header, when somebody asks for a sync
//
// The overlay goes into the tree, and a header behind it, when it is full, when the log has
// many batches, and in time; see flush.
type writer struct {
	s     *store
	gen   *generation
	tree  btree.Tree
	cache *btree.Cache // of its nodes
	over  *overlay
	seq   int64

	header   file.Header // the last one
	mayLog   bool        // it says that a log may be behind it
	grown    bool        // it came after the last look at how much garbage there is
	logged   int64       // batches behind it
	unsynced bool        // some of them
	buf      []byte      // records under way
	payloads [][]byte
	timer    pushTimer

	// For Stats, which does not lead.
	commits, logSyncs    atomic.Int64 // since open
	overBytes            atomic.Int64 // of the overlay
	logBytes, logBatches atomic.Int64 // behind the header
}

// keepRecords is how much of the buffer for records is kept between groups.
const keepRecords = 1 << 20

// apply writes the batches of a group. After an error nobody knows what of them is there.
func (w *writer) apply(group []*request) error {
	first := w.seq
	sync := false
	for _, r := range group {
		w.over.set(r.ops, r.size)
		if len(r.ops) > 0 {
			w.seq++
		}
		sync = sync || r.sync
	}
	var err error
	switch full := w.over.bytes >= w.s.set.bufferBytes; {
	case full || sync && !w.s.set.log:
		err = w.flush()
	case w.s.set.log:
		if err = w.log(group, first, sync); err == nil && w.logged >= w.s.set.logBatches {
			err = w.flush()
		}
		if w.unsynced {
			w.timer.arm(w.s, pushLogAfter)
		}
	case w.over.rows.Len() > 0:
		w.timer.arm(w.s, time.Duration(w.s.set.flushMillis)*time.Millisecond)
	}
	if err != nil {
		return err
	}
	w.publish()
	return nil
}

// use makes a file with this root the one that is written to.
func (w *writer) use(g *generation, root btree.Pointer) {
	w.cache = btree.NewCache(int(w.s.set.cacheBytes))
	w.gen, w.tree = g, btree.New(g.file, root, w.s.set.treeOptions(w.cache))
}

// publish makes what was applied the current version.
func (w *writer) publish() {
	w.overBytes.Store(w.over.bytes)
	w.s.current.Store(&version{gen: w.gen, tree: w.tree, over: w.over.view(), cache: w.cache})
	if w.grown {
		w.grown = false
		w.s.maybeCompact()
	}
}

// log appends a record for each batch of a group. first is the number of the batch before
// them.
func (w *writer) log(group []*request, first int64, sync bool) error {
	w.buf, w.payloads = w.buf[:0], w.payloads[:0]
	ends := make([]int, 0, len(group))
	seq := first
	for _, r := range group {
		if len(r.ops) > 0 {
			seq++
			w.buf = appendRecord(w.buf, w.header.Ptr, seq, r.ops)
			ends = append(ends, len(w.buf))
		}
	}
	start := 0
	for _, end := range ends {
		w.payloads = append(w.payloads, w.buf[start:end])
		start = end
	}
	if len(w.payloads) > 0 {
		chunks, err := w.gen.file.AppendSummed(w.payloads)
		if err != nil {
			return err
		}
		for _, c := range chunks {
			w.logBytes.Add(c.Size)
		}
		w.logged += int64(len(chunks))
		w.logBatches.Store(w.logged)
		w.unsynced = true
	}
	if cap(w.buf) > keepRecords {
		w.buf = nil
	}
	if !sync {
		return nil
	}
	return w.syncLog()
}

// syncLog makes what is in the log durable.
func (w *writer) syncLog() error {
	if !w.unsynced {
		return nil
	}
	w.logSyncs.Add(1)
	w.unsynced = false
	return w.gen.file.Sync()
}

// flush puts the overlay into the tree and writes a header. All of it is synced before: a
// header must not lead to nodes that a loss of power takes away.
func (w *writer) flush() error {
	w.timer.stop()
	if w.over.rows.Len() == 0 && w.logged == 0 {
		return nil
	}
	return w.commit(w.s.set.log)
}

// flushForClose is flush before the file is closed. It leaves a header that says that
// nothing is behind it.
func (w *writer) flushForClose() error {
	if w.over.rows.Len() == 0 && !w.mayLog {
		return nil
	}
	return w.commit(false)
}

// commit writes tree and header. mayLog says whether a log will follow.
func (w *writer) commit(mayLog bool) error {
	tree, err := w.over.addTo(w.tree)
	if err != nil {
		return err
	}
	h := header{id: w.gen.id, seq: w.seq, log: mayLog, root: tree.Root()}
	at, err := w.gen.file.Commit(h.append(nil))
	if err != nil {
		return err
	}
	w.tree, w.over, w.header = tree, newOverlay(), at
	w.mayLog, w.logged, w.unsynced = mayLog, 0, false
	w.logBytes.Store(0)
	w.logBatches.Store(0)
	w.commits.Add(1)
	w.grown = true
	return nil
}

// pushLogAfter is how long a batch in the log that nobody has asked to sync may be lost
// with the power. The engine lsm has the same bound.
const pushLogAfter = 5 * time.Second

// push makes the batches durable that nobody has asked to sync. Its failure parks the store.
func (s *store) push() {
	if s.enter() != nil {
		return
	}
	defer s.leave()
	_ = s.alone(func() error {
		w := &s.writer
		w.timer.stop()
		do := w.flush
		if s.set.log {
			do = w.syncLog
		}
		if err := do(); err != nil {
			s.park(err)
			return err
		}
		w.publish()
		return nil
	})
}

// pushTimer bounds how long a batch that nobody has asked to sync may be lost.
type pushTimer struct{ timer *time.Timer }

// arm starts the timer unless it runs.
func (t *pushTimer) arm(s *store, after time.Duration) {
	if t.timer == nil {
		t.timer = time.AfterFunc(after, s.push)
	}
}

func (t *pushTimer) stop() {
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
}
