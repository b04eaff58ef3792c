package scan

import (
	"fmt"
	"math"
	"testing"

	"scanode/filter"
	"scanode/msgpack"
)

// benchRows are rows of five fields as in a time series, alternately of 16 groups
// for each of 100 rows.
func benchRows(t testing.TB, encoding byte, n int) [][]byte {
	rows := make([][]byte, n)
	for i := range rows {
		series, time, value := fmt.Sprintf("series%02d", i/7%16), 1467563367600+int64(i)*1000, math.Sin(float64(i))*100
		five := []field{
			{name: "family", ttb: []byte("family1"), mp: msgpack.AppendStr(nil, []byte("family1"))},
			{name: "series", ttb: []byte(series), mp: msgpack.AppendStr(nil, []byte(series))},
			{name: "time", ttb: time, mp: msgpack.AppendInt64(nil, time)},
			{name: "value", ttb: value, mp: msgpack.AppendFloat64(nil, value)},
			{name: "status", ttb: int64(i % 5), mp: msgpack.AppendInt64(nil, int64(i%5))},
		}
		value5, _ := rowOf(&testing.T{}, encoding, five)
		rows[i] = []byte(value5)
	}
	return rows
}

var benchQueries = []struct {
	name string
	req  Aggregate
}{
	{"count", Aggregate{MaxGroups: 1000, Compute: []Compute{{Op: CountAll}}}},
	{"sum", Aggregate{MaxGroups: 1000, Compute: []Compute{{Op: Sum, Column: "value"}}}},
	{"group-count-avg", Aggregate{MaxGroups: 1000, GroupBy: []GroupBy{{Column: "series"}}, Compute: []Compute{{Op: CountAll}, {Op: Avg, Column: "value"}}}},
	{"group-status", Aggregate{MaxGroups: 1000, GroupBy: []GroupBy{{Column: "status"}}, Compute: []Compute{{Op: CountAll}, {Op: Avg, Column: "value"}}}},
	{"group-time", Aggregate{MaxGroups: 100000, GroupBy: []GroupBy{{Column: "series"}, {Column: "time", QuantumMs: 60000}}, Compute: []Compute{{Op: CountAll}, {Op: Avg, Column: "value"}}}},
	{"all", Aggregate{MaxGroups: 1000, GroupBy: []GroupBy{{Column: "series"}}, Compute: []Compute{{Op: CountAll}, {Op: Avg, Column: "value"},
		{Op: StddevPop, Column: "value"}, {Op: Sum, Column: "status"}, {Op: Min, Column: "value"}, {Op: Max, Column: "value"}, {Op: Last, Column: "value"}}}},
}

// BenchmarkAggregate is what a row costs: the walk through the object, the group
// and the states.
func BenchmarkAggregate(b *testing.B) {
	for _, encoding := range []byte{filter.EncodingETF, filter.EncodingMsgpack} {
		rows := benchRows(b, encoding, 2000)
		for _, q := range benchQueries {
			b.Run(fmt.Sprintf("%s-%d", q.name, encoding), func(b *testing.B) {
				a := newAggregator(&q.req, maxGroupBytes)
				m := filter.NewMatcher(nil, filter.DefaultExtractors(), a.columns...)
				key := []byte("key")
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					if ok, err := m.Match(key, rows[i]); !ok || err != nil {
						b.Fatal(err)
					}
					if err := a.add(key, m); err != nil {
						b.Fatal(err)
					}
					if i++; i == len(rows) {
						i = 0
					}
				}
			})
		}
	}
}

// TestAggregateAllocates nothing for rows of groups that are there already.
func TestAggregateAllocates(t *testing.T) {
	for _, encoding := range []byte{filter.EncodingETF, filter.EncodingMsgpack} {
		rows := benchRows(t, encoding, 200)
		for _, q := range benchQueries {
			a := newAggregator(&q.req, maxGroupBytes)
			m := filter.NewMatcher(nil, filter.DefaultExtractors(), a.columns...)
			key := []byte("key")
			pass := func() {
				for _, row := range rows {
					if ok, err := m.Match(key, row); !ok || err != nil {
						t.Fatal(err)
					}
					if err := a.add(key, m); err != nil {
						t.Fatal(err)
					}
				}
			}
			pass()
			if n := testing.AllocsPerRun(5, pass); n != 0 {
				t.Errorf("%s, encoding %d: %v allocations for %d rows", q.name, encoding, n, len(rows))
			}
		}
	}
}
