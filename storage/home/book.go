package home

import (
	"fmt"
	"path/filepath"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/storage"
)

// Book has the directories that an engine of this process has open, by their real
// names. A lock on a file alone does not do: under two names of a directory the system
// grants it twice to one process. The zero value is an empty book.
type Book struct {
	mu   sync.Mutex
	dirs map[string]struct{}
}

// Enter books dir, which exists, for one store and returns its real name. Errors wrap
// ErrLocked when it is booked; anything else is the disk's.
func (b *Book) Enter(fsys vfs.FS, dir string) (string, error) {
	if vfs.Root(fsys) == vfs.Default {
		var err error
		if dir, err = filepath.EvalSymlinks(dir); err != nil {
			return "", err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.dirs[dir]; ok {
		return "", fmt.Errorf("%w: this process has it open", storage.ErrLocked)
	}
	if b.dirs == nil {
		b.dirs = map[string]struct{}{}
	}
	b.dirs[dir] = struct{}{}
	return dir, nil
}

// Leave gives back the real name that Enter has returned.
func (b *Book) Leave(dir string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.dirs, dir)
}

// Len returns how many directories are booked.
func (b *Book) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.dirs)
}
