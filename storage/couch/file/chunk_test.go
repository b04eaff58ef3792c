package file

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestReaders reads what has been appended while more is, on several goroutines,
// and closes the file under them.
func TestReaders(t *testing.T) {
	for what, fsys := range map[string]vfs.FS{"disk": vfs.Default, "memory": vfs.NewMem()} {
		name := filepath.Join(t.TempDir(), "f")
		if what == "memory" {
			name = "f"
		}
		f, err := Create(fsys, name, Options{})
		if err != nil {
			t.Fatal(err)
		}
		c := &growing{file: f}
		var wg sync.WaitGroup
		for g := range 3 {
			wg.Go(func() {
				if err := c.read(g); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			})
		}
		r := newRand(t)
		for i := range 300 {
			if err := c.grow(r, i); err != nil {
				t.Fatal(err)
			}
		}
		for c.reads.Load() < 1000 && !t.Failed() {
			if _, err := f.Read(nil, 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
	}
}

// growing is a file and where its chunks are.
type growing struct {
	file   *File
	reads  atomic.Int64
	mu     sync.Mutex
	chunks []Chunk // each holds one byte many times
}

func (c *growing) grow(r *rand.Rand, i int) error {
	more, err := c.file.Append([][]byte{bytes.Repeat([]byte{byte(i)}, 1+r.IntN(5000)), bytes.Repeat([]byte{byte(i)}, 1+r.IntN(50))})
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.chunks = append(c.chunks, more...)
	c.mu.Unlock()
	if i%50 == 0 {
		if _, err = c.file.WriteHeader(nilTerm); err == nil {
			_, err = c.file.LastHeader()
		}
	}
	return err
}

// read reads chunks until the file is closed.
func (c *growing) read(i int) error {
	var dst []byte
	for ; ; i += 7 {
		c.mu.Lock()
		n := len(c.chunks)
		var chunk Chunk
		if n > 0 {
			chunk = c.chunks[i%n]
		}
		c.mu.Unlock()
		if n == 0 {
			continue
		}
		var err error
		if dst, err = c.file.Read(dst[:0], chunk.Ptr); errors.Is(err, ErrClosed) {
			return nil
		} else if err != nil {
			return err
		}
		if len(dst) == 0 || !bytes.Equal(dst, bytes.Repeat(dst[:1], len(dst))) {
			return fmt.Errorf("chunk %+v is %x", chunk, dst)
		}
		c.reads.Add(1)
	}
}

func TestReadAllocates(t *testing.T) {
	f := create(t, vfs.Default, filepath.Join(t.TempDir(), "f"))
	defer f.Close()
	for _, size := range []int{0, 100, 1300, 9000} {
		for _, write := range []func([][]byte) ([]Chunk, error){f.Append, f.AppendSummed} {
			c, err := write([][]byte{make([]byte, size)})
			if err != nil {
				t.Fatal(err)
			}
			dst := make([]byte, 0, 10_000)
			if n := testing.AllocsPerRun(100, func() { _, err = f.Read(dst, c[0].Ptr) }); n != 0 || err != nil {
				t.Errorf("%d bytes: %v allocations, %v", size, n, err)
			}
		}
	}
}

func BenchmarkRead(b *testing.B) {
	for _, size := range []int{400, 1300, 3000, 33_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			f := create(b, vfs.Default, filepath.Join(b.TempDir(), "f"))
			defer f.Close()
			var chunks []Chunk
			payloads := make([][]byte, 100)
			for i := range payloads {
				payloads[i] = make([]byte, size)
			}
			for range 100 {
				more, err := f.Append(payloads)
				if err != nil {
					b.Fatal(err)
				}
				chunks = append(chunks, more...)
			}
			r := rand.New(rand.NewPCG(1, 2))
			var dst []byte
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if dst, err = f.Read(dst[:0], chunks[r.IntN(len(chunks))].Ptr); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	f := create(b, vfs.Default, filepath.Join(b.TempDir(), "f"))
	defer f.Close()
	payloads := [][]byte{make([]byte, 400), make([]byte, 800), make([]byte, 300)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.Append(payloads); err != nil {
			b.Fatal(err)
		}
	}
}
