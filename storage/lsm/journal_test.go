package lsm

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"scanode/storage"
)

// cutShort runs Destroy or Repair on a store of 60 rows on a disk that loses its
// power, or fails for good, at operation at, and returns the disk as the next
// program finds it.
func cutShort(t *testing.T, run func(*Engine) error, at int, power bool, percent int) (fs vfs.FS, total int) {
	mem := vfs.NewCrashableMem()
	s := openIn(t, engine(t, mem), "/a/db")
	for i := range 60 {
		if err := s.Apply(put(fmt.Sprint(i), strings.Repeat("v", 5<<10)), true); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var after vfs.FS
	inj := &injector{}
	inj.arm(func(n int, _ errorfs.Op) bool {
		if n == at {
			if power {
				after = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: newRand(uint64(at))})
			}
		}
		return n >= at && !power
	})
	e := engine(t, errorfs.Wrap(mem, inj))
	err := run(e)
	total = inj.count()
	inj.arm(nil)
	if !power {
		if err != nil && !errors.Is(err, errDisk) {
			t.Fatalf("operation %d: %v", at, err)
		}
		return mem, total
	}
	if err != nil {
		t.Fatal(err)
	}
	if after == nil {
		after = mem.CrashClone(vfs.CrashCloneCfg{})
	}
	return after, total
}

// eachCut calls f for power cuts and failures at the operations of a run: at each
// of the last hundred, in which files are moved and removed, and at some before.
func eachCut(t *testing.T, run func(*Engine) error, f func(t *testing.T, fs vfs.FS, whole bool)) {
	for _, c := range []struct {
		power   bool
		percent int
	}{{true, 0}, {true, 50}, {true, 100}, {false, 0}} {
		_, total := cutShort(t, run, 1<<30, c.power, c.percent)
		if total < 10 {
			t.Errorf("only %d operations", total)
		}
		for at := 0; at <= total+5 && !t.Failed(); at++ {
			if at < total-100 && at%9 != 0 {
				continue
			}
			// A test of its own: its engines end with it.
			t.Run(fmt.Sprintf("power=%v/%d/operation=%d", c.power, c.percent, at), func(t *testing.T) {
				fs, n := cutShort(t, run, at, c.power, c.percent)
				f(t, fs, n <= at)
			})
		}
	}
}

// TestDestroyCutShort: after a crash or a failure of the disk in Destroy the store
// is there with all rows, or there is none.
func TestDestroyCutShort(t *testing.T) {
	t.Parallel()
	eachCut(t, func(e *Engine) error { return e.Destroy("/a/db") }, func(t *testing.T, fs vfs.FS, whole bool) {
		e := engine(t, fs)
		s, err := e.Open("/a/db", storage.Options{})
		if errors.Is(err, storage.ErrMissing) {
			s, err = e.Open("/a/db", storage.Options{CreateIfMissing: true, ErrorIfExists: true})
		}
		if err != nil {
			t.Fatal(err)
		}
		if n := len(allRows(t, s)); n != 0 && n != 60 || whole && n != 0 {
			t.Fatalf("%d rows", n)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := e.Destroy("/a/db"); err != nil {
			t.Fatalf("destroy again: %v", err)
		}
		if names, err := fs.List("/a/db"); err == nil {
			t.Fatalf("%q is left", names)
		}
	})
}

// TestRepairCutShort: after a crash or a failure of the disk in Repair all rows are
// there.
func TestRepairCutShort(t *testing.T) {
	t.Parallel()
	eachCut(t, func(e *Engine) error { _, err := e.Repair("/a/db"); return err }, func(t *testing.T, fs vfs.FS, _ bool) {
		e := engine(t, fs)
		for range 2 {
			s, err := e.Open("/a/db", storage.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if n := len(allRows(t, s)); n != 60 {
				t.Fatalf("%d rows", n)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := e.Repair("/a/db"); err != nil {
				t.Fatalf("repair again: %v", err)
			}
		}
	})
}
