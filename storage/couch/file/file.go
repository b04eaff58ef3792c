package file

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// DefaultMaxChunkBytes is the limit of Options.MaxChunkBytes when it is 0.
const DefaultMaxChunkBytes = 256 << 20

// Options say how a file is read and written. The zero value is what CouchDB
// does today.
type Options struct {
	// Sum is the kind of checksum that is written, and tried first in reading.
	Sum Sum
	// MaxChunkBytes is the most a chunk or a header may hold, in reading and in
	// writing; 0 is DefaultMaxChunkBytes.
	//
	// Differs from couch_file, which takes whatever 31 bits can say.
	MaxChunkBytes int
	// SumAll gives every chunk that is written a checksum, also those of batches, which
	// have the nodes of trees. Reading one verifies it.
	//
	// Differs from couch_btree, which writes nodes without; couch_file reads both.
	SumAll bool
	// Guarded says that the caller has a lock of his own on the file's directory. Then
	// none is taken on a name beside the file, where the file system has no
	// descriptors: that name would not follow the file when it is renamed.
	Guarded bool
}

// File is an open file. Its methods may be called from any goroutine; calls that
// write wait for each other, calls that read wait for nobody.
type File struct {
	name     string
	file     vfs.File
	lock     io.Closer // nil when the file is open for reading only
	sum      Sum
	maxChunk int64
	sumAll   bool

	eof    atomic.Int64 // nothing behind it is read; moved by writers after they wrote
	broken atomic.Pointer[Error]

	open sync.RWMutex // read-locked by readers while they use file; Close locks it

	mu  sync.Mutex // held by writers, before open
	buf []byte     // of the write under way; kept between writes while it is small
}

// keepBuffer is the largest write buffer that is kept for the next write.
const keepBuffer = 1 << 20

