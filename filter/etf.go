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
// The tail is not looked at, as in eleveldb: N alone says where the row ends.
//
// Differs from eleveldb: it takes the first of several fields of one name, stops
// when it has found all, and steps over every kind of term.
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

func (etfExtractor) extract(r *row, until stage) error {
	b := r.payload
	if r.off == 0 {
		if len(b) < 6 || b[0] != etf.Version || b[1] != etf.TagList {
			return etfForeign(b)
		}
		r.off, r.next, r.count = 6, 0, binary.BigEndian.Uint32(b[2:])
		if r.etf.pause > 0 {
			r.etf.pause--
		} else {
			r.settle(&r.etf, b, etfLearn)
		}
	}
	if r.template != nil {
		return r.fill(until, setETF)
	}
	// off walks over b; everything the loop reads lies between off and len(b).
	off, i := r.off, r.next
	for n := r.count; i < n && r.missing[until] > 0; i++ {
		w := load(b, off)
		p := r.etf.at(i)
		if w>>8 != p.head {
			p.head = w >> 8
			if w>>40 != etfPair {
				if p.head = noHead; !etfLargePair(b[off:]) {
					return etfNoPair(b[off:], i)
				}
				off += 3 // so much longer is the header
				w = load(b, off)
			}
			p.size = w >> 8 & math.MaxUint32
		}
		if 7+p.size >= uint64(len(b)-off) {
			return rowEnds("the name of field", i)
		}
		name := off + 7
		off = name + int(p.size)
		if tag := b[off]; tag != p.tag {
			p.learn(tag, &etfSizes)
		}
		cell := p.cell.of(b, off)
		if cell-1 >= uint64(len(b)-off) { // 0, or more than there is
			rest, err := etf.Skip(b[off:])
			if err != nil {
				return &RowError{Field: string(b[name:off]), Msg: "broken value: " + err.Error()}
			}
			cell = uint64(len(b) - off - len(rest))
		}
		if r.lens>>min(p.size, longName)&1 != 0 {
			if at := r.find(b, name, int(p.size)); at >= 0 {
				if err := setETF(r, at, off, int(cell)); err != nil {
					return err
				}
			}
		}
		off += int(cell)
	}
	r.off, r.next = off, i
	return nil
}

// etfLearn makes a template of the row b, whose header has been checked.
func etfLearn(r *row, b []byte, t *template) bool {
	t.mark(b, 0, 6)
	off := 6
	for n := binary.BigEndian.Uint32(b[2:]); n > 0 && !t.open && len(t.words) < maxTemplateWords; n-- {
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
		t.mark(b, off, value)
		if off = r.note(t, b, name, value); off == 0 {
			return false
		}
	}
	return r.complete(t, off)
}

// etfLargePair reports whether b begins with a pair whose header is that of a
// large tuple.
func etfLargePair(b []byte) bool {
	return len(b) > 5 && b[0] == etf.TagLargeTuple && binary.BigEndian.Uint32(b[1:]) == 2 && b[5] == etf.TagBinary
}

// setETF decodes the term payload[off:off+size] into the slots of name i.
func setETF(r *row, i, off, size int) error {
	cell := r.payload[off : off+size]
	v := value{kind: KindOther, wholeOff: uint32(off), wholeSize: uint32(size)}
	switch cell[0] {
	case etf.TagNil:
		v.kind = KindNull
	case etf.TagSmallInteger:
		v.kind, v.mag = KindInt, uint64(cell[1])
	case etf.TagInteger:
		v.setInt(int64(int32(binary.BigEndian.Uint32(cell[1:]))))
	case etf.TagSmallBig:
		v.setBig(cell[2], cell[3:])
	case etf.TagLargeBig:
		v.setBig(cell[5], cell[6:])
	case etf.TagNewFloat:
		v.kind, v.mag = KindFloat, binary.BigEndian.Uint64(cell[1:])
	case etf.TagFloat:
		f, _, err := etf.ReadFloat64(cell)
		if err == nil {
			v.kind, v.mag = KindFloat, math.Float64bits(f)
		} else if n := &r.names[i]; n.stage == stageFilter {
			return &RowError{Field: n.text, Msg: "broken value: " + err.Error()}
		}
	case etf.TagBinary:
		v.kind, v.textOff, v.textSize = KindText, uint32(off+5), uint32(size-5)
	case etf.TagSmallAtom, etf.TagSmallAtomUTF8:
		v.setAtom(cell[2:])
	case etf.TagAtom, etf.TagAtomUTF8:
		v.setAtom(cell[3:])
	}
	if t := r.set(i, &v); t != typeNone {
		return &RowError{Field: r.names[i].text, Msg: fmt.Sprintf("want %s, found %s", t, showBytes(cell))}
	}
	return nil
}

// setInt makes v the integer n.
func (v *value) setInt(n int64) {
	v.kind, v.mag = KindInt, uint64(n)
	if n < 0 {
		v.neg, v.mag = true, -uint64(n)
	}
}

// setBig makes v the integer of the given sign and magnitude, whose digits come
// lowest first and may end in zeros.
func (v *value) setBig(sign byte, digits []byte) {
	for len(digits) > 8 {
		if digits[len(digits)-1] != 0 {
			v.kind = KindBigInt
			return
		}
		digits = digits[:len(digits)-1]
	}
	v.kind, v.neg = KindInt, sign != 0
	if n := len(digits); n > 0 {
		// load reads the digits as the upper bytes of a word, the lowest first.
		v.mag = bits.ReverseBytes64(load(digits[:n:n], 0))
	}
}

// setAtom makes v a boolean if the atom is one.
func (v *value) setAtom(name []byte) {
	switch string(name) {
	case "true":
		v.kind, v.mag = KindBool, 1
	case "false":
		v.kind, v.mag = KindBool, 0
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
