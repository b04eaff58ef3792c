package lsm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"scanode/storage"
)

// TestOpLog: a store tells operators of opens, failing compactions and flushes, and
// damage, in a file in its directory.
func TestOpLog(t *testing.T) {
	mem := vfs.NewMem()
	inj := &injector{}
	e := engine(t, errorfs.Wrap(mem, inj))
	s := openIn(t, e, "/db")
	value := string(fillerBytes(newRand(1), 10<<10))
	flush := func() {
		t.Helper()
		for i := range 20 {
			mustPut(t, s, fmt.Sprint(i), value)
		}
		if err := s.db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	limit := func(n int) { // of compactions
		e.compactor.mu.Lock()
		defer e.compactor.mu.Unlock()
		e.compactor.limit = n
	}
	limit(0)
	flush()
	flush()
	inj.arm(failTables)
	limit(2)
	e.compactor.poke()
	compacted := make(chan error, 1)
	go func() { compacted <- s.db.Compact(t.Context(), []byte{0}, []byte{255}, false) }()
	for s.compactFailures.Load() == 0 { // pebble tries again and again
		runtime.Gosched()
	}
	inj.arm(nil)
	if err := <-compacted; err != nil && !errors.Is(err, errDisk) {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	text := string(contents(t, mem, "/db/LOG"))
	for _, want := range []string{"opened", "Compaction error: ", errDisk.Error(), "closed"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	s = openIn(t, e, "/db")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if again := string(contents(t, mem, "/db/LOG")); !strings.HasPrefix(again, text) || strings.Count(again, "opened") != 2 {
		t.Errorf("after another open:\n%s", again)
	}
}

// TestOpLogIsBounded: beyond a size the log becomes LOG.old, and lines that come
// faster than they can be written are counted.
func TestOpLogIsBounded(t *testing.T) {
	dir := t.TempDir()
	e := engine(t, nil)
	s := openIn(t, e, dir)
	line := strings.Repeat("x", 10<<10) + "\n"
	for range 1000 {
		s.ops.printf("%s", line)
		s.ops.flush()
	}
	for range 1000 {
		s.ops.printf("%s", line)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{logFileName, oldLogFileName} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Size() > maxLogFileBytes {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, logFileName))
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range strings.SplitAfter(string(b), "\n") {
		if l != "" && (len(l) < len(logTimeLayout) || len(l) > maxLogLine+len(logTimeLayout)+2 || l[4] != '/') {
			t.Errorf("line %d of %d bytes: %.40q", i, len(l), l)
		}
	}
}

// TestOpLogBehindTheFence: a parked store that was closed under an iterator writes
// no line into a directory that another has.
func TestOpLogBehindTheFence(t *testing.T) {
	mem := vfs.NewMem()
	e := engine(t, mem)
	s := openIn(t, e, "/db")
	mustPut(t, s, "k", "v")
	it, err := s.NewIter(storage.Range{})
	if err != nil || !it.First() {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	before := string(contents(t, mem, "/db/LOG"))
	s.ops.printf("late")
	s.ops.flush()
	if after := string(contents(t, mem, "/db/LOG")); after != before {
		t.Errorf("%q became %q", before, after)
	}
	if err := it.Close(); !errors.Is(err, storage.ErrClosed) {
		t.Error(err)
	}
}

// TestOpLogOnABadDisk: a log that cannot be written harms nobody.
func TestOpLogOnABadDisk(t *testing.T) {
	inj := &injector{}
	e := engine(t, errorfs.Wrap(vfs.NewMem(), inj))
	inj.arm(func(_ int, op errorfs.Op) bool { return strings.HasSuffix(op.Path, "/LOG") })
	s := openIn(t, e, "/db")
	mustPut(t, s, "k", "v")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openIn(t, e, "/db")
	wantKeys(t, s, "k")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
