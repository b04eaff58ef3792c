package filter

import "encoding/binary"

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

// maxPositions is how many fields of a row have a position of their own.
const maxPositions = 128

// position is what stood at one place of the row before. The rows of a table have
// the same names in the same order and mostly values of the same kind, so a guess
// that the next row looks alike is nearly always right. It is always checked
// against the bytes and never decides anything; what it saves is waiting: the
// address of the next field then does not depend on bytes just loaded, and the
// processor reads several fields at once.
type position struct {
	head uint64 // how the field began, all of it that comes before the name
	size uint64 // of the name that follows head
	tag  byte   // how the value began
	cell cellSize
}

// noHead is the head of a position that expects nothing: heads have 56 bits.
const noHead = 1<<64 - 1

// positions holds one position for every field, the last for all that follow.
type positions [maxPositions]position

// reset makes p expect nothing. Sizes is the table value will be called with.
func (p *positions) reset(sizes *[256]cellSize) {
	for i := range p {
		p[i] = position{head: noHead, cell: sizes[0]}
	}
}

// at returns the position of field i.
func (p *positions) at(i uint32) *position { return &p[min(i, maxPositions-1)] }

// learn takes note of a value that begins with another byte than the last.
func (p *position) learn(tag byte, sizes *[256]cellSize) {
	p.tag, p.cell = tag, sizes[tag]
}

// load returns the eight bytes of b at off, big-endian, as if zeros followed the
// end of b; off is at most len(b). A length cut off by the end then reads too
// small, but base still covers its bytes, so the value is found to be truncated
// all the same.
func load(b []byte, off int) uint64 {
	if end := off + 8; end <= len(b) {
		return binary.BigEndian.Uint64(b[off:end:end])
	}
	return loadShort(b[off:])
}

func loadShort(b []byte) uint64 {
	var w uint64
	for i := range 8 {
		w <<= 8
		if i < len(b) {
			w |= uint64(b[i])
		}
	}
	return w
}
