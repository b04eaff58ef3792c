package lsm

import (
	"runtime"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestMemoryPlan adds up what the parts of a budget can become.
func TestMemoryPlan(t *testing.T) {
	for _, total := range []int64{256 << 20, 1 << 30, 6 << 30, 100 << 30} {
		m := newMemory(total, 0)
		if live := m.cacheBytes + batchMemoryFactor*m.batchBytes; live > total/2 {
			t.Errorf("%d: %d bytes are planned, more than half", total, live)
		}
		sum, floor := int64(0), int64(0)
		for n := 1; n <= 128; n++ {
			b := m.bufferFor(n, 1<<30)
			if b == minBufferBytes {
				floor += buffersPerStore * b
			}
			sum += buffersPerStore * b
			if wish := m.bufferFor(n, 1<<20); wish > max(1<<20, minBufferBytes) || wish > b {
				t.Errorf("%d: store %d gets %d bytes for a wish of 1 MiB and %d for one of 1 GiB", total, n, wish, b)
			}
		}
		if sum > m.bufferBytes+floor {
			t.Errorf("%d: write buffers of 128 stores take %d bytes of %d", total, sum, m.bufferBytes)
		}
		if first, last := m.bufferFor(1, 1<<40), m.bufferFor(128, 1<<40); last > minBufferBytes && first > 33*last {
			t.Errorf("%d: the first store gets %d bytes, the last %d", total, first, last)
		}
	}
	if m := newMemory(1<<30, 5<<20); m.cacheBytes != 5<<20 {
		t.Errorf("a cache of %d bytes", m.cacheBytes)
	}
}

// heldTables is a file system on which table files are not made before free is
// closed.
type heldTables struct {
	vfs.FS
	free chan struct{}
}

// Create implements vfs.FS.
func (h heldTables) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasSuffix(name, ".sst") {
		<-h.free
	}
	return h.FS.Create(name, category)
}

// TestLargeBatchKeepsItsShare: a large batch that waits for its flush counts, one
// that went into the write buffer does not.
func TestLargeBatchKeepsItsShare(t *testing.T) {
	fs := heldTables{vfs.NewMem(), make(chan struct{})}
	e := engine(t, fs)
	s := openIn(t, e, "/db")
	used := func() int64 {
		e.batches.mu.Lock()
		defer e.batches.mu.Unlock()
		return e.batches.used
	}
	if err := s.Apply(put("k", string(make([]byte, largeBatch))), false); err != nil {
		t.Fatal(err)
	}
	if n := used(); n < largeBatch {
		t.Errorf("%d bytes are counted", n)
	}
	close(fs.free)
	for used() > 0 { // the test's own deadline ends it if they never come back
		runtime.Gosched()
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
