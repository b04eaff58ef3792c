package lsm

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/storage"
)

// passed counts what the iterator passes over to the first row.
func passed(t *testing.T, s *store) int {
	it, err := s.NewIter(storage.Range{})
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	it.First()
	stats := it.(*iter).it.Stats()
	return stats.ForwardStepCount[pebble.InternalIterCall]
}

// TestIsEmptyOverDeletions: one call has the deletions before the first row cleaned
// up, so that later ones do not meet them. What is counted are steps, not time.
func TestIsEmptyOverDeletions(t *testing.T) {
	for _, left := range []string{"", "z"} {
		e := engine(t, vfs.NewMem())
		st, err := e.Open("/db", storage.Options{CreateIfMissing: true})
		if err != nil {
			t.Fatal(err)
		}
		s := st.(*store)
		const rows = 30_000
		key := func(i int) []byte { return fmt.Appendf(nil, "%06d", i) }
		var puts, deletes []storage.Op
		for i := range rows {
			puts = append(puts, storage.Op{Kind: storage.Put, Key: key(i), Value: []byte("v")})
			deletes = append(deletes, storage.Op{Kind: storage.Delete, Key: key(i)})
		}
		for _, ops := range [][]storage.Op{puts, deletes} {
			if err := s.Apply(ops, false); err != nil {
				t.Fatal(err)
			}
		}
		if left != "" {
			mustPut(t, s, left, "v")
		}
		if n := passed(t, s); n < rows {
			t.Fatalf("%d steps before", n)
		}
		if empty, err := s.IsEmpty(); err != nil || empty != (left == "") {
			t.Fatalf("%v, %v", empty, err)
		}
		// The cleaning is a compaction, which pebble may follow by another. The test's
		// own deadline ends it if this never gets few.
		for passed(t, s) > rows/100 {
			runtime.Gosched()
		}
		if empty, err := s.IsEmpty(); err != nil || empty != (left == "") {
			t.Fatalf("%v, %v", empty, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
