package lsm

import (
	"fmt"
	"path/filepath"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/storage"
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
	// CacheBytes is the size of the block cache that all stores share.
	// 0 means 64 MiB.
	CacheBytes int64
	// MaxOpenFiles bounds the table files all stores together keep open.
	// 0 means 1000. Logs, manifests and directories (about eight descriptors
	// a store) come on top.
	MaxOpenFiles int
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
	log       func(Level, string)
	cache     *pebble.Cache
	fileCache *pebble.FileCache

	mu   sync.Mutex
	open map[string]struct{} // directories open or being opened, resolved
}

var _ storage.Engine = (*Engine)(nil)

// New returns an engine. Close it after its stores.
func New(c Config) *Engine {
	if c.CacheBytes <= 0 {
		c.CacheBytes = 64 << 20
	}
	if c.MaxOpenFiles <= 0 {
		c.MaxOpenFiles = 1000
	}
	if c.FS == nil {
		c.FS = vfs.Default
	}
	if c.Logger == nil {
		c.Logger = func(Level, string) {}
	}
	return &Engine{
		fs:        c.FS,
		log:       c.Logger,
		cache:     pebble.NewCache(c.CacheBytes),
		fileCache: pebble.NewFileCache(fileCacheShards, c.MaxOpenFiles),
		open:      make(map[string]struct{}),
	}
}

// fileCacheShards spreads the locks of the shared file cache.
const fileCacheShards = 8

// Close releases the shared caches. The stores must be closed before.
func (e *Engine) Close() {
	e.fileCache.Unref()
	e.cache.Unref()
}

// Open opens or creates the store in dir. See storage.Engine.
func (e *Engine) Open(dir string, o storage.Options) (storage.Store, error) {
	set, err := parseSettings(o.Engine)
	if err != nil {
		return nil, err
	}
	dir = filepath.Clean(dir)
	opts := &pebble.Options{
		Cache:              e.cache,
		FileCache:          e.fileCache,
		FS:                 e.fs,
		FormatMajorVersion: pebble.FormatNewest,
		MemTableSize:       uint64(set.writeBufferBytes),
	}
	opts.Experimental.ReadSamplingMultiplier = -1
	for i := range opts.Levels {
		l := &opts.Levels[i]
		l.BlockSize = int(set.blockBytes)
		l.Compression = func() *sstable.CompressionProfile { return set.compression }
		if set.bloomBits > 0 {
			l.FilterPolicy = bloom.FilterPolicy(set.bloomBits)
		}
	}
	opts.ErrorIfExists = o.ErrorIfExists
	opts.ErrorIfNotExists = !o.CreateIfMissing
	db, err := pebble.Open(dir, opts)
	if err != nil {
		return nil, fmt.Errorf("lsm: %s: %w", dir, err)
	}
	return &store{db: db, dir: dir}, nil
}
