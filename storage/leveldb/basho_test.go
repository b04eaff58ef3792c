package leveldb

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"scanode/storage"
)

// history writes random entries into the tables of a directory, level by level from the
// oldest, as compactions leave them, and into a log, and returns what a map has then.
// Tables of levels 0 and 1 overlap, as Basho's may.
func history(rng *rand.Rand, d *bashoDir) map[string]string {
	rows := map[string]string{}
	make1 := func() entry {
		d.seq++
		e := entry{key: fmt.Sprintf("key%04d", rng.IntN(700)), seq: d.seq, kind: byte(rng.IntN(4))}
		if e.kind != 0 {
			e.value = strings.Repeat(fmt.Sprint(e.seq, " "), rng.IntN(60))
			rows[e.key] = e.value
		} else {
			delete(rows, e.key)
		}
		if e.kind >= 2 {
			e.time = 1700000000000000 + e.seq
		}
		return e
	}
	for level := 6; level >= 0; level-- {
		tables := 1
		if level < 2 {
			tables = 3
		}
		for range tables {
			var entries []entry
			for range 200 {
				entries = append(entries, make1())
			}
			slices.SortFunc(entries, func(a, b entry) int {
				if c := strings.Compare(a.key, b.key); c != 0 {
					return c
				}
				return int(b.seq) - int(a.seq)
			})
			if level < 2 {
				d.table(level, entries)
				continue
			}
			half := len(entries) / 2 // versions of one key may be in both
			d.table(level, entries[:half])
			d.table(level, entries[half:])
		}
	}
	for range 2 {
		var batches [][]entry
		for range 20 {
			var writes []entry
			for range 1 + rng.IntN(10) {
				writes = append(writes, make1())
			}
			batches = append(batches, writes)
		}
		d.log(batches...)
	}
	return rows
}

// TestBasho: directories in Basho's form, written by the writers of writer_test.go: sst_N,
// all kinds of keys, LZ4, tables of the second form, tiers. No directory that Riak wrote
// was at hand. The oracle is a map.
func TestBasho(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed(t), 3))
	for _, slowLevel := range []int{0, 3} {
		for compression := range byte(3) {
			fast := t.TempDir()
			dirs := []string{fast}
			slow := fast
			if slowLevel > 0 {
				slow = t.TempDir()
				dirs = []string{slow, fast}
			}
			d := newBashoDir(t, fast, slow, slowLevel, compression)
			want := history(rng, d)
			d.finish(1)
			before := fingerprint(t, fast) + fingerprint(t, slow)
			info := compareRows(t, dirs, want)
			if !info.Basho || info.Tables != 16 || info.Dir != fast {
				t.Errorf("%+v", info)
			}
			if fingerprint(t, fast)+fingerprint(t, slow) != before {
				t.Error("a directory has changed")
			}
			if slowLevel > 0 {
				_, _, _, err := readAll([]string{fast}, Options{}, nil)
				if !errors.Is(err, storage.ErrCorrupt) || !strings.Contains(err.Error(), "tiered") {
					t.Errorf("one tier alone: %v", err)
				}
				if _, err := Open([]string{slow}, Options{}); !errors.Is(err, storage.ErrMissing) {
					t.Errorf("the other tier alone: %v", err)
				}
			}
		}
	}
}

// TestTimes: rows tell the times that their kinds have.
func TestTimes(t *testing.T) {
	dir := t.TempDir()
	d := newBashoDir(t, dir, dir, 0, 2)
	d.table(2, []entry{
		{key: "a", value: "1", seq: 1, kind: 1},
		{key: "b", value: "2", seq: 2, kind: 2, time: 222},
		{key: "c", value: "3", seq: 3, kind: 3, time: 333},
	})
	d.log([]entry{{key: "d", value: "4", seq: 4, kind: 2, time: 1 << 60}, {key: "e", value: "5", seq: 5, kind: 3, time: 555}})
	d.finish(1)
	s, err := Open([]string{dir}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rows, err := s.Rows()
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	got := ""
	for rows.Next() {
		got += fmt.Sprintf("%s=%s %d %d\n", rows.Key(), rows.Value(), rows.Written(), rows.Expires())
	}
	const want = "a=1 0 0\nb=2 222 0\nc=3 0 333\nd=4 1152921504606846976 0\ne=5 0 555\n"
	if got != want || rows.Err() != nil {
		t.Errorf("got\n%s%v", got, rows.Err())
	}
}

// TestRefused: what cannot be read by anybody who does not know it is refused by name.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		want string
		edit func(w *editWriter)
	}{
		{"idb_cmp1", func(w *editWriter) { w.uints(1).bytes([]byte("idb_cmp1")) }},
		{"unknown field 100: it may be RocksDB's", func(w *editWriter) { w.uints(100) }},
		{"field 7 of an edit", func(w *editWriter) { w.uints(7, 7, 1, 1) }},
	} {
		dir := t.TempDir()
		d := newBashoDir(t, dir, dir, 0, 0)
		var e editWriter
		c.edit(&e)
		d.manifest.add(e.out)
		d.finish(1)
		if _, err := Open([]string{dir}, Options{SkipDamaged: true}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.want, err)
		}
	}
	dir := t.TempDir()
	d := newBashoDir(t, dir, dir, 0, 0)
	d.log([]entry{{key: "a", seq: 1, kind: 1, value: strings.Repeat("x", 5000)}})
	d.finish(1)
	if _, err := Open([]string{dir}, Options{LogBytes: 5000}); err == nil || !strings.Contains(err.Error(), "held in memory") {
		t.Errorf("large logs: %v", err)
	}
}

