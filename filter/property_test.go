package filter

import (
	"errors"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"scanode/etf"
)

// names are the fields rows and filters are drawn from: equal lengths, a prefix,
// the empty one, some that differ behind the first eight bytes, some of more than
// longName.
var names = []string{"a", "b", "ab", "time", "timf", "", "a\x00b", "nine byte", "nine byt2",
	"a name of more than sixty-three bytes, to reach the list of the long ones",
	"a name of more than sixty-three bytes, to reach the list of the long ones 2"}

// keys are those rows are stored under.
var keys = []string{"", "a", "abc", "abd", "b", "\xff\x00"}

// common draws a value both encodings hold.
func common(t *rapid.T) any {
	switch rapid.IntRange(0, 6).Draw(t, "kind") {
	case 0:
		return null{}
	case 1:
		return rapid.SampledFrom([]int64{0, 1, 2, 5, 127, 128, 255, 256, -1, -5, -32, -33, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64, 1 << 53, 1<<53 + 1}).Draw(t, "int")
	case 2:
		return rapid.SampledFrom([]uint64{5, 1<<63 - 1, 1 << 63, math.MaxUint64}).Draw(t, "uint")
	case 3:
		return rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1, -1, 5, 1.5, 1 << 53, 1 << 63, -1 << 63, 1 << 64, 1e300, math.NaN(), math.Inf(1), math.Inf(-1)}).Draw(t, "float")
	case 4:
		return rapid.Bool().Draw(t, "bool")
	case 5:
		return rapid.SampledFrom([]string{"", "a", "abc", "5", "\x00", "\x6a", "\x61\x05", "a text of more than thirty-one bytes"}).Draw(t, "text")
	}
	return rapid.Int64().Draw(t, "any int")
}

// rareETF are terms of every kind that a row may hold.
var rareETF = []raw{
	{104, 0}, {107, 0, 3, 1, 2, 3}, {107, 0, 0}, {108, 0, 0, 0, 0, 106}, {108, 0, 0, 0, 1, 97, 1, 97, 2},
	{100, 0, 4, 't', 'r', 'u', 'e'}, {118, 0, 5, 'f', 'a', 'l', 's', 'e'}, {115, 4, 't', 'r', 'u', 'e'}, {119, 4, 'n', 'u', 'l', 'l'}, {119, 1, 0xff},
	{110, 0, 0}, {110, 0, 1}, {110, 2, 1, 5, 0}, {110, 9, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0}, {110, 9, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1}, {110, 8, 1, 0, 0, 0, 0, 0, 0, 0, 0x80}, {110, 8, 1, 1, 0, 0, 0, 0, 0, 0, 0x80},
	{111, 0, 0, 0, 2, 0, 5, 0}, {111, 0, 0, 0, 0, 1}, {77, 0, 0, 0, 1, 3, 0xa0}, {116, 0, 0, 0, 1, 97, 1, 106}, {116, 0, 0, 0, 0},
	raw("c5.00000000000000000000e+00\x00\x00\x00\x00\x00"), raw("cnot a number, 31 bytes of text."),
	raw("\x58w\x01n\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x03"), raw("qw\x01mw\x01fa\x02"),
}

