package filter

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"scanode/etf"
)

// etfExtractor reads rows in Erlang's external term format:
//
//	131 | 108 N | N × ( 104 2 | 109 len name | value ) | 106
//
// Differs from eleveldb: it takes the first of several fields of one name, stops
// when it has found all, and steps over every kind of term.
//
// What follows the last field is not looked at by a filter, as in eleveldb: N alone
// says where the row ends. A walk for columns wants the list to end there.
type etfExtractor struct{}

// etfSizes measures terms without parts, by tag.
var etfSizes = func() (t [256]cellSize) {
	t[etf.TagSmallInteger] = fixedCell(2)
	t[etf.TagInteger] = fixedCell(5)
	t[etf.TagNewFloat] = fixedCell(9)
	t[etf.TagFloat] = fixedCell(32)
	t[etf.TagNil] = fixedCell(1)
	t[etf.TagSmallBig] = cell8(3)
	t[etf.TagLargeBig] = cell32(6)
	t[etf.TagSmallAtom] = cell8(2)
	t[etf.TagSmallAtomUTF8] = cell8(2)
	t[etf.TagAtom] = cell16(3)
	t[etf.TagAtomUTF8] = cell16(3)
	t[etf.TagString] = cell16(3)
	t[etf.TagBinary] = cell32(5)
	return t
}()

// etfPair is how nearly every pair begins: a small tuple of 2, a binary.
const etfPair = etf.TagSmallTuple<<16 | 2<<8 | etf.TagBinary

func (etfExtractor) sizes() *[256]cellSize { return &etfSizes }

