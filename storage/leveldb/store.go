package leveldb

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Options say how a store is read. The zero value works.
type Options struct {
	// Force reads even while another process has the store open. What it writes or
	// removes meanwhile may be missed, or missing.
	Force bool
	// SkipDamaged leaves out what cannot be read: the rest of a block, a whole table
	// where that is what is damaged or missing, a record of a log. Older versions of
	// the rows in it may then show, and rows whose deletion was in it.
	SkipDamaged bool
	// Damaged is told of all that SkipDamaged leaves out; nil is fine.
	Damaged func(*Damage)
	// LogBytes bounds the size of all logs together, which are held in memory; 0 is
	// 1 GiB. LevelDB's are about as large as its write buffers.
	LogBytes int64
}

// Info describes a store. Sizes are in bytes, as they are on the disk.
type Info struct {
	Dir          string // the directory that has CURRENT
	Manifest     string // name of the manifest
	LastSequence uint64 // as the manifest has it; the logs may go beyond
	Basho        bool   // the manifest has fields of Basho's, or tables are in sst_N
	Tables       int
	TableBytes   int64
	Logs         int
	LogBytes     int64
	LogWrites    int      // in them
	Torn         []string // ends of logs that a crash has left, and LevelDB passes over
	Skipped      int      // places left out
}

// Store is a store that is being read. Close it.
type Store struct {
	roots []string
	o     Options
	info  Info
	lock  io.Closer // nil: none
	files []tableFile
	logs  logRows
	done  int64 // bytes of tables read or passed over
	given bool  // Rows was called
}

const defaultLogBytes = 1 << 30

// Open opens the store in dirs: one directory, or the two of tiered storage, in either
// order. Errors wrap storage.ErrMissing where no CURRENT is, storage.ErrLocked where
// another process is in it, and storage.ErrCorrupt (a *Damage mostly) where something
// cannot be read. Tables are looked at by Rows only.
func Open(dirs []string, o Options) (_ *Store, err error) {
	if o.LogBytes <= 0 {
		o.LogBytes = defaultLogBytes
	}
	s := &Store{roots: slices.Clone(dirs), o: o}
	for i, dir := range s.roots {
		s.roots[i] = filepath.Clean(dir)
	}
	if s.info.Dir, err = home(s.roots); err != nil {
		return nil, err
	}
	if !o.Force {
		if s.lock, err = lock(s.info.Dir); err != nil {
			return nil, err
		}
	}
	if err := s.load(); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// load reads CURRENT, manifest and logs.
func (s *Store) load() error {
	name, err := current(s.info.Dir)
	if err != nil {
		return err
	}
	s.info.Manifest = name
	v, err := readManifest(filepath.Join(s.info.Dir, name))
	if err != nil {
		return err
	}
	s.files = v.sorted()
	s.info.LastSequence, s.info.Basho, s.info.Tables = v.lastSequence, v.basho, len(s.files)
	for _, f := range s.files {
		s.info.TableBytes += f.size
	}
	return s.replayAll(v)
}

// replayAll reads the logs whose writes no table has.
func (s *Store) replayAll(v *version) error {
	entries, err := os.ReadDir(s.info.Dir)
	if err != nil {
		return err
	}
	var numbers []uint64
	names := map[uint64]string{}
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), "sst_") {
			s.info.Basho = true
		}
		digits, ok := strings.CutSuffix(e.Name(), ".log")
		n, err := strconv.ParseUint(digits, 10, 64)
		if !ok || err != nil || n < v.logNumber && n != v.prevLogNumber {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		s.info.LogBytes += info.Size()
		numbers = append(numbers, n)
		names[n] = filepath.Join(s.info.Dir, e.Name())
	}
	if s.info.LogBytes > s.o.LogBytes {
		return fmt.Errorf("%s: its logs have %d bytes, more than the %d that are held in memory", s.info.Dir, s.info.LogBytes, s.o.LogBytes)
	}
	slices.Sort(numbers)
	s.info.Logs = len(numbers)
	for i, n := range numbers {
		if err := s.replay(&s.logs, names[n], i == len(numbers)-1); err != nil {
			return err
		}
	}
	s.logs.sort()
	s.info.LogWrites = len(s.logs.rows)
	return nil
}

// Info describes the store as far as it is known: Skipped may grow while rows are read.
func (s *Store) Info() Info { return s.info }

// Done is how many of Info's TableBytes have been read or passed over.
func (s *Store) Done() int64 { return s.done }

// Close gives the lock back. Close the Rows before.
func (s *Store) Close() error {
	if s.lock == nil {
		return nil
	}
	err := s.lock.Close()
	s.lock = nil
	return err
}

// tolerate returns nil for damage that is to be left out, and counts and tells it.
func (s *Store) tolerate(err error) error {
	var d *Damage
	if !s.o.SkipDamaged || !errors.As(err, &d) {
		return err
	}
	s.info.Skipped++
	if s.o.Damaged != nil {
		s.o.Damaged(d)
	}
	return nil
}

// openTable finds and opens a table. Basho's keeps those of each level in a directory,
// stock LevelDB all beside CURRENT, under either name.
func (s *Store) openTable(f tableFile, room []byte) (*table, error) {
	base := fmt.Sprintf("%06d", f.number)
	for _, root := range s.roots {
		for _, name := range []string{
			filepath.Join(root, "sst_"+strconv.Itoa(f.level), base+".sst"),
			filepath.Join(root, base+".ldb"),
			filepath.Join(root, base+".sst"),
		} {
			t, err := openTable(name, f.size, room)
			if !errors.Is(err, fs.ErrNotExist) {
				return t, err
			}
		}
	}
	more := ""
	if len(s.roots) == 1 && s.info.Basho {
		more = "; with tiered storage, name both directories"
	}
	return nil, damage(filepath.Join(s.roots[0], base+".ldb"), 0, "the table of level %d that the manifest names is missing (.sst, too)%s", f.level, more)
}
