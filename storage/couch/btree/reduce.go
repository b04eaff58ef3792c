package btree

import (
	"fmt"

	"scanode/etf"
)

// A Reducer makes one term of the rows below a node, which its parent keeps. Terms are
// encoded, without version byte, in the form CouchDB writes (see doc.go). It may be called
// from any goroutine and must not keep what it is given.
type Reducer interface {
	// Reduce appends the reduction of the rows of a leaf, or of no rows.
	Reduce(dst []byte, rows []Row) ([]byte, error)
	// Rereduce appends the reduction of subtrees, at least one, given those of each.
	Rereduce(dst []byte, reds [][]byte) ([]byte, error)
}

// noReducer is that of a tree without a reduce function.
type noReducer struct{}

func (noReducer) Reduce(dst []byte, _ []Row) ([]byte, error)      { return etf.AppendNil(dst), nil }
func (noReducer) Rereduce(dst []byte, _ [][]byte) ([]byte, error) { return etf.AppendNil(dst), nil }

// FullReduce returns the reduction of all rows. It reads nothing.
//
// Errors: those of the reducer.
func (t Tree) FullReduce() ([]byte, error) {
	if t.root.IsNil() {
		return t.o.Reducer.Reduce(nil, nil)
	}
	return t.root.Reduction, nil
}

// FinalReduce appends the reduction of what p has to dst.
//
// Errors: those of the reducer.
func (t Tree) FinalReduce(dst []byte, p Partial) ([]byte, error) {
	if len(p.Rows) == 0 {
		switch len(p.Reds) {
		case 0:
			return t.o.Reducer.Reduce(dst, nil)
		case 1:
			return append(dst, p.Reds[0]...), nil
		}
		return t.o.Reducer.Rereduce(dst, p.Reds)
	}
	red, err := t.o.Reducer.Reduce(nil, p.Rows)
	if err != nil {
		return dst, err
	}
	if len(p.Reds) == 0 {
		return append(dst, red...), nil
	}
	return t.o.Reducer.Rereduce(dst, append([][]byte{red}, p.Reds...))
}

// Count counts rows: _count, and the trees of sequence numbers and of purges.
type Count struct{}

// Reduce appends the number of rows.
func (Count) Reduce(dst []byte, rows []Row) ([]byte, error) {
	return etf.AppendInt64(dst, int64(len(rows))), nil
}

// Rereduce appends the sum of counts.
//
// Errors: ErrReduce.
func (Count) Rereduce(dst []byte, reds [][]byte) ([]byte, error) {
	var sum int64
	for _, red := range reds {
		n, _, err := etf.ReadInt64(red)
		if err != nil {
			return dst, fmt.Errorf("%w: count: %w", ErrReduce, err)
		}
		sum += n
	}
	return etf.AppendInt64(dst, sum), nil
}
