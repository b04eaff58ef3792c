package scan

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"scanode/etf"
	"scanode/storage"
	"scanode/storage/lsm"
)

// pageRows decodes a page of keys.
func pageRows(t interface{ Fatal(...any) }, page []byte) (keys []string) {
	msg, err := etf.SkipVersion(page)
	if err != nil {
		t.Fatal(err)
	}
	v, rest, err := etf.Decode(msg, etf.DefaultLimits)
	if err != nil || len(rest) > 0 {
		t.Fatal(err, rest)
	}
	for _, row := range v.(etf.List) {
		keys = append(keys, string(row.([]byte)))
	}
	return keys
}

// walk is a Cursor over a sorted slice, written without cleverness: the oracle.
// The position is between the rows gap-1 and gap, or on row at.
type walk struct {
	keys []string
	at   int // -1: before the first; len(keys): behind the last
}

func (w *walk) page(a Anchor, key string, maxRows int) (rows []string, done bool) {
	i := 0
	switch a {
	case AtNext:
		i = w.at + 1
	case AtPrev:
		i = w.at - 1
	case AtFirst:
		i = 0
	case AtLast:
		i = len(w.keys) - 1
	case FromKey, AfterKey:
		for i = 0; i < len(w.keys) && (w.keys[i] < key || a == AfterKey && w.keys[i] == key); i++ {
		}
	case BeforeKey, UpToKey:
		for i = len(w.keys) - 1; i >= 0 && (w.keys[i] > key || a == BeforeKey && w.keys[i] == key); i-- {
		}
	}
	step := 1
	if a.backwards() {
		step = -1
	}
	for ; i >= 0 && i < len(w.keys); i += step {
		if len(rows) == maxRows {
			return rows, false
		}
		rows = append(rows, w.keys[i])
		w.at = i
	}
	if len(rows) == 0 {
		w.at = max(-1, min(i, len(w.keys)))
	}
	return rows, len(rows) < maxRows
}

// TestCursorAgainstModel: pages over a store that goes on being written to, beside a
// naive walk over its keys as they were. Rests come in between.
func TestCursorAgainstModel(t *testing.T) {
	engine := lsm.New(lsm.Config{})
	defer engine.Close()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		store, err := engine.Open(fmt.Sprintf("%s/%d", t.TempDir(), n), storage.Options{CreateIfMissing: true})
		if err != nil {
			rt.Fatal(err)
		}
		defer store.Close()
		key := rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 'a', 'b', 255}), 0, 3), func(b []byte) string { return string(b) })
		keys := rapid.SliceOfNDistinct(key, 0, 12, rapid.ID[string]).Draw(rt, "keys")
		slices.Sort(keys)
		write := func(kind storage.Kind, key string) {
			if err := store.Apply([]storage.Op{{Kind: kind, Key: []byte(key), Value: []byte("v")}}, false); err != nil {
				rt.Fatal(err)
			}
		}
		for _, k := range keys {
			write(storage.Put, k)
		}
		view, err := store.Snapshot()
		if err != nil {
			rt.Fatal(err)
		}
		defer view.Close()
		c := NewCursor(view, Keys)
		defer c.Rest()
		model := walk{keys: keys, at: -1}
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			switch rapid.IntRange(0, 9).Draw(rt, "what") {
			case 0:
				if err := c.Rest(); err != nil {
					rt.Fatal(err)
				}
			case 1:
				write(storage.Put, key.Draw(rt, "put"))
			case 2:
				write(storage.Delete, key.Draw(rt, "delete"))
			default:
				a := Anchor(rapid.IntRange(0, int(UpToKey)).Draw(rt, "anchor"))
				k := key.Draw(rt, "key")
				maxRows := rapid.IntRange(1, 5).Draw(rt, "rows")
				page, done, err := c.Page([]byte("head"), a, []byte(k), maxRows, 1<<20)
				if err != nil {
					rt.Fatal(err)
				}
				want, wantDone := model.page(a, k, maxRows)
				if got := pageRows(rt, page[len("head"):]); !slices.Equal(got, want) || done != wantDone || !bytes.HasPrefix(page, []byte("head")) {
					rt.Fatalf("anchor %d, key %q, %d rows of %q: got %q, done %v, want %q, %v", a, k, maxRows, keys, got, done, want, wantDone)
				}
			}
		}
	})
}

// TestCursorBytes: a page ends at its size, exceeding it by less than a row.
func TestCursorBytes(t *testing.T) {
	var src ordered
	for i := range 100 {
		src.keys = append(src.keys, fmt.Sprintf("%04d", i))
	}
	const row = 1 + 4 + 4 // tag, length, key
	for _, maxBytes := range []int{0, 1, row, 100, 500, 1 << 20} {
		c := NewCursor(&src, Keys)
		page, done, err := c.Page(nil, AtFirst, nil, 1000, maxBytes)
		if err != nil {
			t.Fatal(err)
		}
		rows := len(pageRows(t, page))
		if over := len(page) - maxBytes; over >= row && rows > 1 || over < 0 && !done {
			t.Errorf("%d bytes asked for: %d bytes, %d rows, done %v", maxBytes, len(page), rows, done)
		}
	}
}

