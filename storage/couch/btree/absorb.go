package btree

// absorb joins a list that has become short with that of a neighbour which did not change,
// behind it or in front of it, if both fit into one node. The neighbour is written once
// more, and all that comes this way later has an entry less. It returns 1 if it has taken
// the neighbour. A neighbour that is none is left alone.
func (d *deferral) absorb(p *pending, neighbour Row, behind bool) (took int, err error) {
	if len(neighbour.Value) == 0 || neighbour.Value[0] == waiting {
		return 0, nil
	}
	at, err := ParsePointer(neighbour.Value)
	if err != nil {
		return 0, err
	}
	if _, fresh := d.heightOf(at.Ptr); fresh {
		return 0, nil
	}
	limit, size := d.fanout, len(p.rows)
	if p.leaf {
		limit, size = d.leafEntries()*d.entrySize(p.rows[0].Key), sizeOf(p.rows)
		if at.Size > int64(limit) {
			return 0, nil
		}
	}
	if size > limit/2 {
		return 0, nil
	}
	n, err := d.m.t.load(at.Ptr, nil, cacheAll)
	if err != nil {
		return 0, err
	}
	if n.leaf != p.leaf {
		return 0, nil
	}
	more := n.len()
	if p.leaf {
		more = len(n.plain) - nodeHead
	} else {
		height, err := d.height(n.row(0))
		if err != nil || height+1 != p.height {
			return 0, err
		}
	}
	if size+more > limit {
		return 0, nil
	}
	rows := d.list(len(p.rows) + n.len())
	if behind {
		p.rows = n.appendRows(append(rows, p.rows...), 0, n.len())
		p.bound = neighbour.Key
	} else {
		p.rows = append(n.appendRows(rows, 0, n.len()), p.rows...)
	}
	return 1, nil
}
