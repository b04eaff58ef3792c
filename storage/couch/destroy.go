package couch

import (
	"errors"
	"path/filepath"

	"scanode/storage"
	"scanode/storage/home"
)

// Destroy implements storage.Engine.
func (e *Engine) Destroy(dir string) error {
	dir = filepath.Clean(dir)
	if err := e.destroy(dir); err != nil {
		return failedf("destroy %s: %w", dir, bare(err))
	}
	return nil
}

func (e *Engine) destroy(dir string) error {
	// What cannot be opened for damage can be destroyed.
	if _, err := look(e.fs, dir); err != nil && !errors.Is(err, storage.ErrCorrupt) {
		return err
	}
	if _, err := e.fs.Stat(dir); isNotExist(err) {
		return nil
	}
	return e.withLock(dir, func(dir string) error {
		if _, err := e.fs.Stat(e.fs.PathJoin(dir, home.MarkerName)); isNotExist(err) {
			return nil
		}
		if err := home.WriteWhole(e.fs, dir, home.MarkerTmpName, destroyName, "\n"); err != nil {
			return err
		}
		return removeFiles(e.fs, dir)
	}, func(dir string) {
		_ = e.fs.Remove(e.fs.PathJoin(dir, home.LockName))
		if e.fs.Remove(dir) == nil { // nothing else was in it
			_ = home.SyncDir(e.fs, e.fs.PathDir(dir))
		}
	})
}

// withLock runs f with the directory booked and locked, and what was cut short in it
// finished; and then finish, if f worked and it is not nil, when the lock is released but
// the directory still booked. Both get its real name.
func (e *Engine) withLock(dir string, f func(dir string) error, finish func(dir string)) error {
	dir, err := e.open.Enter(e.fs, dir)
	if err != nil {
		return err
	}
	defer e.open.Leave(dir)
	lock, err := home.Lock(e.fs, dir)
	if err != nil {
		return err
	}
	if err = resume(e.fs, dir); err == nil {
		err = f(dir)
	}
	if cerr := lock.Close(); err == nil {
		err = cerr
	}
	if err == nil && finish != nil {
		finish(dir)
	}
	return err
}