// TestCursorFails: after a failure the position is what it was, and no page is
// handed out; and a cancelled cursor stays so.
func TestCursorFails(t *testing.T) {
	src := ordered{keys: []string{"a", "b", "c", "d"}}
	c := NewCursor(&src, Keys)
	if _, _, err := c.Page(nil, AtFirst, nil, 1, 1000); err != nil {
		t.Fatal(err)
	}
	src.failAt = "c"
	page, _, err := c.Page([]byte("x"), AtNext, nil, 10, 1000)
	if !errors.Is(err, errDisk) || string(page) != "x" {
		t.Fatalf("got %q, %v", page, err)
	}
	src.failAt = ""
	page, done, err := c.Page(nil, AtNext, nil, 10, 1000)
	if got := pageRows(t, page); err != nil || !done || !slices.Equal(got, []string{"b", "c", "d"}) {
		t.Fatalf("got %q, %v, %v", got, done, err)
	}
	if src.open != 1 {
		t.Errorf("%d iterators are open, want 1", src.open)
	}
	gone := errors.New("gone")
	c.Cancel(gone)
	c.Cancel(errDisk)
	if _, _, err := c.Page(nil, AtFirst, nil, 10, 1000); err != gone {
		t.Errorf("after Cancel: %v", err)
	}
	if src.open != 0 {
		t.Errorf("%d iterators are open, want none", src.open)
	}
}

// TestCursorStays: going on beside the last row costs no seek.
func TestCursorStays(t *testing.T) {
	src := ordered{keys: []string{"a", "b", "c", "d", "e", "f"}}
	c := NewCursor(&src, Keys)
	var got []string
	for _, step := range []struct {
		a   Anchor
		key string
	}{{FromKey, "b"}, {AtNext, ""}, {AtPrev, ""}, {AfterKey, "b"}, {FromKey, "c"}, {UpToKey, "c"}, {BeforeKey, "c"}} {
		page, _, err := c.Page(nil, step.a, []byte(step.key), 1, 1000)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, pageRows(t, page)...)
	}
	if want := []string{"b", "c", "b", "c", "c", "c", "b"}; !slices.Equal(got, want) || src.seeks != 1 {
		t.Errorf("got %q with %d seeks, want %q with 1", got, src.seeks, want)
	}
}

// ordered is a storage.Reader over sorted keys. Keys it returned are scribbled over
// at the next move.
type ordered struct {
	keys   []string
	failAt string
	open   int
	seeks  int
}

func (o *ordered) Get(dst, _ []byte) ([]byte, error) { return dst, storage.ErrNotFound }
func (o *ordered) NewIter(storage.Range) (storage.Iter, error) {
	o.open++
	return &orderedIter{of: o, at: -1}, nil
}

type orderedIter struct {
	of  *ordered
	at  int
	key []byte
	err error
}

func (it *orderedIter) to(i int) bool {
	for j := range it.key {
		it.key[j] = 0xee
	}
	it.at = i
	if !it.Valid() {
		return false
	}
	if it.key = []byte(it.of.keys[i]); string(it.key) == it.of.failAt {
		it.err = errDisk
	}
	return it.err == nil
}
func (it *orderedIter) Valid() bool { return it.at >= 0 && it.at < len(it.of.keys) && it.err == nil }
func (it *orderedIter) First() bool { return it.to(0) }
func (it *orderedIter) Last() bool  { return it.to(len(it.of.keys) - 1) }
func (it *orderedIter) Next() bool  { return it.to(it.at + 1) }
func (it *orderedIter) Prev() bool  { return it.to(it.at - 1) }
func (it *orderedIter) SeekGE(key []byte) bool {
	it.of.seeks++
	i, _ := slices.BinarySearch(it.of.keys, string(key))
	return it.to(i)
}
func (it *orderedIter) SeekLT(key []byte) bool {
	it.of.seeks++
	i, _ := slices.BinarySearch(it.of.keys, string(key))
	return it.to(i - 1)
}
func (it *orderedIter) Key() []byte   { return it.key }
func (it *orderedIter) Value() []byte { return []byte("v") }
func (it *orderedIter) Err() error    { return it.err }
func (it *orderedIter) Close() error  { it.of.open--; return it.err }

// TestCursorAllocations: a page of many rows allocates what a page of one does.
func TestCursorAllocations(t *testing.T) {
	engine := lsm.New(lsm.Config{})
	defer engine.Close()
	store, err := engine.Open(t.TempDir()+"/db", storage.Options{CreateIfMissing: true})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	var ops []storage.Op
	for i := range 2000 {
		ops = append(ops, storage.Op{Kind: storage.Put, Key: fmt.Appendf(nil, "%08d", i), Value: bytes.Repeat([]byte("v"), 100)})
	}
	if err := store.Apply(ops, false); err != nil {
		t.Fatal(err)
	}
	c := NewCursor(store, KV)
	defer c.Rest()
	buf := make([]byte, 0, 1<<20)
	allocations := func(rows int) float64 {
		return testing.AllocsPerRun(100, func() {
			for _, a := range []Anchor{AtFirst, AtNext, AtLast, AtPrev} {
				if _, _, err := c.Page(buf, a, nil, rows, 1<<20); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	if one, many := allocations(1), allocations(500); many > one+1 {
		t.Errorf("pages of one row allocate %v times, of 500 rows %v times", one, many)
	}
}
