package lsm

import (
	"bytes"
	"hash/crc32"
	"testing"

	"github.com/cockroachdb/pebble/v2/record"

	"scanode/storage"
)

// FuzzStoredKey: the stored form is never empty, is undone by userKey, orders
// as the keys do, and keeps the rule of the next key.
func FuzzStoredKey(f *testing.F) {
	f.Fuzz(func(t *testing.T, a, b []byte) {
		sa, sb := bytes.Clone(storedKey(nil, a)), bytes.Clone(storedKey(nil, b))
		if len(sa) == 0 || !bytes.Equal(userKey(sa), a) {
			t.Fatalf("%q is stored as %q", a, sa)
		}
		if bytes.Compare(a, b) != bytes.Compare(sa, sb) {
			t.Fatalf("%q, %q and %q, %q are ordered differently", a, b, sa, sb)
		}
		next := append(bytes.Clone(a), 0)
		if s := storedKey(nil, next); !bytes.Equal(s, append(sa, 0)) {
			t.Fatalf("%q is next, stored as %q", next, s)
		}
		o, empty := bounds(storage.Range{Start: a, End: b, StartExclusive: true, EndInclusive: true})
		if want := bytes.Compare(a, b) >= 0; empty != want {
			t.Fatalf("(%q, %q] empty: %v, bounds %q, %q", a, b, empty, o.LowerBound, o.UpperBound)
		}
	})
}

// FuzzChunks: records written by pebble are good chunks to the last byte; with
// one byte changed the rest behind the damaged record is found, and no more.
func FuzzChunks(f *testing.F) {
	f.Fuzz(func(t *testing.T, a, b []byte, where uint16) {
		var buf bytes.Buffer
		w := record.NewWriter(&buf)
		ends := []int{}
		for _, r := range [][]byte{a, b} {
			rec, err := w.Next()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := rec.Write(r); err != nil {
				t.Fatal(err)
			}
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			ends = append(ends, buf.Len())
		}
		data := buf.Bytes()
		if len(data) > recordBlock {
			data = data[:recordBlock]
		}
		if end := goodChunks(data, func([]byte) {}); end != len(data) && len(data)-end >= chunkHeader {
			t.Fatalf("good up to %d of %d", end, len(data))
		}
		if len(a)+len(b) > 30000 || ends[0] == 0 {
			return
		}
		at := int(where) % ends[0] // somewhere in the first record
		data[at] ^= 0x40
		end := goodChunks(data, func([]byte) {})
		if end != 0 {
			t.Fatalf("good up to %d with byte %d changed", end, at)
		}
		if !startsRecord(data, end+1) {
			t.Fatalf("the second record at %d of %d is not found", ends[0], len(data))
		}
		if startsRecord(data[:ends[0]], end+1) && !looksLikeChunk(a) {
			t.Fatal("a record is found where there is none")
		}
	})
}

// looksLikeChunk reports whether data holds a good chunk by itself.
func looksLikeChunk(data []byte) bool { return startsRecord(data, 0) }

func TestChunkChecksum(t *testing.T) {
	if got := crc32.Checksum([]byte("123456789"), castagnoli); got != 0xe3069283 {
		t.Fatalf("%#x", got)
	}
}
