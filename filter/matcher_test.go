package filter

import (
	"fmt"
	"strings"
	"testing"

	"scanode/etf"
)

// matcher parses a filter that is known to be good.
func matcher(t testing.TB, filter etf.Term) *Matcher {
	t.Helper()
	e, err := Parse(filter)
	if err != nil {
		t.Fatal(err)
	}
	return NewMatcher(e, DefaultExtractors())
}

// TestMatchAllocatesNothing covers every type, NULL and missing fields, values
// that must be walked, and both outcomes.
func TestMatchAllocatesNothing(t *testing.T) {
	m := matcher(t, expr("or_",
		expr("and_",
			expr("=", typed("text", "varchar"), value1([]byte("no"))),
			expr("<", typed("int", "sint64"), typed("other", "sint64"))),
		expr("or_",
			expr("or_", expr("=", typed("bool", "boolean"), value1(etf.Atom("false"))), expr("=", typed("old", "double"), value1(1.0))),
			expr("and_",
				expr("!=", typed("text", "any"), value1([]byte("no"))),
				expr("=", typed("missing", "varchar"), value1(etf.List{}))))))
	row := func(f ...field) []field {
		return append([]field{{"text", "some text"}, {"int", int64(-5)}, {"other", null{}}, {"bool", true}}, f...)
	}
	for name, o := range map[string][]byte{
		"etf":       object(EncodingETF, etfRow(row(field{"map", rareETF[20]}, field{"old", raw("c5.00000000000000000000e+00\x00\x00\x00\x00\x00")})...)),
		"msgpack":   object(EncodingMsgpack, msgpackRow(row(field{"map", rarePacked[22]}, field{"old", 5.0})...)),
		"tombstone": object(EncodingRaw, nil),
	} {
		ok, err := m.Match(nil, o)
		if err != nil || ok != (name != "tombstone") {
			t.Errorf("%s: %t, %v", name, ok, err)
		}
		if n := testing.AllocsPerRun(100, func() { m.Match(nil, o) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// TestManyFields names more fields of one length than are compared in turn.
func TestManyFields(t *testing.T) {
	var row []field
	filter := expr("=", value1(int64(1)), value1(int64(1)))
	for i := range 100 {
		name := fmt.Sprintf("field%02d", i)
		row = append(row, field{name, int64(i)}, field{name, int64(-1)})
		if i%2 == 0 {
			filter = expr("and_", filter, expr("=", typed(name, "sint64"), value1(int64(i))))
		}
	}
	m := matcher(t, filter)
	for range 2 {
		for name, o := range map[string][]byte{"etf": object(EncodingETF, etfRow(row...)), "msgpack": object(EncodingMsgpack, msgpackRow(row...))} {
			if ok, err := m.Match(nil, o); !ok || err != nil {
				t.Errorf("%s: %t, %v", name, ok, err)
			}
			if n := testing.AllocsPerRun(10, func() { m.Match(nil, o) }); n != 0 {
				t.Errorf("%s: %v allocations", name, n)
			}
		}
	}
}

// TestNesting steps over values up to the bound and refuses deeper ones.
func TestNesting(t *testing.T) {
	m := matcher(t, expr("=", typed("n", "sint64"), value1(int64(5))))
	etfNest := func(n int) raw { return raw(strings.Repeat("\x68\x01", n) + "\x6a") }
	packedNest := func(n int) raw { return raw(strings.Repeat("\x91", n) + "\x90") }
	for _, c := range []struct {
		depth int
		ok    bool
	}{{1, true}, {200, true}, {300, false}, {100000, false}} {
		etfObject := object(EncodingETF, etfRow(field{"x", etfNest(c.depth)}, field{"n", int64(5)}))
		packedObject := object(EncodingMsgpack, msgpackRow(field{"x", packedNest(c.depth)}, field{"n", int64(5)}))
		for name, o := range map[string][]byte{"etf": etfObject, "msgpack": packedObject} {
			if ok, err := m.Match(nil, o); ok != c.ok || (err == nil) != c.ok {
				t.Errorf("%s, depth %d: %t, %v", name, c.depth, ok, err)
			}
		}
	}
}

// TestClaimedLengths feeds counts and lengths that reach far beyond the object.
func TestClaimedLengths(t *testing.T) {
	m := matcher(t, expr("=", typed("n", "sint64"), value1(int64(5))))
	for name, o := range map[string][]byte{
		"list":    object(EncodingETF, []byte{131, 108, 255, 255, 255, 255, 106}),
		"name":    object(EncodingETF, []byte{131, 108, 0, 0, 0, 1, 104, 2, 109, 255, 255, 255, 255, 'n'}),
		"binary":  object(EncodingETF, []byte{131, 108, 0, 0, 0, 1, 104, 2, 109, 0, 0, 0, 1, 'n', 109, 255, 255, 255, 255}),
		"inner":   object(EncodingETF, []byte{131, 108, 0, 0, 0, 1, 104, 2, 109, 0, 0, 0, 1, 'x', 108, 255, 255, 255, 255, 106}),
		"large":   object(EncodingETF, []byte{131, 108, 0, 0, 0, 1, 105, 0, 0, 0, 2}),
		"map":     object(EncodingMsgpack, []byte{0xdf, 255, 255, 255, 255}),
		"str":     object(EncodingMsgpack, []byte{0x81, 0xdb, 255, 255, 255, 255, 'n'}),
		"str cut": object(EncodingMsgpack, []byte{0x81, 0xdb, 0}),
		"value":   object(EncodingMsgpack, []byte{0x81, 0xa1, 'n', 0xc6, 255, 255, 255, 255}),
		"ext":     object(EncodingMsgpack, []byte{0x81, 0xa1, 'x', 0xc9, 255, 255, 255, 255}),
		"array":   object(EncodingMsgpack, []byte{0x81, 0xa1, 'x', 0xdd, 255, 255, 255, 255, 0x90}),
	} {
		if ok, err := m.Match(nil, o); ok || err == nil {
			t.Errorf("%s: %t, %v", name, ok, err)
		}
	}
}

// TestRowErrors pins the texts of MessagePack rows; docs/filters.md has those of
// external terms.
func TestRowErrors(t *testing.T) {
	m := matcher(t, expr("=", typed("n", "timestamp"), value1(int64(5))))
	for _, c := range []struct {
		value any
		want  string
	}{
		{"abc", `text <<"abc">>`},
		{int64(-5), "integer -5"},
		{int64(-1<<31 - 1), "integer -2147483649"},
		{1.5, "float 1.5"},
		{raw{0xc0}, "nil"},
		{raw{0x91, 1}, "an array"},
		{raw{0x81, 1, 1}, "a map"},
		{raw{0xd4, 1, 1}, "an ext value"},
	} {
		_, err := m.Match(nil, object(EncodingMsgpack, msgpackRow(field{"n", c.value})))
		if want := `field <<"n">>: want timestamp, found ` + c.want; err == nil || err.Error() != want {
			t.Errorf("%v: %v, want %s", c.value, err, want)
		}
	}
	for want, o := range map[string][]byte{
		"row is no map: an array":                                            object(EncodingMsgpack, []byte{0x90}),
		"row is empty, want a map":                                           object(EncodingMsgpack, nil),
		"name of field 1 of the row is no str: integer 7":                    object(EncodingMsgpack, []byte{0x81, 7, 7}),
		"row ends inside field 1":                                            object(EncodingMsgpack, []byte{0x81}),
		"row is a compressed term, want a list of {Name, Value}":             object(EncodingETF, []byte{131, 80, 0, 0, 0, 9}),
		"value of encoding 1 is no row; rows have encoding 0 or 2":           object(EncodingRaw, []byte("x")),
		"riak object of version 0, want version 1":                           {131, 104, 2},
		"riak object of version 2, want version 1":                           {53, 2, 0, 0},
		"riak object with 2 siblings, want 1":                                {53, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0},
		"riak object ends inside its value: 1 of 2 bytes":                    {53, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0},
		"riak object with an empty value: no encoding byte":                  {53, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0},
		"riak object ends inside its header: 14 bytes, vclock of 4294967295": {53, 1, 255, 255, 255, 255, 0, 0, 0, 1, 0, 0, 0, 0},
		"not a riak object: 0 bytes, beginning <<>>":                         {},
	} {
		if _, err := m.Match(nil, o); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestRowsDoNotInfluenceEachOther matches rows that begin alike in all orders:
// what one row taught about the next must not make a broken one pass.
func TestRowsDoNotInfluenceEachOther(t *testing.T) {
	filter := expr("=", typed("n", "sint64"), value1(int64(5)))
	var objects [][]byte
	for _, row := range []string{
		"h\x02m\x00\x00\x00\x01na\x05", "i\x00\x00\x00\x02m\x00\x00\x00\x01na\x05", // whole
		"\x00\x02m\x00\x00\x00\x01na\x05", "\x00\x00\x00\x00\x00\x00\x00na\x05", "h\x02m\x00\x00\x00\x02na\x05",
		"h\x02m\x00\x00\x00\x01nm\x00\x00\x00\x01a", "h\x02m\x00\x00\x00\x01nm\x00\x00\x00\x02a", "h\x02m\x00\x00\x00\x01n\x00\x05", "",
	} {
		objects = append(objects, object(EncodingETF, []byte("\x83l\x00\x00\x00\x01"+row)))
	}
	for _, row := range []string{"\xa1n\x05", "\xd9\x01n\x05", "\xa1n\xd0\x05", "\xa2n\x05", "\x01n\x05", "\x00\x05", "\xa1n\x91\x05", "\xa1n\xc1", ""} {
		objects = append(objects, object(EncodingMsgpack, []byte("\x81"+row)))
	}
	m := matcher(t, filter)
	for _, first := range objects {
		for _, second := range objects {
			sameVerdict(t, m, filter, first)
			sameVerdict(t, m, filter, second)
		}
	}
}

// TestExtractorsAreOptional reads only the encodings it was given.
func TestExtractorsAreOptional(t *testing.T) {
	e, err := Parse(expr("=", typed("n", "sint64"), value1(int64(5))))
	if err != nil {
		t.Fatal(err)
	}
	m := NewMatcher(e, Extractors{EncodingETF: DefaultExtractors()[EncodingETF]})
	if ok, err := m.Match(nil, object(EncodingETF, etfRow(field{"n", int64(5)}))); !ok || err != nil {
		t.Errorf("%t, %v", ok, err)
	}
	if _, err := m.Match(nil, object(EncodingMsgpack, msgpackRow(field{"n", int64(5)}))); err == nil {
		t.Error("an encoding without extractor was read")
	}
}
