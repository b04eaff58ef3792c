package etf

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// smallest is a second table, written from the manual: a term of each tag, and
// where it ends.
var smallest = map[byte]string{
	67: "\x00\x00\x00\x01\x01" + "\x77\x01m" + "\x77\x01r" + "\x77\x01f" + "a\x01",
	70: "\x3f\xf0\x00\x00\x00\x00\x00\x00", 77: "\x00\x00\x00\x01\x03\xe0",
	88: "\x77\x01n" + "iiiissss" + "\x00\x00\x00\x01", 89: "\x77\x01n" + "iiii" + "\x00\x00\x00\x01",
	90: "\x00\x01" + "\x77\x01n" + "\x00\x00\x00\x01" + "iiii", 97: "\x05", 98: "\x00\x00\x00\x05",
	99: "1.0" + strings.Repeat("\x00", 28), 100: "\x00\x01a", 101: "\x64\x00\x01n" + "\x00\x00\x00\x01" + "\x01",
	102: "\x73\x01n" + "\x00\x00\x00\x01" + "\x01", 103: "\x76\x00\x01n" + "\x00\x00\x00\x01\x00\x00\x00\x02" + "\x01",
	104: "\x01\x6a", 105: "\x00\x00\x00\x01\x6a", 106: "", 107: "\x00\x02ab", 108: "\x00\x00\x00\x01\x6a\x6a",
	109: "\x00\x00\x00\x02ab", 110: "\x01\x00\x05", 111: "\x00\x00\x00\x01\x00\x05",
	112: "\x00\x00\x00\x39\x00" + strings.Repeat("u", 16) + "\x00\x00\x00\x01" + "\x00\x00\x00\x01" +
		"\x77\x01m" + "a\x01" + "a\x02" + "\x58\x77\x01niiiissss\x00\x00\x00\x01" + "b\x00\x00\x00\x07",
	113: "\x77\x01m" + "\x77\x01f" + "a\x02", 114: "\x00\x01" + "\x77\x01n" + "\x01" + "\x00\x00\x00\x01",
	115: "\x01a", 116: "\x00\x00\x00\x01\x6a\x6a",
	117: "\x00\x00\x00\x01" + "\x67\x77\x01niiiissss\x01" + "\x77\x01m" + "a\x01" + "a\x02" + "\x6a",
	118: "\x00\x01a", 119: "\x01a", 120: "\x77\x01n" + "iiiiiiii" + "\x00\x00\x00\x01",
}

// TestTags: each of the 256 tags is skipped to its end, refused when cut short
// anywhere, or refused at once.
func TestTags(t *testing.T) {
	for tag := range 256 {
		body, known := smallest[byte(tag)]
		b := append([]byte{byte(tag)}, body...)
		switch {
		case tag == TagLocal:
			continue // TestLocal
		case tag == TagCompressed:
			if _, err := Skip(b); !errors.Is(err, ErrCompressed) {
				t.Errorf("tag %d: %v", tag, err)
			}
			continue
		case !known:
			for _, f := range []func([]byte) ([]byte, error){Skip, Check} {
				if _, err := f(append(b, make([]byte, 100)...)); !errors.Is(err, ErrTag) {
					t.Errorf("tag %d: %v", tag, err)
				}
			}
			continue
		}
		if rest, err := Skip(append(b, "rest"...)); err != nil || string(rest) != "rest" {
			t.Errorf("tag %d: rest %q, %v", tag, rest, err)
		}
		if rest, err := Check(append(b, "rest"...)); tag != TagFun && (err != nil || string(rest) != "rest") {
			t.Errorf("tag %d: Check leaves %q, %v", tag, rest, err)
		}
		if _, rest, err := Decode(append(b, "rest"...), Limits{}); err != nil || string(rest) != "rest" {
			t.Errorf("tag %d: Decode leaves %q, %v", tag, rest, err)
		}
		for n := range b {
			if _, err := Skip(b[:n:n]); !errors.Is(err, ErrTruncated) {
				t.Errorf("tag %d cut to %d bytes: %v", tag, n, err)
			}
			if _, _, err := Decode(b[:n:n], Limits{}); !errors.Is(err, ErrTruncated) {
				t.Errorf("tag %d cut to %d bytes: Decode: %v", tag, n, err)
			}
		}
	}
}

// TestLocal: a local term takes all there is and is no part of another.
func TestLocal(t *testing.T) {
	b := []byte{TagLocal, 1, 2, 3}
	if rest, err := Skip(b); err != nil || len(rest) > 0 {
		t.Errorf("%x, %v", rest, err)
	}
	if term, _, err := Decode(b, Limits{}); err != nil || !bytes.Equal(term.(Opaque), b) {
		t.Errorf("%v, %v", term, err)
	}
	if _, err := Check(b); !errors.Is(err, ErrTag) {
		t.Error(err)
	}
	if _, err := Skip(append([]byte{TagSmallTuple, 1}, b...)); !errors.Is(err, ErrTag) {
		t.Error(err)
	}
}

