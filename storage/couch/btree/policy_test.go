package btree

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"scanode/etf"
	"scanode/storage/couch/file"
)

// TestAToF inserts a to f one by one, with values of 1,000 bytes. That is the example
// that the change of 2018 was explained with; the numbers of nodes and bytes are those that
// couch_btree of the three states wrote.
func TestAToF(t *testing.T) {
	for _, c := range []struct {
		policy  Policy
		nodes   int
		bytes   int64
		garbage string // leaves that nothing leads to in the end
	}{
		{V0, 12, 13623, "a ab c cd e"},
		{V1, 11, 17585, "a ab abc cd cde"},
		{Compat, 10, 9532, "a c e"},
	} {
		f := newFile(t)
		tree := New(f, Pointer{}, Options{Reducer: Count{}, Policy: c.policy})
		for key := 'a'; key <= 'f'; key++ {
			var err error
			value := etf.AppendBinary(nil, bytes.Repeat([]byte("x"), 1000))
			if tree, err = tree.Add([]Row{{mustParse(string(key)), value}}); err != nil {
				t.Fatal(err)
			}
		}
		live := map[int64]bool{}
		if _, err := tree.Verify(Check{Visit: func(v Visit) error {
			live[v.Ptr] = true
			return nil
		}}); err != nil {
			t.Fatal(err)
		}
		nodes := 0
		var garbage []string
		for at := int64(0); at < f.Size(); nodes++ {
			payload, info, err := f.ReadChunk(nil, at)
			if err != nil {
				t.Fatal(err)
			}
			n := &node{ptr: at, plain: payload}
			if err := n.parse(TermOrder); err != nil {
				t.Fatal(err)
			}
			if n.leaf && !live[at] {
				var keys strings.Builder
				for i := range n.len() {
					name, _, _ := etf.ReadAtom(n.key(i))
					keys.Write(name)
				}
				garbage = append(garbage, keys.String())
			}
			at += info.Size
		}
		if got := strings.Join(garbage, " "); nodes != c.nodes || f.Size() != c.bytes || got != c.garbage {
			t.Errorf("%s: %d nodes, %d bytes, garbage %s; couch_btree wrote %d, %d, %s", c.policy, nodes, f.Size(), got, c.nodes, c.bytes, c.garbage)
		}
	}
}

// TestChunks cuts lists of rows of given sizes, which were worked out by hand: a list has
// seven bytes beside its rows, and a row as a term of its own one more than in the list.
func TestChunks(t *testing.T) {
	for _, c := range []struct {
		policy Policy
		sizes  []int
		want   string
	}{
		{V0, []int{93}, "1"},
		{V0, []int{200}, "1"},
		{V0, []int{31, 31, 31}, "3"},       // 100 bytes are one node
		{V0, []int{31, 31, 32}, "2 1"},     // 101 bytes: half is 50
		{V1b, []int{31, 31, 32}, "3"},      // the last row is not left alone
		{V0, []int{30, 30, 57}, "3"},       // half is 62, as are the first two
		{V0, []int{30, 31, 57}, "2 1"},     // half is 62, the first two have 63
		{V1, []int{40, 40, 40}, "3"},       // the third goes beyond 100 and belongs to it
		{V1, []int{40, 58, 40, 40}, "4"},   // 100 are not beyond
		{V1, []int{40, 59, 40, 40}, "2 2"}, // 101 are
		{V0, []int{20, 20, 20, 20, 20}, "3 2"},
		{V0, []int{300, 300, 300}, "2 1"},
		{Compat, []int{300, 300, 300, 300, 300}, "2 3"},
		{V1, []int{300, 300, 300, 300}, "2 2"},
	} {
		tree := New(nil, Pointer{}, Options{ChunkSize: 100})
		cutter := c.policy.begin(&modification{t: &tree}).(*cutter)
		var rows []Row
		for _, size := range c.sizes {
			rows = append(rows, Row{[]byte{97, 1}, etf.AppendBinary(nil, make([]byte, size-2-2-5))})
		}
		var got []string
		for _, chunk := range cutter.chunks(rows) {
			got = append(got, fmt.Sprint(len(chunk)))
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s cuts %v into %s, want %s", c.policy, c.sizes, s, c.want)
		}
	}
}

