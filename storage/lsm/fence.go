package lsm

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// errFenced is what table files answer to writes once the fence is up.
var errFenced = errors.New("the store writes no more")

// fence is the file system of one store. While the store lives it passes
// everything through. When a write fails that pebble cannot survive (its log,
// its manifest, its markers, the directory itself; during Open any but a removal), the fence
// goes up: the store is told, the disk is not written again, and pebble is told
// that the write succeeded. What pebble does from then on happens in memory and
// is thrown away, so the disk stays as a crash would have left it.
//
//	           up?  no                      yes
//	write ok        disk                    -
//	write fails     raise, then void        -
//	log, manifest   disk                    void: swallowed, never read back
//	table, old      disk, errors returned   errFenced: the flush is run again …
//	table, new      disk, errors returned   … into memory, and read from there
//	remove, rename  disk                    void
//	read            disk                    void where the file is there, else disk
//
// The lie is safe because the store looks at its state after every call into
// pebble and answers ErrUnknown for all that ran while the fence went up. It is
// needed because pebble has no way out of a failed log write: it panics with
// its mutexes held or unlocked twice, or calls Logger.Fatalf and waits for the
// process to end. In the lie no lock is lost, nothing blocks, and Close works.
type fence struct {
	vfs.FS // reads, paths and everything else that changes nothing
	dir    string
	raise  func(cause error) // tells the store; called at least once when the fence goes up
	// delayFlush is called before a flush makes a table file; it holds up one
	// that has failed before.
	delayFlush func()

	up      atomic.Bool
	opening atomic.Bool // every failed write is fatal: nothing is worth keeping yet
	ops     sync.RWMutex
	void    *vfs.MemFS // what is created behind the fence

	readErrors atomic.Int64
	synced     syncedFile
	bad        badBlocks

	mu    sync.Mutex
	files map[*fenceFile]struct{} // open files, for drop
	lock  *fenceLock
}

func newFence(fs vfs.FS, dir string, raise func(error), delayFlush func()) *fence {
	f := &fence{
		FS:         fs,
		dir:        dir,
		raise:      raise,
		delayFlush: delayFlush,
		void:       vfs.NewMem(),
		files:      make(map[*fenceFile]struct{}),
	}
	f.opening.Store(true)
	return f
}

// enter begins an operation that changes the disk. It returns false when the
// fence is up; otherwise leave must follow.
func (f *fence) enter() bool {
	if f.up.Load() {
		return false
	}
	f.ops.RLock()
	if f.up.Load() {
		f.ops.RUnlock()
		return false
	}
	return true
}

func (f *fence) leave() { f.ops.RUnlock() }

// barrier waits, with the fence up, for the writes that passed it before. After
// it nothing of this store reaches the disk any more, and the directory may be
// handed to another.
func (f *fence) barrier() {
	f.up.Store(true)
	f.ops.Lock()
	f.ops.Unlock() //nolint:staticcheck // waiting is all there is to do
}

// fail puts the fence up after op on name failed. The store is told first: a
// write of another goroutine that is swallowed because the fence is up must find
// the store parked when it asks, or it would be acknowledged.
func (f *fence) fail(op, name string, err error) {
	f.raise(fmt.Errorf("%s %s: %w", op, f.PathBase(name), err))
	f.up.Store(true)
}

// critical says whether pebble cannot survive a failed write of name.
func (f *fence) critical(name string) bool {
	if f.opening.Load() || name == f.dir {
		return true
	}
	if f.PathDir(name) != f.dir {
		return false // a checkpoint
	}
	base := f.PathBase(name)
	return strings.HasSuffix(base, ".log") || strings.HasPrefix(base, "MANIFEST-") ||
		strings.HasPrefix(base, "marker.")
}

// try runs op on the disk when the fence is down. It returns true when the
// operation is to be done behind the fence instead.
func (f *fence) try(verb, name string, op func() error) (void bool, err error) {
	if !f.enter() {
		return true, nil
	}
	err = op()
	f.leave()
	if err != nil && f.critical(name) {
		f.fail(verb, name, err)
		return true, nil
	}
	return false, err
}

// voidName is the name of a file behind the fence, where there are no
// directories.
func (f *fence) voidName(name string) string { return "/" + f.PathBase(name) }

// wrap guards an open file.
func (f *fence) wrap(file vfs.File, name string) vfs.File {
	w := &fenceFile{File: file, f: f, name: name}
	f.mu.Lock()
	f.files[w] = struct{}{}
	f.mu.Unlock()
	return w
}

// create runs one of the calls that make a file.
func (f *fence) create(verb, name string, category vfs.DiskWriteCategory, op func() (vfs.File, error)) (vfs.File, error) {
	var file vfs.File
	void, err := f.try(verb, name, func() (err error) {
		file, err = op()
		return err
	})
	switch {
	case void:
		return f.void.Create(f.voidName(name), category)
	case err != nil:
		return nil, err
	}
	return f.wrap(file, name), nil
}

// flushCategory marks the table files that flushes write.
const flushCategory vfs.DiskWriteCategory = "pebble-memtable-flush"

