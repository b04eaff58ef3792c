package lsm

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/atomicfs"

	"scanode/storage"
)

// Pebble takes a manifest to end at its first bad record, for that is what loss
// of power leaves. A flipped bit in the middle then hides all later records: the
// store opens without the tables they name, and deletes them. Each record is
// synced before the next is begun, so a good record behind a bad one means that
// the bad one was good once. That is looked for before pebble opens the file.
// Of the last record only SYNCED can tell that it was good.
//
// A manifest is a list of blocks of 32 KiB, which hold chunks:
//
//	checksum 4 | length 2 | type 1 | payload
//
// little endian; the checksum is a masked CRC-32C of type and payload. A record
// is a chunk of type 1 (full), or one of type 2 (first) and others behind it. A
// chunk does not cross blocks; less than a header at the end of one is unused.
const (
	chunkHeader    = 7
	recordBlock    = 32 << 10
	chunkFull      = 1
	chunkFirst     = 2
	chunkLast      = 4 // the highest type
	manifestMarker = "manifest"
)

// manifestReader finds out how far a manifest is good, and what it says about
// logs.
type manifestReader struct {
	end     int64 // where the good chunks end
	ended   bool  // end is final
	follows bool  // a good record lies behind end
	minLog  uint64
}

// block looks at the next block, which begins at base.
func (r *manifestReader) block(b []byte, base int64) {
	at := 0
	if !r.ended {
		at = goodChunks(b, func(payload []byte) { r.minLog = max(r.minLog, minLog(payload)) })
		r.end = base + int64(at)
		switch {
		case len(b) == recordBlock && len(b)-at < chunkHeader:
			r.end = base + recordBlock
		case len(b) == recordBlock || at < len(b):
			r.ended = true
			at++
		}
	}
	if r.ended && !r.follows {
		r.follows = startsRecord(b, at)
	}
}

// checkManifest reads the manifest of the store in dir and returns the number of
// the first log that must be replayed. s says how much of which manifest was
// synced. The error wraps ErrCorrupt when the manifest is missing or damaged.
func checkManifest(fsys vfs.FS, dir string, s mark) (minLog uint64, err error) {
	name, err := atomicfs.ReadMarker(fsys, dir, manifestMarker)
	if err != nil || name == "" {
		return 0, err
	}
	var r manifestReader
	length, err := eachBlock(fsys, fsys.PathJoin(dir, name), r.block)
	switch num, _ := walFile(name); {
	case isNotExist(err):
		return 0, fmt.Errorf("%w: %s is missing", storage.ErrCorrupt, name)
	case err != nil:
		return 0, err
	case r.follows:
		return 0, fmt.Errorf("%w: %s is damaged at byte %d of %d", storage.ErrCorrupt, name, r.end, length)
	case num == s.num && r.end < s.size:
		return 0, fmt.Errorf("%w: %s cannot be read from byte %d of %d on, but %d bytes of it were synced",
			storage.ErrCorrupt, name, r.end, length, s.size)
	}
	return r.minLog, nil
}

// minLog reads the number of the first log that must be replayed from the
// beginning of a record, 0 if there is none. A record is a list of fields, each
// a varint tag and a value; in front are the name of the order of keys (tag 1,
// a length and bytes) and that number (tag 2).
func minLog(record []byte) uint64 {
	tag, n := binary.Uvarint(record)
	if n > 0 && tag == 1 {
		length, m := binary.Uvarint(record[n:])
		if m <= 0 || length > uint64(len(record)-n-m) {
			return 0
		}
		record = record[n+m+int(length):]
		tag, n = binary.Uvarint(record)
	}
	if n <= 0 || tag != 2 {
		return 0
	}
	num, m := binary.Uvarint(record[n:])
	if m <= 0 {
		return 0
	}
	return num
}

// goodChunks returns where the good chunks at the beginning of a block end. It
// calls record with the payload of each that begins a record.
func goodChunks(b []byte, record func(payload []byte)) (end int) {
	for {
		size, ok := chunk(b[end:])
		if !ok {
			return end
		}
		if t := b[end+6]; t == chunkFull || t == chunkFirst {
			record(b[end+chunkHeader : end+size])
		}
		end += size
	}
}

// startsRecord reports whether a good chunk that begins a record lies anywhere
// at or behind from.
func startsRecord(b []byte, from int) bool {
	for ; from+chunkHeader <= len(b); from++ {
		if t := b[from+6]; t != chunkFull && t != chunkFirst {
			continue
		}
		if _, ok := chunk(b[from:]); ok {
			return true
		}
	}
	return false
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// chunk reads the chunk at the beginning of b and checks it.
func chunk(b []byte) (size int, ok bool) {
	if len(b) < chunkHeader {
		return 0, false
	}
	size = chunkHeader + int(binary.LittleEndian.Uint16(b[4:]))
	if size > len(b) || b[6] < chunkFull || b[6] > chunkLast {
		return 0, false
	}
	return size, maskedCRC(b[6:size]) == binary.LittleEndian.Uint32(b)
}

// maskedCRC is the checksum of chunks: a CRC-32C with LevelDB's mask.
func maskedCRC(b []byte) uint32 {
	c := crc32.Checksum(b, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}
