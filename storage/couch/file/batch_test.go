package file

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestBatchIsAppend holds batches to what single appends give: the same places and, in the
// end, the same file.
func TestBatchIsAppend(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	fs := vfs.NewMem()
	single, err := Create(fs, "single", Options{})
	if err != nil {
		t.Fatal(err)
	}
	batched, err := Create(fs, "batched", Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 30 {
		b := batched.Begin()
		var want []Chunk
		var payloads [][]byte
		for range rng.IntN(5) {
			var some [][]byte
			for range rng.IntN(4) {
				// Some end exactly at the edge of a block, some are larger than what
				// a batch holds back.
				size := rng.IntN(9000)
				if rng.IntN(20) == 0 {
					size = rng.IntN(2 * maxBatch)
				}
				some = append(some, bytes.Repeat([]byte{byte(size)}, size))
			}
			a, err := single.Append(some)
			if err != nil {
				t.Fatal(err)
			}
			got, err := b.Append(some)
			if err != nil {
				t.Fatal(err)
			}
			for i := range a {
				if a[i] != got[i] {
					t.Fatalf("chunk at %+v, appended alone at %+v", got[i], a[i])
				}
			}
			want, payloads = append(want, a...), append(payloads, some...)
		}
		if err := b.Flush(); err != nil {
			t.Fatal(err)
		}
		for i, c := range want {
			p, err := batched.Read(nil, c.Ptr)
			if err != nil || !bytes.Equal(p, payloads[i]) {
				t.Fatalf("chunk at %d reads %d other bytes, %v", c.Ptr, len(p), err)
			}
		}
	}
	if single.Size() != batched.Size() {
		t.Fatalf("%d bytes, appended alone %d", batched.Size(), single.Size())
	}
}

func TestBatchDiscard(t *testing.T) {
	f, err := Create(vfs.NewMem(), "file", Options{MaxChunkBytes: 100})
	if err != nil {
		t.Fatal(err)
	}
	b := f.Begin()
	if _, err := b.Append([][]byte{{1}, make([]byte, 101)}); !errors.Is(err, ErrTooLarge) {
		t.Fatal(err)
	}
	b.Discard()
	b.Discard()
	if _, err := b.Append(nil); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	if f.Size() != 0 {
		t.Fatalf("%d bytes after a batch that was discarded", f.Size())
	}
	if _, err := f.Append([][]byte{{1}}); err != nil {
		t.Fatal("the file is not free again:", err)
	}
}
