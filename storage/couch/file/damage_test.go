package file

import (
	"bytes"
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// smallFile writes a file of a few generations, with one header of several blocks.
func smallFile(t *testing.T) (*content, []byte) {
	t.Helper()
	fsys, c, r := vfs.NewMem(), newContent(), newRand(t)
	f, err := Create(fsys, "f", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i, n := range []int{0, 3, 4, 2} {
		if i >= 2 {
			c.filler = BlockSize + 100 // the last two headers lie in two blocks
		}
		if err := c.append(f, r, n); err != nil {
			t.Fatal(err)
		}
		if err := c.commit(f.Commit); err != nil {
			t.Fatal(err)
		}
	}
	return c, image(t, fsys, "f")
}

// TestFlips flips each byte of a file, one at a time. Then the newest header that
// is found is one that was written, and no other than the newest unless the flip
// was in that; and what is read is an error or what was written.
func TestFlips(t *testing.T) {
	c, b := smallFile(t)
	last := c.gens[len(c.gens)-1].header
	f, err := newFile(vfs.NewMemFile(b), "f", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i := range b {
		flip := byte(1) << (i % 8)
		if i%3 == 0 {
			flip = 0xff
		}
		b[i] ^= flip
		gen, err := c.find(f)
		inside := int64(i) >= last.Ptr && int64(i) < last.Ptr+last.Size
		switch {
		case err != nil:
			t.Fatalf("byte %d: %v", i, err)
		case inside && int64(i)%BlockSize == 0 && int64(i) != last.Ptr:
			if gen != len(c.gens)-1 {
				t.Errorf("byte %d, a tag in the last header: header %d", i, gen)
			}
		case inside && gen != len(c.gens)-2, !inside && gen != len(c.gens)-1:
			t.Errorf("byte %d: header %d", i, gen)
		}
		// All chunks once, for the last generation has those of the others.
		if err := c.check(f, len(c.gens)-1, ErrChecksum, ErrBeyondEOF, ErrTooLarge); err != nil {
			// A flipped checksum bit of the length word makes a chunk that cannot be
			// told from one that has none: the original's format, not ours to mend.
			if !flipsSummed(c, i, flip) {
				t.Fatalf("byte %d: %v", i, err)
			}
		}
		b[i] ^= flip
	}
}

// flipsSummed says whether byte i is the one of a length word that says that there
// is a checksum, and flip takes that away.
func flipsSummed(c *content, i int, flip byte) bool {
	for _, chunk := range c.chunks {
		first := chunk.Ptr
		if first%BlockSize == 0 {
			first++
		}
		if first == int64(i) {
			return flip&0x80 != 0
		}
	}
	return false
}

// TestPrefixes cuts a file at each length. The header that is found is the last
// that is whole in what is left, and with it all its chunks.
func TestPrefixes(t *testing.T) {
	c, b := smallFile(t)
	for n := range b {
		want := c.whole(n)
		f := openBytes(t, b[:n:n])
		gen, err := c.find(f)
		if want < 0 && !errors.Is(err, ErrNoHeader) || want >= 0 && (err != nil || gen != want) {
			t.Fatalf("%d bytes: header %d, %v; want %d", n, gen, err, want)
		}
		if want >= 0 {
			if err := c.check(f, want); err != nil {
				t.Fatalf("%d bytes: %v", n, err)
			}
		}
		f.Close()
		if near := (n + 2) % BlockSize; near <= 4 || n%29 == 0 {
			openPrefix(t, c, b[:n], want)
		}
	}
}

// whole returns the number of the last generation whose header is whole in the
// first n bytes, or -1.
func (c *content) whole(n int) int {
	last := -1
	for i, g := range c.gens {
		end := g.header.Ptr + g.header.Size
		if end%BlockSize == 1 {
			end-- // the tag behind a header that ends with its block need not be there
		}
		if end <= int64(n) {
			last = i
		}
	}
	return last
}

// openPrefix opens what was cut to b for appending. Open takes it when it holds a
// header or nothing, changes nothing in it, and can go on.
func openPrefix(t *testing.T, c *content, b []byte, want int) {
	fsys := memFile(t, b)
	f, err := Open(fsys, "f", Options{})
	switch {
	case len(b) == 0:
		if err != nil {
			t.Fatalf("empty file: %v", err)
		}
		f.Close()
	case want < 0:
		if !errors.Is(err, ErrNoHeader) {
			t.Fatalf("%d bytes: %v", len(b), err)
		}
	case err != nil:
		t.Fatalf("%d bytes: %v", len(b), err)
	default:
		goOn(t, fsys, f, c.gens[want], b)
	}
	if !bytes.HasPrefix(image(t, fsys, "f"), b) {
		t.Fatalf("cut to %d: what was there has changed", len(b))
	}
}

// goOn appends to a file that was cut to b, and looks at all of it.
func goOn(t *testing.T, fsys *vfs.MemFS, f *File, g generation, b []byte) {
	chunks, err := f.Append([][]byte{[]byte("new"), b[:min(len(b), 5000)]})
	if err != nil {
		t.Fatal(err)
	}
	h, err := f.Commit(g.term)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f, err = Open(fsys, "f", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	last, err := f.LastHeader()
	if err != nil || last.Ptr != h.Ptr || last.Size != h.Size || !bytes.Equal(last.Term, g.term) {
		t.Fatalf("cut to %d: header %+v, %v; want %+v", len(b), last, err, h)
	}
	for i, want := range [][]byte{[]byte("new"), b[:min(len(b), 5000)]} {
		got, info, err := f.ReadChunk(nil, chunks[i].Ptr)
		if err != nil || !bytes.Equal(got, want) || info.Chunk != chunks[i] {
			t.Fatalf("cut to %d: chunk %+v: %+v, %v", len(b), chunks[i], info, err)
		}
	}
}