// TestDeletedTables: an edit takes tables away before it adds some, and a table may come
// back on another level, as a trivial move has it.
func TestDeletedTables(t *testing.T) {
	dir := t.TempDir()
	d := newBashoDir(t, dir, dir, 0, 1)
	d.table(1, []entry{{key: "a", value: "old", seq: 1, kind: 1}})
	path, _ := d.table(1, []entry{{key: "b", value: "moved", seq: 2, kind: 1}})
	size, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	key := entry{key: "b", seq: 2, kind: 1}.internal()
	var e editWriter
	e.uints(7, 4, 11, uint64(size.Size())).bytes(key).bytes(key) // added before …
	e.uints(6, 1, 10, 6, 1, 11, 6, 4, 11)                        // … it is removed, in one edit
	d.manifest.add(e.out)
	if err := os.Rename(path, filepath.Join(dir, "sst_4", "000011.sst")); err != nil {
		t.Fatal(err)
	}
	d.finish(1)
	got, _, info, err := readAll([]string{dir}, Options{}, nil)
	if err != nil || info.Tables != 1 || !maps.Equal(got, map[string]string{"b": "moved"}) {
		t.Errorf("%v, %+v, %v", got, info, err)
	}
}

// TestBashoRecorded: testdata/basho, for tests of other packages, is what the writers
// make of these entries.
func TestBashoRecorded(t *testing.T) {
	write := func(dir string) {
		d := newBashoDir(t, dir, dir, 0, 2)
		d.table(2, []entry{
			{key: "deleted", value: "x", seq: 1, kind: 1},
			{key: "expired", value: "1", seq: 2, kind: 3, time: 1500000000000000},
			{key: "expires", value: "2", seq: 3, kind: 3, time: 1 << 62},
			{key: "plain", value: "3", seq: 4, kind: 1},
		})
		d.log([]entry{{key: "deleted", seq: 5}, {key: "written", value: "4", seq: 6, kind: 2, time: 1500000000000000}})
		d.finish(1)
	}
	recorded := filepath.Join("testdata", "basho")
	if *updateRecorded {
		if err := os.RemoveAll(recorded); err != nil {
			t.Fatal(err)
		}
		write(recorded)
	}
	fresh := t.TempDir()
	write(fresh)
	for _, name := range []string{"CURRENT", "MANIFEST-000005", "000011.log", "sst_2/000010.sst"} {
		got, err1 := os.ReadFile(filepath.Join(recorded, name))
		want, err2 := os.ReadFile(filepath.Join(fresh, name))
		if err := errors.Join(err1, err2); err != nil || string(got) != string(want) {
			t.Errorf("%s is another, %v", name, err)
		}
	}
}

// TestAllocations: reading rows allocates by table, not by row.
func TestAllocations(t *testing.T) {
	entries, _ := ordered(20_000)
	for compression := range byte(3) {
		dir := t.TempDir()
		d := newBashoDir(t, dir, dir, 0, compression)
		d.table(2, entries[:10_000])
		d.table(2, entries[10_000:])
		d.table(1, entries[5_000:15_000])
		d.finish(1)
		allocated := testing.AllocsPerRun(1, func() {
			s, err := Open([]string{dir}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			rows, err := s.Rows()
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for rows.Next() {
				n++
			}
			if err := errors.Join(rows.Err(), rows.Close(), s.Close()); err != nil || n != len(entries) {
				t.Fatal(n, err)
			}
		})
		if allocated > 500 {
			t.Errorf("compression %d: %v allocations for 20,000 rows", compression, allocated)
		}
	}
}

// TestOldLogs: a log whose writes tables have, left over by a crash, is not read, for a
// later deletion may be gone from everywhere else; but the one that the manifest names as
// the log before is.
func TestOldLogs(t *testing.T) {
	for previous, want := range map[uint64]map[string]string{0: {"b": "2"}, 10: {"a": "1", "b": "2"}} {
		dir := t.TempDir()
		d := newBashoDir(t, dir, dir, 0, 0)
		d.log([]entry{{key: "a", value: "1", seq: 1, kind: 1}}) // 10
		d.log([]entry{{key: "b", value: "2", seq: 3, kind: 1}}) // 11
		var e editWriter
		d.finish(11)
		e.uints(9, previous)
		d.manifest.add(e.out)
		d.write(filepath.Join(dir, "MANIFEST-000005"), d.manifest.out)
		got, _, info, err := readAll([]string{dir}, Options{}, nil)
		if err != nil || !maps.Equal(got, want) || info.Logs != len(want) {
			t.Errorf("the log before is %d: %v, %+v, %v", previous, got, info, err)
		}
	}
}