// nested returns depth containers around [].
func nested(open string, depth int, end string) []byte {
	return []byte(strings.Repeat(open, depth) + "\x6a" + strings.Repeat(end, depth))
}

// TestDepth: 256 containers may be around a term, whatever they are.
func TestDepth(t *testing.T) {
	for _, c := range []struct{ open, end string }{
		{"\x68\x01", ""},                 // {T}
		{"\x6c\x00\x00\x00\x01", "\x6a"}, // [T]
		{"\x6c\x00\x00\x00\x01\x6a", ""}, // [[]|T]
		{"\x74\x00\x00\x00\x01", "\x6a"}, // #{T => []}
		{"\x74\x00\x00\x00\x01\x6a", ""}, // #{[] => T}
		{"\x69\x00\x00\x00\x01", ""},     // {T}
	} {
		ok, deep := nested(c.open, MaxDepth, c.end), nested(c.open, MaxDepth+1, c.end)
		if rest, err := Skip(ok); err != nil || len(rest) > 0 {
			t.Errorf("%x: %x, %v", c.open, rest, err)
		}
		if term, _, err := Decode(ok, Limits{}); err != nil {
			t.Errorf("%x: %v", c.open, err)
		} else if _, err := AppendTerm(nil, term); err != nil {
			t.Errorf("%x: %v", c.open, err)
		}
		if r, err := Compare(ok, ok); c.open[0] != TagMap && (err != nil || r != 0) {
			t.Errorf("%x: Compare: %d, %v", c.open, r, err)
		}
		if _, err := Skip(deep); !errors.Is(err, ErrLimit) {
			t.Errorf("%x: Skip: %v", c.open, err)
		}
		if _, err := Check(deep); !errors.Is(err, ErrLimit) {
			t.Errorf("%x: Check: %v", c.open, err)
		}
		if _, _, err := Decode(deep, Limits{}); !errors.Is(err, ErrLimit) {
			t.Errorf("%x: Decode: %v", c.open, err)
		}
		// A million levels must not be walked.
		if _, err := Skip(nested(c.open, 1e6, c.end)); !errors.Is(err, ErrLimit) {
			t.Errorf("%x: a million: %v", c.open, err)
		}
	}
	var deep Term = List(nil)
	for range MaxDepth + 1 {
		deep = Tuple{deep}
	}
	if _, err := AppendTerm(nil, deep); !errors.Is(err, ErrLimit) {
		t.Errorf("AppendTerm: %v", err)
	}
}

// wide returns a list of n rows, [{Name, Value}] each.
func wide(n int) []byte {
	b := AppendListHeader(nil, n)
	for i := range n {
		b = append(b, row(i)...)
	}
	return AppendNil(b)
}

// row returns five columns, one of each common type.
func row(i int) []byte {
	b := AppendListHeader(nil, 5)
	column := func(name string) {
		b = AppendBinary(AppendTupleHeader(b, 2), []byte(name))
	}
	column("time")
	b = AppendInt64(b, 1_400_000_000_000+int64(i))
	column("device")
	b = AppendBinary(b, []byte("device-0001"))
	column("temperature")
	b = AppendFloat64(b, 20.5)
	column("count")
	b = AppendInt64(b, 200)
	column("status")
	b = AppendAtom(b, "true")
	return AppendNil(b)
}

// TestSkipMany: with more containers than MaxDepth, side by side, Skip still
// knows how deep it is.
func TestSkipMany(t *testing.T) {
	b := wide(1000)
	if rest, err := Skip(append(b, 1)); err != nil || len(rest) != 1 {
		t.Errorf("%d bytes, %v", len(rest), err)
	}
}

func TestAllocations(t *testing.T) {
	one, many := row(1), wide(1000)
	tuple := nested("\x68\x01", 200, "")
	pid := AppendPid(nil, Pid{"a@h", 1, 2, 3})
	for name, f := range map[string]func(){
		"Skip a row":      func() { Skip(one) },
		"Skip a thousand": func() { Skip(many) },
		"Skip deep":       func() { Skip(tuple) },
		"Check a row":     func() { Check(one) },
		"Compare rows":    func() { Compare(one, one) },
		"Compare pids":    func() { Compare(pid, pid) },
		"ReadListHeader":  func() { ReadListHeader(one) },
		"ReadTupleHeader": func() { ReadTupleHeader(one[5:]) },
		"ReadBinary":      func() { ReadBinary(one[7:]) },
		"ReadInt64":       func() { ReadInt64(one[16:]) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkSkip(b *testing.B) {
	for _, c := range []struct {
		name string
		term []byte
	}{{"integer", AppendInt64(nil, 5)}, {"row", row(1)}, {"rows=1000", wide(1000)}} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.term)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Skip(c.term); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCheck(b *testing.B) {
	term := row(1)
	b.SetBytes(int64(len(term)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Check(term); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompare(b *testing.B) {
	x, y := row(1), row(1)
	b.SetBytes(int64(len(x)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Compare(x, y); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	term := row(1)
	b.SetBytes(int64(len(term)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Decode(term, Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}
