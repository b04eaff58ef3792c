package btree

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"scanode/storage/couch/file"
)

// TestBuilder builds trees of rows of all sizes, in parts between which the tree is taken,
// and sometimes a new builder goes on with it. The oracle is the list of rows; Verify says
// whether the nodes are legal.
func TestBuilder(t *testing.T) {
	for _, ks := range keyspaces() {
		for _, n := range []int{0, 1, 2, 300, 20_000} {
			t.Run(fmt.Sprintf("%s/%d", ks.name, n), func(t *testing.T) {
				t.Parallel()
				rng := rand.New(rand.NewPCG(seedOf(t), 11))
				m := &sortedModel{keyspace: ks, rng: rng, rows: map[int][]byte{}}
				o := Options{Order: ks.order, Reducer: digestReducer{}, ShortKeys: ks.name == "ids", Policy: Scanode, Cache: NewCache(1 << 20)}
				o.Compression, _ = file.ParseCompression([]string{"none", "snappy"}[rng.IntN(2)])
				tree := New(newFile(t), Pointer{}, o)
				b, err := tree.Builder()
				if err != nil {
					t.Fatal(err)
				}
				for k := range n {
					value := m.value()
					m.set(k, value)
					key := ks.key(k)
					if err := b.Add(key, value); err != nil {
						t.Fatal(err)
					}
					clear(key)
					if rng.IntN(n) >= 5 && k < n-1 {
						continue
					}
					if tree, err = b.Tree(); err != nil {
						t.Fatal(err)
					}
					m.check(t, tree)
					if rng.IntN(2) == 0 {
						if b, err = tree.Builder(); err != nil {
							t.Fatal(err)
						}
					}
				}
				if tree, err = b.Tree(); err != nil {
					t.Fatal(err)
				}
				m.check(t, tree)
				if n == 0 {
					return
				}
				if err := b.Add(ks.key(n-1), stringTerm("x")); !errors.Is(err, ErrOrder) {
					t.Fatal(err)
				}
				if err := b.Add(ks.key(n), stringTerm("x")); !errors.Is(err, ErrOrder) {
					t.Fatalf("a builder that has failed goes on: %v", err)
				}
				// Modifications go on with it.
				if tree, err = tree.AddRemove(nil, [][]byte{ks.key(0)}); err != nil {
					t.Fatal(err)
				}
				m.remove(0)
				m.check(t, tree)
			})
		}
	}
}

// TestBuilderIsDense: a tree that is built is flat, and takes what its rows take and
// little more. The bound is that of full nodes: the head of one for each 4000 bytes, and
// an entry in an inner node, which has a hundredth of that.
func TestBuilderIsDense(t *testing.T) {
	ks := keyspaces()[1]
	tree := New(newFile(t), Pointer{}, Options{Reducer: Count{}, ShortKeys: true})
	b, err := tree.Builder()
	if err != nil {
		t.Fatal(err)
	}
	data := 0
	for k := range 50_000 {
		r := Row{ks.key(k), stringTerm("a value of some length")}
		data += r.size()
		if err := b.Add(r.Key, r.Value); err != nil {
			t.Fatal(err)
		}
	}
	if tree, err = b.Tree(); err != nil {
		t.Fatal(err)
	}
	sum, err := tree.Verify(Check{Separators: true})
	if err != nil || sum.Depth > 3 || sum.Bytes > int64(data)*102/100 {
		t.Fatalf("%d bytes of rows, %+v, %v", data, sum, err)
	}
	if _, err := tree.Verify(Check{}); !errors.Is(err, ErrLastKey) {
		t.Fatalf("no key is shortened: %v", err)
	}
	written := b.t.chunks.(*file.File).Size()
	if written > sum.Bytes+sum.Bytes/1000 {
		t.Fatalf("%d bytes written for %d of the tree", written, sum.Bytes)
	}
}
