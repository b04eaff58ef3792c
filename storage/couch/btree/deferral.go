package btree

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
)

// deferral is an own policy in one modification. Its buffers stay for the next one.
type deferral struct {
	own
	m *modification
	buffers
	begun bool
	// added: all rows of the modification come behind those of the tree. appending: and
	// so it was with the last modifications, so the right edge is kept flat.
	added, appending bool
	empty            bool // the tree had no rows
	regrouped        bool // the tree may have become deeper
	redSize          int  // of a reduction, about
	leafBytes        int  // of the last leaf written
}

// buffers are those of a deferral.
type buffers struct {
	pending []pending
	marks   []byte // values of the entries for pending
	rows    []Row  // of pending, as far as they fit
	written []writtenNode
	parts   [][]Row
}

// writtenNode is a node that was written in this modification, and cannot be read yet.
type writtenNode struct {
	ptr    int64
	height int
}

// maxKeptPending is how many pending lists are kept room for.
const maxKeptPending = 256

// reset gives up all that d has of the tree, and what is not worth keeping.
func (d *deferral) reset() {
	b := d.buffers
	*d = deferral{}
	if cap(b.pending) > maxKeptPending || cap(b.rows) > maxKeptRows || cap(b.written) > maxKeptRows || cap(b.parts) > maxKeptRows {
		return
	}
	clear(b.pending)
	clear(b.rows)
	clear(b.parts[:cap(b.parts)])
	d.buffers = buffers{b.pending[:0], b.marks[:0], b.rows[:0], b.written[:0], b.parts[:0]}
}

// list returns an empty list with room for n rows, which is valid until the modification
// ends.
func (d *deferral) list(n int) []Row {
	if cap(d.rows)-len(d.rows) < n {
		d.rows = make([]Row, 0, max(n, 512))
	}
	start := len(d.rows)
	d.rows = d.rows[:start+n]
	return d.rows[start:start:len(d.rows)]
}

// keep returns a copy of rows that is valid until the modification ends.
func (d *deferral) keep(rows []Row) []Row { return append(d.list(len(rows)+1), rows...) }

// heightOf returns the height of a node that was written in this modification.
func (d *deferral) heightOf(ptr int64) (height int, ok bool) {
	// What is written later lies behind.
	i, ok := slices.BinarySearchFunc(d.written, ptr, func(w writtenNode, ptr int64) int { return cmp.Compare(w.ptr, ptr) })
	if !ok {
		return 0, false
	}
	return d.written[i].height, true
}

// pending is a list that was not cut into nodes yet.
type pending struct {
	leaf    bool
	height  int // of the nodes it will be: 0 is a leaf's
	rows    []Row
	touched int    // actions that led here
	shrunk  bool   // it has fewer rows than the node had that it comes from
	bound   []byte // key that stood in the parent for the last row, if any
}

// waiting is the first byte of an entry's value that stands for a pending list; no term
// begins with it.
const waiting = 0xFF

// put appends an entry for a pending list.
func (d *deferral) put(out []Row, p pending) []Row {
	at := len(d.marks)
	d.marks = binary.BigEndian.AppendUint32(append(d.marks, waiting), uint32(len(d.pending)))
	d.pending = append(d.pending, p)
	return append(out, Row{p.rows[len(p.rows)-1].Key, d.marks[at:]})
}

// waits returns the pending list that an entry stands for, if it does.
func (d *deferral) waits(r Row) (pending, bool) {
	if r.Value[0] != waiting {
		return pending{}, false
	}
	return d.pending[binary.BigEndian.Uint32(r.Value[1:])], true
}

func (d *deferral) node(out []Row, c change) ([]Row, error) {
	if !d.begun {
		d.start(c)
	}
	switch {
	case c.leaf:
		return d.leafNode(out, c), nil
	case c.root || d.appending:
		// The root decides on its own; the right edge becomes flat.
		return append(out, c.list...), nil
	}
	list, height, err := d.settle(c.list)
	if err != nil {
		return nil, err
	}
	shrunk := len(list) < c.old.len()
	return d.put(out, pending{height: height, rows: list, touched: c.touched, shrunk: shrunk, bound: c.bound}), nil
}

