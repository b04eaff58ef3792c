package file

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/etf"
)

// generation is a part of a file's content as a test knows it: a header whose term
// lists the chunks that were written up to it.
type generation struct {
	header Header
	term   []byte
	chunks []Chunk
}

// content is what a test has put into a file.
type content struct {
	filler   int              // bytes that the next headers hold besides
	payloads map[int64][]byte // by pointer; each has a checksum
	chunks   []Chunk
	gens     []generation
}

func newContent() *content { return &content{payloads: map[int64][]byte{}} }

// term encodes the pointers of all chunks, as headers lead to trees.
func (c *content) term() []byte {
	b := etf.AppendVersion(nil)
	b = etf.AppendTupleHeader(b, 3)
	b = etf.AppendInt64(b, int64(len(c.gens)))
	b = etf.AppendBinary(b, make([]byte, c.filler))
	b = etf.AppendListHeader(b, len(c.chunks))
	for _, chunk := range c.chunks {
		b = etf.AppendInt64(b, chunk.Ptr)
	}
	return etf.AppendNil(b)
}

// append writes n chunks of random sizes.
func (c *content) append(f *File, r *rand.Rand, n int) error {
	payloads := make([][]byte, n)
	for i := range payloads {
		size := r.IntN(200)
		switch r.IntN(8) {
		case 0:
			size = r.IntN(3 * BlockSize)
		case 1: // up to the block's end, or nearly
			size = max(0, BlockSize-int(f.Size()%BlockSize)-lengthSize-sumSize+r.IntN(5)-2)
		}
		payloads[i] = make([]byte, size)
		for j := range payloads[i] {
			payloads[i][j] = byte(r.IntN(4)) // tags are frequent
		}
	}
	chunks, err := f.AppendSummed(payloads)
	if err != nil {
		return err
	}
	for i, chunk := range chunks {
		c.payloads[chunk.Ptr] = payloads[i]
	}
	c.chunks = append(c.chunks, chunks...)
	return nil
}

// commit writes a header with write, one of a File's two methods for it. The
// generation counts from the moment that the header may be on disk.
func (c *content) commit(write func([]byte) (Header, error)) error {
	term := c.term()
	c.gens = append(c.gens, generation{term: term, chunks: c.chunks[:len(c.chunks):len(c.chunks)]})
	h, err := write(term)
	c.gens[len(c.gens)-1].header = h
	return err
}

// find returns the number of the generation that the newest header of f is of.
func (c *content) find(f *File) (int, error) {
	h, err := f.LastHeader()
	if err != nil {
		return -1, err
	}
	for i, g := range c.gens {
		if bytes.Equal(g.term, h.Term) {
			return i, nil
		}
	}
	return -1, fmt.Errorf("header %x at %d was never written", h.Term, h.Ptr)
}

// check reads all chunks of a generation. Each must be what was written, or an
// error of a kind that allowed says.
func (c *content) check(f *File, gen int, allowed ...error) error {
	for _, chunk := range c.gens[gen].chunks {
		b, info, err := f.ReadChunk(nil, chunk.Ptr)
		ok := err == nil && bytes.Equal(b, c.payloads[chunk.Ptr]) && info.Chunk == chunk
		for _, kind := range allowed {
			ok = ok || errors.Is(err, kind)
		}
		if !ok {
			return fmt.Errorf("chunk %+v: %d bytes, %+v, %w", chunk, len(b), info, err)
		}
	}
	return nil
}

// adopt makes c know of the file f what a crash has left: later generations are
// gone.
func (c *content) adopt(gen int) {
	c.gens = c.gens[:gen+1]
	c.chunks = c.gens[gen].chunks
}

func newRand(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// image returns the bytes of a file in memory.
func image(t testing.TB, fsys *vfs.MemFS, name string) []byte {
	t.Helper()
	b, err := fsys.UnsafeGetFileDataBuffer(name)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Clone(b)
}

// memFile returns a file system that holds b as the file "f".
func memFile(t testing.TB, b []byte) *vfs.MemFS {
	t.Helper()
	fsys := vfs.NewMem()
	w, err := fsys.Create("f", vfs.WriteCategoryUnspecified)
	if err == nil && len(b) > 0 {
		_, err = w.Write(bytes.Clone(b)) // MemFS may scramble what it is given
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return fsys
}
