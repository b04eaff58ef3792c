package lsm

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"scanode/storage"
)

// openIn opens dir, which must work, with small buffers.
func openIn(t testing.TB, e *Engine, dir string) *store {
	t.Helper()
	s, err := e.Open(dir, storage.Options{CreateIfMissing: true, Engine: smallBuffers})
	if err != nil {
		t.Fatal(err)
	}
	return s.(*store)
}

// TestFatalf calls the logger as pebble would for a broken invariant of its
// own: on a goroutine of pebble's, and below a call of ours.
func TestFatalf(t *testing.T) {
	for _, where := range []string{"background", "below a call"} {
		t.Run(where, func(t *testing.T) {
			var fatals atomic.Int64
			e := New(Config{FS: vfs.NewMem(), Logger: func(l Level, msg string) {
				if l == LevelFatal && strings.Contains(msg, "/db") && strings.Contains(msg, "invariant 7") {
					fatals.Add(1)
				}
			}})
			defer e.Close()
			s, other := openIn(t, e, "/db"), openIn(t, e, "/other")
			if err := s.Apply(put("k", "v"), true); err != nil {
				t.Fatal(err)
			}
			it, err := s.NewIter(storage.Range{})
			if err != nil || !it.First() {
				t.Fatal(err)
			}
			if where == "background" {
				done := make(chan struct{})
				go func() {
					defer close(done)
					logger{s}.Fatalf("invariant %d", 7)
					t.Error("Fatalf returned")
				}()
				<-done
			} else {
				var err error
				if !s.bounded(func() { logger{s}.Fatalf("invariant %d", 7); t.Error("Fatalf returned") }) {
					err = s.cause()
				}
				if !errors.Is(err, storage.ErrParked) {
					t.Fatal(err)
				}
			}
			if fatals.Load() != 1 {
				t.Errorf("%d log lines", fatals.Load())
			}
			wantParked(t, s, it, "invariant 7")
			if err := other.Apply(put("k", "v"), true); err != nil {
				t.Errorf("another store: %v", err)
			}
			if err := s.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			if err := it.Close(); !errors.Is(err, storage.ErrParked) && !errors.Is(err, storage.ErrClosed) {
				t.Errorf("close of the iterator: %v", err)
			}
			s = openIn(t, e, "/db")
			if v, err := s.Get(nil, []byte("k")); err != nil || string(v) != "v" {
				t.Errorf("%q, %v", v, err)
			}
			for _, s := range []*store{s, other} {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// wantParked tries every call of a parked store.
func wantParked(t *testing.T, s *store, it storage.Iter, text string) {
	t.Helper()
	want := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, storage.ErrParked) || errors.Is(err, storage.ErrUnknown) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := s.Get(nil, []byte("k"))
	want("get", err)
	_, err = s.NewIter(storage.Range{})
	want("new iterator", err)
	_, err = s.Snapshot()
	want("snapshot", err)
	want("apply", s.Apply(put("a", "b"), false))
	want("checkpoint", s.Checkpoint("/copy"))
	if it != nil {
		if it.Next() || it.First() {
			t.Error("an iterator moved")
		}
		want("iterator", it.Err())
	}
	st, err := s.Stats()
	if err != nil || !st.Parked || !strings.Contains(st.Text, text) {
		t.Errorf("stats: %+v, %v", st, err)
	}
}

// TestLostLock parks a store in which pebble hangs for ever: in a flush that
// does not end, or with the mutex of the database held. Writers inside are
// answered, Close returns, and the directory opens again.
func TestLostLock(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for the grace time")
	}
	for _, where := range []string{"flush", "mutex"} {
		t.Run(where, func(t *testing.T) { t.Parallel(); lostLock(t, where) })
	}
}

func lostLock(t *testing.T, where string) {
	release := make(chan struct{})
	defer close(release)
	e := New(Config{FS: vfs.NewMem(), Logger: func(_ Level, msg string) {
		if where == "mutex" && strings.Contains(msg, "writes stall") {
			<-release // pebble tells of a stall with its mutex held
		}
	}})
	defer e.Close()
	s := openIn(t, e, "/db")
	if err := s.Apply(put("k", "v"), true); err != nil {
		t.Fatal(err)
	}
	sn, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	it, err := s.NewIter(storage.Range{})
	if err != nil || !it.First() {
		t.Fatal(err)
	}
	s.fence.delayFlush = func() { <-release } // so that writers come to stall
	var wg sync.WaitGroup
	var answers [8]error
	for i := range answers {
		wg.Go(func() {
			for answers[i] == nil {
				answers[i] = s.Apply(put(fmt.Sprint(i), strings.Repeat("v", 60<<10)), i%2 == 0)
			}
		})
	}
	for s.stalled.Load() == nil { // all writers will be stuck behind the stalled one
		runtime.Gosched()
	}
	s.park(errors.New("lost"))
	wg.Wait()
	unknown := 0
	for i, err := range answers {
		if !errors.Is(err, storage.ErrParked) {
			t.Errorf("writer %d: %v", i, err)
		}
		if errors.Is(err, storage.ErrUnknown) {
			unknown++
		}
	}
	if unknown == 0 {
		t.Error("no writer was inside")
	}
	wantParked(t, s, nil, "lost")
	if err := sn.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := it.Close(); !errors.Is(err, storage.ErrClosed) {
		t.Error(err)
	}
	s = openIn(t, e, "/db")
	if v, err := s.Get(nil, []byte("k")); err != nil || string(v) != "v" {
		t.Errorf("%q, %v", v, err)
	}
	s.fence.delayFlush = func() {}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestWritersDuringFault fails the log under many writers and reads back after
// power loss: what was acknowledged is there.
func TestWritersDuringFault(t *testing.T) {
	for _, at := range []int{0, 1, 5, 20, 60} {
		for _, percent := range []int{0, 100} {
			t.Run(fmt.Sprintf("write=%d/kept=%d", at, percent), func(t *testing.T) {
				mem := vfs.NewCrashableMem()
				inj := &injector{}
				e := New(Config{FS: errorfs.Wrap(mem, inj)})
				defer e.Close()
				s := openIn(t, e, "/db")
				inj.arm(func(n int, op errorfs.Op) bool { return n >= at })
				acked := make([]int, 8)
				var wg sync.WaitGroup
				for w := range acked {
					wg.Go(func() {
						for n := 1; ; n++ {
							err := s.Apply(put(fmt.Sprintf("%d/%06d", w, n), strings.Repeat("x", 2000)), true)
							if err != nil {
								if !errors.Is(err, storage.ErrParked) {
									t.Errorf("apply: %v", err)
								}
								return
							}
							acked[w] = n
						}
					})
				}
				wg.Wait()
				e2 := New(Config{FS: mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: newRand(uint64(at))})})
				defer e2.Close()
				if err := s.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
				s = openIn(t, e2, "/db")
				for w, top := range acked {
					for n := 1; n <= top; n++ {
						if _, err := s.Get(nil, fmt.Appendf(nil, "%d/%06d", w, n)); err != nil {
							t.Fatalf("writer %d, row %d of %d: %v", w, n, top, err)
						}
					}
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestFullDisk refuses every new table for good. Writes must not wait for ever
// for a flush that cannot succeed.
func TestFullDisk(t *testing.T) {
	inj := &injector{}
	e := New(Config{FS: errorfs.Wrap(vfs.NewMem(), inj)})
	defer e.Close()
	s := openIn(t, e, "/db")
	inj.arm(failTables)
	var err error
	rows := 0
	for err == nil {
		if err = s.Apply(put(fmt.Sprintf("%06d", rows), strings.Repeat("v", 10<<10)), false); err == nil {
			rows++
		}
	}
	if !errors.Is(err, storage.ErrParked) || !strings.Contains(err.Error(), "flush failed") {
		t.Fatal(err)
	}
	wantParked(t, s, nil, "flush failed")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	inj.arm(nil)
	s = openIn(t, e, "/db")
	for i := range rows {
		if _, err := s.Get(nil, fmt.Appendf(nil, "%06d", i)); err != nil {
			t.Fatalf("row %d of %d: %v", i, rows, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDiskFullForAWhile refuses tables a few times. The flush is tried again
// and nobody notices.
func TestDiskFullForAWhile(t *testing.T) {
	inj := &injector{}
	e := New(Config{FS: errorfs.Wrap(vfs.NewMem(), inj)})
	defer e.Close()
	s := openIn(t, e, "/db")
	var refused atomic.Int64
	inj.arm(func(_ int, op errorfs.Op) bool {
		return op.Kind == errorfs.OpCreate && strings.HasSuffix(op.Path, ".sst") && refused.Add(1) <= 3
	})
	for i := range 300 {
		if err := s.Apply(put(fmt.Sprintf("%06d", i), strings.Repeat("v", 10<<10)), false); err != nil {
			t.Fatal(err)
		}
	}
	st, err := s.Stats()
	if err != nil || st.Parked || refused.Load() <= 3 || !strings.Contains(st.Text, "background errors: 3") {
		t.Fatalf("refused %d: %v, %v", refused.Load(), st.Text, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestReadFaults fails a quarter of all reads of tables under scans. A scan
// either reads every row or says so.
func TestReadFaults(t *testing.T) {
	inj := &injector{reads: true}
	e := New(Config{FS: errorfs.Wrap(vfs.NewMem(), inj), CacheBytes: 1})
	defer e.Close()
	s := openIn(t, e, "/db")
	const rows = 200
	for i := range rows {
		if err := s.Apply(put(fmt.Sprintf("%06d", i), strings.Repeat("v", 1000)), false); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	inj.arm(func(n int, op errorfs.Op) bool {
		return n%500 == 499 && op.Kind.ReadOrWrite() == errorfs.OpIsRead && strings.HasSuffix(op.Path, ".sst")
	})
	failed := 0
	for range 200 {
		it, err := s.NewIter(storage.Range{})
		if err != nil {
			failed++
			continue
		}
		n := 0
		for ok := it.First(); ok; ok = it.Next() {
			if string(it.Key()) != fmt.Sprintf("%06d", n) || len(it.Value()) != 1000 {
				t.Fatalf("row %d is %q", n, it.Key())
			}
			n++
		}
		err = it.Err()
		if (err == nil) != (n == rows) {
			t.Fatalf("%d rows, %v", n, err)
		}
		if err != nil {
			failed++
		}
		if cerr := it.Close(); (cerr == nil) != (err == nil) {
			t.Fatalf("close: %v after %v", cerr, err)
		}
	}
	inj.arm(nil)
	st, err := s.Stats()
	if err != nil || failed == 0 || failed == 200 || st.ReadErrors < int64(failed) {
		t.Fatalf("%d scans of 200 failed, %d read errors counted, %v", failed, st.ReadErrors, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
