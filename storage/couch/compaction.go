package couch

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"scanode/etf"
	"scanode/storage"
	"scanode/storage/couch/btree"
	"scanode/storage/couch/file"
	"scanode/storage/home"
)

// A compaction copies the rows of the store into a fresh file, beside reads and writes, and
// puts it into the place of the old one:
//
//  1. copy     all rows of one version are added to store.couch.compact in the order of
//     their keys, so that nodes are full and written once
//  2. catch up what was changed meanwhile is found by comparing the trees (btree.Diff) and
//     written, again and again, until little is left
//  3. swap     while nobody writes: the last changes, a header, and store.couch.compact is
//     renamed to store.couch
//
// The header of the new file always says how far it has come (see header.origin), and so a
// compaction that was ended, by Close or by loss of power, goes on at the next Open. Whatever
// happens, store.couch is a whole store with all that was acknowledged: it is written to
// until the rename is durable, and not after it.
//
// Who reads an old version goes on with the old file, which has no name any more; its room on
// the disk is given back when the last one is done.
type compaction struct {
	s    *store
	quit chan struct{} // closed to end it
	done chan struct{} // closed when it has ended

	gen    *generation // the source, held
	source btree.Tree  // the version that the target has, or is to have
	id     fileID      // of the target
	target *file.File
	load   loader
	whole  bool // all of source is in the target

	phase       atomic.Pointer[string]
	total, have atomic.Int64 // rows
}

// Bounds of a compaction.
const (
	// saveBytes is after how many bytes of rows the target gets a header to go on from.
	saveBytes = 32 << 20
	// catchUpBytes is how much the source may have grown since the last round so that
	// the rest is done while writers wait.
	catchUpBytes = 1 << 20
	// maxRounds is how often what was changed is caught up with. After it writers wait,
	// for if it grows as fast as it is copied it will never be little.
	maxRounds = 12
	// targetCacheBytes is the cache of the target while it is written: the nodes at the
	// right edge, and those that are changed in catching up.
	targetCacheBytes = 2 << 20
)

var errQuit = errors.New("compaction was ended")

// compactor starts compactions of a store, one at a time.
type compactor struct {
	mu      sync.Mutex
	running *compaction
	closed  bool
	// after is the size of the file from which on another one is tried: one that failed is
	// not tried again at once.
	after int64

	count, failures atomic.Int64 // since open
}

// wants says whether a file of that size, with that many bytes of nodes in use, should be
// compacted.
func (s *store) wants(size, live int64) bool {
	p := s.set.compactPercent
	return p > 0 && size >= s.set.compactMinBytes && size >= s.compactor.after && (size-live)*100 >= size*p
}

// maybeCompact starts a compaction if there is garbage enough. The caller leads the queue.
func (s *store) maybeCompact() {
	w := &s.writer
	if s.wants(w.gen.file.Size(), max(0, w.tree.Root().Size)) {
		s.compact()
	}
}

// compact starts a compaction unless one runs, and returns it, or nil.
func (s *store) compact() *compaction {
	c := &s.compactor
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	if c.running == nil {
		c.running = &compaction{s: s, quit: make(chan struct{}), done: make(chan struct{})}
		go c.running.run()
	}
	return c.running
}

// stop ends the compaction that runs, waits for it, and lets no other begin.
func (c *compactor) stop() {
	c.mu.Lock()
	c.closed = true
	running := c.running
	c.mu.Unlock()
	if running != nil {
		close(running.quit)
		<-running.done
	}
}

// run does the compaction and tells how it went.
func (c *compaction) run() {
	defer close(c.done)
	err := c.work()
	s := c.s
	s.compactor.mu.Lock()
	s.compactor.running = nil
	s.compactor.mu.Unlock()
	switch {
	case err == nil:
		s.compactor.count.Add(1)
	case errors.Is(err, errQuit):
		s.logf(slog.LevelInfo, "compaction is interrupted and goes on at the next open")
	default:
		s.compactor.failures.Add(1)
		s.logf(slog.LevelError, "compaction: "+err.Error())
	}
}

func (c *compaction) say(phase string) { c.phase.Store(&phase) }

// ended says whether the compaction is to end.
func (c *compaction) ended() error {
	select {
	case <-c.quit:
		return errQuit
	default:
	}
	if c.s.parkErr.Load() != nil {
		return errQuit
	}
	return nil
}

