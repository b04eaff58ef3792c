package couch

import (
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"

	"scanode/storage"
)

// The states of a store. It only moves down this list.
const (
	stateLive uint32 = iota
	stateParked
	stateClosed
)

// store is one open directory.
type store struct {
	engine *Engine
	dir    string // its real name, as in the engine's book
	set    settings
	lock   io.Closer

	state   atomic.Uint32
	parkErr atomic.Pointer[parkError]
	current atomic.Pointer[version]

	// calls is read-held by every call but reads, which hold a generation instead.
	// Close locks it once to wait for them.
	calls sync.RWMutex

	queue  queue
	writer writer // belongs to whoever leads the queue

	compactor compactor

	estimates        estimates
	iters, snapshots atomic.Int64
	readErrors       atomic.Int64

	mu          sync.Mutex
	generations map[*generation]struct{} // whose files are open
}

func newStore(e *Engine, dir string, set settings) *store {
	s := &store{engine: e, dir: dir, set: set, generations: map[*generation]struct{}{}}
	s.writer.s = s
	return s
}

func (s *store) path(name string) string { return s.engine.fs.PathJoin(s.dir, name) }

func (s *store) logf(level slog.Level, msg string) { s.engine.log(level, s.dir+": "+msg) }

// park stops the store after a failure it cannot work around. The first cause is kept.
func (s *store) park(cause error) {
	if s.parkErr.CompareAndSwap(nil, &parkError{cause}) {
		s.state.CompareAndSwap(stateLive, stateParked)
		s.logf(slog.LevelError, "parked: "+cause.Error())
	}
}

// refusal is the error of a call that the state of the store forbids.
func (s *store) refusal() error {
	switch s.state.Load() {
	case stateLive:
		return nil
	case stateClosed:
		return failed(storage.ErrClosed)
	}
	return failed(s.parkErr.Load())
}

// enter begins a call; leave must follow when it returns nil.
func (s *store) enter() error {
	s.calls.RLock()
	if err := s.refusal(); err != nil {
		s.calls.RUnlock()
		return err
	}
	return nil
}

func (s *store) leave() { s.calls.RUnlock() }

// readError makes an error of the contract's of one that reading has met.
func (s *store) readError(err error) error {
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return storage.ErrNotFound
	case s.state.Load() != stateLive:
		return s.refusal() // whatever it is, it came of that
	}
	s.readErrors.Add(1)
	return failed(corrupt(err))
}

// Get implements storage.Reader.
func (s *store) Get(dst, key []byte) ([]byte, error) {
	if err := s.refusal(); err != nil {
		return dst, err
	}
	v := s.acquire()
	defer v.gen.release()
	return s.get(v, dst, key)
}

func (s *store) get(v *version, dst, key []byte) ([]byte, error) {
	out, err := v.get(dst, key)
	if err != nil {
		return dst, s.readError(err)
	}
	return out, nil
}

// NewIter implements storage.Reader.
func (s *store) NewIter(r storage.Range) (storage.Iter, error) {
	if err := s.refusal(); err != nil {
		return nil, err
	}
	s.iters.Add(1)
	return newIter(s, s.acquire(), r), nil
}

// Apply implements storage.Store.
func (s *store) Apply(ops []storage.Op, sync bool) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	if len(ops) == 0 && !sync {
		return nil
	}
	entries, size, err := encodeOps(ops)
	if err != nil {
		return err
	}
	return s.submit(&request{ops: entries, size: size, sync: sync})
}

// IsEmpty implements storage.Store.
func (s *store) IsEmpty() (bool, error) {
	it, err := s.NewIter(storage.Range{})
	if err != nil {
		return false, err
	}
	found := it.First()
	return !found, it.Close()
}

// EstimateBytes implements storage.Store: nodes of the tree count, what is in memory only
// does not.
func (s *store) EstimateBytes(r storage.Range) (int64, error) {
	if err := s.refusal(); err != nil {
		return 0, err
	}
	v := s.acquire()
	defer v.gen.release()
	lower, upper := bounds(r)
	n, err := v.estimate(lower, upper)
	if err != nil {
		return 0, s.readError(err)
	}
	return n, nil
}

// Close implements storage.Store. Iterators may still be open; what they hold of the files
// is closed under them, and their next call finds the store closed.
func (s *store) Close() error {
	before := s.state.Swap(stateClosed)
	if before == stateClosed {
		return failed(storage.ErrClosed)
	}
	s.calls.Lock() // once nobody is in, nobody comes in
	s.calls.Unlock()
	s.compactor.stop()
	var err error
	if before == stateLive && s.parkErr.Load() == nil {
		err = s.alone(s.writer.flushForClose)
	}
	if cerr := s.release(); err == nil && before == stateLive {
		err = cerr
	}
	if err != nil {
		return failedf("close %s: %w", s.dir, bare(err))
	}
	return nil
}

// release closes the files and gives the directory back.
func (s *store) release() error {
	s.writer.timer.stop()
	s.mu.Lock()
	var errs []error
	for g := range s.generations {
		errs = append(errs, g.file.Close())
	}
	s.generations = nil
	s.mu.Unlock()
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	s.engine.open.Leave(s.dir)
	return errors.Join(errs...)
}

// newGeneration counts a file that was opened among those of the store.
func (s *store) newGeneration(g *generation) *generation {
	g.refs.Store(1)
	g.gone = func() { s.forget(g) }
	s.mu.Lock()
	s.generations[g] = struct{}{}
	s.mu.Unlock()
	return g
}

// forget closes the file of a generation that nobody reads any more.
func (s *store) forget(g *generation) {
	s.mu.Lock()
	_, open := s.generations[g]
	delete(s.generations, g)
	s.mu.Unlock()
	if !open {
		return // Close was faster
	}
	if err := g.file.Close(); err != nil {
		s.logf(slog.LevelError, "close of an old file: "+err.Error())
	}
}
