package btree

import (
	"bytes"
	"fmt"
)

// A Check says what Verify looks at.
type Check struct {
	// Limit is where the header lies that has the root: every node lies before it. 0
	// is no limit.
	Limit int64
	// Separators allows keys of inner nodes to be greater than the last keys of the
	// children, as trees have that were written with short separators.
	Separators bool
	// SkipReductions leaves reductions unlooked at, for trees whose reduce function is
	// not known.
	SkipReductions bool
	// Visit, if not nil, is called with each node, in key order, the node before its
	// children. An error ends the walk and is returned.
	Visit func(Visit) error
	// Fault, if not nil, is called with each fault instead of the first one ending
	// the walk; what cannot be read is left out. An error it returns ends the walk.
	Fault func(*Error) error
}

// A Visit is a node as Verify comes to it. Slices are valid during the call.
type Visit struct {
	Ptr   int64
	Bytes int64 // of the file, that the node's chunk takes
	Plain int   // bytes of the node uncompressed, its version byte included
	Leaf  bool
	Rows  []Row // in inner nodes last keys and pointers
	Path  []int
}

// NodeStats is how many nodes of a kind there are and how many rows or children the
// smallest and the largest have.
type NodeStats struct{ Count, Min, Max int }

func (s *NodeStats) add(n int) {
	if s.Count == 0 || n < s.Min {
		s.Min = n
	}
	s.Max = max(s.Max, n)
	s.Count++
}

// A Summary is what a tree consists of.
type Summary struct {
	Depth  int // levels, 0 in a tree without rows
	Inner  NodeStats
	Leaves NodeStats
	Rows   int64
	Bytes  int64 // of the file, in all nodes
}

// Verify reads the whole tree, past the cache, and holds it to what a tree has to be: nodes
// are well-formed, keys ascend in them and across them, an inner node's keys are the last
// keys of its children, reductions and sizes are those of what is below, and pointers lead
// from later to earlier places only. It returns what it has seen, and the first fault, an
// *Error, unless c.Fault took all of them.
//
// Errors: ErrNode, ErrOrder, ErrDuplicate, ErrLastKey, ErrReduction, ErrSize, ErrPointer,
// ErrDepth, ErrKey, ErrReduce, those of the file, of c.Visit and c.Fault.
func (t Tree) Verify(c Check) (Summary, error) {
	t.o.Cache = nil
	v := &verifier{t: &t, c: c, seen: map[int64]struct{}{}}
	if t.root.IsNil() {
		return v.sum, nil
	}
	_, err := v.node(t.top())
	return v.sum, err
}

type verifier struct {
	t    *Tree
	c    Check
	sum  Summary
	path []int
	last []byte // key of the last row seen, a copy
	// seen has the inner nodes that were come to: each has one parent. Without it,
	// going on after faults could take forever in a forged file.
	seen map[int64]struct{}
}

// fault reports a fault; an error ends the walk.
func (v *verifier) fault(ptr int64, err error) error {
	e := at(err, ptr, v.path).(*Error)
	if v.c.Fault != nil {
		return v.c.Fault(e)
	}
	return e
}

// subtree is what is known of a subtree after it was walked.
type subtree struct {
	first, last []byte // nil if it could not be read
	bytes       int64  // NoSize if part of it could not be read, or a part has none
}

