package btree

import "slices"

// The right edge of a tree to which rows are only added. The root has few children: the
// spine, which has all of the tree but the latest leaves, those, and the leaf that grows.
//
//	root [ spine, leaf, leaf, leaf ]
//	         │
//	         ▼
//	[ 64 leaves, 64 leaves, 8 leaves, 8, 8, leaf, leaf ]
//
// A row costs a small leaf and a root of a few entries. When the root has too many, all
// leaves but the last are joined into fewer and go to the spine. When the spine has eight
// neighbours of one height, they become one node, and so on upwards: like the digits of a
// number that is counted up. So the spine has seven entries a level at most, and is
// only written every few leaves.
//
// Nodes of the spine have different heights, which CouchDB never does but reads. A
// modification elsewhere in the spine dissolves it into the root.

const (
	edgeEntries  = 4 // of the root
	groupEntries = 8 // neighbours of one height that become a node
	// hotEntries is how large the last leaf may be, in entries of its parent.
	hotEntries = 3
	// edgeLeafBytes is the size of the leaves that go to the spine; those that have a
	// fourth of it are left as they are.
	edgeLeafBytes = 1279
)

// edge makes the entries of a root that is flat at its right edge. list has all nodes that
// hang from the way to the last leaf, and what that became.
func (d *deferral) edge(list []Row) ([]Row, error) {
	list, _, err := d.settle(list)
	if err != nil || len(list) <= edgeEntries {
		return list, err
	}
	last := len(list) - 1
	spine, counted, err := d.dissolve(list[:last])
	if err != nil {
		return nil, err
	}
	if spine, err = d.joinLeaves(spine); err != nil {
		return nil, err
	}
	if spine, err = d.count(spine, counted); err != nil {
		return nil, err
	}
	if len(spine) > 1 {
		height, err := d.height(spine[0])
		if err != nil {
			return nil, err
		}
		d.parts = append(d.parts[:0], spine)
		if spine, err = d.write(nil, false, height+1, nil); err != nil {
			return nil, err
		}
	}
	return append(spine, list[last]), nil
}

// dissolve puts the entries of the spine in its place. ok is false if there was none.
func (d *deferral) dissolve(list []Row) (out []Row, ok bool, err error) {
	p, err := ParsePointer(list[0].Value)
	if err != nil {
		return nil, false, err
	}
	if _, fresh := d.heightOf(p.Ptr); fresh {
		return list, false, nil
	}
	n, err := d.m.t.load(p.Ptr, nil, cacheAll)
	if err != nil {
		return nil, false, at(err, p.Ptr, nil)
	}
	if n.leaf {
		return list, true, nil
	}
	first, err := d.height(n.row(0))
	if err != nil {
		return nil, false, err
	}
	end, err := d.height(n.row(n.len() - 1))
	if err != nil || first == end && n.len() >= groupEntries {
		return list, false, err
	}
	out = n.appendRows(make([]Row, 0, n.len()+len(list)), 0, n.len())
	return append(out, list[1:]...), true, nil
}

// count makes nodes of eight neighbours or more that have one height. If list comes from a
// spine, it is known to have none but at its end.
func (d *deferral) count(list []Row, counted bool) ([]Row, error) {
	for end := len(list); end > 0; {
		height, err := d.height(list[end-1])
		if err != nil {
			return nil, err
		}
		start := end - 1
		for ; start > 0; start-- {
			h, err := d.height(list[start-1])
			if err != nil {
				return nil, err
			}
			if h != height {
				break
			}
		}
		if end-start >= groupEntries {
			rest := len(list) - end
			if list, err = d.group(list, run{start, end}, height); err != nil {
				return nil, err
			}
			end = len(list) - rest
			continue
		}
		if counted {
			break
		}
		end = start
	}
	return list, nil
}

// joinLeaves joins small leaves at the end of list that are neighbours.
func (d *deferral) joinLeaves(list []Row) ([]Row, error) {
	start := len(list)
	var rows []Row
	var leaves []*node
	for start > 0 {
		p, err := ParsePointer(list[start-1].Value)
		if err != nil {
			return nil, err
		}
		if _, fresh := d.heightOf(p.Ptr); fresh {
			break
		}
		n, err := d.m.t.load(p.Ptr, nil, cacheAll)
		if err != nil {
			return nil, at(err, p.Ptr, nil)
		}
		if !n.leaf || len(n.plain) >= edgeLeafBytes/4 {
			break
		}
		leaves = append(leaves, n)
		start--
	}
	if len(leaves) < 2 {
		return list, nil
	}
	slices.Reverse(leaves)
	for _, n := range leaves {
		rows = n.appendRows(rows, 0, n.len())
	}
	d.parts = split(d.parts[:0], rows, sizeOf(rows), edgeLeafBytes)
	return d.write(slices.Clone(list[:start]), true, 0, nil)
}
