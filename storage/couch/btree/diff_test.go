package btree

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"scanode/storage/couch/file"
)

// TestDiff makes versions of a tree and compares what Diff says of any two with what two
// maps say: every row that differs once, in order, and nothing else.
func TestDiff(t *testing.T) {
	for _, ks := range keyspaces() {
		for _, mixed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/mixed=%t", ks.name, mixed), func(t *testing.T) {
				t.Parallel()
				rng := rand.New(rand.NewPCG(seedOf(t), 9))
				diffWork(t, ks, mixed, rng)
			})
		}
	}
}

type treeVersion struct {
	tree Tree
	rows map[int]string
}

func diffWork(t *testing.T, ks keyspace, mixed bool, rng *rand.Rand) {
	policies := []Policy{Scanode}
	if mixed {
		policies = []Policy{Scanode, ScanodeWrite, Compat, V0}
	}
	tree := New(newFile(t), Pointer{}, Options{Order: ks.order, Reducer: Count{}, ShortKeys: ks.name == "ids" && !mixed})
	versions := []treeVersion{{tree, map[int]string{}}}
	for n := range 60 {
		tree.o.Policy = policies[rng.IntN(len(policies))]
		rows := maps.Clone(versions[n].rows)
		touched := map[int]bool{}
		var inserts []Row
		var removes [][]byte
		from := rng.IntN(3000)
		for range 1 + rng.IntN(1<<rng.IntN(9)) {
			k := from
			if from++; rng.IntN(2) == 0 {
				k = rng.IntN(3000)
			}
			if touched[k] {
				continue
			}
			touched[k] = true
			if _, ok := rows[k]; ok && rng.IntN(3) == 0 {
				delete(rows, k)
				removes = append(removes, ks.key(k))
			} else if !ok || rng.IntN(2) == 0 {
				rows[k] = fmt.Sprint(n, k)
				inserts = append(inserts, Row{ks.key(k), stringTerm(rows[k])})
			}
		}
		var err error
		if tree, err = tree.AddRemove(inserts, removes); err != nil {
			t.Fatal(err)
		}
		versions = append(versions, treeVersion{tree, rows})
		for _, old := range []int{n, rng.IntN(n + 1), 0} {
			compareDiff(t, ks, versions[old], versions[n+1])
		}
	}
}

func compareDiff(t *testing.T, ks keyspace, old, now treeVersion) {
	t.Helper()
	var want []string
	for k := range 4000 {
		was, a := old.rows[k]
		is, b := now.rows[k]
		if a != b || was != is {
			want = append(want, fmt.Sprintf("%x %t %x %t %x", ks.key(k), a, was, b, is))
		}
	}
	var got []string
	err := now.tree.Diff(old.tree, func(key, was, is []byte) error {
		text := func(v []byte) []byte {
			if v == nil {
				return nil
			}
			return v[5:]
		}
		got = append(got, fmt.Sprintf("%x %t %x %t %x", key, was != nil, text(was), is != nil, text(is)))
		return nil
	})
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("%v\n%d differences, want %d", err, len(got), len(want))
	}
}

// TestDiffReadsLittle: what Diff reads is what was changed.
func TestDiffReadsLittle(t *testing.T) {
	ks := keyspaces()[1]
	tree := evenTree(t, ks, 20_000, Options{}, rand.New(rand.NewPCG(1, 1)))
	counted := &countedChunks{Chunks: tree.chunks}
	tree.chunks = counted
	later, err := tree.Add([]Row{{ks.key(7777), stringTerm("x")}})
	if err != nil {
		t.Fatal(err)
	}
	counted.reads = 0
	rows := 0
	if err := later.Diff(tree, func([]byte, []byte, []byte) error { rows++; return nil }); err != nil || rows != 1 {
		t.Fatalf("%d rows, %v", rows, err)
	}
	if counted.reads > 60 {
		t.Fatalf("%d nodes were read for one row", counted.reads)
	}
	failure := errors.New("mine")
	if err := later.Diff(tree, func([]byte, []byte, []byte) error { return failure }); !errors.Is(err, failure) {
		t.Fatal(err)
	}
}

type countedChunks struct {
	Chunks
	reads int
}

func (c *countedChunks) ReadChunk(dst []byte, ptr int64) ([]byte, file.ChunkInfo, error) {
	c.reads++
	return c.Chunks.ReadChunk(dst, ptr)
}
