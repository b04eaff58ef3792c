package filter

import (
	"encoding/binary"
	"math/bits"
)

// template is the shape of a row: where its structure lies and what it is. The
// structure are the bytes a walk decides by, which are headers, names, and the tags
// and lengths of values. A row that has the same bytes in the same places is walked
// the same way, whatever its values are, so the walk need not be done again:
//
//	row     131 l 0 0 0 5 h 2 m 0 0 0 4 t i m e n 6 0 · · · · · · h 2 m …
//	mask    ─────────────────────────────────────────             ─────
//	blocks  └─────────────────── 64 bytes ───────────────────────── …
//
// A template that fits is a proof, not a guess. It says nothing of rows it does not
// fit.
type template struct {
	size   int // of what the template covers; a row that fits is not shorter
	blocks []block
	words  []maskedWord // what is left at the end
	finds  []find
	// first: finds[:first] are what a walk to the fields of the filter sets.
	first int
	// open: the value of the last find ends the walk. What it is makes no
	// difference then, and it is measured in every row.
	open   bool
	fields int    // walked by a row without a template
	mask   []byte // while it is made: the bits of each byte that are structure
	sizes  *[256]cellSize
}

// block is so many bytes of a row that they are compared without a loop and with
// one check of bounds; as words, little-endian, of whose bits those in mask are want.
type block struct {
	off        int
	mask, want [blockBytes / 8]uint64
}

const blockBytes = 64

// maskedWord is eight bytes of a row, in the same way.
type maskedWord struct {
	off        int
	mask, want uint64
}

// find is the value of name in the payload.
type find struct{ name, off, size int }

// Bounds of templates: a row beyond has none.
const (
	maxTemplateSize   = 1 << 16
	maxTemplateBlocks = 1 << 8
)

// fits reports whether b has the shape.
func (t *template) fits(b []byte) bool {
	if len(b) < t.size {
		return false
	}
	for i := range t.blocks {
		k := &t.blocks[i]
		x := (*[blockBytes]byte)(b[k.off:])
		d := (binary.LittleEndian.Uint64(x[0:8]) ^ k.want[0]) & k.mask[0]
		d |= (binary.LittleEndian.Uint64(x[8:16]) ^ k.want[1]) & k.mask[1]
		d |= (binary.LittleEndian.Uint64(x[16:24]) ^ k.want[2]) & k.mask[2]
		d |= (binary.LittleEndian.Uint64(x[24:32]) ^ k.want[3]) & k.mask[3]
		d |= (binary.LittleEndian.Uint64(x[32:40]) ^ k.want[4]) & k.mask[4]
		d |= (binary.LittleEndian.Uint64(x[40:48]) ^ k.want[5]) & k.mask[5]
		d |= (binary.LittleEndian.Uint64(x[48:56]) ^ k.want[6]) & k.mask[6]
		d |= (binary.LittleEndian.Uint64(x[56:64]) ^ k.want[7]) & k.mask[7]
		if d != 0 {
			return false
		}
	}
	for i := range t.words {
		if t.words[i].differ(b) != 0 {
			return false
		}
	}
	return !t.open || t.measure(b)
}

// measure finds the size of the last value; false if it must be walked or is cut
// off.
func (t *template) measure(b []byte) bool {
	f := &t.finds[len(t.finds)-1]
	size := t.sizes[b[f.off]].of(b, f.off)
	f.size = int(size)
	return size-1 < uint64(len(b)-f.off)
}

// differ returns the bits in which b differs from w.
func (w *maskedWord) differ(b []byte) uint64 {
	end := w.off + 8
	return (binary.LittleEndian.Uint64(b[w.off:end:end]) ^ w.want) & w.mask
}

// mark makes b[from:to] part of the structure. Calls go from the row's beginning to
// its end.
func (t *template) mark(from, to int) {
	t.cover(from)
	for range to - from {
		t.mask = append(t.mask, 0xff)
	}
}

// cover makes the bytes up to size part of the template, and not of the structure
// unless they are already.
func (t *template) cover(size int) {
	for len(t.mask) < size {
		t.mask = append(t.mask, 0)
	}
}

