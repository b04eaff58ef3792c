package leveldb

import (
	"fmt"

	"scanode/storage"
)

// Damage is a place in a file that does not hold what LevelDB writes. As an error it
// wraps storage.ErrCorrupt.
type Damage struct {
	File   string // with its directory
	Offset int64  // in bytes
	What   string
}

// Error says where and what.
func (d *Damage) Error() string {
	return fmt.Sprintf("%s at offset %d: %s", d.File, d.Offset, d.What)
}

// Unwrap returns storage.ErrCorrupt.
func (d *Damage) Unwrap() error { return storage.ErrCorrupt }

func damage(file string, offset int64, format string, args ...any) *Damage {
	return &Damage{File: file, Offset: offset, What: fmt.Sprintf(format, args...)}
}
