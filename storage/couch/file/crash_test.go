package file

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// TestCrash takes the power away at random points, several times in a row, with 0
// to 100 percent of the blocks kept that were not synced. What Commit has returned
// is found afterwards, or a header written since, with all its chunks.
func TestCrash(t *testing.T) {
	runs := 60
	if testing.Short() {
		runs = 10
	}
	r := newRand(t)
	for range runs {
		crashRun(t, r)
	}
}

func crashRun(t *testing.T, r *rand.Rand) {
	fsys, c := vfs.NewCrashableMem(), newContent()
	f, err := Create(fsys, "f", Options{Sum: Sum(r.IntN(2))})
	if err != nil {
		t.Fatal(err)
	}
	committed := -1
	for range 6 {
		for range r.IntN(12) {
			if err := crashStep(c, f, r, &committed); err != nil {
				t.Fatal(err)
			}
		}
		// The power goes while a commit is at any of its steps, or between calls.
		if at := r.IntN(6); at < 3 {
			fsys = crashInCommit(t, c, f, fsys, r, at)
		} else {
			fsys = fsys.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: r.IntN(101), RNG: r})
		}
		f.Close()
		f, err = Open(fsys, "f", Options{Sum: Sum(r.IntN(2))})
		if committed < 0 {
			if err == nil { // nothing was promised; it may be empty, or a header may be there
				f.Close()
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		gen, err := c.find(f)
		if err != nil || gen < committed {
			t.Fatalf("header %d, %v; %d was committed", gen, err, committed)
		}
		// An unsynced header may have reached the disk without what it leads to;
		// nobody writes one that leads to unsynced chunks.
		if err := c.check(f, gen); err != nil {
			t.Fatalf("header %d of %d: %v", gen, len(c.gens), err)
		}
		c.adopt(gen)
		committed = gen
	}
	f.Close()
}

// crashStep does one thing to f.
func crashStep(c *content, f *File, r *rand.Rand, committed *int) error {
	switch r.IntN(5) {
	case 0:
		err := c.commit(f.Commit)
		*committed = len(c.gens) - 1
		return err
	case 1: // as view files do it, but with what is synced
		if err := f.Sync(); err != nil {
			return err
		}
		return c.commit(f.WriteHeader)
	}
	return c.append(f, r, r.IntN(4))
}

// crashInCommit takes the power away before the operation number at of a commit:
// sync, write, sync.
func crashInCommit(t *testing.T, c *content, f *File, fsys *vfs.MemFS, r *rand.Rand, at int) *vfs.MemFS {
	real := f.file
	defer func() { f.file = real }()
	var after *vfs.MemFS
	n := 0
	f.file = errorfs.WrapFile(real, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileWriteAt {
			if n == at {
				after = fsys.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: r.IntN(101), RNG: r})
			}
			n++
		}
		return nil
	}))
	if err := c.commit(f.Commit); err != nil {
		t.Fatal(err)
	}
	return after
}

// TestOpenSyncs: a header that a process wrote and did not sync, and that Open has
// found, is there after a loss of power.
func TestOpenSyncs(t *testing.T) {
	fsys := vfs.NewCrashableMem()
	f := create(t, fsys, "f")
	h, err := f.WriteHeader([]byte{131, 97, 1})
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if f, err = Open(fsys, "f", Options{}); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if f, err = Open(fsys.CrashClone(vfs.CrashCloneCfg{}), "f", Options{}); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, err := f.LastHeader(); err != nil || !same(got, h) {
		t.Errorf("%+v, %v; want %+v", got, err, h)
	}
}

// TestFaults fails each operation of a few commits in turn. The call that meets the
// fault fails, so do all that follow a failed write or sync, and what was committed
// before is found when the file is opened anew, as it is and after a loss of power.
func TestFaults(t *testing.T) {
	for at := 0; ; at++ {
		if !faultRun(t, at) {
			t.Logf("%d operations", at)
			break
		}
	}
}

func faultRun(t *testing.T, at int) (reached bool) {
	r := rand.New(rand.NewPCG(uint64(at), 1))
	fsys, c := vfs.NewCrashableMem(), newContent()
	n := 0
	broken := errors.New("injected")
	var failed errorfs.Op
	faulty := errorfs.Wrap(fsys, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileClose || op.Kind == errorfs.OpLock {
			return nil
		}
		if n++; n == at+1 {
			failed = op
			return broken
		}
		return nil
	}))
	f, err := Create(faulty, "f", Options{})
	if err != nil {
		if !errors.Is(err, broken) {
			t.Fatalf("fault %d: %v", at, err)
		}
		return true
	}
	committed := -1
	for range 5 {
		if err = c.append(f, r, 3); err != nil {
			break
		}
		if err = c.commit(f.Commit); err != nil {
			break
		}
		committed = len(c.gens) - 1
		if err = c.check(f, committed); err != nil {
			break
		}
	}
	if n > at && !errors.Is(err, broken) {
		t.Fatalf("fault %d, %+v: %v", at, failed, err)
	}
	if failed.Kind == errorfs.OpFileWriteAt || failed.Kind == errorfs.OpFileSyncData {
		if err := allFail(f); err != nil {
			t.Fatalf("fault %d, %+v: %v", at, failed, err)
		}
	}
	f.Close()
	for _, fsys := range []vfs.FS{fsys, fsys.CrashClone(vfs.CrashCloneCfg{})} {
		f, err := Open(fsys, "f", Options{})
		if committed < 0 {
			if err == nil {
				f.Close()
			}
			continue
		}
		if err != nil {
			t.Fatalf("fault %d: %v", at, err)
		}
		gen, err := c.find(f)
		if err == nil {
			err = c.check(f, gen)
		}
		if err != nil || gen < committed {
			t.Fatalf("fault %d: header %d, %v; %d was committed", at, gen, err, committed)
		}
		f.Close()
	}
	return n > at
}

// allFail calls everything that a failed handle must refuse.
func allFail(f *File) error {
	_, appendErr := f.Append([][]byte{{1}})
	_, readErr := f.Read(nil, 0)
	_, commitErr := f.Commit([]byte{131, 106})
	_, headerErr := f.LastHeader()
	for i, err := range []error{appendErr, readErr, commitErr, headerErr, f.Sync()} {
		if !errors.Is(err, ErrFailed) {
			return fmt.Errorf("call %d of a failed handle: %v", i, err)
		}
	}
	return nil
}
