package lsm

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"

	"scanode/storage"
	"scanode/storage/home"
)

// store is one open directory.
type store struct {
	engine *Engine
	dir    string // its real name, as in the engine's list
	fence  *fence
	member *member
	lock   *pebble.Lock
	db     *pebble.DB

	bufferBytes uint64 // of one write buffer
	scratch     bool   // nothing in it outlives the process
	ops         *opLog

	expiry    expiry
	wholeFile bool          // the option whole_file_expiry
	writers   sync.RWMutex  // read-held by writers of a store with times, see sweep
	sweepNow  chan struct{} // with room for one

	state    atomic.Uint32
	parkOnce sync.Once
	parkErr  atomic.Pointer[parkError]
	parked   chan struct{} // closed by park

	// calls is read-held by every call into db but those of iterators, which
	// keep the database open instead. Close locks it once to wait for them.
	calls sync.RWMutex

	written         atomic.Bool   // a batch was begun
	flushFailed     chan struct{} // closed when a flush fails in Close
	flushFailedOnce sync.Once

	// abandoned says that pebble must not be closed, see Close.
	abandoned atomic.Bool

	commits chan *commit  // to an idle committer
	idle    atomic.Int64  // committers
	quit    chan struct{} // ends the idle ones
	closing chan struct{} // closed when Close begins
	tidying atomic.Bool   // see tidyBelow
	pushing atomic.Bool   // a push is to come, see pushLater

	mu        sync.Mutex
	iters     int64                  // pebble iterators open
	snapshots map[*snapshot]struct{} // open snapshots
	lingering bool                   // Close has left pebble to the last iterator

	flushes          flushes
	backgroundErrors atomic.Int64
	corruptBlocks    atomic.Int64
	flushFailures    atomic.Int64 // in a row
	compactFailures  atomic.Int64 // in a row
	compactAfter     atomic.Int64 // Unix nanoseconds
	compactFault     atomic.Pointer[compactionFault]
	stalls           atomic.Int64
	stalled          atomic.Pointer[string] // why writes wait now
}

func newStore(e *Engine, dir string) *store {
	s := &store{
		engine:      e,
		dir:         dir,
		parked:      make(chan struct{}),
		flushFailed: make(chan struct{}),
		commits:     make(chan *commit),
		quit:        make(chan struct{}),
		closing:     make(chan struct{}),
		sweepNow:    make(chan struct{}, 1),
		snapshots:   make(map[*snapshot]struct{}),
	}
	s.fence = newFence(e.fs, dir, s.park, s.delayFlush)
	s.fence.bad.now = e.now
	s.ops = newOpLog(s.fence, e.now)
	s.member = e.compactor.join(s.noCompaction)
	return s
}

func (s *store) log(l Level, msg string) { s.engine.log(l, s.dir+": "+msg) }

// Pebble holds up writers while this many write buffers are full, or level 0 is
// this many tables deep.
const (
	stopWritesBuffers   = 2
	stopWritesSublevels = 12
)

// options are pebble's options for a store with these settings.
func (s *store) options(set settings) *pebble.Options {
	e := s.engine
	s.bufferBytes = uint64(e.memory.bufferFor(e.open.Len(), set.writeBufferBytes))
	o := &pebble.Options{
		Cache:                       e.cache,
		FileCache:                   e.fileCache,
		FS:                          s.fence,
		Lock:                        s.lock,
		Logger:                      logger{s},
		EventListener:               s.listener(),
		FormatMajorVersion:          pebble.FormatNewest,
		MemTableSize:                s.bufferBytes,
		MemTableStopWritesThreshold: stopWritesBuffers,
		L0StopWritesThreshold:       stopWritesSublevels,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 2 },
		DisableWAL:                  s.scratch,
		BlockPropertyCollectors:     s.expiry.collectors(),
	}
	// Reads that start compactions would make iterators write.
	o.Experimental.ReadSamplingMultiplier = -1
	o.Experimental.CompactionScheduler = s.member
	for i := range o.Levels {
		l := &o.Levels[i]
		l.BlockSize = int(set.blockBytes)
		l.Compression = func() *sstable.CompressionProfile { return set.compression }
		if set.bloomBits > 0 {
			l.FilterPolicy = bloom.FilterPolicy(set.bloomBits)
		}
	}
	return o
}