// rarePacked are MessagePack values of every kind.
var rarePacked = []raw{
	{0xc0}, {0xcc, 5}, {0xcd, 0, 5}, {0xce, 0, 0, 0, 5}, {0xcf, 0, 0, 0, 0, 0, 0, 0, 5}, {0xd0, 0xfb}, {0xd1, 0xff, 0xfb}, {0xd2, 0xff, 0xff, 0xff, 0xfb}, {0xd3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfb},
	{0xca, 0x40, 0xa0, 0, 0}, {0xca, 0x7f, 0xc0, 0, 0}, {0xd9, 3, 'a', 'b', 'c'}, {0xda, 0, 0}, {0xdb, 0, 0, 0, 1, 'a'}, {0xc4, 3, 'a', 'b', 'c'}, {0xc5, 0, 1, 'a'}, {0xc6, 0, 0, 0, 0},
	{0x91, 1}, {0xdc, 0, 0}, {0xdd, 0, 0, 0, 0}, {0xdc, 0, 1, 0x90}, {0x80}, {0x81, 0xa1, 'k', 1}, {0xde, 0, 0}, {0xdf, 0, 0, 0, 1, 1, 2},
	{0xd4, 1, 7}, {0xd8, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {0xc7, 2, 1, 7, 8}, {0xc8, 0, 1, 1, 7}, {0xc9, 0, 0, 0, 0, 1}, {0xc1},
}

// drawRow draws fields, some of one name; rare are values of one encoding.
func drawRow(t *rapid.T, rare []raw) []field {
	fields := make([]field, rapid.IntRange(0, 20).Draw(t, "fields"))
	for i := range fields {
		fields[i].name = rapid.SampledFrom(names).Draw(t, "name")
		fields[i].value = common(t)
		if len(rare) > 0 && rapid.IntRange(0, 2).Draw(t, "rare") == 0 {
			fields[i].value = rapid.SampledFrom(rare).Draw(t, "value")
		}
	}
	return fields
}

// drawFilter draws a filter, mostly one Parse accepts. Types come from types.
func drawFilter(t *rapid.T, types []string, depth int) etf.Term {
	if depth > 0 && rapid.IntRange(0, 3).Draw(t, "not") == 0 {
		return etf.Tuple{etf.Atom("not_"), drawFilter(t, types, depth-1)}
	}
	if depth > 0 && rapid.IntRange(0, 2).Draw(t, "tree") > 0 {
		op := rapid.SampledFrom([]string{"and_", "and", "or_", "or"}).Draw(t, "op")
		return expr(op, drawFilter(t, types, depth-1), drawFilter(t, types, depth-1))
	}
	switch rapid.IntRange(0, 3).Draw(t, "test") {
	case 0:
		return drawPredicate(t, types)
	case 1:
		return drawKeyTest(t)
	}
	typ := rapid.SampledFrom(types).Draw(t, "type")
	ops := []string{"=", "==", "!="}
	if typ == "sint64" || typ == "timestamp" || typ == "double" {
		ops = append(ops, "<", ">", "<=", "=<", ">=")
	}
	op := rapid.SampledFrom(ops).Draw(t, "op")
	a := drawField(t, typ)
	b := drawConstant(t, typ)
	if rapid.IntRange(0, 3).Draw(t, "second") == 0 {
		b = drawField(t, typ)
	}
	if rapid.Bool().Draw(t, "swap") {
		a, b = b, a
	}
	return expr(op, a, b)
}

// drawPredicate draws one of the tests eleveldb does not have.
func drawPredicate(t *rapid.T, types []string) etf.Term {
	typ := rapid.SampledFrom(types).Draw(t, "type")
	f := drawField(t, typ)
	if rapid.IntRange(0, 5).Draw(t, "constant") == 0 {
		f = drawConstant(t, typ)
	}
	switch op := rapid.SampledFrom([]string{"is_null", "in", "between", "prefix", "match"}).Draw(t, "op"); op {
	case "is_null":
		return etf.Tuple{etf.Atom(op), f}
	case "between":
		return etf.Tuple{etf.Atom(op), f, drawConstant(t, typ), drawConstant(t, typ)}
	case "in":
		return expr(op, f, drawList(t, func() etf.Term { return drawConstant(t, typ) }))
	default:
		return expr(op, f, drawPattern(t))
	}
}

// drawKeyTest draws a test of the key.
func drawKeyTest(t *rapid.T) etf.Term {
	constant := func() etf.Term { return value1([]byte(rapid.SampledFrom(keys).Draw(t, "const"))) }
	key := etf.Atom("key")
	switch op := rapid.SampledFrom([]string{"=", "==", "!=", "<", ">", "<=", "=<", ">=", "in", "between", "prefix", "match"}).Draw(t, "op"); op {
	case "in":
		return expr(op, key, drawList(t, constant))
	case "between":
		return etf.Tuple{etf.Atom(op), key, constant(), constant()}
	case "prefix", "match":
		return expr(op, key, drawPattern(t))
	default:
		if rapid.Bool().Draw(t, "swap") {
			return expr(op, constant(), key)
		}
		return expr(op, key, constant())
	}
}

// drawList draws lists on both sides of maxLinear.
func drawList(t *rapid.T, constant func() etf.Term) etf.List {
	l := etf.List{}
	for range rapid.SampledFrom([]int{0, 1, 3, 12}).Draw(t, "constants") {
		l = append(l, constant())
	}
	return l
}

func drawPattern(t *rapid.T) etf.Term {
	return value1(rapid.SampledFrom([]etf.Term{[]byte{}, []byte("a"), []byte("^a?b"), []byte("c$"), []byte("[^a-z]"), []byte("(?i)A.C"), []byte("(ab|abc){1,3}"), []byte("\\bm"), []byte("("), etf.List{}}).Draw(t, "pattern"))
}

func drawField(t *rapid.T, typ string) etf.Term {
	name := rapid.SampledFrom(names).Draw(t, "name")
	if rapid.IntRange(0, 7).Draw(t, "untyped") == 0 {
		return etf.Tuple{etf.Atom("field"), []byte(name)}
	}
	return typed(name, typ)
}

func drawConstant(t *rapid.T, typ string) etf.Term {
	bools := []etf.Term{etf.Atom("true"), etf.Atom("false"), int64(0), int64(1), 1.0}
	switch typ {
	case "boolean":
		return value1(rapid.SampledFrom(append(bools, int64(255))).Draw(t, "const"))
	case "sint64":
		return value1(rapid.SampledFrom(append(bools, int64(5), int64(-5), int64(math.MinInt64), int64(math.MaxInt64))).Draw(t, "const"))
	case "timestamp":
		return value1(rapid.SampledFrom(append(bools, int64(5), new(big.Int).SetUint64(math.MaxUint64), new(big.Int).SetUint64(1<<63))).Draw(t, "const"))
	case "double":
		return value1(rapid.SampledFrom(append(bools, 1.5, 1e300, int64(-5), int64(1<<53+1), new(big.Int).SetUint64(math.MaxUint64))).Draw(t, "const"))
	}
	return value1(rapid.SampledFrom([]etf.Term{etf.List{}, []byte{}, []byte("a"), []byte("abc"), []byte("\x61\x05"), []byte("\x05"), []byte("\x6a"), []byte("\x90")}).Draw(t, "const"))
}

var allTypes = []string{"varchar", "sint64", "timestamp", "double", "boolean", "any"}

// sameVerdict compares Match with the second opinion and returns Match's answer.
func sameVerdict(t interface {
	Fatalf(string, ...any)
}, m *Matcher, filter etf.Term, object []byte) (bool, error) {
	// The key is drawn from the object, so that there are several.
	var key []byte
	if n := len(object); n > 0 {
		key = []byte(keys[int(object[n/2])%len(keys)])
	}
	return sameVerdictAt(t, m, filter, key, object)
}

// sameVerdictAt is sameVerdict of an object with a given key.
func sameVerdictAt(t interface {
	Fatalf(string, ...any)
}, m *Matcher, filter etf.Term, key, object []byte) (bool, error) {
	got, err := m.Match(key, object)
	want, wantErr := naiveMatch(filter, key, object)
	if got != want || (err == nil) != (wantErr == nil) {
		t.Fatalf("filter %v\nobject %q\nMatch: %t, %v\nwant: %t, %v", filter, object, got, err, want, wantErr)
	}
	if rowErr := (*RowError)(nil); err != nil && (!errors.As(err, &rowErr) || rowErr.Msg == "") {
		t.Fatalf("error %#v is no *RowError with a text", err)
	}
	return got, err
}

// TestEveryValueUnderEveryType puts each value of the lists under each type and
// compares it for equality with constants around zero and at the bounds.
func TestEveryValueUnderEveryType(t *testing.T) {
	constants := []etf.Term{int64(0), int64(1), int64(5), int64(-5), int64(math.MaxInt64), int64(math.MinInt64),
		new(big.Int).SetUint64(1 << 63), new(big.Int).SetUint64(math.MaxUint64), 5.0, []byte("abc"), []byte{}, etf.List{}}
	for _, typ := range allTypes {
		for _, k := range constants {
			filter := expr("=", typed("a", typ), value1(k))
			e, err := Parse(filter)
			if err != nil {
				continue
			}
			m := NewMatcher(e, DefaultExtractors())
			for _, v := range rareETF {
				sameVerdict(t, m, filter, object(EncodingETF, etfRow(field{"a", v})))
			}
			for _, v := range rarePacked {
				sameVerdict(t, m, filter, object(EncodingMsgpack, msgpackRow(field{"a", v})))
			}
		}
	}
}

// TestMatchAgreesWithNaive draws filters and whole rows of every content.
func TestMatchAgreesWithNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		filter := drawFilter(t, allTypes, 4)
		e, err := Parse(filter)
		if err != nil {
			t.Skip(err) // drawn, but no filter: rapid draws another, and fails if that happens too often
		}
		m := NewMatcher(e, DefaultExtractors())
		for range 4 {
			sameVerdict(t, m, filter, object(EncodingETF, etfRow(drawRow(t, rareETF)...)))
			sameVerdict(t, m, filter, object(EncodingMsgpack, msgpackRow(drawRow(t, rarePacked)...)))
		}
	})
}

