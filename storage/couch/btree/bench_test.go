package btree

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/etf"
	"scanode/storage/couch/file"
)

// benchTree returns a tree of n small rows in a real file, written in batches of 1,000 in
// random order.
func benchTree(b *testing.B, n int, o Options) (Tree, [][]byte) {
	b.Helper()
	f, err := file.Create(vfs.Default, b.TempDir()+"/tree", file.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { f.Close() })
	tree := New(f, Pointer{}, o)
	keys := make([][]byte, 0, n)
	for _, k := range rand.New(rand.NewPCG(1, 2)).Perm(n) {
		keys = append(keys, etf.AppendInt64(nil, int64(2*k)))
	}
	for at := 0; at < n; at += 1000 {
		var rows []Row
		for _, key := range keys[at:min(at+1000, n)] {
			rows = append(rows, Row{key, etf.AppendInt64(nil, int64(at%100))})
		}
		if tree, err = tree.Add(rows); err != nil {
			b.Fatal(err)
		}
	}
	return tree, keys
}

// cpu reports the processor time of the operations since it was called, the system's and
// the garbage collector's included; that is what couch_btree's figures are.
func cpu(b *testing.B) (report func(n int, unit string)) {
	now := func() int64 {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return u.Utime.Nano() + u.Stime.Nano()
	}
	start := now()
	return func(n int, unit string) { b.ReportMetric(float64(now()-start)/float64(n), unit) }
}

func snappyOptions(cache int) Options {
	return Options{Reducer: sumReducer{}, Compression: file.DefaultCompression, Cache: NewCache(cache)}
}

// BenchmarkInsert inserts rows one by one into a tree that has n.
func BenchmarkInsert(b *testing.B) {
	for _, n := range []int{2500, 100_000} {
		for _, random := range []bool{false, true} {
			for _, cache := range []int{0, 16 << 20} {
				b.Run(fmt.Sprintf("rows=%d/random=%t/cache=%d", n, random, cache), func(b *testing.B) {
					tree, _ := benchTree(b, n, snappyOptions(cache))
					rng := rand.New(rand.NewPCG(3, 4))
					var err error
					b.ReportAllocs()
					report := cpu(b)
					for i := 0; b.Loop(); i++ {
						key := int64(2*n + i)
						if random {
							key = 2*rng.Int64N(int64(n)) + 1
						}
						row := Row{etf.AppendInt64(nil, key), etf.AppendInt64(nil, int64(i%100))}
						if tree, err = tree.Add([]Row{row}); err != nil {
							b.Fatal(err)
						}
					}
					report(b.N, "cpu-ns/op")
				})
			}
		}
	}
}

func BenchmarkGet(b *testing.B) {
	for _, cache := range []int{0, 1 << 20, 64 << 20} {
		b.Run(fmt.Sprintf("cache=%d", cache), func(b *testing.B) {
			tree, keys := benchTree(b, 100_000, snappyOptions(cache))
			b.ReportAllocs()
			report := cpu(b)
			for i := 0; b.Loop(); i++ {
				if _, found, err := tree.Get(keys[i%len(keys)]); !found || err != nil {
					b.Fatal(found, err)
				}
			}
			report(b.N, "cpu-ns/op")
		})
	}
}

// BenchmarkFold reports the time of a row.
func BenchmarkFold(b *testing.B) {
	for _, reverse := range []bool{false, true} {
		b.Run(fmt.Sprintf("reverse=%t", reverse), func(b *testing.B) {
			tree, keys := benchTree(b, 100_000, snappyOptions(1<<20))
			b.ReportAllocs()
			n := 0
			report := cpu(b)
			for b.Loop() {
				it := tree.Iter(Range{Reverse: reverse})
				for it.Next() {
					n++
				}
				if it.Err() != nil || n%len(keys) != 0 {
					b.Fatal(it.Err())
				}
			}
			report(n, "cpu-ns/row")
		})
	}
}

func BenchmarkRangeReduce(b *testing.B) {
	tree, _ := benchTree(b, 100_000, snappyOptions(1<<20))
	rng := rand.New(rand.NewPCG(5, 6))
	b.ReportAllocs()
	report := cpu(b)
	for b.Loop() {
		r := Range{Start: etf.AppendInt64(nil, rng.Int64N(100_000)), End: etf.AppendInt64(nil, 100_000+rng.Int64N(100_000))}
		err := tree.FoldReduce(r, nil, func(_ []byte, p Partial) (Step, error) {
			_, err := tree.FinalReduce(nil, p)
			return Next, err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	report(b.N, "cpu-ns/op")
}

// BenchmarkViewOrder compares keys of views, most of which are strings or lists of them.
func BenchmarkViewOrder(b *testing.B) {
	order := ViewOrder()
	for _, pair := range [][2]string{
		{`{1,<<"a">>}`, `{2,<<"a">>}`},
		{`{<<"abcdef12">>,<<"a">>}`, `{<<"abcdef13">>,<<"a">>}`},
		{`{<<"K0000001234">>,<<"a">>}`, `{<<"K0000001235">>,<<"a">>}`},
		{`{[<<"user">>,2026,11],<<"a">>}`, `{[<<"user">>,2026,12],<<"a">>}`},
		{`{<<"größe">>,<<"a">>}`, `{<<"grösse">>,<<"a">>}`},
	} {
		x, y := mustParse(pair[0]), mustParse(pair[1])
		b.Run(pair[0], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if c, err := order(x, y); c == 0 || err != nil {
					b.Fatal(c, err)
				}
			}
		})
	}
}
