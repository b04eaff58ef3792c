package btree

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"scanode/etf"
)

// BenchmarkOwnInsert inserts rows one by one into a tree of 100,000, each with a root of its
// own or held in memory for a thousand.
func BenchmarkOwnInsert(b *testing.B) {
	for _, p := range []Policy{Compat, Scanode, ScanodeWrite} {
		for _, hold := range []int{0, 16 << 20} {
			for _, random := range []bool{false, true} {
				b.Run(fmt.Sprintf("%s/hold=%t/random=%t", p, hold > 0, random), func(b *testing.B) {
					o := snappyOptions(16 << 20)
					o.Policy, o.HoldBytes = p, hold
					tree, _ := benchTree(b, 100_000, o)
					tree, err := tree.Flush()
					if err != nil {
						b.Fatal(err)
					}
					rng := rand.New(rand.NewPCG(3, 4))
					b.ReportAllocs()
					report := cpu(b)
					for i := 0; b.Loop(); i++ {
						key := int64(200_000 + i)
						if random {
							key = 2*rng.Int64N(100_000) + 1
						}
						row := Row{etf.AppendInt64(nil, key), etf.AppendInt64(nil, int64(i%100))}
						if tree, err = tree.Add([]Row{row}); err != nil {
							b.Fatal(err)
						}
						if i%1000 == 999 {
							if tree, err = tree.Flush(); err != nil {
								b.Fatal(err)
							}
						}
					}
					report(b.N, "cpu-ns/op")
				})
			}
		}
	}
}
