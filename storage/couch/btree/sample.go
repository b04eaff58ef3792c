package btree

// A Sample is what some leaves of a tree, drawn by the bytes they take, are like, all numbers
// for each byte of the file that leaves take.
type Sample struct {
	Rows float64 // rows
	// Built is how many bytes a Builder would make of these rows, with their part of the
	// inner nodes above.
	Built float64
	// Fill is how much of the size that a Builder gives to leaves these leaves have, 1 for
	// full ones. It is not for each byte, but on average.
	Fill float64
}

// sampleRun is how many bytes of rows are looked at at each place, as many as some full
// leaves have, so that ends count little.
const sampleRun = 4 * denseBytes

// Sample looks at leaves at n places of the tree, which lie evenly in what its nodes take of
// the file. A tree whose sizes are not known, or without rows, gives a Sample of zeros.
//
// Errors: those of reading.
func (t Tree) Sample(n int) (Sample, error) {
	var s sampler
	s.m = newModification(&t, 0, true) // for its way to pack nodes; it writes nothing
	defer s.m.end()
	if t.root.Size <= 0 || t.root.IsNil() || t.held.root != nil {
		return Sample{}, nil
	}
	for i := range n {
		c := t.Cursor()
		if c.seekBytes(t.root.Size/int64(n)*int64(i) + t.root.Size/int64(2*n)); c.err != nil {
			return Sample{}, c.err
		}
		if err := s.place(c); err != nil {
			return Sample{}, err
		}
	}
	k := float64(n)
	return Sample{Rows: s.rows / k, Built: s.built / k, Fill: s.fill / k}, nil
}

// seekBytes goes to the first row of the leaf that has the byte at off, when the nodes of
// the tree lie in the order of the keys.
func (c *Cursor) seekBytes(off int64) {
	if !c.begin() {
		return
	}
	for c.err == nil && !c.top().leaf {
		f := c.top()
		for f.i < f.len()-1 {
			size := max(0, f.child(f.i).Size)
			if off < size {
				break
			}
			off -= size
			f.i++
		}
		c.enter()
	}
	if c.err == nil {
		c.settle(false)
	}
}

type sampler struct {
	m                 *modification
	rows, built, fill float64 // sums over places
}

// place looks at the leaves from that of the cursor on.
func (s *sampler) place(c *Cursor) error {
	var rows []Row
	var taken, plain, leaves, overhead int64
	for plain < sampleRun && c.Valid() {
		n := c.leaf
		payload, info, err := c.t.chunks.ReadChunk(nil, n.ptr)
		if err != nil {
			return at(err, n.ptr, nil)
		}
		overhead = info.Size - int64(len(payload))
		taken += info.Size
		plain += int64(len(n.plain))
		leaves++
		// The cursor fills its node anew for the next leaf.
		b := append([]byte(nil), n.plain...)
		for i := range n.len() {
			rows = append(rows, Row{b[n.offs[2*i]:n.offs[2*i+1]], b[n.offs[2*i+1] : n.offs[2*i+2]-2]})
		}
		c.top().i = n.len()
		c.settle(false)
	}
	if taken == 0 {
		return nil
	}
	s.rows += float64(len(rows)) / float64(taken)
	s.built += s.build(rows, overhead) / float64(taken)
	s.fill += min(1, float64(plain)/float64(leaves)/denseBytes)
	return nil
}

// build returns what a Builder would make of rows. The last node, which is not full, counts
// as much as it is filled.
func (s *sampler) build(rows []Row, overhead int64) float64 {
	built, size, start := 0.0, 0, 0
	node := func(rows []Row) float64 {
		packed := s.m.pack(0, appendNode(nil, true, rows))
		entry := s.m.pack(0, appendNode(nil, false, []Row{{rows[len(rows)-1].Key, make([]byte, 20)}}))
		return float64(len(packed)) + float64(overhead) + float64(len(entry)-nodeHead)
	}
	whole := 0 // bytes of rows in full nodes
	for i, r := range rows {
		if size > 0 && (size >= denseBytes || size+r.size() > overfullBytes) {
			built += node(rows[start:i])
			whole += size
			start, size = i, 0
		}
		size += r.size()
	}
	if whole == 0 {
		return node(rows)
	}
	return built * float64(whole+size) / float64(whole)
}
