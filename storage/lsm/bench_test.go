package lsm

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"scanode/storage"
)

// Rows of the benchmarks: keys of 40 bytes, values of 190 that compress about
// four to one, as time series rows do.
const (
	benchRows     = 300_000
	benchKeyBytes = 40
	benchRowBytes = 230
)

// benchRow makes row n in dst, which it needs no longer than the row lives.
func benchRow(dst []byte, n uint64) (key, value []byte) {
	dst = append(dst[:0], "family/series/device-000"...)
	for div := uint64(1e15); div > 0; div /= 10 {
		dst = append(dst, byte('0'+n/div%10))
	}
	for i := uint64(0); len(dst) < benchRowBytes; i++ {
		dst = append(dst, "field name"...)
		dst = binary.LittleEndian.AppendUint64(dst, n*(i+1))
	}
	return dst[:benchKeyBytes], dst[benchKeyBytes:benchRowBytes]
}

// cpu is the processor time this process has used: on a shared machine the only
// time worth comparing.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func benchStore(b *testing.B, rows int) storage.Store {
	e := New(Config{CacheBytes: 1 << 30})
	b.Cleanup(e.Close)
	s, err := e.Open(b.TempDir(), storage.Options{CreateIfMissing: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	var ops []storage.Op
	for i := range rows {
		k, v := benchRow(nil, uint64(i))
		ops = append(ops, storage.Op{Kind: storage.Put, Key: k, Value: v})
		if len(ops) == 1000 || i == rows-1 {
			if err := s.Apply(ops, false); err != nil {
				b.Fatal(err)
			}
			ops = ops[:0]
		}
	}
	return s
}

// settle flushes and compacts everything.
func settle(b *testing.B, s storage.Store) {
	if err := s.(*store).db.Compact(b.Context(), []byte{0}, []byte{0xff}, false); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkIterate walks all rows, warm, through the iterator of the contract
// and through pebble's own: the difference is what the guards cost.
func BenchmarkIterate(b *testing.B) {
	s := benchStore(b, benchRows)
	settle(b, s)
	b.Run("store", func(b *testing.B) {
		var bytes int
		start := cpu()
		for b.Loop() {
			it, err := s.NewIter(storage.Range{})
			if err != nil {
				b.Fatal(err)
			}
			n := 0
			for ok := it.First(); ok; ok = it.Next() {
				bytes += len(it.Key()) + len(it.Value())
				n++
			}
			if err := it.Close(); err != nil || n != benchRows {
				b.Fatal(n, err)
			}
		}
		b.ReportMetric(float64(cpu()-start)/float64(b.N)/benchRows, "cpu-ns/row")
	})
	b.Run("pebble", func(b *testing.B) {
		var bytes int
		start := cpu()
		for b.Loop() {
			it, err := s.(*store).db.NewIter(&pebble.IterOptions{})
			if err != nil {
				b.Fatal(err)
			}
			n := 0
			for ok := it.First(); ok; ok = it.Next() {
				v, _ := it.ValueAndErr()
				bytes += len(it.Key()) + len(v)
				n++
			}
			if err := it.Close(); err != nil || n != benchRows {
				b.Fatal(n, err)
			}
		}
		b.ReportMetric(float64(cpu()-start)/float64(b.N)/benchRows, "cpu-ns/row")
	})
}

// BenchmarkShortScan opens an iterator, seeks and reads ten rows.
func BenchmarkShortScan(b *testing.B) {
	s := benchStore(b, benchRows)
	settle(b, s)
	rng := rand.New(rand.NewPCG(1, 2))
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		k, _ := benchRow(buf, rng.Uint64N(benchRows-10))
		buf = k
		it, err := s.NewIter(storage.Range{Start: k})
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for ok := it.First(); ok && n < 10; ok = it.Next() {
			n++
		}
		if err := it.Close(); err != nil || n != 10 {
			b.Fatal(n, err)
		}
	}
}

func BenchmarkGet(b *testing.B) {
	s := benchStore(b, benchRows)
	settle(b, s)
	rng := rand.New(rand.NewPCG(1, 2))
	var buf, dst []byte
	b.ReportAllocs()
	for b.Loop() {
		k, _ := benchRow(buf, rng.Uint64N(benchRows))
		buf = k
		var err error
		if dst, err = s.Get(dst[:0], k); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkApply writes batches without sync.
func BenchmarkApply(b *testing.B) {
	for _, size := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprintf("rows=%d", size), func(b *testing.B) {
			s := benchStore(b, 0)
			ops := make([]storage.Op, size)
			bufs := make([][]byte, size)
			n := uint64(0)
			start := cpu()
			b.ReportAllocs()
			for b.Loop() {
				for i := range ops {
					n++
					ops[i].Key, ops[i].Value = benchRow(bufs[i], n)
					bufs[i] = ops[i].Key
				}
				if err := s.Apply(ops, false); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(cpu()-start)/float64(b.N)/float64(size), "cpu-ns/row")
		})
	}
}

// BenchmarkApplySync writes single rows with sync from many goroutines.
func BenchmarkApplySync(b *testing.B) {
	for _, writers := range []int{1, 4, 16, 64} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			s := benchStore(b, 0)
			var n atomic.Uint64
			b.SetParallelism((writers + 1) / 2) // times GOMAXPROCS, which is 2 here
			b.RunParallel(func(pb *testing.PB) {
				ops := make([]storage.Op, 1)
				var buf []byte
				for pb.Next() {
					ops[0].Key, ops[0].Value = benchRow(buf, n.Add(1))
					buf = ops[0].Key
					if err := s.Apply(ops, true); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
		})
	}
}

// resident reads a line of /proc/self/status, in MiB: VmHWM is the most memory
// this process has had, VmRSS what it has.
func resident(b *testing.B, line string) float64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Skip(err)
	}
	var kib float64
	_, rest, _ := strings.Cut(string(text), line+":")
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		b.Skip(err)
	}
	return kib / 1024
}

// BenchmarkLargeBatches writes 20 rows of 30 MiB at once, and reports the memory
// this takes and keeps. Run it alone, with -benchtime 1x.
func BenchmarkLargeBatches(b *testing.B) {
	e := New(Config{})
	b.Cleanup(e.Close)
	s, err := e.Open(b.TempDir(), storage.Options{CreateIfMissing: true})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	value := make([]byte, 30<<20)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range value {
		value[i] = byte(rng.Uint32())
	}
	for b.Loop() {
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				ops := []storage.Op{{Kind: storage.Put, Key: fmt.Append(nil, i), Value: value}}
				if err := s.Apply(ops, false); err != nil {
					b.Error(err)
				}
			})
		}
		wg.Wait()
	}
	b.ReportMetric(resident(b, "VmHWM"), "peak-MiB")
	b.ReportMetric(resident(b, "VmRSS"), "kept-MiB")
}