// start looks at the first leaf that changes. If that is the last one and only has more rows
// behind those it had, rows were added at the right edge.
func (d *deferral) start(c change) {
	d.begun = true
	d.redSize = len(d.m.t.root.Reduction)
	if c.old == nil {
		d.added, d.empty = true, true
		if red, err := d.m.t.o.Reducer.Reduce(nil, c.list); err == nil {
			d.redSize = len(red)
		}
		return
	}
	n := c.old.len()
	d.added = c.edge && len(c.list) > n && c.old.has(c.list[:n])
	d.appending = d.added && (d.m.t.shape.streak >= 4 || d.m.t.shape.streak >= 1 && c.touched >= 16)
}

// leafNode defers a leaf's list, or what is in front of the old leaf and behind it.
func (d *deferral) leafNode(out []Row, c change) []Row {
	start, ok := d.again(c)
	if !ok {
		shrunk := c.old != nil && len(c.list) < c.old.len()
		return d.put(out, pending{leaf: true, rows: d.keep(c.list), touched: c.touched, shrunk: shrunk, bound: c.bound})
	}
	end := start + c.old.len()
	if prefix := c.list[:start]; len(prefix) > 0 {
		out = d.put(out, pending{leaf: true, rows: d.keep(prefix), touched: len(prefix)})
	}
	out = append(out, c.entry)
	if suffix := c.list[end:]; len(suffix) == 0 {
		if d.m.t.o.ShortKeys && c.bound != nil {
			out[len(out)-1].Key = c.bound
		}
	} else {
		out = d.put(out, pending{leaf: true, rows: d.keep(suffix), touched: len(suffix), bound: c.bound})
	}
	return out
}

// again says whether the old leaf, as a whole, is a run of its new list, where it begins
// there, and whether it is worth being used again.
func (d *deferral) again(c change) (start int, ok bool) {
	if c.old == nil || c.old.len() >= len(c.list) {
		return 0, false
	}
	n := c.old.len()
	for !bytes.Equal(c.list[start].Key, c.old.key(0)) {
		if start++; start+n > len(c.list) {
			return 0, false
		}
	}
	if !c.old.has(c.list[start : start+n]) {
		return 0, false
	}
	size := sizeOf(c.list[start : start+n])
	if n == 1 && size > soloBytes {
		return start, true
	}
	entry := d.entrySize(c.old.last())
	limit := d.leafEntries() * entry
	if d.appending {
		limit = hotEntries * entry
	}
	return start, sizeOf(c.list) > limit && size*100 >= limit*keptPercent
}

// entrySize returns how large an entry is that has key, about.
func (d *deferral) entrySize(key []byte) int { return len(key) + 15 + d.redSize }

func (d *deferral) leafEntries() int {
	if d.m.t.o.packs() {
		return d.packed
	}
	return d.leaf
}

// settle cuts and writes what waits in the list of an inner node and returns the list
// without it, and the height of the node. Neighbours of one height become one list first.
func (d *deferral) settle(list []Row) (out []Row, height int, err error) {
	out = d.list(len(list) + 2)
	for i := 0; i < len(list); {
		p, ok := d.waits(list[i])
		i++
		if !ok {
			out = append(out, list[i-1])
			continue
		}
		for i < len(list) {
			next, ok := d.waits(list[i])
			if !ok || next.height != p.height {
				break
			}
			p.rows = append(p.rows, next.rows...)
			p.touched += next.touched
			p.shrunk = p.shrunk || next.shrunk
			p.bound = next.bound
			i++
		}
		height = max(height, p.height+1)
		if p.shrunk {
			behind := Row{}
			if i < len(list) {
				behind = list[i]
			}
			took, err := d.absorb(&p, behind, true)
			if err != nil {
				return nil, 0, err
			}
			i += took
			front := Row{}
			if len(out) > 0 {
				front = out[len(out)-1]
			}
			if took, err = d.absorb(&p, front, false); err != nil {
				return nil, 0, err
			}
			out = out[:len(out)-took]
		}
		if out, err = d.place(out, p); err != nil {
			return nil, 0, err
		}
	}
	if height == 0 && len(out) > 0 { // children only went away
		height, err = d.height(out[0])
		height++
	}
	return out, height, err
}

