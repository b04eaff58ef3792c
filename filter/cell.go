package filter

import (
	"encoding/binary"
	"math/bits"
)

// cellSize says how long an encoded value is, from its first eight bytes. Both
// encodings put the length right behind the tag, so one formula without a branch
// serves nearly every value:
//
//	size = base + (first eight bytes, big-endian >> shift) & mask
//
// A mask of 0 is for values of fixed size; with a base of 0 as well the value has
// parts and must be walked.
type cellSize struct {
	mask        uint32
	shift, base uint8
	// free are the bits of the tag that make no difference to the size.
	free uint8
}

// Shapes of values: so many bytes in all, or a length of 1, 2 or 4 bytes that
// counts what follows base.
func fixedCell(base uint8) cellSize { return cellSize{base: base} }
func cell8(base uint8) cellSize     { return cellSize{mask: 0xff, shift: 48, base: base} }
func cell16(base uint8) cellSize    { return cellSize{mask: 0xffff, shift: 40, base: base} }
func cell32(base uint8) cellSize    { return cellSize{mask: 0xffffffff, shift: 24, base: base} }

// of returns the size of the value at b[off]: 0 if it must be walked, and perhaps
// more than there is of b.
func (c *cellSize) of(b []byte, off int) uint64 {
	if c.mask == 0 {
		return uint64(c.base)
	}
	return uint64(c.base) + (load(b, off)>>(c.shift&63))&uint64(c.mask)
}

// structure returns which bits of the first eight bytes, big-endian, give the size: the
// tag without those that make no difference, and the length behind it.
func (c *cellSize) structure() uint64 {
	return ^uint64(0) << (56 - bits.OnesCount32(c.mask)) &^ (uint64(c.free) << 56)
}

// read returns the same of a value whose first eight bytes are w, without a branch.
func (c *cellSize) read(w uint64) uint64 {
	return uint64(c.base) + w>>(c.shift&63)&uint64(c.mask)
}

// maxPositions is how many fields of a row have a position of their own.
const maxPositions = 128

// position is how the field at one place of the row before began. The rows of a table
// have the same names in the same order, so a guess that the next row does too is
// nearly always right. It is always checked against the bytes and never decides
// anything; what it saves is finding out what a head says and whether the name is one
// to look at.
type position struct {
	head   uint64 // all that comes before the name
	skip   int    // to the value: the head and the name
	size   int    // of the name
	wanted bool   // a name of this size is looked for
	steady
}

// steady is what the values at one place have in common. Where they mostly begin with
// the same tag and length, their size is guessed: the address of the next field then
// does not wait for bytes just loaded, and the processor reads several fields at once.
// A wrong guess costs it more than that saves, so where values change often, each size
// is looked up.
type steady struct {
	mask, want uint64 // of the first eight bytes, which are want, mask is what gives the size
	size       uint64 // the guess
	sure       bool   // the size is guessed
	run        uint8  // not sure: how many were noted that began so
	doubt      int16  // sure: wrong guesses, less those that were right
}

// Numbers of steady: one of so many rows is taken note of; from how many of them on
// one is sure; what a wrong guess weighs, and how much of that makes one not sure.
const (
	noteEvery   = 8
	sureRun     = 8
	wrongWeight = 6
	maxDoubt    = 24
)

// note takes note of a value that begins with w, where one was not sure.
func (s *steady) note(w uint64, cells *[256]cellSize) {
	if w&s.mask == s.want && s.mask != 0 {
		s.run++
		s.sure, s.doubt = s.run >= sureRun, 0
		return
	}
	c := &cells[w>>56]
	if *s = (steady{}); c.base > 0 {
		s.mask = c.structure()
		s.want, s.size = w&s.mask, c.read(w)
	}
}

// wrong takes note of a guess that was.
func (s *steady) wrong() {
	s.doubt = max(s.doubt, 0) + wrongWeight
	if s.doubt > maxDoubt {
		*s = steady{}
	}
}

// noHead is the head of a position that expects nothing: heads have 56 bits.
const noHead = 1<<64 - 1

// positions holds one position for every field, the last for all that follow.
type positions [maxPositions]position

// reset makes p expect nothing.
func (p *positions) reset() {
	for i := range p {
		p[i] = position{head: noHead}
	}
}

// at returns the position of field i.
func (p *positions) at(i uint32) *position { return &p[min(i, maxPositions-1)] }

// expect takes note of a field that begins with head, which is size bytes long.
func (r *row) expect(p *position, head uint64, size int, name uint64) {
	*p = position{head: head, skip: size + int(name), size: int(name), wanted: r.lens>>min(name, longName)&1 != 0}
}

// load returns the eight bytes of b at off, big-endian, as if zeros followed the
// end of b; off is at most len(b). A length cut off by the end then reads too
// small, but base still covers its bytes, so the value is found to be truncated
// all the same.
func load(b []byte, off int) uint64 {
	if end := off + 8; end <= len(b) {
		return binary.BigEndian.Uint64(b[off:end:end])
	}
	return loadShort(b, off)
}

// loadShort is load where fewer than eight bytes are left.
func loadShort(b []byte, off int) uint64 {
	if len(b) >= 8 {
		return binary.BigEndian.Uint64(b[len(b)-8:]) << (8 * (off + 8 - len(b)))
	}
	var w uint64
	for i := range 8 {
		w <<= 8
		if off+i < len(b) {
			w |= uint64(b[off+i])
		}
	}
	return w
}
