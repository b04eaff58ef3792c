package filter

import (
	"math"
	"slices"
)

// longName is the length from which on names share one bit and one list.
const longName = 63

// maxTries is up to how many names of one length are compared one by one.
const maxTries = 8

// row holds what the extractors find of one stored row: the fields a filter
// names and, for each, the value under every type it is declared with.
type row struct {
	names []rowName // ordered by length
	// lens has bit n set if a name of length n exists (longName: that or more);
	// nearly every field the filter does not name is dismissed by it.
	lens uint64
	// first: the names of length n are names[first[n]:first[n+1]].
	first [longName + 2]uint32
	// index finds a name where too many share a length to try them in turn.
	index map[string]uint32
	// slots: those of the fields, then constants. Only the former change.
	slots   []slot
	fields  int    // number of slots that belong to fields
	cells   []cell // one for every name
	columns []int  // where in cells the columns are, in the caller's order
	// template is what the row at hand fits, nil if it is walked.
	template *template
	// missing counts the names not found yet, of either stage.
	missing [stages]int
	wanted  [stages]int // missing before the first is found
	// count, next and off are where the walk stands: fields in the row, the next
	// one's index and its place in payload; off is 0 before the header is read.
	count, next uint32
	off         int
	payload     []byte // what slots' offsets point into, for the time of one Match
	key         []byte // the stored key, for the same time
}

// stage is how far a row is walked: to the fields of the filter, and then, if the
// filter lets the row pass, on to the columns.
type stage uint8

const (
	stageFilter stage = iota
	stageColumns
	stages
)

// guesses are what is kept of the rows of one encoding for those to come.
type guesses struct {
	templates
	positions
	walked    uint // rows
	extractor Extractor
	etf       bool // which of the two it is
}

func newGuesses(x Extractor, names int) *guesses {
	g := &guesses{extractor: x}
	_, g.etf = x.(etfExtractor)
	g.templates.reset(x.sizes())
	g.positions.reset()
	if names == 0 { // nothing is ever walked
		g.pause = math.MaxInt
	}
	return g
}

// rowName is a field's name and its slots, slots[from:to].
type rowName struct {
	text     string
	word     uint64 // the first eight bytes as load reads them
	from, to uint16
	stage    stage // the first that needs it
	found    bool
}

// slot is one value, pointer-free and 24 bytes, so that resetting a row touches
// few cache lines and no write barrier.
type slot struct {
	num   uint64 // int64, uint64, float64 bits, 0 or 1
	off   uint32 // bytes: payload[off:off+size]
	size  uint32
	state slotState
	typ   fieldType
}

// slotState tells what a slot holds.
type slotState uint8

const (
	slotEmpty slotState = iota // no value: the field is NULL or not there
	slotValue                  // num or bytes
	slotOther                  // varchar only: a value that is no text
)

// newRow lays out the slots of the fields in e, which may be nil, and the columns.
func newRow(e *Expr, columns []string) *row {
	r := &row{index: make(map[string]uint32)}
	types := make(map[string][]fieldType)
	if e != nil {
		collect(e.root, types)
		for _, name := range e.fields {
			r.names = append(r.names, rowName{text: name})
		}
	}
	for _, name := range columns {
		if _, known := types[name]; !known {
			types[name] = nil
			r.names = append(r.names, rowName{text: name, stage: stageColumns})
		}
	}
	slices.SortStableFunc(r.names, func(a, b rowName) int { return len(a.text) - len(b.text) })
	for i := range r.names {
		n := &r.names[i]
		r.index[n.text] = uint32(i)
		r.wanted[n.stage]++
		n.word = load([]byte(n.text), 0)
		n.from = uint16(len(r.slots))
		for _, t := range types[n.text] {
			r.slots = append(r.slots, slot{typ: t})
		}
		n.to = uint16(len(r.slots))
		length := min(len(n.text), longName)
		r.lens |= 1 << length
		for l := length + 1; l < len(r.first); l++ {
			r.first[l]++
		}
	}
	r.fields = len(r.slots)
	r.cells = make([]cell, len(r.names))
	for _, name := range columns {
		r.columns = append(r.columns, int(r.index[name]))
	}
	return r
}

