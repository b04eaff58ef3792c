package etf

import (
	"bytes"
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	goerlang "github.com/goerlang/etf"
)

// TestGoerlang: a codec of other people reads the same from what we write. It is
// asked only about what it gets right: ASCII atoms, integers, floats, binaries,
// tuples without and lists with elements, old pids.
func TestGoerlang(t *testing.T) {
	r := newRand(t)
	for range 2000 {
		term := plainTerm(r, 20)
		b := appendAtomsLatin1(t, term)
		if rest, err := Skip(b); err != nil || len(rest) > 0 {
			t.Fatalf("Skip(%x): %x, %v", b, rest, err)
		}
		got, err := new(goerlang.Context).Read(bytes.NewReader(b))
		if err != nil {
			t.Fatalf("goerlang refuses %x: %v", b, err)
		}
		ours, _, err := Decode(b, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if x, y := plain(t, ours), plain(t, got); x != y {
			t.Fatalf("%x: %s, goerlang reads %s", b, x, y)
		}
	}
}

func plainTerm(r *rand.Rand, size int) Term {
	if size > 1 && r.IntN(2) == 0 {
		ts := make([]Term, 1+r.IntN(4))
		for i := range ts {
			ts[i] = plainTerm(r, size/len(ts))
		}
		if r.IntN(2) == 0 {
			return Tuple(ts)
		}
		return List(ts)
	}
	switch r.IntN(6) {
	case 0:
		return int64(r.IntN(300))
	case 1:
		return int64(r.Uint64()) >> r.IntN(64)
	case 2:
		return randomFloat(r)
	case 3:
		return randomBytes(r, r.IntN(10))
	case 4:
		return randomBig(r)
	}
	return Atom([]string{"a", "ok", "undefined", "two words"}[r.IntN(4)])
}

// appendAtomsLatin1 encodes with ATOM_EXT, the atom tag of that codec's day.
func appendAtomsLatin1(t *testing.T, term Term) []byte {
	var b []byte
	parts := func(ts []Term) {
		for _, e := range ts {
			b = append(b, appendAtomsLatin1(t, e)...)
		}
	}
	switch term := term.(type) {
	case Atom:
		return append([]byte{TagAtom, 0, byte(len(term))}, term...)
	case Tuple:
		b = AppendTupleHeader(nil, len(term))
		parts(term)
		return b
	case List:
		b = AppendListHeader(nil, len(term))
		parts(term)
		return AppendNil(b)
	}
	return mustAppend(t, term)
}

// plain writes terms of either codec the same way.
func plain(t *testing.T, term any) string {
	join := func(ts []any) string {
		var s string
		for _, e := range ts {
			s += plain(t, e) + ","
		}
		return s
	}
	switch term := term.(type) {
	case Atom:
		return fmt.Sprintf("'%s'", string(term))
	case goerlang.Atom:
		return fmt.Sprintf("'%s'", string(term))
	case bool:
		return fmt.Sprintf("'%t'", term)
	case Tuple:
		var ts []any
		for _, e := range term {
			ts = append(ts, e)
		}
		return "{" + join(ts) + "}"
	case goerlang.Tuple:
		var ts []any
		for _, e := range term {
			ts = append(ts, e)
		}
		return "{" + join(ts) + "}"
	case List:
		var ts []any
		for _, e := range term {
			ts = append(ts, e)
		}
		return "[" + join(ts) + "]"
	case goerlang.List:
		var ts []any
		for _, e := range term {
			ts = append(ts, e)
		}
		return "[" + join(ts) + "]"
	case []byte:
		return fmt.Sprintf("<<%x>>", term)
	case float64:
		return fmt.Sprintf("%v.", term)
	case *big.Int:
		return term.String()
	case int, int64, uint8, int32, uint32:
		return fmt.Sprint(term)
	}
	t.Fatalf("%T", term)
	return ""
}
