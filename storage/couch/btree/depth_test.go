package btree

import (
	"testing"

	"scanode/etf"
)

// TestTooDeep modifies a tree that is a chain, as no policy makes it: each inner node has a
// leaf and the rest of the tree. The rows are those of the chain, and the levels few.
func TestTooDeep(t *testing.T) {
	const leaves = 100
	f := newFile(t)
	tree := New(f, Pointer{}, Options{Reducer: digestReducer{}, Policy: Scanode})
	m := newModification(&tree, 0, false)
	var chain []Row
	for i := leaves; i > 0; i-- {
		leaf, err := m.write(nil, true, [][]Row{{{etf.AppendInt64(nil, int64(2*i)), etf.AppendNil(nil)}}})
		if err != nil {
			t.Fatal(err)
		}
		if chain = append(leaf, chain...); i < leaves {
			if chain, err = m.write(nil, false, [][]Row{chain}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := m.publish(m.batch.Flush()); err != nil {
		t.Fatal(err)
	}
	m.end()
	root, err := ParsePointer(chain[0].Value)
	if err != nil {
		t.Fatal(err)
	}
	tree.root = root
	if sum, err := tree.Verify(Check{}); err != nil || sum.Depth != leaves {
		t.Fatal(sum, err)
	}
	if tree, err = tree.Add([]Row{{etf.AppendInt64(nil, 151), etf.AppendNil(nil)}}); err != nil {
		t.Fatal(err)
	}
	sum, err := tree.Verify(Check{})
	if err != nil || sum.Depth > 5 || sum.Rows != leaves+1 {
		t.Fatal(sum, err)
	}
	at := 0
	for it := tree.Iter(Range{}); it.Next(); at++ {
		want := 2 * (at + 1)
		if at >= 75 {
			want = []int{151, 2 * at}[min(at-75, 1)]
		}
		if got, _, _ := etf.ReadInt64(it.Key()); got != int64(want) {
			t.Fatalf("row %d is %d, expected %d", at, got, want)
		}
	}
}
