package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

var updateGolden = flag.Bool("update", false, "write the recorded output of check and salvage anew; look at the difference")

// couchFiles is where files are that CouchDB wrote.
var couchFiles = filepath.Join("..", "..", "storage", "couch", "testdata")

// runProgram runs the program in dir.
func runProgram(t *testing.T, dir string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), asProgram+"=1")
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

// golden compares got with what is recorded.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "check", name)
	if *updateGolden {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

// TestCheckOutput: what is printed is what was printed when somebody last looked at it.
// That the numbers in it are right is tested in package check.
func TestCheckOutput(t *testing.T) {
	for _, c := range []struct {
		golden string
		status int
		args   []string
	}{
		{"db.txt", 0, []string{"db_small_snappy.couch", "--conflicts"}},
		{"db.json", 0, []string{"db_small_snappy.couch", "--json", "--conflicts"}},
		{"older.txt", 0, []string{"db_many.couch", "--at", "2", "--headers", "2"}},
		{"view.txt", 0, []string{"view_snappy.view"}},
		{"tree.txt", 0, []string{"tree_snappy_6000.cf"}},
		{"damaged.txt", 1, []string{"root_flag_checksum.cf", "checksummed_chunk_bad.cf", "garbage_tail.cf"}},
		{"damaged.json", 1, []string{"--json", "root_flag_checksum.cf", "all_headers_bad.cf"}},
	} {
		stdout, stderr, status := runProgram(t, couchFiles, append([]string{"check"}, c.args...)...)
		if status != c.status || stderr != "" {
			t.Errorf("%v: status %d, %s", c.args, status, stderr)
		}
		golden(t, c.golden, stdout)
		if strings.HasSuffix(c.golden, ".json") && !json.Valid([]byte(stdout)) {
			t.Errorf("%v: no JSON", c.args)
		}
	}
}

// TestCheckStatus: 2 for what cannot be read, also beside files that can.
func TestCheckStatus(t *testing.T) {
	for _, c := range []struct {
		status int
		want   string // in standard error
		args   []string
	}{
		{2, "requires at least 1 arg", []string{"check"}},
		{2, "unknown flag", []string{"check", "--nonsense", "db_empty.couch"}},
		{2, "must be positive", []string{"check", "--at", "-1", "db_empty.couch"}},
		{2, "no such file", []string{"check", "nobody.couch"}},
		{2, "no such file", []string{"check", "nobody.couch", "root_flag_checksum.cf"}},
		{1, "", []string{"check", "--at", "1000", "db_empty.couch"}},
		{1, "", []string{"check", "empty.cf"}},
		{2, "accepts 2 arg", []string{"salvage", "db_empty.couch"}},
		{2, "has bytes", []string{"salvage", "db_empty.couch", "db_many.couch"}},
		{2, "no valid header", []string{"salvage", "torn_first.cf", "nobody.couch"}},
	} {
		_, stderr, status := runProgram(t, couchFiles, c.args...)
		if status != c.status || !strings.Contains(stderr, c.want) || c.want == "" && stderr != "" {
			t.Errorf("%v: status %d, want %d; %s", c.args, status, c.status, stderr)
		}
	}
	if _, err := os.Stat(filepath.Join(couchFiles, "nobody.couch")); err == nil {
		t.Error("a salvage that failed left a file")
	}
}

// TestCheckDirectory: of a directory, files of CouchDB's are looked at, deleted ones
// and those of compactions as well (cfcheck left them out), and nothing is written.
func TestCheckDirectory(t *testing.T) {
	dir := t.TempDir()
	db, err := os.ReadFile(filepath.Join(couchFiles, "db_deleted_all.couch"))
	if err != nil {
		t.Fatal(err)
	}
	view, err := os.ReadFile(filepath.Join(couchFiles, "view_md5.view"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{
		"shards/00000000-7fffffff/a.1700000000.couch":                   db,
		"shards/00000000-7fffffff/a.1700000000.couch.compact.data":      db,
		"shards/00000000-7fffffff/b.1700000000.20231120.deleted.couch":  db,
		".delete/0123456789abcdef":                                      db,
		".shards/x_design/mrview/954721ccb3ca00460d4dab770b9c0cb6.view": view,
		"x_design/mrview/954721ccb3ca00460d4dab770b9c0cb6.compact.view": view,
		"notes.txt":   []byte("not one of them"),
		"other.data":  []byte("not one of them"),
		"_users.meta": []byte("not one of them"),
	}
	for name, b := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, path, b, 0o400)
	}
	stdout, stderr, status := runProgram(t, dir, "check", ".")
	if status != 0 || stderr != "" || !strings.Contains(stdout, "6 files of") || !strings.Contains(stdout, "4 databases, 2 views") {
		t.Errorf("status %d, %s\n%s", status, stderr, stdout)
	}
	for name, b := range files {
		if now, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(now, b) {
			t.Errorf("%s has changed, %v", name, err)
		}
	}
}

// TestSalvageOutput damages a leaf of a database and saves the rest.
func TestSalvageOutput(t *testing.T) {
	dir := t.TempDir()
	b, err := os.ReadFile(filepath.Join(couchFiles, "db_small_none.couch"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "whole.couch"), b, 0o400)
	at := bytes.LastIndex(b, []byte("lorem ipsum"))
	b = bytes.Clone(b)
	b[at] ^= 1
	write(t, filepath.Join(dir, "broken.couch"), b, 0o400)
	stdout, stderr, status := runProgram(t, dir, "salvage", "broken.couch", "saved.couch")
	if status != 1 || stderr != "" {
		t.Errorf("status %d, %s", status, stderr)
	}
	golden(t, "salvaged.txt", stdout)
	stdout, stderr, status = runProgram(t, dir, "salvage", "--json", "whole.couch", "copy.couch")
	if status != 0 || stderr != "" {
		t.Errorf("status %d, %s", status, stderr)
	}
	golden(t, "salvaged.json", stdout)
	if stdout, _, status := runProgram(t, dir, "check", "saved.couch", "copy.couch"); status != 0 {
		t.Errorf("status %d\n%s", status, stdout)
	}
	if now, err := os.ReadFile(filepath.Join(dir, "broken.couch")); err != nil || !bytes.Equal(now, b) {
		t.Errorf("broken.couch has changed, %v", err)
	}
}

// TestCheckLinks: a directory may be reached by a link, and so may files in it; no file at
// all is told from nothing being wrong.
func TestCheckLinks(t *testing.T) {
	dir := t.TempDir()
	db, err := os.ReadFile(filepath.Join(couchFiles, "db_deleted_all.couch"))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"data", "empty"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "data/a.couch"), db, 0o400)
	for name, to := range map[string]string{"link": "data", "data/b.couch": "a.couch", "data/c.couch": "../empty", "data/circle": "../data"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for arg, want := range map[string]string{"data": "2 files of", "link": "2 files of", "link/": "2 files of", "empty": "0 files of"} {
		if stdout, stderr, status := runProgram(t, dir, "check", arg); status != 0 || stderr != "" || !strings.Contains(stdout, want) {
			t.Errorf("%s: status %d, %s\n%s, want %s", arg, status, stderr, stdout, want)
		}
	}
}

// TestCheckPipe: what is no file is refused and not waited for.
func TestCheckPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe.couch")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"check", pipe}, {"check", "/dev/zero"}, {"salvage", pipe, "out"}} {
		if stdout, stderr, status := runProgram(t, t.TempDir(), args...); status != 2 || stdout != "" || !strings.Contains(stderr, "not a regular file") {
			t.Errorf("%v: status %d, %s", args, status, stderr)
		}
	}
}
