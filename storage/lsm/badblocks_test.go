package lsm

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/storage"
)

// flipByte changes one byte of the first table of the store in /db, or changes it
// back.
func flipByte(t *testing.T, fs vfs.FS) {
	t.Helper()
	names, err := fs.List("/db")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !strings.HasSuffix(name, ".sst") {
			continue
		}
		f, err := fs.OpenReadWrite("/db/"+name, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 1)
		if _, err := f.ReadAt(b, 100); err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte{b[0] ^ 0x5a}, 100); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatal("no table")
}

// TestBadBlockIsNotReadAgain: a damaged block answers for a minute without a look at
// the disk, each time with the same error and counted; then it is read anew. What
// says so is that it is mended on the disk meanwhile.
func TestBadBlockIsNotReadAgain(t *testing.T) {
	clock := &testClock{}
	fs := vfs.NewMem()
	e := clocked(t, fs, clock)
	s := expiring(t, e, -1)
	for i := range 200 {
		mustPut(t, s, fmt.Sprintf("%03d", i), strings.Repeat("v", 50))
	}
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	flipByte(t, fs)
	s = expiring(t, e, -1)
	defer s.Close()
	key := []byte("000")
	_, first := s.Get(nil, key)
	if !errors.Is(first, storage.ErrCorrupt) {
		t.Fatal(first)
	}
	flipByte(t, fs)
	for range 3 {
		if _, err := s.Get(nil, key); !errors.Is(err, storage.ErrCorrupt) || err.Error() != first.Error() {
			t.Errorf("%v, and not %v", err, first)
		}
	}
	if stats, err := s.Stats(); err != nil || stats.ReadErrors != 4 {
		t.Errorf("%d errors of reads, %v", stats.ReadErrors, err)
	}
	if v, err := s.Get(nil, []byte("199")); err != nil || len(v) != 50 {
		t.Errorf("another block: %q, %v", v, err)
	}
	clock.move(1)
	if v, err := s.Get(nil, key); err != nil || len(v) != 50 {
		t.Errorf("read anew: %q, %v", v, err)
	}
}

// TestBlockOf: a block is known by pebble's words.
func TestBlockOf(t *testing.T) {
	for text, want := range map[string]string{
		"pebble: file 000009: block 12/32675: crc32c checksum mismatch 1 != 2": "12 32675 true",
		"pebble: file 000009: crc32c":                                          "0 0 false",
		"block of 5/6: x":                                                      "0 0 false",
	} {
		place, length, ok := blockOf(errors.New(text))
		if got := fmt.Sprint(place.off, length, ok); got != want {
			t.Errorf("%q: %s, not %s", text, got, want)
		}
	}
}
