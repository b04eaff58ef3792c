package filter

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
)

// seriesRows builds n rows as a time-series table holds them: 5 fields, or 50
// of mixed types with names of 4 to 12 bytes. With fixed set, every value has
// the same size in every row.
func seriesRows(n, fields int, encode func(...field) []byte, encoding byte, fixed bool) [][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	rows := make([][]byte, n)
	var arena []byte // rows lie one behind the other, as in a block
	for i := range rows {
		row := []field{
			{"time", int64(1467563367600 + i)}, {"family", "family1"}, {"series", "seriesX"},
			{"value", r.Float64() * 100}, {"status", int64(r.IntN(200))},
		}
		if fields == 50 {
			row = row[:1]
			for len(row) < 49 {
				name := fmt.Sprintf("f%02d%s", len(row), "abcdefghi"[:1+len(row)%9])
				row = append(row, field{name, seriesValue(r, len(row), fixed)})
			}
			row = append(row, field{"status", int64(r.IntN(200))})
		}
		o := object(encoding, encode(row...))
		if len(o) > cap(arena)-len(arena) {
			arena = make([]byte, 0, 1<<20)
		}
		from := len(arena)
		arena = append(arena, o...)
		rows[i] = arena[from:len(arena):len(arena)]
	}
	return rows
}

func seriesValue(r *rand.Rand, i int, fixed bool) any {
	switch {
	case !fixed && r.IntN(20) == 0:
		return null{}
	case i%5 == 0:
		if fixed {
			return "sixteen bytes ..."
		}
		return "some text of many lengths"[:r.IntN(25)]
	case i%5 == 1:
		return r.Float64()
	case i%5 == 2:
		if fixed {
			return true
		}
		return r.IntN(2) == 0
	case i%5 == 3:
		if fixed {
			return int64(70000 + r.IntN(100000))
		}
		return int64(r.IntN(1 << r.IntN(30)))
	}
	return int64(1467563367600 + r.IntN(1000000))
}

var benchmarks = []struct {
	name   string
	rows   int
	fields int
	first  bool
	fixed  bool
}{
	{"5/first", 20000, 5, true, false},
	{"5/last", 20000, 5, false, false},
	{"5/last-cached", 200, 5, false, false},
	{"50/first", 20000, 50, true, false},
	{"50/last", 20000, 50, false, false},
	{"50/last-cached", 200, 50, false, false},
	{"50/last-fixed", 20000, 50, false, true},
	{"50/last-fixed-cached", 200, 50, false, true},
}

// BenchmarkMatch filters different rows, half of which pass, with one comparison
// on the first or the last field of the row. 20,000 rows of 50 fields do not fit
// a cache of 2 MiB, 200 do: as when a scan has just decompressed them.
func BenchmarkMatch(b *testing.B) {
	for _, enc := range []struct {
		name     string
		encoding byte
		encode   func(...field) []byte
	}{{"etf", EncodingETF, etfRow}, {"msgpack", EncodingMsgpack, msgpackRow}} {
		for _, c := range benchmarks {
			rows := seriesRows(c.rows, c.fields, enc.encode, enc.encoding, c.fixed)
			term := expr("<", typed("status", "sint64"), value1(int64(100)))
			if c.first {
				term = expr("<", typed("time", "timestamp"), value1(int64(1467563367600+c.rows/2)))
			}
			b.Run(enc.name+"/"+c.name, func(b *testing.B) { benchmarkMatch(b, rows, term) })
		}
	}
}

// BenchmarkMatchTree is a filter as Riak's SQL layer makes them: a range of time
// and three more tests on a row of 5 fields.
func BenchmarkMatchTree(b *testing.B) {
	term := expr("and_",
		expr("and_",
			expr(">=", typed("time", "timestamp"), value1(int64(1467563367600))),
			expr("<", typed("time", "timestamp"), value1(int64(1467563367600+10000)))),
		expr("and_",
			expr("=", typed("series", "varchar"), value1([]byte("seriesX"))),
			expr("or_",
				expr(">", typed("value", "double"), value1(50.0)),
				expr("!=", typed("family", "varchar"), value1([]byte("family1"))))))
	b.Run("etf", func(b *testing.B) {
		benchmarkMatch(b, seriesRows(20000, 5, etfRow, EncodingETF, false), term)
	})
	b.Run("msgpack", func(b *testing.B) {
		benchmarkMatch(b, seriesRows(20000, 5, msgpackRow, EncodingMsgpack, false), term)
	})
}

func benchmarkMatch(b *testing.B, rows [][]byte, filter any) {
	e, err := Parse(filter)
	if err != nil {
		b.Fatal(err)
	}
	m := NewMatcher(e, DefaultExtractors())
	b.ReportAllocs()
	passed, began := 0, cpuTime(b)
	for i := 0; b.Loop(); i++ {
		if i == len(rows) {
			i = 0
		}
		ok, err := m.Match(nil, rows[i])
		if err != nil {
			b.Fatal(err)
		}
		if ok {
			passed++
		}
	}
	b.ReportMetric(float64(cpuTime(b)-began)/float64(b.N), "cpu-ns/op")
	if passed == 0 {
		b.Fatal("no row passed")
	}
}

// cpuTime returns the nanoseconds this process has spent on a processor. On a
// busy machine it says more than the clock.
func cpuTime(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// BenchmarkCells reads columns of every row, as projection does.
func BenchmarkCells(b *testing.B) {
	for _, enc := range []struct {
		name     string
		encoding byte
		encode   func(...field) []byte
	}{{"etf", EncodingETF, etfRow}, {"msgpack", EncodingMsgpack, msgpackRow}} {
		rows := seriesRows(20000, 5, enc.encode, enc.encoding, false)
		for _, c := range []struct {
			name    string
			columns []string
		}{{"one", []string{"value"}}, {"two", []string{"time", "value"}}, {"all", []string{"time", "family", "series", "value", "status"}}} {
			b.Run(enc.name+"/"+c.name, func(b *testing.B) {
				m := NewMatcher(nil, DefaultExtractors(), c.columns...)
				b.ReportAllocs()
				size, began := 0, cpuTime(b)
				for i := 0; b.Loop(); i++ {
					if i == len(rows) {
						i = 0
					}
					if ok, err := m.Match(nil, rows[i]); !ok || err != nil {
						b.Fatal(ok, err)
					}
					for j := range c.columns {
						size += len(m.Cell(j).Bytes)
					}
				}
				b.ReportMetric(float64(cpuTime(b)-began)/float64(b.N), "cpu-ns/op")
				if size == 0 {
					b.Fatal("no cells")
				}
			})
		}
	}
}

// BenchmarkPattern matches a regular expression against a text of 7 bytes.
func BenchmarkPattern(b *testing.B) {
	rows := seriesRows(200, 5, etfRow, EncodingETF, false)
	b.Run("match", func(b *testing.B) {
		benchmarkMatch(b, rows, expr("match", typed("series", "varchar"), value1([]byte("^series[A-Z]$"))))
	})
	b.Run("prefix", func(b *testing.B) {
		benchmarkMatch(b, rows, expr("prefix", typed("series", "varchar"), value1([]byte("series"))))
	})
}
