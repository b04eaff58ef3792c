package filter

import (
	"encoding/binary"
	"math"

	"scanode/etf"
)

// This file builds stored rows in both encodings, byte by byte: the encoders
// share nothing with the packages under test.

// field is one field of a row to build.
type field struct {
	name  string
	value any // int64, uint64, float64, bool, string, null or raw
}

// null stands for NULL, raw for a value already encoded.
type (
	null struct{}
	raw  []byte
)

// object wraps a payload as a riak object does.
func object(encoding byte, payload []byte) []byte {
	b := append([]byte{53, 1, 0, 0, 0, 34}, make([]byte, 34)...)
	b = append(b, 0, 0, 0, 1)
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)+1))
	b = append(b, encoding)
	b = append(b, payload...)
	b = append(b, 0, 0, 0, 24)
	return append(b, make([]byte, 24)...)
}

// etfRow encodes a row in external term format.
func etfRow(fields ...field) []byte {
	b := []byte{131, 108}
	b = binary.BigEndian.AppendUint32(b, uint32(len(fields)))
	for _, f := range fields {
		b = append(b, 104, 2)
		b = appendETF(b, f.name)
		b = appendETF(b, f.value)
	}
	return append(b, 106)
}

func appendETF(b []byte, v any) []byte {
	switch v := v.(type) {
	case int64:
		switch {
		case v >= 0 && v < 256:
			return append(b, 97, byte(v))
		case v == int64(int32(v)):
			return binary.BigEndian.AppendUint32(append(b, 98), uint32(v))
		case v < 0:
			return appendETFBig(b, 1, -uint64(v))
		}
		return appendETFBig(b, 0, uint64(v))
	case uint64:
		return appendETFBig(b, 0, v)
	case float64:
		return binary.BigEndian.AppendUint64(append(b, 70), math.Float64bits(v))
	case bool:
		if v {
			return append(b, "\x64\x00\x04true"...)
		}
		return append(b, "\x77\x05false"...)
	case string:
		b = binary.BigEndian.AppendUint32(append(b, 109), uint32(len(v)))
		return append(b, v...)
	case null:
		return append(b, 106)
	case raw:
		return append(b, v...)
	}
	panic("no such value")
}

func appendETFBig(b []byte, sign byte, mag uint64) []byte {
	n := 0
	for m := mag; m > 0; m >>= 8 {
		n++
	}
	b = append(b, 110, byte(n), sign)
	for ; mag > 0; mag >>= 8 {
		b = append(b, byte(mag))
	}
	return b
}

// msgpackRow encodes a row in MessagePack.
func msgpackRow(fields ...field) []byte {
	b := []byte{0x80 | byte(len(fields))}
	if len(fields) > 15 {
		b = binary.BigEndian.AppendUint16([]byte{0xde}, uint16(len(fields)))
	}
	for _, f := range fields {
		b = appendMsgpack(b, f.name)
		b = appendMsgpack(b, f.value)
	}
	return b
}

func appendMsgpack(b []byte, v any) []byte {
	switch v := v.(type) {
	case int64:
		switch {
		case v >= 0 && v < 128:
			return append(b, byte(v))
		case v >= 0:
			return appendMsgpack(b, uint64(v))
		case v >= -32:
			return append(b, byte(v))
		case v == int64(int16(v)):
			return binary.BigEndian.AppendUint16(append(b, 0xd1), uint16(v))
		}
		return binary.BigEndian.AppendUint64(append(b, 0xd3), uint64(v))
	case uint64:
		switch {
		case v == uint64(uint32(v)):
			return binary.BigEndian.AppendUint32(append(b, 0xce), uint32(v))
		}
		return binary.BigEndian.AppendUint64(append(b, 0xcf), v)
	case float64:
		return binary.BigEndian.AppendUint64(append(b, 0xcb), math.Float64bits(v))
	case bool:
		if v {
			return append(b, 0xc3)
		}
		return append(b, 0xc2)
	case string:
		switch n := len(v); {
		case n < 32:
			b = append(b, 0xa0|byte(n))
		case n < 1<<16:
			b = binary.BigEndian.AppendUint16(append(b, 0xda), uint16(n))
		default:
			b = binary.BigEndian.AppendUint32(append(b, 0xdb), uint32(n))
		}
		return append(b, v...)
	case null:
		return append(b, 0x90)
	case raw:
		return append(b, v...)
	}
	panic("no such value")
}

// Short spellings of filter terms.

func typed(name, typ string) etf.Term {
	return etf.Tuple{etf.Atom("field"), []byte(name), etf.Atom(typ)}
}

func value1(v etf.Term) etf.Term { return etf.Tuple{etf.Atom("const"), v} }

func expr(op string, a, b etf.Term) etf.Term { return etf.Tuple{etf.Atom(op), a, b} }
