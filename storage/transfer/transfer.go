package transfer

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/storage"
	"scanode/storage/dump"
	"scanode/storage/home"
)

// ErrStopped: the transfer was asked to stop. It can be gone on with.
var ErrStopped = errors.New("stopped")

// ErrOther: what is beside the target is a transfer of other rows, or into another kind
// of store.
var ErrOther = errors.New("another import is under way there")

// ErrDiffers: the rows in the new store are not those that were given. Nothing is at the
// target.
var ErrDiffers = errors.New("the new store does not hold the rows that were read")

// Config says what is brought where.
type Config struct {
	Source Source
	// Origin says which rows they are: where they come from and in which state that is.
	// One transfer is gone on with by another only if theirs are the same.
	Origin string
	// Target is where the new store shall be: nothing, or an empty directory, and not
	// in one of Outside, where rows come from.
	Target  string
	Outside []string
	// Engine makes the store; Name is its name, Options are its options.
	Engine  storage.Engine
	Name    string
	Options map[string]any
	// Restart begins anew where a transfer is under way.
	Restart bool
	// SyncBytes is how many bytes of keys and values are written between two syncs; 0
	// is 64 MiB.
	SyncBytes int64
	// Stop, when closed, ends the transfer after a sync. May be nil. The source may then
	// still be in use after Run, if it was waiting for input: it must not be closed.
	Stop <-chan struct{}
	// Synced is told of each sync, Phase of how many bytes are verified, Resumed of what
	// was done before. Each may be nil. They are called on the goroutine of Run.
	Synced  func(dump.Sum)
	Phase   func(name string, done, total int64)
	Resumed func(begun time.Time, sum dump.Sum)
}

// Result says what was done.
type Result struct {
	Sum     dump.Sum // of the rows at the target
	Skipped int64    // of the source, all runs; places may be counted in two of them
	Resumed bool     // something was there
}

const defaultSyncBytes = 64 << 20

// Run brings the rows. Errors wrap those of the source and the engine, ErrStopped,
// ErrOther, ErrDiffers, or storage.ErrExists when something is at the target. After any
// error Run can be called again.
func Run(c Config) (Result, error) {
	if c.SyncBytes <= 0 {
		c.SyncBytes = defaultSyncBytes
	}
	t := &transfer{c: c}
	if err := t.place(); err != nil {
		return Result{}, err
	}
	if err := t.begin(); err != nil {
		return Result{}, err
	}
	if !t.st.Verified {
		if err := t.bring(); err != nil {
			return Result{}, err
		}
		if err := t.verify(); err != nil {
			return Result{}, err
		}
	}
	if err := t.finish(); err != nil {
		return Result{}, err
	}
	return Result{Sum: t.st.Sum, Skipped: t.st.Skipped, Resumed: t.resumed}, nil
}

// transfer is one that is under way.
type transfer struct {
	c       Config
	target  string // its real name
	dir     string // of the transfer
	st      state
	store   storage.Store
	resumed bool
}

func (t *transfer) storeDir() string { return filepath.Join(t.dir, storeName) }

// place works out the directories. The target may be a link to an empty directory.
func (t *transfer) place() error {
	target, err := filepath.Abs(t.c.Target)
	if err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(target); err == nil {
		target = real
	} else if !notThere(err) {
		return err
	}
	if err := home.NotDangling(vfs.Default, target); err != nil {
		return err
	}
	if err := home.NotInside(vfs.Default, target); err != nil {
		return err
	}
	for _, dir := range t.c.Outside {
		if inside(target, dir) {
			return fmt.Errorf("%s: the target lies in %s, which is only read", target, dir)
		}
	}
	t.target, t.dir = target, target+suffix
	names, err := os.ReadDir(target)
	switch {
	case notThere(err):
		return nil
	case err != nil:
		return err
	case len(names) > 0 && !t.renamed():
		return fmt.Errorf("%s: %w: the target must not exist, or be empty", target, storage.ErrExists)
	}
	return nil
}

// inside says whether path, which may not exist yet, is dir or lies in it, whatever
// links lead there.
func inside(path, dir string) bool {
	want, err := os.Stat(dir)
	if err != nil {
		return false
	}
	for p := path; ; p = filepath.Dir(p) {
		// Behind a link, what is above is above its target.
		if real, err := filepath.EvalSymlinks(p); err == nil {
			p = real
		}
		if info, err := os.Stat(p); err == nil && os.SameFile(info, want) {
			return true
		}
		if p == filepath.Dir(p) {
			return false
		}
	}
}

// renamed says whether the store was renamed already, and only cleaning up was left.
func (t *transfer) renamed() bool {
	st, err := readState(t.dir)
	if err != nil || !st.Verified {
		return false
	}
	_, err = os.Stat(t.storeDir())
	_, there := os.Stat(filepath.Join(t.target, home.MarkerName))
	return notThere(err) && there == nil
}

// begin reads what was done before, or makes a beginning.
func (t *transfer) begin() error {
	st, err := readState(t.dir)
	if err == nil && t.c.Restart && !st.Verified || errors.Is(err, storage.ErrCorrupt) && t.c.Restart {
		if err := t.remove(); err != nil {
			return err
		}
		st, err = readState(t.dir)
	}
	switch {
	case notThere(err):
		return t.first()
	case err != nil:
		return err
	case st.Origin != t.c.Origin:
		return fmt.Errorf("%s: %w: of %s; now it is %s", t.dir, ErrOther, st.Origin, t.c.Origin)
	case st.Engine != t.c.Name || !sameOptions(st.Options, t.c.Options):
		return fmt.Errorf("%s: %w: into a store of engine %s with options %v", t.dir, ErrOther, st.Engine, st.Options)
	}
	t.st, t.resumed = st, true
	if t.c.Resumed != nil {
		t.c.Resumed(st.Begun, st.Sum)
	}
	return nil
}

