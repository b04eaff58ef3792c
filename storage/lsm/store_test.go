package lsm

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/storage"
	"scanode/storage/home"
	"scanode/storage/storetest"
)

// smallBuffers make small tests flush and compact.
var smallBuffers = map[string]any{"write_buffer_size": int64(256 << 10), "sst_block_size": int64(1024)}

// onDisk is the operating system's file system.
func onDisk(t testing.TB) storetest.Env {
	e := New(Config{CacheBytes: 8 << 20})
	t.Cleanup(e.Close)
	return storetest.Env{
		Engine:  e,
		Dir:     t.TempDir(),
		Options: smallBuffers,
		WriteFile: func(path string, data []byte) error {
			if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				return err
			}
			return os.WriteFile(path, data, 0o666)
		},
		ReadDir:   func(path string) ([]string, error) { return vfs.Default.List(path) },
		BadOption: "write_buffer_size",
		BadValue:  int64(1),
	}
}

// inMemory is a file system that can lose its power.
func inMemory(t testing.TB) storetest.Env {
	fs := vfs.NewCrashableMem()
	if err := home.MakeDir(fs, "/data"); err != nil {
		t.Fatal(err)
	}
	return inMemoryEnv(t, fs)
}

func inMemoryEnv(t testing.TB, fs *vfs.MemFS) storetest.Env {
	e := New(Config{CacheBytes: 8 << 20, FS: fs})
	t.Cleanup(e.Close)
	return storetest.Env{
		Engine:  e,
		Dir:     "/data",
		Options: smallBuffers,
		Crash: func(t testing.TB, percent int, rng *rand.Rand) storetest.Env {
			return inMemoryEnv(t, fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng}))
		},
		WriteFile: func(path string, data []byte) error {
			if err := fs.MkdirAll(fs.PathDir(path), 0o777); err != nil {
				return err
			}
			f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
			if err != nil {
				return err
			}
			_, err = f.Write(slices.Clone(data))
			return err
		},
		ReadDir:   func(path string) ([]string, error) { return fs.List(path) },
		BadOption: "sst_block_size",
		BadValue:  int64(-1),
	}
}

func TestStoreOnDisk(t *testing.T) {
	t.Parallel()
	storetest.Run(t, onDisk)
}

func TestStoreInMemory(t *testing.T) {
	t.Parallel()
	storetest.Run(t, inMemory)
}

// TestStoreTimed is the suite over a store that keeps times, with a limit that no
// row reaches.
func TestStoreTimed(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t testing.TB) storetest.Env { return timed(inMemory(t)) })
}

