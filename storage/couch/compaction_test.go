package couch

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/storage"
	"scanode/storage/home"
)

// The oracle of these tests is a map of the rows.

// openIn opens a store that compacts only when it is told.
func openIn(t testing.TB, fs vfs.FS, more ...any) *store {
	t.Helper()
	options := small(append([]any{"compact_percent", int64(0)}, more...)...)
	s, err := New(Config{FS: fs}).Open("/data", storage.Options{CreateIfMissing: true, Engine: options})
	if err != nil {
		t.Fatal(err)
	}
	return s.(*store)
}

func newMem(t testing.TB) *vfs.MemFS {
	fs := vfs.NewCrashableMem()
	if err := home.MakeDir(fs, "/data"); err != nil {
		t.Fatal(err)
	}
	return fs
}

// settle waits until no compaction runs and returns how many have succeeded.
func settle(s *store) int64 {
	for {
		s.compactor.mu.Lock()
		c := s.compactor.running
		s.compactor.mu.Unlock()
		if c == nil {
			return s.compactor.count.Load()
		}
		<-c.done
	}
}

// fill writes about as many rows as said, some of them again and again, some of them not
// to stay.
func fill(t testing.TB, s *store, rows map[string]string, n int, rng *rand.Rand) {
	t.Helper()
	for range n / 10 {
		var ops []storage.Op
		for range 10 {
			key := fmt.Sprintf("key %06d", rng.IntN(n))
			if rng.IntN(5) == 0 {
				delete(rows, key)
				ops = append(ops, storage.Op{Kind: storage.Delete, Key: []byte(key)})
				continue
			}
			rows[key] = fmt.Sprintf("%0*d", rng.IntN(300), rng.IntN(1000))
			ops = append(ops, storage.Op{Key: []byte(key), Value: []byte(rows[key])})
		}
		if err := s.Apply(ops, rng.IntN(20) == 0); err != nil {
			t.Fatal(err)
		}
	}
}

// wantRows compares what r has with rows, there and back.
func wantRows(t testing.TB, r storage.Reader, rows map[string]string) {
	t.Helper()
	it, err := r.NewIter(storage.Range{})
	if err != nil {
		t.Fatal(err)
	}
	keys := slices.Sorted(maps.Keys(rows))
	i := 0
	for ok := it.First(); ok; ok = it.Next() {
		if i == len(keys) || string(it.Key()) != keys[i] || string(it.Value()) != rows[keys[i]] {
			t.Fatalf("row %d of %d is %q", i, len(keys), it.Key())
		}
		i++
	}
	if i != len(keys) {
		t.Fatalf("%d rows, want %d, %v", i, len(keys), it.Err())
	}
	for ok := it.Last(); ok; ok = it.Prev() {
		if i--; string(it.Key()) != keys[i] {
			t.Fatalf("row %d is %q on the way back", i, it.Key())
		}
	}
	if err := it.Close(); err != nil || i != 0 {
		t.Fatalf("%d rows left on the way back, %v", i, err)
	}
}

// TestCompaction: the rows stay, the file becomes small, old views are read on, and the old
// file is closed with the last of them.
func TestCompaction(t *testing.T) {
	for _, mode := range []string{"log", "header"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			rng := newRand(t)
			s := openIn(t, newMem(t), "commit", mode)
			old := map[string]string{}
			fill(t, s, old, 3000, rng)
			sn, err := s.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			it, err := sn.NewIter(storage.Range{})
			if err != nil || !it.First() {
				t.Fatal(err)
			}
			rows := maps.Clone(old)
			fill(t, s, rows, 3000, rng)
			before := s.current.Load().gen.file.Size()
			<-s.compact().done
			if n := settle(s); n != 1 {
				t.Fatalf("%d compactions", n)
			}
			after := s.current.Load().gen.file.Size()
			if after > before/2 {
				t.Fatalf("%d bytes became %d", before, after)
			}
			wantRows(t, s, rows)
			wantRows(t, sn, old)
			if err := sn.Close(); err != nil {
				t.Fatal(err)
			}
			n := 1
			for it.Next() {
				n++
			}
			if n != len(old) || it.Err() != nil {
				t.Fatalf("%d rows of %d, %v", n, len(old), it.Err())
			}
			open := func() int {
				s.mu.Lock()
				defer s.mu.Unlock()
				return len(s.generations)
			}
			if open() != 2 {
				t.Fatalf("%d files are open", open())
			}
			if err := it.Close(); err != nil {
				t.Fatal(err)
			}
			if open() != 1 {
				t.Fatalf("%d files are open after the last reader", open())
			}
			fill(t, s, rows, 500, rng)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = openIn(t, s.engine.fs, "commit", mode)
			wantRows(t, s, rows)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func newRand(t testing.TB) *rand.Rand {
	seed := seedOf(t)
	return rand.New(rand.NewPCG(seed, 3))
}

// TestCompactionUnderLoad compacts again and again while some write and others read. A
// reader must find the two rows of a batch alike.
func TestCompactionUnderLoad(t *testing.T) {
	t.Parallel()
	s := openIn(t, newMem(t), "log_batches", int64(50))
	want := make([]map[string]string, 3)
	stop := make(chan struct{})
	var writers, readers sync.WaitGroup
	for w := range want {
		want[w] = map[string]string{}
		rng := newRand(t)
		writers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				a, b := fmt.Sprintf("%d/%04d/a", w, rng.IntN(500)), fmt.Sprintf("%d/last", w)
				value := fmt.Sprint(n)
				want[w][a], want[w][b] = value, value
				ops := []storage.Op{{Key: []byte(a), Value: []byte(value)}, {Key: []byte(b), Value: []byte(value)}}
				if rng.IntN(4) == 0 {
					gone := fmt.Sprintf("%d/%04d/a", w, rng.IntN(500))
					if gone != a {
						delete(want[w], gone)
						ops = append(ops, storage.Op{Kind: storage.Delete, Key: []byte(gone)})
					}
				}
				if err := s.Apply(ops, n%10 == 0); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				it, err := s.NewIter(storage.Range{})
				if err != nil {
					t.Error(err)
					return
				}
				last := ""
				for ok := it.First(); ok; ok = it.Next() {
					if string(it.Key()) <= last {
						t.Errorf("%q after %q", it.Key(), last)
					}
					last = string(it.Key())
				}
				if err := it.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 15 {
		if c := s.compact(); c != nil {
			<-c.done
		}
	}
	close(stop)
	writers.Wait()
	readers.Wait()
	if n := settle(s); n < 15 || s.compactor.failures.Load() > 0 {
		t.Fatalf("%d compactions, %d failed", n, s.compactor.failures.Load())
	}
	all := map[string]string{}
	for _, rows := range want {
		maps.Copy(all, rows)
	}
	wantRows(t, s, all)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestCompactionStartsItself when enough of the file is garbage, and not before.
func TestCompactionStartsItself(t *testing.T) {
	t.Parallel()
	s := openIn(t, newMem(t), "compact_percent", int64(70), "compact_min_size", int64(100_000), "log_batches", int64(10))
	rows := map[string]string{}
	rng := newRand(t)
	for settle(s) < 3 {
		fill(t, s, rows, 100, rng)
		v := s.acquire()
		size, live := v.gen.file.Size(), v.tree.Root().Size
		v.gen.release()
		if size > 200_000+live*5 {
			t.Fatalf("%d bytes with %d in use, and no compaction", size, live)
		}
	}
	wantRows(t, s, rows)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
