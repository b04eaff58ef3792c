package etf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
)

// Limits bound what Decode builds. A zero field stands for that of
// DefaultLimits.
type Limits struct {
	Depth int // containers around a term, at most MaxDepth
	Count int // terms in all, characters of STRING_EXT included
	Bytes int // encoded size
}

// DefaultLimits allow 256 levels, a million terms and 64 MiB.
var DefaultLimits = Limits{Depth: MaxDepth, Count: 1 << 20, Bytes: 64 << 20}

type decoder struct {
	b     []byte
	depth int // allowed around a term
	count int // terms still allowed
}

// Decode returns the first term of b as Go value and what follows it. Binaries,
// bitstrings and Opaque terms in it alias b; all else is copied. It accepts
// what [Check] accepts, within the limits, and FUN_EXT and LOCAL_EXT, which
// nobody may be sent, as Opaque. Memory grows with the terms that are there,
// never by a claimed count.
//
// Errors: those of Check, ErrLimit for the limits as well.
func Decode(b []byte, lim Limits) (Term, []byte, error) {
	lim = lim.orDefault()
	d := decoder{b: b[:min(len(b), lim.Bytes)], depth: lim.Depth, count: lim.Count}
	t, off, err := d.term(0, 0)
	if err != nil {
		if errors.Is(err, ErrTruncated) && len(d.b) < len(b) {
			err = &Error{lim.Bytes, fmt.Sprintf("term of more than %d bytes", lim.Bytes), ErrLimit}
		}
		return nil, nil, err
	}
	return t, b[off:], nil
}

func (l Limits) orDefault() Limits {
	if l.Depth <= 0 || l.Depth > MaxDepth {
		l.Depth = DefaultLimits.Depth
	}
	if l.Count <= 0 {
		l.Count = DefaultLimits.Count
	}
	if l.Bytes <= 0 {
		l.Bytes = DefaultLimits.Bytes
	}
	return l
}

// charge takes n terms off those still allowed.
func (d *decoder) charge(off, n int) error {
	if n > d.count {
		return &Error{off, "too many terms", ErrLimit}
	}
	d.count -= n
	return nil
}

// term decodes the term at off, which has depth containers around it.
func (d *decoder) term(off, depth int) (Term, int, error) {
	if off < len(d.b) {
		switch d.b[off] {
		case TagNewFun, TagFun, TagLocal, TagRecord:
			next, err := walk(d.b, off, depth, contents)
			if err != nil {
				return nil, 0, err
			}
			return Opaque(d.b[off:next:next]), next, nil
		}
	}
	next, n, err := head(d.b, off)
	if err != nil {
		return nil, 0, err
	}
	if n == 0 {
		if err := checkContents(d.b, off, next); err != nil {
			return nil, 0, err
		}
		t, err := d.leaf(off, next)
		return t, next, err
	}
	if depth >= d.depth {
		return nil, 0, &Error{off, fmt.Sprintf("nested deeper than %d", d.depth), ErrLimit}
	}
	if err := d.charge(off, n); err != nil {
		return nil, 0, err
	}
	switch d.b[off] {
	case TagList:
		return d.list(next, n-1, depth)
	case TagMap:
		return d.pairs(off, next, n/2, depth)
	}
	ts, next, err := d.terms(next, n, depth)
	return Tuple(ts), next, err
}

// terms decodes n terms. Its slice starts small and grows as they turn up.
func (d *decoder) terms(off, n, depth int) ([]Term, int, error) {
	ts := make([]Term, 0, min(n, 64))
	for range n {
		t, next, err := d.term(off, depth+1)
		if err != nil {
			return nil, 0, err
		}
		ts, off = append(ts, t), next
	}
	return ts, off, nil
}

// pairs decodes the n pairs at off of the map at start.
func (d *decoder) pairs(start, off, n, depth int) (Term, int, error) {
	m := make(Map, 0, min(n, 64))
	where := make([]pair, 0, min(n, 64))
	for range n {
		k, value, err := d.term(off, depth+1)
		if err != nil {
			return nil, 0, err
		}
		v, next, err := d.term(value, depth+1)
		if err != nil {
			return nil, 0, err
		}
		m, where, off = append(m, Pair{k, v}), append(where, pair{off, value}), next
	}
	return m, off, checkKeys(d.b, where, off-start)
}

