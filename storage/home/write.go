package home

import (
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// WriteWhole writes a file durably, all of it or nothing.
func WriteWhole(fsys vfs.FS, dir, tmpName, name, text string) error {
	tmp := fsys.PathJoin(dir, tmpName)
	f, err := fsys.Create(tmp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if _, err = io.WriteString(f, text); err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	if err := fsys.Rename(tmp, fsys.PathJoin(dir, name)); err != nil {
		return err
	}
	return SyncDir(fsys, dir)
}

// SyncDir makes the entries of dir durable.
func SyncDir(fsys vfs.FS, dir string) error {
	d, err := fsys.OpenDir(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return err
}

// MakeDir creates dir and what is missing above it, durably.
func MakeDir(fsys vfs.FS, dir string) error {
	var above []string // parents whose entries may change
	for p := dir; ; {
		parent := fsys.PathDir(p)
		if parent == p {
			break
		}
		above = append(above, parent)
		if _, err := fsys.Stat(parent); err == nil {
			break
		}
		p = parent
	}
	if err := fsys.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, p := range above {
		if err := SyncDir(fsys, p); err != nil {
			return err
		}
	}
	return nil
}
