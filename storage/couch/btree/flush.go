package btree

// Flush writes the nodes that t has in memory, in the way of its policy, and returns the same
// tree with all of it in the file. t stays readable. Without nodes in memory it does
// nothing.
//
// Errors: those of the reducer and of Chunks, those of reading.
func (t Tree) Flush() (Tree, error) {
	if t.held.root == nil {
		return t, nil
	}
	m := newModification(&t, 0, false)
	defer m.end()
	items := appendItems(nil, t.held.root)
	if !t.held.root.held.spare {
		items = []item{{child: t.held.root}}
	}
	for _, it := range items {
		if it.child != nil {
			m.touched += it.child.held.touched
		}
	}
	entries, err := m.replayAll(nil, items)
	if err != nil {
		return t, err
	}
	root, err := m.layout.root(entries)
	if err == nil {
		err = m.publish(m.batch.Flush())
	}
	if err != nil {
		return t, err
	}
	t.root, t.shape, t.held = root, m.shape, memory{}
	return t, nil
}

// item is an entry of an inner node, or, if it is in memory, the child it stands for.
type item struct {
	row   Row
	child *node
}

// appendItems appends the entries of an inner node in memory, those of spare levels in place
// of theirs.
func appendItems(dst []item, n *node) []item {
	if n.leaf {
		return dst
	}
	for i := range n.len() {
		child := n.heldChild(i)
		if child != nil && child.held.spare {
			dst = appendItems(dst, child)
			continue
		}
		dst = append(dst, item{n.row(i), child})
	}
	return dst
}

// replayAll appends to list what stands for items from now on in their parent.
func (m *modification) replayAll(list []Row, items []item) ([]Row, error) {
	for i := 0; i < len(items); {
		first := items[i].child
		if first == nil {
			list = append(list, items[i].row)
			i++
			continue
		}
		end := i + 1
		for end < len(items) && items[end].child != nil && items[end].child.held.origin == first.held.origin {
			end++
		}
		last := end == len(items)
		if !last {
			m.inner++
		}
		var err error
		if list, err = m.replay(list, items[i:end]); err != nil {
			return nil, err
		}
		if !last {
			m.inner--
		}
		i = end
	}
	return list, nil
}

// replay gives the layout a node that changed, which parts has in memory, and the changed
// ones below it before that.
func (m *modification) replay(out []Row, parts []item) ([]Row, error) {
	depth := len(m.path)
	first := parts[0].child
	m.deepest = max(m.deepest, depth+1)
	touched := 0
	var below []item
	list := m.list()
	for _, p := range parts {
		touched += p.child.held.touched
		if first.leaf {
			list = p.child.appendRows(list, 0, p.child.len())
		} else {
			below = appendItems(below, p.child)
		}
	}
	if !first.leaf {
		m.path = append(m.path, 0)
		var err error
		if list, err = m.replayAll(list, below); err != nil {
			return nil, err
		}
		m.path = m.path[:depth]
	}
	m.lists[depth] = list
	if len(list) == 0 {
		return out, nil
	}
	h := first.held
	if h.origin != nil && h.origin.has(list) { // it is as it was again
		entry := h.entry
		if m.t.o.ShortKeys && h.bound != nil {
			entry.Key = h.bound
		}
		return append(out, entry), nil
	}
	return m.layout.node(out, change{
		leaf: first.leaf, root: depth == 0, edge: m.inner == 0,
		old: h.origin, entry: h.entry, bound: h.bound, list: list, touched: touched,
	})
}
