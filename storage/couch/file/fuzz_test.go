package file

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/etf"
)

// naiveChunk reads the chunk at ptr byte by byte. ok is false where there is none.
func naiveChunk(file []byte, ptr int64) (payload []byte, ok bool) {
	if ptr < 0 {
		return nil, false
	}
	head := naiveRead(file, ptr, 20)
	if len(head) < 4 {
		return nil, false
	}
	word := binary.BigEndian.Uint32(head)
	skip, n := int64(4), int64(word&0x7fffffff)
	if word>>31 == 1 {
		skip = 20
	}
	content := naiveRead(file, ptr, skip+n)
	if int64(len(content)) < skip+n {
		return nil, false
	}
	payload = content[skip:]
	if skip == 4 {
		return payload, true
	}
	return payload, naiveSummed(content[4:20], payload)
}

func naiveSummed(sum, b []byte) bool {
	x, m := XXH3.of(b), MD5.of(b)
	return bytes.Equal(sum, x[:]) || bytes.Equal(sum, m[:])
}

// naiveHeader looks for the newest header from the end, block by block.
func naiveHeader(file []byte) (ptr int64, term []byte, kind error) {
	for ptr = int64(len(file)) / 4096 * 4096; ptr >= 0; ptr -= 4096 {
		if ptr+5 > int64(len(file)) || file[ptr] != 1 {
			continue
		}
		n := int64(binary.BigEndian.Uint32(file[ptr+1:]))
		content := naiveRead(file, ptr+5, n)
		if int64(len(content)) < n || n < 16 || !naiveSummed(content[:16], content[16:]) {
			continue
		}
		term = content[16:]
		if _, _, err := etf.Decode(bytes.TrimPrefix(term, []byte{131}), etf.Limits{}); err != nil || term[0] != 131 {
			return ptr, term, ErrHeaderTerm
		}
		return ptr, term, nil
	}
	return -1, nil, ErrNoHeader
}

// addFiles gives a fuzz target the small ones of the recorded files.
func addFiles(f *testing.F, add func(b []byte)) {
	for _, v := range readVectors(f) {
		if v.Size > 20_000 {
			continue
		}
		b, err := os.ReadFile(filepath.Join(vectors, v.File))
		if err != nil {
			f.Fatal(err)
		}
		add(b)
	}
}

