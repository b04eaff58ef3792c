package etftext

import (
	"bytes"
	"errors"
	"math/big"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"scanode/etf"
)

func TestFormat(t *testing.T) {
	fun := []byte("\x70\x00\x00\x00\x39\x00" + strings.Repeat("u", 16) + "\x00\x00\x00\x01\x00\x00\x00\x01" +
		"\x77\x01m" + "a\x05" + "a\x02" + "\x58\x77\x01niiiissss\x00\x00\x00\x01" + "b\x00\x00\x00\x07")
	for want, term := range map[string]etf.Term{
		"<a@h.1.2>":              etf.Pid{Node: "a@h", ID: 1, Serial: 2, Creation: 3},
		"#Port<a@h.7>":           etf.Port{Node: "a@h", ID: 7},
		"#Ref<a@h.3.2.1>":        etf.Ref{Node: "a@h", Len: 3, ID: [5]uint32{1, 2, 3}},
		"#Fun<m.5.2>":            etf.Opaque(fun),
		"#Record<3 bytes>":       etf.Opaque{etf.TagRecord, 0, 0},
		"#Local<1 bytes>":        etf.Opaque{etf.TagLocal},
		"#Fun<2 bytes>":          etf.Opaque{etf.TagNewFun, 0},
		"#Term<0 bytes>":         etf.Opaque{},
		"#Go<string>":            "text",
		"{ok,#Go<<nil>>}":        etf.Tuple{etf.Atom("ok"), nil},
		"5":                      5,
		"-36893488147419103232":  new(big.Int).Lsh(big.NewInt(-1), 65),
		"#{a => 1,b => [2|c]}":   etf.Map{{Key: etf.Atom("a"), Value: int64(1)}, {Key: etf.Atom("b"), Value: etf.Improper{Elems: etf.List{int64(2)}, Tail: etf.Atom("c")}}},
		"#Go<bad etf.Bitstring>": etf.Bitstring{},
	} {
		if got := Format(term); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	var deep etf.Term = etf.List(nil)
	for range 10000 {
		deep = etf.Tuple{deep}
	}
	if got := Format(deep); len(got) > 1000 || !strings.Contains(got, "...") {
		t.Errorf("%d bytes for a deep term", len(got))
	}
}

func TestFormatBytes(t *testing.T) {
	encode := func(term etf.Term) []byte {
		b, err := etf.AppendTerm(nil, term)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if got := FormatBytes(append([]byte{etf.Version}, encode(etf.Atom("a"))...)); got != "a" {
		t.Error(got)
	}
	if got := FormatBytes([]byte{etf.TagAtom}); !strings.HasPrefix(got, "#Error<") {
		t.Error(got)
	}
	many := make(etf.List, 1<<17)
	for i := range many {
		many[i] = int64(i)
	}
	if got := FormatBytes(encode(many)); !strings.HasPrefix(got, "#Term<") {
		t.Error(got[:100])
	}
	for name, term := range map[string]etf.Term{
		"list":   many[:10000],
		"text":   []byte(strings.Repeat("é", 100000)),
		"bytes":  make([]byte, 100000),
		"string": etf.List{many[60], []byte(strings.Repeat("日", 2000)), etf.Atom("end")},
		"bits":   etf.Bitstring{Bytes: make([]byte, 100000), Bits: 1},
		"maps":   etf.List{etf.Map{{Key: etf.Atom("k"), Value: many[:5000]}}},
	} {
		got := FormatBytes(encode(term))
		if len(got) > MaxBytes || len(got) < MaxBytes-10 || !strings.HasSuffix(got, "...") || !utf8.ValidString(got) {
			t.Errorf("%s: %d bytes, ends in %q", name, len(got), got[max(0, len(got)-10):])
		}
	}
}

// TestErrors: errors say where.
func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"{a,\n  B}":                          "2:3: a term was expected",
		"{a b}":                              "1:4: a comma or '}' was expected",
		"[1,2":                               "1:5: a comma or ']' was expected",
		"\"abc":                              "1:1: '\"' is never closed",
		"#{a => 1, a=>2}":                    "1:1: keys of the map",
		"{a,if}":                             "1:4: reserved word if",
		"a b":                                "1:3: text after the term",
		"<<\"日\">>":                          "1:3: character beyond Latin-1",
		"<<1:99999999>>":                     "1:5: size of a segment",
		"'" + strings.Repeat("a", 256) + "'": "1:1: ",
		strings.Repeat("[", 300):             "1:258: nested deeper than 256",
		strings.Repeat("#{a=>", 300):         "1:1283: nested deeper than 256",
	} {
		_, err := Parse(text)
		var e *Error
		if !errors.As(err, &e) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.20q: %v, want %s", text, err, want)
		}
	}
	ok := strings.Repeat("{", etf.MaxDepth) + "{}" + strings.Repeat("}", etf.MaxDepth)
	if term, err := Parse(ok); err != nil {
		t.Error(err)
	} else if _, err := etf.AppendTerm(nil, term); err != nil {
		t.Error(err)
	}
}

