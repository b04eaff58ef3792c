package lsm

import (
	"errors"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// fenceFile is a file of the disk seen through the fence.
type fenceFile struct {
	vfs.File
	f       *fence
	name    string
	written atomic.Int64 // bytes, of files that are written from their beginning
	once    sync.Once
	err     error

	mu     sync.Mutex
	reads  int  // under way
	closed bool // by Close; the last read closes the file then
}

// write runs op, which changes the file, when the fence is down. Behind the
// fence critical files swallow writes and table files refuse them.
func (w *fenceFile) write(verb string, op func() error) error {
	if w.f.enter() {
		err := op()
		w.f.leave()
		if err == nil || !w.f.critical(w.name) {
			return err
		}
		w.f.fail(verb, w.name, err)
		return nil
	}
	if w.f.critical(w.name) {
		return nil
	}
	return errFenced
}

// Write implements io.Writer.
func (w *fenceFile) Write(p []byte) (int, error) {
	n := len(p)
	err := w.write("write", func() (err error) {
		var m int
		m, err = w.File.Write(p)
		w.written.Add(int64(m))
		if err != nil && !w.f.critical(w.name) {
			n = m
		}
		return err
	})
	if err == errFenced {
		n = 0
	}
	return n, err
}

// WriteAt implements io.WriterAt.
func (w *fenceFile) WriteAt(p []byte, off int64) (int, error) {
	err := w.write("write", func() error {
		_, err := w.File.WriteAt(p, off)
		return err
	})
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// Preallocate implements vfs.File. It is a hint: a disk that is full will say
// so again when it is written.
func (w *fenceFile) Preallocate(offset, length int64) error {
	if w.f.enter() {
		_ = w.File.Preallocate(offset, length)
		w.f.leave()
	}
	return nil
}

// Sync implements vfs.File.
func (w *fenceFile) Sync() error { return w.sync(w.File.Sync) }

// SyncData implements vfs.File.
func (w *fenceFile) SyncData() error { return w.sync(w.File.SyncData) }

// sync runs op, which syncs the file, and notes how much that was.
func (w *fenceFile) sync(op func() error) error {
	return w.write("sync", func() error {
		n := w.written.Load()
		err := op()
		if err == nil && w.f.PathDir(w.name) == w.f.dir {
			w.f.synced.note(w.f.PathBase(w.name), n)
		}
		return err
	})
}

// SyncTo implements vfs.File.
func (w *fenceFile) SyncTo(length int64) (full bool, err error) {
	err = w.write("sync", func() (err error) {
		full, err = w.File.SyncTo(length)
		return err
	})
	return full, err
}

// Read implements io.Reader.
func (w *fenceFile) Read(p []byte) (int, error) {
	n, err := w.File.Read(p)
	w.noteRead(err)
	return n, err
}

// ReadAt implements io.ReaderAt.
func (w *fenceFile) ReadAt(p []byte, off int64) (int, error) {
	if err := w.f.bad.at(w.name, off, len(p)); err != nil {
		return 0, err
	}
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return 0, fs.ErrClosed
	}
	w.reads++
	w.mu.Unlock()
	defer w.endRead()
	n, err := w.File.ReadAt(p, off)
	w.noteRead(err)
	return n, err
}

// endRead closes the file if Close came during the read: a descriptor that is closed
// under a read may be another file's by then.
func (w *fenceFile) endRead() {
	w.mu.Lock()
	w.reads--
	last := w.closed && w.reads == 0
	w.mu.Unlock()
	if last {
		_ = w.File.Close()
	}
}

// beginClose says whether the file can be closed now, and not by the last read.
func (w *fenceFile) beginClose() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	return w.reads == 0
}

func (w *fenceFile) noteRead(err error) {
	if err != nil && !errors.Is(err, io.EOF) {
		w.f.readErrors.Add(1)
	}
}

// Close implements io.Closer. Only the first call closes: drop may have come
// before pebble.
func (w *fenceFile) Close() error {
	w.once.Do(func() {
		w.f.mu.Lock()
		delete(w.f.files, w)
		w.f.mu.Unlock()
		if !w.beginClose() {
			return
		}
		if err := w.File.Close(); err != nil {
			if w.f.critical(w.name) {
				w.f.fail("close", w.name, err)
			} else {
				w.err = err
			}
		}
	})
	return w.err
}
