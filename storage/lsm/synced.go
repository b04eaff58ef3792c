package lsm

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// SYNCED says how much of the log and of the manifest was synced. Pebble takes
// both to end at their first bad record, for that is what loss of power leaves.
// With it damage can be told from that: bytes that were synced cannot be torn.
//
// It is written over in place after each sync of the two and not synced itself
// until the store is closed. After loss of power it may be old, and then claims
// less than is true; it never claims more, for it is written after the sync has
// succeeded. Without it, or when its checksum is wrong, it claims nothing:
// removing it accepts the loss of what can no longer be read.
//
//	checksum 4 | manifest's number 8 | bytes 8 | log's number 8 | bytes 8
//
// little endian; the checksum is a CRC-32C of the rest. A number of zero stands
// for no file.
const (
	syncedName = "SYNCED"
	syncedSize = 4 + 4*8
)

// mark says that the first size bytes of a file were synced.
type mark struct {
	num  uint64
	size int64
}

// synced is the content of SYNCED.
type synced struct{ manifest, log mark }

func (s synced) encode() []byte {
	b := make([]byte, 4, syncedSize)
	for _, m := range []mark{s.manifest, s.log} {
		b = binary.LittleEndian.AppendUint64(b, m.num)
		b = binary.LittleEndian.AppendUint64(b, uint64(m.size))
	}
	binary.LittleEndian.PutUint32(b, crc32.Checksum(b[4:], castagnoli))
	return b
}

// parseSynced returns the zero value for what it cannot believe.
func parseSynced(b []byte) synced {
	if len(b) != syncedSize || binary.LittleEndian.Uint32(b) != crc32.Checksum(b[4:], castagnoli) {
		return synced{}
	}
	u := func(i int) uint64 { return binary.LittleEndian.Uint64(b[4+8*i:]) }
	s := synced{mark{u(0), int64(u(1))}, mark{u(2), int64(u(3))}}
	if s.manifest.size < 0 || s.log.size < 0 {
		return synced{}
	}
	return s
}

// syncedFile is SYNCED of an open store.
type syncedFile struct {
	mu  sync.Mutex
	now synced
	f   vfs.File // nil before open and after close
}

// open reads the file at path and makes it ready to be written. What it said is
// in now; an error is the disk's.
func (s *syncedFile) open(fsys vfs.FS, path string) error {
	f, err := fsys.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	b := make([]byte, syncedSize)
	n, err := f.ReadAt(b, 0)
	if err != nil && err != io.EOF {
		_ = f.Close()
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.f, s.now = f, parseSynced(b[:n])
	return nil
}

// note is called after the first size bytes of the file with this base name
// were synced. That it cannot be written is no failure of the sync: the file
// then says what it said before, or nothing.
func (s *syncedFile) note(base string, size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	num, kind := walFile(base)
	switch kind {
	case kindLog:
		s.now.log = mark{num, size}
	case kindManifest:
		s.now.manifest = mark{num, size}
	default:
		return
	}
	if s.f != nil {
		_, _ = s.f.WriteAt(s.now.encode(), 0)
	}
}

// close closes the file, synced if that is asked for.
func (s *syncedFile) close(sync bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.f == nil {
		return
	}
	if sync {
		_ = s.f.Sync() // it claims less without
	}
	_ = s.f.Close()
	s.f = nil
}

// The kinds of files that are written record by record.
const (
	kindOther = iota
	kindLog
	kindManifest
)

// walFile returns number and kind of a log or manifest.
func walFile(base string) (num uint64, kind int) {
	digits, ok := strings.CutSuffix(base, ".log")
	kind = kindLog
	if !ok {
		if digits, ok = strings.CutPrefix(base, "MANIFEST-"); !ok {
			return 0, kindOther
		}
		kind = kindManifest
	}
	num, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return 0, kindOther
	}
	return num, kind
}
