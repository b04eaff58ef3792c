package scan

import (
	"encoding/binary"
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"

	"scanode/etf"
	"scanode/etf/etftext"
	"scanode/filter"
	"scanode/msgpack"
)

// object is a riak object of one sibling.
func object(encoding byte, payload []byte) string {
	b := []byte{53, 1, 0, 0, 0, 0, 0, 0, 0, 1}
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)+1))
	return string(append(append(b, encoding), payload...))
}

// field is a cell and how both encodings write it. want is the Erlang text of
// what is sent; empty means that the cell must not cross.
type field struct {
	name string
	ttb  etf.Term // nil: only in MessagePack
	raw  []byte   // encoded term instead of ttb
	mp   []byte   // nil: only in ETF
	want string
}

var fields = []field{
	{name: "i", ttb: int64(7), mp: []byte{7}, want: "7"},
	{name: "neg", ttb: int64(-70000), mp: msgpack.AppendInt64(nil, -70000), want: "-70000"},
	{name: "u64", ttb: new(big.Int).SetUint64(math.MaxUint64), mp: msgpack.AppendUint64(nil, math.MaxUint64), want: "18446744073709551615"},
	{name: "huge", ttb: new(big.Int).Lsh(big.NewInt(1), 100), want: "1267650600228229401496703205376"},
	{name: "f", ttb: 1.5, mp: msgpack.AppendFloat64(nil, 1.5), want: "1.5"},
	{name: "f32", ttb: 0.25, mp: []byte{0xca, 0x3e, 0x80, 0, 0}, want: "0.25"},
	{name: "t", ttb: etf.Atom("true"), mp: []byte{0xc3}, want: "true"},
	{name: "oldatom", raw: []byte{100, 0, 5, 'f', 'a', 'l', 's', 'e'}, mp: []byte{0xc2}, want: "false"},
	{name: "s", ttb: []byte("text"), mp: msgpack.AppendStr(nil, []byte("text")), want: `<<"text">>`},
	{name: "bin", ttb: []byte{0, 255}, mp: msgpack.AppendBytes(nil, []byte{0, 255}), want: `<<0,255>>`},
	{name: "empty", ttb: []byte{}, mp: []byte{0xa0}, want: `<<>>`},
	{name: "null", ttb: etf.List{}, mp: []byte{0x90}, want: "[]"},
	{name: "nil", mp: []byte{0xc0}, want: "[]"},
	{name: "string", raw: []byte{107, 0, 2, 1, 2}, mp: []byte{0x92, 1, 2}, want: "[1,2]"},
	{name: "nested", ttb: etf.List{etf.Tuple{[]byte("a"), int64(1)}}, mp: []byte{0x81, 0xa1, 'a', 1}, want: `[{<<"a">>,1}]`},
	{name: "oldfloat", raw: append([]byte{99}, append([]byte("1.25000000000000000000e+00"), make([]byte, 5)...)...), want: "1.25"},
	{name: "map", ttb: etf.Map{{Key: int64(1), Value: []byte("x")}}, want: `#{1 => <<"x">>}`},
	{name: "", ttb: int64(1), mp: []byte{1}, want: "1"},

	{name: "atom", ttb: etf.Atom("undefined")},
	{name: "pid", ttb: etf.Pid{Node: "a@b", ID: 1}},
	{name: "ref", ttb: etf.Ref{Node: "a@b", Len: 1}},
	{name: "fun", ttb: etf.Export{Module: "m", Function: "f"}},
	{name: "deepatom", ttb: etf.List{etf.Tuple{int64(1), etf.Atom("x")}}},
	{name: "nan", raw: binary.BigEndian.AppendUint64([]byte{70}, math.Float64bits(math.NaN())), mp: msgpack.AppendFloat64(nil, math.NaN())},
	{name: "inf", raw: binary.BigEndian.AppendUint64([]byte{70}, math.Float64bits(math.Inf(1))), mp: []byte{0xca, 0x7f, 0x80, 0, 0}},
	{name: "deepnan", raw: append([]byte{104, 1}, binary.BigEndian.AppendUint64([]byte{70}, math.Float64bits(math.NaN()))...)},
	{name: "badatom", raw: []byte{119, 1, 0xff}},
	{name: "twice", raw: []byte{116, 0, 0, 0, 2, 97, 1, 97, 1, 97, 1, 97, 2}},
	{name: "ext", mp: []byte{0xd4, 1, 1}},
	{name: "deepext", mp: []byte{0x91, 0xd4, 1, 1}},
}

