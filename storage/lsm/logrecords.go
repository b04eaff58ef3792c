package lsm

import (
	"github.com/cockroachdb/pebble/v2/vfs"
)

// logRecords puts together the records of a log whose chunks may be damaged. A
// record with a damaged chunk is left out, and the next good chunk that begins a
// record is looked for.
type logRecords struct {
	num    uint32
	record []byte // the chunks of a record so far
	open   bool   // record has begun
	skip   bool   // a bad chunk was met and no good one since
	lost   int    // stretches of damage with something good behind them
	visit  func(record []byte) error
	err    error // of visit
}

// block looks at the next block of the file.
func (r *logRecords) block(b []byte, _ int64) {
	for at := 0; at+logHeader <= len(b) && r.err == nil; {
		if len(b) == recordBlock && len(b)-at < logSyncHeader && padding(b[at:]) {
			return
		}
		size, _, ok := logChunk(b[at:], r.num)
		if !ok {
			r.skip, r.open = true, false
			at++
			continue
		}
		if r.skip {
			r.skip = false
			r.lost++
		}
		r.chunk(b[at : at+size])
		at += size
	}
}

// chunk takes a good chunk. Its type says whether it is the whole record or which
// part.
func (r *logRecords) chunk(c []byte) {
	header, kind := logHeader, c[6]-logFull
	if c[6] >= logSyncFull {
		header, kind = logSyncHeader, c[6]-logSyncFull
	}
	const full, first, middle, last = 0, 1, 2, 3
	switch kind {
	case full, first:
		r.record, r.open = r.record[:0], true
	case middle, last:
		if !r.open {
			return // its beginning is lost
		}
	}
	r.record = append(r.record, c[header:]...)
	if kind == full || kind == last {
		r.open = false
		r.err = r.visit(r.record)
	}
}

// eachRecord calls visit with the records of the log at path that can be read, in
// their order. lost counts the stretches of damage between them. The record is
// valid during the call. An error is that of visit or the disk's.
func eachRecord(fsys vfs.FS, path string, num uint64, visit func(record []byte) error) (lost int, err error) {
	r := logRecords{num: uint32(num), visit: visit}
	if _, err := eachBlock(fsys, path, r.block); err != nil {
		return r.lost, err
	}
	return r.lost, r.err
}
