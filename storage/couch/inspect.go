package couch

import (
	"scanode/storage/couch/btree"
	"scanode/storage/couch/file"
)

// This file is for those who look at files of stores from outside.

// Contents is what a header of a store's file says.
type Contents struct {
	Seq    int64         // batches applied until then
	Root   btree.Pointer // of the tree: binaries to binaries, reduced by btree.Count
	MayLog bool          // a log may lie behind the header
	// Copied says what of another file was copied into this one, by a compaction: "" nothing,
	// "part" or "whole".
	Copied string
}

// ReadContents reads a header's term, which has its version byte.
//
// Errors: storage.ErrForeign for a header that is no store's, or of a newer version;
// storage.ErrCorrupt.
func ReadContents(term []byte) (Contents, error) {
	h, err := readHeader(term)
	if err != nil {
		return Contents{}, err
	}
	c := Contents{Seq: h.seq, Root: h.root, MayLog: h.log}
	if h.origin.id != (fileID{}) {
		c.Copied = "part"
		if h.origin.whole {
			c.Copied = "whole"
		}
	}
	return c, nil
}

// IsRecord reports whether the payload of a chunk with a checksum is a record of a log.
func IsRecord(payload []byte) bool {
	r, err := parseRecord(payload)
	return err == nil && r.walk(func(_, _ []byte, _ bool) {}) == nil
}

// MeasureLog reads the log behind the header at, which seq is of, and returns how many
// batches are in it that the next open brings back, and how many bytes of the file it takes.
//
// Errors: those of the file system.
func MeasureLog(f *file.File, at file.Header, seq int64) (batches, bytes int64, err error) {
	last, bytes, err := replay(f, at, seq, func([]entry, int64) error { return nil })
	return last - seq, bytes, err
}