// TestEncodingsAgree matches the same row in both encodings: where no type looks
// at encoded bytes, the answers are the same.
func TestEncodingsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		filter := drawFilter(t, allTypes[:5], 4)
		e, err := Parse(filter)
		if err != nil {
			t.Skip(err) // drawn, but no filter: rapid draws another, and fails if that happens too often
		}
		m := NewMatcher(e, DefaultExtractors())
		row := drawRow(t, nil)
		key := []byte(rapid.SampledFrom(keys).Draw(t, "key"))
		a, aErr := sameVerdictAt(t, m, filter, key, object(EncodingETF, etfRow(row...)))
		b, bErr := sameVerdictAt(t, m, filter, key, object(EncodingMsgpack, msgpackRow(row...)))
		if a != b || (aErr == nil) != (bErr == nil) {
			t.Fatalf("filter %v, row %v: ETF %t, %v; msgpack %t, %v", filter, row, a, aErr, b, bErr)
		}
	})
}

// TestBrokenObjects cuts and changes objects: what the second opinion still reads
// up to the needed fields is answered the same, everything else is an error. A
// matcher that has met a broken row answers the next one as a new one does.
func TestBrokenObjects(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		filter := drawFilter(t, allTypes, 3)
		e, err := Parse(filter)
		if err != nil {
			t.Skip(err) // drawn, but no filter: rapid draws another, and fails if that happens too often
		}
		m := NewMatcher(e, DefaultExtractors())
		good := object(EncodingETF, etfRow(drawRow(t, rareETF)...))
		if rapid.Bool().Draw(t, "msgpack") {
			good = object(EncodingMsgpack, msgpackRow(drawRow(t, rarePacked)...))
		}
		bad := append([]byte(nil), good...)
		if rapid.Bool().Draw(t, "payload only") {
			// Cut inside the payload but keep the header true, and put the rest
			// of the old bytes behind the end, where a reader must not look.
			o, err := ParseObject(bad)
			if err != nil {
				t.Fatal(err)
			}
			n := rapid.IntRange(0, len(o.Payload)).Draw(t, "cut")
			bad = object(o.Encoding, o.Payload[:n])
			bad = append(bad[:len(bad)-28], o.Payload[n:]...)
		} else {
			bad = bad[:rapid.IntRange(0, len(bad)).Draw(t, "cut")]
		}
		for range rapid.IntRange(0, 3).Draw(t, "changes") {
			if len(bad) > 0 {
				bad[rapid.IntRange(0, len(bad)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
			}
		}
		sameVerdict(t, m, filter, bad)
		sameVerdict(t, m, filter, good)
	})
}
