package filter

import (
	"bytes"
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"scanode/etf"
)

// naiveColumns is what a matcher with columns does: the verdict, then a walk to
// the last of all names, of rows that pass.
func naiveColumns(filter etf.Term, columns []string, key, payload []byte, encoding byte) (bool, map[string]naiveCell, error) {
	types := make(naiveTypes)
	decode := naiveETF
	if encoding == EncodingMsgpack {
		decode = naiveMsgpack
	}
	if filter != nil {
		types.collect(filter, make(map[string]string))
		if ok, err := naiveMatch(filter, key, object(encoding, payload)); !ok || err != nil {
			return ok, nil, err
		}
	}
	var alone []string // those that the filter does not name
	for _, name := range columns {
		if types[name] == nil {
			alone = append(alone, name)
		}
	}
	for _, name := range columns {
		types[name] = append(types[name], "any")
	}
	row, err := decode(payload, types)
	isMissing := func(name string) bool { _, found := row[name]; return !found }
	if err == errNaiveTail && !slices.ContainsFunc(alone, isMissing) {
		err = nil // no column made the walk go so far
	}
	return err == nil, row, err
}

// checkCell compares a cell with the decoded value it should be. Every reader must
// say the same or refuse.
func checkCell(t interface {
	Fatalf(string, ...any)
}, c Cell, want naiveCell, found bool) {
	if !bytes.Equal(c.Bytes, want.raw) {
		t.Fatalf("cell %q, want %q", c.Bytes, want.raw)
	}
	b, isBool := c.Bool()
	n, isBig := c.Big()
	f, isFloat := c.Float()
	text, isText := c.Text()
	n64, isInt64 := c.Int64()
	mag, neg, isInt := c.Int()
	kind, ok := KindOther, !isBool && !isBig && !isFloat && !isText
	switch v := want.value.(type) {
	case nil:
		if kind = KindMissing; found {
			kind = KindNull
		}
	case bool:
		kind, ok = KindBool, isBool && b == v && !isBig && !isFloat && !isText
	case *big.Int:
		if kind = KindInt; v.BitLen() > 64 {
			kind = KindBigInt
		}
		ok = isBig && n.Cmp(v) == 0 && !isBool && !isFloat && !isText && isInt64 == v.IsInt64() && isInt == (v.BitLen() <= 64) &&
			(!isInt64 || n64 == v.Int64()) && (!isInt || new(big.Int).Abs(v).Uint64() == mag && (mag == 0 || neg == (v.Sign() < 0)))
	case float64:
		kind, ok = KindFloat, isFloat && math.Float64bits(f) == math.Float64bits(v) && !isBool && !isBig && !isText
	case []byte:
		kind, ok = KindText, isText && bytes.Equal(text, v) && !isBool && !isBig && !isFloat
	}
	if c.Kind != kind || !ok || (isInt || isInt64) && !isBig {
		t.Fatalf("cell %+v: bool %t %t, big %v %t, float %v %t, text %q %t, int64 %d %t, int %d %t %t, want kind %d, %v", c, b, isBool, n, isBig, f, isFloat, text, isText, n64, isInt64, mag, neg, isInt, kind, want.value)
	}
}

// TestCellsAgreeWithNaive draws filters, columns, rows of every content, and
// payloads that end too early or have a byte changed.
func TestCellsAgreeWithNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var filter etf.Term
		var e *Expr
		if rapid.Bool().Draw(t, "filtered") {
			var err error
			filter = drawFilter(t, allTypes, 3)
			if e, err = Parse(filter); err != nil {
				t.Skip(err) // drawn, but no filter: rapid draws another, and fails if that happens too often
			}
		}
		columns := rapid.SliceOfN(rapid.SampledFrom(names), 1, 5).Draw(t, "columns")
		m := NewMatcher(e, DefaultExtractors(), columns...)
		for range 4 {
			for encoding, payload := range map[byte][]byte{EncodingETF: etfRow(drawRow(t, rareETF)...), EncodingMsgpack: msgpackRow(drawRow(t, rarePacked)...)} {
				if rapid.IntRange(0, 3).Draw(t, "damage") == 0 {
					payload = payload[:rapid.IntRange(0, len(payload)).Draw(t, "cut")]
					if len(payload) > 0 {
						payload[rapid.IntRange(0, len(payload)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
					}
				}
				key := []byte(rapid.SampledFrom(keys).Draw(t, "key"))
				o := object(encoding, payload)
				want, row, wantErr := naiveColumns(filter, columns, key, payload, encoding)
				ok, err := m.Match(key, o)
				if ok != want || (err == nil) != (wantErr == nil) {
					t.Fatalf("filter %v, columns %q, object %q\nMatch: %t, %v\nwant: %t, %v", filter, columns, o, ok, err, want, wantErr)
				}
				for i, name := range columns {
					if cell, found := row[name]; ok {
						c := m.Cell(i)
						if c.Encoding != encoding {
							t.Fatalf("encoding %d, want %d", c.Encoding, encoding)
						}
						checkCell(t, c, cell, found)
					}
				}
			}
		}
	})
}

