package lsm

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"scanode/storage"
)

var errDisk = errors.New("injected: input/output error")

// injector injects errDisk into the operations for which fail returns true; n
// counts them from the last call of arm.
type injector struct {
	reads bool // count and fail reads as well as writes

	mu   sync.Mutex
	n    int
	fail func(n int, op errorfs.Op) bool
}

// String implements errorfs.Injector.
func (i *injector) String() string { return "injector" }

// MaybeError implements errorfs.Injector.
func (i *injector) MaybeError(op errorfs.Op) error {
	if !i.reads && op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
		return nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.fail == nil {
		return nil
	}
	i.n++
	if i.fail(i.n-1, op) {
		return errDisk
	}
	return nil
}

// failTables fails what touches a table.
func failTables(_ int, op errorfs.Op) bool { return strings.HasSuffix(op.Path, ".sst") }

func wrapFaults(fs vfs.FS, inj *injector) vfs.FS { return errorfs.Wrap(fs, inj) }

func (i *injector) arm(fail func(n int, op errorfs.Op) bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.n, i.fail = 0, fail
}

func (i *injector) count() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.n
}

func put(k, v string) []storage.Op {
	return []storage.Op{{Kind: storage.Put, Key: []byte(k), Value: []byte(v)}}
}

// TestWriteFaults fails, once or for good, each write that follows an open, in
// turn, under a load that flushes and compacts.
func TestWriteFaults(t *testing.T) {
	t.Parallel()
	for _, sticky := range []bool{false, true} {
		for at := 0; ; at += 1 + at/25 { // the first ones matter most
			name := fmt.Sprintf("sticky=%v/write=%d", sticky, at)
			reached := true
			t.Run(name, func(t *testing.T) { reached = writeFault(t, at, sticky) })
			if !reached || t.Failed() {
				t.Logf("%d writes followed the open", at)
				break
			}
		}
	}
}

func writeFault(t *testing.T, at int, sticky bool) (reached bool) {
	mem := vfs.NewCrashableMem()
	inj := &injector{}
	e := New(Config{FS: errorfs.Wrap(mem, inj)})
	defer e.Close()
	o := storage.Options{CreateIfMissing: true, Engine: map[string]any{"write_buffer_size": int64(256 << 10)}}
	s, err := e.Open("/db", o)
	if err != nil {
		t.Fatal(err)
	}
	inj.arm(func(n int, op errorfs.Op) bool { return n == at || sticky && n > at })
	acked := 0
	value := strings.Repeat("v", 4<<10)
	var failed error
	for i := 0; i < 150; i++ {
		if err := s.Apply(put(fmt.Sprintf("%06d", i), value), true); err != nil {
			failed = err
			break
		}
		acked = i + 1
	}
	reached = inj.count() > at
	if failed != nil && !errors.Is(failed, storage.ErrUnknown) && !errors.Is(failed, storage.ErrParked) {
		t.Errorf("failed write: %v", failed)
	}
	if failed != nil {
		if err := s.Apply(put("x", "y"), true); !errors.Is(err, storage.ErrParked) {
			t.Errorf("write after the failure: %v", err)
		}
		if _, err := s.Get(nil, []byte("000000")); !errors.Is(err, storage.ErrParked) {
			t.Errorf("read after the failure: %v", err)
		}
		if st, err := s.Stats(); err != nil || !st.Parked {
			t.Errorf("stats: %+v, %v", st, err)
		}
	}
	if err := s.Close(); err != nil && !errors.Is(err, storage.ErrParked) {
		t.Errorf("close: %v", err)
	}
	inj.arm(nil)
	for _, c := range []struct {
		what string
		fs   vfs.FS
	}{{"same process", errorfs.Wrap(mem, inj)}, {"after power loss", mem.CrashClone(vfs.CrashCloneCfg{})}} {
		e2 := e
		if c.what != "same process" {
			e2 = New(Config{FS: c.fs})
		}
		s, err := e2.Open("/db", o)
		if err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		for i := 0; i < acked; i++ {
			if _, err := s.Get(nil, fmt.Appendf(nil, "%06d", i)); err != nil {
				t.Fatalf("%s: acked row %d: %v", c.what, i, err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		if e2 != e {
			e2.Close()
		}
	}
	return reached
}
