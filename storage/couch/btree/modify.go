package btree

import (
	"fmt"
	"slices"
	"sync"

	"scanode/storage/couch/file"
)

// Modify looks up keys, inserts rows, and removes keys, all in one descent, and returns
// the new version of the tree; t stays what it is. Of equal keys among the inserts, and
// among the removes, the first counts. What is looked up is as it was before; a key that
// is both removed and inserted is replaced. An insert replaces key and value of the row
// with an equal key; a remove of a key that is not there does nothing. Nodes that come
// out unchanged are not written, so a tree whose rows are the same stays the same.
//
// Results come in descending order of keys, one for each lookup; a row found has the
// tree's key. Neither rows nor keys are kept.
//
// Nothing of it is durable, nor found again, before a header with the new root is. If it
// fails, what was written of it, nothing most times, is garbage in the file.
//
// Errors: ErrTerm, ErrKey, ErrReduce, those of reading and of Chunks.
//
// Differs from couch_btree in one corner: actions whose keys are equal in the tree's order
// but not to Erlang (strings that collate as equal) are taken in the order of their kinds,
// not in any.
func (t Tree) Modify(lookups [][]byte, inserts []Row, removes [][]byte) ([]Result, Tree, error) {
	actions, err := t.actions(lookups, inserts, removes)
	if err != nil || len(actions) == 0 {
		return nil, t, err
	}
	m := newModification(&t, len(lookups), t.o.HoldBytes > 0 || t.held.root != nil)
	defer m.end()
	root, err := m.run(actions)
	if err != nil {
		return nil, t, err
	}
	slices.Reverse(m.results)
	next := t
	next.root, next.shape, next.held = root, m.shape, m.held
	if next.held.bytes > t.o.HoldBytes {
		if next, err = next.Flush(); err != nil {
			return nil, t, err
		}
	}
	return m.results, next, nil
}

// Add inserts rows.
func (t Tree) Add(rows []Row) (Tree, error) {
	_, t, err := t.Modify(nil, rows, nil)
	return t, err
}

// AddRemove inserts rows and removes keys.
func (t Tree) AddRemove(rows []Row, keys [][]byte) (Tree, error) {
	_, t, err := t.Modify(nil, rows, keys)
	return t, err
}

// op is a kind of action. With equal keys the smaller comes first.
type op uint8

const (
	fetch op = iota
	remove
	insert
)

// action is one thing to do in a modification.
type action struct {
	Row
	op  op
	seq int // place in the caller's list
}

// actions returns what is to be done in the order of the tree.
func (t *Tree) actions(lookups [][]byte, inserts []Row, removes [][]byte) ([]action, error) {
	all := make([]action, 0, len(lookups)+len(inserts)+len(removes))
	for i, r := range inserts {
		value, ok := canonical(r.Value)
		if !ok {
			return nil, fmt.Errorf("%w: value of insert %d", ErrTerm, i)
		}
		all = append(all, action{Row{r.Key, value}, insert, i})
	}
	for i, key := range removes {
		all = append(all, action{Row{key, nil}, remove, i})
	}
	for i, key := range lookups {
		all = append(all, action{Row{key, nil}, fetch, i})
	}
	var ok bool
	for i := range all {
		if all[i].Key, ok = canonical(all[i].Key); !ok {
			return nil, fmt.Errorf("%w: key of action %d", ErrTerm, all[i].seq)
		}
	}
	if len(all) == 1 {
		// It is compared with nothing, and yet must be of a kind the order knows.
		_, err := t.o.Order(all[0].Key, all[0].Key)
		return all, err
	}
	var err error
	slices.SortFunc(all, func(a, b action) int {
		c, e := t.o.Order(a.Key, b.Key)
		if e != nil {
			err = e
		}
		switch {
		case c != 0:
			return c
		case a.op != b.op:
			return int(a.op) - int(b.op)
		case a.op == fetch:
			return b.seq - a.seq // results are turned around at the end
		}
		return a.seq - b.seq
	})
	if err != nil {
		return nil, err
	}
	last := -1
	kept := all[:0]
	for _, a := range all {
		if a.op != fetch && last >= 0 && kept[last].op == a.op {
			c, err := t.o.Order(kept[last].Key, a.Key)
			if err != nil {
				return nil, err
			}
			if c == 0 {
				continue
			}
		}
		kept = append(kept, a)
		last = len(kept) - 1
	}
	return kept, nil
}

// modification is one Modify under way, and what is kept of it for the next.
type modification struct {
	t       *Tree
	layout  layout
	batch   *file.Batch
	results []Result
	path    []int
	inner   int   // steps of path that did not go to a last child
	touched int   // number of actions
	deepest int   // levels gone down
	shape   shape // what the next version has
	held    memory
	// lists are the new rows of the nodes on the way to the one that is being
	// changed, by depth. They are used again for each node of that depth.
	lists    [][]Row
	deferral deferral // of the policies of our own
	writer
}

// modifications keeps the buffers of modifications: without it, most of the memory that
// inserting a row allocates is for them; see BenchmarkInsert.
var modifications = sync.Pool{New: func() any { return new(modification) }}

// newModification starts a modification. With hold it writes nothing.
func newModification(t *Tree, lookups int, hold bool) *modification {
	m := modifications.Get().(*modification)
	m.t, m.inner, m.touched, m.deepest, m.shape, m.held = t, 0, 0, 0, t.shape, t.held
	if lookups > 0 {
		m.results = make([]Result, 0, lookups)
	}
	if hold {
		m.layout = &holder{m: m}
		return m
	}
	m.layout = t.o.Policy.begin(m)
	m.batch = t.chunks.Begin()
	return m
}

