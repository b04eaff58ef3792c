package scan

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"scanode/etf"
	"scanode/etf/etftext"
	"scanode/filter"
	"scanode/msgpack"
)

// A naive evaluator: cells are nil, bool, *big.Int, float64 or string, rows are
// kept whole, and arithmetic is that of big.Rat.

type naiveRow map[string]any

func naiveNumber(v any) *big.Rat {
	if n, ok := v.(*big.Int); ok {
		return new(big.Rat).SetInt(n)
	}
	return new(big.Rat).SetFloat64(v.(float64))
}

func rank(v any) int {
	switch v.(type) {
	case *big.Int, float64:
		return 0
	case bool:
		return 1
	case nil:
		return 2
	}
	return 3
}

// naiveCompare is Erlang's order; exact puts an integer before an equal float.
func naiveCompare(a, b any, exact bool) int {
	if r := cmp.Compare(rank(a), rank(b)); r != 0 {
		return r
	}
	switch a := a.(type) {
	case *big.Int, float64:
		r := naiveNumber(a).Cmp(naiveNumber(b))
		if r == 0 && exact {
			_, x := a.(float64)
			_, y := b.(float64)
			return cmp.Compare(fmt.Sprint(x), fmt.Sprint(y))
		}
		return r
	case bool:
		return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b))
	case string:
		return cmp.Compare(a, b.(string))
	}
	return 0
}

func naiveTerm(v any) etf.Term {
	switch v := v.(type) {
	case nil:
		return etf.List{}
	case bool:
		return etf.Atom(fmt.Sprint(v))
	case string:
		return []byte(v)
	case float64:
		return unsignedZero(v)
	}
	return v
}

func text(t *rapid.T, v any) string {
	b, err := etf.AppendTerm(nil, naiveTerm(v))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// checkResult compares one result with the definition of its operation.
func checkResult(t *rapid.T, c Compute, rows []naiveRow, got etf.Term) {
	var values []any
	for _, r := range rows {
		if v := r[c.Column]; v != nil {
			values = append(values, v)
		}
	}
	n := int64(len(values))
	sum, squares, ints := new(big.Rat), new(big.Rat), true
	if c.Op == Sum || c.Op == Avg || c.Op == StddevPop || c.Op == StddevSamp {
		for _, v := range values {
			x := naiveNumber(v)
			sum.Add(sum, x)
			squares.Add(squares, x.Mul(x, x))
			_, whole := v.(*big.Int)
			ints = ints && whole
		}
	}
	var want any
	switch c.Op {
	case CountAll:
		want = big.NewInt(int64(len(rows)))
	case Count:
		want = big.NewInt(n)
	case Sum:
		if want = sum.Num(); n == 0 {
			want = nil
		} else if !ints {
			want, _ = sum.Float64()
		}
	case Avg:
		if n > 0 {
			want, _ = sum.Quo(sum, big.NewRat(n, 1)).Float64()
		}
	case StddevPop, StddevSamp:
		den := n
		if c.Op == StddevSamp {
			den--
		}
		if den > 0 {
			nn := big.NewRat(n, 1)
			squares.Sub(squares.Mul(squares, nn), sum.Mul(sum, sum))
			checkRoot(t, squares.Quo(squares, nn.Mul(nn, big.NewRat(den, 1))), got.(float64), nil)
			return
		}
	case First, Last:
		if n > 0 {
			want = values[0]
			if c.Op == Last {
				want = values[n-1]
			}
		}
	case Min, Max:
		for i, v := range values {
			r := naiveCompare(v, want, false)
			if c.Op == Max {
				r = -r
			}
			if i == 0 || r < 0 || r == 0 && naiveCompare(v, want, true) < 0 {
				want = v
			}
		}
	}
	encoded, err := etf.AppendTerm(nil, got)
	if err != nil || string(encoded) != text(t, want) {
		t.Fatalf("%s of %q over %v: %s, want %v", c.Op, c.Column, values, etftext.Format(got), want)
	}
}

// naiveField draws a cell; numeric allows nothing that cannot be added up.
func naiveField(t *rapid.T, numeric bool) any {
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0:
		return nil
	case 8:
		return float64(rapid.IntRange(-3, 3).Draw(t, "whole"))
	case 9:
		return naiveInteger(t)
	case 1, 2:
		return big.NewInt(rapid.Int64Range(-3, 3).Draw(t, "small"))
	case 3:
		n := big.NewInt(rapid.Int64().Draw(t, "int"))
		return n.Lsh(n, uint(rapid.SampledFrom([]int{0, 0, 1, 70}).Draw(t, "beyond 64 bits")))
	case 4, 5:
		return anyFloat(t)
	}
	if numeric {
		return anyFloat(t)
	}
	if rapid.Bool().Draw(t, "text or boolean") {
		return rapid.SampledFrom([]string{"", "a", "b", "ab", "\xff"}).Draw(t, "text")
	}
	return rapid.Bool().Draw(t, "boolean")
}

func naiveInteger(t *rapid.T) *big.Int {
	return new(big.Int).Set(rapid.SampledFrom([]*big.Int{big.NewInt(math.MinInt64), big.NewInt(math.MaxInt64), new(big.Int).SetUint64(math.MaxUint64),
		big.NewInt(1<<53 + 1), big.NewInt(1<<55 + 1), big.NewInt(-1<<53 - 1), big.NewInt(3)}).Draw(t, "large"))
}

