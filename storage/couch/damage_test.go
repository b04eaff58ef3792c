package couch

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"scanode/storage"
)

// damaged makes a closed store of some batches and returns its disk and its file's bytes.
func damaged(t testing.TB, batches int) (*vfs.MemFS, []byte) {
	t.Helper()
	fs := newMem(t)
	s := openIn(t, fs, "log_batches", int64(40))
	for i := range batches {
		if err := s.Apply(batchOf(i), true); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return fs, contents(t, fs)
}

// TestFlippedBytes changes bytes of a store's file. What is read then is what was written:
// all rows, those as of an earlier header, or an error that says corruption. It is never
// another row, and the store that is opened in spite of it takes writes.
func TestFlippedBytes(t *testing.T) {
	t.Parallel()
	const batches = 100
	fs, whole := damaged(t, batches)
	rng := newRand(t)
	outcomes := map[string]int{}
	step := 2 * len(whole) / 1500
	if testing.Short() {
		step *= 10
	}
	for at := rng.IntN(step); at < len(whole); at += 1 + rng.IntN(step) {
		b := bytes.Clone(whole)
		b[at] ^= byte(1 + rng.IntN(255))
		clone := withContents(t, fs, b)
		st, err := New(Config{FS: clone}).Open("/data", storage.Options{Engine: map[string]any{"compact_percent": int64(0)}})
		if err != nil {
			if !errors.Is(err, storage.ErrCorrupt) && !errors.Is(err, storage.ErrForeign) {
				t.Fatalf("byte %d: open: %v", at, err)
			}
			outcomes["refused"]++
			continue
		}
		got := map[string]string{}
		it, err := st.NewIter(storage.Range{})
		if err != nil {
			t.Fatal(err)
		}
		for ok := it.First(); ok; ok = it.Next() {
			got[string(it.Key())] = string(it.Value())
		}
		switch err := it.Close(); {
		case errors.Is(err, storage.ErrCorrupt):
			outcomes["read error"]++
			if stats, err := st.Stats(); err == nil && stats.ReadErrors == 0 {
				t.Fatalf("byte %d: no read error is counted", at)
			}
		case err != nil:
			t.Fatalf("byte %d: %v", at, err)
		default:
			n := -1
			if last, ok := got["last"]; ok {
				fmt.Sscan(last, &n)
			}
			want := batchRows(n + 1)
			for k, v := range want {
				if got[k] != v {
					t.Fatalf("byte %d: row %q is wrong", at, k)
				}
			}
			if len(got) != len(want) {
				t.Fatalf("byte %d: %d rows, want %d", at, len(got), len(want))
			}
			outcomes[fmt.Sprintf("all rows: %v", n+1 == batches)]++
			if err := st.Apply(batchOf(n+1), true); err != nil && !errors.Is(err, storage.ErrCorrupt) {
				t.Fatalf("byte %d: write: %v", at, err)
			}
		}
		if err := st.Close(); err != nil && !errors.Is(err, storage.ErrCorrupt) {
			t.Fatalf("byte %d: close: %v", at, err)
		}
	}
	t.Log(outcomes)
	if outcomes["read error"] == 0 || outcomes["all rows: true"] == 0 {
		t.Fatal(outcomes)
	}
}

// TestRepairOfDamage: a repair keeps what can be read and says what cannot; what it was
// made from is kept.
func TestRepairOfDamage(t *testing.T) {
	t.Parallel()
	const batches = 100
	fs, whole := damaged(t, batches)
	s := openIn(t, withContents(t, fs, whole))
	root := s.writer.tree.Root().Ptr
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	all := batchRows(batches)
	rng := newRand(t)
	less := 0
	for range 150 {
		b := bytes.Clone(whole)
		at := int(root) - rng.IntN(12000) // leaves and the root
		b[at] ^= 0xFF
		clone := withContents(t, fs, b)
		e := New(Config{FS: clone})
		r, err := e.Repair("/data")
		if err != nil {
			t.Fatalf("byte %d: %v", at, err)
		}
		st, err := e.Open("/data", storage.Options{})
		if err != nil {
			t.Fatalf("byte %d: %v", at, err)
		}
		it, err := st.NewIter(storage.Range{})
		if err != nil {
			t.Fatal(err)
		}
		rows := int64(0)
		old := false // the root was damaged, and the rows are those of the header before
		for ok := it.First(); ok; ok = it.Next() {
			rows++
			if k := string(it.Key()); k == "last" && string(it.Value()) != all[k] {
				old = true
			} else if !old && k[0] == 'n' && string(it.Value()) != all[k] && len(r.Lost) == 0 {
				t.Fatalf("byte %d: row %q is wrong", at, k)
			}
		}
		if err := it.Close(); err != nil || rows != r.Rows {
			t.Fatalf("byte %d: %d rows, %+v, %v", at, rows, r, err)
		}
		if rows != int64(len(all)) {
			if less++; len(r.Lost) == 0 {
				t.Fatalf("byte %d: %d rows of %d, and nothing is said to be lost", at, rows, len(all))
			}
		}
		f, err := clone.Open(r.Aside + "/" + fileName)
		if err != nil {
			t.Fatal(err)
		}
		kept := make([]byte, len(b))
		if n, err := f.ReadAt(kept, 0); n != len(b) || !bytes.Equal(kept, b) {
			t.Fatalf("byte %d: what was put aside is not what there was: %v", at, err)
		}
		f.Close()
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if less == 0 {
		t.Fatal("nothing was damaged")
	}
}

// TestCutShort: making, repairing and destroying a store is cut short by loss of power at
// every step. It is there whole afterwards, or not at all.
func TestCutShort(t *testing.T) {
	t.Parallel()
	rng := newRand(t)
	type work struct {
		name string
		do   func(e *Engine) error
		old  int // batches before
	}
	for _, w := range []work{
		{"create", func(e *Engine) error {
			s, err := e.Open("/data", storage.Options{CreateIfMissing: true})
			if err == nil {
				err = s.Close()
			}
			return err
		}, -1},
		{"repair", func(e *Engine) error { _, err := e.Repair("/data"); return err }, 30},
		{"destroy", func(e *Engine) error { return e.Destroy("/data") }, 30},
	} {
		mem := newMem(t)
		if w.old >= 0 {
			mem, _ = damaged(t, w.old)
		}
		var losses []*vfs.MemFS
		steps := &stepper{}
		steps.step = func(errorfs.Op) error {
			for _, percent := range []int{0, 50, 100} {
				losses = append(losses, mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng}))
			}
			return nil
		}
		if err := w.do(New(Config{FS: errorfs.Wrap(mem, steps)})); err != nil {
			t.Fatal(err)
		}
		if len(losses) < 15 {
			t.Fatalf("%s: %d losses", w.name, len(losses))
		}
		for i, fs := range losses {
			for range 2 { // what was finished stays
				st, err := New(Config{FS: fs}).Open("/data", storage.Options{CreateIfMissing: true})
				if err != nil {
					t.Fatalf("%s, step %d: %v", w.name, i, err)
				}
				empty, err := st.IsEmpty()
				if err != nil {
					t.Fatal(err)
				}
				switch {
				case !empty && w.old > 0:
					wantRows(t, st, batchRows(w.old))
				case !empty || w.name == "repair":
					t.Fatalf("%s, step %d: empty %v", w.name, i, empty)
				}
				if err := st.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