// end gives m up. It keeps nothing alive of the tree.
func (m *modification) end() {
	if m.batch != nil {
		m.batch.Discard()
	}
	for i, list := range m.lists {
		if cap(list) > maxKeptRows {
			m.lists[i] = nil
			continue
		}
		clear(list[:cap(list)])
	}
	clear(m.reds[:cap(m.reds)])
	clear(m.payloads[:cap(m.payloads)])
	m.t, m.layout, m.batch, m.results, m.path, m.held = nil, nil, nil, nil, m.path[:0], memory{}
	m.keep()
	m.deferral.reset()
	modifications.Put(m)
}

// maxKeptRows is how long a list may be that is kept for the next modification.
const maxKeptRows = 1 << 12

// run applies actions, which are in order, and returns the new root.
func (m *modification) run(actions []action) (Pointer, error) {
	m.touched = len(actions)
	var entries []Row
	var err error
	if root := m.t.root; root.IsNil() {
		entries, err = m.empty(actions)
	} else {
		entries, err = m.node(nil, m.t.top(), Row{Value: root.Append(nil)}, actions)
	}
	if err != nil {
		return Pointer{}, err
	}
	root, err := m.layout.root(entries)
	if err != nil {
		return Pointer{}, err
	}
	if m.batch == nil {
		return root, nil
	}
	return root, m.publish(m.batch.Flush())
}

// list returns the list of the depth that m is at, without rows.
func (m *modification) list() []Row {
	for len(m.lists) <= len(m.path) {
		m.lists = append(m.lists, nil)
	}
	return m.lists[len(m.path)][:0]
}

// empty applies actions to a tree without rows.
func (m *modification) empty(actions []action) ([]Row, error) {
	rows, err := m.merge(&node{}, actions)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return m.layout.node(nil, change{leaf: true, root: true, edge: true, list: rows, touched: len(actions)})
}

// node applies actions to the subtree at p and appends what stands for it from now on in
// its parent to out. entry is what stands there now.
func (m *modification) node(out []Row, p place, entry Row, actions []action) ([]Row, error) {
	if len(m.path) == MaxDepth {
		return nil, at(ErrDepth, p.Ptr, m.path)
	}
	out, err := m.inside(out, p, entry, actions)
	if err != nil {
		return nil, at(err, p.Ptr, m.path)
	}
	return out, nil
}

func (m *modification) inside(out []Row, p place, entry Row, actions []action) ([]Row, error) {
	n, err := m.t.fetch(p, nil, cacheAll)
	if err != nil {
		return nil, err
	}
	m.deepest = max(m.deepest, len(m.path)+1)
	var list []Row
	if n.leaf {
		list, err = m.merge(n, actions)
	} else {
		list, err = m.descend(n, p, actions)
	}
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		if n.held != nil {
			m.held.bytes -= n.cost()
		}
		return out, nil
	}
	// The entry gets the node's own last key, which a separator may have stood for.
	bound := entry.Key
	entry.Key = n.last()
	if n.has(list) {
		if m.t.o.ShortKeys && bound != nil {
			entry.Key = bound
		}
		return append(out, entry), nil
	}
	return m.layout.node(out, change{
		leaf: n.leaf, root: len(m.path) == 0, edge: m.inner == 0,
		old: n, entry: entry, bound: bound, list: list, touched: len(actions),
	})
}

// descend applies actions to the children they belong to and returns the new entries.
func (m *modification) descend(n *node, p place, actions []action) ([]Row, error) {
	order := m.t.o.Order
	depth := len(m.path)
	list := m.list()
	lo := 0
	for len(actions) > 0 {
		i, err := n.firstGE(order, lo, actions[0].Key)
		if err != nil {
			return nil, err
		}
		count := len(actions)
		if i >= n.len()-1 {
			i = n.len() - 1 // what is behind all keys goes to the last child
		} else {
			for count = 1; count < len(actions); count++ {
				c, err := order(actions[count].Key, n.key(i))
				if err != nil {
					return nil, err
				}
				if c > 0 {
					break
				}
			}
		}
		list = n.appendRows(list, lo, i)
		m.path = append(m.path, i)
		last := i == n.len()-1
		if !last {
			m.inner++
		}
		list, err = m.node(list, p.child(n, i), n.row(i), actions[:count])
		if err != nil {
			return nil, err
		}
		m.path = m.path[:depth]
		if !last {
			m.inner--
		}
		lo, actions = i+1, actions[count:]
	}
	list = n.appendRows(list, lo, n.len())
	m.lists[depth] = list
	return list, nil
}

// merge returns the rows of n with actions applied and keeps what is found of lookups.
func (m *modification) merge(n *node, actions []action) ([]Row, error) {
	order := m.t.o.Order
	list := m.list()
	lo := 0
	for _, a := range actions {
		i, err := n.firstGE(order, lo, a.Key)
		if err != nil {
			return nil, err
		}
		list = n.appendRows(list, lo, i)
		lo = i
		equal := false
		if i < n.len() {
			c, err := order(n.key(i), a.Key)
			if err != nil {
				return nil, err
			}
			equal = c == 0
		}
		switch a.op {
		case fetch:
			if equal {
				m.results = append(m.results, Result{n.row(i), true})
			} else {
				m.results = append(m.results, Result{Row: a.Row})
			}
			continue
		case insert:
			list = append(list, a.Row)
		}
		if equal {
			lo = i + 1
		}
	}
	list = n.appendRows(list, lo, n.len())
	m.lists[len(m.path)] = list
	return list, nil
}
