package btree

import (
	"bytes"
	"fmt"
)

// A Policy decides which nodes the new rows of a tree become. All policies read what any of
// them wrote, and may go on with it. Four are those of couch_btree in the course of time;
// they differ in where lists are cut and in whether an old node is used again. Two are our
// own.
type Policy interface {
	// String returns the policy's name.
	String() string
	// begin starts a modification.
	begin(m *modification) layout
}

// layout is a policy at work in one modification. The tree's walk comes to each node that
// changed after its children.
type layout interface {
	// node appends what stands for the changed node in its parent to out: pointers with
	// the last keys of what they lead to, in order. A layout that does not want to write
	// yet appends entries of its own making, with the right keys; they come back in the
	// list of the parent, or in root.
	node(out []Row, c change) ([]Row, error)
	// root makes one pointer of what stands for the root.
	root(entries []Row) (Pointer, error)
}

// change is a node that changed.
type change struct {
	leaf    bool
	root    bool
	edge    bool   // only last children lead here
	old     *node  // as it was; nil in a tree without rows
	entry   Row    // what stood for it in its parent, with its own last key
	bound   []byte // the key that stood there, nil for the root
	list    []Row  // what it has now, at least one row; valid during the call
	touched int    // how many actions led here
}

// The policies of couch_btree.
var (
	// V0 is that before the change of 2018 (COUCHDB-3298).
	V0 Policy = cut{name: "v0"}
	// V1 is that change's: nodes are filled up to the chunk size, and a last row is
	// not left alone.
	V1 Policy = cut{name: "v1", full: true, merge: true}
	// V1b is V1 with the equal parts of V0 again.
	V1b Policy = cut{name: "v1b", merge: true}
	// Compat is today's: V1b, and an unchanged node that is full enough is used again
	// when rows come before or behind it.
	Compat Policy = cut{name: "compat", merge: true, reuse: true}
)

// ParsePolicy returns the policy of that name: v0, v1, v1b, compat, scanode, scanode_write.
func ParsePolicy(name string) (Policy, error) {
	for _, p := range []Policy{V0, V1, V1b, Compat, Scanode, ScanodeWrite} {
		if p.String() == name {
			return p, nil
		}
	}
	return nil, fmt.Errorf("policy %q is none of v0, v1, v1b, compat, scanode, scanode_write", name)
}

// cut is a policy that writes each changed node at once, cut in chunks.
type cut struct {
	name  string
	full  bool // chunks are filled up to the chunk size, not made equal
	merge bool // a last chunk of one row is joined to the one before
	reuse bool
}

func (c cut) String() string { return c.name }

func (c cut) begin(m *modification) layout { return &cutter{c, m} }

// cutter is cut in one modification.
type cutter struct {
	cut
	m *modification
}

func (c *cutter) node(out []Row, ch change) ([]Row, error) {
	if prefix, suffix, ok := c.reusable(ch); ok {
		out, err := c.write(out, ch.leaf, prefix)
		if err != nil {
			return nil, err
		}
		return c.write(append(out, ch.entry), ch.leaf, suffix)
	}
	return c.write(out, ch.leaf, ch.list)
}

func (c *cutter) root(entries []Row) (Pointer, error) {
	for len(entries) > 1 {
		var err error
		if entries, err = c.write(nil, false, entries); err != nil {
			return Pointer{}, err
		}
	}
	if len(entries) == 0 {
		return Pointer{}, nil
	}
	return ParsePointer(entries[0].Value)
}

// write writes a list as nodes and appends the entries for them.
func (c *cutter) write(out []Row, leaf bool, list []Row) ([]Row, error) {
	if len(list) == 0 {
		return out, nil
	}
	return c.m.write(out, leaf, c.chunks(list))
}

// chunks cuts a list where couch_btree does. The row that goes beyond the threshold
// still belongs to its chunk, so a chunk has two rows at least unless it is the last.
func (c *cutter) chunks(list []Row) [][]Row {
	limit := c.m.t.o.ChunkSize
	size := listSize
	for _, r := range list {
		size += r.size()
	}
	if size <= limit {
		return [][]Row{list}
	}
	threshold := limit
	if !c.full {
		threshold = size / (size/limit + 1)
	}
	var chunks [][]Row
	start, sum := 0, 0
	for i, r := range list {
		// As a term of its own a row has a version byte.
		own := 1 + r.size()
		if own+sum > threshold && i > start {
			chunks = append(chunks, list[start:i+1])
			start, sum = i+1, 0
		} else {
			sum += own
		}
	}
	if start == len(list) {
		return chunks
	}
	if c.merge && start == len(list)-1 && len(chunks) > 0 {
		last := len(chunks) - 1
		chunks[last] = list[start-len(chunks[last]):]
		return chunks
	}
	return append(chunks, list[start:])
}

// reusable says whether the old node, as a whole, is a run of the new list, and full enough
// to be used again. Then the rows before and behind it get nodes of their own.
func (c *cutter) reusable(ch change) (prefix, suffix []Row, ok bool) {
	if !c.reuse || ch.old == nil || ch.old.len() < 2 {
		return nil, nil, false
	}
	count := ch.old.len()
	start, ok := before(ch.list, ch.old.row(0))
	if !ok || len(ch.list)-start < count || !ch.old.has(ch.list[start:start+count]) {
		return nil, nil, false
	}
	size := count // each as a term of its own
	for _, r := range ch.list[start : start+count] {
		size += r.size()
	}
	if float64(size) < float64(c.m.t.o.ChunkSize)*c.m.t.o.Fill {
		return nil, nil, false
	}
	return ch.list[:start], ch.list[start+count:], true
}

// before returns how many rows at the beginning of list are before first in Erlang's
// order, whatever the order of the tree. ok is false when the old node, whose first
// row it is, cannot follow: a row with an equal key stands for it.
func before(list []Row, first Row) (n int, ok bool) {
	for i, r := range list {
		c, err := TermOrder(r.Key, first.Key)
		if err != nil {
			return 0, false
		}
		if c == 0 {
			return i, bytes.Equal(r.Key, first.Key) && bytes.Equal(r.Value, first.Value)
		}
		if c > 0 {
			return i, false
		}
	}
	return len(list), false
}
