package lsm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/atomicfs"

	"scanode/storage"
)

// Pebble takes a manifest to end at its first bad record, for that is what loss
// of power leaves. A flipped bit in the middle then hides all later records: the
// store opens without the tables they name, and deletes them. Each record is
// synced before the next is begun, so a good record behind a bad one means that
// the bad one was good once. That is looked for before pebble opens the file.
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
	manifestBlock  = 32 << 10
	chunkFull      = 1
	chunkFirst     = 2
	chunkLast      = 4 // the highest type
	manifestMarker = "manifest"
)

// checkManifest returns an error that wraps ErrCorrupt when the manifest of the
// store in dir is missing or damaged before its last record.
func checkManifest(fsys vfs.FS, dir string) error {
	name, err := atomicfs.ReadMarker(fsys, dir, manifestMarker)
	if err != nil || name == "" {
		return err
	}
	f, err := fsys.Open(fsys.PathJoin(dir, name))
	if err != nil {
		if isNotExist(err) {
			return fmt.Errorf("%w: %s is missing", storage.ErrCorrupt, name)
		}
		return err
	}
	defer f.Close()
	bad := int64(-1) // where the first bad chunk begins
	block := make([]byte, manifestBlock)
	for base := int64(0); ; base += manifestBlock {
		n, err := io.ReadFull(f, block)
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
			return err
		}
		at := 0
		if bad < 0 {
			if at = goodChunks(block[:n]); n-at >= chunkHeader || n < manifestBlock && at < n {
				bad = base + int64(at)
				at++
			}
		}
		if bad >= 0 && startsRecord(block[:n], at) {
			return fmt.Errorf("%w: %s is damaged at byte %d", storage.ErrCorrupt, name, bad)
		}
		if n < manifestBlock {
			return nil
		}
	}
}

// goodChunks returns where the good chunks at the beginning of a block end.
func goodChunks(b []byte) (end int) {
	for {
		size, ok := chunk(b[end:])
		if !ok {
			return end
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
	c := crc32.Checksum(b[6:size], castagnoli)
	c = (c>>15 | c<<17) + 0xa282ead8 // LevelDB's mask
	return size, c == binary.LittleEndian.Uint32(b)
}
