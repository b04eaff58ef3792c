package scan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"scanode/etf"
	"scanode/filter"
	"scanode/msgpack"
)

// TestManyIntegerGroups counts more integers than a memo has places, at random and
// with text between them, by value and by quantum. The oracle is a map.
func TestManyIntegerGroups(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	for _, quantum := range []int64{0, 1, 7, 1 << 40} {
		var table rows
		want := map[string]int64{}
		for i := range 20000 {
			v := rnd.Int64N(4 << memoBits)
			switch rnd.IntN(8) {
			case 0:
				v = -v
			case 1:
				v = rnd.Int64() - 1<<62
			case 2:
				v = math.MinInt64 + v
			}
			f := field{name: "g", ttb: v, mp: msgpack.AppendInt64(nil, v)}
			key := fmt.Sprint(v)
			if quantum > 0 {
				from := v - ((v%quantum)+quantum)%quantum
				key = fmt.Sprint(from)
				if from > v { // below all int64: here it is enough that it does not wrap
					continue
				}
			} else if rnd.IntN(4) == 0 {
				key = fmt.Sprintf("text%d", rnd.IntN(3))
				f = field{name: "g", ttb: []byte(key), mp: msgpack.AppendStr(nil, []byte(key))}
			}
			want[key]++
			value, _ := rowOf(t, byte(i&1*filter.EncodingMsgpack), []field{f})
			table.kvs = append(table.kvs, [2]string{fmt.Sprintf("%06d", i), value})
		}
		req := Aggregate{MaxGroups: 1 << 20, GroupBy: []GroupBy{{Column: "g", QuantumMs: quantum}}, Compute: []Compute{{Op: CountAll}}}
		got, _, err := runAggregate(t, &table, Request{Aggregate: &req, MaxBatchBytes: 1 << 20})
		if err != nil || len(got) != len(want) {
			t.Fatalf("quantum %d: %d groups, want %d, %v", quantum, len(got), len(want), err)
		}
		for _, row := range got {
			key := fmt.Sprint(row[0])
			if text, ok := row[0].([]byte); ok {
				key = string(text)
			}
			if row[1] != etf.Term(want[key]) {
				t.Errorf("quantum %d: %v of %s, want %d", quantum, row[1], key, want[key])
			}
		}
	}
}
