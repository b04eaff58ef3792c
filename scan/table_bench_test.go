package scan

import (
	"encoding/binary"
	"path/filepath"
	"syscall"
	"testing"

	"scanode/filter"
	"scanode/msgpack"
	"scanode/storage"
	"scanode/storage/lsm"
)

// seriesKey and seriesRow are the rows of `make bench-rows`.
func seriesKey(i int) []byte {
	time := uint64(1467563367600 + i*1000)
	key := append(append([]byte("family1"), 0), append([]byte("seriesX"), make([]byte, 9)...)...)
	key = binary.BigEndian.AppendUint64(key, time-time%3600000)
	return binary.BigEndian.AppendUint64(key, time)
}

func seriesRow(encoding byte, i int) string {
	time, value, status := 1467563367600+int64(i)*1000, float64(i*7919%1000)/10+0.05, int64(i*7907%200)
	return string(rowObject(encoding, []field{
		{name: "time", ttb: time, mp: msgpack.AppendInt64(nil, time)},
		{name: "family", ttb: []byte("family1"), mp: msgpack.AppendStr(nil, []byte("family1"))},
		{name: "series", ttb: []byte("seriesX"), mp: msgpack.AppendStr(nil, []byte("seriesX"))},
		{name: "value", ttb: value, mp: msgpack.AppendFloat64(nil, value)},
		{name: "status", ttb: status, mp: msgpack.AppendInt64(nil, status)},
	}))
}

// rowObject makes a riak object with a vector clock and metadata as long as riak's
// are.
func rowObject(encoding byte, fields []field) []byte {
	const vclock, metadata = 34, 24
	bare, _ := rowOf(&testing.T{}, encoding, fields)
	b := append([]byte{53, 1, 0, 0, 0, vclock}, make([]byte, vclock)...)
	b = append(b, bare[6:]...)
	b = append(b, 0, 0, 0, metadata)
	return append(b, make([]byte, metadata)...)
}

// tableRows is more than fits any cache of a processor.
const tableRows = 300_000

// benchTable is a store of tableRows rows, all of which fit its block cache.
func benchTable(b *testing.B, encoding func(i int) byte) storage.Store {
	engine := lsm.New(lsm.Config{CacheBytes: 512 << 20})
	b.Cleanup(engine.Close)
	dir := filepath.Join(b.TempDir(), "table")
	st, err := engine.Open(dir, storage.Options{CreateIfMissing: true})
	if err != nil {
		b.Fatal(err)
	}
	var ops []storage.Op
	for i := range tableRows {
		ops = append(ops, storage.Op{Key: seriesKey(i), Value: []byte(seriesRow(encoding(i), i))})
		if len(ops) == 1000 || i == tableRows-1 {
			if err := st.Apply(ops, false); err != nil {
				b.Fatal(err)
			}
			ops = nil
		}
	}
	if err := st.Close(); err != nil {
		b.Fatal(err)
	}
	if st, err = engine.Open(dir, storage.Options{}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { st.Close() })
	return st
}

func cpuTime() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// BenchmarkTable is what an aggregate over a table costs, warm, in all.
func BenchmarkTable(b *testing.B) {
	for _, table := range []struct {
		name     string
		encoding func(int) byte
	}{
		{"ttb", func(int) byte { return filter.EncodingETF }},
		{"msgpack", func(int) byte { return filter.EncodingMsgpack }},
		{"mixed", func(i int) byte { return byte(i & 1 * filter.EncodingMsgpack) }},
	} {
		b.Run(table.name, func(b *testing.B) {
			st := benchTable(b, table.encoding)
			for _, q := range []struct {
				name string
				req  Request
			}{
				{"keys", Request{Form: Form{Kind: Keys}}},
				{"count", Request{Aggregate: &Aggregate{MaxGroups: 1000, Compute: []Compute{{Op: CountAll}}}}},
				{"avg", Request{Aggregate: &Aggregate{MaxGroups: 1000, Compute: []Compute{{Op: Avg, Column: "value"}}}}},
				{"status", Request{Aggregate: &Aggregate{MaxGroups: 1000, GroupBy: []GroupBy{{Column: "status"}}, Compute: []Compute{{Op: CountAll}, {Op: Avg, Column: "value"}}}}},
				{"hour", Request{Aggregate: &Aggregate{MaxGroups: 1000, GroupBy: []GroupBy{{Column: "time", QuantumMs: 3600000}}, Compute: []Compute{{Op: CountAll}, {Op: Avg, Column: "value"}}}}},
				{"status, 2 parts", Request{Aggregate: &Aggregate{Parallel: 2, MaxGroups: 1000, GroupBy: []GroupBy{{Column: "status"}}, Compute: []Compute{{Op: CountAll}, {Op: Avg, Column: "value"}}}}},
			} {
				b.Run(q.name, func(b *testing.B) {
					q.req.Ranges, q.req.MaxBatchBytes = everything, 128<<10
					run := func() {
						w := NewWindow(1 << 30)
						totals, err := Run(st, q.req, w, discard{})
						if err != nil || totals.RowsRead != tableRows {
							b.Fatal(totals, err)
						}
					}
					run()
					began := cpuTime()
					for b.Loop() {
						run()
					}
					b.ReportMetric(float64(cpuTime()-began)/float64(b.N)/tableRows, "cpu-ns/row")
				})
			}
		})
	}
}
