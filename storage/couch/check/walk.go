package check

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"scanode/etf"
	"scanode/storage/couch/btree"
	"scanode/storage/couch/file"
)

const (
	// maxNodeBytes is the largest node that is read, uncompressed. CouchDB's have
	// some kilobytes, and more only where single rows are so large.
	maxNodeBytes = 64 << 20
	// maxHeldBytes bounds the nodes on the way to the one that is read.
	maxHeldBytes = 256 << 20
	maxDepth     = btree.MaxDepth
	// keepHeld is the most memory of a frame that is kept for the next node.
	keepHeld = 1 << 20
	// maxReads bounds what all walks of one file read, in multiples of its size. In files that somebody has not forged no two
	// trees share a node: all of them are read three times at most, in salvaging.
	maxReads = 8
	// minRead is what reading in vain counts at least.
	minRead = 512
)

// walker goes through one tree in key order and holds each node against what its
// parent says of it. What cannot be read is a finding, and left out.
//
// The path is kept here, not on the goroutine's stack. Pointers must lead to what
// lies before their node, so there are no loops, and a tree whose nodes have more
// bytes than the file ends the walk: nodes that are used twice cost no more than
// reading the file once more. What all walks of a file may read, nodes in vain too, is
// bounded as well; see maxReads.
type walker struct {
	in     *inspection
	tree   *TreeInfo
	kind   treeKind
	orders []*order
	leaf   func(n *btree.Node, p btree.Pointer) error // takes the rows of a leaf; p is what its parent has

	frames []*frame
	depth  int
	prev   []byte // the key before, of the leaf before; nil at the beginning
	seen   int64  // bytes of nodes
	held   int    // bytes of the nodes in frames
}

// frame is a node on the way.
type frame struct {
	btree.Node
	ptr int64
	i   int // the entry gone to
}

// held is how much memory the node takes.
func (f *frame) held() int { return cap(f.Rows)*48 + f.Plain }

// order is one that a tree's keys may have.
type order struct {
	name    string
	compare btree.Order
	damage  []Finding // where keys are not in this order
	count   int
	deep    int // pairs of keys that are nested too deeply to be compared
}

func (o *order) violated(f Finding) { add(&o.damage, &o.count, f) }

// walk goes through the tree at r and calls leaf for each leaf that could be read;
// rows are valid during the call only. An error is leaf's.
func (in *inspection) walk(r root, leaf func(n *btree.Node, p btree.Pointer) error) (*TreeInfo, error) {
	t := &TreeInfo{Name: r.name}
	in.rep.TreeInfo = append(in.rep.TreeInfo, t)
	if r.p.IsNil() {
		return t, nil
	}
	t.size = max(r.p.Size, 0)
	t.Reduction = text(r.p.Reduction)
	w := &walker{in: in, tree: t, kind: r.kind, leaf: leaf}
	if in.viewOrder == nil && (r.kind == viewTree || r.kind == plainTree) {
		in.viewOrder = btree.ViewOrder()
	}
	switch r.kind {
	case viewTree:
		w.orders = []*order{{name: "json", compare: in.viewOrder}, {name: "raw", compare: btree.TermOrder}}
	case plainTree:
		w.orders = []*order{{name: "raw", compare: btree.TermOrder}, {name: "json", compare: in.viewOrder}}
	default:
		w.orders = []*order{{compare: btree.TermOrder}}
	}
	if err := w.run(r.p); err != nil {
		return t, err
	}
	best := w.orders[0]
	for _, o := range w.orders[1:] {
		if o.count < best.count {
			best = o
		}
	}
	if r.kind == viewTree {
		t.Collation = best.name
	}
	for _, f := range best.damage {
		in.rep.damage(f)
	}
	in.rep.DamageCount += best.count - len(best.damage)
	if best.deep > 0 {
		in.rep.note(Finding{Text: fmt.Sprintf("%d keys nested too deeply to be compared: their order is not verified", best.deep), Offset: -1, Tree: t.Name})
	}
	return t, nil
}