func (c *compaction) work() (err error) {
	c.say("waits for another store's")
	leave, err := c.s.engine.takeTurn(c.quit)
	if err != nil {
		return err
	}
	defer leave()
	defer func() {
		if err != nil && c.gen != nil {
			c.fail(err)
		}
	}()
	v := c.s.acquire()
	c.gen = v.gen
	defer v.gen.release()
	if err := c.begin(v); err != nil {
		return err
	}
	swapped := false
	defer func() {
		if !swapped {
			err = errors.Join(err, c.target.Close())
		}
	}()
	if err := c.copy(); err != nil {
		return err
	}
	if err := c.catchUp(); err != nil {
		return err
	}
	c.say("swaps")
	return c.s.alone(func() error {
		swapped, err = c.swap()
		return err
	})
}

// fail cleans up after a compaction that has not come to its end. It is not tried again
// before the file has grown by a quarter. What it has copied stays only when it was told to
// end: else it would keep the room that the store lacks, or fail the next one by its damage.
// While the store is parked the name may be that of either file, and is left alone.
func (c *compaction) fail(err error) {
	s := c.s
	s.compactor.mu.Lock()
	s.compactor.after = c.gen.file.Size() / 4 * 5
	s.compactor.mu.Unlock()
	if errors.Is(err, errQuit) || s.parkErr.Load() != nil {
		return
	}
	if err := s.engine.fs.Remove(s.path(compactName)); err != nil && !isNotExist(err) {
		s.logf(slog.LevelError, "what a compaction has copied stays: "+err.Error())
	}
}

// begin opens the target: what an earlier compaction of this file has left, or a new one.
func (c *compaction) begin(v *version) error {
	fs, path := c.s.engine.fs, c.s.path(compactName)
	if f, h, ok := c.resumable(v); ok {
		c.target, c.id, c.whole = f, h.id, h.origin.whole
		c.source = v.tree.At(h.origin.root)
		c.load.tree = btree.New(f, h.root, c.options())
	} else {
		c.id, c.source = newID(), v.tree
		f, err := createEmpty(fs, path, header{id: c.id, origin: origin{id: c.gen.id, root: c.source.Root()}})
		if err != nil {
			return err
		}
		c.target = f
		c.load.tree = btree.New(f, btree.Pointer{}, c.options())
	}
	have, err := rowsOf(c.load.tree)
	if err == nil {
		c.have.Store(have)
		have, err = rowsOf(c.source)
		c.total.Store(have)
	}
	if err != nil {
		return errors.Join(err, c.target.Close())
	}
	return nil
}

func (c *compaction) options() btree.Options {
	return c.s.set.treeOptions(btree.NewCache(targetCacheBytes))
}

// resumable opens the target of an earlier compaction if it has rows of this very file.
// Whatever is wrong with it, it is of no use then and nothing is lost.
func (c *compaction) resumable(v *version) (*file.File, header, bool) {
	f, err := file.Open(c.s.engine.fs, c.s.path(compactName), fileOptions)
	if err != nil {
		return nil, header{}, false
	}
	_, h, err := lastHeader(f)
	from := h.origin.root
	if err == nil && h.origin.id == c.gen.id && from.Ptr <= v.tree.Root().Ptr {
		return f, h, true
	}
	_ = f.Close()
	return nil, header{}, false
}

// rowsOf returns how many rows a tree has.
func rowsOf(t btree.Tree) (int64, error) {
	red, err := t.FullReduce()
	if err != nil {
		return 0, err
	}
	n, _, err := etf.ReadInt64(red)
	return n, err
}

