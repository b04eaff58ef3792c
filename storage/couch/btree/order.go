package btree

import (
	"bytes"
	"cmp"
	"encoding/binary"

	"scanode/etf"
)

// An Order compares two keys, each one whole encoded term, and returns what
// cmp.Compare does. It may be called from any goroutine. A file must always be used
// with the order it was written in: reading finds most of what is out of order, not
// all.
type Order func(a, b []byte) (int, error)

// TermOrder is Erlang's: integers and floats by value, so that 1 and 1.0 are the same
// key. It is what a tree has without another one, and what views with the option
// collation=raw have.
//
// Errors: those of [etf.Compare].
func TermOrder(a, b []byte) (int, error) {
	if len(a) < 2 || len(b) < 2 {
		return etf.Compare(a, b)
	}
	// Most keys are document ids and sequence numbers.
	switch x, y := a[0], b[0]; {
	case x == etf.TagBinary && y == etf.TagBinary && len(a) >= 5 && len(b) >= 5:
		return bytes.Compare(a[5:], b[5:]), nil
	case (x == etf.TagInteger || x == etf.TagSmallInteger) && (y == etf.TagInteger || y == etf.TagSmallInteger):
		return cmp.Compare(int32Of(a), int32Of(b)), nil
	}
	return etf.Compare(a, b)
}

// int32Of returns the value of a SMALL_INTEGER_EXT or a whole INTEGER_EXT.
func int32Of(term []byte) int32 {
	if term[0] == etf.TagSmallInteger {
		return int32(term[1])
	}
	return int32(binary.BigEndian.Uint32(term[1:]))
}

// ByteOrder compares the encoded bytes of keys. CouchDB has no such order; it is for
// trees whose keys are all binaries of the same length, or that need no other order
// than one that always holds. 1 and 1.0 are two keys.
func ByteOrder(a, b []byte) (int, error) { return bytes.Compare(a, b), nil }
