package couch

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/storage/home"
	"scanode/storage/storetest"
)

// modes are the ways to commit, with buffers so small that small tests meet the limits.
// Two of them compact all the time; and each open reads the whole tree.
var modes = map[string]map[string]any{
	"log":    small("commit", "log", "log_batches", int64(20)),
	"header": small("commit", "header"),
	"log, compacting": small("commit", "log", "log_batches", int64(5), "compact_percent", int64(1), "compact_min_size", int64(0),
		"policy", "scanode_write", "compression", "zstd_1"),
	"header, compacting": small("commit", "header", "compact_percent", int64(1), "compact_min_size", int64(0), "policy", "compat", "compression", "none"),
}

func small(more ...any) map[string]any {
	options := map[string]any{"write_buffer_size": int64(64 << 10), "node_cache_size": int64(64 << 10), "paranoid_checks": true}
	for i := 0; i < len(more); i += 2 {
		options[more[i].(string)] = more[i+1]
	}
	return options
}

// onDisk is the operating system's file system.
func onDisk(t testing.TB, options map[string]any) storetest.Env {
	return storetest.Env{
		Engine:  New(Config{}),
		Dir:     t.TempDir(),
		Options: options,
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
func inMemory(t testing.TB, options map[string]any) storetest.Env {
	fs := vfs.NewCrashableMem()
	if err := home.MakeDir(fs, "/data"); err != nil {
		t.Fatal(err)
	}
	return inMemoryEnv(fs, options)
}

func inMemoryEnv(fs *vfs.MemFS, options map[string]any) storetest.Env {
	return storetest.Env{
		Engine:  New(Config{FS: fs}),
		Dir:     "/data",
		Options: options,
		Crash: func(t testing.TB, percent int, rng *rand.Rand) storetest.Env {
			return inMemoryEnv(fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng}), options)
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
		BadOption: "commit",
		BadValue:  "perhaps",
	}
}

func TestStoreOnDisk(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"log", "header, compacting"} {
		t.Run(mode, func(t *testing.T) {
			storetest.Run(t, func(t testing.TB) storetest.Env { return onDisk(t, modes[mode]) })
		})
	}
}

func TestStoreInMemory(t *testing.T) {
	t.Parallel()
	for _, mode := range slices.Sorted(maps.Keys(modes)) {
		t.Run(mode, func(t *testing.T) {
			storetest.Run(t, func(t testing.TB) storetest.Env { return inMemory(t, modes[mode]) })
		})
	}
}

// seedOf returns the seed for a test: SEED, or any.
func seedOf(t testing.TB) uint64 {
	seed, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	t.Log("SEED", seed)
	return seed
}
