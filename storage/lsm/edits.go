package lsm

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// A manifest is a list of edits: tables that were added to and taken from levels.
// What is there at its end are the live tables; others that are on the disk were
// replaced by a compaction and may hold rows that were deleted since. Pebble tells
// of its tables only when all of them are there, so Repair reads the edits itself.
//
// An edit is a list of fields, each a varint tag and a value:
const (
	editComparer       = 1 // bytes
	editLogNumber      = 2 // varint
	editNextFile       = 3 // varint
	editLastSeqNum     = 4 // varint
	editDeletedTable   = 6 // level, number
	editPrevLog        = 9
	editNewTable4      = 103 // level, number, size, two keys, two sequence numbers, extras
	extraEnd           = 1
	extraNotSafeToSkip = 64 // or more: its format must be known
	maxEditBytes       = 64 << 20
	maxLiveTables      = 16 << 20
	levels             = 7
)

// errEdit is an edit that this reader does not understand.
var errEdit = errors.New("unknown edit")

// tableAt is a table in a level.
type tableAt struct{ level, num uint64 }

// liveTables reads the manifest at path and returns the numbers of the live
// tables. Any error means that they are not known.
func liveTables(fsys vfs.FS, path string) (map[uint64]bool, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	at := map[tableAt]bool{}
	r := record.NewReader(f, 0)
	for {
		one, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			if record.IsInvalidRecord(err) {
				break // the torn end; checkManifest has found nothing behind it
			}
			return nil, err
		}
		b, err := io.ReadAll(io.LimitReader(one, maxEditBytes+1))
		if err != nil {
			if record.IsInvalidRecord(err) {
				break
			}
			return nil, err
		}
		if len(b) > maxEditBytes || len(at) > maxLiveTables {
			return nil, errEdit
		}
		if err := applyEdit(b, at); err != nil {
			return nil, err
		}
	}
	live := make(map[uint64]bool, len(at))
	for t := range at {
		live[t.num] = true
	}
	return live, nil
}

// applyEdit changes the tables by one edit. A table that moves is taken from one
// level and added to another; the order of fields is not fixed, so removals come
// first.
func applyEdit(b []byte, at map[tableAt]bool) error {
	e := editReader{b: b}
	var added []tableAt
	for len(e.b) > 0 && !e.bad {
		switch e.varint() {
		case editComparer:
			e.bytes()
		case editLogNumber, editNextFile, editLastSeqNum, editPrevLog:
			e.varint()
		case editDeletedTable:
			delete(at, e.table())
		case editNewTable4:
			t := e.table()
			e.varint() // size
			e.bytes()
			e.bytes()
			e.varint()
			e.varint()
			e.extras()
			added = append(added, t)
		default: // virtual tables among them, of which this engine makes none
			return errEdit
		}
	}
	if e.bad {
		return errEdit
	}
	for _, t := range added {
		at[t] = true
	}
	return nil
}

// editReader reads fields. After the first that is not there, bad is set and all
// is zero.
type editReader struct {
	b   []byte
	bad bool
}

func (e *editReader) varint() uint64 {
	v, n := binary.Uvarint(e.b)
	if n <= 0 {
		e.bad, e.b = true, nil
		return 0
	}
	e.b = e.b[n:]
	return v
}

func (e *editReader) bytes() []byte {
	n := e.varint()
	if n > uint64(len(e.b)) {
		e.bad, e.b = true, nil
		return nil
	}
	v := e.b[:n]
	e.b = e.b[n:]
	return v
}

func (e *editReader) table() tableAt {
	t := tableAt{level: e.varint(), num: e.varint()}
	if t.level >= levels {
		e.bad, e.b = true, nil
	}
	return t
}

// extras reads the fields at the end of a new table.
func (e *editReader) extras() {
	for !e.bad {
		tag := e.varint()
		if tag == extraEnd {
			return
		}
		if tag >= extraNotSafeToSkip {
			e.bad = true
			return
		}
		e.bytes()
	}
}
