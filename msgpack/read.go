package msgpack

import (
	"encoding/binary"
	"math"
)

// expect returns the offset after the value's own bytes and the number of its
// parts, or an error unless the first value of b is of one of the kinds.
func expect(b []byte, kind, or Type, want string) (next, parts int, err error) {
	if len(b) == 0 {
		return 0, 0, truncated(0)
	}
	if k := leads[b[0]].kind; k != kind && k != or {
		return 0, 0, badKind(b, 0, want)
	}
	return head(b, 0)
}

// ReadNil reads a nil.
//
// Errors: ErrTruncated, ErrKind.
func ReadNil(b []byte) (rest []byte, err error) {
	next, _, err := expect(b, Nil, Nil, "nil")
	if err != nil {
		return nil, err
	}
	return b[next:], nil
}

// ReadBool reads a bool.
//
// Errors: ErrTruncated, ErrKind.
func ReadBool(b []byte) (v bool, rest []byte, err error) {
	next, _, err := expect(b, Bool, Bool, "a bool")
	if err != nil {
		return false, nil, err
	}
	return b[0] == leadTrue, b[next:], nil
}

// ReadInt64 reads an integer of any format and width.
//
// Errors: ErrTruncated, ErrKind, ErrRange if it does not fit.
func ReadInt64(b []byte) (v int64, rest []byte, err error) {
	v, unsigned, rest, err := readInt(b)
	if err == nil && unsigned && v < 0 {
		return 0, nil, outOfRange("integer does not fit int64")
	}
	return v, rest, err
}

// ReadUint64 reads an integer of any format and width.
//
// Errors: ErrTruncated, ErrKind, ErrRange if it is negative.
func ReadUint64(b []byte) (v uint64, rest []byte, err error) {
	i, unsigned, rest, err := readInt(b)
	if err == nil && !unsigned && i < 0 {
		return 0, nil, outOfRange("negative integer where none is allowed")
	}
	return uint64(i), rest, err
}

// readInt reads an integer; unsigned says that v is the bits of a uint64.
func readInt(b []byte) (v int64, unsigned bool, rest []byte, err error) {
	next, _, err := expect(b, Int, Int, "an integer")
	if err != nil {
		return 0, false, nil, err
	}
	rest = b[next:]
	switch b[0] {
	case leadUint8:
		return int64(b[1]), true, rest, nil
	case leadUint16:
		return int64(binary.BigEndian.Uint16(b[1:])), true, rest, nil
	case leadUint32:
		return int64(binary.BigEndian.Uint32(b[1:])), true, rest, nil
	case leadUint64:
		return int64(binary.BigEndian.Uint64(b[1:])), true, rest, nil
	case leadInt16:
		return int64(int16(binary.BigEndian.Uint16(b[1:]))), false, rest, nil
	case leadInt32:
		return int64(int32(binary.BigEndian.Uint32(b[1:]))), false, rest, nil
	case leadInt64:
		return int64(binary.BigEndian.Uint64(b[1:])), false, rest, nil
	case leadInt8:
		return int64(int8(b[1])), false, rest, nil
	}
	return int64(int8(b[0])), false, rest, nil // fixint
}

// ReadFloat64 reads a float of 32 or 64 bits; integers are none. NaN and
// infinities are returned like any other.
//
// Errors: ErrTruncated, ErrKind.
func ReadFloat64(b []byte) (v float64, rest []byte, err error) {
	next, _, err := expect(b, Float, Float, "a float")
	if err != nil {
		return 0, nil, err
	}
	if b[0] == leadFloat32 {
		return float64(math.Float32frombits(binary.BigEndian.Uint32(b[1:]))), b[next:], nil
	}
	return math.Float64frombits(binary.BigEndian.Uint64(b[1:])), b[next:], nil
}

// ReadStr reads a str. v aliases b and is not checked to be UTF-8.
//
// Errors: ErrTruncated, ErrKind.
func ReadStr(b []byte) (v, rest []byte, err error) {
	next, _, err := expect(b, Str, Str, "a str")
	if err != nil {
		return nil, nil, err
	}
	return b[leads[b[0]].fixed:next:next], b[next:], nil
}

// ReadBytes reads a str or a bin. v aliases b.
//
// Errors: ErrTruncated, ErrKind.
func ReadBytes(b []byte) (v, rest []byte, err error) {
	next, _, err := expect(b, Str, Bin, "a str or bin")
	if err != nil {
		return nil, nil, err
	}
	return b[leads[b[0]].fixed:next:next], b[next:], nil
}

// ReadArrayHeader reads the header of an array; its n elements follow in rest,
// which has at least n bytes.
//
// Errors: ErrTruncated, ErrKind.
func ReadArrayHeader(b []byte) (n int, rest []byte, err error) {
	next, n, err := expect(b, Array, Array, "an array")
	if err != nil {
		return 0, nil, err
	}
	return n, b[next:], nil
}

// ReadMapHeader reads the header of a map; pairs keys, each followed by its
// value, follow in rest, which has at least 2*pairs bytes.
//
// Errors: ErrTruncated, ErrKind.
func ReadMapHeader(b []byte) (pairs int, rest []byte, err error) {
	next, n, err := expect(b, Map, Map, "a map")
	if err != nil {
		return 0, nil, err
	}
	return n / 2, b[next:], nil
}
