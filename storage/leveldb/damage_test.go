package leveldb

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"scanode/storage"
)

// ordered are n rows in order.
func ordered(n int) (entries []entry, rows map[string]string) {
	rows = map[string]string{}
	for i := range n {
		e := entry{key: fmt.Sprintf("key%05d", i), value: fmt.Sprintf("value %d", i), seq: uint64(i + 1), kind: 1}
		entries = append(entries, e)
		rows[e.key] = e.value
	}
	return entries, rows
}

// damaged reads a directory both ways: told of the damage, and leaving it out.
func damaged(t *testing.T, dir string, file string, offset int64) (left map[string]string, skipped []*Damage) {
	t.Helper()
	_, _, _, err := readAll([]string{dir}, Options{}, nil)
	var d *Damage
	if !errors.As(err, &d) || !errors.Is(err, storage.ErrCorrupt) || d.File != file || offset >= 0 && d.Offset != offset {
		t.Errorf("want damage of %s at %d: %v", file, offset, err)
	}
	left, _, info, err := readAll([]string{dir}, Options{SkipDamaged: true, Damaged: func(d *Damage) { skipped = append(skipped, d) }}, nil)
	if err != nil || info.Skipped != len(skipped) || len(skipped) == 0 {
		t.Errorf("leaving it out: %+v, told of %d, %v", info, len(skipped), err)
	}
	return left, skipped
}

// TestDamagedBlock: a flipped bit in a block costs the rows of that block, and no other,
// when it is left out.
func TestDamagedBlock(t *testing.T) {
	entries, rows := ordered(500)
	for compression := range byte(3) {
		dir := t.TempDir()
		d := newBashoDir(t, dir, dir, 0, compression)
		path, w := d.table(3, entries)
		d.finish(1)
		third := w.blocks[3]
		w.out[third[0]+third[1]/2] ^= 4
		d.write(path, w.out)
		left, _ := damaged(t, dir, path, int64(third[0]))
		lost := 0
		for k, v := range rows {
			if got, ok := left[k]; !ok {
				lost++
			} else if got != v {
				t.Errorf("%s is %q", k, got)
			}
		}
		if per := len(rows) / len(w.blocks); lost < per/2 || lost > per*2 {
			t.Errorf("compression %d: %d rows are lost, a block has about %d", compression, lost, per)
		}
	}
}

// TestDamagedTable: without footer or file, all of a table is lost, and of no other.
func TestDamagedTable(t *testing.T) {
	entries, rows := ordered(300)
	for name, harm := range map[string]func(path string, b []byte) error{
		"footer":  func(path string, b []byte) error { b[len(b)-1] ^= 1; return os.WriteFile(path, b, 0o644) },
		"missing": func(path string, b []byte) error { return os.Remove(path) },
		"short":   func(path string, b []byte) error { return os.WriteFile(path, b[:len(b)/2], 0o644) },
		"empty":   func(path string, b []byte) error { return os.WriteFile(path, nil, 0o644) },
		"folder":  func(path string, b []byte) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o755)) },
	} {
		dir := t.TempDir()
		d := newBashoDir(t, dir, dir, 0, 1)
		d.table(3, entries[:100])
		path, w := d.table(3, entries[100:200])
		d.table(3, entries[200:])
		d.finish(1)
		if err := harm(path, w.out); err != nil {
			t.Fatal(err)
		}
		file := path
		if name == "missing" {
			file = filepath.Join(dir, "000011.ldb")
		}
		left, skipped := damaged(t, dir, file, -1)
		want := maps.Clone(rows)
		for _, e := range entries[100:200] {
			delete(want, e.key)
		}
		if !maps.Equal(left, want) || len(skipped) != 1 {
			t.Errorf("%s: %d rows are left, want %d; %v", name, len(left), len(want), skipped)
		}
	}
}

// TestDisorder: keys that do not ascend are damage though every checksum is right.
func TestDisorder(t *testing.T) {
	entries, _ := ordered(3)
	entries[0], entries[1] = entries[1], entries[0]
	dir := t.TempDir()
	d := newBashoDir(t, dir, dir, 0, 0)
	path, _ := d.table(3, entries)
	d.finish(1)
	left, _ := damaged(t, dir, path, 0)
	if len(left) != 1 {
		t.Errorf("%v", left)
	}
}

