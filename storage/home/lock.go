package home

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/storage"
)

// Lock locks the file LOCK in dir, which exists, until what it returns is closed. The
// system gives the lock up with the process. Errors are those of LockError.
func Lock(fsys vfs.FS, dir string) (io.Closer, error) {
	lock, err := fsys.Lock(fsys.PathJoin(dir, LockName))
	if err != nil {
		return nil, LockError(err)
	}
	return lock, nil
}

// LockError tells a lock that is held, which wraps ErrLocked then, from a disk that
// fails.
func LockError(err error) error {
	switch {
	case errors.Is(err, syscall.EAGAIN):
		return fmt.Errorf("%w: another process has it open", storage.ErrLocked)
	case strings.Contains(err.Error(), "lock held by current process"): // by another engine
		return fmt.Errorf("%w: this process has it open", storage.ErrLocked)
	}
	return err
}
