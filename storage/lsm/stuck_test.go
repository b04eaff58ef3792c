package lsm

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/storage"
)

// TestStuckBehindDamage writes over a damaged table until there is no room left
// that does not need it: the write fails, and so do all others, instead of
// waiting for ever; the store closes, opens, and is repaired.
func TestStuckBehindDamage(t *testing.T) {
	t.Parallel()
	const rows = 2000
	rng := rand.New(rand.NewPCG(1, 2))
	value := func() []byte {
		v := make([]byte, 500) // nothing to compress
		for i := range v {
			v[i] = byte(rng.Uint32())
		}
		return v
	}
	write := func(s *store, step int) error {
		var ops []storage.Op
		for i := 0; i < rows; i += step {
			ops = append(ops, storage.Op{Kind: storage.Put, Key: fmt.Appendf(nil, "%06d", i), Value: value()})
		}
		return s.Apply(ops, true)
	}
	fs := vfs.NewMem()
	e := engine(t, fs)
	s := openIn(t, e, "/db")
	if err := write(s, 1); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	names, _ := fs.List("/db")
	for _, name := range names {
		if strings.HasSuffix(name, ".sst") {
			scribbleOn(t, fs, "/db/"+name, sizeOf(t, fs, "/db/"+name)/2)
		}
	}
	s = openIn(t, e, "/db")
	acknowledged := 0
	var err error
	for err = write(s, 7); err == nil && acknowledged < 1000; err = write(s, 7) {
		acknowledged++
	}
	if !errors.Is(err, storage.ErrParked) || !errors.Is(err, storage.ErrUnknown) {
		t.Fatalf("after %d writes: %v", acknowledged, err)
	}
	if err := write(s, 1000); !errors.Is(err, storage.ErrParked) {
		t.Errorf("then: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	s = openIn(t, e, "/db")
	if v, err := s.Get(nil, []byte("000007")); err != nil || len(v) != 500 {
		t.Errorf("%d bytes, %v", len(v), err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if done, err := e.Repair("/db"); err != nil || len(done.Lost) == 0 || done.Rows < rows/2 {
		t.Errorf("%v, %v", done, err)
	}
	s = openIn(t, e, "/db")
	defer s.Close()
	for range 100 {
		if err := write(s, 7); err != nil {
			t.Fatal(err)
		}
	}
}
