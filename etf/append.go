package etf

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// AppendVersion appends the version byte 131.
func AppendVersion(dst []byte) []byte { return append(dst, Version) }

// AppendAtom appends an atom. The name must be UTF-8 of at most 255 characters,
// or the receiver breaks off the connection; AppendTerm checks that, AppendAtom
// does not.
func AppendAtom(dst []byte, name Atom) []byte {
	if len(name) < 256 {
		dst = append(dst, TagSmallAtomUTF8, byte(len(name)))
	} else {
		dst = binary.BigEndian.AppendUint16(append(dst, TagAtomUTF8), uint16(len(name)))
	}
	return append(dst, name...)
}

// AppendInt64 appends an integer in its shortest form, as the BEAM does.
func AppendInt64(dst []byte, v int64) []byte {
	switch {
	case v >= 0 && v < 256:
		return append(dst, TagSmallInteger, byte(v))
	case v == int64(int32(v)):
		return binary.BigEndian.AppendUint32(append(dst, TagInteger), uint32(v))
	case v < 0:
		return appendBig64(dst, 1, -uint64(v))
	}
	return appendBig64(dst, 0, uint64(v))
}

// AppendUint64 appends an integer in its shortest form, as the BEAM does.
func AppendUint64(dst []byte, v uint64) []byte {
	if v <= math.MaxInt64 {
		return AppendInt64(dst, int64(v))
	}
	return appendBig64(dst, 0, v)
}

func appendBig64(dst []byte, sign byte, mag uint64) []byte {
	n := (bits.Len64(mag) + 7) / 8
	dst = append(dst, TagSmallBig, byte(n), sign)
	for range n {
		dst = append(dst, byte(mag))
		mag >>= 8
	}
	return dst
}

// AppendFloat64 appends a float. It must be finite, or the receiver breaks off
// the connection; AppendTerm checks that, AppendFloat64 does not.
func AppendFloat64(dst []byte, v float64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, TagNewFloat), math.Float64bits(v))
}

// AppendBinary appends a binary of less than 4 GiB.
func AppendBinary(dst, v []byte) []byte {
	return append(AppendBinaryHeader(dst, len(v)), v...)
}

// AppendBinaryHeader appends the header of a binary whose n bytes, less than
// 4 GiB, are to follow.
func AppendBinaryHeader(dst []byte, n int) []byte {
	return binary.BigEndian.AppendUint32(append(dst, TagBinary), uint32(n))
}

// AppendTupleHeader appends the header of a tuple whose arity elements are to
// follow.
func AppendTupleHeader(dst []byte, arity int) []byte {
	if arity < 256 {
		return append(dst, TagSmallTuple, byte(arity))
	}
	return binary.BigEndian.AppendUint32(append(dst, TagLargeTuple), uint32(arity))
}

// AppendListHeader appends the header of a list whose n elements and then tail,
// [AppendNil] for a proper list, are to follow. With n 0 it appends nothing: the
// list is its tail.
func AppendListHeader(dst []byte, n int) []byte {
	if n == 0 {
		return dst
	}
	return binary.BigEndian.AppendUint32(append(dst, TagList), uint32(n))
}

// AppendNil appends the empty list, which is also a proper list's tail.
func AppendNil(dst []byte) []byte { return append(dst, TagNil) }

// AppendMapHeader appends the header of a map; pairs keys, each followed by its
// value, are to follow. No key may come twice, or the receiver breaks off the
// connection.
func AppendMapHeader(dst []byte, pairs int) []byte {
	return binary.BigEndian.AppendUint32(append(dst, TagMap), uint32(pairs))
}

// AppendPid appends a pid as NEW_PID_EXT.
func AppendPid(dst []byte, p Pid) []byte {
	dst = AppendAtom(append(dst, TagNewPid), p.Node)
	dst = binary.BigEndian.AppendUint32(dst, p.ID)
	dst = binary.BigEndian.AppendUint32(dst, p.Serial)
	return binary.BigEndian.AppendUint32(dst, p.Creation)
}

// AppendRef appends a reference as NEWER_REFERENCE_EXT. Of Len, 5 at most counts.
func AppendRef(dst []byte, r Ref) []byte {
	words := min(int(r.Len), len(r.ID))
	dst = append(dst, TagNewerReference, 0, byte(words))
	dst = AppendAtom(dst, r.Node)
	dst = binary.BigEndian.AppendUint32(dst, r.Creation)
	for _, id := range r.ID[:words] {
		dst = binary.BigEndian.AppendUint32(dst, id)
	}
	return dst
}

// AppendPort appends a port: as NEW_PORT_EXT, which every release reads, if 28
// bits hold its ID, otherwise as V4_PORT_EXT (OTP 24).
func AppendPort(dst []byte, p Port) []byte {
	if p.ID < 1<<28 {
		dst = AppendAtom(append(dst, TagNewPort), p.Node)
		dst = binary.BigEndian.AppendUint32(dst, uint32(p.ID))
	} else {
		dst = AppendAtom(append(dst, TagV4Port), p.Node)
		dst = binary.BigEndian.AppendUint64(dst, p.ID)
	}
	return binary.BigEndian.AppendUint32(dst, p.Creation)
}
