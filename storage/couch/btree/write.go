package btree

// writer has the buffers of a modification's writes.
type writer struct {
	fresh    []*node // written, and not yet in the file for sure
	bytes    int     // of fresh
	packed   [][]byte
	deflated []byte
	payloads [][]byte
	reds     [][]byte
}

// maxKeptBytes is how much is kept of a buffer for packed nodes for the next modification.
const maxKeptBytes = 1 << 16

// keep gives up what is not worth keeping for the next modification.
func (w *writer) keep() {
	w.fresh, w.bytes = w.fresh[:0], 0
	if cap(w.fresh) > maxKeptRows {
		w.fresh = nil
	}
	clear(w.fresh[:cap(w.fresh)])
	for i, b := range w.packed {
		if cap(b) > maxKeptBytes || i >= 16 {
			w.packed[i] = nil
		}
	}
}

// publish puts into the cache what was written, if writing it did not fail with err. Not
// before: the places of nodes that never came into the file will be others'.
func (m *modification) publish(err error) error {
	if err != nil {
		return err
	}
	for _, n := range m.fresh {
		m.t.o.Cache.put(n)
	}
	clear(m.fresh)
	m.fresh, m.bytes = m.fresh[:0], 0
	return nil
}

// maxFreshBytes is how much of what was written is held before it is given to file and
// cache.
const maxFreshBytes = 1 << 20

// write writes one node for each of chunks, all in one write, and appends what stands for
// them in their parent to out. Until the batch is flushed they cannot be read from the
// file.
func (m *modification) write(out []Row, leaf bool, chunks [][]Row) ([]Row, error) {
	if m.bytes > maxFreshBytes {
		if err := m.publish(m.batch.Write()); err != nil {
			return nil, err
		}
	}
	first := len(m.fresh)
	m.payloads = m.payloads[:0]
	for i, rows := range chunks {
		n := &node{leaf: leaf}
		n.plain = appendNode(make([]byte, 0, nodeSize(rows)), leaf, rows)
		m.fresh = append(m.fresh, n)
		m.bytes += len(n.plain)
		m.payloads = append(m.payloads, m.pack(i, n.plain))
	}
	placed, err := m.batch.Append(m.payloads)
	if err != nil {
		return nil, err
	}
	for i, rows := range chunks {
		n := m.fresh[first+i]
		n.ptr, n.chunk = placed[i].Ptr, placed[i].Size
		p := Pointer{Ptr: n.ptr, Size: n.chunk}
		if err := m.reduce(&p, leaf, rows); err != nil {
			return nil, err
		}
		n.adopt(rows)
		out = append(out, Row{n.last(), p.Append(make([]byte, 0, len(p.Reduction)+20))})
	}
	return out, nil
}

// pack returns what is stored of a plain node. It is valid until the next write.
func (m *modification) pack(i int, plain []byte) []byte {
	if !m.t.o.packs() {
		return plain
	}
	for len(m.packed) <= i {
		m.packed = append(m.packed, nil)
	}
	if m.t.o.Smallest {
		return m.packSmallest(i, plain)
	}
	m.packed[i] = m.t.o.Compression.Append(m.packed[i][:0], plain)
	return m.packed[i]
}

// reduce sets the reduction of a node's pointer and, for an inner node, adds the sizes of
// its children.
func (m *modification) reduce(p *Pointer, leaf bool, rows []Row) (err error) {
	if leaf {
		p.Reduction, err = m.t.o.Reducer.Reduce(nil, rows)
		return err
	}
	m.reds = m.reds[:0]
	for _, r := range rows {
		child, err := ParsePointer(r.Value)
		if err != nil {
			return err
		}
		m.reds = append(m.reds, child.Reduction)
		if child.Size < 0 || p.Size < 0 {
			p.Size = NoSize
		} else {
			p.Size += child.Size
		}
	}
	p.Reduction, err = m.t.o.Reducer.Rereduce(nil, m.reds)
	return err
}

// adopt indexes a node that was just made of rows.
func (n *node) adopt(rows []Row) {
	n.offs = make([]uint32, 0, 2*len(rows)+1)
	off := nodeHead + 2
	for _, r := range rows {
		n.offs = append(n.offs, uint32(off), uint32(off+len(r.Key)))
		off += r.size()
	}
	n.offs = append(n.offs, uint32(off))
}