// first makes the directory of the transfer. IMPORT is there before the store, so that
// a store without one is never taken for the beginning of this.
func (t *transfer) first() error {
	if _, err := os.Stat(t.dir); err == nil {
		names, err := os.ReadDir(t.dir)
		if err != nil {
			return err
		}
		for _, e := range names {
			if e.Name() != stateTmpName {
				return fmt.Errorf("%s: %w: it holds %s, and no %s", t.dir, storage.ErrExists, e.Name(), stateName)
			}
		}
	}
	if err := home.MakeDir(vfs.Default, t.dir); err != nil {
		return err
	}
	t.st = state{Format: stateFormat, Begun: time.Now().UTC().Truncate(time.Second), Origin: t.c.Origin, Engine: t.c.Name, Options: t.c.Options}
	return writeState(t.dir, t.st)
}

// remove removes what is under way, IMPORT last.
func (t *transfer) remove() error {
	if err := t.c.Engine.Destroy(t.storeDir()); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(t.dir, stateName)); err != nil {
		return err
	}
	return home.SyncDir(vfs.Default, t.dir)
}

func (t *transfer) open() (err error) {
	t.store, err = t.c.Engine.Open(t.storeDir(), storage.Options{CreateIfMissing: true, Engine: t.c.Options})
	return err
}

// bring writes the rows that are not in the store yet, and closes it.
func (t *transfer) bring() error {
	if err := t.open(); err != nil {
		return err
	}
	err := t.write()
	if cerr := t.store.Close(); err == nil {
		err = cerr
	}
	return err
}

// write writes what the reader reads. What was written before an error is synced, so
// that it need not be read again.
func (t *transfer) write() error {
	r := &reader{source: t.c.Source, skipped: t.st.Skipped}
	if t.st.Sum.Rows > 0 {
		if t.c.Source.SeekAfter(t.st.LastKey) {
			r.sum = t.st.Sum
		} else {
			r.skipped, r.passed = 0, bytes.Clone(t.st.LastKey) // apply overwrites LastKey
		}
	}
	p := startPipe(r)
	defer p.end(t.c.Stop)
	unsynced := int64(0)
	for {
		b, err := p.next(t.c.Stop)
		if err != nil {
			return errors.Join(err, t.sync())
		}
		if err := t.apply(b); err != nil {
			return err
		}
		unsynced += int64(len(b.room))
		if unsynced >= t.c.SyncBytes || b.end {
			if err := t.sync(); err != nil {
				return err
			}
			unsynced = 0
		}
		if b.end {
			return nil
		}
		p.back(b)
	}
}

// apply writes a batch. The sum of a batch whose rows were all there before is that of
// fewer rows than the store has, unless it is the last.
func (t *transfer) apply(b *batch) error {
	if len(b.ops) > 0 {
		if err := t.store.Apply(b.ops, false); err != nil {
			return err
		}
		t.st.LastKey = append(t.st.LastKey[:0], b.lastKey()...)
	}
	if len(b.ops) > 0 || b.end {
		t.st.Sum, t.st.Skipped = b.sum, b.skipped
	}
	return nil
}

func (t *transfer) stopped() bool {
	select {
	case <-t.c.Stop:
		return true
	default:
		return false
	}
}

// sync makes durable what was written, and then what is known of it.
func (t *transfer) sync() error {
	if err := t.store.Apply(nil, true); err != nil {
		return err
	}
	if err := writeState(t.dir, t.st); err != nil {
		return err
	}
	if t.c.Synced != nil {
		t.c.Synced(t.st.Sum)
	}
	return nil
}

// verify reads the store from end to end, as whoever opens it next will.
func (t *transfer) verify() error {
	if err := t.open(); err != nil {
		return err
	}
	sum, err := t.read()
	if cerr := t.store.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	if sum != t.st.Sum {
		return fmt.Errorf("%w: read were %v; in the store are %v", ErrDiffers, t.st.Sum, sum)
	}
	t.st.Verified = true
	return writeState(t.dir, t.st)
}

// showEvery is how many rows are verified between two calls of Phase.
const showEvery = 1 << 16

func (t *transfer) read() (sum dump.Sum, err error) {
	it, err := t.store.NewIter(storage.Range{})
	if err != nil {
		return sum, err
	}
	for ok := it.First(); ok; ok = it.Next() {
		sum.Add(it.Key(), it.Value())
		if sum.Rows%showEvery == 0 && t.c.Phase != nil {
			t.c.Phase("verifying", sum.Bytes(), t.st.Sum.Bytes())
		}
		if sum.Rows%showEvery == 0 && t.stopped() {
			return sum, errors.Join(ErrStopped, it.Close())
		}
	}
	return sum, it.Close()
}

// finish puts the store into its place. Should it be cut short, the next Run comes here.
func (t *transfer) finish() error {
	above := filepath.Dir(t.target)
	if !t.renamed() {
		// os.Rename does not replace an empty directory; the system does.
		if err := syscall.Rename(t.storeDir(), t.target); err != nil {
			return &os.LinkError{Op: "rename", Old: t.storeDir(), New: t.target, Err: err}
		}
	}
	if err := home.SyncDir(vfs.Default, above); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(t.dir, stateName)); err != nil {
		return err
	}
	return os.Remove(t.dir)
}