// Create implements vfs.FS.
func (f *fence) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if category == flushCategory {
		f.delayFlush()
	}
	return f.create("create", name, category, func() (vfs.File, error) { return f.FS.Create(name, category) })
}

// OpenReadWrite implements vfs.FS.
func (f *fence) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return f.create("open", name, category, func() (vfs.File, error) { return f.FS.OpenReadWrite(name, category, opts...) })
}

// ReuseForWrite implements vfs.FS.
func (f *fence) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return f.create("reuse", newname, category, func() (vfs.File, error) {
		return f.FS.ReuseForWrite(oldname, newname, category)
	})
}

// Open implements vfs.FS.
func (f *fence) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if f.up.Load() {
		if file, err := f.void.Open(f.voidName(name)); err == nil {
			return file, nil
		}
	}
	file, err := f.FS.Open(name, opts...)
	if err != nil {
		return nil, err
	}
	return f.wrap(file, name), nil
}

// OpenDir implements vfs.FS.
func (f *fence) OpenDir(name string) (vfs.File, error) {
	file, err := f.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return f.wrap(file, name), nil
}

// Stat implements vfs.FS.
func (f *fence) Stat(name string) (vfs.FileInfo, error) {
	if f.up.Load() {
		if info, err := f.void.Stat(f.voidName(name)); err == nil {
			return info, nil
		}
	}
	return f.FS.Stat(name)
}

// List implements vfs.FS. A directory that cannot be listed fails Open like a
// failed write: pebble lists it once more near the end of Open, where it leaks
// on errors.
func (f *fence) List(dir string) ([]string, error) {
	names, err := f.FS.List(dir)
	if err != nil && f.opening.Load() {
		f.fail("list", dir, err)
		return nil, nil
	}
	return names, err
}

// Remove implements vfs.FS. A file that stays loses nothing, so that a failed
// removal is the caller's to know and never puts the fence up.
func (f *fence) Remove(name string) error {
	if !f.enter() {
		_ = f.void.Remove(f.voidName(name)) // it need not be there
		return nil
	}
	defer f.leave()
	return f.FS.Remove(name)
}

// RemoveAll implements vfs.FS. See Remove.
func (f *fence) RemoveAll(name string) error {
	if !f.enter() {
		return nil
	}
	defer f.leave()
	return f.FS.RemoveAll(name)
}

// Rename implements vfs.FS.
func (f *fence) Rename(oldname, newname string) error {
	void, err := f.try("rename", newname, func() error { return f.FS.Rename(oldname, newname) })
	if void {
		_ = f.void.Rename(f.voidName(oldname), f.voidName(newname))
	}
	return err
}

// trim gives back the room that was preallocated for a file and lies behind its
// end. It need not succeed.
func (f *fence) trim(name string) {
	if !f.enter() {
		return
	}
	defer f.leave()
	file, err := f.FS.OpenReadWrite(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return
	}
	defer file.Close()
	info, err := file.Stat()
	if fd := file.Fd(); err == nil && fd != vfs.InvalidFd {
		_ = syscall.Ftruncate(int(fd), info.Size())
	}
}

// Link implements vfs.FS. Only checkpoints link; behind the fence there are
// none.
func (f *fence) Link(oldname, newname string) error {
	void, err := f.try("link", newname, func() error { return f.FS.Link(oldname, newname) })
	if void {
		return errFenced
	}
	return err
}

// MkdirAll implements vfs.FS.
func (f *fence) MkdirAll(dir string, perm os.FileMode) error {
	_, err := f.try("mkdir", dir, func() error { return f.FS.MkdirAll(dir, perm) })
	return err
}

// Unwrap implements vfs.FS.
func (f *fence) Unwrap() vfs.FS { return f.FS }

// Lock implements vfs.FS. The fence keeps the lock, so that unlock can give it
// back before, or without, pebble's doing so.
func (f *fence) Lock(name string) (io.Closer, error) {
	c, err := f.FS.Lock(name)
	if err != nil {
		return nil, err
	}
	l := &fenceLock{c: c}
	f.mu.Lock()
	f.lock = l
	f.mu.Unlock()
	return l, nil
}

// unlock releases the directory. The fence must be up and the barrier passed,
// or pebble be closed.
func (f *fence) unlock() error {
	f.mu.Lock()
	l := f.lock
	f.mu.Unlock()
	if l == nil {
		return nil
	}
	return l.Close()
}

// drop closes the files pebble has left open.
func (f *fence) drop() {
	f.mu.Lock()
	left := make([]*fenceFile, 0, len(f.files))
	for w := range f.files {
		left = append(left, w)
	}
	f.mu.Unlock()
	for _, w := range left {
		_ = w.Close()
	}
}

// fenceLock releases a file lock once, whoever asks first.
type fenceLock struct {
	once sync.Once
	c    io.Closer
	err  error
}

// Close implements io.Closer.
func (l *fenceLock) Close() error {
	l.once.Do(func() { l.err = l.c.Close() })
	return l.err
}
