package filter

import (
	"encoding/binary"
	"fmt"
	"math"

	"scanode/msgpack"
)

// msgpackExtractor reads rows in MessagePack:
//
//	map of N | N × ( str name | value )
//
// Riak TS writes the old form of the specification (no bin, no str8); the new
// one is read as well.
//
// Differs from eleveldb: as etfExtractor does.
type msgpackExtractor struct{}

// First bytes of MessagePack values. The families 0x00 … 0x7f, 0x80, 0x90, 0xa0
// and 0xe0 … 0xff carry their value or length in the byte itself.
const (
	mpFixMap, mpFixArray, mpFixStr  = 0x80, 0x90, 0xa0
	mpNil, mpFalse, mpTrue          = 0xc0, 0xc2, 0xc3
	mpBin8, mpBin16, mpBin32        = 0xc4, 0xc5, 0xc6
	mpExt8, mpExt16, mpExt32        = 0xc7, 0xc8, 0xc9
	mpFloat32, mpFloat64            = 0xca, 0xcb
	mpUint8, mpUint16               = 0xcc, 0xcd
	mpUint32, mpUint64              = 0xce, 0xcf
	mpInt8, mpInt16                 = 0xd0, 0xd1
	mpInt32, mpInt64                = 0xd2, 0xd3
	mpFixExt1, mpFixExt16           = 0xd4, 0xd8
	mpStr8, mpStr16, mpStr32        = 0xd9, 0xda, 0xdb
	mpArray16, mpArray32            = 0xdc, 0xdd
	mpMap16, mpMap32, mpNegativeFix = 0xde, 0xdf, 0xe0
)

// msgpackSizes measures values without parts, by first byte.
var msgpackSizes = func() (t [256]cellSize) {
	for b := range 0x80 {
		t[b] = fixedCell(1)
	}
	t[mpFixMap], t[mpFixArray] = fixedCell(1), fixedCell(1) // the empty ones
	for b := range 0x20 {
		t[mpFixStr+b] = fixedCell(uint8(1 + b))
		t[mpNegativeFix+b] = fixedCell(1)
	}
	t[mpNil], t[mpFalse], t[mpTrue] = fixedCell(1), fixedCell(1), fixedCell(1)
	t[mpUint8], t[mpInt8] = fixedCell(2), fixedCell(2)
	t[mpUint16], t[mpInt16] = fixedCell(3), fixedCell(3)
	t[mpUint32], t[mpInt32], t[mpFloat32] = fixedCell(5), fixedCell(5), fixedCell(5)
	t[mpUint64], t[mpInt64], t[mpFloat64] = fixedCell(9), fixedCell(9), fixedCell(9)
	t[mpBin8], t[mpStr8] = cell8(2), cell8(2)
	t[mpBin16], t[mpStr16] = cell16(3), cell16(3)
	t[mpBin32], t[mpStr32] = cell32(5), cell32(5)
	t[mpExt8], t[mpExt16], t[mpExt32] = cell8(3), cell16(4), cell32(6)
	for i := range 5 {
		t[mpFixExt1+i] = fixedCell(uint8(2 + 1<<i))
	}
	return t
}()

func (msgpackExtractor) extract(r *row) error {
	n, b, ok := msgpackMap(r.payload)
	if !ok {
		return msgpackForeign(r.payload)
	}
	for i := uint32(0); i < n && r.missing > 0; i++ {
		if len(b) == 0 {
			return rowEnds("field", i)
		}
		var head, size uint64
		switch w := load(b); {
		case b[0]&0xe0 == mpFixStr:
			head, size = 1, uint64(b[0]&0x1f)
		case b[0] == mpStr8:
			head, size = 2, w>>48&0xff
		case b[0] == mpStr16:
			head, size = 3, w>>40&0xffff
		case b[0] == mpStr32:
			head, size = 5, w>>24&0xffffffff
		default:
			return &RowError{Msg: fmt.Sprintf("name of field %d of the row is no str: %s", i+1, describe(b))}
		}
		if uint64(len(b)) <= head+size {
			return rowEnds("the name of field", i)
		}
		name, rest := b[head:head+size], b[head+size:]
		c := &msgpackSizes[rest[0]]
		cell := c.of(load(rest))
		if c.base == 0 || cell > uint64(len(rest)) {
			after, err := msgpack.Skip(rest)
			if err != nil {
				return &RowError{Field: string(name), Msg: "broken value: " + err.Error()}
			}
			cell = uint64(len(rest) - len(after))
		}
		if r.lens>>min(size, longName)&1 != 0 {
			if at := r.find(name); at >= 0 {
				if err := setMsgpack(r, at, rest[:cell]); err != nil {
					return err
				}
			}
		}
		b = rest[cell:]
	}
	return nil
}