func (x etfExtractor) walk(r *row, g *guesses, until stage) error {
	b := r.payload
	if r.off == 0 {
		if !etfList(b) {
			return etfForeign(b)
		}
		r.off, r.next, r.count = 6, 0, binary.BigEndian.Uint32(b[2:])
		g.walked++
	}
	// off walks over b; everything the loop reads lies between off and len(b).
	off, i, noted := r.off, r.next, g.walked%noteEvery == 0
	for n := r.count; i < n && r.missing[until] > 0; i++ {
		p := g.at(i)
		if w := load(b, off); w>>8 != p.head {
			if err := x.expect(r, p, b[off:], w, i); err != nil {
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
			size = etfSizes[w>>56].read(w)
			if p.sure {
				p.wrong()
			} else if noted {
				p.note(w, &etfSizes)
			}
		}
		if size-1 >= uint64(len(b)-at) { // 0, or more than there is
			rest, err := etf.Skip(b[at:])
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
	if until == stageColumns && r.missing[until] > 0 {
		return etfTail(b[off:])
	}
	return nil
}

// etfTail looks at what follows the last field of a row, which is the end of the list.
func etfTail(b []byte) error {
	switch {
	case len(b) == 0:
		return &RowError{Msg: "row ends before the end of its list"}
	case b[0] != etf.TagNil:
		return &RowError{Msg: "the list does not end behind the last field but with " + showBytes(b)}
	}
	return nil
}

// expect makes p the position of field i, which begins with b; w are its first eight
// bytes.
func (etfExtractor) expect(r *row, p *position, b []byte, w uint64, i uint32) error {
	if w>>40 == etfPair {
		r.expect(p, w>>8, 7, w>>8&math.MaxUint32)
		return nil
	}
	if !etfLargePair(b) {
		return etfNoPair(b, i)
	}
	w = load(b, 3) // so much longer is the header
	r.expect(p, noHead, 10, w>>8&math.MaxUint32)
	return nil
}

// etfList reports whether b begins with the header of a row.
func etfList(b []byte) bool { return len(b) >= 6 && b[0] == etf.Version && b[1] == etf.TagList }

func (etfExtractor) learn(r *row, b []byte, t *template) bool {
	if !etfList(b) {
		return false
	}
	t.mark(0, 6)
	off := 6
	for n := binary.BigEndian.Uint32(b[2:]); n > 0 && !t.open && off <= maxTemplateSize; n-- {
		w := load(b, off)
		if w>>40 != etfPair {
			return false // rare: left to the walk
		}
		size := w >> 8 & math.MaxUint32
		if 7+size >= uint64(len(b)-off) {
			return false
		}
		name := off + 7
		value := name + int(size)
		t.mark(off, value)
		if off = r.note(t, b, name, value); off == 0 {
			return false
		}
	}
	if !t.open && off <= maxTemplateSize {
		if etfTail(b[off:]) != nil {
			return false
		}
		t.mark(off, off+1)
		off++
	}
	return r.complete(t, b, off)
}

// etfLargePair reports whether b begins with a pair whose header is that of a
// large tuple.
func etfLargePair(b []byte) bool {
	return len(b) > 5 && b[0] == etf.TagLargeTuple && binary.BigEndian.Uint32(b[1:]) == 2 && b[5] == etf.TagBinary
}

func (etfExtractor) set(r *row, i, off, size int) error {
	c := r.take(i)
	c.decodeETF(r.payload[off:off+size:off+size], off)
	if t := r.set(i); t != typeNone {
		return &RowError{Field: r.names[i].text, Msg: fmt.Sprintf("want %s, found %s", t, showBytes(r.payload[off:off+size]))}
	}
	if c.kind == KindOther && r.payload[off] == etf.TagFloat && r.names[i].stage == stageFilter {
		return &RowError{Field: r.names[i].text, Msg: "broken value: a float in text that is none"}
	}
	return nil
}

// decodeETF makes c the term b, which begins at off in its row.
func (c *cell) decodeETF(b []byte, off int) {
	c.off, c.size, c.kind, c.neg = uint32(off), uint32(len(b)), KindOther, false
	c.mag, c.head = 0, 0
	switch b[0] {
	case etf.TagNil:
		c.kind = KindNull
	case etf.TagSmallInteger:
		c.kind, c.mag = KindInt, uint64(b[1])
	case etf.TagInteger:
		c.setInt(int64(int32(binary.BigEndian.Uint32(b[1:]))))
	case etf.TagSmallBig:
		c.setBig(b[2], b[3:])
	case etf.TagLargeBig:
		c.setBig(b[5], b[6:])
	case etf.TagNewFloat:
		c.kind, c.mag = KindFloat, binary.BigEndian.Uint64(b[1:])
	case etf.TagFloat:
		if f, _, err := etf.ReadFloat64(b); err == nil {
			c.kind, c.mag = KindFloat, math.Float64bits(f)
		}
	case etf.TagBinary:
		c.kind, c.head = KindText, 5
	case etf.TagSmallAtom, etf.TagSmallAtomUTF8:
		c.setAtom(b[2:])
	case etf.TagAtom, etf.TagAtomUTF8:
		c.setAtom(b[3:])
	}
}

// setInt makes c the integer n.
func (c *cell) setInt(n int64) {
	c.kind, c.mag = KindInt, uint64(n)
	if n < 0 {
		c.neg, c.mag = true, -uint64(n)
	}
}

// setBig makes c the integer of the given sign and magnitude, whose digits come
// lowest first and may end in zeros.
func (c *cell) setBig(sign byte, digits []byte) {
	for len(digits) > 8 {
		if digits[len(digits)-1] != 0 {
			c.kind = KindBigInt
			return
		}
		digits = digits[:len(digits)-1]
	}
	c.kind, c.neg = KindInt, sign != 0
	if n := len(digits); n > 0 {
		// load reads the digits as the upper bytes of a word, the lowest first.
		c.mag = bits.ReverseBytes64(load(digits[:n:n], 0))
	}
}

// setAtom makes c a boolean if the atom is one.
func (c *cell) setAtom(name []byte) {
	switch string(name) {
	case "true":
		c.kind, c.mag = KindBool, 1
	case "false":
		c.kind, c.mag = KindBool, 0
	}
}

// etfForeign explains a payload that does not begin as a row.
func etfForeign(b []byte) error {
	if len(b) > 1 && b[0] == etf.Version && b[1] == etf.TagCompressed {
		return &RowError{Msg: "row is a compressed term, want a list of {Name, Value}"}
	}
	if len(b) > 0 && b[0] == etf.Version {
		return &RowError{Msg: "row is no list of {Name, Value}: " + showBytes(b[1:])}
	}
	return &RowError{Msg: fmt.Sprintf("row is no external term: %d bytes, beginning %s", len(b), show(b[:min(len(b), 8)]))}
}

// etfNoPair explains element i of a row.
func etfNoPair(b []byte, i uint32) error {
	if _, err := etf.Skip(b); err != nil {
		return &RowError{Msg: fmt.Sprintf("element %d of the row is broken: %v", i+1, err)}
	}
	return &RowError{Msg: fmt.Sprintf("element %d of the row is no {Name, Value} with a binary as name: %s", i+1, showBytes(b))}
}

// rowEnds explains a payload that ends inside element i.
func rowEnds(what string, i uint32) error {
	return &RowError{Msg: fmt.Sprintf("row ends inside %s %d", what, i+1)}
}
