package lsm

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/storage"
	"scanode/storage/home"
)

// Name is the engine's name in markers, options and Stats.
const Name = "lsm"

// Level grades a log line.
type Level uint8

// The levels of log lines.
const (
	LevelInfo  Level = iota // flushes, compactions: what the engine does
	LevelError              // something failed; the store works on
	LevelFatal              // the store is parked
)

// Config is what the stores of one process share. The zero value works.
type Config struct {
	// MemoryBytes is what the process should take, all told: block cache, write
	// buffers and batches of all stores, and the heap around them. The engine
	// sizes its parts by it; that the heap keeps to it is for whoever sets a
	// limit for the Go runtime. 0 means 1 GiB.
	MemoryBytes int64
	// CacheBytes is the size of the block cache that all stores share, write
	// buffers included. 0 means its part of MemoryBytes.
	CacheBytes int64
	// MaxOpenFiles bounds the table files all stores together keep open.
	// 0 means 1000. Logs, manifests and directories (about eight descriptors
	// a store) come on top.
	MaxOpenFiles int
	// Now is the clock by which rows expire; nil means time.Now.
	Now func() time.Time
	// FS is the file system; nil means the operating system's.
	FS vfs.FS
	// Logger receives the engine's log lines, one call a line, from any
	// goroutine and often with locks of the engine held: it must return soon
	// and call nothing of this package. nil discards them.
	Logger func(level Level, msg string)
}

// Engine opens LSM stores. It is used from any number of goroutines.
type Engine struct {
	fs        vfs.FS
	now       func() time.Time
	log       func(Level, string)
	cache     *pebble.Cache
	fileCache *pebble.FileCache
	compactor *compactor
	memory    memory
	batches   budget
	open      home.Book
}

var _ storage.Engine = (*Engine)(nil)

// fileCacheShards spreads the locks of the shared file cache.
const fileCacheShards = 8

// largeBatch is the size from which on a batch takes a share of the engine's
// budget for batches.
const largeBatch = 1 << 20

// New returns an engine. Close it after its stores.
func New(c Config) *Engine {
	if c.MaxOpenFiles <= 0 {
		c.MaxOpenFiles = 1000
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.FS == nil {
		c.FS = vfs.Default
	}
	if c.Logger == nil {
		c.Logger = func(Level, string) {}
	}
	m := newMemory(c.MemoryBytes, c.CacheBytes)
	return &Engine{
		fs:        c.FS,
		now:       c.Now,
		log:       c.Logger,
		cache:     pebble.NewCache(m.cacheBytes),
		fileCache: pebble.NewFileCache(fileCacheShards, c.MaxOpenFiles),
		memory:    m,
		batches:   budget{total: m.batchBytes},
		compactor: newCompactor(max(2, runtime.GOMAXPROCS(0)/2)),
	}
}

// Close releases the shared caches. The stores must be closed before.
func (e *Engine) Close() {
	e.fileCache.Unref()
	e.cache.Unref()
}

// Open opens or creates the store in dir. See storage.Engine, and parseSettings
// for the options. Opens of different directories run side by side.
func (e *Engine) Open(dir string, o storage.Options) (storage.Store, error) {
	set, err := parseSettings(o.Engine)
	if err != nil {
		return nil, failed(err)
	}
	dir = filepath.Clean(dir)
	s, err := e.openDir(dir, set, o)
	if err != nil {
		return nil, failedf("open %s: %w", dir, bare(err))
	}
	return s, nil
}

func (e *Engine) openDir(dir string, set settings, o storage.Options) (*store, error) {
	f, err := e.permit(dir, o)
	if err != nil {
		return nil, err
	}
	if f.place != placeStore {
		if err := notTiered(e.fs, dir, []string{set.tiers.fast, set.tiers.slow}); err != nil {
			return nil, err
		}
	}
	if err := home.NotInside(e.fs, dir); err != nil {
		return nil, err
	}
	if o.CreateIfMissing {
		if err := home.MakeDir(e.fs, dir); err != nil {
			return nil, err
		}
	}
	if dir, err = e.open.Enter(e.fs, dir); err != nil {
		return nil, err
	}
	s := newStore(e, dir)
	if err := e.start(s, set, o); err != nil {
		s.discard()
		return nil, err
	}
	s.fence.opening.Store(false)
	s.ops.printf("opened; write buffer %d bytes", s.bufferBytes)
	if s.expiry.limit > 0 {
		go s.sweeper()
	}
	return s, nil
}

// permit finds out what is in dir and whether the options allow to open it.
func (e *Engine) permit(dir string, o storage.Options) (found, error) {
	f, err := look(e.fs, dir)
	switch {
	case err != nil:
	case f.place == placeStore && o.ErrorIfExists:
		err = storage.ErrExists
	case f.place != placeStore && !o.CreateIfMissing:
		err = storage.ErrMissing
	}
	return f, err
}

// start locks the directory of s and opens pebble in it. On an error discard
// cleans up.
func (e *Engine) start(s *store, set settings, o storage.Options) error {
	var err error
	if s.lock, err = pebble.LockDirectory(s.dir, s.fence); err != nil {
		return home.LockError(err)
	}
	if err := resume(e.fs, s.dir); err != nil {
		return err
	}
	// Another process may have been faster than the lock.
	f, err := e.permit(s.dir, o)
	if err != nil {
		return err
	}
	if s.expiry, err = expiryOf(set, f, e.now); err != nil {
		return err
	}
	s.wholeFile = set.wholeFile
	if f.place == placeMissing {
		if err := writeMarker(e.fs, s.dir, s.expiry.timed); err != nil {
			return err
		}
	}
	return e.startPebble(s, set)
}

// startPebble opens pebble in the directory of s, which is locked and ours.
func (e *Engine) startPebble(s *store, set settings) error {
	if err := s.fence.synced.open(e.fs, e.fs.PathJoin(s.dir, syncedName)); err != nil {
		return err
	}
	was := s.fence.synced.now
	least, err := checkManifest(e.fs, s.dir, was.manifest)
	if err == nil {
		err = checkLogs(e.fs, s.dir, least, was.log)
	}
	if err != nil {
		return err
	}
	var db *pebble.DB
	if s.bounded(func() { db, err = pebble.Open(s.dir, s.options(set)) }) {
		s.db = db
	} else {
		err = nil // still pebble's; the cause tells
	}
	if err == nil && set.paranoid {
		err = s.verify()
	}
	// ErrParked is for those who have a store.
	if p := s.parkErr.Load(); p != nil {
		err = p.cause
	}
	switch {
	case err == nil:
		return nil
	// The directory is there and is ours: what pebble misses was there once.
	case pebble.IsCorruptionError(err), errors.Is(err, pebble.ErrDBNotPristine), isNotExist(err):
		return fmt.Errorf("%w: %w", storage.ErrCorrupt, err)
	}
	return err
}
