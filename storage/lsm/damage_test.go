package lsm

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/storage"
)

// damaged is a store on a disk that can be copied: some rows in tables of several
// levels, and if it was not closed the last ones in the log.
type damaged struct {
	mem   *vfs.MemFS
	files []string
	rows  int    // rows 0 to rows-1 are there
	what  string // the damage, for reports
}

func damageRow(i int) (key, value string) {
	rng := rand.New(rand.NewPCG(uint64(i), 7))
	return fmt.Sprintf("%06d", i), fmt.Sprintf("%d:%0200x", i, rng.Uint64())
}

func newDamaged(t *testing.T, closed bool) *damaged {
	d := &damaged{mem: vfs.NewCrashableMem(), rows: 600}
	e := engine(t, d.mem)
	s := openIn(t, e, "/db")
	for i := range d.rows {
		if err := s.Apply(put(damageRow(i)), i%100 == 0); err != nil {
			t.Fatal(err)
		}
		if i == 200 || i == 400 || i == 480 {
			if err := s.db.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		if i == 400 {
			if err := s.db.Compact(t.Context(), []byte{0}, []byte{255}, false); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !closed {
		if err := s.Apply(nil, true); err != nil {
			t.Fatal(err)
		}
		d.mem = d.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: newRand(1)})
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	names, err := d.mem.List("/db")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	d.files = names
	return d
}

// with calls change on a copy of the disk, opens the store there and reads it.
// It returns the rows read without an error in between, and the error.
func (d *damaged) with(t *testing.T, change func(fs vfs.FS)) (rows []string, err error) {
	t.Helper()
	fs := d.mem.CrashClone(vfs.CrashCloneCfg{}) // everything is synced
	change(fs)
	e := New(Config{FS: fs, CacheBytes: 1 << 20})
	defer e.Close()
	st, err := e.Open("/db", storage.Options{Engine: smallBuffers})
	if err != nil {
		return nil, err
	}
	s := st.(*store)
	defer func() {
		if cerr := s.Close(); cerr != nil && err == nil {
			err = cerr
		}
	}()
	it, err := s.NewIter(storage.Range{})
	if err != nil {
		return nil, err
	}
	for ok := it.First(); ok; ok = it.Next() {
		k, v := string(it.Key()), string(it.Value())
		if it.Err() != nil {
			break
		}
		i, aerr := strconv.Atoi(k)
		if aerr != nil {
			t.Fatalf("a row %q was never written", k)
		}
		if wk, wv := damageRow(i); k != wk || v != wv {
			t.Fatalf("row %d is %q, %q", i, k, v)
		}
		rows = append(rows, k)
	}
	if err := it.Close(); err != nil {
		if st, serr := s.Stats(); serr == nil && st.ReadErrors == 0 && errors.Is(err, storage.ErrCorrupt) {
			t.Errorf("corruption was not counted: %v", err)
		}
		return rows, err
	}
	// Point reads see the same.
	for i := 0; i < d.rows; i += 37 {
		wk, wv := damageRow(i)
		v, err := s.Get(nil, []byte(wk))
		if err == nil && string(v) != wv {
			t.Fatalf("get %q: %q", wk, v)
		}
		if errors.Is(err, storage.ErrNotFound) && i < len(rows) {
			t.Fatalf("%s: get %q: %v, but a scan found it", d.what, wk, err)
		}
	}
	return rows, nil
}

// flip inverts one bit of a file.
func flip(t *testing.T, fs vfs.FS, path string, bit int64) {
	t.Helper()
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], bit/8); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 1 << (bit % 8)
	if _, err := f.WriteAt(b[:], bit/8); err != nil {
		t.Fatal(err)
	}
}

