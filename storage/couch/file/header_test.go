package file

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/etf"
)

// TestGenerations looks for all headers of a file, over several windows of the
// search.
func TestGenerations(t *testing.T) {
	f, err := Create(vfs.NewMem(), "f", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var want []Header
	for i, blocks := range []int{0, 1, 3, 20, 900, 1, 2200, 0, 70} {
		if _, err := f.Append([][]byte{make([]byte, blocks*BlockSize)}); err != nil {
			t.Fatal(err)
		}
		f.sum = Sum(i % 2)
		h, err := f.WriteHeader(etf.AppendInt64(etf.AppendVersion(nil), int64(i)))
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, h)
	}
	for n := len(want); n >= 0; n-- {
		before := f.Size()
		if n < len(want) {
			before = want[n].Ptr
		}
		at := n - 1
		for h, err := range f.Headers(before) {
			if err != nil {
				t.Fatal(err)
			}
			if at < 0 || !same(h, want[at]) {
				t.Fatalf("before %d: %+v, want number %d of %+v", before, h, at, want)
			}
			at--
		}
		if at != -1 {
			t.Errorf("before %d: %d headers are missing", before, at+1)
		}
	}
	for _, h := range want {
		got, err := f.HeaderAt(h.Ptr)
		if err != nil || !same(got, h) {
			t.Errorf("at %d: %+v, %v; want %+v", h.Ptr, got, err, h)
		}
		for _, ptr := range []int64{h.Ptr + 1, h.Ptr - BlockSize, -1, f.Size(), 1<<62 + h.Ptr} {
			if got, err := f.HeaderAt(ptr); !errors.Is(err, ErrNoHeader) && (err != nil || got.Ptr != ptr) {
				t.Errorf("at %d: %+v, %v", ptr, got, err)
			}
		}
	}
}

func same(a, b Header) bool {
	return a.Ptr == b.Ptr && a.Size == b.Size && a.Sum == b.Sum && bytes.Equal(a.Term, b.Term)
}

// TestBadTerm: LastHeader does not fall back to an older header, and who asks for
// all of them is told of the bad one and gets the others.
func TestBadTerm(t *testing.T) {
	f := create(t, vfs.NewMem(), "f")
	defer f.Close()
	f.mu.Lock()
	bad, err := f.writeHeader([]byte{131, 255})
	f.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.LastHeader(); !errors.Is(err, ErrHeaderTerm) {
		t.Errorf("last header: %v", err)
	}
	var found []string
	for h, err := range f.Headers(f.Size()) {
		found = append(found, fmt.Sprint(h.Ptr, h.Term, errors.Is(err, ErrHeaderTerm)))
	}
	want := fmt.Sprint([]string{fmt.Sprint(bad.Ptr, bad.Term, true), fmt.Sprint(0, nilTerm, false)})
	if fmt.Sprint(found) != want {
		t.Errorf("%v, want %v", found, want)
	}
}

// countingFile counts the bytes that are read.
type countingFile struct {
	vfs.File
	bytes atomic.Int64
}

func (c *countingFile) ReadAt(p []byte, off int64) (int, error) {
	c.bytes.Add(int64(len(p)))
	return c.File.ReadAt(p, off)
}

// TestForgedHeaders fills a file with what looks like headers. The search must
// not read it more than 40 times: a header is read without looking at its tags for
// 17 blocks, and up to as much again.
func TestForgedHeaders(t *testing.T) {
	const blocks = 500
	for _, every := range []int{1, 2, 17, 18, 40, 250} {
		for _, burst := range []int{1, 16, 17} {
			b := make([]byte, blocks*BlockSize)
			for at := 0; at < blocks; at++ {
				if at%every < burst {
					b[at*BlockSize] = tagHeader
					// As long as there are bytes.
					binary.BigEndian.PutUint32(b[at*BlockSize+1:], uint32((blocks-at)*blockData-headerStart))
				}
			}
			c := &countingFile{File: vfs.NewMemFile(b)}
			f, err := newFile(c, "f", Options{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.LastHeader(); !errors.Is(err, ErrNoHeader) {
				t.Errorf("every %d, burst %d: %v", every, burst, err)
			}
			if n := c.bytes.Load(); n > 40*int64(len(b)) {
				t.Errorf("every %d, burst %d: %d bytes of %d were read", every, burst, n, len(b))
			}
			f.Close()
		}
	}
}

// TestHeaderAcrossBlocks writes headers of all lengths around those that end with
// a block, each kind of checksum by turns.
func TestHeaderAcrossBlocks(t *testing.T) {
	f, err := Create(vfs.NewMem(), "f", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, blocks := range []int{1, 2, 17, 40} {
		for d := -4; d <= 4; d++ {
			f.sum = Sum(d & 1)
			size := blocks*blockData - lengthSize - sumSize - 6 + d
			// Ones, like tags of headers, but never on a block edge.
			term := etf.AppendBinary(etf.AppendVersion(nil), bytes.Repeat([]byte{1}, size))
			h, err := f.WriteHeader(term)
			if err != nil {
				t.Fatal(err)
			}
			if h.Ptr+h.Size != f.Size() {
				t.Errorf("%d bytes: %+v, and the file ends at %d", size, h, f.Size())
			}
			got, err := f.LastHeader()
			if err != nil || !same(got, h) {
				t.Errorf("%d bytes: %d bytes at %d, %v; want %d at %d", size, got.Size, got.Ptr, err, h.Size, h.Ptr)
			}
		}
	}
}
