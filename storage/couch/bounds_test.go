package couch

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/storage"
)

// TestMemoryIsBounded: what was not written to the tree stays below write_buffer_size and one
// batch, and cached nodes below node_cache_size, however much is written and read.
func TestMemoryIsBounded(t *testing.T) {
	for _, mode := range []string{"log", "header"} {
		s := openIn(t, newMem(t), "commit", mode, "flush_ms", int64(3600_000), "log_batches", int64(1<<20))
		for i := range 3000 {
			op := storage.Op{Key: fmt.Appendf(nil, "%08d", i*7919%3000), Value: bytes.Repeat([]byte{byte(i)}, 300)}
			if err := s.Apply([]storage.Op{op}, false); err != nil {
				t.Fatal(err)
			}
			if n := s.writer.overBytes.Load(); n > 64<<10+1000 {
				t.Fatalf("%d bytes of writes in memory", n)
			}
			if _, err := s.Get(nil, op.Key); err != nil {
				t.Fatal(err)
			}
			if n := s.writer.cache.Bytes(); n > 64<<10 {
				t.Fatalf("%d bytes of nodes in memory", n)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTooLarge: what is beyond the bounds is refused, and nothing of its batch is there.
func TestTooLarge(t *testing.T) {
	s := openIn(t, newMem(t))
	defer s.Close()
	large := make([]byte, maxValueBytes+1)
	for _, op := range []storage.Op{{Key: large[:maxKeyBytes+1]}, {Key: []byte("k"), Value: large}, {Kind: storage.Delete, Key: large[:maxKeyBytes+1]}} {
		err := s.Apply([]storage.Op{{Key: []byte("before")}, op}, false)
		if err == nil || errors.Is(err, storage.ErrUnknown) {
			t.Fatal(err)
		}
	}
	many := make([]storage.Op, 5)
	for i := range many {
		many[i] = storage.Op{Key: fmt.Append(nil, i), Value: large[:maxValueBytes]}
	}
	if err := s.Apply(many, false); err == nil || errors.Is(err, storage.ErrUnknown) {
		t.Fatal(err)
	}
	if _, err := s.Get(nil, large[:maxKeyBytes+1]); !errors.Is(err, storage.ErrNotFound) {
		t.Fatal(err)
	}
	if empty, err := s.IsEmpty(); !empty || err != nil {
		t.Fatal(empty, err)
	}
	if err := s.Apply([]storage.Op{{Key: large[:maxKeyBytes], Value: large[:maxValueBytes]}}, true); err != nil {
		t.Fatal(err)
	}
	if v, err := s.Get(nil, large[:maxKeyBytes]); err != nil || len(v) != maxValueBytes {
		t.Fatal(len(v), err)
	}
}

// TestFlushInTime: with commit => header a batch that nobody syncs is on the disk after
// flush_ms, and not before. The clock is that of the test's bubble.
func TestFlushInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newMem(t)
		s := openIn(t, fs, "commit", "header", "flush_ms", int64(5000))
		for i := range 3 {
			if err := s.Apply(batchOf(i), false); err != nil {
				t.Fatal(err)
			}
			for _, c := range []struct {
				wait time.Duration
				want int
			}{{4999 * time.Millisecond, i}, {time.Millisecond, i + 1}, {time.Hour, i + 1}} {
				time.Sleep(c.wait)
				synctest.Wait()
				after := openIn(t, fs.CrashClone(vfs.CrashCloneCfg{}))
				wantRows(t, after, batchRows(c.want))
				if err := after.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := s.Apply(batchOf(3), false); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil { // with the timer running
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		s = openIn(t, fs)
		wantRows(t, s, batchRows(4))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
