package lsm

import (
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/storage"
)

// levelDB says by which of its files a directory is one of LevelDB's, or of its
// kin, or "". Stock LevelDB and RocksDB keep CURRENT and everything else in one
// directory. Basho's keeps tables in sst_0 to sst_6, and with tiered storage below
// two other prefixes.
func levelDB(names []string) string {
	manifest, table := "", ""
	for _, name := range names {
		switch {
		case name == "CURRENT":
			return name
		case strings.HasPrefix(name, "MANIFEST-"):
			manifest = name
		case isLevelDir(name), strings.HasSuffix(name, ".ldb"):
			table = name
		}
	}
	if table != "" {
		return table
	}
	// Pebble's own files look the same; what it adds is a marker.
	for _, name := range names {
		if strings.HasPrefix(name, "marker.") {
			return ""
		}
	}
	return manifest
}

// isLevelDir reports whether name is that of a directory in which Basho's LevelDB
// keeps the tables of a level.
func isLevelDir(name string) bool {
	digits, ok := strings.CutPrefix(name, "sst_")
	return ok && isNumber(digits)
}

// importInstead refuses a directory of LevelDB's.
func importInstead(what string) error {
	return fmt.Errorf("%w: it is a LevelDB or RocksDB directory (%s, but no %s); bring its rows over with scanode import",
		storage.ErrForeign, what, markerName)
}

// notTiered returns an error that wraps ErrForeign when LevelDB has kept tables of
// the store at dir below one of the prefixes of tiered storage: eleveldb puts dir
// behind the prefix. An empty store beside the old rows would hide them.
func notTiered(fsys vfs.FS, dir string, prefixes []string) error {
	for _, prefix := range prefixes {
		if prefix == "" {
			continue
		}
		tier := fsys.PathJoin(prefix, dir)
		names, err := fsys.List(tier)
		if isNotExist(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", tier, err)
		}
		if what := levelDB(names); what != "" {
			return fmt.Errorf("%s: %w", tier, importInstead(what))
		}
	}
	return nil
}
