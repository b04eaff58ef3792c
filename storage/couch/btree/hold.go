package btree

import "scanode/etf"

// Nodes in memory. With Options.HoldBytes, Modify writes nothing: what changed becomes nodes
// that only the tree has, and Flush writes them. A node that is modified a hundred times
// in between is written once, and as one that a hundred rows came to.
//
//	root held                  in memory, of the version the tree is
//	 ├── child in the file
//	 ├── child held ── …
//	 └── child held            two nodes in memory that were one in the file
//
// A node in memory has the form of one in the file, and so everything that reads takes it.
// It never changes; what is modified again is made anew, with the way to it, so older
// versions of the tree stay as they are. It is cut by its size alone, to be quick to make,
// and remembers which node of the file it was: Flush joins the parts again and gives them
// to the policy as if they had come there in one modification.

// held is what a node in memory has beside its rows.
type held struct {
	children []*node // by row; nil where the child is in the file. None in a leaf
	origin   *node   // that of the file it was, nil if none
	entry    Row     // what stood for origin in its parent, with its own last key
	bound    []byte  // the key that stood there
	touched  int     // actions that led here
	spare    bool    // a level that is only there because the one below was cut
}

const (
	// heldBytes is the size from which on a node in memory is cut in two.
	heldBytes = 1024
	// unwritten is where nodes in memory claim to be, which no file reaches. The pointer
	// to the i-th that was made since there are any says unwritten+1+i: no two pointers
	// are the same then, and a parent is seen to have changed although its reduction has
	// not.
	unwritten = 1 << 62
)

// isUnwritten says whether value is the pointer to a node in memory.
func isUnwritten(value []byte) bool {
	// {Ptr, Reduction, Size} with a Ptr of eight bytes.
	return len(value) > 12 && value[2] == etf.TagSmallBig && value[3] == 8 && value[12] >= unwritten>>56
}

// child returns the i-th child if that is in memory, or nil.
func (n *node) heldChild(i int) *node {
	if n.held == nil || n.held.children == nil {
		return nil
	}
	return n.held.children[i]
}

// cost returns about how many bytes n takes in memory, with its origin.
func (n *node) cost() int {
	c := len(n.plain) + 4*len(n.offs) + nodeOverhead
	if n.held.origin != nil {
		c += len(n.held.origin.plain)
	}
	return c
}

// holder is a layout that keeps nodes in memory.
type holder struct {
	m     *modification
	fresh []freshNode
}

// freshNode is a node that was made in this modification, and the pointer that stands for
// it.
type freshNode struct {
	*node
	value []byte
}

func (h *holder) node(out []Row, c change) ([]Row, error) {
	about := held{origin: c.old, entry: c.entry, bound: c.bound, touched: c.touched}
	if c.old != nil && c.old.held != nil {
		h.m.held.bytes -= c.old.cost()
		about = *c.old.held
		about.touched += c.touched
		about.children = nil
	}
	about.touched = min(about.touched, len(c.list)+c.touched)
	out, err := h.cut(out, c.leaf, c.list, h.children(c), about)
	if err != nil {
		return nil, err
	}
	// What is in front of the bound must go on coming here: Flush may put it back.
	if end := &out[len(out)-1]; h.m.t.o.ShortKeys && leadsTo(c.bound, end.Key) {
		end.Key = c.bound
	}
	return out, nil
}

// children returns those of a changed inner node that are in memory.
func (h *holder) children(c change) []*node {
	if c.leaf {
		return nil
	}
	var children []*node
	next := 0 // child of the old node
	for i, r := range c.list {
		if !isUnwritten(r.Value) {
			continue
		}
		if children == nil {
			children = make([]*node, len(c.list))
		}
		p, err := ParsePointer(r.Value)
		if err != nil {
			panic("a pointer that was just made cannot be read")
		}
		k := p.Ptr - unwritten - 1 - h.first()
		if k >= 0 && k < int64(len(h.fresh)) && &h.fresh[k].value[0] == &r.Value[0] {
			children[i] = h.fresh[k].node
			continue
		}
		for &c.old.value(next)[0] != &r.Value[0] {
			next++
		}
		children[i] = c.old.heldChild(next)
	}
	return children
}

// cut makes nodes of a list and appends pointers to them.
func (h *holder) cut(out []Row, leaf bool, list []Row, children []*node, about held) ([]Row, error) {
	parts := split(nil, list, sizeOf(list), heldBytes)
	if len(parts) > 1 {
		about.touched = (about.touched + len(parts) - 1) / len(parts)
	}
	for _, rows := range parts {
		n := &node{leaf: leaf, ptr: unwritten, held: new(held)}
		*n.held = about
		if children != nil {
			n.held.children, children = children[:len(rows):len(rows)], children[len(rows):]
		}
		n.plain = appendNode(make([]byte, 0, nodeSize(rows)), leaf, rows)
		n.adopt(rows)
		h.m.held.bytes += n.cost()
		p := Pointer{Ptr: unwritten + 1 + h.m.held.made, Size: NoSize}
		if err := h.m.reduce(&p, leaf, rows); err != nil {
			return nil, err
		}
		h.m.held.made++
		value := p.Append(make([]byte, 0, len(p.Reduction)+20))
		h.fresh = append(h.fresh, freshNode{n, value})
		out = append(out, Row{n.last(), value})
	}
	return out, nil
}

// first returns the number of the first of fresh.
func (h *holder) first() int64 { return h.m.held.made - int64(len(h.fresh)) }

func (h *holder) root(entries []Row) (Pointer, error) {
	var err error
	for len(entries) > 1 {
		c := change{list: entries}
		if entries, err = h.cut(nil, false, entries, h.children(c), held{spare: true}); err != nil {
			return Pointer{}, err
		}
	}
	if len(entries) == 0 {
		h.m.held.root, h.m.held.bytes = nil, 0
		return Pointer{}, nil
	}
	if len(h.fresh) > 0 { // or else nothing has changed
		h.m.held.root = h.fresh[len(h.fresh)-1].node
	}
	return ParsePointer(entries[0].Value)
}

// memory is what a tree has in memory only.
type memory struct {
	root  *node // nil if it is in the file
	bytes int   // of all nodes, about
	made  int64 // nodes in this and earlier versions, back to the first that had one
}

// Held returns about how many bytes of memory the nodes take that Flush would write; 0 means
// that all of the tree is in the file.
func (t Tree) Held() int {
	if t.held.root == nil {
		return 0
	}
	return t.held.bytes
}