// run goes through the tree below p.
func (w *walker) run(p btree.Pointer) error {
	if err := w.push(p, w.in.header.Ptr); err != nil {
		return err
	}
	for w.depth > 0 {
		f := w.frames[w.depth-1]
		if f.Leaf || f.i == len(f.Rows) {
			held := f.held()
			w.held -= held
			if held > keepHeld {
				f.Node = btree.Node{} // or each level of the tree would keep one of that size
			}
			w.depth--
			if w.depth > 0 {
				w.frames[w.depth-1].i++
			}
			continue
		}
		child, err := btree.ParsePointer(f.Rows[f.i].Value)
		if err == nil && child.IsNil() {
			err = fmt.Errorf("%w: nil below the root", btree.ErrPointer)
		}
		if err != nil {
			w.broken(err, f.ptr)
			f.i++
			continue
		}
		depth := w.depth
		if err := w.push(child, f.ptr); err != nil {
			return err
		}
		if w.depth == depth {
			f.i++ // it could not be read
		}
	}
	return nil
}

// path is the way to the node that is pushed next.
func (w *walker) path() string {
	var s []string
	for _, f := range w.frames[:w.depth] {
		s = append(s, strconv.Itoa(f.i))
	}
	if len(s) == 0 {
		return "root"
	}
	return strings.Join(s, "/")
}

// at makes a finding in the node at ptr, which is pushed next.
func (w *walker) at(ptr int64, err error) Finding {
	return Finding{Text: reason(err), Offset: ptr, Tree: w.tree.Name, Path: w.path()}
}

func (w *walker) damage(ptr int64, err error) { w.in.rep.damage(w.at(ptr, err)) }

// broken reports a subtree that cannot be read.
func (w *walker) broken(err error, ptr int64) {
	w.tree.Broken++
	w.damage(ptr, err)
}

// reason is err without the names of files and offsets, which a finding has itself.
func reason(err error) string {
	var e *file.Error
	if errors.As(err, &e) {
		if e.Detail != "" {
			return e.Err.Error() + ": " + e.Detail
		}
		return e.Err.Error()
	}
	return err.Error()
}

// push reads the node at p, which must lie before below, looks at it, and makes it
// the last frame if it could be read. The error is that of w.leaf.
func (w *walker) push(p btree.Pointer, below int64) error {
	if w.depth == maxDepth {
		w.broken(btree.ErrDepth, p.Ptr)
		return nil
	}
	if w.in.walked > maxReads*w.in.f.Size() {
		w.tree.Broken++
		w.in.rep.incomplete(w.at(p.Ptr, fmt.Errorf("%w: the trees have more nodes than the file has bytes, many times over", btree.ErrPointer)))
		w.depth = 0
		return nil
	}
	if p.Ptr >= below {
		w.broken(fmt.Errorf("%w: it leads to %d, which does not lie before %d", btree.ErrPointer, p.Ptr, below), p.Ptr)
		return nil
	}
	if w.depth == len(w.frames) {
		w.frames = append(w.frames, &frame{})
	}
	f := w.frames[w.depth]
	f.ptr, f.i = p.Ptr, 0
	if err := f.Read(w.in.f, p.Ptr, maxNodeBytes); err != nil {
		if !damaging(err) {
			return err
		}
		w.in.walked += min(f.Size, w.in.f.Size()) + minRead
		w.broken(err, p.Ptr)
		f.Node = btree.Node{}
		return nil
	}
	held := f.held()
	w.seen += f.Size
	w.in.walked += f.Size
	if w.seen > w.in.f.Size() {
		w.broken(fmt.Errorf("%w: the tree has more nodes than the file has bytes", btree.ErrPointer), p.Ptr)
		w.depth = 0
		return nil
	}
	if w.held+held > maxHeldBytes {
		w.broken(fmt.Errorf("%w: the nodes on the path have %d bytes, limit %d", file.ErrTooLarge, w.held+held, maxHeldBytes), p.Ptr)
		return nil
	}
	if p.Ptr+f.Size > below {
		w.damage(p.Ptr, fmt.Errorf("%w: its chunk ends at %d, behind %d", btree.ErrPointer, p.Ptr+f.Size, below))
	}
	w.held += held
	if err := w.look(f, p); err != nil {
		return err
	}
	w.depth++
	w.tree.Depth = max(w.tree.Depth, w.depth)
	return nil
}

