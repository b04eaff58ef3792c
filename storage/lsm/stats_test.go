package lsm

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/storage"
)

// TestStats: levels, tables and caches, compared with the files on the disk.
func TestStats(t *testing.T) {
	fs := vfs.NewMem()
	e := engine(t, fs)
	s := openIn(t, e, "/db")
	rng := newRand(1)
	for i := range 200 {
		mustPut(t, s, fmt.Sprint(i), string(fillerBytes(rng, 5000)))
	}
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := s.db.Compact(t.Context(), []byte{0}, []byte{255}, false); err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		if _, err := s.Get(nil, fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	st, err := s.Stats()
	if err != nil {
		t.Fatal(err)
	}
	// Tables that a compaction has replaced are removed a little later; the test's
	// own deadline ends it if they are not.
	var tables []string
	for tables = nil; int64(len(tables)) != st.Files; runtime.Gosched() {
		names, err := fs.List("/db")
		if err != nil {
			t.Fatal(err)
		}
		tables = slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, ".sst") })
	}
	files, bytes := int64(len(tables)), int64(0)
	for _, name := range tables {
		bytes += sizeOf(t, fs, "/db/"+name)
	}
	sum := int64(0)
	for _, n := range st.LevelFiles {
		sum += n
	}
	if len(st.LevelFiles) != levels || sum != files || st.Files != files || st.TableBytes != bytes || files == 0 {
		t.Errorf("%v in levels, %d files of %d bytes; on the disk are %d of %d", st.LevelFiles, st.Files, st.TableBytes, files, bytes)
	}
	if st.BlockCacheBytes <= 0 || st.BlockCacheBytes > 1<<20 || st.FileCacheBytes <= 0 {
		t.Errorf("caches of %d and %d bytes", st.BlockCacheBytes, st.FileCacheBytes)
	}
	if !strings.Contains(st.Table, fmt.Sprintf("\n  6 %8d ", st.LevelFiles[6])) || strings.Contains(st.Table, "\n  3 ") {
		t.Errorf("table:\n%s", st.Table)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestParanoidChecks: a damaged block is found when the store opens with
// paranoid_checks, and only then.
func TestParanoidChecks(t *testing.T) {
	d := newDamaged(t, true)
	e := engine(t, d.mem)
	paranoid := storage.Options{Engine: map[string]any{"paranoid_checks": true}}
	s, err := e.Open("/db", paranoid)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	table := ""
	for _, name := range d.files {
		if strings.HasSuffix(name, ".sst") {
			table = "/db/" + name
		}
	}
	flip(t, d.mem, table, 8*1000)
	if s, err = e.Open("/db", storage.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Open("/db", paranoid); !errors.Is(err, storage.ErrCorrupt) || !strings.Contains(err.Error(), ".sst") {
		t.Fatal(err)
	}
	if done, err := e.Repair("/db"); err != nil || done.Rows == 0 || len(done.Lost) == 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	if s, err = e.Open("/db", paranoid); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
