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
		t[b] = cellSize{base: 1, free: 0x7f}
	}
	t[mpFixMap], t[mpFixArray] = fixedCell(1), fixedCell(1) // the empty ones
	for b := range 0x20 {
		t[mpFixStr+b] = fixedCell(uint8(1 + b))
		t[mpNegativeFix+b] = cellSize{base: 1, free: 0x1f}
	}
	t[mpNil], t[mpFalse], t[mpTrue] = fixedCell(1), cellSize{base: 1, free: 1}, cellSize{base: 1, free: 1}
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

func (msgpackExtractor) sizes() *[256]cellSize { return &msgpackSizes }

func (x msgpackExtractor) walk(r *row, g *guesses, until stage) error {
	b := r.payload
	if r.off == 0 {
		if r.count, r.off = msgpackMap(b); r.off == 0 {
			return msgpackForeign(b)
		}
		r.next = 0
		g.walked++
	}
	// off walks over b as in etfExtractor.
	off, i, noted := r.off, r.next, g.walked%noteEvery == 0
	for n := r.count; i < n && r.missing[until] > 0; i++ {
		if off >= len(b) {
			return rowEnds("field", i)
		}
		p := g.at(i)
		if uint64(b[off]) != p.head {
			if err := x.expect(r, p, b[off:], i); err != nil {
				return err
			}
		}
		if p.skip >= len(b)-off {
			return rowEnds("the name of field", i)
		}
		at := off + p.skip
		w := load(b, at)
		size := p.steady.size
		if p.sure && w&p.mask == p.want {
			p.doubt--
		} else {
			size = msgpackSizes[w>>56].read(w)
			if p.sure {
				p.wrong()
			} else if noted {
				p.note(w, &msgpackSizes)
			}
		}
		if size-1 >= uint64(len(b)-at) { // 0, or more than there is
			rest, err := msgpack.Skip(b[at:])
			if err != nil {
				return &RowError{Field: string(b[at-p.size : at]), Msg: "broken value: " + err.Error()}
			}
			size = uint64(len(b) - at - len(rest))
		}
		off = at + int(size)
		if p.wanted {
			if name := r.find(b, at-p.size, p.size); name >= 0 {
				if err := x.set(r, name, at, int(size)); err != nil {
					return err
				}
			}
		}
	}
	r.off, r.next = off, i
	return nil
}

// expect makes p the position of field i, which begins with b.
func (msgpackExtractor) expect(r *row, p *position, b []byte, i uint32) error {
	w := load(b, 0)
	if w>>61 == mpFixStr>>5 {
		r.expect(p, w>>56, 1, w>>56&0x1f)
		return nil
	}
	head, size := msgpackLongName(w)
	if head == 0 {
		return &RowError{Msg: fmt.Sprintf("name of field %d of the row is no str: %s", i+1, describe(b))}
	}
	r.expect(p, noHead, head, size)
	return nil
}

func (msgpackExtractor) learn(r *row, b []byte, t *template) bool {
	n, off := msgpackMap(b)
	if off == 0 {
		return false
	}
	t.mark(0, off)
	for ; n > 0 && !t.open && off <= maxTemplateSize; n-- {
		w := load(b, off)
		head, size := 1, w>>56&0x1f
		if w>>61 != mpFixStr>>5 {
			if head, size = msgpackLongName(w); head == 0 {
				return false
			}
		}
		if off >= len(b) || uint64(head)+size >= uint64(len(b)-off) {
			return false
		}
		name := off + head
		value := name + int(size)
		t.mark(off, value)
		if off = r.note(t, b, name, value); off == 0 {
			return false
		}
	}
	return r.complete(t, b, off)
}

// msgpackMap reads the header of a row: the number of fields and where the first
// begins, 0 if b is no map.
func msgpackMap(b []byte) (n uint32, off int) {
	switch {
	case len(b) > 0 && b[0]&0xf0 == mpFixMap:
		return uint32(b[0] & 0x0f), 1
	case len(b) > 2 && b[0] == mpMap16:
		return uint32(binary.BigEndian.Uint16(b[1:])), 3
	case len(b) > 4 && b[0] == mpMap32:
		return binary.BigEndian.Uint32(b[1:]), 5
	}
	return 0, 0
}

