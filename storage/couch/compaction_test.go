package couch

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"scanode/storage"
	"scanode/storage/couch/btree"
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

// stepper calls step before each operation that changes the disk.
type stepper struct {
	mu   sync.Mutex
	step func(op errorfs.Op) error
}

// String implements errorfs.Injector.
func (i *stepper) String() string { return "stepper" }

// MaybeError implements errorfs.Injector.
func (i *stepper) MaybeError(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
		return nil
	}
	i.mu.Lock()
	step := i.step
	i.mu.Unlock()
	if step == nil {
		return nil
	}
	return step(op)
}

func (i *stepper) set(step func(op errorfs.Op) error) {
	i.mu.Lock()
	i.step = step
	i.mu.Unlock()
}

// TestCompactionPowerLoss takes the power away at every step of a compaction, with none,
// half and all of what was not synced kept: all that was synced is there, the tree is
// whole, and the compaction goes on after the next open, or is done.
func TestCompactionPowerLoss(t *testing.T) {
	t.Parallel()
	rng := newRand(t)
	mem := newMem(t)
	steps := &stepper{}
	s := openIn(t, errorfs.Wrap(mem, steps))
	rows := map[string]string{}
	fill(t, s, rows, 2000, rng)
	if err := s.Apply(nil, true); err != nil {
		t.Fatal(err)
	}
	type loss struct {
		what string
		fs   *vfs.MemFS
	}
	var losses []loss
	lose := func(what string) {
		for _, percent := range []int{0, 50, 100} {
			losses = append(losses, loss{fmt.Sprintf("%s, %d %%", what, percent),
				mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})})
		}
	}
	steps.set(func(op errorfs.Op) error { lose(fmt.Sprint(op.Kind, " ", op.Path)); return nil })
	<-s.compact().done
	steps.set(nil)
	lose("end")
	if n := settle(s); n != 1 {
		t.Fatalf("%d compactions", n)
	}
	resumed := 0
	for i, l := range losses {
		_, err := l.fs.Stat("/data/" + compactName)
		left := err == nil
		s := openIn(t, l.fs)
		if left {
			resumed++
			if n := settle(s); n != 1 {
				t.Fatalf("step %d, %s: %d compactions, %d failed", i, l.what, n, s.compactor.failures.Load())
			}
		}
		wantRows(t, s, rows)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := l.fs.Stat("/data/" + compactName); err == nil {
			t.Fatalf("step %d, %s: %s is left", i, l.what, compactName)
		}
	}
	if len(losses) < 30 || resumed < 10 {
		t.Fatalf("%d losses, %d of them went on", len(losses), resumed)
	}
	t.Logf("%d losses of power, in %d of them the compaction went on", len(losses), resumed)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestCompactionFaults lets each operation of a compaction on the disk fail, for once and
// for good: the store goes on or is parked, and opened anew it has all its rows.
func TestCompactionFaults(t *testing.T) {
	t.Parallel()
	failure := errors.New("injected")
	for _, sticky := range []bool{false, true} {
		parked, failed := 0, 0
		for at := 0; ; at++ {
			mem := newMem(t)
			steps := &stepper{}
			s := openIn(t, errorfs.Wrap(mem, steps))
			rows := map[string]string{}
			fill(t, s, rows, 200, newRand(t))
			if err := s.Apply(nil, true); err != nil {
				t.Fatal(err)
			}
			n := 0
			steps.set(func(errorfs.Op) error {
				n++
				if n-1 == at || sticky && n-1 > at {
					return failure
				}
				return nil
			})
			<-s.compact().done
			steps.set(nil)
			reached := n > at
			switch err := s.refusal(); {
			case err == nil:
				if reached && s.compactor.failures.Load() == 0 && settle(s) == 0 {
					t.Fatalf("step %d failed and nobody knows", at)
				}
				failed += int(s.compactor.failures.Load())
				fill(t, s, rows, 100, newRand(t))
				wantRows(t, s, rows)
			case errors.Is(err, storage.ErrParked) && errors.Is(err, failure):
				parked++
			default:
				t.Fatalf("step %d: %v", at, err)
			}
			if err := s.Close(); err != nil {
				t.Fatalf("step %d: %v", at, err)
			}
			s = openIn(t, mem)
			settle(s)
			wantRows(t, s, rows)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if !reached {
				break
			}
		}
		if parked == 0 || failed == 0 {
			t.Fatalf("%d parked, %d failed", parked, failed)
		}
	}
}