// place cuts a list into nodes, writes them, and appends the entries for them.
func (d *deferral) place(out []Row, p pending) ([]Row, error) {
	if !p.leaf && len(p.rows) == 1 {
		return append(out, p.rows[0]), nil // the child takes its parent's place
	}
	d.parts = d.parts[:0]
	if p.leaf {
		d.cutLeaves(p)
	} else {
		d.parts = splitCount(d.parts, p.rows, d.limit(p.rows, p.touched))
	}
	return d.write(out, p.leaf, p.height, p.bound)
}

// write writes d.parts as nodes of one height and appends the entries for them. bound
// stood for the last row until now.
func (d *deferral) write(out []Row, leaf bool, height int, bound []byte) ([]Row, error) {
	first := len(out)
	out, err := d.m.write(out, leaf, d.parts)
	if err != nil {
		return nil, err
	}
	if leaf && d.m.t.o.ShortKeys {
		shorten(out[first:], d.parts, bound)
	}
	for i := range out[first:] {
		p, err := ParsePointer(out[first+i].Value)
		if err != nil {
			return nil, err
		}
		d.written = append(d.written, writtenNode{p.Ptr, height})
		if leaf {
			d.leafBytes = int(p.Size)
		}
	}
	return out, nil
}

// limit returns how many entries a node may have that is made of a list to which touched
// actions led.
func (d *deferral) limit(list []Row, touched int) int {
	if len(list) > d.fanout*touched {
		return d.fanout
	}
	return max(d.fanout, denseEntries(list))
}

// denseEntries returns how many entries like those of list a node may have that many rows
// came to.
func denseEntries(list []Row) int { return denseBytes * len(list) / max(1, sizeOf(list)) }

// cutLeaves cuts a list of rows into d.parts.
func (d *deferral) cutLeaves(p pending) {
	entry := d.entrySize(p.rows[len(p.rows)-1].Key)
	limit := d.leafEntries() * entry
	solo := max(soloBytes, 2*entry)
	size := sizeOf(p.rows)
	if size <= limit*p.touched || len(p.rows) <= p.touched {
		limit = max(limit, denseBytes)
	}
	solos := 1
	if d.added && !d.empty {
		solos = sharedSolos
	}
	for rest := p.rows; len(rest) > 0; {
		n, sum := 0, 0
		for n < len(rest) && rest[n].size() <= solo {
			sum += rest[n].size()
			n++
		}
		if n > 0 {
			d.parts = split(d.parts, rest[:n], sum, limit)
			rest = rest[n:]
			continue
		}
		for n < len(rest) && n < solos && rest[n].size() > solo {
			n++
		}
		d.parts = append(d.parts, rest[:n])
		rest = rest[n:]
	}
}

// height returns the height of the node that an entry stands for, which is that of its
// first child and one: where children differ, the first one is the highest.
func (d *deferral) height(r Row) (int, error) {
	p, err := ParsePointer(r.Value)
	if err != nil {
		return 0, err
	}
	for above := 0; above < MaxDepth; above++ {
		if h, ok := d.heightOf(p.Ptr); ok {
			return above + h, nil
		}
		n, err := d.m.t.load(p.Ptr, nil, cacheAll)
		if err != nil {
			return 0, at(err, p.Ptr, nil)
		}
		if n.leaf {
			return above, nil
		}
		p = n.child(0)
	}
	return 0, at(ErrDepth, p.Ptr, nil)
}