// msgpackMap reads the header of a row.
func msgpackMap(b []byte) (n uint32, rest []byte, ok bool) {
	switch {
	case len(b) > 0 && b[0]&0xf0 == mpFixMap:
		return uint32(b[0] & 0x0f), b[1:], true
	case len(b) > 2 && b[0] == mpMap16:
		return uint32(binary.BigEndian.Uint16(b[1:])), b[3:], true
	case len(b) > 4 && b[0] == mpMap32:
		return binary.BigEndian.Uint32(b[1:]), b[5:], true
	}
	return 0, nil, false
}

// setMsgpack decodes the value cell into the slots of name i.
func setMsgpack(r *row, i int, cell []byte) error {
	off := uint32(cap(r.payload) - cap(cell)) // as in setETF
	v := value{wholeOff: off, wholeSize: uint32(len(cell))}
	text := 0 // where text begins
	switch b := cell[0]; {
	case b < mpFixMap:
		v.kind, v.mag = kindInt, uint64(b)
	case b >= mpNegativeFix:
		v.setInt(int64(int8(b)))
	case b == mpFixArray:
		v.kind = kindNull
	case b&0xe0 == mpFixStr:
		text = 1
	default:
		text = v.setTagged(cell)
	}
	if text > 0 {
		v.kind, v.textOff, v.textSize = kindBytes, off+uint32(text), uint32(len(cell)-text)
	}
	if t := r.set(i, &v); t != typeNone {
		return &RowError{Field: r.names[i].text, Msg: fmt.Sprintf("want %s, found %s", t, describe(cell))}
	}
	return nil
}

// setTagged decodes a value whose first byte only says what follows. For str and
// bin it returns where the text begins.
func (v *value) setTagged(cell []byte) (text int) {
	switch cell[0] {
	case mpFalse:
		v.kind = kindBool
	case mpTrue:
		v.kind, v.mag = kindBool, 1
	case mpFloat32:
		v.kind = kindFloat
		v.mag = math.Float64bits(float64(math.Float32frombits(binary.BigEndian.Uint32(cell[1:]))))
	case mpFloat64:
		v.kind, v.mag = kindFloat, binary.BigEndian.Uint64(cell[1:])
	case mpUint8:
		v.kind, v.mag = kindInt, uint64(cell[1])
	case mpUint16:
		v.kind, v.mag = kindInt, uint64(binary.BigEndian.Uint16(cell[1:]))
	case mpUint32:
		v.kind, v.mag = kindInt, uint64(binary.BigEndian.Uint32(cell[1:]))
	case mpUint64:
		v.kind, v.mag = kindInt, binary.BigEndian.Uint64(cell[1:])
	case mpInt8:
		v.setInt(int64(int8(cell[1])))
	case mpInt16:
		v.setInt(int64(int16(binary.BigEndian.Uint16(cell[1:]))))
	case mpInt32:
		v.setInt(int64(int32(binary.BigEndian.Uint32(cell[1:]))))
	case mpInt64:
		v.setInt(int64(binary.BigEndian.Uint64(cell[1:])))
	case mpStr8, mpBin8:
		return 2
	case mpStr16, mpBin16:
		return 3
	case mpStr32, mpBin32:
		return 5
	}
	return 0
}

// msgpackForeign explains a payload that is not a map.
func msgpackForeign(b []byte) error {
	if len(b) == 0 {
		return &RowError{Msg: "row is empty, want a map"}
	}
	return &RowError{Msg: "row is no map: " + describe(b)}
}

// describe names the value at the start of b, which may be cut off, and shows it
// where it is short.
func describe(b []byte) string {
	var v value
	switch c := b[0]; {
	case c < mpFixMap:
		return fmt.Sprintf("integer %d", c)
	case c >= mpNegativeFix:
		return fmt.Sprintf("integer %d", int8(c))
	case c&0xf0 == mpFixMap, c == mpMap16, c == mpMap32:
		return "a map"
	case c&0xf0 == mpFixArray, c == mpArray16, c == mpArray32:
		return "an array"
	case c >= mpExt8 && c <= mpExt32, c >= mpFixExt1 && c <= mpFixExt16:
		return "an ext value"
	case c == mpNil:
		return "nil"
	case c == 0xc1:
		return "the unused byte 0xc1"
	case msgpackSizes[c].of(load(b)) > uint64(len(b)):
		return fmt.Sprintf("a value cut off, beginning 0x%02x", c)
	case c&0xe0 == mpFixStr:
		return "text " + show(b[1:1+c&0x1f])
	}
	size := msgpackSizes[b[0]].of(load(b))
	text := v.setTagged(b)
	switch {
	case text > 0:
		return "text " + show(b[text:size])
	case v.kind == kindFloat:
		return fmt.Sprintf("float %v", float(v.mag))
	case v.kind == kindBool:
		return fmt.Sprintf("%t", v.mag == 1)
	case v.neg:
		return fmt.Sprintf("integer -%d", v.mag)
	}
	return fmt.Sprintf("integer %d", v.mag)
}
