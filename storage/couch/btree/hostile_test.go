package btree

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/etf"
	"scanode/storage/couch/file"
)

// forge appends payload as it is and returns where it went.
func forge(t testing.TB, f *file.File, payload []byte) int64 {
	t.Helper()
	c, err := f.Append([][]byte{payload})
	if err != nil {
		t.Fatal(err)
	}
	return c[0].Ptr
}

// kv is a leaf, kp an inner node, of texts of rows.
func kv(rows string) []byte { return versioned(mustParse("{kv_node," + rows + "}")) }
func kp(rows string) []byte { return versioned(mustParse("{kp_node," + rows + "}")) }

// readings are all ways to read below a root. Each returns how many rows it saw.
var readings = map[string]func(Tree) (int, error){
	"iter": func(t Tree) (n int, err error) {
		it := t.Iter(Range{})
		for it.Next() {
			n++
		}
		return n, it.Err()
	},
	"reverse": func(t Tree) (n int, err error) {
		it := t.Iter(Range{Reverse: true})
		for it.Next() {
			n++
		}
		return n, it.Err()
	},
	"reduce by row": func(t Tree) (n int, err error) {
		return n, t.FoldReduce(Range{}, func(_, _ []byte) (bool, error) { return false, nil }, func([]byte, Partial) (Step, error) {
			n++
			return Next, nil
		})
	},
	"verify": func(t Tree) (int, error) {
		sum, err := t.Verify(Check{})
		return int(sum.Rows), err
	},
	"verify on": func(t Tree) (int, error) {
		var first error
		sum, err := t.Verify(Check{Fault: func(e *Error) error {
			if first == nil {
				first = e
			}
			return nil
		}})
		return int(sum.Rows), errors.Join(first, err)
	},
}

// TestForgedNodes reads nodes that no writer makes, in the root and below a good one, and
// wants the kind of error and the place.
func TestForgedNodes(t *testing.T) {
	deep := []byte{etf.Version}
	for range 100_000 {
		deep = append(deep, etf.TagSmallTuple, 1)
	}
	huge := append(slices.Clone(kv("[{1,1}]")[:13]), etf.TagList, 0xff, 0xff, 0xff, 0xff, etf.TagSmallTuple, 2)
	for _, c := range []struct {
		name    string
		payload []byte
		err     error
	}{
		{"no bytes", nil, file.ErrCompression},
		{"no term", []byte{etf.Version, 0}, ErrNode},
		{"unknown compression", []byte{7, 7, 7}, file.ErrCompression},
		{"an atom", versioned(mustParse("kv_node")), ErrNode},
		{"another kind", versioned(mustParse("{kx_node,[{1,1}]}")), ErrNode},
		{"three elements", versioned(mustParse("{kv_node,[{1,1}],x}")), ErrNode},
		{"empty", kv("[]"), ErrNode},
		{"improper", kv("[{1,1}|x]"), ErrNode},
		{"a string", kv("[1,2,3]"), ErrNode},
		{"rows of three", kv("[{1,1},{2,2,2}]"), ErrNode},
		{"an atom for a row", kv("[{1,1},x]"), ErrNode},
		{"claimed rows", huge, ErrNode},
		{"cut off", kv("[{1,1},{2,2}]")[:27], ErrNode},
		{"more behind it", append(kv("[{1,1}]"), etf.TagNil), ErrNode},
		{"deep", deep, ErrNode},
		{"out of order", kv("[{2,1},{1,1}]"), ErrOrder},
		{"a database header", versioned(mustParse("{db_header,8,0,0,nil,nil,nil,nil,nil,nil,1000,<<\"uuid\">>,[],0,1000,nil}")), ErrNode},
		{"no pointer", kp("[{1,1}]"), ErrPointer},
		{"nil", kp("[{1,nil}]"), ErrPointer},
		{"a negative offset", kp("[{1,{-1,[],1}}]"), ErrPointer},
		{"a large offset", kp("[{1,{36893488147419103232,[],1}}]"), ErrPointer},
		{"a negative size", kp("[{1,{0,[],-1}}]"), ErrPointer},
		{"a pointer to behind it", kp("[{1,{1000000,[],1}}]"), ErrPointer},
		{"last keys the same", kp("[{1,{0,[],nil}},{1,{0,[],nil}}]"), ErrOrder},
		{"last keys out of order", kp("[{2,{0,[],nil}},{1,{0,[],nil}}]"), ErrOrder},
		{"last key too small", kp("[{0,{0,[],nil}},{1,{0,[],nil}}]"), ErrLastKey},
		{"rows in two places", kp("[{1,{0,[],nil}},{2,{0,[],nil}}]"), nil},
		{"a pointer into a chunk", kp("[{1,{3,[],nil}}]"), nil},
	} {
		for _, below := range []bool{false, true} {
			for name, read := range readings {
				t.Run(fmt.Sprintf("%s/below=%t/%s", c.name, below, name), func(t *testing.T) {
					f := newFile(t)
					forge(t, f, kv("[{1,1}]"))
					ptr := forge(t, f, c.payload)
					var path []int
					if below {
						good := forge(t, f, kv("[{-1,1}]"))
						ptr = forge(t, f, kp(fmt.Sprintf("[{-1,{%d,[],nil}},{100,{%d,[],nil}}]", good, ptr)))
						path = []int{1}
					}
					_, err := read(New(f, Pointer{Ptr: ptr, Reduction: []byte{etf.TagNil}, Size: NoSize}, Options{}))
					var e *Error
					if !errors.As(err, &e) || c.err != nil && !errors.Is(err, c.err) {
						t.Fatalf("%v, want %v", err, c.err)
					}
					if len(e.Path) < len(path) || !slices.Equal(e.Path[:len(path)], path) {
						t.Errorf("%v, want a path from %v on", e, path)
					}
				})
			}
		}
	}
}

