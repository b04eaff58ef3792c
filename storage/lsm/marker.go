package lsm

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/storage"
)

// A directory is a store of this engine when it holds a file named SCANODE with
// two lines:
//
//	engine lsm
//	format 1
//
// or, when its values carry the time of their writing, with three:
//
//	engine lsm
//	format 2
//	values timed
//
// It is written, by rename, before pebble writes its first file and never
// changed. Without it only names that a crash before the rename can leave are
// tolerated; anything else means that the directory is somebody else's.
const (
	markerName    = "SCANODE"
	markerTmpName = "SCANODE.tmp"
	lockName      = "LOCK"
	formatPlain   = 1
	formatTimed   = 2 // the newest this program knows
	timedLine     = "values timed"
	maxMarkerSize = 4096
)

// places says what a directory is.
type place uint8

const (
	placeMissing    place = iota // no directory, or one without files
	placeUnfinished              // ours, but a crash came before the store was complete
	placeStore                   // a complete store of ours
)

// found is what look finds in a directory.
type found struct {
	place place
	timed bool // the values of the store carry times
}

// look finds out what dir is, reading only. Errors wrap ErrForeign or
// ErrCorrupt; anything else is the disk's.
func look(fsys vfs.FS, dir string) (found, error) {
	info, err := fsys.Stat(dir)
	if isNotExist(err) {
		return found{}, notDangling(fsys, dir)
	}
	if err != nil {
		return found{}, err
	}
	if !info.IsDir() {
		return found{}, fmt.Errorf("%w: it is a file, not a directory", storage.ErrForeign)
	}
	names, err := fsys.List(dir)
	if err != nil {
		return found{}, err
	}
	has := make(map[string]bool, len(names))
	foreign := ""
	for _, name := range names {
		has[name] = true
		switch name {
		case markerName, markerTmpName, lockName, journalDestroy, "lost+found":
		default:
			if foreign == "" || name < foreign {
				foreign = name
			}
		}
	}
	if !has[markerName] {
		if what := levelDB(names); what != "" {
			return found{}, importInstead(what)
		}
		if foreign != "" {
			return found{}, fmt.Errorf("%w: it holds %q, but no %s", storage.ErrForeign, foreign, markerName)
		}
		return found{}, nil
	}
	timed, err := checkMarker(fsys, fsys.PathJoin(dir, markerName))
	if err != nil {
		return found{}, err
	}
	switch journalOf(has) {
	case journalDestroy:
		return found{}, nil
	case journalAside, journalIn:
		return found{placeStore, timed}, nil
	}
	place, err := finished(names)
	return found{place, timed}, err
}

// notDangling returns an error that wraps ErrForeign when path, or a directory
// above it, is a symbolic link to what is not there.
func notDangling(fsys vfs.FS, path string) error {
	if vfs.Root(fsys) != vfs.Default {
		return nil
	}
	for p := path; ; p = filepath.Dir(p) {
		if _, err := os.Stat(p); !isNotExist(err) || p == filepath.Dir(p) {
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

// notInside returns an error that wraps ErrForeign when dir lies in a directory
// of a store of ours, which expects no strange files there. What cannot be
// looked into is taken for no store.
func notInside(fsys vfs.FS, dir string) error {
	for p := realName(fsys, dir); ; {
		parent := fsys.PathDir(p)
		if parent == p {
			return nil
		}
		if _, err := fsys.Stat(fsys.PathJoin(parent, markerName)); err == nil {
			return fmt.Errorf("%w: it lies inside the store %s", storage.ErrForeign, parent)
		}
		p = parent
	}
}

// finished tells a complete store from one whose creation was cut short. Pebble
// names its manifest in a file marker.manifest.…; logs and tables come after it.
func finished(names []string) (place, error) {
	data := ""
	for _, name := range names {
		switch {
		case strings.HasPrefix(name, "marker.manifest."):
			return placeStore, nil
		case strings.HasSuffix(name, ".sst"), strings.HasSuffix(name, ".log"):
			data = name
		}
	}
	if data != "" {
		return 0, fmt.Errorf("%w: %s is there, but no file names the manifest", storage.ErrCorrupt, data)
	}
	return placeUnfinished, nil
}

// checkMarker reads a marker and says whether this engine can open the store, and
// whether its values carry times.
func checkMarker(fsys vfs.FS, path string) (timed bool, err error) {
	b, err := readSmall(fsys, path)
	if err != nil {
		return false, err
	}
	engine, format, rest, ok := parseMarker(b)
	switch {
	case !ok:
		return false, fmt.Errorf("%w: %s cannot be read", storage.ErrCorrupt, markerName)
	case engine != Name:
		return false, fmt.Errorf("%w: it is a store of engine %q", storage.ErrForeign, engine)
	case format > formatTimed:
		return false, fmt.Errorf("%w: its format %d is newer than this program, which knows %d",
			storage.ErrForeign, format, formatTimed)
	// A flipped bit in the number must not make values out of times.
	case (format == formatTimed) != (rest == timedLine+"\n"):
		return false, fmt.Errorf("%w: %s says format %d and %q", storage.ErrCorrupt, markerName, format, plain(rest))
	}
	return format == formatTimed, nil
}

// readSmall reads a file of at most maxMarkerSize bytes, or a little more of a
// larger one.
func readSmall(fsys vfs.FS, path string) ([]byte, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, maxMarkerSize+1))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return b, err
}

// parseMarker reads the two lines of a marker. Lines after them are the format's
// business.
func parseMarker(b []byte) (engine string, format uint64, rest string, ok bool) {
	if len(b) > maxMarkerSize {
		return "", 0, "", false
	}
	first, more, ok1 := bytes.Cut(b, []byte("\n"))
	second, more, ok2 := bytes.Cut(more, []byte("\n"))
	name, ok3 := strings.CutPrefix(string(first), "engine ")
	number, ok4 := strings.CutPrefix(string(second), "format ")
	format, err := strconv.ParseUint(number, 10, 32)
	return name, format, string(more), ok1 && ok2 && ok3 && ok4 && name != "" && err == nil && format > 0
}

// writeMarker makes dir ours.
func writeMarker(fsys vfs.FS, dir string, timed bool) error {
	text := fmt.Sprintf("engine %s\nformat %d\n", Name, formatPlain)
	if timed {
		text = fmt.Sprintf("engine %s\nformat %d\n%s\n", Name, formatTimed, timedLine)
	}
	return writeWhole(fsys, dir, markerTmpName, markerName, text)
}

// writeWhole writes a file durably, all of it or nothing.
func writeWhole(fsys vfs.FS, dir, tmpName, name, text string) error {
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
	return syncDir(fsys, dir)
}

// syncDir makes the entries of dir durable.
func syncDir(fsys vfs.FS, dir string) error {
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

// makeDir creates dir and what is missing above it, durably.
func makeDir(fsys vfs.FS, dir string) error {
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
		if err := syncDir(fsys, p); err != nil {
			return err
		}
	}
	return nil
}
