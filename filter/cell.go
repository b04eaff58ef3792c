package filter

import "encoding/binary"

// cellSize says how long an encoded value is, from its first eight bytes. Both
// encodings put the length right behind the tag, so one formula without a branch
// serves nearly every value:
//
//	size = base + (first eight bytes, big-endian >> shift) & mask
//
// A base of 0 means that the value has parts and must be walked.
type cellSize struct {
	mask        uint32
	shift, base uint8
}

// Shapes of values: so many bytes in all, or a length of 1, 2 or 4 bytes that
// counts what follows base.
func fixedCell(base uint8) cellSize { return cellSize{base: base} }
func cell8(base uint8) cellSize     { return cellSize{mask: 0xff, shift: 48, base: base} }
func cell16(base uint8) cellSize    { return cellSize{mask: 0xffff, shift: 40, base: base} }
func cell32(base uint8) cellSize    { return cellSize{mask: 0xffffffff, shift: 24, base: base} }

// of returns the size for a value that begins with the bytes of w; it may be
// larger than what is there.
func (c *cellSize) of(w uint64) uint64 {
	return uint64(c.base) + (w>>(c.shift&63))&uint64(c.mask)
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
