package couch

import (
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/storage"
)

// TestPush: a batch that nobody has synced has a push to come, in both modes, and survives a
// loss of power from then on, and not before. A closed store is not pushed. The oracle is what
// a copy of the disk without all that is not synced has.
func TestPush(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"log", "header"} {
		mem := newMem(t)
		s := openIn(t, mem, "commit", mode, "flush_ms", int64(3600_000))
		armed := func() (is bool) {
			if err := s.alone(func() error { is = s.writer.timer.timer != nil; return nil }); err != nil {
				t.Fatal(err)
			}
			return is
		}
		for _, key := range []string{"a", "b"} {
			if armed() {
				t.Fatalf("%s: a push is to come before %s is written", mode, key)
			}
			if err := s.Apply([]storage.Op{{Key: []byte(key), Value: []byte("1")}}, false); err != nil {
				t.Fatal(err)
			}
			if !armed() {
				t.Fatalf("%s: no push is to come after %s was written", mode, key)
			}
			if _, err := afterLoss(t, mem, key); !errors.Is(err, storage.ErrNotFound) {
				t.Errorf("%s: %s survives by itself, %v", mode, key, err)
			}
			s.push()
			if v, err := afterLoss(t, mem, key); string(v) != "1" || err != nil {
				t.Errorf("%s: after the push %s is %q, %v", mode, key, v, err)
			}
		}
		if err := s.Apply([]storage.Op{{Key: []byte("c"), Value: []byte("1")}}, true); err != nil || armed() {
			t.Errorf("%s: a synced batch is followed by a push, %v", mode, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s.push()
	}
}

// afterLoss reads a key as a loss of power at this moment leaves it.
func afterLoss(t *testing.T, mem *vfs.MemFS, key string) ([]byte, error) {
	t.Helper()
	s := openIn(t, mem.CrashClone(vfs.CrashCloneCfg{}))
	defer s.Close()
	return s.Get(nil, []byte(key))
}