// copy adds the rows of source that are behind those that the target has.
func (c *compaction) copy() error {
	if c.whole {
		return nil
	}
	c.say("copies")
	from := c.source.Cursor()
	last := c.load.tree.Cursor()
	ok := last.Last()
	if last.Err() != nil {
		return last.Err()
	}
	if !ok {
		ok = from.First()
	} else if ok = from.SeekGE(last.Key()); ok && string(from.Key()) == string(last.Key()) {
		ok = from.Next()
	}
	b, err := c.load.tree.Builder()
	if err != nil {
		return err
	}
	defer b.Discard()
	looked, saved, bytes := 0, 0, 0 // bytes of rows, at the last look and at the last header
	for ; ok; ok = from.Next() {
		if err := b.Add(from.Key(), from.Value()); err != nil {
			return err
		}
		c.have.Add(1)
		if bytes += len(from.Key()) + len(from.Value()); bytes-looked < loadBytes {
			continue
		}
		looked = bytes
		ended := c.ended()
		if ended != nil || bytes-saved >= saveBytes {
			saved = bytes
			if err := c.saveBuilt(b); err != nil {
				return err
			}
		}
		if ended != nil {
			return ended
		}
	}
	if from.Err() != nil {
		return from.Err()
	}
	c.whole = true
	return c.saveBuilt(b)
}

// saveBuilt writes a header with all that was built until now.
func (c *compaction) saveBuilt(b *btree.Builder) error {
	tree, err := b.Tree()
	if err != nil {
		return err
	}
	c.load.tree = c.load.tree.At(tree.Root()) // with its cache
	return c.commit(header{})
}

// save writes a header that says how far the target has come.
func (c *compaction) save() error {
	if err := c.load.flush(); err != nil {
		return err
	}
	return c.commit(header{})
}

// commit writes a header with what the target has.
func (c *compaction) commit(h header) error {
	h.id, h.root = c.id, c.load.tree.Root()
	h.origin = origin{id: c.gen.id, root: c.source.Root(), whole: c.whole}
	_, err := c.target.Commit(h.append(nil))
	return err
}

// catchUp brings what was changed in the source into the target, until little is left.
func (c *compaction) catchUp() error {
	for round := range maxRounds {
		c.say(fmt.Sprintf("catches up, round %d", round+1))
		v := c.s.acquire()
		tree := v.tree
		v.gen.release() // which c holds, too
		grown := tree.Root().Ptr - c.source.Root().Ptr
		if err := c.follow(tree); err != nil {
			return err
		}
		if grown < catchUpBytes {
			return nil
		}
		if err := c.save(); err != nil {
			return err
		}
	}
	return nil
}

// follow brings the target from one version of the source to a later one.
func (c *compaction) follow(tree btree.Tree) error {
	err := tree.Diff(c.source, func(key, _, is []byte) error {
		if is == nil {
			return c.load.remove(key)
		}
		if len(c.load.buf) == 0 {
			if err := c.ended(); err != nil {
				return err
			}
		}
		return c.load.add(key, is)
	})
	if err == nil {
		err = c.load.flush()
	}
	if err == nil {
		c.source = tree
	}
	return err
}

// swap puts the target into the place of the store's file. Nobody writes meanwhile.
// swapped is true when the target is the store's.
func (c *compaction) swap() (swapped bool, err error) {
	s, w := c.s, &c.s.writer
	if err := c.ended(); err != nil {
		return false, err
	}
	if err := w.flush(); err != nil {
		s.park(err)
		return false, err
	}
	w.publish()
	if err := c.follow(w.tree); err != nil {
		return false, err
	}
	h := header{seq: w.seq, log: s.set.log}
	if err := c.commit(h); err != nil {
		return false, err
	}
	at, h, err := lastHeader(c.target)
	if err != nil {
		return false, err
	}
	fs := s.engine.fs
	if err = fs.Rename(s.path(compactName), s.path(fileName)); err == nil {
		err = home.SyncDir(fs, s.dir)
	}
	if err != nil {
		// Which file has the name is not known, so neither may be written to.
		s.park(err)
		return false, err
	}
	old := w.gen
	w.use(s.newGeneration(&generation{file: c.target, id: c.id}), h.root)
	w.header, w.mayLog = at, h.log
	w.publish()
	old.release()
	s.logf(slog.LevelInfo, fmt.Sprintf("compacted: %d bytes became %d", old.file.Size(), c.target.Size()))
	return true, nil
}

// takeTurn waits until fewer compactions than maxCompactions run in the process, or quit is
// closed. leave must be called after it returned no error.
func (e *Engine) takeTurn(quit <-chan struct{}) (leave func(), err error) {
	select {
	case e.turns <- struct{}{}:
		return func() { <-e.turns }, nil
	case <-quit:
		return nil, errQuit
	}
}

// maxCompactions is how many compactions run side by side in a process.
const maxCompactions = 2

var _ storage.Store = (*store)(nil)