func sizeOf(t *testing.T, fs vfs.FS, path string) int64 {
	info, err := fs.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// TestFlippedBits flips one bit of one file at a time: every row, or an error.
func TestFlippedBits(t *testing.T) {
	t.Parallel()
	for _, closed := range []bool{true, false} {
		t.Run(fmt.Sprintf("closed=%v", closed), func(t *testing.T) { flippedBits(t, newDamaged(t, closed)) })
	}
}

func flippedBits(t *testing.T, d *damaged) {
	seed := rand.Uint64()
	if s := os.Getenv("LSM_TEST_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("LSM_TEST_SEED=%d", seed)
	rng := newRand(seed)
	outcome := map[string]int{}
	for _, name := range d.files {
		path := "/db/" + name
		size := sizeOf(t, d.mem, path)
		if size == 0 || name == logFileName { // LOG is never synced, so the copy has none
			continue
		}
		for range 12 {
			bit := rng.Int64N(size * 8)
			d.what = fmt.Sprintf("%s of %d bytes, bit %d", name, size, bit)
			rows, err := d.with(t, func(fs vfs.FS) { flip(t, fs, path, bit) })
			kind := name[strings.LastIndexByte(name, '.')+1:]
			if !strings.Contains(name, ".") {
				kind, _, _ = strings.Cut(name, "-")
			}
			switch {
			case err == nil && len(rows) == d.rows:
				outcome[kind+": all rows"]++
			case err == nil:
				t.Fatalf("%s, bit %d: %d rows of %d and no error", name, bit, len(rows), d.rows)
			case (kind == "sst" || kind == "MANIFEST") && !errors.Is(err, storage.ErrCorrupt):
				t.Errorf("%s, bit %d: %v", name, bit, err)
			default:
				outcome[kind+": error"]++
			}
			for i, k := range rows {
				if want, _ := damageRow(i); k != want {
					t.Fatalf("%s, bit %d: row %d is missing, %q is there", name, bit, i, k)
				}
			}
		}
	}
	for _, k := range slices.Sorted(mapKeys(outcome)) {
		t.Logf("%-20s %d", k, outcome[k])
	}
}

func mapKeys(m map[string]int) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// TestTornLog cuts a log that nobody knows to be synced at many lengths, and
// fills its end with zeroes. It always opens, and holds a prefix.
func TestTornLog(t *testing.T) {
	t.Parallel()
	d := newDamaged(t, false)
	log := ""
	for _, name := range d.files {
		if strings.HasSuffix(name, ".log") && sizeOf(t, d.mem, "/db/"+name) > 0 {
			log = "/db/" + name // the last one
		}
	}
	size := sizeOf(t, d.mem, log)
	last := -1
	for cut := int64(0); cut <= size; cut += 1 + size/100 {
		for _, zeroes := range []int{0, 1000} {
			rows, err := d.with(t, func(fs vfs.FS) {
				truncate(t, fs, log, cut, zeroes)
				if err := fs.Remove("/db/" + syncedName); err != nil {
					t.Fatal(err)
				}
			})
			if err != nil {
				t.Fatalf("cut at %d of %d, %d zeroes: %v", cut, size, zeroes, err)
			}
			if len(rows) < last || len(rows) < 481 {
				t.Fatalf("cut at %d of %d: %d rows, there were %d with less", cut, size, len(rows), last)
			}
			last = len(rows)
		}
	}
	if last < d.rows-10 {
		t.Fatalf("%d rows of the whole log", last)
	}
}

func truncate(t *testing.T, fs vfs.FS, path string, cut int64, zeroes int) {
	t.Helper()
	b := contents(t, fs, path)
	g, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Write(append(b[:cut:cut], make([]byte, zeroes)...)); err != nil {
		t.Fatal(err)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
}

func contents(t *testing.T, fs vfs.FS, path string) []byte {
	t.Helper()
	f, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestMissingFiles removes one file at a time: every row, or an error.
func TestMissingFiles(t *testing.T) {
	d := newDamaged(t, true)
	for _, name := range d.files {
		rows, err := d.with(t, func(fs vfs.FS) {
			if err := fs.Remove("/db/" + name); err != nil {
				t.Fatal(err)
			}
		})
		switch {
		case errors.Is(err, storage.ErrCorrupt), name == markerName && errors.Is(err, storage.ErrForeign):
		case err != nil:
			t.Errorf("without %s: %v", name, err)
		case strings.HasSuffix(name, ".log"): // nothing tells that there was one
		case len(rows) != d.rows:
			t.Errorf("without %s: %d rows of %d and no error", name, len(rows), d.rows)
		}
	}
}
