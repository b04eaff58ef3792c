package file

import (
	"bytes"
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
		var mu sync.Mutex
		var chunks []Chunk
		chunkAt := func(i int) (Chunk, bool) {
			mu.Lock()
			defer mu.Unlock()
			if len(chunks) == 0 {
				return Chunk{}, false
			}
			return chunks[i%len(chunks)], true
		}
		var reads atomic.Int64
		var wg sync.WaitGroup
		for g := range 3 {
			wg.Go(func() {
				var dst []byte
				for i := g; ; i += 7 {
					c, ok := chunkAt(i)
					if !ok {
						continue
					}
					var err error
					if dst, err = f.Read(dst[:0], c.Ptr); err != nil {
						if f.usable() == nil { // not closed: the only way out
							t.Errorf("%s: %v", what, err)
						}
						return
					}
					if len(dst) == 0 || !bytes.Equal(dst, bytes.Repeat(dst[:1], len(dst))) {
						t.Errorf("%s: chunk %+v is %x", what, c, dst)
						return
					}
					reads.Add(1)
				}
			})
		}
		r := newRand(t)
		for i := range 300 {
			more, err := f.Append([][]byte{bytes.Repeat([]byte{byte(i)}, 1+r.IntN(5000)), bytes.Repeat([]byte{byte(i)}, 1+r.IntN(50))})
			if err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			chunks = append(chunks, more...)
			mu.Unlock()
			if i%50 == 0 {
				if _, err := f.WriteHeader(nilTerm); err != nil {
					t.Fatal(err)
				}
				if _, err := f.LastHeader(); err != nil {
					t.Fatal(err)
				}
			}
		}
		for reads.Load() < 1000 && !t.Failed() {
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