// TestEveryCell reads every value of the lists.
func TestEveryCell(t *testing.T) {
	m := NewMatcher(nil, DefaultExtractors(), "a", "b", "a")
	check := func(encoding byte, payload []byte, v raw, decode func([]byte) (any, error)) {
		t.Helper()
		value, wantErr := decode(v)
		ok, err := m.Match(nil, object(encoding, payload))
		if ok != (wantErr == nil) || (err == nil) != (wantErr == nil) {
			t.Fatalf("%q: %t, %v, want %v", v, ok, err, wantErr)
		}
		if !ok {
			return
		}
		want := naiveCell{value, v}
		checkCell(t, m.Cell(0), want, true)
		checkCell(t, m.Cell(2), want, true)
		checkCell(t, m.Cell(1), naiveCell{}, false)
	}
	for _, v := range rareETF {
		check(EncodingETF, etfRow(field{"x", int64(1)}, field{"a", v}), v, naiveTerm)
	}
	for _, v := range rarePacked {
		if v[0] == 0xc1 {
			continue
		}
		check(EncodingMsgpack, msgpackRow(field{"x", int64(1)}, field{"a", v}), v, func(b []byte) (any, error) { return naivePacked(b), nil })
	}
	if ok, err := m.Match(nil, object(EncodingRaw, nil)); ok || err != nil || m.Cell(0).Kind != KindMissing {
		t.Errorf("tombstone: %t, %v, %v", ok, err, m.Cell(0))
	}
}

// TestColumnsAreReadOfMatchesOnly: damage between the filter's fields and the
// columns is an error only of a row that passes.
func TestColumnsAreReadOfMatchesOnly(t *testing.T) {
	e, err := Parse(expr("=", typed("n", "sint64"), value1(int64(5))))
	if err != nil {
		t.Fatal(err)
	}
	m := NewMatcher(e, DefaultExtractors(), "a", "n")
	for n, wantErr := range map[int64]bool{5: true, 6: false} {
		for _, o := range [][]byte{
			object(EncodingETF, etfRow(field{"n", n}, field{"a", int64(1)})[:17]),
			object(EncodingMsgpack, msgpackRow(field{"n", n}, field{"a", int64(1)})[:4]),
		} {
			if ok, err := m.Match(nil, o); ok || (err != nil) != wantErr {
				t.Errorf("%d: %t, %v", n, ok, err)
			}
		}
	}
}

// TestCellsAliasTheObject: cells outlive the next Match, and cost nothing.
func TestCellsAliasTheObject(t *testing.T) {
	m := NewMatcher(nil, DefaultExtractors(), "a", "b", "missing")
	var cells []Cell
	for i := range 3 {
		row := []field{{"x", []string{"", "ab", "abcde"}[i]}, {"a", int64(i)}, {"b", "text"}}
		for _, o := range [][]byte{object(EncodingETF, etfRow(row...)), object(EncodingMsgpack, msgpackRow(row...))} {
			if ok, err := m.Match(nil, o); !ok || err != nil {
				t.Fatalf("%t, %v", ok, err)
			}
			cells = append(cells, m.Cell(0))
			if n := testing.AllocsPerRun(100, func() {
				m.Match(nil, o)
				c := m.Cell(1)
				c.Text()
				c.Int64()
				c.Float()
			}); n != 0 {
				t.Errorf("%v allocations", n)
			}
		}
	}
	var got []int64
	for _, c := range cells {
		n, _ := c.Int64()
		got = append(got, n)
		if cap(c.Bytes) != len(c.Bytes) {
			t.Errorf("cell %q can be appended to in place", c.Bytes)
		}
	}
	if !slices.Equal(got, []int64{0, 0, 1, 1, 2, 2}) {
		t.Errorf("cells hold %d", got)
	}
}

// TestTailOfTheList: a walk that a column makes go to the end of the row wants the list
// to end there, with a template and without.
func TestTailOfTheList(t *testing.T) {
	e, err := Parse(expr("=", typed("n", "sint64"), value1(int64(5))))
	if err != nil {
		t.Fatal(err)
	}
	row := etfRow(field{"a", int64(1)}, field{"b", int64(2)}, field{"n", int64(5)})
	whole, improper, cut := object(EncodingETF, row), object(EncodingETF, append(row[:len(row)-1:len(row)-1], 97, 7)), object(EncodingETF, row[:len(row)-1])
	for _, c := range []struct {
		columns []string
		bad     bool
	}{{nil, false}, {[]string{"a", "n"}, false}, {[]string{"n"}, false}, {[]string{"missing"}, true}, {[]string{"a", "missing"}, true}} {
		m := NewMatcher(e, DefaultExtractors(), c.columns...)
		for range 3 {
			for _, o := range [][]byte{whole, improper, whole, cut} {
				ok, err := m.Match(nil, o)
				if bad := c.bad && &o[0] != &whole[0]; ok == bad || (err != nil) != bad {
					t.Errorf("%q of %q: %t, %v", c.columns, o, ok, err)
				}
			}
		}
	}
}
