package etf

import (
	"encoding/binary"
	"math"
	"strconv"
	"unicode/utf8"
)

// need returns an error unless b has n bytes.
func need(b []byte, n int) error {
	if len(b) < n {
		return truncated(len(b))
	}
	return nil
}

// ReadAtom reads an atom of any of the four tags. The name is UTF-8 and aliases
// b, except that a Latin-1 name with characters beyond ASCII is a copy. UTF-8 is
// not validated.
//
// Errors: ErrTruncated, ErrTag.
func ReadAtom(b []byte) (name, rest []byte, err error) {
	if err := need(b, 1); err != nil {
		return nil, nil, err
	}
	if !isAtomTag(b[0]) {
		return nil, nil, badTag(b, 0, "an atom")
	}
	next, _, err := head(b, 0)
	if err != nil {
		return nil, nil, err
	}
	name = b[fixedSize[b[0]]:next]
	if b[0] == TagAtom || b[0] == TagSmallAtom {
		name = fromLatin1(name)
	}
	return name, b[next:], nil
}

// fromLatin1 returns name in UTF-8, name itself if it is ASCII.
func fromLatin1(name []byte) []byte {
	for i, c := range name {
		if c >= utf8.RuneSelf {
			out := append(make([]byte, 0, 2*len(name)), name[:i]...)
			for _, c := range name[i:] {
				out = utf8.AppendRune(out, rune(c))
			}
			return out
		}
	}
	return name
}

// ReadInt64 reads an integer of any tag and width.
//
// Errors: ErrTruncated, ErrTag if it is no integer, ErrRange if it does not fit.
func ReadInt64(b []byte) (v int64, rest []byte, err error) {
	neg, mag, rest, err := readInteger(b)
	if err != nil {
		return 0, nil, err
	}
	if mag > math.MaxInt64 && (!neg || mag > 1<<63) {
		return 0, nil, &Error{0, "integer does not fit 64 bits", ErrRange}
	}
	if neg {
		return -int64(mag), rest, nil
	}
	return int64(mag), rest, nil
}

// ReadUint64 reads an integer of any tag and width.
//
// Errors: ErrTruncated, ErrTag if it is no integer, ErrRange if it does not fit.
func ReadUint64(b []byte) (v uint64, rest []byte, err error) {
	neg, mag, rest, err := readInteger(b)
	if err != nil {
		return 0, nil, err
	}
	if neg && mag != 0 {
		return 0, nil, &Error{0, "negative integer where none is allowed", ErrRange}
	}
	return mag, rest, nil
}

// readInteger reads an integer whose magnitude fits 64 bits.
func readInteger(b []byte) (neg bool, mag uint64, rest []byte, err error) {
	if err := need(b, 1); err != nil {
		return false, 0, nil, err
	}
	switch b[0] {
	case TagSmallInteger:
		if err := need(b, 2); err != nil {
			return false, 0, nil, err
		}
		return false, uint64(b[1]), b[2:], nil
	case TagInteger:
		if err := need(b, 5); err != nil {
			return false, 0, nil, err
		}
		v := int64(int32(binary.BigEndian.Uint32(b[1:])))
		if v < 0 {
			return true, uint64(-v), b[5:], nil
		}
		return false, uint64(v), b[5:], nil
	case TagSmallBig, TagLargeBig:
		neg, digits, rest, err := readBig(b)
		if err != nil {
			return false, 0, nil, err
		}
		if len(digits) > 8 {
			return false, 0, nil, &Error{0, "integer does not fit 64 bits", ErrRange}
		}
		for i, d := range digits {
			mag |= uint64(d) << (8 * i)
		}
		return neg, mag, rest, nil
	}
	return false, 0, nil, badTag(b, 0, "an integer")
}

