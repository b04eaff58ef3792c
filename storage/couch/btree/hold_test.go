package btree

import (
	"bytes"
	"math/rand/v2"
	"slices"
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

// TestHeldBound inserts a row between the last row of a leaf and the separator that leads
// there, while the leaf is in memory: it belongs to that leaf, not to the next one.
func TestHeldBound(t *testing.T) {
	tree := New(newFile(t), Pointer{}, Options{Policy: ScanodeWrite, ShortKeys: true})
	var err error
	key := func(s string) []byte { return stringTerm(s + "-------------------------") }
	var rows []Row
	for c := byte('a'); c <= 'z'; c++ {
		for d := byte('b'); d <= 'y'; d++ {
			for e := byte('b'); e <= 'f'; e++ {
				rows = append(rows, Row{key(string([]byte{c, d, e})), stringTerm(string(bytes.Repeat([]byte{'v'}, 300)))})
			}
		}
	}
	if tree, err = tree.Add(rows); err != nil {
		t.Fatal(err)
	}
	tree.o.HoldBytes = 1 << 20
	// Each row is written anew, so that its leaf is in memory, and one more right behind it.
	// Some rows are the last of their leaves, and of their inner nodes: Flush joins
	// leaves, but not those of two.
	for i := 0; i < len(rows); i += 2 {
		rows[i].Value = stringTerm("new")
		rows = slices.Insert(rows, i+1, Row{stringTerm(string(rows[i].Key[5:8]) + "~"), rows[i].Value})
		for _, row := range rows[i : i+2] {
			if tree, err = tree.Add([]Row{row}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 2 {
		if _, err := tree.Verify(Check{Separators: true}); err != nil {
			t.Fatal(err)
		}
		n := 0
		for it := tree.Iter(Range{}); it.Next(); n++ {
			if n == len(rows) || !bytes.Equal(it.Key(), rows[n].Key) || !bytes.Equal(it.Value(), rows[n].Value) {
				t.Fatalf("row %d is %q", n, it.Key()[5:])
			}
		}
		if n != len(rows) {
			t.Fatalf("%d rows, expected %d", n, len(rows))
		}
		if tree, err = tree.Flush(); err != nil {
			t.Fatal(err)
		}
	}
}
