package transfer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/storage"
	"scanode/storage/dump"
	"scanode/storage/home"
)

// Names in the directory of a transfer that is under way.
const (
	stateName    = "IMPORT"
	stateTmpName = "IMPORT.tmp"
	storeName    = "store"
	suffix       = ".importing"
)

// stateFormat is the newest this program knows.
const stateFormat = 1

// maxStateBytes bounds IMPORT. A key, of which it has one, is at most 64 MiB in a store
// of ours, and longer in base 64.
const maxStateBytes = 128 << 20

// state is what IMPORT holds, as JSON. What it claims is true: it is written after the
// store has been synced.
type state struct {
	Format  int            `json:"format"`
	Begun   time.Time      `json:"begun"`
	Origin  string         `json:"origin"`
	Engine  string         `json:"engine"`
	Options map[string]any `json:"options"`
	// LastKey is the last key that is durable, and Sum that of the rows up to it. With
	// no rows LastKey means nothing.
	LastKey []byte   `json:"last_key"`
	Sum     dump.Sum `json:"sum"`
	Skipped int64    `json:"skipped"`
	// Verified says that the store is whole and was found so: only renaming is left.
	Verified bool `json:"verified"`
}

// readState returns fs.ErrNotExist, wrapped, where there is none.
func readState(dir string) (st state, err error) {
	path := filepath.Join(dir, stateName)
	info, err := os.Stat(path)
	if err != nil {
		return st, err
	}
	if info.Size() > maxStateBytes {
		return st, fmt.Errorf("%w: %s has %d bytes", storage.ErrCorrupt, path, info.Size())
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return st, err
	}
	if err := json.Unmarshal(b, &st); err != nil {
		return st, fmt.Errorf("%w: %s cannot be read: %v", storage.ErrCorrupt, path, err)
	}
	if st.Format < 1 || st.Format > stateFormat {
		return st, fmt.Errorf("%s has format %d; this program knows %d", path, st.Format, stateFormat)
	}
	return st, nil
}

// writeState makes st durable.
func writeState(dir string, st state) error {
	b, err := json.Marshal(st)
	if err != nil {
		return err
	}
	return home.WriteWhole(vfs.Default, dir, stateTmpName, stateName, string(b)+"\n")
}

// sameOptions compares as JSON has them: numbers lose their type in it.
func sameOptions(a, b map[string]any) bool {
	if len(a) == 0 && len(b) == 0 {
		return true
	}
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && string(x) == string(y)
}

func notThere(err error) bool { return errors.Is(err, fs.ErrNotExist) }
