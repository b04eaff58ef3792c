package etf

import (
	"reflect"
	"testing"
)

func TestRoundTrip(t *testing.T) {
	in := Tuple{Atom("ok"), int64(300), []byte("ab"), List{int64(1), Tuple{}}, Map{{Atom("k"), 1.5}}, Pid{"a@b", 1, 2, 3}}
	b, err := AppendTerm(nil, in)
	if err != nil {
		t.Fatal(err)
	}
	out, rest, err := Decode(append(b, 7), Limits{})
	if err != nil || len(rest) != 1 {
		t.Fatal(err, rest)
	}
	if rest, err := Skip(append(b, 7)); err != nil || len(rest) != 1 {
		t.Fatal(err, rest)
	}
	if b2, err := AppendTerm(nil, out); err != nil || !reflect.DeepEqual(b, b2) {
		t.Fatal(out, err)
	}
}
