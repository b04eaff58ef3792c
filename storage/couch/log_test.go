package couch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"scanode/storage"
	"scanode/storage/couch/btree"
	"scanode/storage/couch/file"
	"scanode/storage/home"
)

// FuzzRecord: what is read as a record is what appendRecord makes of its entries, and what
// appendRecord makes is read as what it was given.
func FuzzRecord(f *testing.F) {
	f.Add(appendRecord(nil, 3*file.BlockSize, 7, []entry{{key: binaryOf("key"), value: binaryOf("value")}, {key: binaryOf("")}}))
	f.Add(appendRecord(nil, 0, 1, nil))
	f.Add([]byte(logMagic + "\x01\x01\x07ab"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseRecord(b)
		if err != nil {
			return
		}
		ops, size, err := r.entries()
		if err != nil {
			return
		}
		if size < 0 || size > int64(len(b))*(entryOverhead+2*binaryHead) {
			t.Fatalf("%d bytes are said to take %d", len(b), size)
		}
		again := appendRecord(nil, r.header, r.seq, ops)
		if len(again) > len(b) {
			t.Fatalf("%x gave entries of %x", b, again)
		}
		r2, err := parseRecord(again)
		if err != nil || r2.header != r.header || r2.seq != r.seq {
			t.Fatalf("%+v, %v, want %+v", r2, err, r)
		}
		ops2, _, err := r2.entries()
		if err != nil || !slices.EqualFunc(ops, ops2, func(a, b entry) bool {
			return bytes.Equal(a.key, b.key) && bytes.Equal(a.value, b.value) && (a.value == nil) == (b.value == nil)
		}) {
			t.Fatalf("%v, %v, want %v", ops2, err, ops)
		}
	})
}

func binaryOf(s string) []byte {
	e, _, err := encodeOps([]storage.Op{{Key: []byte(s)}})
	if err != nil {
		panic(err)
	}
	return e[0].key
}