// TestCompactionResumes closes the store in the middle of a compaction. After the next open
// it goes on where it was, and not from the beginning.
func TestCompactionResumes(t *testing.T) {
	t.Parallel()
	mem := newMem(t)
	steps := &stepper{}
	s := openIn(t, errorfs.Wrap(mem, steps), "write_buffer_size", int64(4<<20), "compression", "none")
	rows := map[string]string{}
	for i := range 8000 {
		key := fmt.Sprintf("%06d", i)
		rows[key] = strings.Repeat("x", 1000)
		if err := s.Apply([]storage.Op{{Key: []byte(key), Value: []byte(rows[key])}}, false); err != nil {
			t.Fatal(err)
		}
	}
	isCopy := func(op errorfs.Op) bool {
		return op.Kind == errorfs.OpFileWriteAt && strings.HasSuffix(op.Path, compactName)
	}
	closed := make(chan error, 1)
	writes := 0
	steps.set(func(op errorfs.Op) error {
		if isCopy(op) {
			if writes++; writes == 5 { // of a MiB each but for headers
				s.compactor.mu.Lock()
				quit := s.compactor.running.quit
				s.compactor.mu.Unlock()
				go func() { closed <- s.Close() }()
				<-quit
			}
		}
		return nil
	})
	<-s.compact().done
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	if s.compactor.count.Load() != 0 || s.compactor.failures.Load() != 0 {
		t.Fatal("the compaction was not interrupted")
	}
	info, err := mem.Stat("/data/" + compactName)
	if err != nil {
		t.Fatal(err)
	}
	had := info.Size()
	if had < 1<<20 || had > 7<<20 {
		t.Fatalf("%d bytes were copied", had)
	}
	first := int64(-1) // where something was written first
	steps.set(func(op errorfs.Op) error {
		if isCopy(op) && first < 0 {
			first = op.Offset
		}
		return nil
	})
	s = openIn(t, errorfs.Wrap(mem, steps))
	if n := settle(s); n != 1 {
		t.Fatalf("%d compactions, %d failed", n, s.compactor.failures.Load())
	}
	if first < had {
		t.Fatalf("after %d bytes were copied, it went on at %d", had, first)
	}
	wantRows(t, s, rows)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestCompactionOfAnotherFile: what a compaction has left is of no use to another file, also
// when it is damaged or somebody else's.
func TestCompactionOfAnotherFile(t *testing.T) {
	t.Parallel()
	mem := newMem(t)
	s := openIn(t, mem)
	rows := map[string]string{}
	fill(t, s, rows, 500, newRand(t))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	other := newMem(t)
	s2 := openIn(t, other)
	fill(t, s2, map[string]string{}, 500, newRand(t))
	if err := s2.Close(); err != nil {
		t.Fatal(err)
	}
	foreign, err := home.ReadSmall(other, "/data/"+fileName)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"empty": nil, "no header": []byte("hello"), "cut": foreign[:4000], "another store's": foreign} {
		f, err := mem.Create("/data/"+compactName, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(slices.Clone(content)); err != nil {
			t.Fatal(err)
		}
		f.Close()
		s := openIn(t, mem)
		if n := settle(s); n != 1 {
			t.Fatalf("%s: %d compactions, %d failed", name, n, s.compactor.failures.Load())
		}
		wantRows(t, s, rows)
		if _, err := s.writer.tree.Verify(btree.Check{Separators: true}); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
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