// node walks the subtree that p stands for.
func (v *verifier) node(p place) (subtree, error) {
	unread := subtree{bytes: NoSize}
	if len(v.path) == MaxDepth {
		return unread, v.fault(p.Ptr, ErrDepth)
	}
	n := p.held
	if n == nil {
		if v.c.Limit > 0 && p.Ptr >= v.c.Limit {
			return unread, v.fault(p.Ptr, fmt.Errorf("%w: to what is behind the header", ErrPointer))
		}
		n = &node{}
		if err := v.t.read(n, p.Ptr); err != nil {
			return unread, v.fault(p.Ptr, err)
		}
		if _, again := v.seen[p.Ptr]; again {
			return unread, v.fault(p.Ptr, fmt.Errorf("%w: the node has another parent", ErrPointer))
		}
		if !n.leaf {
			v.seen[p.Ptr] = struct{}{}
		}
	}
	v.sum.Depth = max(v.sum.Depth, len(v.path)+1)
	v.sum.Bytes += n.chunk
	rows := n.appendRows(make([]Row, 0, n.len()), 0, n.len())
	if v.c.Visit != nil {
		if err := v.c.Visit(Visit{n.ptr, n.chunk, len(n.plain), n.leaf, rows, v.path}); err != nil {
			return unread, err
		}
	}
	s := subtree{bytes: n.chunk}
	var err error
	if n.leaf {
		v.sum.Leaves.add(len(rows))
		err = v.leaf(n.ptr, rows)
		s.first, s.last = n.key(0), n.last()
	} else {
		v.sum.Inner.add(len(rows))
		err = v.inner(n, p, &s)
	}
	if err != nil {
		return unread, err
	}
	if err := v.reduction(n, rows, p.Pointer); err != nil {
		return unread, err
	}
	if p.Size >= 0 && s.bytes >= 0 && p.Size != s.bytes {
		if err := v.fault(p.Ptr, fmt.Errorf("%w: %d stored, %d below", ErrSize, p.Size, s.bytes)); err != nil {
			return unread, err
		}
	}
	if p.Size < 0 {
		s.bytes = NoSize
	}
	return s, nil
}

// leaf looks at the keys of a leaf. Within it they ascend, or it would not have been
// read.
func (v *verifier) leaf(ptr int64, rows []Row) error {
	v.sum.Rows += int64(len(rows))
	prev := v.last
	for i, r := range rows {
		if prev != nil {
			c, err := v.t.o.Order(prev, r.Key)
			switch {
			case err != nil:
			case c > 0:
				err = fmt.Errorf("%w: row %d is before the leaf to the left", ErrOrder, i)
			case c == 0:
				err = fmt.Errorf("%w: row %d", ErrDuplicate, i)
			}
			if err != nil {
				if err := v.fault(ptr, err); err != nil {
					return err
				}
			}
		}
		prev = r.Key
	}
	v.last = append(v.last[:0], prev...)
	return nil
}

// inner walks the children of n and completes s.
func (v *verifier) inner(n *node, p place, s *subtree) error {
	for i := range n.len() {
		v.path = append(v.path, i)
		child, err := v.node(p.child(n, i))
		v.path = v.path[:len(v.path)-1]
		if err != nil {
			return err
		}
		if i == 0 {
			s.first = child.first
		}
		s.last = child.last
		if child.bytes < 0 || s.bytes < 0 {
			s.bytes = NoSize
		} else {
			s.bytes += child.bytes
		}
		if child.last == nil {
			continue
		}
		if err := v.lastKey(n, i, child); err != nil {
			if err := v.fault(n.ptr, fmt.Errorf("%w: row %d", err, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// lastKey holds the key of the i-th child to what the child has.
func (v *verifier) lastKey(n *node, i int, child subtree) error {
	c, err := v.t.o.Order(n.key(i), child.last)
	switch {
	case err != nil:
		return err
	case c < 0, c > 0 && !v.c.Separators, c == 0 && !v.c.Separators && !bytes.Equal(n.key(i), child.last):
		return ErrLastKey
	case i == 0 || child.first == nil:
		return nil
	}
	if c, err = v.t.o.Order(n.key(i-1), child.first); err == nil && c >= 0 {
		err = ErrLastKey
	}
	return err
}

// reduction holds the stored reduction to that of the node's rows.
func (v *verifier) reduction(n *node, rows []Row, p Pointer) error {
	if v.c.SkipReductions {
		return nil
	}
	var red []byte
	var err error
	if n.leaf {
		red, err = v.t.o.Reducer.Reduce(nil, rows)
	} else {
		reds := make([][]byte, n.len())
		for i := range reds {
			reds[i] = n.child(i).Reduction
		}
		red, err = v.t.o.Reducer.Rereduce(nil, reds)
	}
	if err == nil && !bytes.Equal(red, p.Reduction) && !bytes.Equal(red, appendCanonical(nil, p.Reduction)) {
		err = ErrReduction
	}
	if err != nil {
		return v.fault(p.Ptr, err)
	}
	return nil
}
