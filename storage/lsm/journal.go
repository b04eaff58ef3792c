package lsm

import (
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/storage/home"
)

// Destroy and Repair change many files, and a crash may come in between. So they
// leave a file that says what is under way, and whoever opens the directory next
// finishes it. There is at most one of these files:
//
//	DESTROY        remove everything
//	REPAIR-ASIDE   the fresh store in repair.new is complete: move the old files
//	               into the directory that the file names
//	REPAIR-IN      the old files are there: move the fresh ones up
//
// Each step can be done again: a file is linked to its new place, the place is
// synced, and then its old name is removed.
const (
	journalDestroy = "DESTROY"
	journalAside   = "REPAIR-ASIDE"
	journalIn      = "REPAIR-IN"
	freshDir       = "repair.new" // where Repair works; worth nothing without a journal
	freshStoreDir  = "store"      // in it
	asidePrefix    = "damaged-"   // and a number: what Repair has put aside
)

// kind says what a file in the directory of a store is.
type kind uint8

const (
	kindForeign kind = iota // not a store's
	kindData                // pebble's files, SYNCED, the log for operators
	kindFrame               // LOCK, the marker, a journal: they make the directory a store's
	kindDir                 // the directories that Repair makes
)

// kindOf knows the files of a store by their names.
func kindOf(name string) kind {
	switch name {
	case lockName, markerName, markerTmpName, journalDestroy, journalAside, journalIn:
		return kindFrame
	case syncedName, logFileName, oldLogFileName:
		return kindData
	case freshDir:
		return kindDir
	}
	if _, walKind := walFile(name); walKind != kindOther {
		return kindData
	}
	if digits, ok := strings.CutPrefix(name, asidePrefix); ok && isNumber(digits) {
		return kindDir
	}
	for _, prefix := range []string{"OPTIONS-", "temporary."} {
		if rest, ok := strings.CutPrefix(name, prefix); ok && isNumber(strings.TrimSuffix(rest, ".dbtmp")) {
			return kindData
		}
	}
	for _, suffix := range []string{".sst", ".dbtmp", ".blob"} {
		if rest, ok := strings.CutSuffix(name, suffix); ok && isNumber(rest) {
			return kindData
		}
	}
	if strings.HasPrefix(name, "marker.manifest.") || strings.HasPrefix(name, "marker.format-version.") {
		return kindData
	}
	return kindForeign
}

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// journalOf returns the journal that is among names, or "".
func journalOf(names map[string]bool) string {
	for _, name := range []string{journalDestroy, journalAside, journalIn} {
		if names[name] {
			return name
		}
	}
	return ""
}

// resume finishes what a journal in dir says, if there is one. The directory must
// be locked.
func resume(fsys vfs.FS, dir string) error {
	names, err := fsys.List(dir)
	if err != nil {
		return err
	}
	has := make(map[string]bool, len(names))
	for _, name := range names {
		has[name] = true
	}
	switch journalOf(has) {
	case journalDestroy:
		return destroyFiles(fsys, dir)
	case journalAside, journalIn:
		return swap(fsys, dir)
	}
	return nil
}

// writeJournal writes a journal, all or nothing.
func writeJournal(fsys vfs.FS, dir, name, text string) error {
	return home.WriteWhole(fsys, dir, markerTmpName, name, text)
}

// destroyFiles removes the files of the store in dir. The journal and then the
// marker go last, and LOCK stays.
func destroyFiles(fsys vfs.FS, dir string) error {
	names, err := fsys.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		switch kindOf(name) {
		case kindData:
			err = fsys.Remove(fsys.PathJoin(dir, name))
		case kindDir:
			err = fsys.RemoveAll(fsys.PathJoin(dir, name))
		}
		if err != nil && !isNotExist(err) {
			return err
		}
	}
	if err := home.SyncDir(fsys, dir); err != nil {
		return err
	}
	for _, name := range []string{markerTmpName, journalAside, journalIn, journalDestroy, markerName} {
		if err := fsys.Remove(fsys.PathJoin(dir, name)); err != nil && !isNotExist(err) {
			return err
		}
	}
	return home.SyncDir(fsys, dir)
}

// swap puts the old files aside and the fresh ones into their place.
func swap(fsys vfs.FS, dir string) error {
	fresh := fsys.PathJoin(dir, freshDir, freshStoreDir)
	if b, err := home.ReadSmall(fsys, fsys.PathJoin(dir, journalAside)); err == nil {
		aside := strings.TrimSpace(string(b))
		if kindOf(aside) != kindDir {
			return fmt.Errorf("%s names %q", journalAside, plain(aside))
		}
		if err := moveData(fsys, dir, fsys.PathJoin(dir, aside)); err != nil {
			return err
		}
		if err := fsys.Rename(fsys.PathJoin(dir, journalAside), fsys.PathJoin(dir, journalIn)); err != nil {
			return err
		}
		if err := home.SyncDir(fsys, dir); err != nil {
			return err
		}
	} else if !isNotExist(err) {
		return err
	}
	if err := moveData(fsys, fresh, dir); err != nil && !isNotExist(err) {
		return err
	}
	if err := fsys.RemoveAll(fsys.PathJoin(dir, freshDir)); err != nil {
		return err
	}
	if err := fsys.Remove(fsys.PathJoin(dir, journalIn)); err != nil && !isNotExist(err) {
		return err
	}
	return home.SyncDir(fsys, dir)
}

// moveData moves the data files of a store from one directory to another, which
// is made if it is missing. A file that is at both places is moved already.
func moveData(fsys vfs.FS, from, to string) error {
	names, err := fsys.List(from)
	if err != nil {
		return err
	}
	if err := home.MakeDir(fsys, to); err != nil {
		return err
	}
	var data []string
	for _, name := range names {
		if kindOf(name) != kindData {
			continue
		}
		data = append(data, name)
		if _, err := fsys.Stat(fsys.PathJoin(to, name)); err == nil {
			continue
		}
		if err := fsys.Link(fsys.PathJoin(from, name), fsys.PathJoin(to, name)); err != nil {
			return err
		}
	}
	if err := home.SyncDir(fsys, to); err != nil {
		return err
	}
	for _, name := range data {
		if err := fsys.Remove(fsys.PathJoin(from, name)); err != nil {
			return err
		}
	}
	return home.SyncDir(fsys, from)
}
