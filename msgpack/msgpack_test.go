package msgpack

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	vm "github.com/vmihailenco/msgpack/v5"
)

var seedFlag = flag.Uint64("seed", 0, "seed of random values; 0 picks one")

// newRand returns a generator whose seed is logged and can be given with -seed.
func newRand(t testing.TB) *rand.Rand {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-seed=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// formats is a second table, written from the specification: each lead byte, or
// range of them, with what follows in the smallest value and the kind.
var formats = []struct {
	from, to byte
	body     string
	kind     Type
}{
	{0x00, 0x7f, "", Int}, {0x80, 0x80, "", Map}, {0x81, 0x81, "\xc0\xc0", Map}, {0x90, 0x90, "", Array},
	{0x92, 0x92, "\xc0\xc0", Array}, {0xa0, 0xa0, "", Str}, {0xa3, 0xa3, "abc", Str}, {0xbf, 0xbf, strings.Repeat("x", 31), Str},
	{0x8f, 0x8f, strings.Repeat("\x01", 30), Map}, {0x9f, 0x9f, strings.Repeat("\x01", 15), Array},
	{0xc0, 0xc0, "", Nil}, {0xc2, 0xc3, "", Bool}, {0xc4, 0xc4, "\x01a", Bin}, {0xc5, 0xc5, "\x00\x01a", Bin},
	{0xc6, 0xc6, "\x00\x00\x00\x01a", Bin}, {0xc7, 0xc7, "\x01ta", Ext}, {0xc8, 0xc8, "\x00\x01ta", Ext},
	{0xc9, 0xc9, "\x00\x00\x00\x01ta", Ext}, {0xca, 0xca, "1234", Float}, {0xcb, 0xcb, "12345678", Float},
	{0xcc, 0xcc, "1", Int}, {0xcd, 0xcd, "12", Int}, {0xce, 0xce, "1234", Int}, {0xcf, 0xcf, "12345678", Int},
	{0xd0, 0xd0, "1", Int}, {0xd1, 0xd1, "12", Int}, {0xd2, 0xd2, "1234", Int}, {0xd3, 0xd3, "12345678", Int},
	{0xd4, 0xd4, "t1", Ext}, {0xd5, 0xd5, "t12", Ext}, {0xd6, 0xd6, "t1234", Ext}, {0xd7, 0xd7, "t12345678", Ext},
	{0xd8, 0xd8, "t1234567812345678", Ext}, {0xd9, 0xd9, "\x01a", Str}, {0xda, 0xda, "\x00\x01a", Str},
	{0xdb, 0xdb, "\x00\x00\x00\x01a", Str}, {0xdc, 0xdc, "\x00\x01\xc0", Array}, {0xdd, 0xdd, "\x00\x00\x00\x01\xc0", Array},
	{0xde, 0xde, "\x00\x01\xc0\xc0", Map}, {0xdf, 0xdf, "\x00\x00\x00\x01\xc0\xc0", Map}, {0xe0, 0xff, "", Int},
}

// TestFormats: every format is skipped to its end and refused when cut short.
func TestFormats(t *testing.T) {
	seen := map[byte]bool{}
	for _, f := range formats {
		for c := int(f.from); c <= int(f.to); c++ {
			seen[byte(c)] = true
			b := append([]byte{byte(c)}, f.body...)
			if k := Kind(b); k != f.kind {
				t.Errorf("Kind(%#x) = %v", c, k)
			}
			if rest, err := Skip(append(b, "rest"...)); err != nil || string(rest) != "rest" {
				t.Errorf("%#x: rest %q, %v", c, rest, err)
			}
			for n := range b {
				if _, err := Skip(b[:n:n]); !errors.Is(err, ErrTruncated) {
					t.Errorf("%#x cut to %d bytes: %v", c, n, err)
				}
			}
		}
	}
	for c := range 256 {
		fix := c >= 0x80 && c <= 0xbf // all lengths of one format
		if !seen[byte(c)] && !fix && c != 0xc1 {
			t.Errorf("%#x is not in the table", c)
		}
	}
	if _, err := Skip([]byte{0xc1}); !errors.Is(err, ErrKind) || Kind([]byte{0xc1}) != Invalid {
		t.Errorf("c1: %v", err)
	}
	if Kind(nil) != Invalid || Ext.String() != "ext" || Type(99).String() != "invalid" {
		t.Error("Kind of nothing, or its name")
	}
}

func TestDepth(t *testing.T) {
	for _, c := range []struct{ open, end string }{
		{"\x91", ""}, {"\xdc\x00\x01", ""}, {"\x92\xc0", ""}, {"\x92", "\xc0"}, {"\x81\xa1k", ""}, {"\x81", "\xc0"},
	} {
		nested := func(n int) []byte {
			return []byte(strings.Repeat(c.open, n) + "\xc0" + strings.Repeat(c.end, n))
		}
		if rest, err := Skip(nested(MaxDepth)); err != nil || len(rest) > 0 {
			t.Errorf("%x: %v", c.open, err)
		}
		for _, n := range []int{MaxDepth + 1, 1e6} {
			if _, err := Skip(nested(n)); !errors.Is(err, ErrLimit) {
				t.Errorf("%x, %d levels: %v", c.open, n, err)
			}
		}
	}
}

func TestIntegers(t *testing.T) {
	r := newRand(t)
	for range 5000 {
		v := int64(r.Uint64()) >> r.IntN(64)
		if r.IntN(10) == 0 {
			v = []int64{0, 127, 128, 255, 256, 65535, 65536, math.MaxUint32, math.MaxUint32 + 1, math.MaxInt64, -1, -32, -33,
				-128, -129, -32768, -32769, math.MinInt32, math.MinInt32 - 1, math.MinInt64}[r.IntN(20)]
		}
		b := AppendInt64(nil, v)
		if got, rest, err := ReadInt64(append(b, 1)); got != v || len(rest) != 1 || err != nil {
			t.Fatalf("%d: %x, %d, %v", v, b, got, err)
		}
		u, _, err := ReadUint64(b)
		if v < 0 && !errors.Is(err, ErrRange) || v >= 0 && (err != nil || u != uint64(v)) {
			t.Fatalf("%d: ReadUint64: %d, %v", v, u, err)
		}
		// The other codec's shortest form is the same.
		var buf bytes.Buffer
		enc := vm.NewEncoder(&buf)
		if err := enc.EncodeInt(v); err != nil || !bytes.Equal(buf.Bytes(), b) {
			t.Fatalf("%d: %x, other codec %x, %v", v, b, buf.Bytes(), err)
		}
	}
	b := AppendUint64(nil, math.MaxUint64)
	if u, _, err := ReadUint64(b); u != math.MaxUint64 || err != nil {
		t.Error(u, err)
	}
	if _, _, err := ReadInt64(b); !errors.Is(err, ErrRange) {
		t.Error(err)
	}
	for _, wide := range []string{"\xcc\x05", "\xcd\x00\x05", "\xce\x00\x00\x00\x05", "\xcf\x00\x00\x00\x00\x00\x00\x00\x05",
		"\xd0\x05", "\xd1\x00\x05", "\xd2\x00\x00\x00\x05", "\xd3\x00\x00\x00\x00\x00\x00\x00\x05"} {
		if v, _, err := ReadInt64([]byte(wide)); v != 5 || err != nil {
			t.Errorf("%x: %d, %v", wide, v, err)
		}
	}
}

// TestReadRefuses: every reader takes its own kinds only.
func TestReadRefuses(t *testing.T) {
	readers := map[string]struct {
		kinds []Type
		read  func(b []byte) error
	}{
		"ReadNil":         {[]Type{Nil}, func(b []byte) error { _, err := ReadNil(b); return err }},
		"ReadBool":        {[]Type{Bool}, func(b []byte) error { _, _, err := ReadBool(b); return err }},
		"ReadInt64":       {[]Type{Int}, func(b []byte) error { _, _, err := ReadInt64(b); return err }},
		"ReadFloat64":     {[]Type{Float}, func(b []byte) error { _, _, err := ReadFloat64(b); return err }},
		"ReadStr":         {[]Type{Str}, func(b []byte) error { _, _, err := ReadStr(b); return err }},
		"ReadBytes":       {[]Type{Str, Bin}, func(b []byte) error { _, _, err := ReadBytes(b); return err }},
		"ReadArrayHeader": {[]Type{Array}, func(b []byte) error { _, _, err := ReadArrayHeader(b); return err }},
		"ReadMapHeader":   {[]Type{Map}, func(b []byte) error { _, _, err := ReadMapHeader(b); return err }},
	}
	for name, c := range readers {
		if err := c.read(nil); !errors.Is(err, ErrTruncated) {
			t.Errorf("%s of nothing: %v", name, err)
		}
		for _, f := range formats {
			b := append([]byte{f.from}, f.body...)
			mine := false
			for _, k := range c.kinds {
				mine = mine || k == f.kind
			}
			if err := c.read(b); mine && err != nil || !mine && !errors.Is(err, ErrKind) {
				t.Errorf("%s of %#x: %v", name, f.from, err)
			}
		}
	}
	for _, lead := range []byte{0xc6, 0xc9, 0xdb, 0xdd, 0xdf} {
		b := append([]byte{lead, 0xff, 0xff, 0xff, 0xff}, make([]byte, 20)...)
		if _, err := Skip(b); !errors.Is(err, ErrTruncated) {
			t.Errorf("%#x: %v", lead, err)
		}
	}
	var e *Error
	if _, err := Skip([]byte{0x92, 0xc0, 0xc1}); !errors.As(err, &e) || e.Off != 2 || e.Error() == "" {
		t.Error(err)
	}
}

// TestRandomValues: what the other codec writes, we read, and the other way
// round.
func TestRandomValues(t *testing.T) {
	r := newRand(t)
	for range 3000 {
		v := randomValue(r, 20)
		theirs, err := vm.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if rest, err := Skip(theirs); err != nil || len(rest) > 0 {
			t.Fatalf("Skip(%x): %x, %v", theirs, rest, err)
		}
		got, rest, err := read(theirs)
		if err != nil || len(rest) > 0 || !reflect.DeepEqual(got, v) {
			t.Fatalf("%x: %#v, want %#v, %v", theirs, got, v, err)
		}
		ours := appendValue(nil, v)
		if rest, err := Skip(ours); err != nil || len(rest) > 0 {
			t.Fatalf("Skip(%x): %x, %v", ours, rest, err)
		}
		dec := vm.NewDecoder(bytes.NewReader(ours))
		back, err := dec.DecodeInterface()
		if err != nil || !reflect.DeepEqual(loose(back), v) {
			t.Fatalf("%x: other codec reads %#v, want %#v, %v", ours, back, v, err)
		}
	}
}

// loose makes the other codec's integers of many types int64.
func loose(v any) any {
	switch v := v.(type) {
	case int8, int16, int32, int64:
		return reflect.ValueOf(v).Int()
	case uint8, uint16, uint32, uint64:
		return int64(reflect.ValueOf(v).Uint())
	case []any:
		for i := range v {
			v[i] = loose(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = loose(v[k])
		}
	}
	return v
}

func randomValue(r *rand.Rand, size int) any {
	if size > 1 && r.IntN(2) == 0 {
		n := r.IntN(20)
		if r.IntN(2) == 0 {
			a := make([]any, n)
			for i := range a {
				a[i] = randomValue(r, size/(n+1))
			}
			return a
		}
		m := map[string]any{}
		for range n {
			m[randomText(r)] = randomValue(r, size/(n+1))
		}
		return m
	}
	switch r.IntN(6) {
	case 0:
		return nil
	case 1:
		return r.IntN(2) == 0
	case 2:
		return int64(r.Uint64()) >> r.IntN(64)
	case 3:
		return r.NormFloat64()
	case 4:
		return []byte(randomText(r))
	}
	return randomText(r)
}

func randomText(r *rand.Rand) string {
	n := r.IntN(40)
	if r.IntN(10) == 0 {
		n = r.IntN(70000)
	}
	return strings.Repeat(string(rune('a'+r.IntN(26))), n)
}

// appendValue and read are the verbs put together, as a caller would.
func appendValue(dst []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return AppendNil(dst)
	case bool:
		return AppendBool(dst, v)
	case int64:
		return AppendInt64(dst, v)
	case float64:
		return AppendFloat64(dst, v)
	case string:
		return AppendStr(dst, []byte(v))
	case []byte:
		return AppendBytes(dst, v)
	case []any:
		dst = AppendArrayHeader(dst, len(v))
		for _, e := range v {
			dst = appendValue(dst, e)
		}
	case map[string]any:
		dst = AppendMapHeader(dst, len(v))
		for k, e := range v {
			dst = appendValue(AppendStr(dst, []byte(k)), e)
		}
	}
	return dst
}

func read(b []byte) (v any, rest []byte, err error) {
	switch Kind(b) {
	case Nil:
		rest, err = ReadNil(b)
		return nil, rest, err
	case Bool:
		return boxed(ReadBool(b))
	case Int:
		return boxed(ReadInt64(b))
	case Float:
		return boxed(ReadFloat64(b))
	case Str:
		s, rest, err := ReadStr(b)
		return string(s), rest, err
	case Bin:
		return boxed(ReadBytes(b))
	case Array:
		n, rest, err := ReadArrayHeader(b)
		a := []any{}
		for range n {
			if err == nil {
				v, rest, err = read(rest)
			}
			a = append(a, v)
		}
		return a, rest, err
	case Map:
		n, rest, err := ReadMapHeader(b)
		m := map[string]any{}
		for range n {
			var k []byte
			if err == nil {
				k, rest, err = ReadStr(rest)
			}
			if err == nil {
				m[string(k)], rest, err = read(rest)
			}
		}
		return m, rest, err
	}
	_, err = Skip(b)
	return nil, nil, errors.Join(err, errors.New("ext"))
}

func boxed[T any](v T, rest []byte, err error) (any, []byte, error) { return v, rest, err }

// row returns five columns, one of each common type.
func row() []byte {
	b := AppendMapHeader(nil, 5)
	b = AppendInt64(AppendStr(b, []byte("time")), 1_400_000_000_000)
	b = AppendStr(AppendStr(b, []byte("device")), []byte("device-0001"))
	b = AppendFloat64(AppendStr(b, []byte("temperature")), 20.5)
	b = AppendInt64(AppendStr(b, []byte("count")), 200)
	return AppendBool(AppendStr(b, []byte("status")), true)
}

func rows(n int) []byte {
	return append(AppendArrayHeader(nil, n), bytes.Repeat(row(), n)...)
}

func TestAllocations(t *testing.T) {
	one, many := row(), rows(1000)
	for name, f := range map[string]func(){
		"Skip a row":      func() { Skip(one) },
		"Skip a thousand": func() { Skip(many) },
		"ReadMapHeader":   func() { ReadMapHeader(one) },
		"ReadStr":         func() { ReadStr(one[1:]) },
		"ReadInt64":       func() { ReadInt64(one[6:]) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkSkip(b *testing.B) {
	for name, v := range map[string][]byte{"row": row(), "rows=1000": rows(1000)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(v)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Skip(v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// FuzzSkip: the flat loop and the one that watches the depth agree; where the
// other codec reads a value, Skip ends where it ends.
func FuzzSkip(f *testing.F) {
	for _, v := range formats {
		f.Add(append([]byte{v.from}, v.body...))
	}
	f.Add(row())
	f.Add([]byte(strings.Repeat("\x91", 300) + "\xc0"))
	f.Fuzz(func(t *testing.T, b []byte) {
		rest, err := Skip(b)
		deep, deepErr := skipDeep(b)
		if !bytes.Equal(rest, deep) || (err == nil) != (deepErr == nil) {
			t.Fatalf("Skip %x, %v; skipDeep %x, %v", rest, err, deep, deepErr)
		}
		if err != nil {
			return // the other codec allocates what is claimed: ask it only about whole values
		}
		in := bytes.NewReader(b)
		if err := vm.NewDecoder(in).Skip(); err == nil && in.Len() != len(rest) {
			t.Fatalf("Skip leaves %d bytes, the other codec %d", len(rest), in.Len())
		}
	})
}

// FuzzRead: every reader accepts only what Skip accepts and ends where it ends.
// What is read and appended is read again as the same.
func FuzzRead(f *testing.F) {
	for _, v := range formats {
		f.Add(append([]byte{v.from}, v.body...))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		skipped, skipErr := Skip(b)
		if errors.Is(skipErr, ErrLimit) {
			return
		}
		v, rest, err := read(b)
		if err == nil && (skipErr != nil || !bytes.Equal(rest, skipped)) {
			t.Fatalf("read leaves %x; Skip %x, %v", rest, skipped, skipErr)
		}
		if err != nil {
			return
		}
		again, rest, err := read(appendValue(nil, v))
		if err != nil || len(rest) > 0 || !same(again, v) {
			t.Fatalf("%#v, then %#v, %v", v, again, err)
		}
	})
}

// same is reflect.DeepEqual for which NaN equals NaN.
func same(a, b any) bool {
	x := binary.BigEndian.AppendUint32(appendValue(nil, a), 0)
	y := binary.BigEndian.AppendUint32(appendValue(nil, b), 0)
	return len(x) == len(y) && (bytes.Equal(x, y) || hasMap(a))
}

// hasMap reports a map inside, whose order differs from one walk to the next.
func hasMap(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return true
	case []any:
		for _, e := range v {
			if hasMap(e) {
				return true
			}
		}
	}
	return false
}