// TestPointerToItself wants an error for nodes that lead to themselves, or to one another.
func TestPointerToItself(t *testing.T) {
	f := newFile(t)
	forge(t, f, kv("[{1,1}]"))
	at := f.Size()
	forge(t, f, kp(fmt.Sprintf("[{1,{%d,[],nil}}]", at)))
	for name, read := range readings {
		if _, err := read(New(f, Pointer{Ptr: at, Reduction: []byte{etf.TagNil}, Size: NoSize}, Options{})); !errors.Is(err, ErrPointer) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDepth reads the deepest tree there may be, and one that is deeper.
func TestDepth(t *testing.T) {
	f := newFile(t)
	ptr := forge(t, f, kv("[{1,1}]"))
	for depth := 2; depth <= MaxDepth+1; depth++ {
		ptr = forge(t, f, kp(fmt.Sprintf("[{1,{%d,[],nil}}]", ptr)))
		if depth < MaxDepth {
			continue
		}
		tree := New(f, Pointer{Ptr: ptr, Reduction: []byte{etf.TagNil}, Size: NoSize}, Options{})
		for name, read := range readings {
			n, err := read(tree)
			if depth == MaxDepth && (n != 1 || err != nil) || depth > MaxDepth && !errors.Is(err, ErrDepth) {
				t.Errorf("depth %d, %s: %d rows, %v", depth, name, n, err)
			}
		}
		_, found, err := tree.Get([]byte{97, 1})
		if depth == MaxDepth && (!found || err != nil) || depth > MaxDepth && !errors.Is(err, ErrDepth) {
			t.Errorf("depth %d: %t, %v", depth, found, err)
		}
		_, err = tree.Lookup([][]byte{{97, 1}})
		if depth == MaxDepth && err != nil || depth > MaxDepth && !errors.Is(err, ErrDepth) {
			t.Errorf("depth %d: %v", depth, err)
		}
		_, err = tree.Add([]Row{{[]byte{97, 2}, []byte{97, 2}}})
		if depth == MaxDepth && err != nil || depth > MaxDepth && !errors.Is(err, ErrDepth) {
			t.Errorf("depth %d: %v", depth, err)
		}
	}
}

// TestDeepValue keeps a value that is nested as deep as the revision tree of a document with
// a thousand revisions, and deeper, which package etf refuses.
func TestDeepValue(t *testing.T) {
	var value []byte
	for range 5000 {
		value = append(value, etf.TagSmallTuple, 2, etf.TagNil, etf.TagList, 0, 0, 0, 1)
	}
	value = append(value, etf.TagNil)
	for range 5000 {
		value = append(value, etf.TagNil)
	}
	if _, err := etf.Skip(value); !errors.Is(err, etf.ErrLimit) {
		t.Fatal("not deep:", err)
	}
	f := newFile(t)
	tree := New(f, Pointer{}, Options{Reducer: digestReducer{}, Compression: file.DefaultCompression})
	key := mustParse(`<<"doc">>`)
	tree, err := tree.Add([]Row{{key, value}, {mustParse(`<<"other">>`), mustParse("1")}})
	if err == nil {
		// The change of a neighbour compares the values, and may use the old leaf.
		tree, err = tree.Add([]Row{{mustParse(`<<"z">>`), mustParse("1")}, {mustParse(`<<"a">>`), mustParse("1")}})
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tree.Verify(Check{}); err != nil {
		t.Fatal(err)
	}
	if got, found, err := tree.Get(key); !found || err != nil || string(got) != string(value) {
		t.Fatal(len(got), found, err)
	}
}

// TestDiamonds reads nodes of two children on forty levels, all of which have two parents:
// walking all ways through them would take 2^40 steps.
func TestDiamonds(t *testing.T) {
	f := newFile(t)
	a, b := forge(t, f, kv("[{1,1}]")), forge(t, f, kv("[{2,1}]"))
	for range 40 {
		rows := kp(fmt.Sprintf("[{1,{%d,[],nil}},{2,{%d,[],nil}}]", a, b))
		a, b = forge(t, f, rows), forge(t, f, rows)
	}
	for name, read := range readings {
		if _, err := read(New(f, Pointer{Ptr: a, Reduction: []byte{etf.TagNil}, Size: NoSize}, Options{})); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestStoredSummaries wants Verify to see what reading does not.
func TestStoredSummaries(t *testing.T) {
	for text, want := range map[string]error{
		"[{1,{0,1,29}},{3,{29,2,34}}]":     nil,
		"[{1,{0,1,29}},{3,{29,2,nil}}]":    nil,
		"[{1,{0,1,29}},{3,{29,3,34}}]":     ErrReduction,
		"[{1,{0,1,29}},{3,{29,2,33}}]":     ErrSize,
		"[{1.0,{0,1,29}},{3,{29,2,34}}]":   ErrLastKey,
		"[{1,{0,1,29}},{4,{29,2,34}}]":     ErrLastKey,
		"[{1,{0,[],29}},{3,{29,2,34}}]":    ErrReduction,
		"[{1,{0,1,29}},{3,{29,2}}]":        nil,
		"[{1,{0,1,29}},{3,{1000,2,34}}]":   ErrPointer,
		"[{0,{0,1,29}},{3,{29,2,34}}]":     ErrLastKey,
		"[{2,{0,1,29}},{3,{29,2,34}}]":     ErrLastKey,
		"[{1,{0,1,29}},{2.5,{29,2,34}}]":   ErrLastKey,
		"[{1,{0,{1},29}},{3,{29,{2},34}}]": ErrReduction,
	} {
		f := newFile(t)
		forge(t, f, kv("[{1,1}]"))
		forge(t, f, kv("[{2,1},{3,1}]"))
		ptr := forge(t, f, kp(text))
		tree := New(f, Pointer{Ptr: ptr, Reduction: etf.AppendInt64(nil, 3), Size: NoSize}, Options{Reducer: Count{}})
		if _, err := tree.Verify(Check{}); !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
		if _, err := tree.Verify(Check{Limit: ptr}); !errors.Is(err, ErrPointer) {
			t.Errorf("%s: %v for a root behind the header", text, err)
		}
		_, err := tree.Verify(Check{Separators: true, SkipReductions: true})
		if separators := text == "[{1,{0,1,29}},{4,{29,2,34}}]" || text == "[{1.0,{0,1,29}},{3,{29,2,34}}]"; separators && err != nil {
			t.Errorf("%s with separators: %v", text, err)
		}
	}
}

// TestDuplicates reads a leaf as CouchDB wrote them for batches with a key twice.
func TestDuplicates(t *testing.T) {
	f := newFile(t)
	ptr := forge(t, f, kv("[{1,a},{1,b},{2,c}]"))
	tree := New(f, Pointer{Ptr: ptr, Reduction: etf.AppendInt64(nil, 3), Size: NoSize}, Options{Reducer: Count{}})
	if n, err := readings["iter"](tree); n != 3 || err != nil {
		t.Errorf("%d rows, %v", n, err)
	}
	if _, err := tree.Verify(Check{}); !errors.Is(err, ErrDuplicate) {
		t.Errorf("verify: %v", err)
	}
}

// smallFile is a tree in a file, its root, and its rows.
type smallFile struct {
	bytes []byte
	root  Pointer
	rows  []Row
}

func makeSmallFile(t testing.TB, compression string, rows int) smallFile {
	t.Helper()
	fs := vfs.NewMem()
	f, err := file.Create(fs, "tree", file.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Reducer: digestReducer{}, ChunkSize: 120}
	o.Compression, _ = file.ParseCompression(compression)
	tree := New(f, Pointer{}, o)
	s := smallFile{}
	for i := range rows {
		s.rows = append(s.rows, Row{mustParse(fmt.Sprintf(`<<"k%02d">>`, i)), mustParse(fmt.Sprintf("{%d,%d}", i, 1000*i))})
	}
	for _, part := range [][]Row{s.rows[rows/2:], s.rows[:rows/2]} {
		if tree, err = tree.Add(part); err != nil {
			t.Fatal(err)
		}
	}
	s.root = tree.Root()
	r, err := fs.Open("tree")
	if err != nil {
		t.Fatal(err)
	}
	if s.bytes, err = io.ReadAll(r); err != nil {
		t.Fatal(err)
	}
	return s
}

// open opens a changed file. It has no header, so it is opened for reading.
func (s smallFile) open(t testing.TB, changed []byte) (Tree, *file.File) {
	t.Helper()
	fs := vfs.NewMem()
	w, err := fs.Create("tree", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(changed); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := file.OpenReadOnly(fs, "tree", file.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return New(f, s.root, Options{Reducer: digestReducer{}, ChunkSize: 120}), f
}

// check reads a changed file in all ways. Verify, whose reducer looks at every row, must
// fail or the rows be those that were written. Whatever else reads must end, with an
// error or with keys in order. It returns whether Verify found nothing.
func (s smallFile) check(t testing.TB, changed []byte) (verified bool) {
	t.Helper()
	tree, f := s.open(t, changed)
	defer f.Close()
	_, err := tree.Verify(Check{})
	it := tree.Iter(Range{})
	var last []byte
	n := 0
	for ; it.Next(); n++ {
		if last != nil {
			if c, e := TermOrder(last, it.Key()); e != nil || c > 0 {
				t.Fatalf("row %d is %x after %x", n, it.Key(), last)
			}
		}
		last = append(last[:0], it.Key()...)
		if err == nil && (n >= len(s.rows) || !same(it.Row(), s.rows[n])) {
			t.Fatalf("verified, and row %d is %x", n, it.Row())
		}
	}
	if err == nil && (it.Err() != nil || n != len(s.rows)) {
		t.Fatalf("verified, and %d rows, %v", n, it.Err())
	}
	for i, r := range s.rows {
		value, found, e := tree.Get(r.Key)
		if err == nil && (e != nil || !found || string(value) != string(r.Value)) {
			t.Fatalf("verified, and row %d is %x, %t, %v", i, value, found, e)
		}
	}
	results, e := tree.Lookup([][]byte{s.rows[0].Key, s.rows[len(s.rows)-1].Key})
	if err == nil && (e != nil || !results[0].Found || !results[1].Found) {
		t.Fatalf("verified, and %v, %v", results, e)
	}
	_, e = readings["reduce by row"](tree)
	if err == nil && e != nil {
		t.Fatalf("verified, and %v", e)
	}
	_, e = readings["reverse"](tree)
	if err == nil && e != nil {
		t.Fatalf("verified, and %v", e)
	}
	return err == nil
}

// TestEveryByte changes each byte of small files and cuts them off before each.
func TestEveryByte(t *testing.T) {
	for _, compression := range []string{"none", "snappy", "deflate_6", "zstd"} {
		s := makeSmallFile(t, compression, 16)
		s.check(t, s.bytes)
		missed := 0
		for i := range s.bytes {
			for _, x := range []byte{1 << (i % 8), 0xff} {
				changed := slices.Clone(s.bytes)
				changed[i] ^= x
				if s.check(t, changed) {
					missed++
				}
			}
			s.check(t, s.bytes[:i])
		}
		// Garbage and tags are no part of the tree.
		t.Logf("%s: %d bytes, %d of %d changes do not matter", compression, len(s.bytes), missed, 2*len(s.bytes))
	}
}
