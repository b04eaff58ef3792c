package main

import (
	"encoding/binary"

	"scanode/etf"
)

// Terms as CouchDB encodes them, without version byte.

func text(s string) []byte { return etf.AppendBinary(nil, []byte(s)) }

func integer(n int64) []byte { return etf.AppendInt64(nil, n) }

func tuple(elements ...[]byte) []byte {
	b := etf.AppendTupleHeader(nil, len(elements))
	for _, e := range elements {
		b = append(b, e...)
	}
	return b
}

// list makes a list of elements, of which at least one is no byte: those have a form of
// their own.
func list(elements ...[]byte) []byte {
	if len(elements) == 0 {
		return etf.AppendNil(nil)
	}
	b := etf.AppendListHeader(nil, len(elements))
	for _, e := range elements {
		b = append(b, e...)
	}
	return etf.AppendNil(b)
}

// atom appends one in the form that CouchDB's files have.
func atom(name string) []byte {
	return append(binary.BigEndian.AppendUint16([]byte{etf.TagAtom}, uint16(len(name))), name...)
}