func timed(env storetest.Env) storetest.Env {
	env.Options = maps.Clone(env.Options)
	env.Options["expiry_enabled"], env.Options["expiry_minutes"] = true, int64(60)
	crash := env.Crash
	env.Crash = func(t testing.TB, percent int, rng *rand.Rand) storetest.Env { return timed(crash(t, percent, rng)) }
	return env
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// TestLeakedIterators closes a store under iterators and opens it again. What
// the iterators hold is freed when the last of them is closed.
func TestLeakedIterators(t *testing.T) {
	e := engine(t, nil)
	dir := t.TempDir()
	goroutines, files := runtime.NumGoroutine(), fds(t)
	var its []storage.Iter
	for round := range 5 {
		s := openIn(t, e, dir)
		if err := s.Apply(put(fmt.Sprint(round), "v"), true); err != nil {
			t.Fatal(err)
		}
		if err := s.db.Flush(); err != nil { // so that iterators hold table files
			t.Fatal(err)
		}
		for range 3 {
			it, err := s.NewIter(storage.Range{})
			if err != nil || !it.Last() {
				t.Fatal(err)
			}
			its = append(its, it)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for i, it := range its {
		if k := string(it.Key()); k != fmt.Sprint(i/3) {
			t.Errorf("iterator %d stands on %q", i, k)
		}
		if err := it.Close(); !errors.Is(err, storage.ErrClosed) {
			t.Error(err)
		}
	}
	if n := settled(goroutines); n > 0 {
		t.Errorf("%d goroutines left", n)
	}
	if n := fds(t); n > files {
		t.Errorf("%d descriptors became %d", files, n)
	}
}

// TestAllocations: a step of an iterator allocates nothing, and a batch the same
// whatever its size.
func TestAllocations(t *testing.T) {
	if underRace {
		t.Skip("the race detector allocates too; make test runs this without it")
	}
	e := engine(t, vfs.NewMem())
	st, err := e.Open("/db", storage.Options{CreateIfMissing: true})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	batch := func(rows int) []storage.Op {
		var ops []storage.Op
		for i := range rows {
			ops = append(ops, put(fmt.Sprintf("%06d", i), "value")...)
		}
		return ops
	}
	allocs := func(rows int) float64 {
		ops := batch(rows)
		return testing.AllocsPerRun(200, func() {
			if err := st.Apply(ops, false); err != nil {
				t.Fatal(err)
			}
		})
	}
	if one, hundred := allocs(1), allocs(100); hundred > one+4 {
		t.Errorf("%.1f allocations for one row, %.1f for a hundred", one, hundred)
	}
	if err := st.Apply(batch(10000), false); err != nil {
		t.Fatal(err)
	}
	it, err := st.NewIter(storage.Range{})
	if err != nil || !it.First() {
		t.Fatal(err)
	}
	defer it.Close()
	if n := testing.AllocsPerRun(5000, func() {
		if !it.Next() || len(it.Key()) == 0 || len(it.Value()) == 0 {
			t.Fatal(it.Err())
		}
	}); n > 0 {
		t.Errorf("%.2f allocations a step", n)
	}
}

// TestManyStores keeps 16 stores open at once, opened side by side, and counts
// descriptors and goroutines after closing them.
func TestManyStores(t *testing.T) {
	e := engine(t, nil)
	root := t.TempDir()
	goroutines, files := runtime.NumGoroutine(), fds(t)
	stores := make([]*store, 16)
	var wg sync.WaitGroup
	for i := range stores {
		wg.Go(func() {
			st, err := e.Open(filepath.Join(root, fmt.Sprint(i)), storage.Options{CreateIfMissing: true, Engine: smallBuffers})
			if err != nil {
				t.Error(err)
				return
			}
			stores[i] = st.(*store)
			for n := range 100 { // enough to compact in all of them
				if err := st.Apply(put(fmt.Sprint(n), strings.Repeat("x", 20<<10)), false); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, s := range stores {
		if s == nil {
			t.Fatal("not opened")
		}
		if n := len(allRows(t, s)); n != 100 {
			t.Errorf("%d rows", n)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := settled(goroutines); n > 0 {
		t.Errorf("%d goroutines left", n)
	}
	if n := fds(t); n > files {
		t.Errorf("%d descriptors became %d", files, n)
	}
}

func allRows(t testing.TB, s storage.Store) (keys []string) {
	it, err := s.NewIter(storage.Range{})
	if err != nil {
		t.Fatal(err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		keys = append(keys, string(it.Key()))
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	return keys
}

// scribbling is an engine whose iterators spoil their slices.
type scribbling struct{ storage.Engine }

func (e scribbling) Open(dir string, o storage.Options) (storage.Store, error) {
	s, err := e.Engine.Open(dir, o)
	if err != nil {
		return nil, err
	}
	return storetest.Scribble(s), nil
}

// TestScribble runs the suite over storetest's own wrapper, which must keep the
// contract too.
func TestScribble(t *testing.T) {
	t.Parallel()
	storetest.Conformance(t, func(t testing.TB) storetest.Env {
		env := inMemory(t)
		env.Engine, env.Crash = scribbling{env.Engine}, nil
		return env
	})
}