// readBig splits a SMALL_BIG_EXT or LARGE_BIG_EXT. The digits are little-endian
// without leading (that is, final) zeros. Any sign byte but 0 is a minus, as in
// the BEAM.
func readBig(b []byte) (neg bool, digits, rest []byte, err error) {
	next, _, err := head(b, 0)
	if err != nil {
		return false, nil, nil, err
	}
	fixed := int(fixedSize[b[0]])
	digits = b[fixed:next]
	for len(digits) > 0 && digits[len(digits)-1] == 0 {
		digits = digits[:len(digits)-1]
	}
	return b[fixed-1] != 0, digits, b[next:], nil
}

// ReadFloat64 reads a float, NEW_FLOAT_EXT or FLOAT_EXT; integers are none. The
// eight bytes of a NEW_FLOAT_EXT are returned as they are, NaN and infinities
// included, which no BEAM writes: the caller decides about them.
//
// Errors: ErrTruncated, ErrTag, ErrValue if the text of a FLOAT_EXT is no number.
func ReadFloat64(b []byte) (v float64, rest []byte, err error) {
	if err := need(b, 1); err != nil {
		return 0, nil, err
	}
	switch b[0] {
	case TagNewFloat:
		if err := need(b, 9); err != nil {
			return 0, nil, err
		}
		return math.Float64frombits(binary.BigEndian.Uint64(b[1:])), b[9:], nil
	case TagFloat:
		if err := need(b, 32); err != nil {
			return 0, nil, err
		}
		v, ok := parseFloatText(b[1:32])
		if !ok {
			return 0, nil, badValue(1, "text is no float")
		}
		return v, b[32:], nil
	}
	return 0, nil, badTag(b, 0, "a float")
}

// parseFloatText reads what "%.20e" writes: sign, digits, a point, digits, an
// exponent, zero bytes. strconv alone would take hexadecimals and infinities.
func parseFloatText(text []byte) (float64, bool) {
	i := 0
	digits := func() bool {
		start := i
		for i < len(text) && '0' <= text[i] && text[i] <= '9' {
			i++
		}
		return i > start
	}
	sign := func() {
		if i < len(text) && (text[i] == '-' || text[i] == '+') {
			i++
		}
	}
	sign()
	if !digits() || i == len(text) || text[i] != '.' {
		return 0, false
	}
	i++
	if !digits() {
		return 0, false
	}
	if i < len(text) && (text[i] == 'e' || text[i] == 'E') {
		i++
		sign()
		if !digits() {
			return 0, false
		}
	}
	end := i
	if end < len(text) && text[end] != 0 {
		return 0, false
	}
	v, err := strconv.ParseFloat(string(text[:end]), 64)
	return v, err == nil
}

// ReadBinary reads a BINARY_EXT. v aliases b.
//
// Errors: ErrTruncated, ErrTag.
func ReadBinary(b []byte) (v, rest []byte, err error) {
	if err := need(b, 1); err != nil {
		return nil, nil, err
	}
	if b[0] != TagBinary {
		return nil, nil, badTag(b, 0, "a binary")
	}
	next, _, err := head(b, 0)
	if err != nil {
		return nil, nil, err
	}
	return b[5:next:next], b[next:], nil
}

// ReadTupleHeader reads the header of a tuple; its elements follow in rest,
// which has at least arity bytes.
//
// Errors: ErrTruncated, ErrTag.
func ReadTupleHeader(b []byte) (arity int, rest []byte, err error) {
	if err := need(b, 1); err != nil {
		return 0, nil, err
	}
	if b[0] != TagSmallTuple && b[0] != TagLargeTuple {
		return 0, nil, badTag(b, 0, "a tuple")
	}
	next, n, err := head(b, 0)
	if err != nil {
		return 0, nil, err
	}
	if n > len(b)-next {
		return 0, nil, truncated(len(b))
	}
	return n, b[next:], nil
}