// msgpackLongName reads the header of a str from its first eight bytes: the
// header's size, 0 if it is none, and the text's.
func msgpackLongName(w uint64) (head int, size uint64) {
	switch w >> 56 {
	case mpStr8:
		return 2, w >> 48 & 0xff
	case mpStr16:
		return 3, w >> 40 & 0xffff
	case mpStr32:
		return 5, w >> 24 & math.MaxUint32
	}
	return 0, 0
}

func (msgpackExtractor) set(r *row, i, off, size int) error {
	r.take(i).decodeMsgpack(r.payload[off:off+size:off+size], off)
	if t := r.set(i); t != typeNone {
		return &RowError{Field: r.names[i].text, Msg: fmt.Sprintf("want %s, found %s", t, describe(r.payload[off:off+size]))}
	}
	return nil
}

// decodeMsgpack makes c the value b, which begins at off in its row.
func (c *cell) decodeMsgpack(b []byte, off int) {
	c.off, c.size, c.kind, c.neg = uint32(off), uint32(len(b)), KindOther, false
	c.mag, c.head = 0, 0
	switch lead := b[0]; {
	case lead < mpFixMap:
		c.kind, c.mag = KindInt, uint64(lead)
	case lead >= mpNegativeFix:
		c.setInt(int64(int8(lead)))
	case lead == mpFixArray:
		c.kind = KindNull
	case lead&0xe0 == mpFixStr:
		c.kind, c.head = KindText, 1
	default:
		c.setTagged(b)
	}
}

// setTagged decodes a value whose first byte only says what follows.
func (c *cell) setTagged(b []byte) {
	switch b[0] {
	case mpFalse:
		c.kind, c.mag = KindBool, 0
	case mpTrue:
		c.kind, c.mag = KindBool, 1
	case mpFloat32:
		c.kind = KindFloat
		c.mag = math.Float64bits(float64(math.Float32frombits(binary.BigEndian.Uint32(b[1:]))))
	case mpFloat64:
		c.kind, c.mag = KindFloat, binary.BigEndian.Uint64(b[1:])
	case mpUint8:
		c.kind, c.mag = KindInt, uint64(b[1])
	case mpUint16:
		c.kind, c.mag = KindInt, uint64(binary.BigEndian.Uint16(b[1:]))
	case mpUint32:
		c.kind, c.mag = KindInt, uint64(binary.BigEndian.Uint32(b[1:]))
	case mpUint64:
		c.kind, c.mag = KindInt, binary.BigEndian.Uint64(b[1:])
	case mpInt8:
		c.setInt(int64(int8(b[1])))
	case mpInt16:
		c.setInt(int64(int16(binary.BigEndian.Uint16(b[1:]))))
	case mpInt32:
		c.setInt(int64(int32(binary.BigEndian.Uint32(b[1:]))))
	case mpInt64:
		c.setInt(int64(binary.BigEndian.Uint64(b[1:])))
	case mpStr8, mpBin8:
		c.kind, c.head = KindText, 2
	case mpStr16, mpBin16:
		c.kind, c.head = KindText, 3
	case mpStr32, mpBin32:
		c.kind, c.head = KindText, 5
	}
}

// msgpackForeign explains a payload that is not a map.
func msgpackForeign(b []byte) error {
	if len(b) == 0 {
		return &RowError{Msg: "row is empty, want a map"}
	}
	if c := b[0]; c&0xf0 == mpFixMap || c == mpMap16 || c == mpMap32 {
		return &RowError{Msg: fmt.Sprintf("row is a map that is cut off: %d bytes", len(b))}
	}
	return &RowError{Msg: "row is no map: " + describe(b)}
}

// describe names the value at the start of b, which may be cut off, and shows it
// where it is short.
func describe(b []byte) string {
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
	case msgpackSizes[c].of(b, 0) > uint64(len(b)):
		return fmt.Sprintf("a value cut off, beginning 0x%02x", c)
	case c&0xe0 == mpFixStr:
		return "text " + show(b[1:1+c&0x1f])
	}
	var c cell
	c.decodeMsgpack(b[:msgpackSizes[b[0]].of(b, 0)], 0)
	switch {
	case c.kind == KindText:
		return "text " + show(b[c.head:c.size])
	case c.kind == KindFloat:
		return fmt.Sprintf("float %v", float(c.mag))
	case c.kind == KindBool:
		return fmt.Sprintf("%t", c.mag == 1)
	case c.neg:
		return fmt.Sprintf("integer -%d", c.mag)
	default:
		return fmt.Sprintf("integer %d", c.mag)
	}
}
