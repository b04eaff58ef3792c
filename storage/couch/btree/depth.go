package btree

import "math"

// Depth. A list is cut where it is, and the root grows where it must; nothing of that
// keeps a tree from becoming deep when work of different kinds takes turns for long. So a
// tree that is deeper than one of half as many children a node should be gets all its inner
// nodes anew. Leaves stay.

// maxLevels returns how many levels a tree may have that has so many leaves.
func maxLevels(leaves float64) int { return int(2*math.Log2(max(leaves, 4)/4)) + 6 }

// suspectLevels is how many levels make a tree suspect, however large it is.
const suspectLevels = 20

// flatten returns the entries of the root, list, or fewer if the tree was too deep.
func (d *deferral) flatten(list []Row) ([]Row, error) {
	levels := d.m.deepest
	if d.regrouped {
		h, err := d.height(list[0])
		if err != nil {
			return nil, err
		}
		levels = max(levels, h+2)
	}
	if levels <= int(d.m.t.shape.counted) || levels <= min(suspectLevels, maxLevels(d.leaves(list))) {
		return list, nil
	}
	// What was written in this modification can be read from here on.
	if err := d.m.publish(d.m.batch.Write()); err != nil {
		return nil, err
	}
	count := 0
	for _, r := range list {
		if err := d.walk(r, 0, func(Row) error { count++; return nil }); err != nil {
			return nil, err
		}
	}
	if levels <= maxLevels(float64(count)) {
		d.m.shape.counted = uint8(levels)
		return list, nil
	}
	d.m.shape.counted = 0
	b := bulk{d: d}
	for _, r := range list {
		if err := d.walk(r, 0, func(r Row) error { return b.add(0, r) }); err != nil {
			return nil, err
		}
	}
	return b.finish()
}

// leaves guesses how many leaves are below list.
func (d *deferral) leaves(list []Row) float64 {
	sum := 0.0
	for _, r := range list {
		p, err := ParsePointer(r.Value)
		if err != nil || p.Size < 0 {
			return math.Inf(1) // not known
		}
		sum += float64(p.Size)
	}
	return sum / float64(max(d.leafBytes, edgeLeafBytes))
}

// walk calls visit with the entry of each leaf below the node that r stands for.
func (d *deferral) walk(r Row, depth int, visit func(Row) error) error {
	p, err := ParsePointer(r.Value)
	if err != nil {
		return err
	}
	if depth == MaxDepth {
		return at(ErrDepth, p.Ptr, nil)
	}
	n, err := d.m.t.load(p.Ptr, nil, cacheInner)
	if err != nil {
		return at(err, p.Ptr, nil)
	}
	if n.leaf {
		return visit(r)
	}
	for i := range n.len() {
		if err := d.walk(n.row(i), depth+1, visit); err != nil {
			return err
		}
	}
	return nil
}

// bulk makes dense inner nodes of entries that come in order. It holds two nodes of
// each level at most.
type bulk struct {
	d      *deferral
	levels []bulkLevel
}

type bulkLevel struct {
	rows []Row
	size int
}

// add adds an entry of a node of the given height.
func (b *bulk) add(height int, r Row) error {
	if height == len(b.levels) {
		b.levels = append(b.levels, bulkLevel{})
	}
	l := &b.levels[height]
	l.rows = append(l.rows, r)
	l.size += r.size()
	// A node of four entries at least: there is no use in a way that does not fork.
	if l.size < 2*denseBytes || len(l.rows) < 8 {
		return nil
	}
	half := len(l.rows) / 2
	full, rest := l.rows[:half], append([]Row(nil), l.rows[half:]...)
	l.rows, l.size = rest, sizeOf(rest)
	return b.write(height, full)
}

// write writes a node whose children have the given height.
func (b *bulk) write(height int, rows []Row) error {
	b.d.parts = append(b.d.parts[:0], rows)
	entries, err := b.d.write(nil, false, height+1, nil)
	if err != nil {
		return err
	}
	return b.add(height+1, entries[0])
}

// finish returns the entries of the root.
func (b *bulk) finish() ([]Row, error) {
	for height := 0; height < len(b.levels); height++ {
		l := b.levels[height]
		if height == len(b.levels)-1 && len(l.rows) <= max(b.d.fanout, denseEntries(l.rows)) {
			return l.rows, nil
		}
		parts := splitCount(nil, l.rows, max(b.d.fanout, denseEntries(l.rows)))
		for _, rows := range parts {
			if err := b.write(height, rows); err != nil {
				return nil, err
			}
		}
	}
	return nil, nil
}
