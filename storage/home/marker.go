package home

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Names of files that stand in the directories of all engines.
const (
	MarkerName    = "SCANODE"     // says whose store it is
	MarkerTmpName = "SCANODE.tmp" // what WriteMarker renames
	LockName      = "LOCK"        // locked while the store is open
)

// maxMarkerBytes bounds a marker, and what ReadSmall reads.
const maxMarkerBytes = 4096

// ParseMarker reads the two lines of a marker. Lines after them are the format's
// business.
func ParseMarker(b []byte) (engine string, format uint64, rest string, ok bool) {
	if len(b) > maxMarkerBytes {
		return "", 0, "", false
	}
	first, more, ok1 := bytes.Cut(b, []byte("\n"))
	second, more, ok2 := bytes.Cut(more, []byte("\n"))
	name, ok3 := strings.CutPrefix(string(first), "engine ")
	number, ok4 := strings.CutPrefix(string(second), "format ")
	format, err := strconv.ParseUint(number, 10, 32)
	return name, format, string(more), ok1 && ok2 && ok3 && ok4 && name != "" && err == nil && format > 0
}

// WriteMarker makes dir, which exists, a store of an engine, durably. rest are the
// lines after the first two, each with its newline.
func WriteMarker(fsys vfs.FS, dir, engine string, format uint64, rest string) error {
	return WriteWhole(fsys, dir, MarkerTmpName, MarkerName, fmt.Sprintf("engine %s\nformat %d\n%s", engine, format, rest))
}

// ReadSmall reads a file of at most maxMarkerBytes bytes, or a little more of a
// larger one.
func ReadSmall(fsys vfs.FS, path string) ([]byte, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, maxMarkerBytes+1))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return b, err
}