// TestTornLog: a log cut at any byte gives the batches before the cut, whole ones only.
func TestTornLog(t *testing.T) {
	entries, _ := ordered(60)
	entries[30].value = strings.Repeat("x", 40_000) // over a block
	var batches [][]entry
	var ends []int
	var w logWriter
	for i := 0; i < len(entries); i += 3 {
		batches = append(batches, entries[i:i+3])
		w.add(batchRecord(entries[i].seq, entries[i:i+3]))
		ends = append(ends, len(w.out))
	}
	dir := t.TempDir()
	d := newBashoDir(t, dir, dir, 0, 0)
	path, log := d.log(batches...)
	d.finish(1)
	for cut := 0; cut <= len(log.out); cut++ {
		near := slices.ContainsFunc(ends, func(end int) bool { return cut > end-3 && cut < end+9 })
		if !near && cut%997 != 0 && cut/20 != logBlockBytes/20 {
			continue
		}
		d.write(path, log.out[:cut])
		whole := 0
		for whole < len(ends) && ends[whole] <= cut {
			whole++
		}
		got, _, info, err := readAll([]string{dir}, Options{}, nil)
		if err != nil || len(got) != whole*3 {
			t.Fatalf("cut at %d: %d rows, %v; want %d", cut, len(got), err, whole*3)
		}
		if torn := whole < len(ends) && (whole == 0 || ends[whole-1] != cut) && cut > 0; torn != (len(info.Torn) == 1) && cut%logBlockBytes != 0 {
			t.Fatalf("cut at %d: %v", cut, info.Torn)
		}
	}
}

// TestDamagedLog: damage before records that can be read is damage; in the end of the
// newest log it is what loss of power leaves; in the end of an older one it is damage.
func TestDamagedLog(t *testing.T) {
	var batches [][]entry
	entries, rows := ordered(2000)
	for _, e := range entries {
		e.value = strings.Repeat(e.value, 10)
		rows[e.key] = e.value
		batches = append(batches, []entry{e})
	}
	dir := t.TempDir()
	d := newBashoDir(t, dir, dir, 0, 0)
	older, first := d.log(batches[:1000]...)
	newest, second := d.log(batches[1000:]...)
	d.finish(1)
	flip := func(path string, b []byte, at int) {
		b = append([]byte{}, b...)
		b[at] ^= 1
		d.write(path, b)
	}
	flip(older, first.out, 100)
	left, _ := damaged(t, dir, older, -1)
	if len(left) >= len(rows) || len(left) < 1500 {
		t.Errorf("%d rows are left", len(left))
	}
	for k, v := range left {
		if rows[k] != v {
			t.Errorf("%s is %q", k, v)
		}
	}
	flip(older, first.out, len(first.out)-5)
	if left, _ := damaged(t, dir, older, -1); len(left) != len(rows)-1 {
		t.Errorf("%d rows are left", len(left))
	}
	d.write(older, first.out)
	flip(newest, second.out, len(second.out)-5)
	got, _, info, err := readAll([]string{dir}, Options{}, nil)
	if err != nil || len(got) != len(rows)-1 || len(info.Torn) != 1 {
		t.Errorf("%d rows, %+v, %v", len(got), info, err)
	}
	flip(newest, second.out, 100)
	damaged(t, dir, newest, -1)
}

// TestDamagedSmallLog: in a log of one block, too, damage is told from a torn end: every
// flipped bit but those of the last record is damage.
func TestDamagedSmallLog(t *testing.T) {
	entries, _ := ordered(5)
	var batches [][]entry
	for _, e := range entries {
		batches = append(batches, []entry{e})
	}
	dir := t.TempDir()
	d := newBashoDir(t, dir, dir, 0, 0)
	path, log := d.log(batches...)
	d.finish(1)
	last := len(log.out) * 4 / 5
	for at := range log.out {
		for bit := range 8 {
			b := append([]byte{}, log.out...)
			b[at] ^= 1 << bit
			d.write(path, b)
			got, _, info, err := readAll([]string{dir}, Options{}, nil)
			if at < last && !errors.Is(err, storage.ErrCorrupt) || at >= last && (err != nil || len(got) != 4 || len(info.Torn) != 1) {
				t.Fatalf("bit %d of byte %d of %d: %d rows, %v, %v", bit, at, len(log.out), len(got), info.Torn, err)
			}
		}
	}
}

// TestDamagedManifest: a flipped bit in the manifest is the end, also where damage is
// left out; a torn end is not, for that edit was not in force.
func TestDamagedManifest(t *testing.T) {
	entries, rows := ordered(10)
	dir := t.TempDir()
	d := newBashoDir(t, dir, dir, 0, 0)
	d.table(2, entries)
	d.finish(1)
	path := filepath.Join(dir, "MANIFEST-000005")
	whole := append([]byte{}, d.manifest.out...)
	for at := range whole {
		b := append([]byte{}, whole...)
		b[at] ^= byte(1 << (at % 8))
		d.write(path, b)
		got, _, _, err := readAll([]string{dir}, Options{SkipDamaged: true}, nil)
		if !errors.Is(err, storage.ErrCorrupt) {
			t.Fatalf("byte %d: %d rows, %v", at, len(got), err)
		}
	}
	var e editWriter
	e.uints(6, 2, 10) // it would take the table away
	d.manifest.add(e.out)
	d.write(path, d.manifest.out[:len(d.manifest.out)-1])
	if got, _, _, err := readAll([]string{dir}, Options{}, nil); err != nil || !maps.Equal(got, rows) {
		t.Errorf("torn: %d rows, %v", len(got), err)
	}
}
