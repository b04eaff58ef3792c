package lsm

import (
	"bytes"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// FuzzVersionKey: versions sort by key, then newest first, and come back as they
// were; other bytes are an error or the very key they say.
func FuzzVersionKey(f *testing.F) {
	f.Add([]byte("a\x00"), uint64(1), uint64(2), []byte("a"), uint64(3), uint64(1))
	f.Add([]byte{}, uint64(0), uint64(0), []byte{0, 1}, uint64(1<<56), uint64(1<<63))
	f.Fuzz(func(t *testing.T, k1 []byte, s1, n1 uint64, k2 []byte, s2, n2 uint64) {
		a, b := appendVersionKey(nil, k1, s1, n1), appendVersionKey(nil, k2, s2, n2)
		key, seq, num, err := splitVersionKey(nil, a)
		if err != nil || !bytes.Equal(key, k1) || seq != s1 || num != n1 {
			t.Fatalf("%q %d %d became %q %d %d, %v", k1, s1, n1, key, seq, num, err)
		}
		want := bytes.Compare(k1, k2)
		for _, pair := range [][2]uint64{{s2, s1}, {n2, n1}} {
			if want == 0 && pair[0] != pair[1] {
				if want = 1; pair[0] < pair[1] {
					want = -1
				}
			}
		}
		if got := bytes.Compare(a, b); got != want {
			t.Fatalf("%q %d %d and %q %d %d are in order %d, want %d", k1, s1, n1, k2, s2, n2, got, want)
		}
		if key, seq, num, err := splitVersionKey(nil, k1); err == nil && !bytes.Equal(appendVersionKey(nil, key, seq, num), k1) {
			t.Fatalf("%q was taken for %q %d %d", k1, key, seq, num)
		}
	})
}

// FuzzApplyEdit: an edit is refused, or adds tables only in levels that exist, and
// no more of them than it has room for.
func FuzzApplyEdit(f *testing.F) {
	f.Add([]byte{editNewTable4, 6, 9, 100, 1, 'a', 1, 'b', 1, 2, extraEnd})
	f.Add([]byte{editDeletedTable, 0, 4, editComparer, 1, 'x', editLogNumber, 7})
	f.Add([]byte{editNewTable4, 7, 9, 100, 1, 'a', 1, 'b', 1, 2, extraEnd})
	f.Add([]byte{editComparer, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		at := map[tableAt]bool{{0, 4}: true}
		if err := applyEdit(b, at); err != nil {
			return
		}
		if len(at) > 1+len(b)/10 {
			t.Fatalf("%d tables of %d bytes", len(at), len(b))
		}
		for table := range at {
			if table.level >= levels {
				t.Fatalf("a table in level %d", table.level)
			}
		}
	})
}

// FuzzLogRecords: of a log that pebble wrote, with some bytes changed, every record
// that was not touched comes out, in order, and nothing else but touched ones.
func FuzzLogRecords(f *testing.F) {
	f.Add(uint16(3), uint16(0), uint16(5), uint64(1), uint32(12), byte(1))
	f.Add(uint16(36000), uint16(1), uint16(300), uint64(2), uint32(20000), byte(0x80))
	f.Add(uint16(32730), uint16(33000), uint16(65000), uint64(3), uint32(32768), byte(0xff))
	f.Add(uint16(0), uint16(40000), uint16(0), uint64(4), uint32(4), byte(0))
	f.Fuzz(func(t *testing.T, a, b, c uint16, seed uint64, where uint32, change byte) {
		rng := newRand(seed)
		written := [][]byte{fillerBytes(rng, int(a)), fillerBytes(rng, int(b)), fillerBytes(rng, int(c))}
		const num = 77
		var buf writeCloser
		w := record.NewLogWriter(&buf, num, record.LogWriterConfig{WALFsyncLatency: nil, WriteWALSyncOffsets: func() bool { return true }})
		var ends []int64
		for _, r := range written {
			end, err := w.WriteRecord(r)
			if err != nil {
				t.Fatal(err)
			}
			ends = append(ends, end)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		log := buf.Bytes()
		at := int(where) % len(log)
		log[at] ^= change
		fs := vfs.NewMem()
		file, err := fs.Create("/log", vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.Write(log); err != nil {
			t.Fatal(err)
		}
		var got [][]byte
		lost, err := eachRecord(fs, "/log", num, func(r []byte) error {
			got = append(got, bytes.Clone(r))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		var want [][]byte
		for i, r := range written {
			begin := int64(0)
			if i > 0 {
				begin = ends[i-1]
			}
			if change == 0 || int64(at) < begin || int64(at) >= ends[i] {
				want = append(want, r)
			}
		}
		if change == 0 && lost != 0 {
			t.Fatalf("%d places are lost of a log without damage", lost)
		}
		if !slices.EqualFunc(got, want, bytes.Equal) && !contained(got, want) {
			t.Fatalf("byte %d changed by %#x of records that end at %v: %d records, want %d", at, change, ends, len(got), len(want))
		}
	})
}

// contained reports whether got is want with one record more: one in whose padding
// the change was, or that the bytes in a damaged one look like.
func contained(got, want [][]byte) bool {
	if len(got) != len(want)+1 {
		return false
	}
	for i := range got {
		if slices.EqualFunc(slices.Delete(slices.Clone(got), i, i+1), want, bytes.Equal) {
			return true
		}
	}
	return false
}

type writeCloser struct{ bytes.Buffer }

// Close implements io.Closer.
func (*writeCloser) Close() error { return nil }

// Sync is what a log asks of its file.
func (*writeCloser) Sync() error { return nil }
