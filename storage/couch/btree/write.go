package btree

import "scanode/storage/couch/file"

// writer has the buffers of a modification's writes.
type writer struct {
	packed   [][]byte
	payloads [][]byte
	reds     [][]byte
}

// write writes one node for each of chunks, all in one write, and appends what stands for
// them in their parent to out.
func (m *modification) write(out []Row, leaf bool, chunks [][]Row) ([]Row, error) {
	nodes := make([]*node, len(chunks))
	m.payloads = m.payloads[:0]
	for i, rows := range chunks {
		n := &node{leaf: leaf, canonical: true}
		n.plain = appendNode(make([]byte, 0, nodeSize(rows)), leaf, rows)
		nodes[i] = n
		m.payloads = append(m.payloads, m.pack(i, n.plain))
	}
	placed, err := m.t.chunks.Append(m.payloads)
	if err != nil {
		return nil, err
	}
	for i, rows := range chunks {
		n := nodes[i]
		n.ptr, n.chunk = placed[i].Ptr, placed[i].Size
		p := Pointer{Ptr: n.ptr, Size: n.chunk}
		if err := m.reduce(&p, leaf, rows); err != nil {
			return nil, err
		}
		n.adopt(rows)
		out = append(out, Row{n.rows[len(n.rows)-1].Key, p.Append(make([]byte, 0, len(p.Reduction)+20))})
		m.t.o.Cache.put(n)
	}
	return out, nil
}

// pack returns what is stored of a plain node. It is valid until the next write.
func (m *modification) pack(i int, plain []byte) []byte {
	if m.t.o.Compression.Method == file.None {
		return plain
	}
	for len(m.packed) <= i {
		m.packed = append(m.packed, nil)
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

// adopt makes the rows of a node that was just written ones of its own bytes, as if it
// had been read.
func (n *node) adopt(rows []Row) {
	n.rows = make([]Row, len(rows))
	off := nodeHead
	for i, r := range rows {
		key := off + 2
		value := key + len(r.Key)
		off = value + len(r.Value)
		n.rows[i] = Row{n.plain[key:value:value], n.plain[value:off:off]}
		if !n.leaf {
			p, err := ParsePointer(n.rows[i].Value)
			if err != nil {
				panic("a pointer that was just written cannot be read")
			}
			n.children = append(n.children, p)
		}
	}
}