// Open opens name for reading and appending. A file with bytes in it but without a
// valid header is refused with ErrNoHeader, or ErrHeaderTerm. Nothing that is in
// the file is ever changed; what is behind the last header stays as garbage. The
// lock is held until Close. The file is synced before its header is looked for,
// lest a header be used that a loss of power could still take away.
//
// Differs from couch_db, which gives a file without a valid header a new and empty
// one, and so hides all that is in it.
//
// Errors: fs.ErrNotExist, ErrLocked, ErrNoHeader, ErrHeaderTerm, those of the file
// system.
func Open(fsys vfs.FS, name string, o Options) (*File, error) {
	// OpenReadWrite would make the file.
	if _, err := fsys.Stat(name); err != nil {
		return nil, wholeFile(name, err)
	}
	f, err := openReadWrite(fsys, name, o)
	if err != nil {
		return nil, err
	}
	if f.Size() > 0 {
		if err := f.Sync(); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if _, err := f.LastHeader(); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return f, nil
}

// Create makes the file name, or takes an empty one, for reading and appending. It
// makes the file's name durable, not a byte in it: write a header at once, for a
// file that has bytes and no header cannot be opened.
//
// Errors: ErrExists when there is a byte in the file, ErrLocked, those of the file
// system.
func Create(fsys vfs.FS, name string, o Options) (*File, error) {
	f, err := openReadWrite(fsys, name, o)
	if err != nil {
		return nil, err
	}
	if f.Size() > 0 {
		return nil, errors.Join(wholeFile(name, ErrExists), f.Close())
	}
	if err := syncDir(fsys, fsys.PathDir(name)); err != nil {
		return nil, errors.Join(wholeFile(name, err), f.Close())
	}
	return f, nil
}

// OpenReadOnly opens name for reading as it is now; it need have no header. It
// takes no lock, and what is appended afterwards is not seen.
//
// Errors: fs.ErrNotExist, those of the file system.
func OpenReadOnly(fsys vfs.FS, name string, o Options) (*File, error) {
	file, err := fsys.Open(name)
	if err != nil {
		return nil, wholeFile(name, err)
	}
	return newFile(file, name, o)
}

func openReadWrite(fsys vfs.FS, name string, o Options) (*File, error) {
	file, err := fsys.OpenReadWrite(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, wholeFile(name, err)
	}
	lock, err := lockFile(fsys, file, name, o.Guarded)
	if err != nil {
		return nil, errors.Join(wholeFile(name, err), file.Close())
	}
	f, err := newFile(file, name, o)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	f.lock = lock
	return f, nil
}

// newFile takes over file, also when it fails.
func newFile(file vfs.File, name string, o Options) (*File, error) {
	info, err := file.Stat()
	if err == nil && info.IsDir() {
		err = &fs.PathError{Op: "open", Path: name, Err: errors.New("is a directory")}
	}
	if err != nil {
		return nil, errors.Join(wholeFile(name, err), file.Close())
	}
	f := &File{name: name, file: file, sum: o.Sum, maxChunk: int64(o.MaxChunkBytes), sumAll: o.SumAll}
	if f.maxChunk <= 0 {
		f.maxChunk = DefaultMaxChunkBytes
	}
	f.maxChunk = min(f.maxChunk, math.MaxInt32)
	f.eof.Store(info.Size())
	return f, nil
}

func wholeFile(name string, err error) error { return &Error{Name: name, Offset: -1, Err: err} }

func syncDir(fsys vfs.FS, dir string) error {
	d, err := fsys.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Name returns the name the file was opened with.
func (f *File) Name() string { return f.name }

// Size returns the length of the file in bytes.
func (f *File) Size() int64 { return f.eof.Load() }

// usable returns why the file cannot be used, or nil.
func (f *File) usable() error {
	if b := f.broken.Load(); b != nil {
		return b
	}
	return nil
}

// readAt fills b with the bytes at off, which were within the file when its end
// was last looked at.
func (f *File) readAt(b []byte, off int64) error {
	f.open.RLock()
	defer f.open.RUnlock()
	if err := f.usable(); err != nil {
		return err
	}
	n, err := f.file.ReadAt(b, off)
	switch {
	case n == len(b):
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return f.fault(off, ErrBeyondEOF, "%d bytes, and the file has become shorter", len(b))
	}
	return f.fault(off, err, "")
}

// Append writes payloads, each as a chunk without a checksum, in one write, and
// returns where they are. They can be read when it returns; a loss of power may
// take them away until Sync returns. The payloads are not kept.
//
// Errors: ErrTooLarge, and then nothing is written; ErrReadOnly, ErrChanged,
// ErrFailed, ErrClosed, those of the file system. A write that failed fails the
// handle: see ErrFailed.
func (f *File) Append(payloads [][]byte) ([]Chunk, error) { return f.append(payloads, false) }

// AppendSummed is Append for chunks with checksums, as the bodies of documents are
// written.
func (f *File) AppendSummed(payloads [][]byte) ([]Chunk, error) { return f.append(payloads, true) }

func (f *File) append(payloads [][]byte, checksum bool) ([]Chunk, error) {
	for _, p := range payloads {
		if int64(len(p)) > f.maxChunk {
			return nil, f.fault(-1, ErrTooLarge, "chunk of %d bytes, limit %d", len(p), f.maxChunk)
		}
	}
	chunks := make([]Chunk, 0, len(payloads))
	f.mu.Lock()
	defer f.mu.Unlock()
	start := f.eof.Load()
	buf := f.buf[:0]
	for _, p := range payloads {
		at := len(buf)
		ptr := start + int64(at)
		buf = f.sum.appendChunk(buf, ptr, p, checksum)
		chunks = append(chunks, Chunk{Ptr: ptr, Size: int64(len(buf) - at)})
	}
	if err := f.write(buf); err != nil {
		return nil, err
	}
	return chunks, nil
}

// write puts b, which may be f.buf, at the end of the file. f.mu is held.
func (f *File) write(b []byte) error {
	if cap(b) <= keepBuffer {
		f.buf = b[:0]
	}
	if err := f.writable(); err != nil {
		return err
	}
	eof := f.eof.Load()
	// Nothing but this look stops us from writing over what one has appended who
	// does not heed the lock.
	info, err := f.file.Stat()
	if err != nil {
		return f.fault(eof, err, "")
	}
	if info.Size() != eof {
		return f.fail(eof, ErrChanged)
	}
	if len(b) == 0 {
		return nil
	}
	if _, err := f.file.WriteAt(b, eof); err != nil {
		return f.fail(eof, err)
	}
	f.eof.Store(eof + int64(len(b)))
	return nil
}

func (f *File) writable() error {
	if f.lock == nil {
		return f.fault(-1, ErrReadOnly, "")
	}
	return f.usable()
}

// fail makes every later call fail, for after err nobody knows what is in the
// file, and a failed sync that is tried again may succeed without having written
// anything. It returns err at off.
func (f *File) fail(off int64, err error) error {
	f.broken.CompareAndSwap(nil, &Error{Name: f.name, Offset: -1, Err: &failure{err}})
	return f.fault(off, err, "")
}

// failure is ErrFailed with its cause.
type failure struct{ cause error }

// Error implements error.
func (e *failure) Error() string { return ErrFailed.Error() + ": " + e.cause.Error() }

// Unwrap gives errors.Is both.
func (e *failure) Unwrap() []error { return []error{ErrFailed, e.cause} }

// Sync makes durable what was appended before the call. A sync that failed fails
// the handle: see ErrFailed.
func (f *File) Sync() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sync()
}

func (f *File) sync() error {
	if err := f.writable(); err != nil {
		return err
	}
	if err := f.file.SyncData(); err != nil {
		return f.fail(-1, err)
	}
	return nil
}

// Close waits for the calls that use the file, closes it and gives up its lock. It
// does not sync. Later calls fail with ErrClosed, a second Close too.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open.Lock()
	defer f.open.Unlock()
	closed := &Error{Name: f.name, Offset: -1, Err: ErrClosed}
	if was := f.broken.Swap(closed); was != nil && was.Err == ErrClosed {
		return was
	}
	err := f.file.Close()
	if f.lock != nil {
		err = errors.Join(err, f.lock.Close())
	}
	if err != nil {
		return wholeFile(f.name, err)
	}
	return nil
}
