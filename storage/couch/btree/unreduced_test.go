package btree

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"scanode/etf"
)

// TestHeldWithoutReductions modifies trees in memory whose reductions do not tell that
// something has changed: all are [], or they count and as many rows come as go. What is
// expected are a map's rows.
func TestHeldWithoutReductions(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for i := range 40 {
		o := Options{Policy: []Policy{Compat, Scanode}[i%2], HoldBytes: []int{20_000, 1 << 20}[i/2%2]}
		if i%8 > 3 {
			o.Reducer = Count{}
		}
		tree := New(newFile(t), Pointer{}, o)
		rows := map[string]int64{}
		var err error
		for round := range int64(25) {
			var inserts []Row
			for range 1 + rng.IntN(200) {
				key := stringTerm(fmt.Sprintf("%05d", rng.IntN(500)))
				if _, ok := rows[string(key)]; o.Reducer != nil && !ok && len(rows) >= 300 {
					continue
				}
				inserts = append(inserts, Row{key, etf.AppendInt64(nil, round)})
				rows[string(key)] = round
			}
			if tree, err = tree.Add(inserts); err != nil {
				t.Fatal(err)
			}
			if rng.IntN(4) == 0 {
				if tree, err = tree.Flush(); err != nil {
					t.Fatal(err)
				}
			}
			n := 0
			for it := tree.Iter(Range{}); it.Next(); n++ {
				if v, _, err := etf.ReadInt64(it.Value()); err != nil || v != rows[string(it.Key())] {
					t.Fatalf("%v, round %d: %x has %d, expected %d (%v)", o.Policy, round, it.Key(), v, rows[string(it.Key())], err)
				}
			}
			if n != len(rows) {
				t.Fatalf("%v, round %d: %d rows, expected %d", o.Policy, round, n, len(rows))
			}
		}
	}
}
