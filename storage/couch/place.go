package couch

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/storage"
	"scanode/storage/couch/file"
	"scanode/storage/home"
)

// The files of a store. Beside them there are the marker and LOCK, see package home.
const (
	fileName    = "store.couch"         // the rows
	newName     = "store.couch.new"     // a file that is to take its place, see below
	compactName = "store.couch.compact" // what a compaction has copied so far
	destroyName = "DESTROY"             // everything is to be removed
	asidePrefix = "damaged-"            // and a number: directories of what Repair has put aside
	format      = 1
)

// A store is made, and repaired, in such steps that it is there whole or not at all:
//
//	store.couch.new      written and synced
//	SCANODE              the marker, when the store is new
//	damaged-1/store.couch the old file is put aside, when the store is repaired
//	store.couch          store.couch.new is renamed
//
// So with a marker and without store.couch, store.couch.new is whole; in all other cases
// it is worth nothing.

// place says what a directory is.
type place uint8

const (
	placeMissing place = iota // no directory, or one without a store
	placeStore                // a store of ours
)

// look finds out what dir is, reading only. Errors wrap ErrForeign or ErrCorrupt; anything
// else is the disk's.
func look(fsys vfs.FS, dir string) (place, error) {
	info, err := fsys.Stat(dir)
	if isNotExist(err) {
		return placeMissing, home.NotDangling(fsys, dir)
	}
	if err != nil {
		return placeMissing, err
	}
	if !info.IsDir() {
		return placeMissing, fmt.Errorf("%w: it is a file, not a directory", storage.ErrForeign)
	}
	names, err := fsys.List(dir)
	if err != nil {
		return placeMissing, err
	}
	has := make(map[string]bool, len(names))
	foreign := ""
	for _, name := range names {
		has[name] = true
		switch name {
		case home.MarkerName, home.MarkerTmpName, home.LockName, newName, destroyName, "lost+found":
		default:
			if foreign == "" || name < foreign {
				foreign = name
			}
		}
	}
	if !has[home.MarkerName] {
		if foreign != "" {
			return placeMissing, fmt.Errorf("%w: it holds %q, but no %s", storage.ErrForeign, foreign, home.MarkerName)
		}
		return placeMissing, nil
	}
	if err := checkMarker(fsys, fsys.PathJoin(dir, home.MarkerName)); err != nil {
		return placeMissing, err
	}
	switch {
	case has[destroyName]:
		return placeMissing, nil
	case !has[fileName] && !has[newName]:
		return placeMissing, fmt.Errorf("%w: %s is there, but no %s", storage.ErrCorrupt, home.MarkerName, fileName)
	}
	return placeStore, nil
}

// checkMarker reads a marker and says whether this engine can open the store.
func checkMarker(fsys vfs.FS, path string) error {
	b, err := home.ReadSmall(fsys, path)
	if err != nil {
		return err
	}
	engine, number, rest, ok := home.ParseMarker(b)
	switch {
	case !ok:
		return fmt.Errorf("%w: %s cannot be read", storage.ErrCorrupt, home.MarkerName)
	case engine != Name:
		return fmt.Errorf("%w: it is a store of engine %q", storage.ErrForeign, engine)
	case number > format:
		return fmt.Errorf("%w: its format %d is newer than this program, which knows %d", storage.ErrForeign, number, format)
	case rest != "":
		return fmt.Errorf("%w: %s has more lines than it should", storage.ErrCorrupt, home.MarkerName)
	}
	return nil
}

// resume finishes what was cut short in dir, which is locked.
func resume(fsys vfs.FS, dir string) error {
	names, err := fsys.List(dir)
	if err != nil {
		return err
	}
	has := make(map[string]bool, len(names))
	for _, name := range names {
		has[name] = true
	}
	switch {
	case has[destroyName]:
		return removeFiles(fsys, dir)
	case !has[newName]:
		return nil
	case has[home.MarkerName] && !has[fileName]:
		return install(fsys, dir)
	}
	return fsys.Remove(fsys.PathJoin(dir, newName))
}

// install renames store.couch.new. A compaction of the old file, if there was one, is of
// no use to the new one.
func install(fsys vfs.FS, dir string) error {
	if err := fsys.Remove(fsys.PathJoin(dir, compactName)); err != nil && !isNotExist(err) {
		return err
	}
	if err := fsys.Rename(fsys.PathJoin(dir, newName), fsys.PathJoin(dir, fileName)); err != nil {
		return err
	}
	return home.SyncDir(fsys, dir)
}

// createFile makes the file of an empty store in dir, which is locked, and its marker.
func createFile(fsys vfs.FS, dir string) error {
	f, err := createEmpty(fsys, fsys.PathJoin(dir, newName), header{id: newID()})
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := home.WriteMarker(fsys, dir, Name, format, ""); err != nil {
		return err
	}
	return install(fsys, dir)
}

// createEmpty makes a file with a header, in the place of what has its name.
func createEmpty(fsys vfs.FS, path string, h header) (*file.File, error) {
	if err := fsys.Remove(path); err != nil && !isNotExist(err) {
		return nil, err
	}
	f, err := file.Create(fsys, path, fileOptions)
	if err != nil {
		return nil, err
	}
	if _, err := f.Commit(h.append(nil)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// isAside reports whether name is that of a directory of what Repair has put aside.
func isAside(name string) bool {
	digits, ok := strings.CutPrefix(name, asidePrefix)
	_, err := strconv.ParseUint(digits, 10, 32)
	return ok && err == nil
}

// removeFiles removes the files of the store in dir; DESTROY and then the marker go last,
// and LOCK stays.
func removeFiles(fsys vfs.FS, dir string) error {
	names, err := fsys.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		path := fsys.PathJoin(dir, name)
		switch {
		case name == fileName, name == newName, name == compactName:
			err = fsys.Remove(path)
		case isAside(name):
			err = fsys.RemoveAll(path)
		}
		if err != nil && !isNotExist(err) {
			return err
		}
	}
	if err := home.SyncDir(fsys, dir); err != nil {
		return err
	}
	for _, name := range []string{home.MarkerTmpName, destroyName, home.MarkerName} {
		if err := fsys.Remove(fsys.PathJoin(dir, name)); err != nil && !isNotExist(err) {
			return err
		}
	}
	return home.SyncDir(fsys, dir)
}
