package lsm

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"scanode/storage"
)

func engine(t testing.TB, fsys vfs.FS) *Engine {
	e := New(Config{CacheBytes: 1 << 20, FS: fsys})
	t.Cleanup(e.Close)
	return e
}

func write(t testing.TB, path, data string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestPlaces opens directories of every kind that a crash or another program
// can leave.
func TestPlaces(t *testing.T) {
	marker := fmt.Sprintf("engine %s\nformat %d\n", Name, formatPlain)
	for _, c := range []struct {
		name  string
		files map[string]string
		want  error  // of an open with CreateIfMissing; nil is success
		text  string // in the error
		bare  error  // of an open without
	}{
		{"empty", nil, nil, "", storage.ErrMissing},
		{"crash after the lock", map[string]string{"LOCK": ""}, nil, "", storage.ErrMissing},
		{"crash before the rename", map[string]string{"LOCK": "", "SCANODE.tmp": "engi"}, nil, "", storage.ErrMissing},
		{"crash after the marker", map[string]string{"LOCK": "", "SCANODE": marker}, nil, "", storage.ErrMissing},
		{"crash in pebble's creation", map[string]string{"LOCK": "", "SCANODE": marker, "MANIFEST-000001": "torn"}, nil, "", storage.ErrMissing},
		{"mount point", map[string]string{"lost+found/x": ""}, nil, "", storage.ErrMissing},
		{"manifest lost", map[string]string{"SCANODE": marker, "000004.sst": "x"}, storage.ErrCorrupt, "000004.sst", storage.ErrCorrupt},
		{"LevelDB", map[string]string{"CURRENT": "MANIFEST-000004\n", "MANIFEST-000004": "x", "000005.ldb": "x", "LOCK": "", "LOG": ""},
			storage.ErrForeign, "scanode import", storage.ErrForeign},
		{"LevelDB without CURRENT", map[string]string{"MANIFEST-000004": "x", "LOG": ""}, storage.ErrForeign, "scanode import", storage.ErrForeign},
		{"Basho's LevelDB", map[string]string{"CURRENT": "MANIFEST-000004\n", "sst_0/000005.sst": "x", "LOG": ""},
			storage.ErrForeign, "scanode import", storage.ErrForeign},
		{"levels of Basho's LevelDB", map[string]string{"sst_4/000005.sst": "x"}, storage.ErrForeign, "scanode import", storage.ErrForeign},
		{"a crash in Destroy", map[string]string{"LOCK": "", "SCANODE": marker, "DESTROY": "\n", "000004.sst": "x"}, nil, "", storage.ErrMissing},
		{"a crash at the end of Destroy", map[string]string{"LOCK": "", "SCANODE": marker}, nil, "", storage.ErrMissing},
		{"Pebble of somebody else", map[string]string{"marker.manifest.000001.MANIFEST-000001": "", "MANIFEST-000001": "x"},
			storage.ErrForeign, "MANIFEST-000001", storage.ErrForeign},
		{"notes", map[string]string{"notes.txt": "x"}, storage.ErrForeign, "notes.txt", storage.ErrForeign},
		{"another engine", map[string]string{"SCANODE": "engine couch\nformat 1\n"}, storage.ErrForeign, "couch", storage.ErrForeign},
		{"format without its line", map[string]string{"SCANODE": "engine lsm\nformat 2\n"}, storage.ErrCorrupt, "SCANODE", storage.ErrCorrupt},
		{"line without its format", map[string]string{"SCANODE": marker + timedLine + "\n"}, storage.ErrCorrupt, "SCANODE", storage.ErrCorrupt},
		{"newer format", map[string]string{"SCANODE": "engine lsm\nformat 99\nand more\n"}, storage.ErrForeign, "format 99 is newer", storage.ErrForeign},
		{"marker empty", map[string]string{"SCANODE": ""}, storage.ErrCorrupt, "SCANODE", storage.ErrCorrupt},
		{"marker of rubbish", map[string]string{"SCANODE": strings.Repeat("x", 1<<20)}, storage.ErrCorrupt, "SCANODE", storage.ErrCorrupt},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := engine(t, nil)
			dir := filepath.Join(t.TempDir(), "db")
			if err := os.Mkdir(dir, 0o777); err != nil {
				t.Fatal(err)
			}
			for name, data := range c.files {
				write(t, filepath.Join(dir, name), data)
			}
			before := listing(t, dir)
			if _, err := e.Open(dir, storage.Options{}); !errors.Is(err, c.bare) {
				t.Fatalf("open without CreateIfMissing: %v, want %v", err, c.bare)
			}
			if after := listing(t, dir); !slices.Equal(before, after) {
				t.Fatalf("%q became %q", before, after)
			}
			s, err := e.Open(dir, storage.Options{CreateIfMissing: true, ErrorIfExists: true})
			if c.want != nil {
				if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) || !strings.Contains(err.Error(), dir) {
					t.Fatalf("open: %v, want %v with %q", err, c.want, c.text)
				}
				if after := listing(t, dir); !slices.Equal(before, after) {
					t.Fatalf("%q became %q", before, after)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Apply(put("k", "v"), true); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// listing is every file below dir with its content.
func listing(t testing.TB, dir string) (out []string) {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		out = append(out, path+"="+string(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestPathIsFile(t *testing.T) {
	e := engine(t, nil)
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, "x")
	_, err := e.Open(path, storage.Options{CreateIfMissing: true})
	if !errors.Is(err, storage.ErrForeign) || !strings.Contains(err.Error(), "a file") {
		t.Fatal(err)
	}
	_, err = e.Open(path+"/below", storage.Options{CreateIfMissing: true})
	if err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Fatal(err)
	}
}

// lockDenied is a file system whose LOCK may not be written.
type lockDenied struct{ vfs.FS }

// Lock implements vfs.FS.
func (lockDenied) Lock(name string) (io.Closer, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EACCES}
}

// TestOpenSaysWhatFailed: what the disk says of an open comes out as it is.
func TestOpenSaysWhatFailed(t *testing.T) {
	_, err := engine(t, lockDenied{vfs.NewMem()}).Open("/db", storage.Options{CreateIfMissing: true})
	if !errors.Is(err, fs.ErrPermission) || errors.Is(err, storage.ErrLocked) {
		t.Errorf("LOCK without permission: %v", err)
	}
	for at := range 40 {
		inj := &injector{reads: true}
		e := engine(t, errorfs.Wrap(vfs.NewMem(), inj))
		inj.arm(func(n int, _ errorfs.Op) bool { return n == at })
		s, err := e.Open("/db", storage.Options{CreateIfMissing: true})
		inj.arm(nil)
		if err == nil {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if errors.Is(err, storage.ErrParked) || !errors.Is(err, errDisk) || strings.Count(err.Error(), "lsm: ") != 1 {
			t.Errorf("operation %d: %v", at, err)
		}
	}
}

// TestOddPlaces opens what is no place for a store.
func TestOddPlaces(t *testing.T) {
	root := t.TempDir()
	e := engine(t, nil)
	link := filepath.Join(root, "link")
	if err := os.Symlink(filepath.Join(root, "gone"), link); err != nil {
		t.Fatal(err)
	}
	s := openIn(t, e, filepath.Join(root, "x"))
	defer s.Close()
	other := filepath.Join(root, "other")
	if err := os.Symlink(filepath.Join(root, "x"), other); err != nil {
		t.Fatal(err)
	}
	for dir, text := range map[string]string{
		link:                            "which does not exist",
		filepath.Join(link, "sub"):      "which does not exist",
		filepath.Join(root, "x", "sub"): "inside the store " + filepath.Join(root, "x"),
		filepath.Join(root, "x/a/b"):    "inside the store",
		filepath.Join(other, "sub"):     "inside the store",
	} {
		_, err := e.Open(dir, storage.Options{CreateIfMissing: true})
		if !errors.Is(err, storage.ErrForeign) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if err := s.Checkpoint(filepath.Join(other, "copy")); !errors.Is(err, storage.ErrForeign) {
		t.Error(err)
	}
	for _, name := range []string{"sub", "a", "copy"} {
		if _, err := os.Stat(filepath.Join(root, "x", name)); err == nil {
			t.Errorf("%s was made in the store", name)
		}
	}
}

func TestOptionErrors(t *testing.T) {
	e := engine(t, vfs.NewMem())
	for _, c := range []struct {
		name  string
		value any
	}{
		{"max_open_files", int64(10)}, {"write_buffer_size", int64(-1)}, {"write_buffer_size", "big"},
		{"write_buffer_size", int64(1) << 62}, {"sst_block_size", int64(0)}, {"compression", "lzma"},
		{"compression", int64(1)}, {"use_bloomfilter", int64(1000)}, {"use_bloomfilter", "yes"},
	} {
		_, err := e.Open("/db", storage.Options{CreateIfMissing: true, Engine: map[string]any{c.name: c.value}})
		if !errors.Is(err, storage.ErrOption) || !strings.Contains(err.Error(), c.name) || strings.Contains(err.Error(), "\"") {
			t.Errorf("%s = %v: %v", c.name, c.value, err)
		}
	}
	for _, v := range []any{"snappy", "zstd", "none", true, false} {
		for _, bloom := range []any{true, false, int64(0), int64(16)} {
			s, err := e.Open(fmt.Sprintf("/db/%v/%v", v, bloom), storage.Options{CreateIfMissing: true,
				Engine: map[string]any{"compression": v, "use_bloomfilter": bloom}})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// fds is the number of this process's descriptors.
func fds(t *testing.T) int {
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc")
	}
	return len(names)
}

// settled waits for goroutines that are on their way out, and reports how many
// are more than before. Only a leak waits for the deadline.
func settled(before int) int {
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); runtime.Gosched() {
		if runtime.NumGoroutine() <= before {
			return 0
		}
	}
	return runtime.NumGoroutine() - before
}

// TestFailedOpens fails 300 opens for different reasons and counts what is
// left.
func TestFailedOpens(t *testing.T) {
	e := engine(t, nil)
	root := t.TempDir()
	open := filepath.Join(root, "open")
	s, err := e.Open(open, storage.Options{CreateIfMissing: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	broken := filepath.Join(root, "broken")
	b, err := e.Open(broken, storage.Options{CreateIfMissing: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	manifests, _ := filepath.Glob(filepath.Join(broken, "MANIFEST-*"))
	for _, m := range manifests {
		write(t, m, "rubbish")
	}
	write(t, filepath.Join(root, "foreign", "CURRENT"), "x")
	fail := func() {
		for dir, want := range map[string]error{
			open: storage.ErrLocked, filepath.Join(root, "none"): storage.ErrMissing,
			filepath.Join(root, "foreign"): storage.ErrForeign, broken: storage.ErrCorrupt,
		} {
			if _, err := e.Open(dir, storage.Options{}); !errors.Is(err, want) {
				t.Fatalf("%s: %v, want %v", dir, err, want)
			}
		}
	}
	fail()
	files, goroutines := fds(t), runtime.NumGoroutine()
	for range 75 {
		fail()
	}
	if n := fds(t); n > files {
		t.Errorf("%d descriptors became %d", files, n)
	}
	if n := settled(goroutines); n > 0 {
		t.Errorf("%d goroutines left", n)
	}
}

// TestOpenFaults fails each operation of the file system in turn, reads
// included, while a store is created and while one with a log to replay is
// opened. Either the open works, or it is an error that leaves nothing, and the
// next open finds everything.
func TestOpenFaults(t *testing.T) {
	for _, existing := range []bool{false, true} {
		for _, sticky := range []bool{false, true} {
			for at, reached := 0, true; reached && !t.Failed(); at++ {
				t.Run(fmt.Sprintf("existing=%v/sticky=%v/operation=%d", existing, sticky, at), func(t *testing.T) {
					reached = openFault(t, existing, sticky, at)
				})
			}
		}
	}
}

func openFault(t *testing.T, existing, sticky bool, at int) (reached bool) {
	mem := vfs.NewCrashableMem()
	inj := &injector{reads: true}
	e := engine(t, errorfs.Wrap(mem, inj))
	o := storage.Options{CreateIfMissing: true, Engine: smallBuffers}
	if existing {
		s, err := e.Open("/a/db", o)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 30 {
			if err := s.Apply(put(fmt.Sprint(i), strings.Repeat("v", 20<<10)), true); err != nil {
				t.Fatal(err)
			}
		}
		// Lose the power, so that there is a log to replay and to flush.
		mem2 := mem.CrashClone(vfs.CrashCloneCfg{})
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		e = engine(t, errorfs.Wrap(mem2, inj))
	}
	goroutines := runtime.NumGoroutine()
	inj.arm(func(n int, op errorfs.Op) bool { return n == at || sticky && n > at })
	s, err := e.Open("/a/db", o)
	reached = inj.count() > at
	inj.arm(nil)
	if err == nil {
		// The fault may have hit what pebble does beside and after Open. The store
		// is parked then, Close says so, and nothing is lost all the same.
		if err := s.Close(); err != nil && !strings.Contains(err.Error(), "injected") {
			t.Fatalf("close after a tolerated fault: %v", err)
		}
	} else if !reached {
		t.Fatal(err)
	}
	if n := settled(goroutines); n > 0 {
		buf := make([]byte, 1<<20)
		t.Fatalf("%d goroutines left after %v\n%s", n, err, buf[:runtime.Stack(buf, true)])
	}
	s, err = e.Open("/a/db", o)
	if err != nil {
		t.Fatalf("open without faults: %v", err)
	}
	if existing {
		for i := range 30 {
			if _, err := s.Get(nil, fmt.Append(nil, i)); err != nil {
				t.Fatalf("row %d: %v", i, err)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return reached
}

// TestLockedByProcess opens a store that another process has open.
func TestLockedByProcess(t *testing.T) {
	if dir := os.Getenv("LSM_TEST_CHILD"); dir != "" {
		_, err := New(Config{}).Open(dir, storage.Options{CreateIfMissing: true})
		if !errors.Is(err, storage.ErrLocked) || !strings.Contains(err.Error(), "another process") {
			t.Fatalf("child: %v", err)
		}
		return
	}
	dir := t.TempDir()
	s, err := engine(t, nil).Open(dir, storage.Options{CreateIfMissing: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	// A failed open in this process must not give up the lock.
	if _, err := engine(t, nil).Open(dir, storage.Options{CreateIfMissing: true}); !errors.Is(err, storage.ErrLocked) {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if _, err := engine(t, nil).Open(link, storage.Options{CreateIfMissing: true}); !errors.Is(err, storage.ErrLocked) {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestLockedByProcess$")
	cmd.Env = append(os.Environ(), "LSM_TEST_CHILD="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
