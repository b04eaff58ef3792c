package lsm

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/storage"
)

func testSeed(t *testing.T) (uint64, *rand.Rand) {
	seed := rand.Uint64()
	if s := os.Getenv("LSM_TEST_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("LSM_TEST_SEED=%d", seed)
	return seed, newRand(seed)
}

// repaired repairs the store on a changed copy of the disk and returns what it
// holds, by number of row. Values must be those that were written.
func (d *damaged) repaired(t *testing.T, change func(fs vfs.FS)) (map[int]bool, storage.Repaired, error) {
	t.Helper()
	fs := d.mem.CrashClone(vfs.CrashCloneCfg{})
	change(fs)
	e := New(Config{FS: fs, CacheBytes: 1 << 20})
	defer e.Close()
	done, err := e.Repair("/db")
	if err != nil {
		return nil, done, err
	}
	st, err := e.Open("/db", storage.Options{Engine: smallBuffers})
	if err != nil {
		t.Fatalf("%s: open after the repair: %v", d.what, err)
	}
	rows := map[int]bool{}
	for _, k := range allRows(t, st) {
		i, err := strconv.Atoi(k)
		wk, wv := damageRow(i)
		v, gerr := st.Get(nil, []byte(k))
		if err != nil || k != wk || gerr != nil || string(v) != wv {
			t.Fatalf("%s: row %q is %q, %v", d.what, k, v, gerr)
		}
		rows[i] = true
	}
	if int64(len(rows)) != done.Rows {
		t.Errorf("%s: %d rows, said %d", d.what, len(rows), done.Rows)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if names, err := fs.List(done.Aside); err != nil || len(names) < 3 || !slices.Contains(names, "REPORT") {
		t.Errorf("%s: aside are %q, %v", d.what, names, err)
	}
	return rows, done, nil
}

var blockOfKeys = regexp.MustCompile(`a block of keys up to ([0-9]+)`)

// rowsInBlock is more than a block of 1 KiB holds of these rows of about 220
// bytes, and more than separate two separators.
const rowsInBlock = 12

// explained reports whether the loss of row i is in the list.
func (d *damaged) explained(i int, lost []string) bool {
	for _, line := range lost {
		m := blockOfKeys.FindStringSubmatch(line)
		if m == nil {
			return true // a whole file, or its end, or the manifest
		}
		to, _ := strconv.Atoi((m[1] + "000000")[:6]) // separators are short
		ends := []int{to}
		if to >= d.rows { // that of a last block; tables end where newDamaged flushes
			ends = []int{400, 480, d.rows - 1}
		}
		for _, to := range ends {
			if i <= to && i > to-rowsInBlock || strings.HasPrefix(fmt.Sprintf("%06d", i), m[1]) {
				return true
			}
		}
	}
	return false
}

// TestRepairFlippedBits flips one to three bits anywhere. A row is there after the
// repair, with its value, or the report says what it was in. The oracle is what was
// written.
func TestRepairFlippedBits(t *testing.T) {
	t.Parallel()
	_, rng := testSeed(t)
	for _, closed := range []bool{true, false} {
		d := newDamaged(t, closed)
		kept, blocks := 0, 0
		for n := range 150 {
			var flips []string
			rows, done, err := d.repaired(t, func(fs vfs.FS) {
				for range 1 + n%3 {
					name := d.files[rng.IntN(len(d.files))]
					if size := sizeOf(t, fs, "/db/"+name); size > 0 {
						bit := rng.Int64N(size * 8)
						flips = append(flips, fmt.Sprintf("%s bit %d", name, bit))
						flip(t, fs, "/db/"+name, bit)
					}
				}
				d.what = fmt.Sprintf("closed=%v, %v", closed, flips)
			})
			if err != nil {
				t.Fatalf("%s: %v", d.what, err)
			}
			for i := range d.rows {
				switch {
				case rows[i]:
					kept++
				case !closed && len(done.Lost) == 0 && i > d.rows-30:
					// the torn end of the log
				case !d.explained(i, done.Lost):
					t.Fatalf("%s: row %d is gone and the report says %q", d.what, i, done.Lost)
				}
			}
			for _, line := range done.Lost {
				if blockOfKeys.MatchString(line) {
					blocks++
				}
			}
		}
		t.Logf("closed=%v: %.1f %% of the rows were kept; %d blocks were lost alone", closed, float64(kept)/float64(150*d.rows)*100, blocks)
		if kept < 150*d.rows/2 || blocks == 0 {
			t.Errorf("little was kept: %d rows, %d blocks lost alone", kept, blocks)
		}
	}
}

// TestRepairBlocks damages every third block of each table: what is in the others
// is kept.
func TestRepairBlocks(t *testing.T) {
	d := newDamaged(t, true)
	damagedBlocks, all := 0, 0
	rows, done, err := d.repaired(t, func(fs vfs.FS) {
		for _, name := range d.files {
			if !strings.HasSuffix(name, ".sst") {
				continue
			}
			r, err := openTable(fs, "/db/"+name)
			if err != nil {
				t.Fatal(err)
			}
			layout, err := r.Layout()
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			all += len(layout.Data)
			for i, b := range layout.Data {
				if i%3 == 0 {
					flip(t, fs, "/db/"+name, int64(b.Offset+b.Length/2)*8)
					damagedBlocks++
				}
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(done.Lost) != damagedBlocks {
		t.Errorf("%d blocks of %d are damaged, the report has %d lines: %q", damagedBlocks, all, len(done.Lost), done.Lost)
	}
	missing := d.rows - len(rows)
	if missing == 0 || missing > d.rows*2/5 {
		t.Errorf("%d rows of %d are missing with %d of %d blocks damaged", missing, d.rows, damagedBlocks, all)
	}
}

// TestRepairMissingFiles removes files, one and two at a time. A store without its
// marker, its tables, its manifest can be repaired; what is no longer told to be a
// store is ErrForeign.
func TestRepairMissingFiles(t *testing.T) {
	for _, closed := range []bool{true, false} {
		d := newDamaged(t, closed)
		for i, one := range d.files {
			for _, two := range append([]string{""}, d.files[i+1:]...) {
				d.what = fmt.Sprintf("closed=%v, without %s %s", closed, one, two)
				rows, done, err := d.repaired(t, func(fs vfs.FS) {
					for _, name := range []string{one, two} {
						if name != "" {
							if err := fs.Remove("/db/" + name); err != nil {
								t.Fatal(err)
							}
						}
					}
				})
				marker := one == markerName || two == markerName
				switch {
				case marker && errors.Is(err, storage.ErrForeign) && (one == syncedName || two == syncedName || strings.HasPrefix(one+two, "MANIFEST")):
				case err != nil:
					t.Errorf("%s: %v", d.what, err)
				case strings.Contains(one+two, ".sst") || strings.Contains(one+two, ".log"):
					if len(rows) == d.rows {
						continue
					}
					if len(done.Lost) == 0 && strings.Contains(one+two, ".sst") {
						t.Errorf("%s: %d rows and nothing is said to be lost", d.what, len(rows))
					}
				case len(rows) != d.rows:
					t.Errorf("%s: %d rows of %d, %q", d.what, len(rows), d.rows, done.Lost)
				}
			}
		}
	}
}

// TestRepairTornManifest cuts the manifest anywhere: every row is kept.
func TestRepairTornManifest(t *testing.T) {
	for _, closed := range []bool{true, false} {
		d := newDamaged(t, closed)
		path := ""
		for _, name := range d.files {
			if strings.HasPrefix(name, "MANIFEST-") {
				path = "/db/" + name
			}
		}
		size := sizeOf(t, d.mem, path)
		for cut := int64(0); cut < size; cut += 1 + size/60 {
			d.what = fmt.Sprintf("closed=%v, manifest cut at %d of %d", closed, cut, size)
			rows, done, err := d.repaired(t, func(fs vfs.FS) { truncate(t, fs, path, cut, 0) })
			if err != nil || len(rows) != d.rows || len(done.Lost) == 0 {
				t.Fatalf("%s: %d rows, %q, %v", d.what, len(rows), done.Lost, err)
			}
		}
	}
}

// TestRepairLog damages the log of a process that died in one place: only the
// batches there are lost, two where the place is between them.
func TestRepairLog(t *testing.T) {
	const n = 400
	disk := crashedDisk(t, n, true, false)
	log := lastLog(t, disk)
	size := sizeOf(t, disk, log)
	for at := int64(50); at < n*300; at += 3331 {
		fs := disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: newRand(1)})
		scribbleOn(t, fs, log, at)
		e := New(Config{FS: fs, CacheBytes: 1 << 20})
		if _, err := e.Open("/db", storage.Options{}); !errors.Is(err, storage.ErrCorrupt) {
			t.Fatalf("at %d of %d: open: %v", at, size, err)
		}
		done, err := e.Repair("/db")
		if err != nil || done.Rows < n-2 || len(done.Lost) != 1 {
			t.Fatalf("at %d of %d: %+v, %v", at, size, done, err)
		}
		e.Close()
	}
}

// TestRepairKeepsDeletions: deletions of rows and ranges hold in a repaired store,
// wherever rows and deletions lie. The oracle is a map. Without the manifest, tables
// that a compaction has replaced count too, until they are removed: then no row is
// lost, but it may be one of its older versions.
func TestRepairKeepsDeletions(t *testing.T) {
	_, rng := testSeed(t)
	for range 8 {
		mem := vfs.NewCrashableMem()
		e := engine(t, mem)
		s := openIn(t, e, "/db")
		want := map[string]string{}
		versions := map[string]map[string]bool{}
		for i := range 2000 {
			k := fmt.Sprintf("%03d", rng.IntN(300))
			switch n := rng.IntN(100); {
			case n < 60:
				want[k] = fmt.Sprint(i)
				if versions[k] == nil {
					versions[k] = map[string]bool{}
				}
				versions[k][want[k]] = true
				if err := s.Apply(put(k, want[k]), false); err != nil {
					t.Fatal(err)
				}
			case n < 90:
				delete(want, k)
				if err := s.Apply([]storage.Op{{Kind: storage.Delete, Key: []byte(k)}}, false); err != nil {
					t.Fatal(err)
				}
			case n < 94:
				end := fmt.Sprintf("%03d", rng.IntN(300))
				for key := range want {
					if key >= k && key < end {
						delete(want, key)
					}
				}
				s.written.Store(true)
				if err := s.db.DeleteRange([]byte(k), []byte(end), nil); err != nil {
					t.Fatal(err)
				}
			case n < 98:
				if err := s.db.Flush(); err != nil {
					t.Fatal(err)
				}
			case n < 99:
				if err := s.db.Compact(t.Context(), []byte{0}, []byte{255}, false); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := s.Apply(nil, true); err != nil {
			t.Fatal(err)
		}
		fs := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rng})
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		for _, lost := range []bool{false, true} { // the manifest
			fs := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rng})
			if lost {
				names, _ := fs.List("/db")
				for _, name := range names {
					if strings.HasPrefix(name, "MANIFEST-") {
						truncate(t, fs, "/db/"+name, 0, 0)
					}
				}
			}
			e := engine(t, fs)
			if _, err := e.Repair("/db"); err != nil {
				t.Fatal(err)
			}
			s := openIn(t, e, "/db")
			for k, v := range want {
				got, err := s.Get(nil, []byte(k))
				if err != nil || string(got) != v && !(lost && versions[k][string(got)]) {
					t.Fatalf("manifest lost: %v: row %q is %q, %v, want %q", lost, k, got, err, v)
				}
			}
			if keys := allRows(t, s); !lost && len(keys) != len(want) {
				t.Fatalf("%d rows, want %d", len(keys), len(want))
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestLiveTables: the manifest is read as pebble reads it.
func TestLiveTables(t *testing.T) {
	d := newDamaged(t, true)
	e := engine(t, d.mem)
	s := openIn(t, e, "/db")
	defer s.Close()
	for i := range 300 {
		if err := s.Apply(put(fmt.Sprint(i%7, i), strings.Repeat("v", 3000)), false); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.db.Compact(t.Context(), []byte{0}, []byte{255}, false); err != nil {
		t.Fatal(err)
	}
	want := map[uint64]bool{}
	levels, err := s.db.SSTables()
	if err != nil {
		t.Fatal(err)
	}
	for _, tables := range levels {
		for _, table := range tables {
			want[uint64(table.BackingSSTNum)] = true
		}
	}
	r := repair{e: e, dir: "/db"}
	live, _, err := r.manifest(mark{})
	if err != nil || len(live) != len(want) || len(want) == 0 {
		t.Fatalf("%v, %v, pebble has %v", live, err, want)
	}
	for num := range want {
		if !live[num] {
			t.Errorf("table %d is not live", num)
		}
	}
}
