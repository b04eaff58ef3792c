package etf

import (
	"bytes"
	"errors"
	"testing"
)

// addSeeds gives a fuzz target one term of every tag and a few wrong ones.
func addSeeds(f *testing.F, add func(b []byte)) {
	for tag, body := range smallest {
		add(append([]byte{tag}, body...))
	}
	add(row(1))
	add(nested("\x68\x01", 300, ""))
	add(nested("\x6c\x00\x00\x00\x01\x6a", 3, ""))
	add([]byte("\x74\x00\x00\x00\x02\x61\x01\x6a\x61\x01\x6a"))
	add([]byte("\x69\xff\xff\xff\xff\x6a"))
}

// FuzzSkip: the flat loop, the loop that watches the depth and the recursive
// walk agree on where the term ends and on what is wrong. Check and Decode
// accept only what Skip accepts, refuse only values and limits beyond it, and
// agree with each other but for the tags that nobody may be sent.
func FuzzSkip(f *testing.F) {
	addSeeds(f, func(b []byte) { f.Add(b) })
	f.Fuzz(func(t *testing.T, b []byte) {
		rest, err := Skip(b)
		deep, deepErr := skipDeep(b)
		if !bytes.Equal(rest, deep) || !sameKind(err, deepErr) {
			t.Fatalf("Skip %x, %v; skipDeep %x, %v", rest, err, deep, deepErr)
		}
		end, walkErr := walk(b, 0, 0, structure)
		if !sameKind(err, walkErr) || err == nil && end != len(b)-len(rest) {
			t.Fatalf("Skip %x, %v; walk %d, %v", rest, err, end, walkErr)
		}
		_, after, decodeErr := Decode(b, Limits{})
		switch {
		case decodeErr == nil && (err != nil || !bytes.Equal(rest, after)):
			t.Fatalf("Decode leaves %x; Skip %x, %v", after, rest, err)
		case err == nil && decodeErr != nil && !errors.Is(decodeErr, ErrValue) && !errors.Is(decodeErr, ErrLimit):
			t.Fatalf("Skip accepts, Decode says %v", decodeErr)
		}
		checked, checkErr := Check(b)
		if checkErr == nil && (decodeErr != nil && !errors.Is(decodeErr, ErrLimit) || !bytes.Equal(checked, rest)) {
			t.Fatalf("Check leaves %x; Skip %x; Decode: %v", checked, rest, decodeErr)
		}
		if decodeErr == nil && checkErr != nil && bytes.IndexByte(b, TagFun) < 0 && bytes.IndexByte(b, TagLocal) < 0 {
			t.Fatalf("Decode accepts, Check says %v", checkErr)
		}
	})
}

// sameKind reports whether both errors are nil or wrap the same of ours.
func sameKind(a, b error) bool {
	for _, kind := range []error{ErrTruncated, ErrTag, ErrLimit, ErrRange, ErrValue, ErrCompressed} {
		if errors.Is(a, kind) != errors.Is(b, kind) {
			return false
		}
	}
	return (a == nil) == (b == nil)
}

// FuzzDecode: decoding, encoding and decoding again changes nothing; the term
// encoded is == to the bytes it came from; there are no more parts than allowed.
func FuzzDecode(f *testing.F) {
	addSeeds(f, func(b []byte) { f.Add(b) })
	f.Fuzz(func(t *testing.T, b []byte) {
		lim := Limits{Count: 1000, Bytes: 1 << 16}
		term, rest, err := Decode(b, lim)
		if err != nil {
			return
		}
		if n := parts(term); n > lim.Count {
			t.Fatalf("%d parts", n)
		}
		once, err := AppendTerm(nil, term)
		if err != nil {
			if bytes.IndexByte(b, TagFun) < 0 && bytes.IndexByte(b, TagLocal) < 0 {
				t.Fatalf("AppendTerm(%v): %v", term, err)
			}
			return
		}
		again, none, err := Decode(once, Limits{})
		if err != nil || len(none) > 0 {
			t.Fatalf("Decode(%x): %x, %v", once, none, err)
		}
		if twice := mustAppend(t, again); !bytes.Equal(once, twice) {
			t.Fatalf("%x, then %x", once, twice)
		}
		r, err := Compare(b[:len(b)-len(rest)], once)
		if (err != nil || r != 0) && !errors.Is(err, ErrTag) && !errors.Is(err, ErrLimit) {
			t.Fatalf("Compare(%x, %x) = %d, %v", b, once, r, err)
		}
	})
}

// parts counts the terms in t, t aside.
func parts(t Term) int {
	ts := partsOf(t)
	n := len(ts)
	for _, e := range ts {
		n += parts(e)
	}
	return n
}

// partsOf returns the terms that t is made of.
func partsOf(t Term) (ts []Term) {
	switch t := t.(type) {
	case Tuple:
		return t
	case List:
		return t
	case Improper:
		return append(append(ts, t.Elems...), t.Tail)
	case Map:
		for _, p := range t {
			ts = append(ts, p.Key, p.Value)
		}
	}
	return ts
}

// FuzzCompare: on terms, Compare is a total preorder: reflexive, antisymmetric,
// transitive; on other bytes it returns.
func FuzzCompare(f *testing.F) {
	var seeds [][]byte
	addSeeds(f, func(b []byte) { seeds = append(seeds, b) })
	for i := range seeds {
		f.Add(seeds[i], seeds[(i+1)%len(seeds)], seeds[(i+2)%len(seeds)])
	}
	f.Fuzz(func(t *testing.T, a, b, c []byte) {
		for _, x := range [][]byte{a, b, c} {
			if _, err := Check(x); err != nil {
				Compare(a, b)
				Compare(b, a)
				return
			}
		}
		ab, err1 := Compare(a, b)
		ba, err2 := Compare(b, a)
		bc, err3 := Compare(b, c)
		ac, err4 := Compare(a, c)
		aa, err5 := Compare(a, a)
		for _, err := range []error{err1, err2, err3, err4, err5} {
			if err != nil {
				if !errors.Is(err, ErrLimit) && !errors.Is(err, ErrTag) {
					t.Fatal(err)
				}
				return
			}
		}
		if aa != 0 {
			t.Errorf("%x is not equal to itself: %d", a, aa)
		}
		if ab != -ba {
			t.Errorf("%x, %x: %d one way, %d the other", a, b, ab, ba)
		}
		if ab <= 0 && bc <= 0 && ac > 0 || ab >= 0 && bc >= 0 && ac < 0 || ab == 0 && ac != bc {
			t.Errorf("%x, %x, %x: %d, %d, but %d", a, b, c, ab, bc, ac)
		}
	})
}
