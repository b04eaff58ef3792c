package scan

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"scanode/etf"
	"scanode/etf/etftext"
	"scanode/filter"
	"scanode/msgpack"
)

// TestQuanta compares the quantum of an integer with the definition.
func TestQuanta(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := grouping{quantum: rapid.OneOf(rapid.Int64Range(1, 10), rapid.Int64Range(1, 1<<63-1)).Draw(t, "quantum")}
		var times []*big.Int
		for range 4 {
			n := big.NewInt(rapid.OneOf(rapid.Int64Range(-30, 30), rapid.Int64(), rapid.SampledFrom([]int64{-1 << 63, 1<<63 - 1})).Draw(t, "time"))
			times = append(times, n.Lsh(n, uint(rapid.SampledFrom([]int{0, 0, 0, 1, 80}).Draw(t, "beyond"))))
		}
		req := Aggregate{MaxGroups: 10, GroupBy: []GroupBy{{Column: "t", QuantumMs: g.quantum}}}
		a := newAggregator(&req, maxGroupBytes)
		m := filter.NewMatcher(nil, filter.DefaultExtractors(), a.columns...)
		for _, time := range times {
			if ok, err := m.Match(nil, []byte(naiveObject(t, naiveRow{"t": time}))); !ok || err != nil {
				t.Fatal(err)
			}
			group, err := a.group(m)
			if err != nil {
				t.Fatal(err)
			}
			key, _, err := etf.Decode([]byte(a.keys[group]), etf.DefaultLimits)
			if err != nil {
				t.Fatal(err)
			}
			from, ok := key.(etf.List)[0].(*big.Int)
			if !ok {
				from = big.NewInt(key.(etf.List)[0].(int64))
			}
			past := new(big.Int).Sub(time, from)
			if past.Sign() < 0 || past.Cmp(big.NewInt(g.quantum)) >= 0 || new(big.Int).Rem(from, big.NewInt(g.quantum)).Sign() != 0 {
				t.Fatalf("%v is in the quantum of %d at %v", time, g.quantum, from)
			}
		}
	})
}

// TestOneGroup: all spellings of a value are one group.
func TestOneGroup(t *testing.T) {
	float := func(v float64) []byte { return etf.AppendFloat64(nil, v) }
	negative := float(0)
	negative[1] = 0x80
	for _, spellings := range [][]field{
		{{raw: []byte{97, 5}, mp: []byte{5}}, {raw: []byte{98, 0, 0, 0, 5}, mp: []byte{0xcc, 5}}, {raw: []byte{110, 2, 0, 5, 0}, mp: []byte{0xd3, 0, 0, 0, 0, 0, 0, 0, 5}}},
		{{raw: []byte{97, 0}, mp: []byte{0}}, {raw: []byte{110, 0, 1}, mp: []byte{0xd0, 0}}},
		{{raw: []byte{110, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0x80}, mp: msgpack.AppendUint64(nil, 1<<63)}, {raw: []byte{111, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0}}},
		{{raw: float(0), mp: msgpack.AppendFloat64(nil, 0)}, {raw: negative, mp: []byte{0xca, 0x80, 0, 0, 0}}},
		{{raw: float(1.25)}, {raw: append([]byte{99}, append([]byte("1.25000000000000000000e+00"), make([]byte, 5)...)...), mp: []byte{0xca, 0x3f, 0xa0, 0, 0}}},
		{{raw: []byte{119, 4, 't', 'r', 'u', 'e'}, mp: []byte{0xc3}}, {raw: []byte{100, 0, 4, 't', 'r', 'u', 'e'}}, {raw: []byte{118, 0, 4, 't', 'r', 'u', 'e'}}, {raw: []byte{115, 4, 't', 'r', 'u', 'e'}}},
		{{raw: []byte{109, 0, 0, 0, 1, 'x'}, mp: []byte{0xa1, 'x'}}, {raw: []byte{109, 0, 0, 0, 1, 'x'}, mp: []byte{0xc4, 1, 'x'}}},
		{{raw: []byte{106}, mp: []byte{0x90}}, {raw: []byte{107, 0, 0}, mp: []byte{0xc0}}, {raw: []byte{108, 0, 0, 0, 0, 106}, mp: []byte{0xdc, 0, 0}}},
		{{raw: []byte{107, 0, 2, 1, 2}, mp: []byte{0x92, 1, 2}}, {raw: []byte{108, 0, 0, 0, 2, 97, 1, 97, 2, 106}}, {raw: []byte{108, 0, 0, 0, 1, 97, 1, 107, 0, 1, 2}}},
		{{raw: append([]byte{104, 1}, negative...)}, {raw: append([]byte{105, 0, 0, 0, 1}, float(0)...)}},
		{{raw: []byte{116, 0, 0, 0, 2, 97, 1, 97, 3, 97, 2, 97, 4}}, {raw: []byte{116, 0, 0, 0, 2, 97, 2, 97, 4, 97, 1, 97, 3}}},
	} {
		var table rows
		for _, s := range spellings {
			s.name = "g"
			for _, encoding := range []byte{filter.EncodingETF, filter.EncodingMsgpack} {
				if value, ok := rowOf(t, encoding, []field{s}); ok {
					table.kvs = append(table.kvs, [2]string{"k", value})
				}
			}
		}
		req := Aggregate{MaxGroups: 10, GroupBy: []GroupBy{{Column: "g"}}, Compute: []Compute{{Op: CountAll}, {Op: Count, Column: "g"}}}
		got, _, err := runAggregate(t, &table, Request{Aggregate: &req})
		if err != nil || len(got) != 1 || got[0][1] != int64(len(table.kvs)) {
			t.Errorf("%x: %s, %v", spellings[0].raw, etftext.Format(got), err)
			continue
		}
		if null, ok := got[0][0].(etf.List); ok && len(null) == 0 && got[0][2] != int64(0) {
			t.Errorf("NULLs are counted: %s", etftext.Format(got[0]))
		}
	}
}

