package check

import (
	"bytes"
	"fmt"
	"slices"

	"scanode/etf"
	"scanode/storage/couch/btree"
	"scanode/storage/couch/file"
)

// view copies a view.
func (s *salvage) view() error {
	if isAtom(s.header[1], "nil") {
		return s.commit()
	}
	fields, err := tuple(s.header[1], 5, 6)
	if err != nil || len(s.in.a.roots) == 0 {
		return s.refuse("its header cannot be read")
	}
	var roots [][]byte
	var views []btree.Tree
	damagedIDs := false
	for _, r := range s.in.a.roots {
		damage := s.in.rep.DamageCount
		t, err := s.copyTree(r, s.rowsOfView(r.kind, len(views)))
		if err != nil {
			return err
		}
		roots = append(roots, t.Root().Append(nil))
		if r.kind == viewTree {
			views = append(views, t)
		} else {
			damagedIDs = s.in.rep.DamageCount > damage
		}
	}
	damage := s.in.rep.DamageCount
	if err := s.in.crossCheck(); err != nil {
		return err
	}
	if damagedIDs || s.in.rep.DamageCount > damage {
		t, err := s.idsOfViews(views)
		if err != nil {
			return err
		}
		roots[0] = t.Root().Append(nil)
	}
	states, err := list(fields[len(fields)-1])
	if err != nil || len(states) != len(roots)-1 {
		return s.refuse("its header cannot be read")
	}
	fields[3] = roots[0]
	last := etf.AppendListHeader(nil, len(states))
	for i, state := range states {
		last = append(last, withRoot(state, roots[i+1])...)
	}
	fields[len(fields)-1] = etf.AppendNil(last)
	s.header[1] = appendTuple(fields)
	if s.in.rep.Damaged() {
		// An index with rows missing would give wrong answers for ever.
		s.header[0] = etf.AppendBinary(nil, make([]byte, 16))
	}
	return s.commit()
}

// rowsOfView takes the leaves of a tree of a view, for crossCheck.
func (s *salvage) rowsOfView(kind treeKind, view int) func(n *btree.Node, ptr int64) error {
	if kind == viewIDTree {
		return func(n *btree.Node, ptr int64) error { return s.in.viewIDLeaf(n, btree.Pointer{Ptr: ptr}) }
	}
	return func(n *btree.Node, ptr int64) error { return s.in.viewLeaf(n, ptr, view) }
}

func appendTuple(fields [][]byte) []byte {
	out := etf.AppendTupleHeader(nil, len(fields))
	for _, f := range fields {
		out = append(out, f...)
	}
	return out
}

// withRoot is the state of a view with another root.
func withRoot(state, root []byte) []byte {
	fields, err := tuple(state, 2, 5)
	if err != nil {
		return root
	}
	if _, err := integer(fields[0]); err == nil {
		return root
	}
	fields[0] = root
	return appendTuple(fields)
}

// trees copies a file of trees of another program: the elements of the header that
// are roots are replaced, all else stays.
func (s *salvage) trees() error {
	n := 0
	for i, f := range s.header {
		arity, _, err := etf.ReadTupleHeader(f)
		if err != nil || arity != 2 && arity != 3 {
			continue
		}
		if _, err := btree.ParsePointer(f); err != nil {
			continue
		}
		t, err := s.copyTree(s.in.a.roots[n], nil)
		if err != nil {
			return err
		}
		s.header[i] = t.Root().Append(nil)
		n++
	}
	if n == 0 {
		return s.refuse("no trees are known in it")
	}
	return s.commit()
}

