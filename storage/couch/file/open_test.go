package file

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// nilTerm is an empty list.
var nilTerm = []byte{131, 106}

func create(t testing.TB, fsys vfs.FS, name string) *File {
	t.Helper()
	f, err := Create(fsys, name, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Commit(nilTerm); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestLock opens a file again under each of its names while it is open.
func TestLock(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "f.couch")
	names := []string{name, filepath.Join(dir, "soft"), filepath.Join(dir, "hard")}
	f := create(t, vfs.Default, name)
	if err := errors.Join(os.Symlink(name, names[1]), os.Link(name, names[2])); err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if _, err := Open(vfs.Default, n, Options{}); !errors.Is(err, ErrLocked) {
			t.Errorf("Open %s: %v", n, err)
		}
		if _, err := Create(vfs.Default, n, Options{}); !errors.Is(err, ErrLocked) {
			t.Errorf("Create %s: %v", n, err)
		}
		r, err := OpenReadOnly(vfs.Default, n, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.LastHeader(); err != nil {
			t.Error(err)
		}
		r.Close() // and the lock is still there: the next name finds it
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := Open(vfs.Default, names[2], Options{})
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if left, _ := os.ReadDir(dir); len(left) != len(names) {
		t.Errorf("the lock left files behind: %v", left)
	}

	mem := vfs.NewMem()
	f = create(t, mem, "f")
	if _, err := Open(mem, "f", Options{}); !errors.Is(err, ErrLocked) {
		t.Errorf("in memory: %v", err)
	}
	f.Close()
	if f, err = Open(mem, "f", Options{}); err != nil {
		t.Fatal(err)
	}
	f.Close()
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }

	for _, open := range []func(vfs.FS, string, Options) (*File, error){Open, OpenReadOnly} {
		if _, err := open(vfs.Default, path("missing"), Options{}); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("missing: %v", err)
		}
		if _, err := open(vfs.Default, dir, Options{}); err == nil {
			t.Error("a directory was opened")
		}
	}
	if _, err := os.Stat(path("missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("Open made a file")
	}
	if err := os.WriteFile(path("notes"), []byte("not a database"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(vfs.Default, path("notes"), Options{}); !errors.Is(err, ErrExists) {
		t.Errorf("Create on bytes: %v", err)
	}
	if _, err := Open(vfs.Default, path("notes"), Options{}); !errors.Is(err, ErrNoHeader) {
		t.Errorf("Open of notes: %v", err)
	}
	if b, _ := os.ReadFile(path("notes")); string(b) != "not a database" {
		t.Errorf("the notes are now %q", b)
	}
	if err := os.WriteFile(path("empty"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, open := range []func(vfs.FS, string, Options) (*File, error){Open, Create} {
		f, err := open(vfs.Default, path("empty"), Options{})
		if err != nil {
			t.Fatalf("empty: %v", err)
		}
		if _, err := f.LastHeader(); !errors.Is(err, ErrNoHeader) {
			t.Errorf("empty: %v", err)
		}
		f.Close()
	}
	var place *Error
	f, err := OpenReadOnly(vfs.Default, path("notes"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Read(nil, 3); !errors.As(err, &place) || place.Name != path("notes") || place.Offset != 3 {
		t.Errorf("the error does not say where: %v", err)
	}
	for _, ptr := range []int64{-1, -1 << 63, 14, 1<<63 - 1} {
		if _, err := f.Read(nil, ptr); !errors.Is(err, ErrBeyondEOF) {
			t.Errorf("pointer %d: %v", ptr, err)
		}
	}
	f.Close()
}

// TestReadOnly: no call writes.
func TestReadOnly(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	create(t, vfs.Default, name).Close()
	if err := os.Chmod(name, 0o400); err != nil {
		t.Fatal(err)
	}
	f, err := OpenReadOnly(vfs.Default, name, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, appendErr := f.Append([][]byte{{1}})
	_, headerErr := f.WriteHeader(nilTerm)
	_, commitErr := f.Commit(nilTerm)
	for i, err := range []error{appendErr, headerErr, commitErr, f.Sync()} {
		if !errors.Is(err, ErrReadOnly) {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

// TestChanged lets another program write to the file that does not heed the lock.
func TestChanged(t *testing.T) {
	for what, change := range map[string]func(string) error{
		"longer":  func(name string) error { return os.Truncate(name, 5000) },
		"shorter": func(name string) error { return os.Truncate(name, 10) },
	} {
		name := filepath.Join(t.TempDir(), "f")
		f := create(t, vfs.Default, name)
		if _, err := f.Append([][]byte{make([]byte, 100)}); err != nil {
			t.Fatal(err)
		}
		if err := change(name); err != nil {
			t.Fatal(err)
		}
		if what == "shorter" {
			if _, err := f.LastHeader(); !errors.Is(err, ErrBeyondEOF) {
				t.Errorf("%s: header: %v", what, err)
			}
		}
		if _, err := f.Append([][]byte{{1}}); !errors.Is(err, ErrChanged) {
			t.Errorf("%s: %v", what, err)
		}
		if err := allFail(f); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		f.Close()
	}
}

func TestClosed(t *testing.T) {
	f := create(t, vfs.NewMem(), "f")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	_, appendErr := f.Append([][]byte{{1}})
	_, readErr := f.Read(nil, 0)
	_, commitErr := f.Commit(nilTerm)
	_, headerErr := f.LastHeader()
	for i, err := range []error{appendErr, readErr, commitErr, headerErr, f.Sync(), f.Close()} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

// TestLimits: what is too large to be read is not written, and nothing fails.
func TestLimits(t *testing.T) {
	f, err := Create(vfs.NewMem(), "f", Options{MaxChunkBytes: 100})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Append([][]byte{{1}, make([]byte, 101)}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("chunk: %v", err)
	}
	large := append([]byte{131, 109, 0, 0, 0, 90}, make([]byte, 90)...)
	if _, err := f.Commit(large); !errors.Is(err, ErrTooLarge) {
		t.Errorf("header: %v", err)
	}
	for _, term := range [][]byte{nil, {131}, {106}, {131, 106, 106}, {131, 80, 0, 0, 0, 1, 106}} {
		if _, err := f.Commit(term); !errors.Is(err, ErrHeaderTerm) {
			t.Errorf("header %x: %v", term, err)
		}
	}
	if f.Size() != 0 {
		t.Errorf("%d bytes were written", f.Size())
	}
	c, err := f.Append([][]byte{make([]byte, 100)})
	if err != nil {
		t.Fatal(err)
	}
	f.maxChunk = 99
	if _, err := f.Read(nil, c[0].Ptr); !errors.Is(err, ErrTooLarge) {
		t.Errorf("read: %v", err)
	}
}
