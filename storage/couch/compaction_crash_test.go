package couch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"scanode/storage"
	"scanode/storage/couch/btree"
	"scanode/storage/couch/file"
)

// These tests end compactions in all ways. Their oracle is a map of the rows.

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
	<-s2.compact().done
	if err := s2.Close(); err != nil {
		t.Fatal(err)
	}
	foreign := contents(t, other) // its last but one header says what was copied into it
	for name, content := range map[string][]byte{"empty": nil, "no header": []byte("hello"), "cut": foreign[:4000],
		"another store's": foreign, "another store's before its end": foreign[:len(foreign)-3*file.BlockSize]} {
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
