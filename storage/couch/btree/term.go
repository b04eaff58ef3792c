package btree

import (
	"encoding/binary"
	"math"
	"unicode/utf8"

	"scanode/etf"
)

// Terms as CouchDB writes them, which is as term_to_binary with minor_version 1
// does: sizes of nodes, and so where nodes are cut, are sizes of this form, and
// two entries are the same if and only if their bytes are.

// scan returns the offset behind the term at off, or -1 if there is no whole term,
// and whether the term has the form CouchDB writes. It needs no stack and no limit
// of depth: revision trees of documents are nested deeper than [etf.MaxDepth].
func scan(b []byte, off int) (next int, canonical bool) {
	canonical = true
	for left := 1; left > 0; left-- {
		// Each term still to come has one byte at least, so left stays small.
		if left > len(b)-off {
			return -1, false
		}
		switch b[off] {
		case etf.TagSmallInteger:
			off += 2
		case etf.TagNil:
			off++
		case etf.TagNewFloat:
			off += 9
		case etf.TagSmallTuple:
			if len(b)-off < 2 {
				return -1, false
			}
			left += int(b[off+1])
			off += 2
		case etf.TagBinary:
			n, ok := length32(b, off)
			if !ok {
				return -1, false
			}
			off += 5 + n
		case etf.TagList:
			n, ok := length32(b, off)
			if !ok {
				return -1, false
			}
			canonical = canonical && n > 0 && !isString(b, off, n)
			left += n + 1
			off += 5
		default:
			n, parts, same := scanOther(b, off)
			if n < 0 {
				return -1, false
			}
			canonical = canonical && same
			left += parts
			off = n
		}
		if off > len(b) {
			return -1, false
		}
	}
	return off, canonical
}

// scanOther is scan for the head of a term of a rarer tag: it also returns how many
// terms that are part of it follow.
func scanOther(b []byte, off int) (next, parts int, canonical bool) {
	left := len(b) - off
	switch b[off] {
	case etf.TagInteger:
		if left < 5 {
			return -1, 0, false
		}
		return off + 5, 0, b[off+1] != 0 || b[off+2] != 0 || b[off+3] != 0
	case etf.TagAtom:
		if left < 3 {
			return -1, 0, false
		}
		return off + 3 + int(binary.BigEndian.Uint16(b[off+1:])), 0, true
	case etf.TagString:
		if left < 3 {
			return -1, 0, false
		}
		n := int(binary.BigEndian.Uint16(b[off+1:]))
		return off + 3 + n, 0, n > 0
	case etf.TagLargeTuple:
		n, ok := length32(b, off)
		if !ok {
			return -1, 0, false
		}
		return off + 5, n, n > math.MaxUint8
	case etf.TagMap:
		n, ok := length32(b, off)
		if !ok {
			return -1, 0, false
		}
		return off + 5, 2 * n, true
	case etf.TagBitBinary:
		n, ok := length32(b, off)
		if !ok {
			return -1, 0, false
		}
		return off + 6 + n, 0, true
	}
	// What has parts and is left, funs and native records, etf knows to skip.
	rest, err := etf.Skip(b[off:])
	if err != nil {
		return -1, 0, false
	}
	next = len(b) - len(rest)
	switch b[off] {
	case etf.TagFloat:
		if _, _, err := etf.ReadFloat64(b[off:]); err != nil {
			return -1, 0, false
		}
		return next, 0, false
	case etf.TagSmallBig, etf.TagLargeBig:
		return next, 0, canonicalBig(b[off:next])
	case etf.TagSmallAtom, etf.TagSmallAtomUTF8, etf.TagAtomUTF8:
		return next, 0, canonicalAtom(b[off:next])
	}
	return next, 0, true
}

// length32 reads the length behind the tag at off. More elements or bytes than b
// has left are refused, so sums of lengths do not overflow.
func length32(b []byte, off int) (n int, ok bool) {
	if len(b)-off < 5 {
		return 0, false
	}
	u := binary.BigEndian.Uint32(b[off+1:])
	return int(u), uint64(u) <= uint64(len(b)-off)
}

// isString says whether the LIST_EXT of n elements at off would have been written as
// STRING_EXT: bytes only, at most 65535 of them, and a proper tail.
func isString(b []byte, off, n int) bool {
	if n > math.MaxUint16 || len(b)-off < 5+2*n+1 {
		return false
	}
	for i := off + 5; i < off+5+2*n; i += 2 {
		if b[i] != etf.TagSmallInteger {
			return false
		}
	}
	return b[off+5+2*n] == etf.TagNil
}

// canonicalBig says whether a bignum is one to the BEAM as well, without zeros in
// front, and written in the shorter form if that holds it.
func canonicalBig(term []byte) bool {
	head := 3
	if term[0] == etf.TagLargeBig {
		head = 6
	}
	n := len(term) - head
	if n == 0 || term[len(term)-1] == 0 || term[0] == etf.TagLargeBig && n <= math.MaxUint8 {
		return false
	}
	if n > 4 {
		return true
	}
	var mag uint64
	for i := n - 1; i >= 0; i-- {
		mag = mag<<8 | uint64(term[head+i])
	}
	if term[head-1] != 0 {
		return mag > 1<<31
	}
	return mag > math.MaxInt32
}