// copyTree copies what can be read of a tree. leaf, if not nil, is shown each leaf.
func (s *salvage) copyTree(r root, leaf func(n *btree.Node, ptr int64) error) (btree.Tree, error) {
	g := newGuess(r.kind)
	damage := s.in.rep.DamageCount
	t, err := s.in.walk(r, func(n *btree.Node, p btree.Pointer) error {
		if leaf != nil {
			if err := leaf(n, p.Ptr); err != nil {
				return err
			}
		}
		return g.leaf(n, p.Reduction)
	})
	if err != nil {
		return btree.Tree{}, err
	}
	s.result.Rows += t.Rows
	o := btree.Options{Compression: file.DefaultCompression}
	if t.Collation == "json" {
		o.Order = btree.ViewOrder()
	}
	if damage = s.in.rep.DamageCount - damage; damage == 0 {
		p, err := s.copyNode(r.p)
		return btree.New(s.out, p, o), err
	}
	var ok bool
	if o.Reducer, ok = g.reducer(damage); !ok {
		return btree.Tree{}, s.refuse("%s has lost rows, and its reductions are made by functions that are not known", r.name)
	}
	rows := &filler{t: btree.New(s.out, btree.Pointer{}, o)}
	// What there is to say has been said by the first walk.
	rep := s.in.rep
	s.in.rep = &Report{}
	defer func() { s.in.rep = rep }()
	_, err = s.in.walk(r, func(n *btree.Node, _ btree.Pointer) error {
		for _, row := range n.Rows {
			if err := rows.add(row.Key, row.Value); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return btree.Tree{}, err
	}
	err = rows.flush()
	return rows.t, err
}

// idsOfViews makes the id tree anew from the rows of the views.
func (s *salvage) idsOfViews(views []btree.Tree) (btree.Tree, error) {
	ids := s.tree(nil)
	keys := map[string][]byte{} // by document: pairs of view and key
	flush := func() error {
		var docs [][]byte
		for id := range keys {
			docs = append(docs, []byte(id))
		}
		slices.SortFunc(docs, bytes.Compare)
		there, err := ids.Lookup(docs)
		if err != nil {
			return err
		}
		var rows []btree.Row
		for i, id := range docs {
			pairs := keys[string(id)]
			if there[i].Found {
				old, err := list(there[i].Value)
				if err != nil {
					return err
				}
				pairs = append(bytes.Join(old, nil), pairs...)
			}
			n, err := countTerms(pairs)
			if err != nil {
				return err
			}
			value := append(etf.AppendListHeader(nil, n), pairs...)
			rows = append(rows, btree.Row{Key: id, Value: etf.AppendNil(value)})
		}
		clear(keys)
		ids, err = ids.Add(rows)
		return err
	}
	for number, view := range views {
		it := view.Iter(btree.Range{})
		for it.Next() {
			pair, err := tuple(it.Key(), 2, 2)
			if err != nil {
				return ids, err
			}
			one := etf.AppendInt64(etf.AppendTupleHeader(nil, 2), int64(number))
			id := string(pair[1])
			keys[id] = append(keys[id], append(one, pair[0]...)...)
			if len(keys) == fillRows {
				if err := flush(); err != nil {
					return ids, err
				}
			}
		}
		if err := it.Err(); err != nil {
			return ids, err
		}
	}
	return ids, flush()
}

// countTerms returns how many terms b is.
func countTerms(b []byte) (n int, err error) {
	for ; len(b) > 0; n++ {
		if b, err = skip(b); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// copyNode copies a subtree in which nothing is wrong, node by node, with its
// reductions. It is not deeper than maxDepth: the walk before has seen to that.
func (s *salvage) copyNode(p btree.Pointer) (btree.Pointer, error) {
	if p.IsNil() {
		return p, nil
	}
	var n btree.Node
	if err := n.Read(s.in.f, p.Ptr, maxNodeBytes); err != nil {
		return p, err
	}
	known := p.Size != btree.NoSize
	p.Size = 0
	var payload []byte
	if n.Leaf {
		var err error
		if payload, _, err = s.in.f.ReadChunk(nil, p.Ptr); err != nil {
			return p, err
		}
	} else {
		plain := etf.AppendTupleHeader(etf.AppendVersion(nil), 2)
		plain = etf.AppendListHeader(appendAtom(plain, "kp_node"), len(n.Rows))
		for _, r := range n.Rows {
			child, err := btree.ParsePointer(r.Value)
			if err != nil {
				return p, err
			}
			if child, err = s.copyNode(child); err != nil {
				return p, err
			}
			known = known && child.Size != btree.NoSize
			p.Size += child.Size
			plain = append(etf.AppendTupleHeader(plain, 2), r.Key...)
			plain = child.Append(plain)
		}
		payload = file.DefaultCompression.Append(nil, etf.AppendNil(plain))
	}
	c, err := s.out.Append([][]byte{payload})
	if err != nil {
		return p, err
	}
	p.Ptr, p.Size = c[0].Ptr, p.Size+c[0].Size
	if !known {
		p.Size = btree.NoSize
	}
	return p, nil
}

// guess finds out by which functions a tree is reduced: those with which the leaves
// agree.
type guess struct {
	kind   treeKind
	leaves int
	// hits counts the leaves that agree, by function of the view, or for other trees
	// in the first place alone, and by candidate.
	hits [][]int
}

// candidates are the functions that are known. The first is that of trees without
// one, and none of views.
var candidates = []btree.Reducer{nil, btree.Count{}, btree.Sum{}, btree.Stats{}}

func newGuess(kind treeKind) *guess { return &guess{kind: kind} }

// places makes room for n of them.
func (g *guess) places(n int) {
	for len(g.hits) < n {
		g.hits = append(g.hits, make([]int, len(candidates)))
	}
}

// leaf takes a leaf and the reduction its parent has of it.
func (g *guess) leaf(n *btree.Node, stored []byte) error {
	g.leaves++
	if g.kind != viewTree {
		g.places(1)
		for i, c := range candidates {
			if red, err := reduce(c, n.Rows); err == nil && bytes.Equal(red, stored) {
				g.hits[0][i]++
			}
		}
		return nil
	}
	v, err := readViewReduction(stored)
	if err != nil {
		return nil // reported
	}
	parts, err := anyList(v.list)
	if err != nil {
		return nil
	}
	g.places(len(parts))
	for i, c := range candidates[1:] {
		red, err := btree.View{Reducers: []btree.Reducer{c}}.Reduce(nil, n.Rows)
		if err != nil {
			continue // rows that this function does not take
		}
		one, err := readViewReduction(red)
		if err != nil {
			return err
		}
		list, err := anyList(one.list)
		if err != nil || len(list) != 1 {
			return fmt.Errorf("%w: %s", errShape, text(red))
		}
		for place, part := range parts {
			if bytes.Equal(part, list[0]) {
				g.hits[place][i+1]++
			}
		}
	}
	return nil
}

func reduce(r btree.Reducer, rows []btree.Row) ([]byte, error) {
	if r == nil {
		return etf.AppendNil(nil), nil
	}
	return r.Reduce(nil, rows)
}

// reducer returns what all the leaves agree with but so many as there may be faults.
func (g *guess) reducer(faults int) (btree.Reducer, bool) {
	var found []btree.Reducer
	for _, hits := range g.hits {
		best := -1
		for i, n := range hits {
			if n+faults >= g.leaves && n > 0 && (best < 0 || n > hits[best]) {
				best = i
			}
		}
		if best < 0 {
			return nil, false
		}
		found = append(found, candidates[best])
	}
	switch {
	case g.kind == viewTree:
		return btree.View{Reducers: found}, true
	case len(found) == 1:
		return found[0], true
	}
	return nil, g.leaves == 0
}