// ReadListHeader reads the header of a list. NIL_EXT gives 0 and ends the list.
// Otherwise n elements and then the tail follow in rest, which has at least n+1
// bytes: reading the tail with ReadListHeader again gives 0 for a proper list. A
// LIST_EXT of no elements is its tail, as for the BEAM. STRING_EXT is refused
// with ErrTag.
//
// Errors: ErrTruncated, ErrTag.
func ReadListHeader(b []byte) (n int, rest []byte, err error) {
	for off := 0; ; {
		if off >= len(b) {
			return 0, nil, truncated(off)
		}
		if b[off] == TagNil {
			return 0, b[off+1:], nil
		}
		if b[off] != TagList {
			return 0, nil, badTag(b, off, "a list")
		}
		next, n, err := head(b, off)
		if err != nil {
			return 0, nil, err
		}
		if n > 1 {
			return n - 1, b[next:], nil
		}
		off = next
	}
}

// ReadMapHeader reads the header of a map; pairs keys, each followed by its
// value, follow in rest, which has at least 2*pairs bytes.
//
// Errors: ErrTruncated, ErrTag.
func ReadMapHeader(b []byte) (pairs int, rest []byte, err error) {
	if err := need(b, 1); err != nil {
		return 0, nil, err
	}
	if b[0] != TagMap {
		return 0, nil, badTag(b, 0, "a map")
	}
	next, n, err := head(b, 0)
	if err != nil {
		return 0, nil, err
	}
	return n / 2, b[next:], nil
}

// ReadPid reads a pid of either tag.
//
// Errors: ErrTruncated, ErrTag.
func ReadPid(b []byte) (p Pid, rest []byte, err error) {
	if err := need(b, 1); err != nil {
		return Pid{}, nil, err
	}
	if b[0] != TagPid && b[0] != TagNewPid {
		return Pid{}, nil, badTag(b, 0, "a pid")
	}
	node, f, rest, err := readIdentifier(b, 1)
	if err != nil {
		return Pid{}, nil, err
	}
	p = Pid{Node: Atom(node), ID: binary.BigEndian.Uint32(f), Serial: binary.BigEndian.Uint32(f[4:])}
	p.Creation = readCreation(f[8:])
	return p, rest, nil
}

// ReadRef reads a reference of any of the three tags.
//
// Errors: ErrTruncated, ErrTag, ErrValue if it has no word or more than five.
func ReadRef(b []byte) (r Ref, rest []byte, err error) {
	if err := need(b, 1); err != nil {
		return Ref{}, nil, err
	}
	if b[0] != TagReference && b[0] != TagNewReference && b[0] != TagNewerReference {
		return Ref{}, nil, badTag(b, 0, "a reference")
	}
	next, _, err := head(b, 0)
	if err != nil {
		return Ref{}, nil, err
	}
	node, creation, words, err := refFields(b[:next])
	if err != nil {
		return Ref{}, nil, err
	}
	r = Ref{Node: Atom(node), Creation: creation, Len: uint8(len(words) / 4)}
	for i := range int(r.Len) {
		r.ID[i] = binary.BigEndian.Uint32(words[4*i:])
	}
	return r, b[next:], nil
}

// ReadPort reads a port of any of the three tags.
//
// Errors: ErrTruncated, ErrTag.
func ReadPort(b []byte) (p Port, rest []byte, err error) {
	if err := need(b, 1); err != nil {
		return Port{}, nil, err
	}
	if b[0] != TagPort && b[0] != TagNewPort && b[0] != TagV4Port {
		return Port{}, nil, badTag(b, 0, "a port")
	}
	node, f, rest, err := readIdentifier(b, 1)
	if err != nil {
		return Port{}, nil, err
	}
	id, creation := portFields(b[0], f)
	return Port{Atom(node), id, creation}, rest, nil
}

// readIdentifier checks the identifier that b starts with and splits it into
// the node's name, which starts at off, and the fields after that.
func readIdentifier(b []byte, off int) (node, fields, rest []byte, err error) {
	next, _, err := head(b, 0)
	if err != nil {
		return nil, nil, nil, err
	}
	name, after, err := ReadAtom(b[off:next])
	if err != nil {
		return nil, nil, nil, shift(err, off)
	}
	return name, after, b[next:], nil
}

// readCreation reads the creation, which is all of f: one byte or four.
func readCreation(f []byte) uint32 {
	if len(f) == 1 {
		return uint32(f[0])
	}
	return binary.BigEndian.Uint32(f)
}
