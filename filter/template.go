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
//	row    131 l 0 0 0 5 h 2 m 0 0 0 4 t i m e n 6 0 · · · · · · h 2 m …
//	words  └──────────────┘└─────────────┘└───┘             └──── …
//
// A template that fits is a proof, not a guess. It says nothing of rows it does not
// fit.
type template struct {
	size  int // of what the template covers; a row that fits is not shorter
	words []maskedWord
	finds []find
	// first: finds[:first] are what a walk to the fields of the filter sets.
	first int
	// open: the value of the last find ends the walk. What it is makes no
	// difference then, and it is measured in every row.
	open   bool
	fields int // walked by a row without a template
	sizes  *[256]cellSize
}

// maskedWord is eight bytes of a row, little-endian; of those in mask all are want.
type maskedWord struct {
	off        int
	mask, want uint64
}

// find is the value of name in the payload.
type find struct{ name, off, size int }

// Bounds of templates: a row beyond has none.
const (
	maxTemplateSize  = 1 << 16
	maxTemplateWords = 1 << 10
)

// fits reports whether b has the shape.
func (t *template) fits(b []byte) bool {
	if len(b) < t.size {
		return false
	}
	whole := b
	b = b[:t.size]
	words := t.words
	for len(words) >= 4 {
		w := words[:4]
		if w[0].differ(b)|w[1].differ(b)|w[2].differ(b)|w[3].differ(b) != 0 {
			return false
		}
		words = words[4:]
	}
	for i := range words {
		if words[i].differ(b) != 0 {
			return false
		}
	}
	return !t.open || t.measure(whole)
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
func (t *template) mark(b []byte, from, to int) {
	for off := from; off < to; off++ {
		n := len(t.words)
		if n == 0 || off >= t.words[n-1].off+8 {
			t.words = append(t.words, maskedWord{off: off})
			n++
		}
		w := &t.words[n-1]
		shift := 8 * (off - w.off)
		w.mask |= 0xff << shift
		w.want |= uint64(b[off]) << shift
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
	t.mark(b, off, off+1)
	w := &t.words[len(t.words)-1]
	if free := c.free; free != 0 {
		shift := 8 * (off - w.off)
		w.mask &^= uint64(free) << shift
		w.want &^= uint64(free) << shift
	}
	// The length lies right behind the tag.
	t.mark(b, off+1, off+1+bits.OnesCount32(c.mask)/8)
	return int(size)
}

// finish ends a template that covers size bytes; false if it cannot be used.
func (t *template) finish(size int) bool {
	if size < 8 || size > maxTemplateSize || len(t.words) >= maxTemplateWords {
		return false
	}
	t.size = size
	// Words begin at least eight bytes apart: only the last can reach too far.
	w := &t.words[len(t.words)-1]
	if back := w.off + 8 - size; back > 0 {
		w.off -= back
		w.mask <<= 8 * back
		w.want <<= 8 * back
	}
	return true
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

// lookup returns the template that fits b, nil if there is none. Then it may be
// worth to make one, in blank. It is not called during a pause.
func (t *templates) lookup(b []byte) (fit, blank *template) {
	for i := range t.known {
		at := t.order[i]
		if fit = &t.list[at]; fit.fits(b) {
			t.order[0], t.order[i] = at, t.order[0]
			if t.credit < fullCredit {
				if t.credit++; t.credit == fullCredit {
					t.next = shortPause
				}
			}
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
	*blank = template{words: blank.words[:0], finds: blank.finds[:0], sizes: t.sizes}
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
