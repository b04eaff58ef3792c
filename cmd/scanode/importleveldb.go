package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"scanode/storage/leveldb"
)

// levelDB is a directory of LevelDB's as an origin.
type levelDB struct {
	store   *leveldb.Store
	rows    *leveldb.Rows
	roots   []string
	text    string
	expiry  bool
	now     uint64 // microseconds since 1970
	expired int64  // rows left out
	timed   int64  // rows with a time of writing
	expires int64  // rows with a time of their own that has not come
}

func openLevelDB(dirs []string, f *importFlags, leftOut func(string)) (origin, error) {
	store, err := leveldb.Open(dirs, leveldb.Options{
		Force:       f.force,
		SkipDamaged: f.skipDamaged,
		Damaged:     func(d *leveldb.Damage) { leftOut(d.Error()) },
	})
	if err != nil {
		return nil, err
	}
	l := &levelDB{store: store, roots: dirs, expiry: f.expiry, now: uint64(max(time.Now().UnixMicro(), 0))}
	if l.text, err = originName(dirs, store.Info()); err == nil {
		l.rows, err = store.Rows()
	}
	if err != nil {
		_ = store.Close()
		return nil, err
	}
	return l, nil
}

// originName names a store in a state: whatever LevelDB does to it changes the manifest
// or a log.
func originName(dirs []string, info leveldb.Info) (string, error) {
	manifest, err := os.Stat(filepath.Join(info.Dir, info.Manifest))
	if err != nil {
		return "", err
	}
	var names []string
	for _, dir := range dirs {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return "", err
		}
		names = append(names, abs)
	}
	return fmt.Sprintf("%s (%s of %d bytes, logs of %d)", strings.Join(names, ", "), info.Manifest, manifest.Size(), info.LogBytes), nil
}

func (l *levelDB) SeekAfter(key []byte) bool {
	l.rows.SeekAfter(key)
	return true
}

func (l *levelDB) Next() bool {
	for l.rows.Next() {
		switch at := l.rows.Expires(); {
		case at == 0:
			if l.rows.Written() != 0 {
				l.timed++
			}
			return true
		case l.expiry && at <= l.now:
			l.expired++
		default:
			l.expires++
			return true
		}
	}
	return false
}

func (l *levelDB) Key() []byte     { return l.rows.Key() }
func (l *levelDB) Value() []byte   { return l.rows.Value() }
func (l *levelDB) Written() uint64 { return l.rows.Written() }
func (l *levelDB) Err() error      { return l.rows.Err() }
func (l *levelDB) Skipped() int64  { return int64(l.store.Info().Skipped) }
func (l *levelDB) name() string    { return l.text }

func (l *levelDB) dirs() []string { return l.roots }

func (l *levelDB) progress() (done, of int64) { return l.store.Done(), l.store.Info().TableBytes }

func (l *levelDB) report(r *importReport) {
	info := l.store.Info()
	kind := "LevelDB"
	if info.Basho {
		kind = "LevelDB of Basho's"
	}
	note := func(format string, args ...any) { r.Notes = append(r.Notes, fmt.Sprintf(format, args...)) }
	note("%s: %d tables of %d bytes, %d logs of %d bytes with %d writes", kind, info.Tables, info.TableBytes, info.Logs, info.LogBytes, info.LogWrites)
	for _, torn := range info.Torn {
		note("torn end of a log, as a crash leaves it: %s", torn)
	}
	if l.expired > 0 {
		note("expired and left out, in this run: %d rows", l.expired)
	}
	if l.expires > 0 {
		note("rows with a time of their own at which they expire, in this run: %d; the new store does not keep it", l.expires)
	}
	if l.timed > 0 && !l.expiry {
		note("rows with the time of their writing, in this run: %d; without --expiry the new store does not keep it", l.timed)
	}
}

// Close closes the files and gives LevelDB's lock back.
func (l *levelDB) Close() error {
	err := l.rows.Close()
	if cerr := l.store.Close(); err == nil {
		err = cerr
	}
	return err
}
