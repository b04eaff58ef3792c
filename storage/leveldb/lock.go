package leveldb

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"scanode/storage"
)

// lock keeps LevelDB out of dir until what it returns is closed, or finds that it is
// in. LevelDB locks the file LOCK for writing, by fcntl; other implementations do it by
// flock. Locks for reading exclude both and need no more than a file that can be read,
// so nothing is written or created. A directory without LOCK has nobody in it. The
// result may be nil.
//
// LevelDB's lock is a process's: this one goes with the first file LOCK of dir that
// this process closes.
func lock(dir string) (io.Closer, error) {
	name := filepath.Join(dir, "LOCK")
	f, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
			return nil, fmt.Errorf("%w: another process has %s open", storage.ErrLocked, dir)
		}
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	return f, nil
}

func lockFile(f *os.File) error {
	whole := syscall.Flock_t{Type: syscall.F_RDLCK, Whence: io.SeekStart}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &whole); err != nil {
		return err
	}
	return syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
}