// list decodes n elements and a tail. A tail that is a list again continues the
// list, and no elements leave the tail itself, as in the BEAM.
func (d *decoder) list(off, n, depth int) (Term, int, error) {
	elems, off, err := d.terms(off, n, depth)
	if err != nil {
		return nil, 0, err
	}
	tail, off, err := d.term(off, depth+1)
	if err != nil {
		return nil, 0, err
	}
	if n == 0 {
		return tail, off, nil
	}
	switch tail := tail.(type) {
	case List:
		return append(List(elems), tail...), off, nil
	case Improper:
		return Improper{append(List(elems), tail.Elems...), tail.Tail}, off, nil
	}
	return Improper{elems, tail}, off, nil
}

// leaf decodes the checked term without parts in d.b[off:next].
func (d *decoder) leaf(off, next int) (Term, error) {
	b := d.b[off:next:next]
	switch b[0] {
	case TagSmallInteger:
		return int64(b[1]), nil
	case TagInteger:
		return int64(int32(binary.BigEndian.Uint32(b[1:]))), nil
	case TagSmallBig, TagLargeBig:
		return decodeBig(b)
	case TagNewFloat, TagFloat:
		v, _, err := ReadFloat64(b)
		return v, err
	case TagAtom, TagSmallAtom, TagAtomUTF8, TagSmallAtomUTF8:
		name, _, err := ReadAtom(b)
		return Atom(name), err
	case TagSmallTuple, TagLargeTuple:
		return Tuple(nil), nil
	case TagMap:
		return Map(nil), nil
	case TagNil:
		return List(nil), nil
	case TagString:
		return d.characters(off, b[3:])
	case TagBinary:
		return b[5:], nil
	case TagBitBinary:
		return decodeBits(b[5], b[6:]), nil
	case TagPid, TagNewPid:
		v, _, err := ReadPid(b)
		return v, err
	case TagReference, TagNewReference, TagNewerReference:
		v, _, err := ReadRef(b)
		return v, err
	case TagPort, TagNewPort, TagV4Port:
		v, _, err := ReadPort(b)
		return v, err
	case TagExport:
		return decodeExport(b)
	}
	return nil, badTag(d.b, off, "a term")
}

func (d *decoder) characters(off int, s []byte) (Term, error) {
	if len(s) == 0 {
		return List(nil), nil
	}
	if err := d.charge(off, len(s)); err != nil {
		return nil, err
	}
	l := make(List, len(s))
	for i, c := range s {
		l[i] = int64(c)
	}
	return l, nil
}

func decodeBig(b []byte) (Term, error) {
	if v, _, err := ReadInt64(b); err == nil {
		return v, nil
	}
	neg, digits, _, err := readBig(b)
	if err != nil {
		return nil, err
	}
	mag := make([]byte, len(digits))
	for i, d := range digits {
		mag[len(mag)-1-i] = d
	}
	v := new(big.Int).SetBytes(mag)
	if neg {
		v.Neg(v)
	}
	return v, nil
}

// decodeBits returns a binary if all bits of data's last byte are used, and
// clears those that are not, as the BEAM does.
func decodeBits(bits byte, data []byte) Term {
	if bits == 8 || len(data) == 0 {
		return data
	}
	last := len(data) - 1
	if clean := data[last] & (^byte(0) << (8 - bits)); clean != data[last] {
		data = append([]byte(nil), data...)
		data[last] = clean
	}
	return Bitstring{data, bits}
}

func decodeExport(b []byte) (Term, error) {
	module, rest, err := ReadAtom(b[1:])
	if err != nil {
		return nil, err
	}
	function, rest, err := ReadAtom(rest)
	if err != nil {
		return nil, err
	}
	return Export{Atom(module), Atom(function), rest[1]}, nil
}
