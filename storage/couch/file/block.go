package file

// BlockSize is the distance of tag bytes in bytes. Headers begin only on its
// multiples.
const BlockSize = 4096

// Tag bytes, the first byte of every block.
const (
	tagData   = 0
	tagHeader = 1
)

// blockData is what a block holds beside its tag.
const blockData = BlockSize - 1

// extent returns how many bytes of the file lie between off and the end of n
// bytes of content that begin there: n and the tag bytes in between, of which the
// first may lie at off itself. n must not be negative.
func extent(off, n int64) int64 {
	if n == 0 {
		return 0
	}
	lead := int64(0)
	o := off % BlockSize
	if o == 0 {
		lead, o = 1, 1
	}
	left := BlockSize - o
	if n <= left {
		return lead + n
	}
	return lead + n + (n-left+blockData-1)/blockData
}

// written is extent as the writer has it: content that ends exactly where a block
// does is followed by the tag byte of the next one. So nothing but a header ever
// begins on an edge, unless the file was cut there.
func written(off, n int64) int64 {
	e := extent(off, n)
	if (off+e)%BlockSize == 0 {
		e++
	}
	return e
}

// appendBlocks appends content b, which goes to offset off of the file, to dst,
// with a tag byte at every block edge, the one right behind b included. Parts of
// one chunk may be appended one by one: the tag behind a part is the tag before
// the next.
func appendBlocks(dst []byte, off int64, b []byte) []byte {
	o := int(off % BlockSize)
	if o == 0 {
		dst = append(dst, tagData)
		o = 1
	}
	for room := BlockSize - o; len(b) >= room; room = blockData {
		dst = append(dst, b[:room]...)
		dst = append(dst, tagData)
		b = b[room:]
	}
	return append(dst, b...)
}

// stripBlocks takes the tag bytes and the first skip bytes of content out of b, in
// place. b holds the bytes of the file that begin at off. Like the original's
// reader it does not look at the tags.
func stripBlocks(b []byte, off int64, skip int) []byte {
	w := 0
	o := int(off % BlockSize)
	for r := 0; r < len(b); o = 0 {
		if o == 0 {
			r++
			o = 1
		}
		n := min(BlockSize-o, len(b)-r)
		s := min(skip, n)
		skip -= s
		w += copy(b[w:], b[r+s:r+n])
		r += n
	}
	return b[:w]
}