// canonicalAtom says whether an atom of a tag other than ATOM_EXT has to be written so:
// because a character of it is not Latin-1.
func canonicalAtom(term []byte) bool {
	if term[0] == etf.TagSmallAtom {
		return false
	}
	name, _, err := etf.ReadAtom(term)
	if err != nil || !utf8.Valid(name) {
		return true // no atom; kept as it is
	}
	for _, r := range string(name) {
		if r > math.MaxUint8 {
			return term[0] == etf.TagSmallAtomUTF8 || len(name) > math.MaxUint8
		}
	}
	return false
}

// appendCanonical appends the whole terms in b in the form CouchDB writes. What
// scan has accepted it does not fail on. Maps keep the order of their pairs, and
// lists whose tails are lists their tails; the BEAM writes no such lists.
func appendCanonical(dst, b []byte) []byte {
	// Tokens come one after the other; only lists change how many there are.
	for off := 0; off < len(b); {
		switch b[off] {
		case etf.TagList:
			n, _ := length32(b, off)
			if out, next := appendString(dst, b, off, n); next >= 0 {
				dst, off = out, next
				continue
			}
			if n > 0 { // otherwise the list is its tail
				dst = append(dst, b[off:off+5]...)
			}
			off += 5
			continue
		case etf.TagSmallTuple:
			dst = append(dst, b[off:off+2]...)
			off += 2
			continue
		case etf.TagLargeTuple:
			n, _ := length32(b, off)
			dst = etf.AppendTupleHeader(dst, n)
			off += 5
			continue
		case etf.TagMap:
			dst = append(dst, b[off:off+5]...)
			off += 5
			continue
		}
		next, canonical := scan(b, off)
		if next < 0 {
			return append(dst, b[off:]...)
		}
		if canonical {
			dst = append(dst, b[off:next]...)
		} else {
			dst = appendLeaf(dst, b[off:next])
		}
		off = next
	}
	return dst
}

// appendString appends the LIST_EXT of n elements at off as STRING_EXT, if those are bytes,
// however they are written. Otherwise next is -1.
func appendString(dst, b []byte, off, n int) (out []byte, next int) {
	if n == 0 || n > math.MaxUint16 {
		return dst, -1
	}
	start := len(dst)
	dst = binary.BigEndian.AppendUint16(append(dst, etf.TagString), uint16(n))
	rest := b[off+5:]
	for range n {
		// Looking first: errors of etf are allocated.
		if len(rest) == 0 || !isInteger(rest[0]) {
			return dst[:start], -1
		}
		v, after, err := etf.ReadInt64(rest)
		if err != nil || v < 0 || v > math.MaxUint8 {
			return dst[:start], -1
		}
		dst, rest = append(dst, byte(v)), after
	}
	for len(rest) >= 5 && rest[0] == etf.TagList && binary.BigEndian.Uint32(rest[1:]) == 0 {
		rest = rest[5:]
	}
	switch {
	case len(rest) > 0 && rest[0] == etf.TagNil:
		return dst, len(b) - len(rest) + 1
	case len(rest) >= 3 && rest[0] == etf.TagString && rest[1] == 0 && rest[2] == 0:
		return dst, len(b) - len(rest) + 3
	}
	return dst[:start], -1
}

func isInteger(tag byte) bool {
	return tag == etf.TagSmallInteger || tag == etf.TagInteger || tag == etf.TagSmallBig || tag == etf.TagLargeBig
}

// appendLeaf appends a number, atom or string in the form CouchDB writes.
func appendLeaf(dst, term []byte) []byte {
	switch term[0] {
	case etf.TagString:
		return etf.AppendNil(dst)
	case etf.TagFloat:
		if v, _, err := etf.ReadFloat64(term); err == nil {
			return etf.AppendFloat64(dst, v)
		}
	case etf.TagInteger, etf.TagSmallBig, etf.TagLargeBig:
		if v, _, err := etf.ReadInt64(term); err == nil {
			return etf.AppendInt64(dst, v)
		}
		if t, _, err := etf.Decode(term, etf.Limits{Bytes: len(term)}); err == nil {
			if out, err := etf.AppendTerm(dst, t); err == nil {
				return out
			}
		}
	case etf.TagSmallAtom, etf.TagSmallAtomUTF8, etf.TagAtomUTF8:
		if name, _, err := etf.ReadAtom(term); err == nil {
			return appendAtom(dst, name)
		}
	}
	return append(dst, term...)
}

// appendAtom appends an atom as ATOM_EXT if its characters are Latin-1.
func appendAtom(dst, name []byte) []byte {
	start := len(dst)
	dst = append(dst, etf.TagAtom, 0, 0)
	for _, r := range string(name) {
		if r > math.MaxUint8 {
			dst = dst[:start]
			if len(name) <= math.MaxUint8 {
				return append(append(dst, etf.TagSmallAtomUTF8, byte(len(name))), name...)
			}
			return append(binary.BigEndian.AppendUint16(append(dst, etf.TagAtomUTF8), uint16(len(name))), name...)
		}
		dst = append(dst, byte(r))
	}
	binary.BigEndian.PutUint16(dst[start+1:], uint16(len(dst)-start-3))
	return dst
}

// canonical returns one term given by a caller in the form CouchDB writes: the bytes
// themselves if they have it. nil is no term.
func canonical(term []byte) ([]byte, bool) {
	next, same := scan(term, 0)
	if next < 0 || next != len(term) {
		return nil, false
	}
	if same {
		return term, true
	}
	return appendCanonical(nil, term), true
}
