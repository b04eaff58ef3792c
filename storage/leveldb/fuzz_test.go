package leveldb

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fileOf writes b to a file of its own.
func fileOf(t *testing.T, b []byte) string {
	path := filepath.Join(t.TempDir(), "000001.ldb")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// walk reads a table alone and returns its entries as text, and how it ended.
func walk(path string, size int64) (got []string, keys []internalKey, err error) {
	dir := filepath.Dir(path)
	s := &Store{roots: []string{dir}}
	r := &run{s: s, files: []tableFile{{number: 1, size: size}}}
	defer r.close()
	for {
		ok, err := r.next()
		if !ok || err != nil {
			return got, keys, err
		}
		key, value := r.entry()
		copied := *key
		copied.user = bytes.Clone(key.user)
		keys = append(keys, copied)
		got = append(got, fmt.Sprintf("%q %x %d %q", key.user, key.tag, key.time, value))
	}
}

// FuzzTable: of any bytes, the keys that come out ascend and no more bytes come out than
// can be packed into as many; the end is the file's or a Damage.
func FuzzTable(f *testing.F) {
	entries, _ := ordered(60)
	for compression := range byte(3) {
		w := &tableWriter{compression: compression, blockBytes: 300}
		for _, e := range entries {
			w.add(e)
		}
		f.Add(w.finish())
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		_, keys, err := walk(fileOf(t, b), int64(len(b)))
		var d *Damage
		if err != nil && !errors.As(err, &d) {
			t.Errorf("neither rows nor damage: %v", err)
		}
		for i := 1; i < len(keys); i++ {
			if keys[i-1].compare(&keys[i]) >= 0 {
				t.Fatalf("%q comes after %q", keys[i].user, keys[i-1].user)
			}
		}
	})
}

// FuzzTableFlip: a table in which some bytes are changed gives its very rows or a
// Damage before the first that is not one of them.
func FuzzTableFlip(f *testing.F) {
	f.Add(byte(1), uint16(40), []byte{1, 2, 3}, uint16(3), byte(200))
	f.Add(byte(2), uint16(3000), []byte{255}, uint16(50), byte(9))
	f.Fuzz(func(t *testing.T, compression byte, at uint16, xor []byte, n uint16, size byte) {
		entries, _ := ordered(int(n % 300))
		w := &tableWriter{compression: compression % 3, blockBytes: 50 + int(size)}
		for _, e := range entries {
			w.add(e)
		}
		b := w.finish()
		want, _, err := walk(fileOf(t, b), int64(len(b)))
		if err != nil || len(want) != len(entries) {
			t.Fatalf("unharmed: %d rows, %v", len(want), err)
		}
		for i, x := range xor {
			b[(int(at)+i)%len(b)] ^= x
		}
		got, _, err := walk(fileOf(t, b), int64(len(b)))
		if len(got) > len(want) || !slices.Equal(got, want[:len(got)]) {
			t.Fatal("other rows than were written")
		}
		if err == nil && len(got) < len(want) {
			t.Fatalf("%d of %d rows, and nobody was told", len(got), len(want))
		}
	})
}

// FuzzBlock: an unpacked block of any bytes gives entries that are made of its bytes, as
// many as are there, or an error.
func FuzzBlock(f *testing.F) {
	var w blockWriter
	for i := range 20 {
		w.add(fmt.Appendf(nil, "key%03d12345678", i), []byte("value"))
	}
	f.Add(w.finish())
	f.Add([]byte{0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		var c blockCursor
		if c.reset(b) != nil {
			return
		}
		for before := c.offset(); ; before = c.offset() {
			ok, err := c.next()
			if err != nil || !ok {
				if err == nil && c.offset() != c.whole {
					t.Fatal("the end is not at the end")
				}
				return
			}
			if c.offset() < before+3 || c.offset() > len(b) {
				t.Fatalf("an entry from %d to %d of %d", before, c.offset(), len(b))
			}
		}
	})
}

