package storage

// Engine opens directories as stores. One Engine serves a whole process: what
// its stores share (caches, file descriptors, background work) hangs off it.
type Engine interface {
	// Open opens the store in dir, which is an absolute path, or creates it.
	// Errors wrap ErrMissing, ErrExists, ErrLocked, ErrForeign, ErrOption or
	// ErrCorrupt; anything else is a failure of the disk. A failed Open leaves
	// nothing open and no lock behind, and creates nothing in a directory that
	// is not a store.
	Open(dir string, o Options) (Store, error)
	// Destroy removes the store in dir, and dir itself if nothing else is in it.
	// Files that are not a store's stay. A missing directory, or one without a
	// store, is fine. Errors wrap ErrLocked when the store is open, and ErrForeign
	// when the directory holds something else; anything else is a failure of the
	// disk. One that was cut short is finished by the next Open or Destroy: a
	// store is there whole or not at all.
	Destroy(dir string) error
	// Repair reads what can be read of the store in dir, damaged or not, and puts
	// a fresh store with these rows into its place. What was there is kept in a
	// directory inside it. A missing directory is fine. Errors are those of
	// Destroy, and ErrCorrupt when nothing says how to read the rows; after one the
	// store is what it was. It takes room for the rows twice.
	Repair(dir string) (Repaired, error)
}

// Repaired says what Repair did.
type Repaired struct {
	Rows  int64    // in the store now
	Lost  []string // what could not be read, one thing each; empty if everything could
	Aside string   // the directory that holds the old files; empty if there was no store
}

// Options says how a store is opened.
type Options struct {
	// CreateIfMissing creates the directory and an empty store in it where
	// there is none.
	CreateIfMissing bool
	// ErrorIfExists refuses a directory that already holds a store.
	ErrorIfExists bool
	// Engine holds the engine's own options under their own names. Values are
	// int64, bool or string. A name the engine does not know, or a value of
	// the wrong type or range, is ErrOption.
	Engine map[string]any
}

// Reader is what a store and a snapshot of it have in common.
type Reader interface {
	// Get appends the value of key to dst and returns the extended slice, or
	// ErrNotFound. On an error dst is returned unchanged.
	Get(dst, key []byte) ([]byte, error)
	// NewIter returns an iterator over r, not yet positioned. The caller must
	// close it.
	NewIter(r Range) (Iter, error)
}

// Store is one open store. See the package comment for the contract.
type Store interface {
	Reader
	// Apply writes ops in order as one atomic batch; a later op on the same
	// key wins. With sync it returns after the batch is durable. An empty
	// batch with sync makes everything applied before it durable.
	Apply(ops []Op, sync bool) error
	// Snapshot returns an unchanging view of the store as it is now. The
	// caller must close it.
	Snapshot() (Snapshot, error)
	// Checkpoint writes a consistent copy of the store, as of some moment
	// during the call and with everything synced before it, into dir, which
	// must not exist and lies on the same file system. The copy opens as a
	// store of its own.
	Checkpoint(dir string) error
	// IsEmpty reports whether the store has no row, as of some moment during the
	// call. It does not read what is there, but may have to pass over what was
	// deleted since deletions were last cleaned up.
	IsEmpty() (bool, error)
	// EstimateBytes returns about how much of the disk the keys of r take.
	// What is in memory only may be missing. It reads little.
	EstimateBytes(r Range) (int64, error)
	// Stats describes the store for operators. It is cheap enough to poll.
	Stats() (Stats, error)
	// Close flushes, closes and releases the directory. It waits for calls
	// that are under way. A second Close returns ErrClosed.
	Close() error
}

// Snapshot is an unchanging view of a store.
type Snapshot interface {
	Reader
	// Close releases the view. Using it afterwards returns ErrClosed.
	Close() error
}

// Range selects keys: from Start to End. A nil Start begins at the first key, a
// nil End ends after the last; an empty, non-nil End is before every key but
// the empty one. Start is included unless StartExclusive, End is excluded
// unless EndInclusive.
type Range struct {
	Start, End     []byte
	StartExclusive bool
	EndInclusive   bool
}

// Iter walks a Range in key order. It starts unpositioned.
//
//	for ok := it.First(); ok; ok = it.Next() {
//		use(it.Key(), it.Value())
//	}
//	if err := it.Close(); err != nil { … }
//
// A positioning call returns false at the end of the range and on an error;
// Err tells the two apart, and Close returns the same error. After false from
// Next the iterator stays past the end until it is positioned again.
type Iter interface {
	// First moves to the smallest key of the range.
	First() bool
	// Last moves to the largest key of the range.
	Last() bool
	// SeekGE moves to the smallest key of the range that is >= key.
	SeekGE(key []byte) bool
	// SeekLT moves to the largest key of the range that is < key.
	SeekLT(key []byte) bool
	// Next moves to the following key; it needs a valid position.
	Next() bool
	// Prev moves to the preceding key; it needs a valid position.
	Prev() bool
	// Valid reports whether the iterator stands on a key.
	Valid() bool
	// Key returns the current key, valid until the next positioning call.
	Key() []byte
	// Value returns the current value, valid until the next positioning call.
	// When it cannot be read the iterator turns invalid, Value returns nil and
	// Err says why.
	Value() []byte
	// Err returns the error that ended the walk, nil at a plain end.
	Err() error
	// Close releases the iterator and returns Err. Closing twice is allowed.
	Close() error
}

// Kind tells what an Op does.
type Kind uint8

// The kinds of Op.
const (
	Put    Kind = iota // store Value under Key
	Delete             // remove Key; removing an absent key is no error
)

// Op is one write of a batch. Value is ignored for Delete.
type Op struct {
	Kind       Kind
	Key, Value []byte
	// Written is when the row was written, in microseconds since 1970, where that is
	// not now; 0 is now. Only stores whose rows expire keep it.
	Written uint64
}

// Stats describes a store: sizes in bytes, everything else counts.
type Stats struct {
	Engine      string // name of the engine
	DiskBytes   int64  // bytes on disk, log included
	MemoryBytes int64  // memtables and the like, shared caches not included
	Files       int64  // table files
	Iterators   int64  // open iterators, those of snapshots included
	Snapshots   int64  // open snapshots
	ReadErrors  int64  // blocks that could not be read since open
	Parked      bool   // the store refuses work, see ErrParked
	Text        string // the engine's own report, several lines

	LevelFiles      []int64 // table files of each level; empty for engines without levels
	TableBytes      int64   // bytes of the table files: rows, indexes and filters
	BlockCacheBytes int64   // in the block cache, which all stores of the engine share
	FileCacheBytes  int64   // of what is kept in memory of open table files, shared too
	Table           string  // a table of the levels, for people: a line each
}
