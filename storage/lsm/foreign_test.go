package lsm

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"scanode/storage"
)

// TestTiered: a store is not made where LevelDB's tables lie below a prefix of
// tiered storage; one that is there already is opened.
func TestTiered(t *testing.T) {
	root := t.TempDir()
	dir, fast, slow := filepath.Join(root, "data", "0"), filepath.Join(root, "fast"), filepath.Join(root, "slow")
	e := engine(t, nil)
	open := func() (storage.Store, error) {
		return e.Open(dir, storage.Options{CreateIfMissing: true, Engine: map[string]any{
			"tiered_fast_prefix": fast, "tiered_slow_prefix": slow}})
	}
	s, err := open()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(fast, dir, "CURRENT"), "MANIFEST-000004\n")
	if s, err = open(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := e.Destroy(dir); err != nil {
		t.Fatal(err)
	}
	refused := func() {
		t.Helper()
		_, err := open()
		if !errors.Is(err, storage.ErrForeign) || !strings.Contains(err.Error(), "scanode import") {
			t.Error(err)
		}
		if files := listing(t, root); len(files) != 1 {
			t.Errorf("%q", files)
		}
	}
	refused()
	if err := e.Destroy(filepath.Join(fast, dir)); !errors.Is(err, storage.ErrForeign) {
		t.Error(err)
	}
	fast = ""
	write(t, filepath.Join(slow, dir, "notes"), "not LevelDB's")
	if s, err = open(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(), e.Destroy(dir)); err != nil {
		t.Fatal(err)
	}
}

// TestLevelTables: what only the names of directories and tables tell.
func TestLevelTables(t *testing.T) {
	for names, want := range map[string]string{
		"LOCK LOG": "", "000005.sst": "", "000005.ldb": "000005.ldb", "sst_0": "sst_0", "sst_6 LOG": "sst_6", "sst_x": "",
		"MANIFEST-000002": "MANIFEST-000002", "MANIFEST-000002 marker.manifest.000001.MANIFEST-000002": "", "CURRENT sst_1": "CURRENT",
	} {
		if got := levelDB(strings.Fields(names)); got != want {
			t.Errorf("%s: %q, want %q", names, got, want)
		}
	}
}
