package filter

import (
	"math/big"
	"slices"

	"scanode/etf"
)

// Kind tells the kinds of stored values apart.
type Kind uint8

// Kinds of cells. KindMissing is that of a field the row does not have.
const (
	KindMissing Kind = iota
	KindNull         // [] or, in MessagePack, the empty fixarray
	KindBool
	KindInt    // of a magnitude below 2^64
	KindBigInt // of any other
	KindFloat  // NaN and infinity included
	KindText   // a binary; in MessagePack str or bin
	KindOther  // what is none of these: other atoms, lists, maps, nil, broken floats, …
)

// cell is a decoded value of the row at hand, the same for all encodings, and
// pointer-free as slot is.
type cell struct {
	mag       uint64 // of KindBool 0 or 1, of KindFloat the bits
	off, size uint32 // the encoded value: payload[off:off+size]
	kind      Kind
	neg       bool
	head      uint8 // bytes in front of the text of KindText
}

// Cell is one value of a row. The readers that fit its Kind return it, all others
// false; nothing is rounded or cut off.
type Cell struct {
	Kind Kind
	// Encoding is that of the object: EncodingETF or EncodingMsgpack.
	Encoding byte
	// Bytes is the encoded value from its first byte to its last, without a
	// version byte, nil for KindMissing. Of KindOther only the size has been
	// checked, not what is in it. It aliases the object.
	Bytes []byte

	mag  uint64
	neg  bool
	head uint8
}

// Cell returns column i, counted from 0 in the order NewMatcher was given them. It
// may be called after Match has returned true, until it is called again; the
// Cell is valid as long as the object.
func (m *Matcher) Cell(i int) Cell {
	c := &m.row.cells[m.row.columns[i]]
	if c.kind == KindMissing || m.row.payload == nil {
		return Cell{Encoding: m.encoding}
	}
	return Cell{
		Kind: c.kind, Encoding: m.encoding, Bytes: m.row.payload[c.off : c.off+c.size : c.off+c.size],
		mag: c.mag, neg: c.neg, head: c.head,
	}
}

// Number returns what Cell(i) says of a column without making a Cell: its Kind, and of
// KindInt magnitude and sign, of KindFloat the bits.
func (m *Matcher) Number(i int) (kind Kind, mag uint64, negative bool) {
	c := &m.row.cells[m.row.columns[i]]
	return c.kind, c.mag, c.neg
}

// Bool returns the value of KindBool.
func (c Cell) Bool() (v, ok bool) {
	return c.mag == 1, c.Kind == KindBool
}

// Int64 returns the value of KindInt, false if it is no int64.
func (c Cell) Int64() (v int64, ok bool) {
	if c.neg {
		return -int64(c.mag), c.Kind == KindInt && c.mag <= 1<<63
	}
	return int64(c.mag), c.Kind == KindInt && c.mag < 1<<63
}

// Int returns the magnitude and sign of KindInt.
func (c Cell) Int() (mag uint64, negative, ok bool) {
	return c.mag, c.neg, c.Kind == KindInt
}

// Big returns the value of KindInt and KindBigInt. It allocates.
func (c Cell) Big() (*big.Int, bool) {
	n := new(big.Int)
	switch c.Kind {
	case KindInt:
		n.SetUint64(c.mag)
		if c.neg {
			n.Neg(n)
		}
		return n, true
	case KindBigInt: // of external terms only
		digits, sign := c.Bytes[3:], c.Bytes[2]
		if c.Bytes[0] == etf.TagLargeBig {
			digits, sign = c.Bytes[6:], c.Bytes[5]
		}
		digits = slices.Clone(digits)
		slices.Reverse(digits)
		n.SetBytes(digits)
		if sign != 0 {
			n.Neg(n)
		}
		return n, true
	}
	return nil, false
}

// Float returns the value of KindFloat, which may be NaN or infinite.
func (c Cell) Float() (v float64, ok bool) {
	return float(c.mag), c.Kind == KindFloat
}

// Text returns the content of KindText. It aliases the object.
func (c Cell) Text() (v []byte, ok bool) {
	if c.Kind != KindText {
		return nil, false
	}
	return c.Bytes[c.head:], true
}
