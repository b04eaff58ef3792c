package btree

// root makes the root of what stands for it: one list at most if it is a leaf's, or else
// the entries of an inner node, some of which wait.
func (d *deferral) root(entries []Row) (Pointer, error) {
	d.m.shape.streak = 0
	if d.added {
		d.m.shape.streak = min(d.m.t.shape.streak+1, 100)
	}
	var err error
	if d.appending {
		entries, err = d.edge(entries)
	} else {
		entries, err = d.top(entries)
	}
	if err != nil || len(entries) == 0 {
		return Pointer{}, err
	}
	if len(entries) > 1 {
		if entries, err = d.flatten(entries); err != nil {
			return Pointer{}, err
		}
	}
	if len(entries) > 1 {
		d.parts = append(d.parts[:0], entries)
		if entries, err = d.m.write(nil, false, d.parts); err != nil {
			return Pointer{}, err
		}
	}
	return ParsePointer(entries[0].Value)
}

// top settles the entries of the root and groups them until they are few enough.
func (d *deferral) top(list []Row) ([]Row, error) {
	list, err := d.inline(list)
	if err != nil {
		return nil, err
	}
	if list, _, err = d.settle(list); err != nil {
		return nil, err
	}
	for len(list) > d.limit(list, d.m.touched) {
		if list, err = d.regroup(list); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// inline puts the entries of the spine, which edge.go tells of, in its place if it has
// changed.
func (d *deferral) inline(list []Row) ([]Row, error) {
	if len(list) == 0 {
		return list, nil
	}
	p, ok := d.waits(list[0])
	if !ok || p.leaf {
		return list, nil
	}
	first, err := d.height(p.rows[0])
	if err != nil {
		return nil, err
	}
	last, err := d.height(p.rows[len(p.rows)-1])
	if err != nil || first == last {
		return list, err
	}
	out := make([]Row, 0, len(p.rows)+len(list))
	return append(append(out, p.rows...), list[1:]...), nil
}

// regroup makes one node or more of the lowest run of entries of one height, if it has three
// at least, or else of the longest, or, if all heights differ, of all entries.
func (d *deferral) regroup(list []Row) ([]Row, error) {
	heights, err := d.heightsOf(list)
	if err != nil {
		return nil, err
	}
	lowest, longest := run{}, run{}
	for end := len(list); end > 0; {
		r := runBefore(heights, end)
		if r.len() >= 3 && (lowest.len() == 0 || heights[r.start] < heights[lowest.start]) {
			lowest = r
		}
		if r.len() > longest.len() {
			longest = r
		}
		end = r.start
	}
	switch {
	case lowest.len() > 0:
		return d.group(list, lowest, heights[lowest.start])
	case longest.len() > 1:
		return d.group(list, longest, heights[longest.start])
	}
	return d.group(list, run{0, len(list)}, heights[0])
}

// run is a part of a list.
type run struct{ start, end int }

func (r run) len() int { return r.end - r.start }

// runBefore returns the run of equal heights that ends at end.
func runBefore(heights []int, end int) run {
	start := end - 1
	for start > 0 && heights[start-1] == heights[start] {
		start--
	}
	return run{start, end}
}

func (d *deferral) heightsOf(list []Row) ([]int, error) {
	heights := make([]int, len(list))
	for i, r := range list {
		var err error
		if heights[i], err = d.height(r); err != nil {
			return nil, err
		}
	}
	return heights, nil
}

// group puts nodes in the place of a run of entries, the highest of which has the given
// height.
func (d *deferral) group(list []Row, r run, height int) ([]Row, error) {
	rows := list[r.start:r.end]
	d.parts = splitCount(d.parts[:0], rows, max(d.limit(rows, d.m.touched), groupEntries))
	d.regrouped = true
	out := append(make([]Row, 0, len(list)), list[:r.start]...)
	out, err := d.write(out, false, height+1, nil)
	if err != nil {
		return nil, err
	}
	return append(out, list[r.end:]...), nil
}
