package msgpack

import (
	"encoding/binary"
	"math"
)

// AppendNil appends a nil.
func AppendNil(dst []byte) []byte { return append(dst, leadNil) }

// AppendBool appends a bool.
func AppendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, leadTrue)
	}
	return append(dst, leadFalse)
}

// AppendInt64 appends an integer in its shortest form: unsigned if it is not
// negative.
func AppendInt64(dst []byte, v int64) []byte {
	switch {
	case v >= 0:
		return AppendUint64(dst, uint64(v))
	case v >= -32:
		return append(dst, byte(v))
	case v == int64(int8(v)):
		return append(dst, leadInt8, byte(v))
	case v == int64(int16(v)):
		return binary.BigEndian.AppendUint16(append(dst, leadInt16), uint16(v))
	case v == int64(int32(v)):
		return binary.BigEndian.AppendUint32(append(dst, leadInt32), uint32(v))
	}
	return binary.BigEndian.AppendUint64(append(dst, leadInt64), uint64(v))
}

// AppendUint64 appends an integer in its shortest form.
func AppendUint64(dst []byte, v uint64) []byte {
	if v < leadFixMap {
		return append(dst, byte(v))
	}
	return appendLength(dst, v, leadUint8, leadUint16, leadUint32, leadUint64)
}

// appendLength appends the narrowest of the lead bytes and v in its width.
func appendLength(dst []byte, v uint64, lead8, lead16, lead32, lead64 byte) []byte {
	switch {
	case v <= math.MaxUint8 && lead8 != 0:
		return append(dst, lead8, byte(v))
	case v <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, lead16), uint16(v))
	case v <= math.MaxUint32 || lead64 == 0:
		return binary.BigEndian.AppendUint32(append(dst, lead32), uint32(v))
	}
	return binary.BigEndian.AppendUint64(append(dst, lead64), v)
}

// AppendFloat64 appends a float of 64 bits.
func AppendFloat64(dst []byte, v float64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, leadFloat64), math.Float64bits(v))
}

// AppendStr appends a str of less than 4 GiB, which should be UTF-8.
func AppendStr(dst, v []byte) []byte {
	if len(v) < 32 {
		dst = append(dst, leadFixStr|byte(len(v)))
	} else {
		dst = appendLength(dst, uint64(len(v)), leadStr8, leadStr16, leadStr32, 0)
	}
	return append(dst, v...)
}

// AppendBytes appends a bin of less than 4 GiB.
func AppendBytes(dst, v []byte) []byte {
	return append(appendLength(dst, uint64(len(v)), leadBin8, leadBin16, leadBin32, 0), v...)
}

// AppendArrayHeader appends the header of an array whose n elements, less than
// 2^32, are to follow.
func AppendArrayHeader(dst []byte, n int) []byte {
	if n < 16 {
		return append(dst, leadFixArray|byte(n))
	}
	return appendLength(dst, uint64(n), 0, leadArray16, leadArray32, 0)
}

// AppendMapHeader appends the header of a map; pairs keys, less than 2^32, each
// followed by its value, are to follow.
func AppendMapHeader(dst []byte, pairs int) []byte {
	if pairs < 16 {
		return append(dst, leadFixMap|byte(pairs))
	}
	return appendLength(dst, uint64(pairs), 0, leadMap16, leadMap32, 0)
}