// value marks the structure of the value at b[off] and returns its size, 0 if it
// has parts or is cut off.
func (t *template) value(b []byte, off int) int {
	c := &t.sizes[b[off]]
	size := c.of(b, off)
	if size == 0 || size > uint64(len(b)-off) {
		return 0
	}
	// The length lies right behind the tag.
	t.mark(off, off+1+bits.OnesCount32(c.mask)/8)
	t.mask[off] &^= c.free
	return int(size)
}

// finish ends a template that covers b[:size]; false if it cannot be used.
func (t *template) finish(b []byte, size int) bool {
	if size < 8 || size > maxTemplateSize {
		return false
	}
	t.size = size
	t.cover(size)
	for off := 0; ; {
		for off < size && t.mask[off] == 0 {
			off++
		}
		switch {
		case off == size:
			return true
		case len(t.blocks) == maxTemplateBlocks:
			return false
		case off+blockBytes <= size:
			t.addBlock(b, off)
			off += blockBytes
		case size >= blockBytes && size-off > blockBytes/2:
			t.addBlock(b, size-blockBytes) // once more what was compared already
			return true
		default:
			w := maskedWord{off: min(off, size-8)}
			w.mask = binary.LittleEndian.Uint64(t.mask[w.off:])
			w.want = binary.LittleEndian.Uint64(b[w.off:]) & w.mask
			t.words = append(t.words, w)
			off = w.off + 8
		}
	}
}

func (t *template) addBlock(b []byte, off int) {
	k := block{off: off}
	for i := range k.mask {
		k.mask[i] = binary.LittleEndian.Uint64(t.mask[off+8*i:])
		k.want[i] = binary.LittleEndian.Uint64(b[off+8*i:]) & k.mask[i]
	}
	t.blocks = append(t.blocks, k)
}

// Numbers of the cache. A template that is tried in vain costs about a tenth of a
// walk, one that is made twice a walk, so they must fit most rows to be worth it.
const (
	maxTemplates = 4
	minFields    = 3 // a shorter walk is as fast
	fullCredit   = 64
	missPrice    = 4   // hits that make up for a miss
	shortPause   = 256 // rows
	longPause    = 1 << 14
)

// templates are the latest shapes of one encoding's rows. Where rows have too many
// shapes, it pauses, for longer each time.
type templates struct {
	list   [maxTemplates]template
	order  [maxTemplates]uint8 // of list, the one that fitted last in front
	known  int
	credit int
	pause  int // rows to come that are not tried
	next   int // length of the next pause
	sizes  *[256]cellSize
}

// reset makes t empty.
func (t *templates) reset(sizes *[256]cellSize) {
	t.sizes = sizes
	t.credit, t.next = fullCredit, shortPause
	for i := range t.order {
		t.order[i] = uint8(i)
	}
}

// hit notes that a template was of use.
func (t *templates) hit() {
	if t.credit < fullCredit {
		if t.credit++; t.credit == fullCredit {
			t.next = shortPause
		}
	}
}

// lookup returns the template that fits b, nil if there is none; the one in front has
// been tried. Then it may be worth to make one, in blank. It is not called during a
// pause.
func (t *templates) lookup(b []byte) (fit, blank *template) {
	for i := 1; i < t.known; i++ {
		at := t.order[i]
		if fit = &t.list[at]; fit.fits(b) {
			t.order[0], t.order[i] = at, t.order[0]
			t.hit()
			return fit, nil
		}
	}
	if t.credit -= missPrice; t.credit < 0 {
		t.credit = fullCredit / 4
		t.pause, t.next = t.next, min(2*t.next, longPause)
		return nil, nil
	}
	last := min(t.known, maxTemplates-1)
	blank = &t.list[t.order[last]]
	*blank = template{blocks: blank.blocks[:0], words: blank.words[:0], finds: blank.finds[:0], mask: blank.mask[:0], sizes: t.sizes}
	return nil, blank
}

// keep adds the template that was made in the blank of the last lookup.
func (t *templates) keep() {
	last := min(t.known, maxTemplates-1)
	t.known = last + 1
	t.order[0], t.order[last] = t.order[last], t.order[0]
}

// rest pauses for as long as there is.
func (t *templates) rest() { t.pause = longPause }

// drop forgets the blank of the last lookup, which cannot be used.
func (t *templates) drop() { t.known = min(t.known, maxTemplates-1) }
