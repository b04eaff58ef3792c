package btree

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sort"
	"testing"

	"scanode/storage/couch/file"
)

// The oracle of these tests is a sorted list of numbers, of which every second one has a
// row; for bytes, what Verify visits.

// evenTree is a tree with a row for each even number below 2n, added a few at a time in
// any order.
func evenTree(t *testing.T, ks keyspace, n int, o Options, rng *rand.Rand) Tree {
	tree := New(newFile(t), Pointer{}, o)
	numbers := rng.Perm(n)
	for len(numbers) > 0 {
		var rows []Row
		for range min(len(numbers), 1+rng.IntN(40)) {
			rows = append(rows, Row{ks.key(2 * numbers[0]), stringTerm(fmt.Sprint(2 * numbers[0]))})
			numbers = numbers[1:]
		}
		var err error
		if tree, err = tree.Add(rows); err != nil {
			t.Fatal(err)
		}
	}
	return tree
}

func eachTree(t *testing.T, test func(t *testing.T, ks keyspace, n int, tree Tree, rng *rand.Rand)) {
	for _, ks := range keyspaces() {
		for _, p := range []Policy{Compat, Scanode, ScanodeWrite} {
			for _, n := range []int{0, 1, 2, 7, 400} {
				t.Run(fmt.Sprintf("%s/%s/%d", ks.name, p, n), func(t *testing.T) {
					t.Parallel()
					rng := rand.New(rand.NewPCG(seedOf(t), 7))
					o := Options{Order: ks.order, Policy: p, ShortKeys: ks.name == "ids", Reducer: Count{}}
					if rng.IntN(2) == 0 {
						o.Cache = NewCache(1 << 14)
					}
					test(t, ks, n, evenTree(t, ks, n, o, rng), rng)
				})
			}
		}
	}
}

// TestCursor goes at random and compares each place with the list's.
func TestCursor(t *testing.T) {
	eachTree(t, func(t *testing.T, ks keyspace, n int, tree Tree, rng *rand.Rand) {
		c, pos := tree.Cursor(), -1 // index of the row, out of 0 to n-1 for none
		for range 4000 {
			var got bool
			var what string
			switch m := rng.IntN(2*n+2) - 1; rng.IntN(12) {
			case 0:
				what, got, pos = "first", c.First(), 0
			case 1:
				what, got, pos = "last", c.Last(), n-1
			case 2:
				what, got = fmt.Sprintf("seek >= %d", max(m, 0)), c.SeekGE(ks.key(max(m, 0)))
				pos = sort.Search(n, func(i int) bool { return 2*i >= max(m, 0) })
			case 3:
				what, got = fmt.Sprintf("seek < %d", max(m, 0)), c.SeekLT(ks.key(max(m, 0)))
				pos = sort.Search(n, func(i int) bool { return 2*i >= max(m, 0) }) - 1
			case 4, 5, 6, 7:
				if what, got = "next", c.Next(); pos >= 0 && pos < n {
					pos++
				}
			default:
				if what, got = "prev", c.Prev(); pos >= 0 && pos < n {
					pos--
				}
			}
			want := pos >= 0 && pos < n
			if c.Err() != nil || got != want || c.Valid() != want {
				t.Fatalf("%s: %t, %t, want %t, %v", what, got, c.Valid(), want, c.Err())
			}
			if !want {
				pos = -1
				continue
			}
			if string(c.Key()) != string(ks.key(2*pos)) || string(c.Value()) != string(stringTerm(fmt.Sprint(2*pos))) {
				t.Fatalf("%s: %x, want row %d", what, c.Key(), pos)
			}
		}
	})
}

// TestCursorAllocates: a cursor that has been through a tree goes through it again without
// allocating.
func TestCursorAllocates(t *testing.T) {
	tree := evenTree(t, keyspaces()[1], 3000, Options{Compression: file.DefaultCompression}, rand.New(rand.NewPCG(1, 1)))
	c := tree.Cursor()
	rows := 0
	walk := func() {
		for ok := c.First(); ok; ok = c.Next() {
			rows++
		}
		for ok := c.Last(); ok; ok = c.Prev() {
			rows++
		}
	}
	walk()
	if n := testing.AllocsPerRun(5, walk); n > 0 || rows != 7*6000 || c.Err() != nil {
		t.Fatalf("%.0f allocations, %d rows, %v", n, rows, c.Err())
	}
}

// TestCursorFaults: what is no key, and a node that is gone, end a cursor with an error.
func TestCursorFaults(t *testing.T) {
	tree := evenTree(t, keyspaces()[1], 400, Options{}, rand.New(rand.NewPCG(1, 1)))
	c := tree.Cursor()
	if c.SeekGE([]byte{1, 2}) || !errors.Is(c.Err(), ErrTerm) || c.First() {
		t.Fatal(c.Err())
	}
	c = tree.Cursor()
	c.First()
	tree.chunks.(*file.File).Close()
	for c.Next() {
	}
	if !errors.Is(c.Err(), file.ErrClosed) || c.Valid() || c.Last() || c.Prev() {
		t.Fatal(c.Err())
	}
}

// TestBytesBefore: a place is behind all leaves whose keys are before it, and in front of
// those whose keys are behind; in between lies at most the path to it.
func TestBytesBefore(t *testing.T) {
	eachTree(t, func(t *testing.T, ks keyspace, n int, tree Tree, _ *rand.Rand) {
		type leaf struct {
			first, last []byte
			bytes       int64
		}
		var leaves []leaf
		sum, err := tree.Verify(Check{Separators: true, Visit: func(v Visit) error {
			if v.Leaf {
				leaves = append(leaves, leaf{append([]byte(nil), v.Rows[0].Key...), append([]byte(nil), v.Rows[len(v.Rows)-1].Key...), v.Bytes})
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		before := int64(-1)
		for k := range 2*n + 1 {
			key := ks.key(k)
			got, err := tree.BytesBefore(key)
			if err != nil {
				t.Fatal(err)
			}
			low, high := int64(0), sum.Bytes
			for _, l := range leaves {
				if c, _ := ks.order(l.last, key); c < 0 {
					low += l.bytes
				}
				if c, _ := ks.order(l.first, key); c > 0 {
					high -= l.bytes
				}
			}
			if got < low || got > high || got < before {
				t.Fatalf("%d bytes before %d, after %d, want %d to %d", got, k, before, low, high)
			}
			before = got
		}
		if depth, err := tree.Depth(); err != nil || depth != sum.Depth {
			t.Fatalf("depth %d, %v, want %d", depth, err, sum.Depth)
		}
	})
}
