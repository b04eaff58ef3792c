package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"scanode/etf"
	"scanode/storage"
	"scanode/storage/dump"
)

// recorded is where directories are that LevelDB wrote, each with a file of the rows
// that a map had after the same writes.
var recorded = filepath.Join("..", "..", "storage", "leveldb", "testdata", "recorded")

// recordedRows reads such a file: key and value a line, in hexadecimal.
func recordedRows(t *testing.T, name string) map[string]string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(recorded, name+".rows"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(b)) {
		k, v, _ := strings.Cut(strings.TrimSpace(line), " ")
		key, err1 := hex.DecodeString(strings.TrimPrefix(k, "-"))
		value, err2 := hex.DecodeString(strings.TrimPrefix(v, "-"))
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		rows[string(key)] = string(value)
	}
	return rows
}

// storeRows opens a store by its marker and returns its rows.
func storeRows(t *testing.T, dir string) map[string]string {
	t.Helper()
	name, err := engineOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	e, err := newOneStore(name, memoryFlags{memoryMiB: 128})
	if err != nil {
		t.Fatal(err)
	}
	defer e.end()
	s, err := e.Open(dir, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	it, err := s.NewIter(storage.Range{})
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for ok := it.First(); ok; ok = it.Next() {
		rows[string(it.Key())] = string(it.Value())
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestImport brings directories that LevelDB wrote into stores of both engines, takes
// the rows out as a stream, and makes stores of that.
func TestImport(t *testing.T) {
	for _, name := range []string{"logonly", "killed", "levels", "compacted", "empty"} {
		want := recordedRows(t, name)
		for _, engine := range []string{"lsm", "couch"} {
			dir := t.TempDir()
			from, err := filepath.Abs(filepath.Join(recorded, name))
			if err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{
				{"import", "--dry-run", from},
				{"import", "--engine", engine, from, "store"},
				{"export", "store", "rows"},
				{"import", "--dry-run", "rows"},
				{"import", "--engine", engine, "rows", "again"},
			} {
				stdout, stderr, status := runProgram(t, dir, args...)
				if said := fmt.Sprintf(" %d rows, ", len(want)); status != 0 || !strings.Contains(stdout+stderr, said) {
					t.Fatalf("%s %v: status %d, %s%s", name, args, status, stdout, stderr)
				}
			}
			for _, store := range []string{"store", "again"} {
				if got := storeRows(t, filepath.Join(dir, store)); !maps.Equal(got, want) {
					t.Errorf("%s, %s: %d rows in %s, want %d", name, engine, len(got), store, len(want))
				}
			}
			if names, _ := os.ReadDir(dir); len(names) != 3 {
				t.Errorf("left behind: %v", names)
			}
		}
	}
}

// TestImportPipe: export to standard output is import's standard input.
func TestImportPipe(t *testing.T) {
	dir := t.TempDir()
	from, _ := filepath.Abs(filepath.Join(recorded, "levels"))
	if _, stderr, status := runProgram(t, dir, "import", from, "store"); status != 0 {
		t.Fatal(stderr)
	}
	stdout, stderr, status := runProgram(t, dir, "export", "store", "-")
	if status != 0 {
		t.Fatal(stderr)
	}
	cmd := exec.Command(os.Args[0], "import", "--json", "-", "again")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdout)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	out, err := cmd.Output()
	var report struct {
		Rows int
		Sum  string
	}
	if jerr := json.Unmarshal(out, &report); err != nil || jerr != nil {
		t.Fatalf("%v, %v: %s", err, jerr, out)
	}
	want := recordedRows(t, "levels")
	if got := storeRows(t, filepath.Join(dir, "again")); !maps.Equal(got, want) || report.Rows != len(want) || len(report.Sum) != 32 {
		t.Errorf("%d rows, reported %+v; want %d", len(got), report, len(want))
	}
}

// copyDir copies the files of a directory.
func copyDir(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// TestImportStatus: 1 for damage, 2 for what cannot be done; and nothing at the target.
func TestImportStatus(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	copyDir(t, filepath.Join(recorded, "levels"), at("whole"))
	copyDir(t, filepath.Join(recorded, "levels"), at("broken"))
	tables, _ := filepath.Glob(at("broken/*.ldb"))
	b, err := os.ReadFile(tables[len(tables)-1])
	if err != nil {
		t.Fatal(err)
	}
	b[100] ^= 1
	write(t, tables[len(tables)-1], b, 0o600)
	write(t, at("nothing"), []byte("no stream"), 0o600)
	var out bytes.Buffer
	w, _ := dump.NewWriter(&out, etf.Map{})
	if err := w.Add([]byte("k"), []byte("v"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := w.End(); err != nil {
		t.Fatal(err)
	}
	write(t, at("short"), out.Bytes()[:out.Len()-1], 0o600)
	if err := errors.Join(os.Mkdir(at("full"), 0o700), os.Mkdir(at("full/x"), 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		status int
		want   string // in what is printed
		args   []string
	}{
		{2, "between 1 and 2", nil},
		{2, "FROM and TARGET", []string{"whole"}},
		{2, "FROM and TARGET", []string{"whole", "x", "--dry-run"}},
		{2, "no such file", []string{"nobody", "x"}},
		{2, "no CURRENT", []string{"full", "x"}},
		{2, "there are lsm and couch", []string{"--engine", "x", "whole", "x"}},
		{2, "unknown option", []string{"--option", "a=b", "whole", "x"}},
		{2, "not name=value", []string{"--option", "a", "whole", "x"}},
		{2, "use --expiry", []string{"--option", "expiry_minutes=1", "whole", "x"}},
		{2, "must not exist, or be empty", []string{"whole", "full"}},
		{2, "--sync-mib", []string{"--sync-mib", "0", "whole", "x"}},
		{1, filepath.Base(tables[len(tables)-1]) + " at offset 0: ", []string{"broken", "x1"}},
		{1, "checksum", []string{"--dry-run", "broken"}},
		{1, "left out: 1 places", []string{"--skip-damaged", "broken", "x2"}},
		{1, "frame at offset", []string{"nothing", "x"}},
		{1, "cut short", []string{"short", "x3"}},
	} {
		stdout, stderr, status := runProgram(t, dir, append([]string{"import"}, c.args...)...)
		if status != c.status || !strings.Contains(stdout+stderr, c.want) {
			t.Errorf("%v: status %d, want %d; %s%s", c.args, status, c.status, stdout, stderr)
		}
	}
	for _, name := range []string{"x", "x1", "x3"} {
		if _, err := os.Stat(at(name)); err == nil {
			t.Errorf("%s is there", name)
		}
	}
	// What was read before the damage is not read again when it is left out.
	_, stderr, status := runProgram(t, dir, "import", "--skip-damaged", "broken", "x1")
	if status != 1 || !strings.Contains(stderr, "going on") {
		t.Errorf("status %d, %s", status, stderr)
	}
	whole := recordedRows(t, "levels")
	if got := storeRows(t, at("x1")); len(got) == 0 || maps.Equal(got, whole) {
		t.Errorf("%d rows, undamaged %d", len(got), len(whole))
	}
}

// manyRows writes a stream of n rows and returns it and the rows.
func manyRows(t *testing.T, n int) ([]byte, map[string]string) {
	t.Helper()
	var out bytes.Buffer
	w, err := dump.NewWriter(&out, etf.Map{})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	rows := map[string]string{}
	for i := range n {
		key, value := fmt.Sprintf("%08d", i), fmt.Sprintf("%x", rng.Uint64())
		rows[key] = value
		if err := w.Add([]byte(key), []byte(value), 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.End(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), rows
}

// killAfter kills an import that runs, with SIGKILL, once it has said on errOut that it
// has synced as often as lines says.
func killAfter(t *testing.T, cmd *exec.Cmd, errOut *os.File, lines int) {
	t.Helper()
	in := bufio.NewReaderSize(errOut, 16) // not to read ahead
	for n := 0; n < lines; {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatalf("it ended before it was killed: %v", err)
		}
		if strings.Contains(line, "durable") {
			n++
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGKILL {
		t.Fatalf("it ended before it was killed: %v", cmd.ProcessState)
	}
}

// importing starts an import that tells of each batch.
func importing(t *testing.T, dir string, in *os.File, args ...string) (*exec.Cmd, *os.File) {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"import", "--verbose", "--sync-mib", "0.001"}, args...)...)
	cmd.Dir, cmd.Stdin = dir, in
	cmd.Env = append(os.Environ(), asProgram+"=1")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	// The program waits when it has said more than a page that nobody has read.
	const setPipeSize = 1031 // F_SETPIPE_SZ
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, w.Fd(), setPipeSize, 4096); errno != 0 {
		t.Fatal(errno)
	}
	cmd.Stderr = w
	err = cmd.Start()
	_ = w.Close()
	if err != nil {
		t.Fatal(err)
	}
	return cmd, r
}

var behindRows = regexp.MustCompile(`behind (\d+) rows`)

// goneOn runs an import to its end, and says behind how many rows it went on.
func goneOn(t *testing.T, dir string, in []byte, args ...string) string {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, "store")); err == nil {
		t.Fatal("there is a target that is not whole")
	}
	cmd := exec.Command(os.Args[0], append([]string{"import"}, args...)...)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(in)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	out, err := cmd.CombinedOutput()
	m := behindRows.FindSubmatch(out)
	if err != nil || m == nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(m[1])
}

// TestImportKilled: an import from standard input that is killed over and over, with
// SIGKILL, before all of its input is there, leaves nothing at the target, goes on behind
// what it has synced, and in the end all rows are there.
func TestImportKilled(t *testing.T) {
	b, rows := manyRows(t, 60_000)
	for _, engine := range []string{"lsm", "couch"} {
		dir := t.TempDir()
		for _, part := range []int{3, 5} { // of six
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd, errOut := importing(t, dir, r, "--engine", engine, "-", "store")
			_ = r.Close()
			sent := make(chan error, 1)
			go func() {
				_, err := w.Write(b[:len(b)*part/6])
				sent <- err
			}()
			killAfter(t, cmd, errOut, 2) // batches of 8,192 rows
			<-sent                       // it may be cut off, for nobody reads any more
			_ = w.Close()
		}
		if got := goneOn(t, dir, b, "--engine", engine, "-", "store"); got == "0" {
			t.Errorf("%s: it went on behind %s rows", engine, got)
		}
		if got := storeRows(t, filepath.Join(dir, "store")); !maps.Equal(got, rows) {
			t.Errorf("%s: %d rows, want %d", engine, len(got), len(rows))
		}
	}
}

// TestImportKilledDirectory: the same with a directory that LevelDB writes now. Rows are
// as its program makes them.
func TestImportKilledDirectory(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "stock")
	source := filepath.Join("..", "..", "storage", "leveldb", "testdata", "stock.cc")
	if out, err := exec.Command("g++", "-O1", "-o", program, source, "-lleveldb", "-lpthread").CombinedOutput(); err != nil {
		t.Skipf("LevelDB cannot be compiled against (apt-get install g++ libleveldb-dev): %v: %s", err, out)
	}
	const n, size = 240_000, 100 // 50 batches, more than standard error has room for
	cmd := exec.Command(program)
	cmd.Stdin = strings.NewReader(fmt.Sprintf("open %s/db 1 1048576 4096\nfill 0 %d 1 %d\nclose\n", dir, n, size))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd, errOut := importing(t, dir, nil, "db", "store")
	killAfter(t, cmd, errOut, 3)
	behind := goneOn(t, dir, nil, "db", "store")
	if behind == "0" || behind == fmt.Sprint(n) {
		t.Errorf("it went on behind %s rows", behind)
	}
	got := storeRows(t, filepath.Join(dir, "store"))
	x := uint64(88172645463325252)
	for i := range n {
		value := make([]byte, size)
		for j := range value {
			if j%8 == 0 {
				x ^= x << 13
				x ^= x >> 7
				x ^= x << 17
			}
			if value[j] = 'a'; j%8 < 4 {
				value[j] = byte(x >> (8 * (j % 8)))
			}
		}
		if key := fmt.Sprintf("%016d", i); got[key] != string(value) {
			t.Fatalf("row %s is %q, not %q", key, got[key], value)
		}
	}
	if len(got) != n {
		t.Errorf("%d rows, want %d", len(got), n)
	}
}

// TestImportTouchesNothing: neither a run that works nor one that fails changes a byte
// or a name in the source.
func TestImportTouchesNothing(t *testing.T) {
	dir := t.TempDir()
	copyDir(t, filepath.Join(recorded, "levels"), filepath.Join(dir, "db"))
	if err := os.Symlink("db", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	before := listing(t, filepath.Join(dir, "db"))
	for _, args := range [][]string{{"db", "store"}, {"db", "store"}, {"--dry-run", "db"}, {"db", "db"}, {"db", "db/sub"}, {"db", "db/sub/sub"}, {"db", "link/sub"}} {
		runProgram(t, dir, append([]string{"import"}, args...)...)
		if after := listing(t, filepath.Join(dir, "db")); after != before {
			t.Errorf("%v: before\n%safter\n%s", args, before, after)
		}
	}
}

func listing(t *testing.T, dir string) string {
	t.Helper()
	names, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	lines := []string{}
	for _, e := range names {
		b, _ := os.ReadFile(filepath.Join(dir, e.Name()))
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%s %d %v %x\n", e.Name(), info.Size(), info.ModTime(), sha256.Sum256(b)))
	}
	return strings.Join(slices.Sorted(slices.Values(lines)), "")
}

// TestImportExpiry: with --expiry rows keep the times of their writing, and those whose
// own time has come are left out; without it all are there, and that is told. The
// directory is in Basho's form; package leveldb says what is in it.
func TestImportExpiry(t *testing.T) {
	dir := t.TempDir()
	from, _ := filepath.Abs(filepath.Join(recorded, "..", "basho"))
	stdout, stderr, status := runProgram(t, dir, "import", from, "plain")
	if status != 0 || !strings.Contains(stdout, "Basho") || !strings.Contains(stdout, "at which they expire, in this run: 2;") || !strings.Contains(stdout, "time of their writing, in this run: 1;") {
		t.Errorf("status %d: %s%s", status, stdout, stderr)
	}
	want := map[string]string{"expired": "1", "expires": "2", "plain": "3", "written": "4"}
	if got := storeRows(t, filepath.Join(dir, "plain")); !maps.Equal(got, want) {
		t.Errorf("without --expiry: %v", got)
	}
	stdout, stderr, status = runProgram(t, dir, "import", "--expiry", from, "timed")
	if status != 0 || !strings.Contains(stdout, "left out, in this run: 1 rows") {
		t.Errorf("status %d: %s%s", status, stdout, stderr)
	}
	delete(want, "expired")
	if got := storeRows(t, filepath.Join(dir, "timed")); !maps.Equal(got, want) {
		t.Errorf("with --expiry: %v", got)
	}
	exported, stderr, status := runProgram(t, dir, "export", "timed", "-")
	if status != 0 {
		t.Fatal(stderr)
	}
	r, err := dump.NewReader(strings.NewReader(exported))
	if err != nil {
		t.Fatal(err)
	}
	for r.Next() {
		if string(r.Key()) == "written" && r.Written() != 1500000000000000 || r.Written() == 0 {
			t.Errorf("%s was written at %d", r.Key(), r.Written())
		}
	}
	if r.Err() != nil {
		t.Error(r.Err())
	}
}