// rowOf makes an object of fields in one encoding; ok is false if one of them does
// not exist in it.
func rowOf(t *testing.T, encoding byte, fields []field) (value string, ok bool) {
	t.Helper()
	if encoding == filter.EncodingMsgpack {
		b := msgpack.AppendMapHeader(nil, len(fields))
		for _, f := range fields {
			if f.mp == nil {
				return "", false
			}
			b = append(msgpack.AppendStr(b, []byte(f.name)), f.mp...)
		}
		return object(encoding, b), true
	}
	b := etf.AppendListHeader(etf.AppendVersion(nil), len(fields))
	for _, f := range fields {
		if f.ttb == nil && f.raw == nil {
			return "", false
		}
		b = etf.AppendBinary(etf.AppendTupleHeader(b, 2), []byte(f.name))
		if f.raw != nil {
			b = append(b, f.raw...)
			continue
		}
		var err error
		if b, err = etf.AppendTerm(b, f.ttb); err != nil {
			t.Fatal(err)
		}
	}
	return object(encoding, etf.AppendNil(b)), true
}

// scanOne scans one row and returns its text; err is the scan's.
func scanOne(t *testing.T, value string, form Form) (text string, err error) {
	t.Helper()
	s := &sink{t: t, w: NewWindow(1 << 20)}
	_, err = Run(&rows{kvs: [][2]string{{"k", value}}}, Request{Ranges: everything, Form: form, MaxBatchBytes: 1}, s.w, s)
	for _, batch := range s.batches {
		text = etftext.Format(batch[0])
	}
	return text, err
}

// TestForms sends every cell in every form and encoding, alone and among others.
func TestForms(t *testing.T) {
	plain := field{name: "p", ttb: int64(1), mp: []byte{1}, want: "1"}
	for _, encoding := range []byte{filter.EncodingETF, filter.EncodingMsgpack} {
		for _, f := range fields {
			value, ok := rowOf(t, encoding, []field{plain, f, plain})
			if !ok {
				continue
			}
			name := etftext.Format([]byte(f.name))
			for _, c := range []struct {
				form Form
				want string
			}{
				{Form{Kind: Cells}, "[1," + f.want + ",1]"},
				{Form{Kind: Cells, WithKeys: true}, `{<<"k">>,[1,` + f.want + ",1]}"},
				{Form{Kind: Terms}, `[{<<"p">>,1},{` + name + "," + f.want + `},{<<"p">>,1}]`},
				{Form{Kind: Select, Columns: []string{f.name, "none", "p", f.name}}, "[" + f.want + ",[],1," + f.want + "]"},
				{Form{Kind: Select, Columns: []string{f.name}, WithKeys: true}, `{<<"k">>,[` + f.want + "]}"},
			} {
				got, err := scanOne(t, value, c.form)
				if f.want == "" {
					var row *RowError
					if !errors.Is(err, ErrForeign) || !errors.As(err, &row) || !strings.Contains(err.Error(), f.name) || got != "" {
						t.Errorf("encoding %d, %s, form %+v: %s, %v", encoding, f.name, c.form, got, err)
					}
					c.form.SkipForeign = true
					if got, err := scanOne(t, value, c.form); err != nil || got != "" {
						t.Errorf("encoding %d, %s, skipping: %s, %v", encoding, f.name, got, err)
					}
				} else if err != nil || got != c.want {
					t.Errorf("encoding %d, %s, form %+v: %s, %v, want %s", encoding, f.name, c.form, got, err, c.want)
				}
			}
			// Columns that are not asked for may hold anything.
			if got, err := scanOne(t, value, Form{Kind: Select, Columns: []string{"p"}}); err != nil || got != "[1]" && f.name != "p" {
				t.Errorf("encoding %d, beside %s: %s, %v", encoding, f.name, got, err)
			}
		}
	}
}

func TestFormsOfOddRows(t *testing.T) {
	cells := Form{Kind: Cells}
	for _, c := range []struct {
		value string
		want  string // empty: not sent
		bad   bool
	}{
		{value: object(filter.EncodingRaw, nil)},
		{value: object(filter.EncodingRaw, []byte("x")), bad: true},
		{value: object(9, nil), bad: true},
		{value: "no object", bad: true},
		{value: object(filter.EncodingMsgpack, []byte{0x80}), want: "[]"},
		{value: object(filter.EncodingMsgpack, []byte{0x81, 0xa1}), bad: true},
		{value: object(filter.EncodingMsgpack, []byte{0x81, 1, 1}), bad: true},
		{value: object(filter.EncodingMsgpack, []byte{0x91, 1}), bad: true},
		{value: object(filter.EncodingETF, []byte{131, 106}), bad: true},
		{value: object(filter.EncodingETF, []byte{131, 108, 0, 0, 0, 0, 106}), want: "[]"},
		{value: object(filter.EncodingETF, []byte{131, 80, 0, 0}), bad: true},
		{value: object(filter.EncodingETF, []byte{131, 108, 0, 0, 0, 1, 97, 1, 106}), bad: true},
		{value: object(filter.EncodingETF, []byte{131, 108, 0, 0, 0, 1, 104, 2, 109, 0, 0, 0, 1, 'a', 97, 1, 106}), want: "[1]"},
		{value: object(filter.EncodingETF, []byte{131, 108, 0, 0, 0, 1, 104, 2, 109, 0, 0, 0, 1, 'a', 97, 1, 97, 2}), bad: true},
		{value: object(filter.EncodingETF, []byte{131, 108, 0, 0, 0, 1, 104, 2, 109, 0, 0, 0, 1, 'a', 97, 1}), bad: true},
		{value: object(filter.EncodingETF, []byte{131, 108, 255, 255, 255, 255}), bad: true},
		{value: object(filter.EncodingETF, nil), bad: true},
	} {
		got, err := scanOne(t, c.value, cells)
		var row *RowError
		if got != c.want || c.bad != errors.As(err, &row) {
			t.Errorf("%q: %s, %v", c.value, got, err)
		}
	}
}

