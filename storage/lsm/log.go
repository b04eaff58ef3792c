package lsm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/storage"
)

// A log is a list of blocks of 32 KiB like a manifest. Its chunks have longer
// headers:
//
//	checksum 4 | length 2 | type 1 | log number 4 | payload             types 5 to 8
//	checksum 4 | length 2 | type 1 | log number 4 | synced 8 | payload  types 9 to 12
//
// The number is the file's, cut to 32 bits: files are used again, so what lies
// behind the end may be chunks of an older log. synced is a number of bytes of
// this log that were synced before the chunk was made, or less. A log that was
// closed ends with a header of type 5 without checksum, its number one higher.
// Less than 19 bytes at the end of a block are zeroes.
//
// Pebble stops at the first bad chunk of the last log, and says something only
// when a later block holds a synced number beyond it; it takes any header with
// the next number for the end. So logs are read before pebble opens them. A
// chunk is known to be damaged, not torn, when
//
//   - SYNCED says that it was synced, or
//   - a good chunk behind it says so, or
//   - a newer log is there, for a log is closed before the next is begun, and a
//     good chunk of the log follows.
//
// Other bad chunks, and a whole end that is missing, are taken for a torn tail:
// bytes that were never synced may be lost in any order.
const (
	logHeader     = 11
	logSyncHeader = 19
	logFull       = 5
	logSyncFull   = 9
	logLast       = 12 // the highest type
)

// logChunk reads the chunk of log num at the beginning of b and checks it.
// promised is what it says was synced.
func logChunk(b []byte, num uint32) (size int, promised uint64, ok bool) {
	if len(b) < logHeader || b[6] < logFull || b[6] > logLast || binary.LittleEndian.Uint32(b[7:]) != num {
		return 0, 0, false
	}
	size = logHeader
	if b[6] >= logSyncFull {
		size = logSyncHeader
	}
	header := size
	size += int(binary.LittleEndian.Uint16(b[4:]))
	if size > len(b) || maskedCRC(b[6:size]) != binary.LittleEndian.Uint32(b) {
		return 0, 0, false
	}
	if header == logSyncHeader {
		promised = binary.LittleEndian.Uint64(b[logHeader:])
	}
	return size, promised, true
}

// logReader finds out how far a log is good.
type logReader struct {
	num      uint32
	end      int64  // where the good chunks end
	ended    bool   // end is final
	follows  bool   // a good chunk lies behind end
	promised uint64 // the most that a good chunk behind end says was synced
}

// block looks at the next block, which begins at base.
func (r *logReader) block(b []byte, base int64) {
	at := 0
	for !r.ended {
		if rest := b[at:]; len(b) == recordBlock && len(rest) < logSyncHeader && padding(rest) {
			r.end = base + recordBlock
			return
		}
		size, _, ok := logChunk(b[at:], r.num)
		if !ok {
			r.end, r.ended = base+int64(at), true
			r.search(b, at+1)
			return
		}
		at += size
		r.end = base + int64(at)
	}
	r.search(b, 0)
}

// padding reports whether pebble reads b, the end of a block, as unused.
func padding(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return len(b) < chunkHeader
		}
	}
	return true
}

// search looks for good chunks at or behind from. At the beginning of a block
// there is one or none, elsewhere they may begin anywhere.
func (r *logReader) search(b []byte, from int) {
	start := from == 0
	for from+logHeader <= len(b) {
		size, promised, ok := logChunk(b[from:], r.num)
		switch {
		case ok:
			r.follows, r.promised = true, max(r.promised, promised)
			from += size
		case start:
			return
		default:
			from++
		}
	}
}

// checkLogs looks at the logs of the store in dir with numbers from least on,
// which pebble would replay. It returns an error that wraps ErrCorrupt when one
// is damaged, or when the one that SYNCED names is missing.
func checkLogs(fsys vfs.FS, dir string, least uint64, s mark) error {
	logs, err := listLogs(fsys, dir)
	if err != nil {
		return err
	}
	if s.num >= least && s.num != 0 && !slices.Contains(logs, s.num) {
		return fmt.Errorf("%w: %s is missing", storage.ErrCorrupt, logName(s.num))
	}
	for i, num := range logs {
		if num < least {
			continue
		}
		size := int64(0)
		if num == s.num {
			size = s.size
		}
		if err := checkLog(fsys, fsys.PathJoin(dir, logName(num)), num, size, i == len(logs)-1); err != nil {
			return err
		}
	}
	return nil
}

func logName(num uint64) string { return fmt.Sprintf("%06d.log", num) }

// listLogs returns the numbers of the logs in dir, in their order.
func listLogs(fsys vfs.FS, dir string) (nums []uint64, err error) {
	names, err := fsys.List(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if num, kind := walFile(name); kind == kindLog && logName(num) == name {
			nums = append(nums, num)
		}
	}
	slices.Sort(nums)
	return nums, nil
}

// checkLog checks one log, of which the first size bytes are known to have been
// synced. last says that no newer one is there.
func checkLog(fsys vfs.FS, path string, num uint64, size int64, last bool) error {
	r := logReader{num: uint32(num)}
	length, err := eachBlock(fsys, path, r.block)
	if err != nil {
		return err
	}
	if size > 0 && r.end+logHeader == size {
		r.end = size // the header that ends a closed log
	}
	switch {
	case r.end < size:
		return fmt.Errorf("%w: %s cannot be read from byte %d of %d on, but %d bytes of it were synced",
			storage.ErrCorrupt, logName(num), r.end, length, size)
	case r.ended && (r.promised > uint64(r.end) || r.follows && !last):
		return fmt.Errorf("%w: %s is damaged at byte %d of %d: what follows it is good",
			storage.ErrCorrupt, logName(num), r.end, length)
	}
	return nil
}

// eachBlock calls f with each block of a file and its offset, and returns the
// size of the file. The last block may be short or empty.
func eachBlock(fsys vfs.FS, path string, f func(b []byte, base int64)) (size int64, err error) {
	file, err := fsys.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	block := make([]byte, recordBlock)
	for {
		n, err := io.ReadFull(file, block)
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
			return 0, err
		}
		f(block[:n], size)
		if size += int64(n); n < recordBlock {
			return size, nil
		}
	}
}
