package dump

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"scanode/etf"
	"scanode/storage"
)

// Reader reads a stream.
//
//	for r.Next() {
//		use(r.Key(), r.Value())
//	}
//	if err := r.Err(); err != nil { … } // also when the stream was cut short
type Reader struct {
	in     io.Reader
	offset int64 // of the frame that is read, or of the next
	frame  bytes.Buffer
	rows   []byte // to come of the frame
	n      int    // how many
	crc    uint32

	key, value []byte
	written    uint64
	last       []byte // the key before
	begun      bool   // last is one
	count      Sum    // without the hash
	done       bool
	err        error
}

// NewReader reads the beginning of a stream. Errors wrap storage.ErrCorrupt when it is
// none.
func NewReader(in io.Reader) (*Reader, error) {
	r := &Reader{in: in}
	body, _, err := r.read()
	if err == nil && !r.head(body) {
		err = r.corrupt("it is no stream of rows of version %d", version)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Reader) head(body []byte) bool {
	arity, rest, err := etf.ReadTupleHeader(body)
	if err != nil || arity != 3 {
		return false
	}
	word, rest, err := etf.ReadAtom(rest)
	if err != nil || string(word) != beginWord {
		return false
	}
	n, rest, err := etf.ReadInt64(rest)
	if err != nil || n != version {
		return false
	}
	rest, err = etf.Skip(rest)
	return err == nil && len(rest) == 0
}

func (r *Reader) corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: the frame at offset %d: %s", storage.ErrCorrupt, r.offset, fmt.Sprintf(format, args...))
}

// read reads a frame and returns what comes after the version of its term, and its
// checksum. The offset stays that of the frame.
func (r *Reader) read() (body []byte, checksum [4]byte, err error) {
	r.offset += int64(r.frame.Len())
	if r.frame.Len() > 0 {
		r.offset += headBytes
	}
	r.frame.Reset()
	var head [headBytes]byte
	if _, err := io.ReadFull(r.in, head[:]); err != nil {
		return nil, checksum, r.short(err)
	}
	n := int64(binary.BigEndian.Uint32(head[:]))
	checksum = [4]byte(head[4:])
	if n == 0 || n > MaxFrame {
		return nil, checksum, r.corrupt("it claims %d bytes", n)
	}
	if _, err := io.CopyN(&r.frame, r.in, n); err != nil {
		return nil, checksum, r.short(err)
	}
	if crc32.ChecksumIEEE(r.frame.Bytes()) != binary.BigEndian.Uint32(checksum[:]) {
		return nil, checksum, r.corrupt("its checksum is wrong")
	}
	if body, err = etf.SkipVersion(r.frame.Bytes()); err != nil {
		return nil, checksum, r.corrupt("%v", err)
	}
	return body, checksum, nil
}

// short makes an error of an end that comes too soon.
func (r *Reader) short(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return r.corrupt("the stream is cut short")
	}
	return err
}

// Next moves to the next row. False is the end or an error.
func (r *Reader) Next() bool {
	for r.err == nil && !r.done {
		if r.n > 0 {
			r.err = r.row()
			return r.err == nil
		}
		if len(r.rows) > 0 {
			r.err = r.endOfList()
			continue
		}
		r.err = r.nextFrame()
	}
	return false
}

// nextFrame begins with a frame of rows, or finds the end.
func (r *Reader) nextFrame() error {
	body, checksum, err := r.read()
	if err != nil {
		return err
	}
	if n, rest, err := etf.ReadListHeader(body); err == nil && n > 0 {
		r.n, r.rows = n, rest
		r.crc = crc32.Update(r.crc, crc32.IEEETable, checksum[:])
		return nil
	}
	if err := r.end(body); err != nil {
		return err
	}
	if n, _ := io.CopyN(io.Discard, r.in, 1); n != 0 {
		return r.corrupt("there are bytes behind the end")
	}
	r.done = true
	return nil
}

// endOfList checks that a list of rows ends as one does.
func (r *Reader) endOfList() error {
	rest, err := etf.Skip(r.rows)
	if n, _, lerr := etf.ReadListHeader(r.rows); err != nil || lerr != nil || n != 0 || len(rest) != 0 {
		return r.corrupt("its list of rows does not end with it")
	}
	r.rows = nil
	return nil
}

// row reads a row.
func (r *Reader) row() error {
	arity, b, err := etf.ReadTupleHeader(r.rows)
	if err != nil || arity != 2 && arity != 3 {
		return r.corrupt("a row is none of {Key, Value} and {Key, Value, Written}")
	}
	if r.key, b, err = etf.ReadBinary(b); err != nil {
		return r.corrupt("key: %v", err)
	}
	if r.value, b, err = etf.ReadBinary(b); err != nil {
		return r.corrupt("value: %v", err)
	}
	r.written = 0
	if arity == 3 {
		if r.written, b, err = etf.ReadUint64(b); err != nil {
			return r.corrupt("time of writing: %v", err)
		}
	}
	if r.begun && bytes.Compare(r.last, r.key) >= 0 {
		return r.corrupt("keys do not ascend")
	}
	r.begun, r.last = true, append(r.last[:0], r.key...)
	r.count.Rows++
	r.count.KeyBytes += int64(len(r.key))
	r.count.ValueBytes += int64(len(r.value))
	r.rows = b
	if r.n--; r.n == 0 && len(b) == 0 {
		return r.corrupt("its list of rows does not end with it")
	}
	return nil
}

// end compares the last term with what came before it.
func (r *Reader) end(b []byte) error {
	arity, b, err := etf.ReadTupleHeader(b)
	if err != nil || arity != 5 {
		return r.corrupt("it is neither rows nor the end")
	}
	word, b, err := etf.ReadAtom(b)
	if err != nil || string(word) != endWord {
		return r.corrupt("it is neither rows nor the end")
	}
	for _, want := range []int64{r.count.Rows, r.count.KeyBytes, r.count.ValueBytes, int64(r.crc)} {
		var n int64
		if n, b, err = etf.ReadInt64(b); err != nil || n != want {
			return r.corrupt("the end does not fit what came before it: a frame is missing")
		}
	}
	if len(b) != 0 {
		return r.corrupt("the end has more than it should")
	}
	return nil
}

// Key returns the key of the row, valid until the next call of Next.
func (r *Reader) Key() []byte { return r.key }

// Value returns the value of the row, valid until the next call of Next.
func (r *Reader) Value() []byte { return r.value }

// Written returns when the row was written, in microseconds since 1970, or 0.
func (r *Reader) Written() uint64 { return r.written }

// Offset is how many bytes of the stream were read before the frame of the row.
func (r *Reader) Offset() int64 { return r.offset }

// Err returns the error that has ended the rows: nil only where the end of the stream
// was read and fits. It wraps storage.ErrCorrupt, or is the io.Reader's.
func (r *Reader) Err() error { return r.err }