// literal draws a term that Parse can read.
func literal() *rapid.Generator[etf.Term] {
	text := rapid.OneOf(rapid.StringMatching(`[a-z][a-zA-Z0-9_@]{0,8}`), rapid.StringN(0, 20, -1))
	leaf := rapid.OneOf(
		rapid.Map(rapid.Int64(), func(v int64) etf.Term { return v }),
		rapid.Map(rapid.Float64(), func(v float64) etf.Term { return v }),
		rapid.Map(text, func(v string) etf.Term { return etf.Atom(v) }),
		rapid.Map(text, func(v string) etf.Term { return []byte(v) }),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(v []byte) etf.Term { return v }),
		rapid.Map(text, func(v string) etf.Term {
			var l etf.List
			for _, c := range v {
				l = append(l, int64(c))
			}
			return l
		}),
		rapid.Custom(func(t *rapid.T) etf.Term {
			bits := rapid.Uint8Range(1, 7).Draw(t, "bits")
			b := rapid.SliceOfN(rapid.Byte(), 1, 5).Draw(t, "bytes")
			b[len(b)-1] &= ^byte(0) << (8 - bits)
			return etf.Bitstring{Bytes: b, Bits: bits}
		}),
		rapid.Custom(func(t *rapid.T) etf.Term {
			v := new(big.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), 9, 40).Draw(t, "magnitude"))
			if v.IsInt64() {
				return v.Int64()
			}
			return v
		}),
	)
	return nested(leaf, 3)
}

func nested(leaf *rapid.Generator[etf.Term], depth int) *rapid.Generator[etf.Term] {
	if depth == 0 {
		return leaf
	}
	inner := nested(leaf, depth-1)
	several := rapid.SliceOfN(inner, 0, 4)
	return rapid.OneOf(leaf,
		rapid.Map(several, func(ts []etf.Term) etf.Term { return etf.Tuple(ts) }),
		rapid.Map(several, func(ts []etf.Term) etf.Term { return etf.List(ts) }),
		rapid.Custom(func(t *rapid.T) etf.Term {
			return etf.Improper{Elems: rapid.SliceOfN(inner, 1, 3).Draw(t, "elements"), Tail: etf.Atom("tail")}
		}),
		rapid.Custom(func(t *rapid.T) etf.Term {
			m := etf.Map{}
			for _, k := range several.Draw(t, "keys") {
				next := append(m[:len(m):len(m)], etf.Pair{Key: k, Value: inner.Draw(t, "value")})
				if _, err := etf.AppendTerm(nil, next); err == nil {
					m = next
				}
			}
			return m
		}))
}

// TestParseFormat: Parse(Format(t)) is t.
func TestParseFormat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		term := literal().Draw(t, "term")
		want, err := etf.AppendTerm(nil, term)
		if err != nil {
			t.Skip(err) // drawn, but no term that can be sent: two equal keys in a map
		}
		text := Format(term)
		again, err := Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got, err := etf.AppendTerm(nil, again); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%s: %x, want %x, %v", text, got, want, err)
		}
	})
}

// FuzzParse: what Parse reads, AppendTerm takes, and printed it is read again as
// the same term.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"{ok,[1.5,\"text\",'An atom',<<\"bytes\">>,<<1,2,5:3>>,#{key => [a|b]}]}", "16#ff", "fun a:b/1", "$\\x{e9}",
		"<<1:3,\"é\"/utf8>>", "[[1]|2] % x", "\"a\\\nb\"", strings.Repeat("[", 300), "#{1=>a,1.0=>b}.", "-1_0.5e-3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		term, err := Parse(s)
		if err != nil {
			return
		}
		b, err := etf.AppendTerm(nil, term)
		if err != nil {
			t.Fatalf("AppendTerm: %v", err)
		}
		text := Format(term)
		again, err := Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if c, err := etf.AppendTerm(nil, again); err != nil || !bytes.Equal(b, c) {
			t.Fatalf("%s: %x, then %x, %v", text, b, c, err)
		}
	})
}

// FuzzFormatBytes: the text is bounded and valid UTF-8 if the names are.
func FuzzFormatBytes(f *testing.F) {
	f.Add([]byte("\x68\x02\x77\x02ok\x6b\x00\x02ab"))
	f.Add([]byte("\x83\x6d\x00\x00\x00\x02\xc3\xa9"))
	f.Fuzz(func(t *testing.T, b []byte) {
		text := FormatBytes(b)
		if len(text) > MaxBytes {
			t.Fatalf("%d bytes", len(text))
		}
		if !utf8.ValidString(text) {
			t.Fatalf("%q", text)
		}
	})
}
