package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/storage"
	"scanode/storage/couch"
)

// The storage engine: commits of one row each, synced.

// storeRun is what n of them took.
type storeRun struct {
	perCommit float64 // bytes of all files, without keys and values
	replay    time.Duration
}

// runStore writes n rows with ids of 32 random digits, or ascending ones, and opens the store
// as the end of the program leaves it.
func runStore(n int, keys string, options map[string]any) (r storeRun, err error) {
	fsys, killed := vfs.NewMem(), vfs.NewMem()
	const dir = "/store"
	open := func(fsys vfs.FS) (storage.Store, error) {
		return couch.New(couch.Config{FS: fsys}).Open(dir, storage.Options{CreateIfMissing: true, Engine: options})
	}
	s, err := open(fsys)
	if err != nil {
		return r, err
	}
	var data int64
	value := []byte(strings.Repeat("v", 100))
	for i := range n {
		key := fmt.Appendf(nil, "%032d", i)
		if keys == "rand" {
			key = []byte(documentID(i))
		}
		if err := s.Apply([]storage.Op{{Kind: storage.Put, Key: key, Value: value}}, true); err != nil {
			return r, err
		}
		data += int64(len(key) + len(value))
		if i == n-2 {
			// All K have n as a multiple, or are greater: the log is at its longest.
			if _, err := vfs.Clone(fsys, killed, dir, dir); err != nil {
				return r, err
			}
		}
	}
	if err := s.Close(); err != nil {
		return r, err
	}
	files, err := bytesBelow(fsys, dir)
	if err != nil {
		return r, err
	}
	r.perCommit = float64(files-data) / float64(n)
	start := time.Now()
	s, err = open(killed)
	if err != nil {
		return r, err
	}
	r.replay = time.Since(start)
	return r, s.Close()
}

// bytesBelow adds up the files of a directory.
func bytesBelow(fsys vfs.FS, dir string) (total int64, err error) {
	names, err := fsys.List(dir)
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		info, err := fsys.Stat(filepath.Join(dir, name))
		if err != nil {
			return 0, err
		}
		if info.IsDir() {
			below, err := bytesBelow(fsys, filepath.Join(dir, name))
			if err != nil {
				return 0, err
			}
			total += below
			continue
		}
		total += info.Size()
	}
	return total, nil
}

func printStore(w io.Writer) error {
	fmt.Fprint(w, `### The storage engine

Commits of one row each, synced: a key of 32 digits and a value of 100 bytes. *Overhead*: bytes of all files after close, without those of keys and values, a commit. K: commits until tree and
header are written (log_batches). *Replay*: opening the store as a program leaves it that is killed when the log is longest, in memory, on the clock.

`)
	t := table{columns: []string{"commit", "rows", "keys", "K", "overhead", "replay, ms"}}
	for _, c := range []struct {
		commit string
		rows   int
		keys   string
		k      int64
	}{
		{"header", 1000, "rand", 0}, {"header", 10_000, "rand", 0},
		{"log", 1000, "seq", 5000}, {"log", 1000, "rand", 100}, {"log", 1000, "rand", 5000},
		{"log", 100_000, "seq", 5000}, {"log", 100_000, "rand", 1000}, {"log", 100_000, "rand", 5000}, {"log", 100_000, "rand", 20_000},
	} {
		options := map[string]any{"commit": c.commit}
		if c.k > 0 {
			options["log_batches"] = c.k
		}
		r, err := runStore(c.rows, c.keys, options)
		if err != nil {
			return fmt.Errorf("%+v: %w", c, err)
		}
		t.add(c.commit, c.rows, c.keys, c.k, r.perCommit, float64(r.replay.Microseconds())/1000)
	}
	t.print(w)
	return nil
}
