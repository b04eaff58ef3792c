package scan

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"scanode/storage"
	"scanode/storage/lsm"
)

// keysIn returns the keys of a range and their bytes, values included.
func keysIn(t *testing.T, st storage.Store, r storage.Range) (keys [][]byte, size int) {
	t.Helper()
	it, err := st.NewIter(r)
	if err != nil {
		t.Fatal(err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		keys = append(keys, bytes.Clone(it.Key()))
		size += len(it.Key()) + len(it.Value())
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	return keys, size
}

// TestSplit: the parts hold what the whole holds, in its order, and are of similar
// size, in memory and on disk, with even and with skewed keys.
func TestSplit(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	engine := lsm.New(lsm.Config{})
	t.Cleanup(engine.Close)
	for _, c := range []struct {
		name  string
		rows  int
		key   func(i int) []byte
		value int
		slack float64 // the largest part against the mean
	}{
		{"none", 0, nil, 0, 0},
		{"one", 1, func(int) []byte { return nil }, 10, 0},
		{"memory", 2000, func(i int) []byte { return fmt.Appendf(nil, "k%06d", i) }, 100, 1.1},
		{"disk", 20000, func(i int) []byte { return fmt.Appendf(nil, "k%06d", i) }, 700, 2},
		{"skewed", 20000, func(i int) []byte {
			return append(bytes.Repeat([]byte{'a'}, i%7), byte(rnd.IntN(256)), byte(i>>8), byte(i), byte(rnd.IntN(3)))
		}, 700, 3},
	} {
		st, err := engine.Open(filepath.Join(t.TempDir(), c.name), storage.Options{CreateIfMissing: true, Engine: map[string]any{"write_buffer_size": int64(1 << 20)}})
		if err != nil {
			t.Fatal(err)
		}
		var ops []storage.Op
		for i := range c.rows {
			value := make([]byte, c.value)
			for j := range value {
				value[j] = byte(rnd.Uint32())
			}
			ops = append(ops, storage.Op{Key: c.key(i), Value: value})
			if len(ops) == 1000 || i == c.rows-1 {
				if err := st.Apply(ops, false); err != nil {
					t.Fatal(err)
				}
				ops = nil
			}
		}
		for _, r := range []storage.Range{{}, {Start: []byte("b"), StartExclusive: true, End: []byte("k01"), EndInclusive: true}, {Start: []byte("z"), End: []byte("a")}} {
			whole, size := keysIn(t, st, r)
			for _, n := range []int{1, 2, 3, 16} {
				parts, err := Split(st, r, n)
				if err != nil || len(parts) == 0 || len(parts) > n {
					t.Fatalf("%s: %d parts of %d, %v", c.name, len(parts), n, err)
				}
				var joined [][]byte
				largest := 0
				for _, part := range parts {
					keys, size := keysIn(t, st, part)
					joined, largest = append(joined, keys...), max(largest, size)
				}
				if !bytes.Equal(bytes.Join(whole, []byte{0}), bytes.Join(joined, []byte{0})) {
					t.Errorf("%s, %d parts: %d keys, the whole has %d", c.name, n, len(joined), len(whole))
				}
				if mean := float64(size) / float64(n); len(whole) > 1000 && float64(largest) > c.slack*mean {
					t.Errorf("%s %v: the largest of %d parts has %d bytes, the mean is %.0f", c.name, r, n, largest, mean)
				}
			}
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