// translate turns an error of pebble's into one of the contract's.
func (s *store) translate(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pebble.ErrNotFound):
		return storage.ErrNotFound
	case errors.Is(err, storage.ErrParked):
		return failed(err)
	case s.state.Load() != stateLive:
		return s.refusal() // whatever it is, it came of that
	case pebble.IsCorruptionError(err):
		return failedf("%w: %w", storage.ErrCorrupt, bare(err))
	}
	return failed(err)
}

// enter begins a call into pebble; leave must follow when it returns nil. The
// state is looked at first, so that nobody queues behind a Close that waits for
// a call stuck in a parked store, and again with the lock held, for Close waits
// only for those who have it.
func (s *store) enter() error {
	if s.state.Load() == stateLive {
		s.calls.RLock()
		if s.state.Load() == stateLive {
			return nil
		}
		s.calls.RUnlock()
	}
	return s.refusal()
}

func (s *store) leave() { s.calls.RUnlock() }

// Get implements storage.Reader.
func (s *store) Get(dst, key []byte) ([]byte, error) {
	if err := s.enter(); err != nil {
		return dst, err
	}
	defer s.leave()
	return s.get(s.db, dst, key)
}

// get reads from the store or a snapshot, within enter and leave.
func (s *store) get(r pebble.Reader, dst, key []byte) (_ []byte, err error) {
	defer s.guard(&err)
	v, closer, err := r.Get(storedKey(nil, key))
	if err != nil {
		return dst, s.translate(err)
	}
	out := dst
	value, err := s.expiry.userValue(v)
	if err == nil {
		out = append(dst, value...)
	}
	if cerr := closer.Close(); cerr != nil {
		return dst, s.translate(cerr)
	}
	if errors.Is(err, storage.ErrCorrupt) {
		s.corruptBlocks.Add(1)
		err = failed(err)
	}
	return out, err
}

// NewIter implements storage.Reader.
func (s *store) NewIter(r storage.Range) (storage.Iter, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	return s.newIter(s.db, r)
}

// maxBatchBytes bounds a batch well below pebble's own limit of 4 GiB.
const maxBatchBytes = 1 << 30

// Apply implements storage.Store.
func (s *store) Apply(ops []storage.Op, sync bool) error {
	if err := s.enter(); err != nil {
		return err
	}
	if len(ops) == 0 && !sync {
		s.leave()
		return nil
	}
	size, err := batchSize(ops)
	if err != nil {
		s.leave()
		return err
	}
	if size >= largeBatch {
		giveBack := s.engine.batches.take(int64(size), s.parked)
		if giveBack == nil {
			s.leave()
			return s.refusal()
		}
		defer s.giveBackFlushed(uint64(size), giveBack)
	}
	if s.expiry.timed {
		s.writers.RLock()
		defer s.writers.RUnlock()
	}
	b, err := s.newBatch(ops, size)
	if err != nil {
		s.leave()
		return err
	}
	return s.commit(b, sync)
}

// batchSize is the room that ops take in a batch of pebble's, at most.
func batchSize(ops []storage.Op) (size int, err error) {
	size = batchrepr.HeaderLen
	for i := range ops {
		// A kind byte, two varint lengths, perhaps a zero byte and perhaps a time
		// come with each.
		if size += 12 + timeBytes + len(ops[i].Key) + len(ops[i].Value); size > maxBatchBytes {
			return 0, failedf("batch of more than %d bytes", maxBatchBytes)
		}
	}
	return size, nil
}

