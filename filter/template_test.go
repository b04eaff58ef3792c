package filter

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// walker returns a matcher that never tries a template.
func walker(e *Expr, columns ...string) *Matcher {
	m := NewMatcher(e, DefaultExtractors(), columns...)
	m.guesses[EncodingETF].pause, m.guesses[EncodingMsgpack].pause = math.MaxInt, math.MaxInt
	return m
}

// report is all a matcher says of an object.
func report(m *Matcher, key, object []byte, columns int) string {
	ok, err := m.Match(key, object)
	s := fmt.Sprint(ok, " ", err)
	for i := range columns {
		if !ok {
			break
		}
		s += fmt.Sprintf(" %+v", m.Cell(i))
	}
	return s
}

// TestTemplatesProve teaches a matcher a row, and then shows it the row with every
// byte changed in several ways and cut after every byte: what it says, to the text
// of the error, is what one says that walks every row.
func TestTemplatesProve(t *testing.T) {
	fitted := 0
	rapid.Check(t, func(t *rapid.T) {
		var e *Expr
		if rapid.IntRange(0, 3).Draw(t, "filtered") > 0 {
			var err error
			if e, err = Parse(drawFilter(t, allTypes, 2)); err != nil {
				t.Skip(err) // drawn, but no filter: rapid draws another, and fails if that happens too often
			}
		}
		columns := rapid.SliceOfN(rapid.SampledFrom(names), 0, 3).Draw(t, "columns")
		warm, cold := NewMatcher(e, DefaultExtractors(), columns...), walker(e, columns...)
		encoding, payload := byte(EncodingETF), etfRow(drawRow(t, nil)...)
		if rapid.Bool().Draw(t, "msgpack") {
			encoding, payload = EncodingMsgpack, msgpackRow(drawRow(t, rarePacked[:14])...)
		}
		key := []byte("abc")
		original := object(encoding, payload)
		check := func(o []byte) {
			// The original back in front, and no pause, however many changes missed.
			warm.guesses[EncodingETF].credit, warm.guesses[EncodingMsgpack].credit = fullCredit, fullCredit
			warm.Match(key, original)
			if got, want := report(warm, key, o, len(columns)), report(cold, key, o, len(columns)); got != want {
				t.Fatalf("object %q\nof %q\ngives %s\nwant  %s", o, original, got, want)
			}
			if warm.row.template != nil {
				fitted++
			}
		}
		check(original)
		for i := range payload[:min(len(payload), 80)] {
			old := payload[i]
			for _, b := range []byte{old ^ 1, old ^ 2, old ^ 4, old ^ 8, old ^ 16, old ^ 32, old ^ 64, old ^ 128, 0, 255, old + 1, old - 1} {
				payload[i] = b
				check(object(encoding, payload))
			}
			payload[i] = old
			check(object(encoding, payload[:i]))
			check(object(encoding, append(slices.Clone(payload[:i]), payload[i+1:]...)))
		}
	})
	if fitted == 0 {
		t.Error("no row ever fitted a template")
	}
}

// TestTemplatesOfATable: rows of a few shapes, then of many, then of one again, all
// answered as by a walk; templates are used for the first and the last, and none of
// it allocates once it has begun.
func TestTemplatesOfATable(t *testing.T) {
	e, err := Parse(expr("<", typed("n", "sint64"), value1(int64(100))))
	if err != nil {
		t.Fatal(err)
	}
	for encoding, encode := range map[byte]func(...field) []byte{EncodingETF: etfRow, EncodingMsgpack: msgpackRow} {
		warm, cold := NewMatcher(e, DefaultExtractors(), "v"), walker(e, "v")
		fitted := 0
		pass := func(rows, shapes int) int {
			fitted = 0
			for i := range rows {
				text := bytes.Repeat([]byte("x"), i%shapes)
				o := object(encoding, encode(field{"time", int64(1<<40 + i)}, field{"v", string(text)}, field{"n", int64(i % 200)}, field{"last", true}))
				if got, want := report(warm, nil, o, 1), report(cold, nil, o, 1); got != want {
					t.Fatalf("%q: %s, want %s", o, got, want)
				}
				if warm.row.template != nil {
					fitted++
				}
			}
			return fitted
		}
		if n := pass(1000, 3); n < 400 { // rows that do not pass let go of everything but the template
			t.Errorf("encoding %d, 3 shapes: %d rows fitted", encoding, n)
		}
		if n := pass(3000, 30); n > 300 {
			t.Errorf("encoding %d, 30 shapes: %d rows fitted", encoding, n)
		}
		if n := pass(40000, 2); n < 30000 {
			t.Errorf("encoding %d, 2 shapes: %d rows fitted", encoding, n)
		}
		rows := [][]byte{}
		for i := range 30 {
			rows = append(rows, object(encoding, encode(field{"v", string(make([]byte, i))}, field{"n", int64(i)})))
		}
		if n := testing.AllocsPerRun(1000, func() {
			for _, o := range rows {
				warm.Match(nil, o)
			}
		}); n != 0 {
			t.Errorf("encoding %d: %v allocations", encoding, n)
		}
	}
}

// TestTemplateBounds: a row too large for one is walked, also where the bound
// falls into it.
func TestTemplateBounds(t *testing.T) {
	filter := expr("=", typed("z", "sint64"), value1(int64(5)))
	for _, fields := range []int{maxTemplateBlocks, 2 * maxTemplateBlocks, 3 * maxTemplateBlocks, 4 * maxTemplateBlocks, 12 * maxTemplateBlocks} {
		var row []field
		for i := range fields {
			row = append(row, field{fmt.Sprint("field", i), "some text"})
		}
		for _, last := range []field{{"z", int64(5)}, {"z", int64(6)}, {"y", int64(5)}} {
			for _, encoded := range [][]byte{object(EncodingETF, etfRow(append(row, last)...)), object(EncodingMsgpack, msgpackRow(append(row, last)...))} {
				m := matcher(t, filter)
				sameVerdict(t, m, filter, encoded)
				sameVerdict(t, m, filter, encoded)
			}
		}
	}
	large := object(EncodingETF, etfRow(field{"x", string(make([]byte, maxTemplateSize))}, field{"z", int64(5)}))
	m := matcher(t, filter)
	for range 3 {
		if ok, err := sameVerdict(t, m, filter, large); !ok || err != nil || m.row.template != nil {
			t.Errorf("%t, %v, template %v", ok, err, m.row.template)
		}
	}
}
