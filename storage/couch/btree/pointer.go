package btree

import (
	"bytes"
	"fmt"

	"scanode/etf"
)

// A Pointer stands for a subtree: in a header for the whole tree, in an inner node
// for a child. As a term it is
//
//	{Ptr, Reduction, SubtreeSize}   SubtreeSize may be nil
//	{Ptr, Reduction}                before CouchDB 1.2
//	nil                             the root of a tree without rows
//
// The zero Pointer is nil.
type Pointer struct {
	Ptr       int64  // where the node's chunk begins in the file
	Reduction []byte // of all rows below, one encoded term; nil for the nil pointer only
	Size      int64  // bytes of the file that the nodes below take; NoSize if it is not known

	short bool // has only two elements
}

// NoSize is the Size of a subtree whose nodes were written, at least in part, before
// sizes were kept.
const NoSize = -1

// IsNil says whether p is nil, the root of a tree without rows.
func (p Pointer) IsNil() bool { return p.Reduction == nil }

// nilAtom is the atom nil as CouchDB writes it.
var nilAtom = []byte{etf.TagAtom, 0, 3, 'n', 'i', 'l'}

// isNil says whether term is the atom nil, of any tag, and nothing else.
func isNil(term []byte) bool {
	if len(term) < len("nil")+2 || term[0] == etf.TagSmallTuple || !bytes.HasSuffix(term, []byte("nil")) {
		return false // without asking etf, whose errors are allocated
	}
	name, rest, err := etf.ReadAtom(term)
	return err == nil && len(rest) == 0 && string(name) == "nil"
}

// ParsePointer reads a pointer from one encoded term without version byte. The
// reduction aliases term.
//
// Errors: ErrPointer.
func ParsePointer(term []byte) (Pointer, error) {
	if isNil(term) {
		return Pointer{}, nil
	}
	arity, b, err := etf.ReadTupleHeader(term)
	if err != nil || arity != 2 && arity != 3 {
		return Pointer{}, fmt.Errorf("%w: no tuple of two or three", ErrPointer)
	}
	p := Pointer{Size: NoSize, short: arity == 2}
	if p.Ptr, b, err = etf.ReadInt64(b); err != nil || p.Ptr < 0 {
		return Pointer{}, fmt.Errorf("%w: no offset in it", ErrPointer)
	}
	next, _ := scan(b, 0)
	if next < 0 {
		return Pointer{}, fmt.Errorf("%w: no reduction in it", ErrPointer)
	}
	p.Reduction, b = b[:next:next], b[next:]
	if arity == 3 && !isNil(b) {
		if p.Size, b, err = etf.ReadInt64(b); err != nil || p.Size < 0 || len(b) > 0 {
			return Pointer{}, fmt.Errorf("%w: no size in it", ErrPointer)
		}
		return p, nil
	}
	if arity == 2 && len(b) > 0 {
		return Pointer{}, fmt.Errorf("%w: bytes behind it", ErrPointer)
	}
	return p, nil
}

// Append appends p as encoded term without version byte, as CouchDB writes it.
func (p Pointer) Append(dst []byte) []byte {
	if p.IsNil() {
		return append(dst, nilAtom...)
	}
	if p.short {
		dst = etf.AppendTupleHeader(dst, 2)
		return append(etf.AppendInt64(dst, p.Ptr), p.Reduction...)
	}
	dst = etf.AppendTupleHeader(dst, 3)
	dst = append(etf.AppendInt64(dst, p.Ptr), p.Reduction...)
	if p.Size < 0 {
		return append(dst, nilAtom...)
	}
	return etf.AppendInt64(dst, p.Size)
}
