package etf

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"os/exec"
	"testing"
)

// beam is testdata/beam.escript running.
type beam struct {
	t   testing.TB
	in  io.WriteCloser
	out *bufio.Reader
}

func startBeam(t testing.TB) *beam {
	t.Helper()
	if _, err := exec.LookPath("escript"); err != nil {
		t.Skip("no escript on PATH: nothing to compare with")
	}
	cmd := exec.Command("escript", "testdata/beam.escript")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	return &beam{t, in, bufio.NewReader(out)}
}

// ask sends one request and returns the answer, nil if the BEAM refused.
func (e *beam) ask(command byte, request ...[]byte) []byte {
	e.t.Helper()
	body := append([]byte{command}, bytes.Join(request, nil)...)
	frame := append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
	if _, err := e.in.Write(frame); err != nil {
		e.t.Fatal(err)
	}
	var size [4]byte
	if _, err := io.ReadFull(e.out, size[:]); err != nil {
		e.t.Fatal(err)
	}
	answer := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(e.out, answer); err != nil {
		e.t.Fatal(err)
	}
	if answer[0] == 0 {
		return nil
	}
	return answer[1:]
}

// compare returns the BEAM's order and whether the terms are =:=.
func (e *beam) compare(a, b []byte) (order int, same bool) {
	e.t.Helper()
	answer := e.ask(2, binary.BigEndian.AppendUint32(nil, uint32(len(a))), a, b)
	if answer == nil {
		e.t.Fatalf("the BEAM refused %x or %x", a, b)
	}
	return int(answer[0]) - 1, answer[1] == 1
}

// TestBeamReads: what AppendTerm writes, the BEAM reads, and what it writes back
// is the same term; however a term is encoded, Decode and the BEAM agree on it.
func TestBeamReads(t *testing.T) {
	e, r := startBeam(t), newRand(t)
	for range 2000 {
		term := randomTerm(r, 30)
		b := mustAppend(t, term)
		back := e.ask(1, b)
		if back == nil {
			t.Fatalf("the BEAM refused %x, %v", b, term)
		}
		checkSame(t, e, b, back)
		variant := appendVariant(nil, r, term)
		if _, same := e.compare(b, variant); !same {
			t.Fatalf("variant is another term: %x, %x", b, variant)
		}
		checkSame(t, e, b, variant)
	}
}

// checkSame decodes b, encodes it again and asks whether that is want.
func checkSame(t *testing.T, e *beam, want, b []byte) {
	t.Helper()
	if rest, err := Check(b); err != nil || len(rest) > 0 {
		t.Fatalf("Check(%x): %x, %v", b, rest, err)
	}
	term, rest, err := Decode(b, Limits{})
	if err != nil || len(rest) > 0 {
		t.Fatalf("Decode(%x): %x, %v", b, rest, err)
	}
	again := mustAppend(t, term)
	if _, same := e.compare(want, again); !same {
		t.Fatalf("%x is %x after decoding and encoding", b, again)
	}
}

// TestBeamWrites: terms made by the BEAM survive decoding and encoding.
func TestBeamWrites(t *testing.T) {
	e, r := startBeam(t), newRand(t)
	for range 2000 {
		b := e.ask(3, binary.BigEndian.AppendUint32(nil, r.Uint32()), []byte{byte(1 + r.IntN(40))})
		checkSame(t, e, b, b)
	}
}

// TestBeamOrders: Compare is <, == and > of the BEAM.
func TestBeamOrders(t *testing.T) {
	e, r := startBeam(t), newRand(t)
	equal := 0
	for range 6000 {
		a, b := similar(r)
		x, y := appendVariant(nil, r, a), appendVariant(nil, r, b)
		got, err := Compare(x, y)
		if err != nil {
			t.Fatalf("Compare(%x, %x): %v", x, y, err)
		}
		want, _ := e.compare(x, y)
		if got != want {
			t.Fatalf("Compare(%x, %x) = %d, the BEAM says %d: %v, %v", x, y, got, want, a, b)
		}
		if got == 0 {
			equal++
		}
	}
	t.Logf("%d equal", equal)
}

