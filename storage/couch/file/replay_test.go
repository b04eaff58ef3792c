package file

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// part is a chunk or a header of a recorded file.
type part struct {
	header bool
	summed bool
	sum    Sum
	body   []byte
	chunk  Chunk
}

// parts reads a recorded file from its beginning: everything in it follows the one
// before, but that headers are preceded by zeros up to the block edge. It stops
// where the file ends or holds something else, and returns that offset.
func parts(t testing.TB, f *File, raw []byte) (ps []part, end int64) {
	for end < f.Size() {
		edge := (end + BlockSize - 1) / BlockSize * BlockSize
		if h, err := f.HeaderAt(edge); err == nil && len(bytes.Trim(raw[end:edge], "\x00")) == 0 {
			ps = append(ps, part{header: true, sum: h.Sum, body: h.Term, chunk: Chunk{h.Ptr, h.Size}})
			end = h.Ptr + h.Size
			continue
		}
		b, info, err := f.ReadChunk(nil, end)
		if err != nil || len(b) == 0 { // no recorded chunk is empty: these are zeros
			return ps, end
		}
		ps = append(ps, part{summed: info.Summed, sum: info.Sum, body: b, chunk: info.Chunk})
		end += info.Size
	}
	return ps, end
}

// whole are the recorded files that nothing was done to after the original wrote
// them. They must be followed to their ends.
var whole = []string{
	"hdr_base.cf", "hdr_md5.cf", "big_header.cf", "checksummed_chunk.cf", "emulation_attack.cf", "exact_block_end.cf",
	"root_compress_byte.cf", "tree_none_10.cf", "tree_snappy_500.cf", "tree_deflate_1_800.cf", "tree_deflate_6_2500.cf", "tree_deflate_9_60.cf",
	"db_small_none.couch", "db_v6_small.couch", "db_purged.couch", "db_md5.couch", "view_md5.view", "view_none.view",
}

// TestReplay appends what recorded files hold to files of our own and compares
// them byte by byte with the recorded ones.
func TestReplay(t *testing.T) {
	names := slices.Clone(whole)
	for _, v := range readVectors(t) {
		if !slices.Contains(names, v.File) {
			names = append(names, v.File)
		}
	}
	for _, base := range names {
		name := filepath.Join(vectors, base)
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := OpenReadOnly(vfs.Default, name, Options{})
		if err != nil {
			t.Fatal(err)
		}
		ps, end := parts(t, f, raw)
		f.Close()
		if slices.Contains(whole, base) && end != int64(len(raw)) {
			t.Errorf("%s: followed to %d of %d bytes", base, end, len(raw))
		}
		replay(t, base, ps, raw, end)
	}
}

func replay(t *testing.T, name string, ps []part, raw []byte, end int64) {
	fsys := vfs.NewMem()
	f, err := Create(fsys, "copy", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range ps {
		// What a handle cannot do, a file can: its kinds of checksums may change with
		// the program that wrote it.
		if p.header || p.summed {
			f.sum = p.sum
		}
		switch {
		case p.header:
			h, err := f.WriteHeader(p.body)
			if err != nil || (Chunk{h.Ptr, h.Size}) != p.chunk {
				t.Fatalf("%s: header %+v, %v; want %+v", name, h, err, p.chunk)
			}
		default:
			write := f.Append
			if p.summed {
				write = f.AppendSummed
			}
			cs, err := write([][]byte{p.body})
			if err != nil || cs[0] != p.chunk {
				t.Fatalf("%s: chunk %+v, %v; want %+v", name, cs, err, p.chunk)
			}
		}
	}
	got := make([]byte, f.Size())
	if err := f.readAt(got, 0); err != nil {
		t.Fatal(err)
	}
	if name == "prefix_byte_5.cf" { // it is hdr_base.cf but for these bytes
		for at := 0; at < len(raw); at += BlockSize {
			if raw[at] == 5 {
				raw[at] = tagData
			}
		}
	}
	if !bytes.Equal(got, raw[:min(end, int64(len(raw)))]) {
		t.Errorf("%s: the copy of %d bytes differs from the %d recorded", name, len(got), end)
	}
	t.Logf("%s: %d of %d bytes, %d parts", name, end, len(raw), len(ps))
}