// FuzzHeader: a header that is read is written as the same bytes, unless it was written by
// other means, and then as one that reads the same.
func FuzzHeader(f *testing.F) {
	h := header{id: newID(), seq: 5, log: true, root: btree.Pointer{Ptr: 100, Reduction: []byte{97, 3}, Size: 40}}
	f.Add(h.append(nil))
	h.origin = origin{id: newID(), root: h.root, whole: true}
	f.Add(h.append(nil))
	f.Add((&header{id: newID()}).append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := readHeader(b)
		if err != nil {
			if !errors.Is(err, storage.ErrForeign) && !errors.Is(err, storage.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		again := h.append(nil)
		h2, err := readHeader(again)
		if err != nil || !bytes.Equal(again, h2.append(nil)) || h2.id != h.id || h2.seq != h.seq || h2.log != h.log ||
			h2.root.Ptr != h.root.Ptr || h2.origin.id != h.origin.id || h2.origin.whole != h.origin.whole {
			t.Fatalf("%+v, %v, want %+v", h2, err, h)
		}
	})
}

// contents reads a file of a store.
func contents(t testing.TB, fs vfs.FS) []byte {
	t.Helper()
	f, err := fs.Open("/data/" + fileName)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// withContents returns a disk like fs whose store has other bytes in its file.
func withContents(t testing.TB, fs *vfs.MemFS, b []byte) *vfs.MemFS {
	t.Helper()
	clone := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
	f, err := clone.Create("/data/"+fileName, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(bytes.Clone(b)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Sync(), f.Close(), home.SyncDir(clone, "/data")); err != nil {
		t.Fatal(err)
	}
	return clone
}

// batchRows are the rows after n batches of the test below.
func batchRows(n int) map[string]string {
	rows := map[string]string{}
	for i := range n {
		batch := batchOf(i)
		for _, op := range batch {
			if op.Kind == storage.Delete {
				delete(rows, string(op.Key))
			} else {
				rows[string(op.Key)] = string(op.Value)
			}
		}
	}
	return rows
}

func batchOf(i int) []storage.Op {
	ops := []storage.Op{
		{Key: fmt.Appendf(nil, "n%03d", i), Value: fmt.Append(nil, i)},
		{Key: []byte("last"), Value: fmt.Append(nil, i)},
	}
	if i%3 == 2 {
		ops = append(ops, storage.Op{Kind: storage.Delete, Key: fmt.Appendf(nil, "n%03d", i-1)})
	}
	if i%5 == 4 {
		ops[0].Value = bytes.Repeat([]byte{byte(i)}, 5000) // over block edges
	}
	return ops
}

// TestPrefixes cuts the file of a store at any byte, with and without rubbish behind
// it. What is there then is a prefix of the batches, as long as the bytes that were there
// when a batch was acknowledged say. With a checksum on everything this is also so when the
// byte before the cut is another.
func TestPrefixes(t *testing.T) {
	for _, mode := range []string{"log", "header"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			fs := newMem(t)
			s := openIn(t, fs, "commit", mode, "log_batches", int64(12))
			const batches = 30
			ends := []int64{s.writer.gen.file.Size()} // of the file after each batch
			for i := range batches {
				if err := s.Apply(batchOf(i), true); err != nil {
					t.Fatal(err)
				}
				ends = append(ends, s.writer.gen.file.Size())
			}
			whole := contents(t, fs)
			rng := newRand(t)
			// All bytes would take minutes; each run tries others.
			step := 2 * len(whole) / 1500
			if testing.Short() {
				step *= 10
			}
			for cut := int(ends[0]); cut <= len(whole); cut += 1 + rng.IntN(step) {
				b := bytes.Clone(whole[:cut])
				durable := 0
				for durable < batches && ends[durable+1] <= int64(cut) {
					durable++
				}
				switch rng.IntN(3) {
				case 0:
					b = append(b, bytes.Repeat([]byte{0}, rng.IntN(9000))...)
				case 1:
					for range rng.IntN(300) {
						b = append(b, byte(rng.Uint32()))
					}
				}
				s := openIn(t, withContents(t, fs, b), "commit", mode)
				var got int
				if v, err := s.Get(nil, []byte("last")); err == nil {
					fmt.Sscan(string(v), &got)
					got++
				}
				// A record may be whole before its last tag byte is there.
				if got < durable || got > durable+1 {
					t.Fatalf("cut at %d: %d batches, want %d", cut, got, durable)
				}
				wantRows(t, s, batchRows(got))
				// What is written behind the cut is there after another loss of power.
				if err := s.Apply(batchOf(got), true); err != nil {
					t.Fatal(err)
				}
				again := openIn(t, s.engine.fs.(*vfs.MemFS).CrashClone(vfs.CrashCloneCfg{}), "commit", mode)
				wantRows(t, again, batchRows(got+1))
				for _, s := range []*store{s, again} {
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestLogOfAnotherHeader: records count behind their own header only, in their order. Here
// they are behind another: copied there, left out, or twice.
func TestLogOfAnotherHeader(t *testing.T) {
	t.Parallel()
	fs := newMem(t)
	s := openIn(t, fs)
	for i := range 4 {
		if err := s.Apply(batchOf(i), true); err != nil {
			t.Fatal(err)
		}
	}
	before := s.writer.header
	if err := s.alone(s.writer.flush); err != nil {
		t.Fatal(err)
	}
	at := s.writer.header
	b := contents(t, fs)
	record := func(header, seq int64) []byte {
		ops, _, err := encodeOps(batchOf(4))
		if err != nil {
			t.Fatal(err)
		}
		return appendRecord(nil, header, seq, ops)
	}
	for _, c := range []struct {
		what    string
		records [][]byte
		summed  bool
		want    int
	}{
		{"as it should be", [][]byte{record(at.Ptr, 5)}, true, 5},
		{"of another header", [][]byte{record(before.Ptr, 5)}, true, 4},
		{"one that was there before", [][]byte{record(at.Ptr, 4)}, true, 4},
		{"one left out", [][]byte{record(at.Ptr, 6)}, true, 4},
		{"the same twice", [][]byte{record(at.Ptr, 5), record(at.Ptr, 5)}, true, 5},
		{"without a checksum", [][]byte{record(at.Ptr, 5)}, false, 4},
		{"no record", [][]byte{[]byte("hello")}, true, 4},
		{"cut", [][]byte{record(at.Ptr, 5)[:20]}, true, 4},
	} {
		clone := withContents(t, fs, b)
		f, err := file.Open(clone, "/data/"+fileName, fileOptions)
		if err != nil {
			t.Fatal(err)
		}
		if c.summed {
			_, err = f.AppendSummed(c.records)
		} else {
			_, err = f.Append(c.records)
		}
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			s := openIn(t, clone)
			wantRows(t, s, batchRows(c.want))
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestClosedFileHasNoLog: after a close, and always with commit => header, the last header
// says that nothing behind it counts, and nothing is there; while the store is open in the
// other mode it says that a log may be.
func TestClosedFileHasNoLog(t *testing.T) {
	t.Parallel()
	fs := newMem(t)
	look := func() (h header, behind int64) {
		f, err := file.OpenReadOnly(fs, "/data/"+fileName, fileOptions)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		at, h, err := lastHeader(f)
		if err != nil {
			t.Fatal(err)
		}
		return h, f.Size() - at.Ptr - at.Size
	}
	for _, mode := range []string{"log", "header", "log", "log", "header"} {
		s := openIn(t, fs, "commit", mode)
		if err := s.Apply(batchOf(1), true); err != nil {
			t.Fatal(err)
		}
		if h, behind := look(); h.log != (mode == "log") || behind > 0 != (mode == "log") {
			t.Fatalf("%s: log %v, %d bytes behind", mode, h.log, behind)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if h, behind := look(); h.log || behind > 0 {
			t.Fatalf("%s, closed: log %v, %d bytes behind", mode, h.log, behind)
		}
	}
}

// TestWriteFaults lets each operation on the disk fail in turn, for once and for good. A
// batch that was acknowledged is there after the next open, and of the others each is there
// whole or not at all; a store that cannot go on is parked.
func TestWriteFaults(t *testing.T) {
	failure := errors.New("injected")
	for _, mode := range []string{"log", "header"} {
		for _, sticky := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/sticky=%v", mode, sticky), func(t *testing.T) {
				t.Parallel()
				for at := 0; ; at++ {
					mem := newMem(t)
					steps := &stepper{}
					s := openIn(t, errorfs.Wrap(mem, steps), "commit", mode, "log_batches", int64(3))
					n := 0
					steps.set(func(errorfs.Op) error {
						n++
						if n-1 == at || sticky && n-1 > at {
							return failure
						}
						return nil
					})
					acked := writeUntilParked(t, s, at, failure)
					steps.set(nil)
					reached := n > at
					s = openIn(t, mem)
					got := 0
					if v, err := s.Get(nil, []byte("last")); err == nil {
						fmt.Sscan(string(v), &got)
						got++
					}
					if got < acked {
						t.Fatalf("step %d: %d batches of %d", at, got, acked)
					}
					wantRows(t, s, batchRows(got))
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
					if !reached {
						if at < 10 {
							t.Fatalf("only %d steps", at)
						}
						return
					}
				}
			})
		}
	}
}

// writeUntilParked writes ten batches, every second one synced, to a store whose disk fails
// at some time, and closes it. It returns how many batches were acknowledged as synced.
func writeUntilParked(t *testing.T, s *store, at int, failure error) (acked int) {
	unsure := 0
	for i := range 10 {
		err := s.Apply(batchOf(i), i%2 == 0)
		switch {
		case err == nil && unsure == 0:
			if i%2 == 0 {
				acked = i + 1
			}
			continue
		case err == nil:
			t.Fatalf("step %d: a batch was taken by a store that has failed", at)
		case unsure == 0 && (!errors.Is(err, storage.ErrUnknown) || !errors.Is(err, failure)),
			unsure > 0 && (errors.Is(err, storage.ErrUnknown) || !errors.Is(err, storage.ErrParked)):
			t.Fatalf("step %d: %v", at, err)
		}
		if unsure++; unsure > 1 {
			continue
		}
		if _, err := s.Get(nil, []byte("last")); !errors.Is(err, storage.ErrParked) {
			t.Fatalf("step %d: get: %v", at, err)
		}
		if st, err := s.Stats(); err != nil || !st.Parked {
			t.Fatalf("step %d: %+v, %v", at, st, err)
		}
		if _, err := s.Snapshot(); !errors.Is(err, storage.ErrParked) {
			t.Fatalf("step %d: snapshot: %v", at, err)
		}
	}
	if err := s.Close(); unsure > 0 && err != nil {
		t.Fatalf("step %d: close: %v", at, err)
	}
	return acked
}

// TestGroup: batches that come at the same time share their syncs, and each writer finds
// its own afterwards.
func TestGroup(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"log", "header"} {
		steps := &stepper{}
		s := openIn(t, errorfs.Wrap(newMem(t), steps), "commit", mode)
		const writers = 30
		// The first waits in its sync until all others have come.
		steps.set(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSync {
				steps.set(nil)
				for {
					s.queue.mu.Lock()
					n := len(s.queue.waiting)
					s.queue.mu.Unlock()
					if n == writers-1 {
						break
					}
				}
			}
			return nil
		})
		before := s.writer.commits.Load() + s.writer.logSyncs.Load()
		errs := make(chan error, writers)
		want := map[string]string{}
		for i := range writers {
			key := fmt.Sprint("key ", i)
			want[key] = fmt.Sprint(i)
			go func() { errs <- s.Apply([]storage.Op{{Key: []byte(key), Value: fmt.Append(nil, i)}}, true) }()
		}
		for range writers {
			if err := <-errs; err != nil {
				t.Fatal(err)
			}
		}
		if n := s.writer.commits.Load() + s.writer.logSyncs.Load() - before; n != 2 {
			t.Fatalf("%s: %d syncs for %d batches, of which all but one could share", mode, n, writers)
		}
		wantRows(t, s, maps.Clone(want))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