// naiveObject writes a row in a random encoding and spelling.
func naiveObject(t *rapid.T, r naiveRow) string {
	var ttb, packed []byte
	fits, n := true, 0
	for _, name := range slices.Sorted(maps.Keys(r)) { // draws must come in one order
		v := r[name]
		if v == nil && rapid.Bool().Draw(t, "missing") {
			continue
		}
		n++
		ttb = etf.AppendBinary(etf.AppendTupleHeader(ttb, 2), []byte(name))
		packed = msgpack.AppendStr(packed, []byte(name))
		switch v := v.(type) {
		case nil:
			ttb = etf.AppendNil(ttb)
			packed = append(packed, rapid.SampledFrom([]byte{0xc0, 0x90}).Draw(t, "null"))
		case bool:
			name := fmt.Sprint(v)
			if rapid.Bool().Draw(t, "old atom") {
				ttb = append(append(ttb, etf.TagAtom, 0, byte(len(name))), name...)
			} else {
				ttb = etf.AppendAtom(ttb, etf.Atom(name))
			}
			packed = msgpack.AppendBool(packed, v)
		case string:
			ttb = etf.AppendBinary(ttb, []byte(v))
			packed = msgpack.AppendBytes(packed, []byte(v))
		case float64:
			ttb = etf.AppendFloat64(ttb, v)
			packed = msgpack.AppendFloat64(packed, v)
		case *big.Int:
			ttb, _ = etf.AppendTerm(ttb, v)
			switch {
			case v.IsInt64():
				packed = msgpack.AppendInt64(packed, v.Int64())
			case v.IsUint64():
				packed = msgpack.AppendUint64(packed, v.Uint64())
			default:
				fits = false
			}
		}
	}
	// A row without fields is written as MessagePack: the ETF of one is [], and
	// that is no row.
	if fits && (rapid.Bool().Draw(t, "msgpack") || n == 0) {
		return object(filter.EncodingMsgpack, append(msgpack.AppendMapHeader(nil, n), packed...))
	}
	b := etf.AppendListHeader(etf.AppendVersion(nil), n)
	return object(filter.EncodingETF, etf.AppendNil(append(b, ttb...)))
}

func runAggregate(t testing.TB, table *rows, req Request) ([]etf.List, Totals, error) {
	s := &collector{t: t, w: NewWindow(1 << 30)}
	req.Ranges = everything
	totals, err := Run(table, req, s.w, s)
	return s.rows, totals, err
}

// collector is a Sink that keeps the rows.
type collector struct {
	t    testing.TB
	w    *Window
	rows []etf.List
}

func (c *collector) Progress(int64) error { return nil }
func (c *collector) Blocked()             {}
func (c *collector) Batch(bin []byte) error {
	t, _, err := etf.Decode(bytes.Clone(bin)[1:], etf.DefaultLimits)
	if err != nil {
		c.t.Errorf("%x: %v", bin, err)
		return err
	}
	for _, row := range t.(etf.List) {
		c.rows = append(c.rows, row.(etf.List))
	}
	return c.w.Ack(int64(len(bin)))
}

// TestAggregate compares with the naive evaluator.
func TestAggregate(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var table rows
		var all []naiveRow
		integers := rapid.Bool().Draw(rt, "integers")
		for i := range rapid.IntRange(0, 12).Draw(rt, "rows") {
			row := naiveRow{"g": naiveField(rt, false), "x": naiveField(rt, true), "any": naiveField(rt, false)}
			if integers { // no float that everything else is too small for
				row["x"] = naiveInteger(rt)
			}
			if i > 0 && rapid.Bool().Draw(rt, "same group") {
				row["g"] = all[i-1]["g"]
			}
			all = append(all, row)
			table.kvs = append(table.kvs, [2]string{fmt.Sprintf("%03d", i), naiveObject(rt, row)})
		}
		req := Aggregate{MaxGroups: 1000}
		for range rapid.IntRange(1, 6).Draw(rt, "computed") {
			op := Op(rapid.IntRange(0, int(Last)).Draw(rt, "op"))
			c := Compute{Op: op}
			if op != CountAll {
				c.Column = rapid.SampledFrom([]string{"x", "x", "none"}).Draw(rt, "column")
			}
			if op == Min || op == Max || op >= First || op == Count {
				c.Column = "any"
			}
			req.Compute = append(req.Compute, c)
		}
		if rapid.Bool().Draw(rt, "grouped") {
			req.GroupBy = []GroupBy{{Column: "g"}}
		}
		got, _, err := runAggregate(t, &table, Request{Aggregate: &req, MaxBatchBytes: rapid.IntRange(1, 100).Draw(rt, "batch")})
		if errors.Is(err, ErrOverflow) && strings.Contains(fmt.Sprint(all), "e+") {
			return
		}
		if err != nil {
			rt.Fatal(err)
		}
		checkAll(rt, req, all, got)
	})
}

func checkAll(t *rapid.T, req Aggregate, all []naiveRow, got []etf.List) {
	if len(req.GroupBy) == 0 {
		if len(got) != 1 {
			t.Fatalf("%d rows without group_by", len(got))
		}
		for i, c := range req.Compute {
			checkResult(t, c, all, got[0][i])
		}
		return
	}
	groups := map[string][]naiveRow{}
	var keys []any
	for _, r := range all {
		k := text(t, r["g"])
		if groups[k] == nil {
			keys = append(keys, r["g"])
		}
		groups[k] = append(groups[k], r)
	}
	slices.SortFunc(keys, func(a, b any) int { return naiveCompare(a, b, true) })
	if len(got) != len(keys) {
		t.Fatalf("%d groups, want %d", len(got), len(keys))
	}
	for i, key := range keys {
		k := text(t, key)
		if b, _ := etf.AppendTerm(nil, got[i][0]); string(b) != k {
			t.Fatalf("group %d is %s, want %v", i, etftext.Format(got[i][0]), key)
		}
		for j, c := range req.Compute {
			checkResult(t, c, groups[k], got[i][j+1])
		}
	}
}