// TestForeignCells: what must not cross is an error that names the field, wherever
// it would be sent.
func TestForeignCells(t *testing.T) {
	for _, f := range fields {
		if f.want != "" {
			continue
		}
		for _, encoding := range []byte{filter.EncodingETF, filter.EncodingMsgpack} {
			value, ok := rowOf(t, encoding, []field{f})
			if !ok {
				continue
			}
			for _, req := range []Aggregate{
				{GroupBy: []GroupBy{{Column: f.name}}},
				{GroupBy: []GroupBy{{Column: f.name, QuantumMs: 10}}},
				{Compute: []Compute{{Op: Min, Column: f.name}}},
				{Compute: []Compute{{Op: Last, Column: f.name}}},
				{Compute: []Compute{{Op: Sum, Column: f.name}}},
				{Compute: []Compute{{Op: StddevPop, Column: f.name}}},
			} {
				req.MaxGroups = 10
				_, _, err := runAggregate(t, &rows{kvs: [][2]string{{"k", value}}}, Request{Aggregate: &req})
				var row *RowError
				if !errors.As(err, &row) || string(row.Key) != "k" || !strings.Contains(err.Error(), f.name) {
					t.Errorf("%s in encoding %d, %+v: %v", f.name, encoding, req, err)
				}
			}
		}
	}
}