// TestLookupsOfOneKey looks up keys that are equal and not there in a modification. couch_btree
// sorts them with a function that says of equal keys that neither comes first, which
// lists:sort takes for the opposite order, and then answers in descending order.
func TestLookupsOfOneKey(t *testing.T) {
	tree := New(newFile(t), Pointer{}, Options{})
	results, _, err := tree.Modify([][]byte{mustParse("1"), mustParse("2"), mustParse("1.0"), mustParse("2.0")}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"2", "2.0", "1", "1.0"}
	for i, r := range results {
		if !bytes.Equal(r.Key, mustParse(want[i])) || r.Found {
			t.Errorf("result %d is of %x, want %s", i, r.Key, want[i])
		}
	}
}

// TestPolicyNames reads each policy's name back.
func TestPolicyNames(t *testing.T) {
	for _, p := range []Policy{V0, V1, V1b, Compat} {
		if got, err := ParsePolicy(p.String()); err != nil || got != p {
			t.Errorf("%s is read as %v, %v", p, got, err)
		}
	}
	if _, err := ParsePolicy("v2"); err == nil {
		t.Error("v2 is a policy")
	}
}

// TestTraverse holds the callback of inner nodes to couch_btree's rules: it is called before
// each child but the root and those on the way to the start key; skipped children count
// as passed; stopping there leaves reductions only.
func TestTraverse(t *testing.T) {
	f := newFile(t)
	var leaves []string
	for i := range 4 {
		leaves = append(leaves, fmt.Sprintf("{%d,{%d,2,nil}}", 2*i+1, forge(t, f, kv(fmt.Sprintf("[{%d,a},{%d,b}]", 2*i, 2*i+1)))))
	}
	left := forge(t, f, kp("["+leaves[0]+","+leaves[1]+"]"))
	right := forge(t, f, kp("["+leaves[2]+","+leaves[3]+"]"))
	root := forge(t, f, kp(fmt.Sprintf("[{3,{%d,4,nil}},{7,{%d,4,nil}}]", left, right)))
	tree := New(f, Pointer{Ptr: root, Reduction: []byte{97, 8}, Size: NoSize}, Options{Reducer: Count{}})
	fold := func(r Range, skip, stop string) (events []string, passed int64) {
		p, err := tree.Fold(r, func(row Row, _ *Iter) (Step, error) {
			events = append(events, fmt.Sprint(row.Key[1]))
			return Next, nil
		}, func(last, red []byte) (Step, error) {
			name := fmt.Sprintf("<%d:%d", last[1], red[1])
			events = append(events, name)
			switch name {
			case skip:
				return Skip, nil
			case stop:
				return Stop, nil
			}
			return Next, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		red, err := tree.FinalReduce(nil, p)
		if err != nil {
			t.Fatal(err)
		}
		passed, _, _ = etf.ReadInt64(red)
		if stop != "" && len(p.Rows) > 0 {
			t.Error("rows were passed where a child was stopped at")
		}
		return events, passed
	}
	for _, c := range []struct {
		r          Range
		skip, stop string
		want       string
		passed     int64
	}{
		{Range{}, "", "", "<3:4 <1:2 0 1 <3:2 2 3 <7:4 <5:2 4 5 <7:2 6 7", 8},
		{Range{Reverse: true}, "", "", "<7:4 <7:2 7 6 <5:2 5 4 <3:4 <3:2 3 2 <1:2 1 0", 8},
		{Range{Start: []byte{97, 1}}, "", "", "1 <3:2 2 3 <7:4 <5:2 4 5 <7:2 6 7", 8},
		{Range{Start: []byte{97, 5}, Reverse: true}, "", "", "5 4 <3:4 <3:2 3 2 <1:2 1 0", 8},
		{Range{Start: []byte{97, 6}}, "", "", "6 7", 8},
		{Range{Start: []byte{97, 8}}, "", "", "", 8},
		{Range{}, "<3:4", "", "<3:4 <7:4 <5:2 4 5 <7:2 6 7", 8},
		{Range{}, "", "<7:4", "<3:4 <1:2 0 1 <3:2 2 3 <7:4", 4},
		{Range{}, "<3:4", "<7:2", "<3:4 <7:4 <5:2 4 5 <7:2", 6},
		{Range{End: []byte{97, 2}}, "", "", "<3:4 <1:2 0 1 <3:2 2", 3},
		{Range{EndGT: []byte{97, 2}}, "", "", "<3:4 <1:2 0 1 <3:2", 2},
	} {
		events, passed := fold(c.r, c.skip, c.stop)
		if got := strings.Join(events, " "); got != c.want || passed != c.passed {
			t.Errorf("%+v skip %s stop %s: %s, %d passed; want %s, %d", c.r, c.skip, c.stop, got, passed, c.want, c.passed)
		}
	}
}

// TestCacheIsBounded reads a tree many times as large as the cache and looks at what the
// cache says it holds, and that it holds what was used last.
func TestCacheIsBounded(t *testing.T) {
	const limit = 100_000
	f := newFile(t)
	cache := NewCache(limit)
	tree := New(f, Pointer{}, Options{Cache: cache, Reducer: Count{}, Compression: file.DefaultCompression})
	var rows []Row
	for i := range 20_000 {
		rows = append(rows, Row{etf.AppendInt64(nil, int64(i)), etf.AppendBinary(nil, bytes.Repeat([]byte{byte(i)}, 30))})
	}
	var err error
	if tree, err = tree.Add(rows); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(rows); i += 7 {
		if _, found, err := tree.Get(rows[i].Key); !found || err != nil {
			t.Fatal(found, err)
		}
		if b := cache.Bytes(); b > limit {
			t.Fatalf("%d bytes in a cache of %d", b, limit)
		}
	}
	if cache.Bytes() < limit/2 {
		t.Errorf("%d bytes in a cache of %d", cache.Bytes(), limit)
	}
	reads := &counted{File: f}
	tree.chunks = reads
	for range 100 {
		if _, found, err := tree.Get(rows[0].Key); !found || err != nil {
			t.Fatal(found, err)
		}
	}
	if reads.n > 4 {
		t.Errorf("%d reads of the file for one row a hundred times", reads.n)
	}
}

// counted counts reads.
type counted struct {
	*file.File
	n int
}

func (c *counted) ReadChunk(dst []byte, ptr int64) ([]byte, file.ChunkInfo, error) {
	c.n++
	return c.File.ReadChunk(dst, ptr)
}

// failing is a reducer that fails at some call.
type failing struct {
	Count
	left *int
}

func (f failing) Reduce(dst []byte, rows []Row) ([]byte, error) {
	if *f.left--; *f.left < 0 {
		return dst, ErrReduce
	}
	return f.Count.Reduce(dst, rows)
}

// TestFailedModify fails modifications at every place there is and wants the tree, its cache
// and the next modification to know nothing of it.
func TestFailedModify(t *testing.T) {
	f := newFile(t)
	left := 1 << 30
	tree := New(f, Pointer{}, Options{Reducer: failing{left: &left}, ChunkSize: 100, Cache: NewCache(1 << 20)})
	var model []Row
	for i := range 40 {
		rows := []Row{}
		for j := range 5 {
			rows = append(rows, Row{etf.AppendInt64(nil, int64(7*i%40*5+j)), etf.AppendInt64(nil, int64(i))})
		}
		for left = 0; ; left++ {
			now := left
			end := f.Size()
			// Each attempt has other values, so that what it wrote and lost differs from
			// what the next writes in the same place.
			lost := etf.AppendInt64(nil, int64(1000+now))
			next, err := tree.Add([]Row{{rows[0].Key, lost}, {rows[4].Key, lost}})
			left = now
			if err == nil {
				if value, found, err := next.Get(rows[0].Key); err != nil || !found || !bytes.Equal(value, lost) {
					t.Fatalf("%x, %t, %v after attempt %d, which wrote %x", value, found, err, now, lost)
				}
				break
			}
			if next.Root().Ptr != tree.Root().Ptr || f.Size() != end {
				t.Fatal("a failed modification left a root, or bytes in the file")
			}
		}
		left = 1 << 30
		// The attempt that succeeded is given up: the old version is modified again.
		var err error
		if tree, err = tree.Add(rows); err != nil {
			t.Fatal(err)
		}
		model = append(model, rows...)
		slices.SortFunc(model, func(a, b Row) int { c, _ := TermOrder(a.Key, b.Key); return c })
		for _, tr := range []Tree{tree, New(f, tree.Root(), Options{Reducer: Count{}})} {
			n := 0
			for it := tr.Iter(Range{}); it.Next(); n++ {
				if n >= len(model) || !same(it.Row(), model[n]) {
					t.Fatalf("row %d is %x", n, it.Row())
				}
			}
			if n != len(model) {
				t.Fatalf("%d rows of %d", n, len(model))
			}
		}
	}
}

// TestReadersBesideWriter reads versions of a tree from several goroutines while others are
// made: each shows what it had when it was made. It is for the race detector.
func TestReadersBesideWriter(t *testing.T) {
	f := newFile(t)
	tree := New(f, Pointer{}, Options{Reducer: Count{}, ChunkSize: 200, Cache: NewCache(10_000), Order: ViewOrder()})
	done := make(chan error, 50)
	var err error
	for i := range 50 {
		key := mustParse(fmt.Sprintf(`{<<"K%d">>,<<"doc">>}`, i))
		if tree, err = tree.Add([]Row{{key, etf.AppendInt64(nil, int64(i))}}); err != nil {
			t.Fatal(err)
		}
		version, rows := tree, i+1
		go func() {
			n, err := readings["iter"](version)
			if err == nil && n != rows {
				err = fmt.Errorf("%d rows of %d", n, rows)
			}
			if _, found, e := version.Get(key); err == nil && (!found || e != nil) {
				err = fmt.Errorf("the last row: %t, %v", found, e)
			}
			done <- err
		}()
	}
	for range 50 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// TestAllocations pins what reading allocates: nothing for a row of a fold, a few buffers for
// all of it, and nothing for a row that is found by way of the cache.
func TestAllocations(t *testing.T) {
	f := newFile(t)
	tree := New(f, Pointer{}, Options{Reducer: Count{}, Compression: file.DefaultCompression, Cache: NewCache(64 << 20)})
	var rows []Row
	for i := range 20_000 {
		rows = append(rows, Row{etf.AppendInt64(nil, int64(i)), etf.AppendBinary(nil, []byte("value"))})
	}
	var err error
	if tree, err = tree.Add(rows); err != nil {
		t.Fatal(err)
	}
	uncached := New(f, tree.Root(), Options{Reducer: Count{}})
	for _, reverse := range []bool{false, true} {
		r := Range{Reverse: reverse, Start: rows[9].Key, End: rows[19_990].Key}
		if reverse {
			r.Start, r.End = r.End, r.Start
		}
		n := 0
		allocs := testing.AllocsPerRun(5, func() {
			n = 0
			it := uncached.Iter(r)
			for it.Next() {
				n += len(it.Key()) / len(it.Key())
			}
			if it.Err() != nil || n != 19_982 {
				t.Fatal(n, it.Err())
			}
		})
		if allocs > 60 {
			t.Errorf("%v allocations for %d rows", allocs, n)
		}
	}
	if allocs := testing.AllocsPerRun(100, func() {
		if _, found, err := tree.Get(rows[777].Key); !found || err != nil {
			t.Fatal(found, err)
		}
	}); allocs != 0 {
		t.Errorf("%v allocations for a row from the cache", allocs)
	}
}