// similar returns two terms that are likely to differ late or not at all.
func similar(r *rand.Rand) (a, b Term) {
	a = randomTerm(r, 12)
	switch r.IntN(4) {
	case 0:
		return a, randomTerm(r, 12)
	case 1:
		return a, mutate(r, a)
	case 2:
		return randomNumber(r), randomNumber(r)
	}
	l := make([]Term, 1+r.IntN(3))
	m := make([]Term, 1+r.IntN(3))
	for _, ts := range [][]Term{l, m} {
		for i := range ts {
			ts[i] = int64(r.IntN(3))
			if r.IntN(4) == 0 {
				ts[i] = randomNumber(r)
			}
		}
	}
	if r.IntN(2) == 0 {
		x, y := pairsOf(l), pairsOf(m)
		return x, y
	}
	return List(l), List(m)
}

// pairsOf returns a map with keys from ts.
func pairsOf(ts []Term) Term {
	m := Map{}
	for i, k := range ts {
		next := append(m[:len(m):len(m)], Pair{k, ts[len(ts)-1-i]})
		if _, err := AppendTerm(nil, next); err == nil {
			m = next
		}
	}
	return m
}

func randomNumber(r *rand.Rand) Term {
	switch r.IntN(4) {
	case 0:
		return float64(r.IntN(4))
	case 1:
		return randomFloat(r)
	case 2:
		return randomBig(r)
	}
	return int64(r.IntN(4))
}

// mutate changes one leaf of t, or turns an integer into the equal float.
func mutate(r *rand.Rand, t Term) Term {
	switch t := t.(type) {
	case Tuple:
		if len(t) > 0 {
			out := append(Tuple{}, t...)
			i := r.IntN(len(t))
			out[i] = mutate(r, t[i])
			return out
		}
	case List:
		if len(t) > 0 {
			out := append(List{}, t...)
			i := r.IntN(len(t))
			out[i] = mutate(r, t[i])
			return out
		}
	case Map:
		if len(t) > 0 {
			out := append(Map{}, t...)
			i := r.IntN(len(t))
			out[i].Value = mutate(r, t[i].Value)
			return out
		}
	case int64:
		if t == int64(float64(t)) && t != -1<<63 && t < 1<<62 {
			return float64(t)
		}
	}
	if r.IntN(2) == 0 {
		return t
	}
	return randomLeaf(r)
}

// TestBeamRefuses: Check accepts no mutated term that the BEAM refuses.
func TestBeamRefuses(t *testing.T) {
	e, r := startBeam(t), newRand(t)
	accepted, stricter := 0, 0
	for range 6000 {
		b := appendVariant(nil, r, randomTerm(r, 10))
		for range 1 + r.IntN(2) {
			b[r.IntN(len(b))] = byte(r.Uint32())
		}
		rest, err := Check(b)
		ok := err == nil && len(rest) == 0
		if !ok && trusted(b) {
			continue
		}
		beam := e.ask(1, b) != nil
		switch {
		case ok && !beam:
			t.Fatalf("Check accepts %x, the BEAM does not", b)
		case ok:
			accepted++
			checkSame(t, e, b, b)
		case beam:
			// The BEAM ignores the size of a fun and takes references of no
			// words, arities of other widths, and a comma in a float.
			if stricter++; bytes.IndexByte(b, TagNewFun) < 0 && bytes.IndexByte(b, TagNewerReference) < 0 &&
				bytes.IndexByte(b, TagExport) < 0 && bytes.IndexByte(b, TagFloat) < 0 {
				t.Fatalf("only the BEAM accepts %x: %v", b, err)
			}
		}
	}
	t.Logf("%d accepted by both, %d by the BEAM only", accepted, stricter)
}

// trusted reports bytes that, if they were a tag, would make the BEAM trust what
// follows: tags of its own that stand for pointers and table entries, and
// references of thousands of words.
func trusted(b []byte) bool {
	for i, c := range b {
		switch c {
		case 'D', 'I', 'J', 'K', 'L', 'R':
			return true
		case TagNewReference, TagNewerReference:
			if i+2 < len(b) && (b[i+1] > 0 || b[i+2] > 100) {
				return true
			}
		}
	}
	return false
}