// newBatch copies ops into a batch of pebble's with room for size bytes.
func (s *store) newBatch(ops []storage.Op, size int) (*pebble.Batch, error) {
	// NewBatchWithSize would allocate twice, the second time a power of two.
	b := s.db.NewBatch(pebble.WithInitialSizeBytes(size))
	var buf []byte
	written := uint64(0)
	if s.expiry.timed {
		written = s.expiry.stamp()
	}
	for i := range ops {
		op := &ops[i]
		key := storedKey(buf, op.Key)
		if len(key) > len(op.Key) {
			buf = key
		}
		var err error
		switch op.Kind {
		case storage.Put:
			at := written
			if op.Written != 0 {
				at = op.Written
			}
			err = s.expiry.set(b, key, op.Value, at)
		case storage.Delete:
			err = b.Delete(key, nil)
		default:
			err = fmt.Errorf("unknown kind of operation %d", op.Kind)
		}
		if err != nil {
			_ = b.Close()
			return nil, failed(err)
		}
	}
	if len(ops) == 0 {
		if err := b.LogData(nil, nil); err != nil {
			return nil, failed(err)
		}
	}
	return b, nil
}

// commit writes b. The fence makes pebble believe that everything went well, so
// success is only what the store, asked afterwards, still calls so.
//
// Pebble runs on a goroutine of its own: should it lose a lock and never come
// back, the store is parked, and the caller has his answer. The call that the
// caller has entered is left by that goroutine, so Close knows of it even when
// the caller is gone: closing pebble frees the memory it is writing to.
func (s *store) commit(b *pebble.Batch, sync bool) error {
	s.written.Store(true)
	c := &commit{batch: b, wo: pebble.NoSync, done: make(chan error, 1)}
	if sync {
		c.wo = pebble.Sync
	}
	select {
	case s.commits <- c:
	default:
		go s.committer(c)
	}
	var err error
	select {
	case err = <-c.done:
	case <-s.parked:
	}
	if !sync {
		s.pushLater() // not sooner: the push is to find it in the log
	}
	if cause := s.cause(); cause != nil {
		return failedf("%w: %w", storage.ErrUnknown, cause)
	}
	return s.translate(err) // pebble returns only what it finds before it begins
}

// commit is a batch on its way to a committer.
type commit struct {
	batch *pebble.Batch
	wo    *pebble.WriteOptions
	done  chan error // takes one without a receiver
}

// maxIdleCommitters is how many goroutines wait for the next batch: new ones
// have to grow their stacks, which costs more than the batch.
const maxIdleCommitters = 4

// committer writes c and then other batches.
func (s *store) committer(c *commit) {
	for {
		err := s.applyBatch(c)
		s.leave()
		c.done <- err
		if s.idle.Add(1) > maxIdleCommitters {
			s.idle.Add(-1)
			return
		}
		select {
		case c = <-s.commits:
			s.idle.Add(-1)
		case <-s.quit:
			return
		}
	}
}

func (s *store) applyBatch(c *commit) (err error) {
	defer s.guard(&err)
	if err := s.db.Apply(c.batch, c.wo); err != nil {
		return err
	}
	return c.batch.Close()
}

// Checkpoint implements storage.Store. The marker comes last, so that a copy
// cut short is no store.
func (s *store) Checkpoint(dir string) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	fs := s.engine.fs
	if _, err := fs.Stat(dir); err == nil {
		return failedf("checkpoint %s: %w", dir, storage.ErrExists)
	}
	if err := home.NotInside(fs, dir); err != nil {
		return failedf("checkpoint %s: %w", dir, err)
	}
	err := func() (err error) {
		defer s.guard(&err)
		return s.db.Checkpoint(dir, pebble.WithFlushedWAL())
	}()
	if err == nil {
		err = s.cause() // the log may have gone into the void
	}
	if err == nil {
		err = writeMarker(fs, dir, s.expiry.timed)
	}
	if err != nil {
		_ = fs.RemoveAll(dir)
		return s.translate(fmt.Errorf("checkpoint %s: %w", dir, bare(err)))
	}
	return nil
}