// newRow and appendRow do what a scan without a filter does for one row.
func newRow(form Form) *runner {
	r := &runner{req: Request{Form: form}}
	r.matcher = r.newMatcher()
	r.form = newForm(form, r.matcher)
	return r
}

func appendRow(r *runner, b *batch, key, value []byte) (bool, error) {
	if r.matcher != nil {
		if match, err := r.matcher.Match(key, value); !match || err != nil {
			return false, err
		}
	}
	return r.form.append(b, key, value)
}

// FuzzForms claims: whatever is stored, a row that is sent is a term that the
// BEAM accepts and that holds nothing foreign, and Select sends what Cells has.
func FuzzForms(f *testing.F) {
	for _, encoding := range []byte{filter.EncodingETF, filter.EncodingMsgpack} {
		f.Add(encoding, []byte{131, 108, 0, 0, 0, 1, 104, 2, 109, 0, 0, 0, 1, 'a', 97, 1, 106})
		f.Add(encoding, []byte{0x82, 0xa1, 'a', 1, 0xa1, 'b', 0x92, 0xc0, 0x81, 0xa0, 0xcb, 0, 0, 0, 0, 0, 0, 0, 0})
	}
	f.Fuzz(func(t *testing.T, encoding byte, payload []byte) {
		for _, form := range []Form{{Kind: Cells}, {Kind: Terms, WithKeys: true}, {Kind: Select, Columns: []string{"a", "b"}}} {
			var b batch
			b.reset()
			sent, err := appendRow(newRow(form), &b, []byte("k"), []byte(object(encoding, payload)))
			if !sent || err != nil {
				if b.rows != 0 || len(b.buf) != batchHead {
					t.Fatalf("form %+v left %x behind", form, b.buf)
				}
				continue
			}
			msg, err := etf.SkipVersion(b.finish())
			if err != nil {
				t.Fatal(err)
			}
			rest, err := etf.Check(msg)
			if err != nil || len(rest) > 0 {
				t.Fatalf("form %+v sends %x: %v", form, msg, err)
			}
			if err := crosses(msg); err != nil {
				t.Fatalf("form %+v sends foreign content: %v", form, err)
			}
		}
	})
}

func BenchmarkForms(b *testing.B) {
	// The row of spec: five fields of a time series.
	five := []field{
		{name: "family", ttb: []byte("family1"), mp: msgpack.AppendStr(nil, []byte("family1"))},
		{name: "series", ttb: []byte("seriesX"), mp: msgpack.AppendStr(nil, []byte("seriesX"))},
		{name: "time", ttb: int64(1467563367600), mp: msgpack.AppendInt64(nil, 1467563367600)},
		{name: "value", ttb: 12.5, mp: msgpack.AppendFloat64(nil, 12.5)},
		{name: "status", ttb: int64(3), mp: []byte{3}},
	}
	for _, form := range []Form{{Kind: KV}, {Kind: Terms}, {Kind: Cells}, {Kind: Select, Columns: []string{"time", "value"}}} {
		for _, encoding := range []byte{filter.EncodingETF, filter.EncodingMsgpack} {
			value, _ := rowOf(&testing.T{}, encoding, five)
			b.Run(strings.Join([]string{"kind", string('0' + rune(form.Kind)), "encoding", string('0' + rune(encoding))}, "-"), func(b *testing.B) {
				b.ReportAllocs()
				w := newRow(form)
				var out batch
				out.reset()
				key, row := []byte("0123456789012345678901234567890123456789"), []byte(value)
				for b.Loop() {
					if sent, err := appendRow(w, &out, key, row); !sent || err != nil {
						b.Fatal(err)
					}
					if out.size() > 128<<10 {
						out.reset()
					}
				}
			})
		}
	}
}
