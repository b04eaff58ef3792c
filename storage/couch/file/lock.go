package file

import (
	"errors"
	"io"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// lockFile takes the lock that keeps a second appender away; closing what it
// returns gives it up.
//
// The lock is flock(2) on the file itself: it holds under whatever name the file is
// reached, leaves no file behind, and is gone with the process. The lock of vfs.FS
// would not do, for it truncates the file it is put on, and is lost as soon as
// anybody in this process closes the same file. It stands in for file systems
// without descriptors, which are in memory, on a name of its own, unless the caller guards
// the file.
//
// Differs from couch_file, which takes none and heeds none.
func lockFile(fsys vfs.FS, file vfs.File, name string, guarded bool) (io.Closer, error) {
	fd := file.Fd()
	if fd == vfs.InvalidFd {
		if guarded {
			return descriptorLock{}, nil
		}
		lock, err := fsys.Lock(name + ".lock")
		if errors.Is(err, syscall.EAGAIN) {
			return nil, ErrLocked
		}
		return lock, err
	}
	err := syscall.Flock(int(fd), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, ErrLocked
	}
	return descriptorLock{}, err
}

// descriptorLock is a lock that ends with the descriptor.
type descriptorLock struct{}

// Close implements io.Closer.
func (descriptorLock) Close() error { return nil }
