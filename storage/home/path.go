package home

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/storage"
)

// NotDangling returns an error that wraps ErrForeign when path, or a directory
// above it, is a symbolic link to what is not there.
func NotDangling(fsys vfs.FS, path string) error {
	if vfs.Root(fsys) != vfs.Default {
		return nil
	}
	for p := path; ; p = filepath.Dir(p) {
		if _, err := os.Stat(p); !errors.Is(err, fs.ErrNotExist) || p == filepath.Dir(p) {
			return nil
		}
		if target, err := os.Readlink(p); err == nil {
			return fmt.Errorf("%w: %s is a link to %s, which does not exist", storage.ErrForeign, p, target)
		}
	}
}

// realName returns dir with its symbolic links resolved, as far as it exists.
func realName(fsys vfs.FS, dir string) string {
	if vfs.Root(fsys) != vfs.Default {
		return dir
	}
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	rest := ""
	for p := dir; ; p = filepath.Dir(p) {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			return filepath.Join(real, rest)
		}
		if p == filepath.Dir(p) {
			return dir
		}
		rest = filepath.Join(filepath.Base(p), rest)
	}
}

// NotInside returns an error that wraps ErrForeign when dir lies in a directory
// of a store of ours, which expects no strange files there. What cannot be
// looked into is taken for no store.
func NotInside(fsys vfs.FS, dir string) error {
	for p := realName(fsys, dir); ; {
		parent := fsys.PathDir(p)
		if parent == p {
			return nil
		}
		if _, err := fsys.Stat(fsys.PathJoin(parent, MarkerName)); err == nil {
			return fmt.Errorf("%w: it lies inside the store %s", storage.ErrForeign, parent)
		}
		p = parent
	}
}