// FuzzRecords: of a log some of whose bytes are changed, the records that come out are
// some of those that were written, in order; where one is missing there was a Damage or
// a torn end.
func FuzzRecords(f *testing.F) {
	f.Add([]byte("abc"), uint16(5), []byte{1}, uint16(20))
	f.Add(bytes.Repeat([]byte("long"), 20_000), uint16(33_000), []byte{7, 7}, uint16(3))
	f.Fuzz(func(t *testing.T, text []byte, at uint16, xor []byte, n uint16) {
		var w logWriter
		var want []string
		for i := range int(n%50) + 1 {
			record := fmt.Sprintf("%d %s", i, text[:len(text)*i/50])
			want = append(want, record)
			w.add([]byte(record))
		}
		for i, x := range xor {
			w.out[(int(at)+i)%len(w.out)] ^= x
		}
		r := newRecords("log", bytes.NewReader(w.out))
		found, told := 0, false
		for i := 0; ; {
			record, _, err := r.next()
			var d *Damage
			if errors.As(err, &d) {
				told = true
				continue
			}
			if err != nil {
				break
			}
			for i < len(want) && want[i] != string(record) {
				i++
			}
			if i == len(want) {
				t.Fatalf("a record that nobody wrote, or in another order: %.40q", record)
			}
			i++
			found++
		}
		// A header of zeros is room taken in advance, for LevelDB too.
		zeros := bytes.Contains(w.out, make([]byte, 3))
		if found < len(want) && !told && !r.torn && !zeros {
			t.Fatalf("%d of %d records, and nobody was told", found, len(want))
		}
	})
}

// FuzzBatch: the writes of any bytes that are taken for a batch, written again, are those
// bytes' writes: as many as the batch says, with consecutive sequence numbers.
func FuzzBatch(f *testing.F) {
	f.Add(batchRecord(7, []entry{{key: "a", value: "b", kind: 1}, {key: "c"}, {key: "d", value: "e", kind: 3, time: 9}}))
	f.Add([]byte("short"))
	f.Fuzz(func(t *testing.T, record []byte) {
		var back []entry
		err := readBatch(record, func(w write) {
			back = append(back, entry{key: string(w.key.user), value: string(w.value), kind: w.key.kind(), time: w.key.time, seq: w.key.tag >> 8})
		})
		if err != nil {
			if len(back) > 0 {
				t.Error("writes of a batch that cannot be read")
			}
			return
		}
		var first uint64
		if len(back) > 0 {
			first = back[0].seq
		}
		again := 0
		err = readBatch(batchRecord(first, back), func(w write) {
			e := back[again]
			if w.key.tag>>8 != (first+uint64(again))&(1<<56-1) || string(w.key.user) != e.key || string(w.value) != e.value || w.key.time != e.time {
				t.Errorf("write %d is another", again)
			}
			again++
		})
		if err != nil || again != len(back) {
			t.Errorf("%d writes, %d when written again, %v", len(back), again, err)
		}
	})
}

// FuzzEdit: an edit that is taken leaves a version whose tables are on levels that there
// are and have keys in LevelDB's form; written again it gives the same version.
func FuzzEdit(f *testing.F) {
	key := entry{key: "k", seq: 1, kind: 1}.internal()
	var e editWriter
	e.uints(1).bytes([]byte("leveldb.BytewiseComparator")).uints(2, 9, 9, 8, 3, 7, 4, 6, 6, 2, 5)
	e.uints(7, 2, 10, 1000).bytes(key).bytes(key).uints(11, 3, 12, 10).bytes(key).bytes(key).uints(1, 2, 3)
	f.Add(e.out)
	f.Fuzz(func(t *testing.T, b []byte) {
		v := newVersion()
		if v.apply(b) != nil {
			return
		}
		var again editWriter
		if v.hasComparator {
			again.uints(1).bytes([]byte(v.comparator))
		}
		for tag, n := range map[uint64]uint64{2: v.logNumber, 9: v.prevLogNumber, 3: v.nextFile, 4: v.lastSequence} {
			again.uints(tag, n)
		}
		for _, file := range v.sorted() {
			if file.level < 0 || file.level >= numLevels || file.size < 0 || file.number == 0 {
				t.Fatalf("%+v", file)
			}
			again.uints(7, uint64(file.level), file.number, uint64(file.size)).bytes(file.smallest).bytes(file.largest)
		}
		w := newVersion()
		if err := w.apply(again.out); err != nil {
			t.Fatal(err)
		}
		text := func(v *version) string {
			return strings.TrimSpace(fmt.Sprint(v.comparator, v.logNumber, v.prevLogNumber, v.nextFile, v.lastSequence, v.sorted()))
		}
		if text(v) != text(w) {
			t.Errorf("%s, written again %s", text(v), text(w))
		}
		total := 0
		for _, run := range disjoint(v.sorted()) {
			total += len(run)
			for i := 1; i < len(run); i++ {
				a, _ := parseKey(run[i-1].largest)
				c, _ := parseKey(run[i].smallest)
				if a.compare(&c) >= 0 {
					t.Error("a run whose tables overlap")
				}
			}
		}
		if total != len(v.files) {
			t.Errorf("%d tables in runs of %d", total, len(v.files))
		}
	})
}
