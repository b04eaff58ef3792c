package etftext

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"flag"
	"io"
	"math"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"scanode/etf"
)

var seedFlag = flag.Uint64("seed", 0, "seed of random terms; 0 picks one")

func newRand(t testing.TB) *rand.Rand {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-seed=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// startBeam starts the script of package etf and returns how to ask it.
func startBeam(t testing.TB) (ask func(command byte, request []byte) []byte) {
	t.Helper()
	if _, err := exec.LookPath("escript"); err != nil {
		t.Skip("no escript on PATH: nothing to compare with")
	}
	cmd := exec.Command("escript", "../testdata/beam.escript")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := cmd.StdoutPipe()
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
	out := bufio.NewReader(pipe)
	return func(command byte, request []byte) []byte {
		t.Helper()
		frame := binary.BigEndian.AppendUint32(nil, uint32(len(request)+1))
		if _, err := in.Write(append(append(frame, command), request...)); err != nil {
			t.Fatal(err)
		}
		var size [4]byte
		if _, err := io.ReadFull(out, size[:]); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, binary.BigEndian.Uint32(size[:]))
		if _, err := io.ReadFull(out, answer); err != nil {
			t.Fatal(err)
		}
		if answer[0] == 0 {
			return nil
		}
		return answer[1:]
	}
}

// randomTerm returns a literal term. Maps have one key at most: the BEAM prints
// more in an order of its own.
func randomTerm(r *rand.Rand, size int) etf.Term {
	if size > 1 && r.IntN(2) == 0 {
		ts := make([]etf.Term, r.IntN(4))
		for i := range ts {
			ts[i] = randomTerm(r, size/len(ts))
		}
		switch k := r.IntN(4); {
		case k == 0:
			return etf.Tuple(ts)
		case k == 1 && len(ts) > 0:
			return etf.Map{{Key: ts[0], Value: ts[len(ts)-1]}}
		case k == 2 && len(ts) > 0:
			return etf.Improper{Elems: ts, Tail: etf.Atom("tail")}
		}
		return etf.List(ts)
	}
	switch r.IntN(8) {
	case 0:
		return int64(r.Uint64()) >> r.IntN(64)
	case 1:
		return randomFloat(r)
	case 2:
		return etf.Atom(randomText(r))
	case 3:
		return []byte(randomText(r))
	case 4:
		b := make([]byte, r.IntN(6))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	case 5:
		return etf.Bitstring{Bytes: []byte{byte(r.Uint32()), 0xa0}, Bits: 3}
	case 6:
		var l etf.List
		for _, c := range randomText(r) {
			l = append(l, int64(c))
		}
		return l
	}
	// The BEAM quotes names in funs by other rules than atoms, and prints those
	// beyond ASCII byte by byte.
	return etf.Export{Module: []etf.Atom{"m", "A b", "m_1"}[r.IntN(3)], Function: "f", Arity: 3}
}

func randomText(r *rand.Rand) string {
	words := []string{"", "a", "aZ_@1", "A", "_", "fun", "if", "maybe", "é", "ÿ÷", "×", "ß", "日本", "𝄞", "two words", "'", "\"", "\\",
		"\n\t\b\v\f\r\x1b", "\x7f", "\x00", "\u0085", "\u00a0", "\u00ad", "\ufffd", "\ue000", "%", "|", ">>"}
	s := ""
	for range 1 + r.IntN(3) {
		s += words[r.IntN(len(words))]
	}
	return s
}

func randomFloat(r *rand.Rand) float64 {
	for {
		f := math.Float64frombits(r.Uint64())
		switch r.IntN(4) {
		case 0:
			f = math.Round(r.NormFloat64()*1000) / 1000
		case 1:
			f = float64(1+r.IntN(999)) * math.Pow10(r.IntN(40)-20)
		case 2:
			f = math.Ldexp(float64(r.IntN(1000)-500), r.IntN(60))
		}
		if !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f
		}
	}
}

// TestBeamPrints: Format is ~0tp, and the BEAM's parser reads it as the term.
func TestBeamPrints(t *testing.T) {
	ask, r := startBeam(t), newRand(t)
	for range 3000 {
		term := randomTerm(r, 12)
		b, err := etf.AppendTerm(nil, term)
		if err != nil {
			t.Fatal(err)
		}
		text := Format(term)
		if want := string(ask(4, b)); text != want {
			t.Fatalf("%x:\n%s, the BEAM prints\n%s", b, text, want)
		}
		read := ask(5, []byte(text))
		if read == nil {
			t.Fatalf("the BEAM does not read %s", text)
		}
		if r, err := etf.Compare(b, read); err != nil || r != 0 {
			t.Fatalf("the BEAM reads %s as %x, not %x, %v", text, read, b, err)
		}
	}
}

// TestBeamParses: Parse reads what erl_scan and erl_parse read, as they do.
func TestBeamParses(t *testing.T) {
	ask := startBeam(t)
	for _, text := range []string{
		"16#fF", "-2#101", "36#zz", "1_000", "16#f_f", "$a", "$\\n", "$\\s", "$\\x41", "$\\x{1F600}", "$\\101", "-$a", "+5",
		"1.5", "-1.5e-3", "1.0E5", "1_0.5", "1.0e400", "1e5", "01", "{}", "{ a , b }", "[]", "[a|b]", "[a,b|[c]]", "[[1]|2]", "[1|[2|3]]",
		`"abc"`, `"\x{e9}é"`, `""`, `"a\
b"`, `'a b'`, `''`, "aB@_1", "<<>>", "<<1,2:3>>", "<<5:3,1:5>>", "<<-1:4>>", `<<"abc">>`, `<<"é">>`, `<<"é"/utf8>>`, `<<1:4,"a">>`,
		"<<256>>", "<<1:0>>", "#{}", "#{a=>1,b => 2}", "#{1=>a,1.0=>b}", "fun lists:map/2", "fun 'A':b/0", "a % comment\n", "[a,%x\nb]",
		"$\\^a", "<< 1 , 2 >>", "<<1:64>>", "123456789012345678901234567890", "a.b", "{a", "a b", "]", "", "A", "if", "{,}", "[a|b|c]", "[|a]",
		"#{a}", "<<a>>", "'a", `"a`, "37#1", "1#0", "2#2", "1__0", "-a", "fun a:b", "$", "$\\^@", "<<1.5>>", `"\xZZ"`,
	} {
		want := ask(5, []byte(text))
		got, err := Parse(text)
		if (err == nil) != (want != nil) {
			t.Errorf("%q: %v, %v; the BEAM reads %x", text, got, err, want)
			continue
		}
		if err != nil {
			if e, ok := err.(*Error); !ok || e.Line < 1 || e.Column < 1 || e.Error() == "" {
				t.Errorf("%q: error without position: %v", text, err)
			}
			continue
		}
		b, err := etf.AppendTerm(nil, got)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if r, err := etf.Compare(b, want); err != nil || r != 0 || bytes.Contains(b, []byte{etf.TagNewFloat}) != strings.ContainsAny(text, ".") {
			t.Errorf("%q: %x, the BEAM reads %x, %v", text, b, want, err)
		}
	}
}
