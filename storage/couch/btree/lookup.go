package btree

import (
	"fmt"
	"slices"
)

// A Result is what was found for a key.
type Result struct {
	Row
	Found bool
}

// Get looks up one key and returns its value.
//
// Errors: ErrTerm, those of reading.
func (t Tree) Get(key []byte) (value []byte, found bool, err error) {
	if next, _ := scan(key, 0); next != len(key) {
		return nil, false, fmt.Errorf("%w: key", ErrTerm)
	}
	if t.root.IsNil() {
		return nil, false, nil
	}
	// The path is only told when something is wrong.
	var path [MaxDepth]int
	p := t.top()
	for depth := 0; ; depth++ {
		if depth == MaxDepth {
			return nil, false, at(ErrDepth, p.Ptr, path[:depth])
		}
		n, err := t.fetch(p, nil, cacheAll)
		if err != nil {
			return nil, false, at(err, p.Ptr, path[:depth])
		}
		i, err := n.firstGE(t.o.Order, 0, key)
		if err != nil {
			return nil, false, at(err, p.Ptr, path[:depth])
		}
		if i == n.len() {
			return nil, false, nil
		}
		if n.leaf {
			c, err := t.o.Order(n.key(i), key)
			if err != nil {
				return nil, false, at(err, p.Ptr, path[:depth])
			}
			return n.value(i), c == 0, nil
		}
		path[depth] = i
		p = p.child(n, i)
	}
}

// Lookup looks up keys in one descent and returns a result for each, in the order of
// keys, which may come several times. A row found has the key as it was asked for: 2.0
// finds 2 and comes back as 2.0.
//
// Errors: ErrTerm, those of reading.
func (t Tree) Lookup(keys [][]byte) ([]Result, error) {
	l := lookup{t: &t, results: make([]Result, len(keys))}
	sorted := make([]int, len(keys))
	for i, key := range keys {
		if next, _ := scan(key, 0); next != len(key) {
			return nil, fmt.Errorf("%w: key %d", ErrTerm, i)
		}
		sorted[i] = i
		l.results[i].Key = key
	}
	var err error
	slices.SortFunc(sorted, func(i, j int) int {
		c, e := t.o.Order(keys[i], keys[j])
		if e != nil {
			err = e
		}
		return c
	})
	if err != nil {
		return nil, err
	}
	if !t.root.IsNil() && len(keys) > 0 {
		if err := l.node(t.top(), sorted); err != nil {
			return nil, err
		}
	}
	return l.results, nil
}

// lookup is one Lookup under way.
type lookup struct {
	t       *Tree
	results []Result
	path    []int
}

// node looks up the keys of results whose indices are in sorted in the subtree at p.
func (l *lookup) node(p place, sorted []int) error {
	if len(l.path) == MaxDepth {
		return at(ErrDepth, p.Ptr, l.path)
	}
	n, err := l.t.fetch(p, nil, cacheAll)
	if err == nil {
		err = l.within(n, p, sorted)
	}
	if err != nil {
		return at(err, p.Ptr, l.path)
	}
	return nil
}

func (l *lookup) within(n *node, p place, sorted []int) error {
	order := l.t.o.Order
	for lo := 0; len(sorted) > 0; {
		key := l.results[sorted[0]].Key
		i, err := n.firstGE(order, lo, key)
		if err != nil {
			return err
		}
		if i == n.len() {
			return nil // no key that is left is in the tree
		}
		if n.leaf {
			c, err := order(n.key(i), key)
			if err != nil {
				return err
			}
			if r := &l.results[sorted[0]]; c == 0 {
				r.Value, r.Found = n.value(i), true
			}
			lo, sorted = i, sorted[1:]
			continue
		}
		m := 1
		for ; m < len(sorted); m++ {
			c, err := order(l.results[sorted[m]].Key, n.key(i))
			if err != nil {
				return err
			}
			if c > 0 {
				break
			}
		}
		l.path = append(l.path, i)
		if err := l.node(p.child(n, i), sorted[:m]); err != nil {
			return err
		}
		l.path = l.path[:len(l.path)-1]
		lo, sorted = i+1, sorted[m:]
	}
	return nil
}
