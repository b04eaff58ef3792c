package lsm

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

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
	if err := makeDir(fs, "/data"); err != nil {
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

func TestStoreOnDisk(t *testing.T)   { storetest.Run(t, onDisk) }
func TestStoreInMemory(t *testing.T) { storetest.Run(t, inMemory) }

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }
