package lsm

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs/atomicfs"

	"scanode/storage"
	"scanode/storage/home"
)

// Repair implements storage.Engine. It gathers all versions of all rows, from the
// tables and the logs, in a scratch store in which they are sorted, and writes the
// newest of each to a fresh store, which then replaces the old one.
//
// Which tables count says the manifest. Without it all count that are there, also
// those that a compaction has replaced. So that no row is lost then, a row that
// was deleted may come back, see versions, and one that was replaced may be as it was
// before: compactions take the sequence numbers of rows away, and then nothing tells
// which of two tables is the newer. The same happens when the deletion, or the newer
// version, is in a block that cannot be read.
func (e *Engine) Repair(dir string) (storage.Repaired, error) {
	dir = filepath.Clean(dir)
	r := repair{e: e}
	err := r.run(dir)
	if err != nil {
		return storage.Repaired{}, failedf("repair %s: %w", dir, bare(err))
	}
	return r.done, nil
}

// repair is one run of Repair.
type repair struct {
	e     *Engine
	dir   string
	timed bool
	// guess says that the manifest is lost, so that tables count that may have been
	// replaced.
	guess     bool
	tables    []uint64
	logs      []uint64
	log       mark // what SYNCED says of the last one
	rangeDels []rangeDel
	done      storage.Repaired
	more      int // losses that are not listed
}

// maxLost bounds the list of what was lost.
const maxLost = 1000

func (r *repair) lose(lines ...string) {
	room := max(maxLost-len(r.done.Lost), 0)
	r.more += max(len(lines)-room, 0)
	r.done.Lost = append(r.done.Lost, lines[:min(len(lines), room)]...)
}

func (r *repair) run(dir string) error {
	f, err := look(r.e.fs, dir)
	switch {
	case err == nil && f.place != placeStore:
		return nil
	case errors.Is(err, storage.ErrForeign):
		if ours, oerr := r.e.isOurs(dir); oerr != nil || !ours {
			return err
		}
	case err != nil && !errors.Is(err, storage.ErrCorrupt):
		return err
	}
	return r.e.alone(dir, func(dir string) error {
		r.dir = dir
		if err := r.survey(); err != nil {
			return err
		}
		if err := r.rebuild(); err != nil {
			_ = r.e.fs.RemoveAll(r.path(freshDir))
			return err
		}
		return r.replace()
	}, nil)
}

func (r *repair) path(elem ...string) string {
	return r.e.fs.PathJoin(append([]string{r.dir}, elem...)...)
}

// survey finds out which files count and whether values carry times.
func (r *repair) survey() error {
	fs := r.e.fs
	names, err := fs.List(r.dir)
	if err != nil {
		return err
	}
	onDisk := map[uint64]bool{}
	for _, name := range names {
		num, err := strconv.ParseUint(strings.TrimSuffix(name, ".sst"), 10, 64)
		if err == nil && tableName(num) == name {
			onDisk[num] = true
		}
	}
	was, err := r.synced()
	if err != nil {
		return err
	}
	live, least, err := r.manifest(was.manifest)
	if err != nil {
		r.guess, least = true, 0
		r.lose(fmt.Sprintf("the manifest: %v; rows that were deleted or replaced lately may be back as they were", err))
		live = onDisk
	}
	for num := range live {
		if onDisk[num] {
			r.tables = append(r.tables, num)
		} else {
			r.lose(tableName(num) + ": it is missing")
		}
	}
	slices.Sort(r.tables)
	logs, err := listLogs(fs, r.dir)
	if err != nil {
		return err
	}
	for _, num := range logs {
		if num >= least {
			r.logs = append(r.logs, num)
		}
	}
	r.log = was.log
	if r.log.num >= least && r.log.num != 0 && !slices.Contains(logs, r.log.num) {
		r.lose(logName(r.log.num) + ": it is missing")
	}
	if r.timed, err = checkMarker(fs, r.path(markerName)); err == nil {
		return nil
	}
	r.lose(fmt.Sprintf("%s: %v", markerName, err))
	return r.timedByTables()
}

// synced returns what SYNCED says.
func (r *repair) synced() (synced, error) {
	b, err := home.ReadSmall(r.e.fs, r.path(syncedName))
	if err != nil && !isNotExist(err) {
		return synced{}, err
	}
	return parseSynced(b), nil
}

// manifest returns what the manifest says: the live tables and the first log that
// counts. Any error means that it is not known.
func (r *repair) manifest(was mark) (live map[uint64]bool, least uint64, err error) {
	fs := r.e.fs
	name, err := atomicfs.ReadMarker(fs, r.dir, manifestMarker)
	if err != nil {
		return nil, 0, err
	}
	if name == "" {
		return nil, 0, errors.New("no file names it")
	}
	if least, err = checkManifest(fs, r.dir, was); err != nil {
		return nil, 0, err
	}
	live, err = liveTables(fs, r.path(name))
	return live, least, err
}

// timedByTables finds out from the tables whether values carry times.
func (r *repair) timedByTables() error {
	for _, num := range r.tables {
		timed, err := guarded(func() (bool, error) {
			t, err := openTable(r.e.fs, r.path(tableName(num)))
			if err != nil {
				return false, err
			}
			_, timed := t.UserProperties[timedProperty]
			return timed, t.Close()
		})
		if err == nil {
			r.timed = timed
			return nil
		}
	}
	return fmt.Errorf("%w: neither %s nor a table says whether values carry times", storage.ErrCorrupt, markerName)
}

// newStore makes one of the two stores that Repair works with.
func (r *repair) newStore(name string, scratch bool) (*store, error) {
	dir := r.path(freshDir, name)
	if err := home.MakeDir(r.e.fs, dir); err != nil {
		return nil, err
	}
	s := newStore(r.e, dir)
	s.scratch = scratch
	s.expiry = expiry{timed: r.timed && !scratch, now: r.e.now}
	if err := r.e.startPebble(s, defaultSettings()); err != nil {
		s.discard()
		return nil, err
	}
	s.fence.opening.Store(false)
	return s, nil
}

// rebuild makes the fresh store.
func (r *repair) rebuild() (err error) {
	if err := r.e.fs.RemoveAll(r.path(freshDir)); err != nil {
		return err
	}
	scratch, err := r.newStore("scratch", true)
	if err != nil {
		return err
	}
	defer func() { _ = scratch.Close() }() // it is removed
	if err := r.gather(scratch); err != nil {
		return err
	}
	fresh, err := r.newStore(freshStoreDir, false)
	if err != nil {
		return err
	}
	err = r.settle(scratch, fresh)
	if cerr := fresh.Close(); err == nil {
		err = cerr
	}
	return err
}

// gather puts all versions into the scratch store.
func (r *repair) gather(scratch *store) error {
	v := versionWriter{s: scratch}
	for _, num := range r.tables {
		lost, err := readTable(r.e.fs, r.path(tableName(num)), func(key internalKey, value []byte) error {
			return v.add(key.UserKey, uint64(key.SeqNum()), num, key.Kind(), value)
		}, func(start, end []byte, seq uint64) error {
			r.rangeDels = append(r.rangeDels, newRangeDel(start, end, seq, num))
			return nil
		})
		r.lose(lost...)
		if err != nil {
			return err
		}
	}
	for i, num := range r.logs {
		lost, err := eachRecord(r.e.fs, r.path(logName(num)), num, func(record []byte) error {
			return r.addBatch(&v, record, num)
		})
		if err != nil {
			return err
		}
		if lost > 0 {
			r.lose(fmt.Sprintf("%s: %d places in it", logName(num), lost))
			continue
		}
		size := int64(0)
		if num == r.log.num {
			size = r.log.size
		}
		if err := checkLog(r.e.fs, r.path(logName(num)), num, size, i == len(r.logs)-1); err != nil {
			r.lose(fmt.Sprintf("its end: %v", err))
		}
	}
	slices.SortFunc(r.rangeDels, func(a, b rangeDel) int { return cmp.Compare(a.start, b.start) })
	return v.flush()
}

// replace puts the fresh store into the place of the old one.
func (r *repair) replace() error {
	fs := r.e.fs
	aside := ""
	for n := 1; ; n++ {
		aside = fmt.Sprintf("%s%d", asidePrefix, n)
		if _, err := fs.Stat(r.path(aside)); isNotExist(err) {
			break
		} else if err != nil {
			return err
		}
	}
	r.done.Aside = r.path(aside)
	if r.more > 0 {
		r.done.Lost = append(r.done.Lost, fmt.Sprintf("and %d more", r.more))
	}
	if err := writeMarker(fs, r.dir, r.timed); err != nil {
		return err
	}
	if err := writeJournal(fs, r.dir, journalAside, aside+"\n"); err != nil {
		return err
	}
	// From here on it will be finished, now or by the next who opens the store.
	if err := swap(fs, r.dir); err != nil {
		return err
	}
	return r.report()
}

// report writes down what was done, beside the old files and in the log.
func (r *repair) report() error {
	text := fmt.Sprintf("rows kept: %d\n%s", r.done.Rows, strings.Join(append(r.done.Lost, ""), "\n"))
	if err := home.WriteWhole(r.e.fs, r.done.Aside, "REPORT.tmp", "REPORT", text); err != nil {
		return err
	}
	line := fmt.Sprintf("%s repaired: %d rows kept, %d losses, old files in %s\n",
		r.e.now().Format(logTimeLayout), r.done.Rows, len(r.done.Lost), r.done.Aside)
	return appendLog(r.e.fs, r.dir, []byte(line))
}
