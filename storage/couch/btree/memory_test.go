package btree

import (
	"encoding/binary"
	"fmt"
	"testing"

	"scanode/etf"
	"scanode/storage/couch/file"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// newFile returns an empty file in memory.
func newFile(t interface {
	Helper()
	Fatal(...any)
	Cleanup(func())
}) *file.File {
	t.Helper()
	f, err := file.Create(vfs.NewMem(), "tree", file.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// The reduce functions of the recorded data.

// sumReducer makes {Count, Sum} of rows with integer values.
type sumReducer struct{}

func (sumReducer) Reduce(dst []byte, rows []Row) ([]byte, error) {
	var sum int64
	for _, r := range rows {
		v, _, err := etf.ReadInt64(r.Value)
		if err != nil {
			return dst, fmt.Errorf("%w: %w", ErrReduce, err)
		}
		sum += v
	}
	dst = etf.AppendTupleHeader(dst, 2)
	return etf.AppendInt64(etf.AppendInt64(dst, int64(len(rows))), sum), nil
}

func (sumReducer) Rereduce(dst []byte, reds [][]byte) ([]byte, error) {
	var count, sum int64
	for _, red := range reds {
		_, b, err := etf.ReadTupleHeader(red)
		if err != nil {
			return dst, fmt.Errorf("%w: %w", ErrReduce, err)
		}
		n, b, err := etf.ReadInt64(b)
		if err != nil {
			return dst, fmt.Errorf("%w: %w", ErrReduce, err)
		}
		s, _, err := etf.ReadInt64(b)
		if err != nil {
			return dst, fmt.Errorf("%w: %w", ErrReduce, err)
		}
		count, sum = count+n, sum+s
	}
	dst = etf.AppendTupleHeader(dst, 2)
	return etf.AppendInt64(etf.AppendInt64(dst, count), sum), nil
}

// bigReducer makes a binary of 400 bytes and one for each row.
type bigReducer struct{}

func (bigReducer) Reduce(dst []byte, rows []Row) ([]byte, error) {
	return appendRun(dst, 'r', len(rows)), nil
}

func (bigReducer) Rereduce(dst []byte, reds [][]byte) ([]byte, error) {
	return appendRun(dst, 'R', len(reds)), nil
}

func appendRun(dst []byte, c byte, n int) []byte {
	dst = etf.AppendBinaryHeader(dst, 400+n)
	for range 400 + n {
		dst = append(dst, c)
	}
	return dst
}

// digestReducer makes the sum of a hash of each row, so that a reduction that is right
// means rows that are right.
type digestReducer struct{}

func (digestReducer) Reduce(dst []byte, rows []Row) ([]byte, error) {
	var sum uint64
	for _, r := range rows {
		sum += fnv(r.Key)*0x9e3779b97f4a7c15 ^ fnv(r.Value)
	}
	return appendDigest(dst, uint64(len(rows)), sum), nil
}

func (digestReducer) Rereduce(dst []byte, reds [][]byte) ([]byte, error) {
	var count, sum uint64
	for _, red := range reds {
		b, _, err := etf.ReadBinary(red)
		if err != nil || len(b) != 16 {
			return dst, fmt.Errorf("%w: no digest", ErrReduce)
		}
		count += binary.BigEndian.Uint64(b)
		sum += binary.BigEndian.Uint64(b[8:])
	}
	return appendDigest(dst, count, sum), nil
}

func appendDigest(dst []byte, count, sum uint64) []byte {
	dst = etf.AppendBinaryHeader(dst, 16)
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, count), sum)
}

func fnv(b []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}

func TestDigestTellsRows(t *testing.T) {
	a, _ := digestReducer{}.Reduce(nil, []Row{{[]byte{97, 1}, []byte{97, 2}}})
	b, _ := digestReducer{}.Reduce(nil, []Row{{[]byte{97, 2}, []byte{97, 1}}})
	if string(a) == string(b) {
		t.Fatal("a key and a value changed places and the digest is the same")
	}
}
