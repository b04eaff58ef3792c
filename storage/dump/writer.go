package dump

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"scanode/etf"
)

const (
	version    = 1
	beginWord  = "scanode_rows"
	endWord    = "scanode_rows_end"
	headBytes  = 8 // length and checksum
	blockBytes = 256 << 10
)

// MaxFrame bounds the term of a frame, in bytes. A frame of rows has one row or about
// 256 KiB.
const MaxFrame = 1 << 30

// Writer writes a stream. Errors of the io.Writer are sticky.
type Writer struct {
	out   io.Writer
	rows  []byte // encoded, of the frame to come
	n     int    // how many
	frame []byte
	sum   Sum
	crc   uint32 // of the checksums of frames of rows
	err   error
}

// NewWriter begins a stream. info is what the writer wants to tell.
func NewWriter(out io.Writer, info etf.Map) (*Writer, error) {
	w := &Writer{out: out}
	head, err := etf.AppendTerm(etf.AppendVersion(nil), etf.Tuple{etf.Atom(beginWord), int64(version), info})
	if err != nil {
		return nil, err
	}
	w.write(func(dst []byte) []byte { return append(dst, head...) })
	return w, w.err
}

// errTooLarge: LevelDB and stores of ours take such rows, terms of this size are not for
// a stream.
var errTooLarge = errors.New("a row is larger than a frame of the stream may be")

// Add adds a row. Keys must come in order; Reader sees to that. written is when the row
// was written, in microseconds since 1970, or 0 where nobody knows.
func (w *Writer) Add(key, value []byte, written uint64) error {
	if len(key)+len(value) > MaxFrame-1024 {
		w.err = errors.Join(w.err, errTooLarge)
	}
	if w.err != nil {
		return w.err
	}
	if w.n > 0 && len(w.rows)+len(key)+len(value) > blockBytes {
		w.flush()
	}
	arity := 2
	if written != 0 {
		arity = 3
	}
	w.rows = etf.AppendTupleHeader(w.rows, arity)
	w.rows = etf.AppendBinary(w.rows, key)
	w.rows = etf.AppendBinary(w.rows, value)
	if written != 0 {
		w.rows = etf.AppendUint64(w.rows, written)
	}
	w.n++
	w.sum.Add(key, value)
	return w.err
}

// flush writes a frame of rows.
func (w *Writer) flush() {
	if w.n == 0 {
		return
	}
	checksum := w.write(func(dst []byte) []byte {
		dst = etf.AppendListHeader(etf.AppendVersion(dst), w.n)
		return etf.AppendNil(append(dst, w.rows...))
	})
	w.crc = crc32.Update(w.crc, crc32.IEEETable, checksum)
	w.rows, w.n = w.rows[:0], 0
}

// write writes a frame whose term is appended by term, and returns its checksum, as
// written, valid until the next call.
func (w *Writer) write(term func([]byte) []byte) []byte {
	w.frame = term(append(w.frame[:0], make([]byte, headBytes)...))
	body := w.frame[headBytes:]
	binary.BigEndian.PutUint32(w.frame, uint32(len(body)))
	binary.BigEndian.PutUint32(w.frame[4:], crc32.ChecksumIEEE(body))
	if w.err == nil {
		_, w.err = w.out.Write(w.frame)
	}
	return w.frame[4:headBytes]
}

// End ends the stream and returns the sum of its rows. It does not close the io.Writer.
func (w *Writer) End() (Sum, error) {
	w.flush()
	w.write(func(dst []byte) []byte {
		dst = etf.AppendTupleHeader(etf.AppendVersion(dst), 5)
		dst = etf.AppendAtom(dst, endWord)
		for _, n := range []int64{w.sum.Rows, w.sum.KeyBytes, w.sum.ValueBytes, int64(w.crc)} {
			dst = etf.AppendInt64(dst, n)
		}
		return dst
	})
	return w.sum, w.err
}
