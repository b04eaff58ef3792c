package btree

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/storage/couch/file"
)

// TestFlushIsOneModification does the same work in two trees: in one each action alone, held
// in memory and flushed now and then, in the other all of them at once. With the policies of
// couch_btree, which only look at lists, the files are the same to the byte.
func TestFlushIsOneModification(t *testing.T) {
	for _, p := range []Policy{V0, V1, V1b, Compat} {
		for _, ks := range keyspaces() {
			t.Run(p.String()+"/"+ks.name, func(t *testing.T) {
				t.Parallel()
				m := &sortedModel{keyspace: ks, rng: rand.New(rand.NewPCG(seedOf(t), 1)), rows: map[int][]byte{}}
				var fs [2]vfs.FS
				var trees [2]Tree
				for i := range fs {
					fs[i] = vfs.NewMem()
					f, err := file.Create(fs[i], "tree", file.Options{})
					if err != nil {
						t.Fatal(err)
					}
					defer f.Close()
					trees[i] = New(f, Pointer{}, Options{Order: ks.order, Reducer: digestReducer{}, Policy: p})
				}
				trees[0].o.HoldBytes = 1 << 30
				for range 20 {
					rows, removes := m.draw(m.rng.IntN(5), 1+m.rng.IntN(400))
					var err error
					for _, r := range rows {
						if trees[0], err = trees[0].Add([]Row{r}); err != nil {
							t.Fatal(err)
						}
					}
					for _, key := range removes {
						if trees[0], err = trees[0].AddRemove(nil, [][]byte{key}); err != nil {
							t.Fatal(err)
						}
					}
					m.check(t, trees[0])
					if trees[0], err = trees[0].Flush(); err != nil {
						t.Fatal(err)
					}
					if trees[1], err = trees[1].AddRemove(rows, removes); err != nil {
						t.Fatal(err)
					}
					if a, b := trees[0].Root().Append(nil), trees[1].Root().Append(nil); !bytes.Equal(a, b) {
						t.Fatalf("roots %x and %x", a, b)
					}
				}
				if !bytes.Equal(readAll(t, fs[0]), readAll(t, fs[1])) {
					t.Fatal("the files differ")
				}
			})
		}
	}
}

// TestHeldVersions reads versions of a tree that were never flushed, after others were made
// of them.
func TestHeldVersions(t *testing.T) {
	for _, ks := range keyspaces() {
		t.Run(ks.name, func(t *testing.T) {
			m := &sortedModel{keyspace: ks, rng: rand.New(rand.NewPCG(seedOf(t), 1)), rows: map[int][]byte{}}
			tree := New(newFile(t), Pointer{}, Options{Order: ks.order, Reducer: digestReducer{}, Policy: Scanode, HoldBytes: 50_000})
			type version struct {
				tree Tree
				m    sortedModel
			}
			var versions []version
			for range 200 {
				rows, removes := m.draw(m.rng.IntN(5), 1+m.rng.IntN(30))
				var err error
				if tree, err = tree.AddRemove(rows, removes); err != nil {
					t.Fatal(err)
				}
				versions = append(versions, version{tree, m.clone()})
			}
			for _, v := range versions {
				v.m.check(t, v.tree)
			}
		})
	}
}
