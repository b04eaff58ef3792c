package leveldb

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"scanode/storage"
)

// readAll reads all rows behind after, nil for all.
func readAll(dirs []string, o Options, after []byte) (map[string]string, []string, Info, error) {
	s, err := Open(dirs, o)
	if err != nil {
		return nil, nil, Info{}, err
	}
	defer s.Close()
	rows, err := s.Rows()
	if err != nil {
		return nil, nil, Info{}, err
	}
	defer rows.Close()
	if after != nil {
		rows.SeekAfter(after)
	}
	got, order := map[string]string{}, []string{}
	for rows.Next() {
		got[string(rows.Key())] = string(rows.Value())
		order = append(order, string(rows.Key()))
	}
	return got, order, s.Info(), rows.Err()
}

// compare compares what is read of dirs with a map of what was written, from the
// beginning and from behind some keys.
func compareRows(t *testing.T, dirs []string, want map[string]string) Info {
	t.Helper()
	got, order, info, err := readAll(dirs, Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	sorted := slices.Sorted(maps.Keys(want))
	if !maps.Equal(got, want) || !slices.Equal(order, sorted) {
		t.Fatalf("%d rows are read, %d were written; in order: %v", len(got), len(want), slices.IsSorted(order))
	}
	for i := 0; i < len(sorted); i += max(1, len(sorted)/7) {
		for _, after := range []string{sorted[i], sorted[i] + "\x00", sorted[i][:len(sorted[i])/2]} {
			_, order, _, err := readAll(dirs, Options{}, []byte(after))
			at, found := slices.BinarySearch(sorted, after)
			if found {
				at++
			}
			if err != nil || !slices.Equal(order, sorted[at:]) {
				t.Fatalf("behind %q: %d rows, %v; want %d", after, len(order), err, len(sorted)-at)
			}
		}
	}
	return info
}

// fingerprint is everything in a directory: names, sizes, times and contents.
func fingerprint(t *testing.T, dir string) string {
	t.Helper()
	var text strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(&text, path, info.Mode(), info.ModTime().UnixNano())
		if d.IsDir() {
			return nil
		}
		b, err := os.ReadFile(path)
		fmt.Fprintf(&text, "%x\n", sha256.Sum256(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// TestMissing: what is not there is told apart from what is damaged.
func TestMissing(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open([]string{dir}, Options{}); !errors.Is(err, storage.ErrMissing) {
		t.Errorf("an empty directory: %v", err)
	}
	if _, err := Open([]string{filepath.Join(dir, "nothing")}, Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
	for _, text := range []string{"", "MANIFEST-000005", "MANIFEST-\n", "../MANIFEST-000005\n", "MANIFEST-000005/..\n", strings.Repeat("MANIFEST-1", 1000)} {
		if err := os.WriteFile(filepath.Join(dir, "CURRENT"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open([]string{dir}, Options{}); !errors.Is(err, storage.ErrCorrupt) {
			t.Errorf("CURRENT is %.20q: %v", text, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "CURRENT"), []byte("MANIFEST-000005\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var d *Damage
	if _, err := Open([]string{dir}, Options{SkipDamaged: true}); !errors.As(err, &d) || !strings.Contains(d.What, "missing") {
		t.Errorf("no manifest: %v", err)
	}
}
