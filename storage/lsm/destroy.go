package lsm

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"

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
	return e.alone(dir, func(dir string) error {
		names, err := e.fs.List(dir)
		if err != nil {
			return err
		}
		ours := false
		for _, name := range names {
			ours = ours || kindOf(name) == kindFrame && name != lockName
		}
		if !ours {
			return nil // a directory that holds nothing, or nothing yet
		}
		if err := writeJournal(e.fs, dir, journalDestroy, "\n"); err != nil {
			return err
		}
		return destroyFiles(e.fs, dir)
	}, func(dir string) {
		_ = e.fs.Remove(e.fs.PathJoin(dir, lockName))
		if e.fs.Remove(dir) == nil { // nothing else was in it
			_ = home.SyncDir(e.fs, e.fs.PathDir(dir))
		}
	})
}

// alone runs f with the directory booked and locked, and finish, if f worked, when
// the lock is released but the directory still booked. Both get its real name.
func (e *Engine) alone(dir string, f func(dir string) error, finish func(dir string)) error {
	dir, err := e.open.Enter(e.fs, dir)
	if err != nil {
		return err
	}
	defer e.open.Leave(dir)
	lock, err := pebble.LockDirectory(dir, e.fs)
	if err != nil {
		return home.LockError(err)
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

// isOurs reports whether a directory without a marker, or with one that cannot be
// read, is a store of ours all the same: Pebble's files, and SYNCED beside them.
func (e *Engine) isOurs(dir string) (bool, error) {
	names, err := e.fs.List(dir)
	if err != nil {
		return false, err
	}
	synced, manifest := false, false
	for _, name := range names {
		_, kind := walFile(name)
		synced = synced || name == syncedName
		manifest = manifest || kind == kindManifest
		if kindOf(name) == kindForeign && name != "lost+found" {
			return false, fmt.Errorf("%w: it holds %q, but no %s", storage.ErrForeign, name, markerName)
		}
	}
	return synced && manifest, nil
}
