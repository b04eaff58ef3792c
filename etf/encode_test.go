package etf

import (
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"
)

func TestAppendTermRefuses(t *testing.T) {
	long := Atom(strings.Repeat("é", 256))
	for name, term := range map[string]Term{
		"NaN":               math.NaN(),
		"infinity":          math.Inf(-1),
		"bad UTF-8":         Atom("\xff"),
		"surrogate":         Atom("\xed\xa0\x80"),
		"long atom":         long,
		"nil":               nil,
		"string":            "text",
		"int32":             int32(1),
		"nil *big.Int":      (*big.Int)(nil),
		"no bits":           Bitstring{[]byte{1}, 0},
		"8 bits":            Bitstring{[]byte{1}, 8},
		"bits of nothing":   Bitstring{nil, 3},
		"no elements":       Improper{nil, Atom("a")},
		"no tail":           Improper{List{int64(1)}, nil},
		"key twice":         Map{{int64(1), nil}, {int64(1), nil}},
		"key twice, -0.0":   Map{{0.0, Atom("a")}, {math.Copysign(0, -1), Atom("b")}},
		"node":              Pid{Node: long},
		"ref of no words":   Ref{Node: "a"},
		"ref of 6 words":    Ref{Node: "a", Len: 6},
		"export":            Export{Module: "\xff"},
		"empty opaque":      Opaque{},
		"opaque of two":     Opaque{TagNil, TagNil},
		"opaque NaN":        Opaque("\x46\x7f\xf8\x00\x00\x00\x00\x00\x00"),
		"opaque local":      Opaque{TagLocal, 1},
		"opaque old fun":    Opaque("\x75" + smallest[TagFun]),
		"opaque compressed": Opaque{TagCompressed, 0, 0, 0, 1},
	} {
		dst := []byte("dst")
		for _, term := range []Term{term, List{int64(1), term}, Map{{Atom("k"), term}}} {
			got, err := AppendTerm(dst, term)
			if err == nil || string(got) != "dst" {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		}
	}
	if _, err := AppendTerm(nil, Map{{int64(1), int64(1)}, {1.0, int64(1)}}); err != nil {
		t.Errorf("1 and 1.0 are different keys: %v", err)
	}
	if _, err := AppendTerm(nil, Atom(strings.Repeat("é", 255))); err != nil {
		t.Error(err)
	}
}

func TestLimits(t *testing.T) {
	b := mustAppend(t, List{Tuple{int64(1), int64(2)}, []byte("0123456789")})
	for _, c := range []struct {
		lim  Limits
		want error
	}{
		{Limits{}, nil},
		{Limits{Depth: 2, Count: 5, Bytes: len(b)}, nil},
		{Limits{Depth: 1}, ErrLimit},
		{Limits{Count: 4}, ErrLimit},
		{Limits{Bytes: len(b) - 1}, ErrLimit},
		{Limits{Depth: 1000}, nil},
	} {
		if _, _, err := Decode(b, c.lim); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v", c.lim, err)
		}
	}
	if _, _, err := Decode(append([]byte{TagString, 0, 9}, "123456789"...), Limits{Count: 8}); !errors.Is(err, ErrLimit) {
		t.Errorf("string: %v", err)
	}
}

// TestDecodeAliases: binaries point into the bytes and cannot grow into them.
func TestDecodeAliases(t *testing.T) {
	b := mustAppend(t, Tuple{[]byte("abc"), Bitstring{[]byte{0xe0}, 3}, Atom("x")})
	term, _, err := Decode(b, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range b {
		b[i] = '#'
	}
	tuple := term.(Tuple)
	if got := tuple[0].([]byte); string(got) != "###" || cap(got) != 3 {
		t.Errorf("%q, capacity %d", got, cap(got))
	}
	if got := tuple[2]; got != Atom("x") {
		t.Errorf("atom is not a copy: %q", got)
	}
}

// tower returns maps of two keys that are maps of two keys and so on, alike but
// for the integers at the bottom.
func tower(levels, x int) Term {
	if levels == 0 {
		return int64(x)
	}
	return Map{{tower(levels-1, 2*x), int64(0)}, {tower(levels-1, 2*x+1), int64(0)}}
}

// TestMapTower: ordering such keys takes time that grows with a power of their
// size; beyond a few levels they are refused instead.
func TestMapTower(t *testing.T) {
	b := mustAppend(t, tower(6, 0))
	if r, err := Compare(b, b); r != 0 || err != nil {
		t.Errorf("%d, %v", r, err)
	}
	if _, err := AppendTerm(nil, tower(14, 0)); !errors.Is(err, ErrLimit) {
		t.Errorf("AppendTerm: %v", err)
	}
	a, err := AppendTerm(nil, Map{{tower(8, 0), int64(0)}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Compare(a, a); !errors.Is(err, ErrLimit) {
		t.Errorf("Compare: %v", err)
	}
}