// TestGroupsOrdered looks at order, limit and the bound of groups.
func TestGroupsOrdered(t *testing.T) {
	var table rows
	for i, g := range []any{"b", int64(2), nil, "a", 1.0, int64(1), true, nil, "b"} {
		f := field{name: "g"}
		if f.ttb = g; g == nil {
			f.ttb = etf.List{}
		}
		if s, ok := g.(string); ok {
			f.ttb = []byte(s)
		}
		if b, ok := g.(bool); ok {
			f.ttb = etf.Atom(fmt.Sprint(b))
		}
		value, _ := rowOf(t, filter.EncodingETF, []field{f})
		table.kvs = append(table.kvs, [2]string{fmt.Sprint(i), value})
	}
	for _, c := range []struct {
		order []Order
		limit int64
		want  string
	}{
		{nil, 0, `[[1,1],[1.0,1],[2,1],[true,1],[[],2],[<<"a">>,1],[<<"b">>,2]]`},
		{nil, 2, `[[1,1],[1.0,1]]`},
		{[]Order{{Column: 0}}, 0, `[[1,1],[1.0,1],[2,1],[true,1],[<<"a">>,1],[<<"b">>,2],[[],2]]`},
		{[]Order{{Column: 0, Descending: true}}, 3, `[[[],2],[<<"b">>,2],[<<"a">>,1]]`},
		{[]Order{{Column: 1, Descending: true}, {Column: 0, Descending: true}}, 0, `[[[],2],[<<"b">>,2],[<<"a">>,1],[true,1],[2,1],[1,1],[1.0,1]]`},
	} {
		req := Aggregate{MaxGroups: 7, GroupBy: []GroupBy{{Column: "g"}}, Compute: []Compute{{Op: CountAll}}, Order: c.order}
		got, totals, err := runAggregate(t, &table, Request{Aggregate: &req, Limit: c.limit, MaxBatchBytes: 1})
		all := make(etf.List, len(got))
		for i := range got {
			all[i] = got[i]
		}
		if err != nil || etftext.Format(all) != c.want || totals.Rows != int64(len(got)) || totals.RowsRead != 9 || totals.Last != nil {
			t.Errorf("order %+v limit %d: %s, %+v, %v", c.order, c.limit, etftext.Format(all), totals, err)
		}
		req.MaxGroups = 6
		if _, totals, err := runAggregate(t, &table, Request{Aggregate: &req}); !errors.Is(err, ErrGroups) || totals.Rows != 0 {
			t.Errorf("of 7 groups, 6 allowed: %v", err)
		}
	}
}

// FuzzCanonical claims: whatever a cell holds, its canonical form is a term that
// the BEAM accepts, without foreign content, equal to the cell in Erlang's order
// if that came from ETF, and its own canonical form.
func FuzzCanonical(f *testing.F) {
	for _, s := range fields {
		if s.raw != nil {
			f.Add(byte(filter.EncodingETF), s.raw)
		}
		if s.mp != nil {
			f.Add(byte(filter.EncodingMsgpack), s.mp)
		}
	}
	f.Add(byte(filter.EncodingETF), []byte{116, 0, 0, 0, 2, 97, 2, 97, 4, 70, 0x80, 0, 0, 0, 0, 0, 0, 0, 97, 3})
	f.Add(byte(filter.EncodingETF), []byte{108, 0, 0, 0, 1, 110, 2, 0, 1, 0, 107, 0, 1, 2})
	f.Fuzz(func(t *testing.T, encoding byte, raw []byte) {
		canonicalOf := func(encoding byte, raw []byte) (term []byte, found bool) {
			payload := append([]byte{0x81, 0xa1, 'x'}, raw...)
			if encoding != filter.EncodingMsgpack {
				encoding = filter.EncodingETF
				payload = append([]byte{131, 108, 0, 0, 0, 1, 104, 2, 109, 0, 0, 0, 1, 'x'}, raw...)
			}
			m := filter.NewMatcher(nil, filter.DefaultExtractors(), "x")
			if ok, err := m.Match(nil, []byte(object(encoding, payload))); !ok || err != nil {
				return nil, false
			}
			c := m.Cell(0)
			term, err := appendCanonical([]byte{}, &c)
			return term, err == nil
		}
		term, found := canonicalOf(encoding, raw)
		if !found {
			return
		}
		if rest, err := etf.Check(term); err != nil || len(rest) > 0 || crosses(term) != nil {
			t.Fatalf("%x becomes %x: %v", raw, term, err)
		}
		if again, found := canonicalOf(filter.EncodingETF, term); !found || string(again) != string(term) {
			t.Fatalf("%x becomes %x, and that %x", raw, term, again)
		}
		if encoding != filter.EncodingMsgpack {
			if r, err := etf.Compare(raw, term); err != nil || r != 0 {
				t.Fatalf("%x is not equal to %x: %d, %v", raw, term, r, err)
			}
		}
	})
}