// damaging says whether err is of the file's bytes, not of reading them.
func damaging(err error) bool {
	for _, kind := range []error{
		file.ErrBeyondEOF, file.ErrChecksum, file.ErrCompression, file.ErrTooLarge,
		btree.ErrNode, btree.ErrPointer,
	} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// look checks and counts the node in f.
func (w *walker) look(f *frame, p btree.Pointer) error {
	use, nodes := useKP, &w.tree.KP
	if f.Leaf {
		use, nodes = useKV, &w.tree.KV
	}
	nodes.add(len(f.Rows), f.Plain, w.in.o.ChunkSize)
	w.tree.Size += f.Size
	if err := w.in.extent(f.ptr, f.Size, use); err != nil {
		return err
	}
	if err := checkReduction(w.kind, &f.Node, p.Reduction); err != nil {
		w.damage(f.ptr, err)
	}
	if err := checkSize(&f.Node, p.Size); err != nil {
		w.damage(f.ptr, err)
	}
	w.checkLastKey(f)
	w.checkOrder(f)
	w.in.progress(f.Size)
	if !f.Leaf {
		return nil
	}
	w.tree.Rows += int64(len(f.Rows))
	w.prev = append(w.prev[:0], f.Rows[len(f.Rows)-1].Key...)
	if w.leaf == nil {
		return nil
	}
	return w.leaf(&f.Node, p)
}

// checkSize holds the size of the subtree that a parent has against its nodes.
func checkSize(n *btree.Node, stored int64) error {
	if stored == btree.NoSize {
		return nil
	}
	want := n.Size
	if !n.Leaf {
		for _, r := range n.Rows {
			p, err := btree.ParsePointer(r.Value)
			if err != nil {
				return nil // reported when it is gone to
			}
			if p.Size == btree.NoSize {
				return fmt.Errorf("%w: %d stored, and a child has none", btree.ErrSize, stored)
			}
			want += p.Size
		}
	}
	if want != stored {
		return fmt.Errorf("%w: %d stored, %d found", btree.ErrSize, stored, want)
	}
	return nil
}

// order is the first one that was not violated yet.
func (w *walker) order() *order {
	for _, o := range w.orders {
		if o.count == 0 {
			return o
		}
	}
	return w.orders[0]
}

// checkLastKey holds the last key of the node against the one its parent has.
func (w *walker) checkLastKey(f *frame) {
	if w.depth == 0 {
		return
	}
	parent := w.frames[w.depth-1]
	stored, last := parent.Rows[parent.i].Key, f.Rows[len(f.Rows)-1].Key
	c, err := w.order().compare(last, stored)
	if errors.Is(err, etf.ErrLimit) {
		// Two that are the same are equal in any order.
		c, err = bytes.Compare(last, stored), nil
	}
	switch {
	case err != nil:
		w.damage(f.ptr, err)
	case c < 0 && (w.kind == plainTree || w.kind == storeTree):
		w.tree.Separators++ // legal, and some writers make use of it
	case c != 0:
		w.damage(f.ptr, fmt.Errorf("%w: %s stored, %s found", btree.ErrLastKey, text(stored), text(last)))
	}
}

// checkOrder looks at the keys of the node, and at the one before.
func (w *walker) checkOrder(f *frame) {
	for _, o := range w.orders {
		before := w.prev
		for i, r := range f.Rows {
			if before != nil {
				c, err := o.compare(before, r.Key)
				if errors.Is(err, etf.ErrLimit) {
					o.deep++
					err = nil
				}
				if err == nil && c > 0 {
					err = fmt.Errorf("%w: %s before %s", btree.ErrOrder, text(before), text(r.Key))
				}
				if err != nil {
					finding := w.at(f.ptr, fmt.Errorf("row %d: %w", i, err))
					o.violated(finding)
				}
			}
			before = r.Key
		}
	}
}
