package check

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// readByBEAM has testdata/read.escript, which shares no code with this package or
// those below, read files, and returns what it prints of each, sorted.
func readByBEAM(t *testing.T, names ...string) [][]string {
	t.Helper()
	if _, err := exec.LookPath("escript"); err != nil {
		t.Skip("no escript on PATH: nothing to compare with")
	}
	var stderr bytes.Buffer
	cmd := exec.Command("escript", append([]string{"testdata/read.escript"}, names...)...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s%s", err, out, stderr.Bytes())
	}
	var files [][]string
	for _, part := range strings.Split(string(out), "file ")[1:] {
		_, rest, _ := strings.Cut(part, "\n")
		lines := strings.Split(strings.TrimSpace(rest), "\n")
		slices.Sort(lines)
		files = append(files, lines)
	}
	if len(files) != len(names) {
		t.Fatalf("%d files read of %d: %s", len(files), len(names), out)
	}
	return files
}

// TestSalvageBEAM: another reader finds in a salvaged file just what it finds in the one
// that CouchDB wrote; it looks at keys, sizes, reductions, MD5s and both trees itself.
func TestSalvageBEAM(t *testing.T) {
	names := []string{
		"db_small_none.couch", "db_small_snappy.couch", "db_small_deflate_6.couch", "db_many.couch", "db_many_compacted.couch",
		"db_purged.couch", "db_deleted_all.couch", "db_empty.couch", "db_md5.couch", "db_v6_small.couch",
		"view_snappy.view", "view_none.view", "view_deflate_6.view", "view_md5.view", "view_empty.view",
	}
	dir := t.TempDir()
	var paths []string
	for _, name := range names {
		in, out := filepath.Join(vectors, name), filepath.Join(dir, name)
		if r, err := Salvage(vfs.Default, in, out, SalvageOptions{}); err != nil || r.LostCount > 0 {
			t.Fatalf("%s: %+v, %v", name, r, err)
		}
		paths = append(paths, in, out)
	}
	files := readByBEAM(t, paths...)
	lines := 0
	for i, name := range names {
		want, got := files[2*i], files[2*i+1]
		lines += len(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	if lines < 2000 {
		t.Errorf("only %d lines", lines)
	}
}

// TestSalvageDamagedBEAM: files that were saved from damage are read by it too.
func TestSalvageDamagedBEAM(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for _, name := range []string{"db_small_none.couch", "db_many.couch", "db_purged.couch"} {
		original := readVector(t, name)
		for i := 1; i < 20; i++ {
			b := bytes.Clone(original)
			// Everywhere in what is reachable: the last third.
			at := len(b) - 200 - i*len(b)/60
			b[at] ^= 0xff
			fs := inMemory(t, "in.couch", b)
			if _, err := Salvage(fs, "in.couch", "out.couch", SalvageOptions{Orphans: i%2 == 0}); err != nil {
				t.Fatalf("%s, byte %d: %v", name, at, err)
			}
			f, err := fs.Open("out.couch")
			if err != nil {
				t.Fatal(err)
			}
			out, err := io.ReadAll(f)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, strings.TrimSuffix(name, ".couch")+strings.Repeat("x", i)+".couch")
			if err := os.WriteFile(path, out, 0o600); err != nil {
				t.Fatal(err)
			}
			paths = append(paths, path)
		}
	}
	readByBEAM(t, paths...)
}