func openBytes(t testing.TB, b []byte) *File {
	f, err := newFile(vfs.NewMemFile(b), "f", Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// FuzzRead: a chunk is what reading byte by byte makes of it, or an error where
// that finds none; what dst held stays.
func FuzzRead(f *testing.F) {
	addFiles(f, func(b []byte) {
		f.Add(b, int64(0))
		f.Add(b, int64(len(b)/2))
		f.Add(b, int64(len(b)-3))
		if ps, _ := parts(f, openBytes(f, b), b); len(ps) > 0 {
			f.Add(b, ps[len(ps)-1].chunk.Ptr)
			f.Add(b[:len(b)-1], ps[len(ps)/2].chunk.Ptr)
		}
	})
	f.Fuzz(func(t *testing.T, b []byte, ptr int64) {
		file := openBytes(t, b)
		defer file.Close()
		before := []byte("before")
		got, info, err := file.ReadChunk(slices.Clone(before), ptr)
		if !bytes.HasPrefix(got, before) {
			t.Fatalf("dst is now %q", got)
		}
		got = got[len(before):]
		want, ok := naiveChunk(b, ptr)
		if ok != (err == nil) || ok && !bytes.Equal(got, want) || !ok && len(got) != 0 {
			t.Fatalf("%d bytes, %v; naively %d bytes, %v", len(got), err, len(want), ok)
		}
		if err != nil && !errors.Is(err, ErrBeyondEOF) && !errors.Is(err, ErrChecksum) && !errors.Is(err, ErrTooLarge) {
			t.Fatal(err)
		}
		if ok {
			end := info.Ptr + info.Size
			if info.Ptr != ptr || end > int64(len(b)) && (end-1 != int64(len(b)) || end%4096 != 1) {
				t.Fatalf("%+v in a file of %d", info, len(b))
			}
		}
	})
}

// FuzzHeaders cuts a recorded file and puts bytes behind it. The header that is
// found is the one that a search byte by byte finds, and when the file was not cut
// before the end of its last header, no older one.
func FuzzHeaders(f *testing.F) {
	var files [][]byte
	addFiles(f, func(b []byte) { files = append(files, b) })
	for i, b := range files {
		f.Add(uint8(i), uint16(len(b)), []byte{})
		f.Add(uint8(i), uint16(len(b)), append(make([]byte, 4096-len(b)%4096), 1, 0, 0, 0, 20))
		f.Add(uint8(i), uint16(len(b)/2), files[0][8192:])
		f.Add(uint8(i), uint16(8192), files[0][8192:])
	}
	f.Fuzz(func(t *testing.T, number uint8, cut uint16, tail []byte) {
		base := files[int(number)%len(files)]
		b := append(slices.Clone(base[:min(int(cut), len(base))]), tail...)
		file := openBytes(t, b)
		defer file.Close()
		h, err := file.LastHeader()
		ptr, term, kind := naiveHeader(b)
		if !errors.Is(err, kind) || (err == nil) != (kind == nil) {
			t.Fatalf("%v, want %v", err, kind)
		}
		if kind == nil && (h.Ptr != ptr || !bytes.Equal(h.Term, term)) {
			t.Fatalf("header %x at %d, want %x at %d", h.Term, h.Ptr, term, ptr)
		}
		if old, _, oldKind := naiveHeader(base); oldKind == nil && int(cut) >= len(base) && (errors.Is(err, ErrNoHeader) || err == nil && h.Ptr < old) {
			t.Fatalf("header at %d, %v; there is one at %d", h.Ptr, err, old)
		}
	})
}

// FuzzDecompress: what comes out is not above the limit, is what another decoder
// makes of it, and comes back from every compression; what dst held stays.
func FuzzDecompress(f *testing.F) {
	r := newRand(f)
	for _, c := range compressions(f) {
		f.Add(c.Append(nil, nilTerm), 100)
		f.Add(c.Append(nil, someTerm(r, 300)), 1000)
	}
	f.Add(bomb(100_000, 99), 1000)
	f.Add(bomb(100_000, 100_000), 1<<20)
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 0x0f}, 1<<20)
	f.Fuzz(func(t *testing.T, data []byte, limit int) {
		limit = max(0, min(limit, 1<<20))
		before := []byte("before")
		out, err := Decompress(slices.Clone(before), data, limit)
		if !bytes.HasPrefix(out, before) {
			t.Fatalf("dst is now %q", out)
		}
		if most := 4*limit + 64<<10; cap(out) > most {
			t.Fatalf("room for %d bytes, limit %d", cap(out), limit)
		}
		out = out[len(before):]
		if err != nil {
			if len(out) != 0 || !errors.Is(err, ErrCompression) && !errors.Is(err, ErrTooLarge) {
				t.Fatalf("%d bytes, %v", len(out), err)
			}
			return
		}
		if len(out) > limit || !IsPlain(out) {
			t.Fatalf("%d bytes, limit %d: %.20x", len(out), limit, out)
		}
		if data[0] != zstdMagic[0] {
			if other, err := otherDecompress(data); err != nil || !bytes.Equal(out, other) {
				t.Fatalf("%d bytes; another decoder has %d, %v", len(out), len(other), err)
			}
		}
		for _, c := range []Compression{{}, {Method: Snappy}, {Method: Deflate, Level: 1}, {Method: Zstd, Level: 1}} {
			roundTrip(t, c, out)
		}
	})
}

// FuzzAppend: chunks of any payloads at any offset are read as they were written,
// and the file's bytes are those that writing byte by byte makes.
func FuzzAppend(f *testing.F) {
	f.Add([]byte("a"), []byte("bc"), uint16(0), false)
	f.Add(make([]byte, 4091), []byte{}, uint16(4096), true)
	f.Add(make([]byte, 9000), make([]byte, 4092), uint16(4095), false)
	f.Fuzz(func(t *testing.T, first, second []byte, start uint16, checksum bool) {
		file, err := Create(vfs.NewMem(), "f", Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		file.mu.Lock()
		err = file.write(make([]byte, start))
		file.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		write := file.Append
		if checksum {
			write = file.AppendSummed
		}
		chunks, err := write([][]byte{first, second})
		if err != nil {
			t.Fatal(err)
		}
		want := make([]byte, start)
		for i, payload := range [][]byte{first, second} {
			content := binary.BigEndian.AppendUint32(nil, uint32(len(payload)))
			if checksum {
				content[0] |= 0x80
				sum := XXH3.of(payload)
				content = append(content, sum[:]...)
			}
			ptr := int64(len(want))
			want = append(want, naiveWrite(ptr, append(content, payload...))...)
			if chunks[i] != (Chunk{ptr, int64(len(want)) - ptr}) {
				t.Fatalf("%+v, want to end at %d", chunks[i], len(want))
			}
			got, info, err := file.ReadChunk(nil, ptr)
			if err != nil || !bytes.Equal(got, payload) || info.Chunk != chunks[i] {
				t.Fatalf("%d bytes, %+v, %v; want %d, %+v", len(got), info, err, len(payload), chunks[i])
			}
		}
		got := make([]byte, file.Size())
		if err := file.readAt(got, 0); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%d bytes, %v; want %d", len(got), err, len(want))
		}
	})
}
