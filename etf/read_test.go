package etf

import (
	"encoding/binary"
	"errors"
	"math"
	"math/big"
	"testing"
)

func TestReadIntegers(t *testing.T) {
	two63 := new(big.Int).Lsh(big.NewInt(1), 63)
	for _, c := range []struct {
		v             *big.Int
		signed, fixed bool // fits int64, uint64
	}{
		{big.NewInt(0), true, true}, {big.NewInt(255), true, true}, {big.NewInt(256), true, true},
		{big.NewInt(-1), true, false}, {big.NewInt(math.MinInt32), true, false},
		{big.NewInt(math.MinInt64), true, false}, {big.NewInt(math.MaxInt64), true, true},
		{two63, false, true}, {new(big.Int).SetUint64(math.MaxUint64), false, true},
		{new(big.Int).Sub(new(big.Int).Neg(two63), big.NewInt(1)), false, false},
		{new(big.Int).Lsh(two63, 1), false, false},
	} {
		r := newRand(t)
		for range 20 {
			b := appendBigVariant(nil, r, c.v)
			if r.IntN(2) == 0 {
				b = mustAppend(t, c.v)
			}
			i, rest, err := ReadInt64(append(b, 9))
			switch {
			case c.signed && (err != nil || i != c.v.Int64() || len(rest) != 1):
				t.Errorf("ReadInt64(%x) = %d, %v", b, i, err)
			case !c.signed && !errors.Is(err, ErrRange):
				t.Errorf("ReadInt64(%x): %v", b, err)
			}
			u, rest, err := ReadUint64(append(b, 9))
			switch {
			case c.fixed && (err != nil || u != c.v.Uint64() || len(rest) != 1):
				t.Errorf("ReadUint64(%x) = %d, %v", b, u, err)
			case !c.fixed && !errors.Is(err, ErrRange):
				t.Errorf("ReadUint64(%x): %v", b, err)
			}
		}
		if c.signed {
			if got, want := AppendInt64(nil, c.v.Int64()), mustAppend(t, c.v); string(got) != string(want) {
				t.Errorf("AppendInt64(%d) = %x, not %x", c.v, got, want)
			}
		}
		if c.fixed {
			if got, want := AppendUint64(nil, c.v.Uint64()), mustAppend(t, c.v); string(got) != string(want) {
				t.Errorf("AppendUint64(%d) = %x, not %x", c.v, got, want)
			}
		}
	}
}

func TestReadListHeader(t *testing.T) {
	for in, want := range map[string]int{
		"\x6a":                             0,
		"\x6c\x00\x00\x00\x01\x61\x07\x6a": 1,
		"\x6c\x00\x00\x00\x00\x6a":         0,
		"\x6c\x00\x00\x00\x00\x6c\x00\x00\x00\x01\x6a\x6a": 1,
	} {
		if n, _, err := ReadListHeader([]byte(in)); err != nil || n != want {
			t.Errorf("%x: %d, %v", in, n, err)
		}
	}
	for in, want := range map[string]error{
		"":                             ErrTruncated,
		"\x6c\x00\x00":                 ErrTruncated,
		"\x6c\x00\x00\x00\x02\x61\x01": ErrTruncated, // two elements and a tail take three bytes
		"\x6c\xff\xff\xff\xff\x6a":     ErrTruncated,
		"\x6c\x00\x00\x00\x00\x61\x01": ErrTag,
		"\x6b\x00\x01a":                ErrTag,
		"\x50":                         ErrCompressed,
	} {
		if _, _, err := ReadListHeader([]byte(in)); !errors.Is(err, want) {
			t.Errorf("%x: %v, want %v", in, err, want)
		}
	}
}

// TestReadRefuses: every reader takes its own kinds only and no claimed size.
func TestReadRefuses(t *testing.T) {
	readers := map[string]struct {
		tags string
		read func(b []byte) error
	}{
		"ReadAtom":        {"dsvw", func(b []byte) error { _, _, err := ReadAtom(b); return err }},
		"ReadInt64":       {"abno", func(b []byte) error { _, _, err := ReadInt64(b); return err }},
		"ReadUint64":      {"abno", func(b []byte) error { _, _, err := ReadUint64(b); return err }},
		"ReadFloat64":     {"Fc", func(b []byte) error { _, _, err := ReadFloat64(b); return err }},
		"ReadBinary":      {"m", func(b []byte) error { _, _, err := ReadBinary(b); return err }},
		"ReadTupleHeader": {"hi", func(b []byte) error { _, _, err := ReadTupleHeader(b); return err }},
		"ReadListHeader":  {"jl", func(b []byte) error { _, _, err := ReadListHeader(b); return err }},
		"ReadMapHeader":   {"t", func(b []byte) error { _, _, err := ReadMapHeader(b); return err }},
		"ReadPid":         {"gX", func(b []byte) error { _, _, err := ReadPid(b); return err }},
		"ReadRef":         {"erZ", func(b []byte) error { _, _, err := ReadRef(b); return err }},
		"ReadPort":        {"fYx", func(b []byte) error { _, _, err := ReadPort(b); return err }},
	}
	for name, c := range readers {
		if err := c.read(nil); !errors.Is(err, ErrTruncated) {
			t.Errorf("%s of nothing: %v", name, err)
		}
		for tag, body := range smallest {
			b := append([]byte{tag}, body...)
			mine := false
			for _, own := range []byte(c.tags) {
				mine = mine || own == tag
			}
			err := c.read(b)
			if mine && err != nil || !mine && !errors.Is(err, ErrTag) {
				t.Errorf("%s of tag %d: %v", name, tag, err)
			}
		}
	}
	for _, tag := range []byte{TagBinary, TagLargeTuple, TagMap, TagList, TagLargeBig, TagBitBinary, TagRecord} {
		b := append(binary.BigEndian.AppendUint32([]byte{tag}, math.MaxUint32), make([]byte, 20)...)
		if _, err := Skip(b); !errors.Is(err, ErrTruncated) {
			t.Errorf("tag %d: %v", tag, err)
		}
		if n := testing.AllocsPerRun(5, func() { Decode(b, Limits{}) }); n > 10 {
			t.Errorf("tag %d: Decode makes %v allocations of a claimed size", tag, n)
		}
	}
}

func TestVersion(t *testing.T) {
	if rest, err := SkipVersion(AppendNil(AppendVersion(nil))); err != nil || len(rest) != 1 {
		t.Error(rest, err)
	}
	if _, err := SkipVersion([]byte{130}); !errors.Is(err, ErrTag) {
		t.Error(err)
	}
	if _, err := SkipVersion(nil); !errors.Is(err, ErrTruncated) {
		t.Error(err)
	}
}

func TestErrorOffset(t *testing.T) {
	b := mustAppend(t, Tuple{int64(1), Tuple{Atom("ok"), 1.5}})
	b[len(b)-9] = 0 // the float's tag
	for name, f := range map[string]func() error{
		"Skip":   func() error { _, err := Skip(b); return err },
		"Check":  func() error { _, err := Check(b); return err },
		"Decode": func() error { _, _, err := Decode(b, Limits{}); return err },
	} {
		var e *Error
		if err := f(); !errors.As(err, &e) || e.Off != len(b)-9 || e.Error() == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