// collect gathers the types every field of n is declared under, each once.
func collect(n *node, types map[string][]fieldType) {
	if n == nil {
		return
	}
	collect(n.left, types)
	collect(n.right, types)
	for _, f := range []operand{n.a, n.b} {
		if f.typ != typeNone && f.typ != typeKey && !slices.Contains(types[f.name], f.typ) {
			types[f.name] = append(types[f.name], f.typ)
		}
	}
}

// slotOf returns the slot of field f.
func (r *row) slotOf(f operand) uint16 {
	n := r.names[r.index[f.name]]
	for s := n.from; s < n.to; s++ {
		if r.slots[s].typ == f.typ {
			return s
		}
	}
	panic("filter: a field without a slot")
}

// addConstant appends a slot that holds num for good.
func (r *row) addConstant(num uint64) uint16 {
	r.slots = append(r.slots, slot{num: num, state: slotValue})
	return uint16(len(r.slots) - 1)
}

// reset forgets the previous row and takes up key and payload.
func (r *row) reset(key, payload []byte) {
	for i := range r.slots[:r.fields] {
		r.slots[i].state = slotEmpty
	}
	for i := range r.cells {
		r.cells[i].kind = KindMissing
	}
	r.off = 0
	r.key, r.payload = key, payload
}

// settle begins a row: with a template that fits, an old one or a new one, if there
// is any.
func (r *row) settle(g *guesses) {
	switch {
	case g.pause > 0:
		g.pause--
		r.template = nil
	case g.known > 0 && g.list[g.order[0]].fits(r.payload):
		r.template = &g.list[g.order[0]]
		g.hit()
	default:
		r.template = r.search(g)
	}
	if r.template == nil {
		r.forget()
	}
}

// search is settle where the first template does not fit.
func (r *row) search(g *guesses) *template {
	fit, blank := g.lookup(r.payload)
	if blank == nil {
		return fit
	}
	r.forget()
	switch learned := g.extractor.learn(r, r.payload, blank); {
	case learned && blank.fields >= minFields:
		g.keep()
		return blank
	case learned:
		g.rest()
	}
	g.drop()
	return nil
}

// forget makes all names ones that are still to be found.
func (r *row) forget() {
	for i := range r.names {
		r.names[i].found = false
	}
	r.missing = r.wanted
}

// fill sets what a template has found.
func (r *row) fill(g *guesses, finds []find) error {
	for i := range finds {
		f := &finds[i]
		c, b := &r.cells[f.name], r.payload[f.off:f.off+f.size:f.off+f.size]
		if g.etf {
			c.decodeETF(b, f.off)
		} else {
			c.decodeMsgpack(b, f.off)
		}
		if c.kind == KindOther || r.set(f.name) != typeNone {
			if err := g.extractor.set(r, f.name, f.off, f.size); err != nil {
				return err
			}
		}
	}
	return nil
}

// extract finds the fields of a stage.
func (r *row) extract(g *guesses, until stage) error {
	if r.template == nil {
		return g.extractor.walk(r, g, until)
	}
	if first := r.template.first; until == stageFilter {
		return r.fill(g, r.template.finds[:first])
	} else {
		return r.fill(g, r.template.finds[first:])
	}
}

// note enters the field with name = b[from:to] and the value behind it into a
// template that is being made. It returns where the next field begins or, if the
// walk ends here, how much the template covers; 0 if there can be no template.
func (r *row) note(t *template, b []byte, from, to int) int {
	t.fields++
	at := -1
	if r.lens>>min(uint64(to-from), longName)&1 != 0 {
		at = r.find(b, from, to-from)
	}
	if at < 0 {
		size := t.value(b, to)
		if size == 0 {
			return 0
		}
		return to + size
	}
	n := &r.names[at]
	n.found = true
	t.finds = append(t.finds, find{name: at, off: to})
	if n.stage == stageFilter {
		t.first = len(t.finds)
	}
	if len(t.finds) == len(r.names) {
		if t.open = true; !t.measure(b) {
			return 0
		}
		return to + 1
	}
	size := t.value(b, to)
	if size == 0 {
		return 0
	}
	t.finds[len(t.finds)-1].size = size
	return to + size
}

