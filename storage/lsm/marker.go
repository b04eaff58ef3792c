package lsm

import (
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/storage"
	"scanode/storage/home"
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
	markerName    = home.MarkerName
	markerTmpName = home.MarkerTmpName
	lockName      = home.LockName
	formatPlain   = 1
	formatTimed   = 2 // the newest this program knows
	timedLine     = "values timed"
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
		return found{}, home.NotDangling(fsys, dir)
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
	b, err := home.ReadSmall(fsys, path)
	if err != nil {
		return false, err
	}
	engine, format, rest, ok := home.ParseMarker(b)
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

// writeMarker makes dir ours.
func writeMarker(fsys vfs.FS, dir string, timed bool) error {
	if timed {
		return home.WriteMarker(fsys, dir, Name, formatTimed, timedLine+"\n")
	}
	return home.WriteMarker(fsys, dir, Name, formatPlain, "")
}
