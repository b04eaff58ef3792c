package couch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"scanode/etf"
	"scanode/storage"
	"scanode/storage/couch/file"
)

// The log is what lies behind a header: a record for each batch since, as chunks with
// checksums. What a record holds:
//
//	"SNL1"           magic
//	Header           offset of the header it lies behind, in blocks, varint
//	Seq              number of the batch, one more than that of the record before, varint
//	operations       each: length of the key times two, plus one for a put, varint; key;
//	                 for a put: length of the value, varint; value
//
// Varints are those of encoding/binary. Reading begins where the header ends and goes from
// chunk to chunk. It ends at the first that is not whole, that has no checksum, or is no
// record with the right header and number: that is where a loss of power has left off, or
// nodes of a tree whose header was never written. What is behind has not been acknowledged
// as synced, for the records before it would have been synced with it.
const logMagic = "SNL1"

// appendRecord appends the record of a batch to dst.
func appendRecord(dst []byte, headerPtr, seq int64, ops []entry) []byte {
	dst = append(dst, logMagic...)
	dst = binary.AppendUvarint(dst, uint64(headerPtr)/file.BlockSize)
	dst = binary.AppendUvarint(dst, uint64(seq))
	for _, e := range ops {
		key := e.user()
		n := uint64(len(key)) << 1
		if e.value == nil {
			dst = append(binary.AppendUvarint(dst, n), key...)
			continue
		}
		dst = append(binary.AppendUvarint(dst, n|1), key...)
		dst = binary.AppendUvarint(dst, uint64(len(e.value)-binaryHead))
		dst = append(dst, e.value[binaryHead:]...)
	}
	return dst
}

// record is a record that was read.
type record struct {
	header int64 // offset of the header
	seq    int64
	ops    []byte // its operations, see entries
}

var errNoRecord = errors.New("no record of a log")

// parseRecord reads the head of a record. It aliases b.
func parseRecord(b []byte) (record, error) {
	if len(b) < len(logMagic) || string(b[:len(logMagic)]) != logMagic {
		return record{}, errNoRecord
	}
	block, b, ok := uvarint(b[len(logMagic):], math.MaxInt64/file.BlockSize)
	if !ok {
		return record{}, fmt.Errorf("%w: its header", errNoRecord)
	}
	seq, b, ok := uvarint(b, math.MaxInt64)
	if !ok {
		return record{}, fmt.Errorf("%w: its number", errNoRecord)
	}
	return record{block * file.BlockSize, seq, b}, nil
}

// uvarint reads a number that is at most limit.
func uvarint(b []byte, limit int64) (int64, []byte, bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(limit) {
		return 0, b, false
	}
	return int64(n), b[size:], true
}

// entries decodes the operations into memory of their own. size is what they take in an
// overlay.
func (r record) entries() (entries []entry, size int64, err error) {
	// Once for the room, so that nothing is reserved for what is only claimed.
	count, room := 0, 0
	if err := r.walk(func(key, value []byte, put bool) {
		count++
		room += binaryHead + len(key)
		if put {
			room += binaryHead + len(value)
		}
	}); err != nil {
		return nil, 0, err
	}
	buf := make([]byte, 0, room)
	entries = make([]entry, 0, count)
	_ = r.walk(func(key, value []byte, put bool) {
		start := len(buf)
		buf = etf.AppendBinary(buf, key)
		end := len(buf)
		e := entry{key: buf[start:end:end]}
		if put {
			buf = etf.AppendBinary(buf, value)
			e.value = buf[end:len(buf):len(buf)]
		}
		entries = append(entries, e)
	})
	return entries, int64(room) + int64(count)*entryOverhead, nil
}

// walk calls f with each operation.
func (r record) walk(f func(key, value []byte, put bool)) error {
	for b := r.ops; len(b) > 0; {
		n, rest, ok := uvarint(b, 2*maxKeyBytes+1)
		if !ok || n>>1 > int64(len(rest)) {
			return fmt.Errorf("%w: a key", errNoRecord)
		}
		key, rest := rest[:n>>1], rest[n>>1:]
		if n&1 == 0 {
			f(key, nil, false)
			b = rest
			continue
		}
		m, rest, ok := uvarint(rest, maxValueBytes)
		if !ok || m > int64(len(rest)) {
			return fmt.Errorf("%w: a value", errNoRecord)
		}
		f(key, rest[:m], true)
		b = rest[m:]
	}
	return nil
}

// replay calls apply with the batches in the log behind a header, in order, and returns
// the number of the last one and how many bytes of the file the log takes.
//
// Errors: those of the file system, and of apply; a log that ends early is none.
func replay(f *file.File, at file.Header, seq int64, apply func(ops []entry, size int64) error) (last, bytes int64, err error) {
	start := at.Ptr + at.Size
	ptr := start
	var buf []byte
	for ptr < f.Size() {
		b, chunk, err := f.ReadChunk(buf[:0], ptr)
		if err != nil {
			if errors.Is(corrupt(err), storage.ErrCorrupt) {
				break
			}
			return seq, ptr - start, err
		}
		buf = b
		r, err := parseRecord(b)
		if err != nil || !chunk.Summed || r.header != at.Ptr || r.seq != seq+1 {
			break
		}
		ops, size, err := r.entries()
		if err != nil {
			break
		}
		if err := apply(ops, size); err != nil {
			return seq, ptr - start, err
		}
		seq++
		ptr += chunk.Size
	}
	return seq, ptr - start, nil
}