// complete ends a template that covers b[:size].
func (r *row) complete(t *template, b []byte, size int) bool {
	for i := range r.names {
		if !r.names[i].found && r.names[i].stage == stageFilter {
			t.first = len(t.finds) // the walk for the filter goes to the end
		}
	}
	return t.finish(b, size)
}

// find returns the index of the named field whose name is b[off:off+size] and that
// is still missing, or -1. The caller has tested r.lens.
func (r *row) find(b []byte, off, size int) int {
	n := min(size, longName)
	from, to := int(r.first[n]), int(r.first[n+1])
	if to-from > maxTries {
		return r.named(b[off : off+size])
	}
	// One comparison of words decides for short names and nearly does for others.
	word := load(b, off) &^ (1<<(64-8*min(uint64(size), 8)) - 1)
	for i := from; i < to; i++ {
		name := &r.names[i]
		if name.word == word && !name.found && (size <= 8 || name.text == string(b[off:off+size])) {
			return i
		}
	}
	return -1
}

// named is find for one of many names.
func (r *row) named(name []byte) int {
	if i, ok := r.index[string(name)]; ok && !r.names[i].found {
		return int(i)
	}
	return -1
}

// take returns the cell of name i, for its value to be decoded into. The cell's
// parts are written and read one by one: a copy of it as a whole would have to wait
// for them.
func (r *row) take(i int) *cell {
	n := &r.names[i]
	n.found = true
	r.missing[n.stage]--
	return &r.cells[i]
}

// set stores the cell of name i in all its slots. It returns the type it does not
// fit, or typeNone.
func (r *row) set(i int) fieldType {
	n, c := &r.names[i], &r.cells[i]
	if c.kind == KindNull {
		return typeNone
	}
	for s := n.from; s < n.to; s++ {
		slot := &r.slots[s]
		ok := true
		slot.state = slotValue
		switch slot.typ {
		case typeSint64:
			slot.num, ok = c.sint64()
		case typeTimestamp:
			slot.num, ok = c.uint64()
		case typeDouble:
			slot.num, ok = c.float64()
		case typeBoolean:
			slot.num, ok = c.sint64()
			ok = ok && slot.num <= 1
		case typeVarchar:
			if c.kind == KindText {
				slot.off, slot.size = c.off+uint32(c.head), c.size-uint32(c.head)
			} else {
				slot.state = slotOther
			}
		case typeAny:
			slot.off, slot.size = c.off, c.size
		}
		if !ok {
			return slot.typ
		}
	}
	return typeNone
}

// sint64 converts c to an int64 in two's complement.
//
// Differs from eleveldb: what does not fit is refused. The original reads some
// of it as 0 or as a negative number when the row is in external term format.
func (c *cell) sint64() (uint64, bool) {
	switch c.kind {
	case KindInt:
		if c.neg {
			return -c.mag, c.mag <= 1<<63
		}
		return c.mag, c.mag <= math.MaxInt64
	case KindFloat:
		f := float(c.mag)
		if f != math.Trunc(f) || f < -1<<63 || f >= 1<<63 {
			return 0, false
		}
		return uint64(int64(f)), true
	}
	return c.mag, c.kind == KindBool
}

// uint64 converts c to a uint64.
func (c *cell) uint64() (uint64, bool) {
	switch c.kind {
	case KindInt:
		return c.mag, !c.neg || c.mag == 0
	case KindFloat:
		f := float(c.mag)
		if f != math.Trunc(f) || f < 0 || f >= 1<<64 {
			return 0, false
		}
		return uint64(f), true
	}
	return c.mag, c.kind == KindBool
}

// float64 converts c to the bits of a float64: integers are rounded, as the
// constants they meet are.
func (c *cell) float64() (uint64, bool) {
	switch c.kind {
	case KindInt:
		f := float64(c.mag)
		if c.neg {
			f = -f
		}
		return math.Float64bits(f), true
	case KindFloat:
		return c.mag, true
	}
	return math.Float64bits(float64(c.mag)), c.kind == KindBool
}
