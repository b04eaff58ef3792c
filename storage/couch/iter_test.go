package couch

import (
	"fmt"
	"strings"
	"testing"

	"scanode/storage"
)

// TestIterAllocates: a walk over the tree and writes in memory allocates nothing for a row.
func TestIterAllocates(t *testing.T) {
	s := openIn(t, newMem(t), "write_buffer_size", int64(1<<20))
	defer s.Close()
	for i := range 3000 {
		key := fmt.Appendf(nil, "%06d", i*7919%3000)
		if err := s.Apply([]storage.Op{{Key: key, Value: []byte(strings.Repeat("v", 100))}}, i == 2500); err != nil {
			t.Fatal(err)
		}
		if i == 2500 {
			if err := s.alone(s.writer.flush); err != nil {
				t.Fatal(err)
			}
		}
	}
	it, err := s.NewIter(storage.Range{})
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	walk := func() {
		for ok := it.First(); ok; ok = it.Next() {
			rows += len(it.Key()) + len(it.Value())
		}
		for ok := it.Last(); ok; ok = it.Prev() {
			rows += len(it.Key()) + len(it.Value())
		}
	}
	walk()
	if n := testing.AllocsPerRun(5, walk); n > 20 || rows != 7*2*3000*106 {
		t.Fatalf("%.0f allocations for %d rows, %d bytes", n, 6000, rows)
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
}
