package lsm

import (
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/storage"
)

// TestWritesArePushed: a write that is not synced has a push to come, whoever wrote
// before it, and survives all from then on; a closed store is not pushed.
func TestWritesArePushed(t *testing.T) {
	mem := vfs.NewCrashableMem()
	s := openIn(t, engine(t, mem), "/db")
	for _, key := range []string{"a", "b"} {
		if s.pushing.Load() {
			t.Fatalf("a push is to come before %s is written", key)
		}
		mustPut(t, s, key, "1")
		if !s.pushing.Load() {
			t.Fatalf("no push is to come after %s was written", key)
		}
		if _, err := afterCrash(t, mem, key); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("%s survives by itself, %v", key, err)
		}
		s.push()
		if v, err := afterCrash(t, mem, key); string(v) != "1" || err != nil {
			t.Errorf("after the push %s is %q, %v", key, v, err)
		}
	}
	if err := s.Apply(put("c", "1"), true); err != nil || s.pushing.Load() {
		t.Errorf("a synced write is followed by a push, %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s.push()
}

// afterCrash reads a key of /db as a crash at this moment leaves it.
func afterCrash(t *testing.T, mem *vfs.MemFS, key string) ([]byte, error) {
	t.Helper()
	s := openIn(t, engine(t, mem.CrashClone(vfs.CrashCloneCfg{})), "/db")
	defer s.Close()
	return s.Get(nil, []byte(key))
}
