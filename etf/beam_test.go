package etf

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// beam is testdata/beam.escript running.
type beam struct {
	t       testing.TB
	release int
	in      io.WriteCloser
	out     *bufio.Reader
}

// startBeam starts the script with the release that is on PATH.
func startBeam(t testing.TB) *beam {
	t.Helper()
	if _, err := exec.LookPath("escript"); err != nil {
		t.Skip("no escript on PATH: nothing to compare with")
	}
	return startCommand(t, exec.Command("escript", "testdata/beam.escript"))
}

// startRelease starts the script with a release that scripts/otp has installed.
// That sees its own files only, so the script is copied there.
func startRelease(t testing.TB, release string) *beam {
	t.Helper()
	otp, err := filepath.Abs("../scripts/otp")
	if err != nil {
		t.Fatal(err)
	}
	root, err := exec.Command(otp, "root", release).Output()
	if err != nil {
		t.Fatalf("scripts/otp root %s: %v", release, err)
	}
	script, err := os.ReadFile("testdata/beam.escript")
	if err != nil {
		t.Fatal(err)
	}
	in := strings.TrimSpace(string(root))
	dir, err := os.MkdirTemp(filepath.Join(in, "tmp"), "scanode-etf-")
	if err != nil {
		t.Fatalf("OTP %s is not installed, or not for this user; scripts/otp %s does that: %v", release, release, err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "beam.escript")
	if err := os.WriteFile(path, script, 0o600); err != nil {
		t.Fatal(err)
	}
	inside, err := filepath.Rel(in, path)
	if err != nil {
		t.Fatal(err)
	}
	return startCommand(t, exec.Command(otp, "exec", release, "escript", "/"+inside))
}

func startCommand(t testing.TB, cmd *exec.Cmd) *beam {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	e := &beam{t: t, in: in, out: bufio.NewReader(out)}
	if e.release, err = strconv.Atoi(string(e.ask(6))); err != nil {
		t.Fatal(err)
	}
	return e
}

// eachRelease runs test with every release that SCANODE_OTP names, as in "25
// 27", or with the one on PATH.
func eachRelease(t *testing.T, test func(t *testing.T, e *beam, r *rand.Rand)) {
	releases := strings.Fields(os.Getenv("SCANODE_OTP"))
	if len(releases) == 0 {
		test(t, startBeam(t), newRand(t))
	}
	for _, release := range releases {
		t.Run("OTP"+release, func(t *testing.T) { test(t, startRelease(t, release), newRand(t)) })
	}
}

// share returns the number of terms to try: all of them when SCANODE_INTEROP is
// full.
func share(few, full int) int {
	if os.Getenv("SCANODE_INTEROP") == "full" {
		return full
	}
	return few
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
		for _, x := range [][]byte{a, b} {
			if e.ask(1, x) == nil {
				e.t.Fatalf("the BEAM refused %x", x)
			}
		}
		e.t.Fatalf("the BEAM compares neither %x nor %x", a, b)
	}
	return int(answer[0]) - 1, answer[1] == 1
}

// TestBeamReads: what AppendTerm writes, the BEAM reads, and what it writes back
// is the same term; however a term is encoded, Decode and the BEAM agree on it.
func TestBeamReads(t *testing.T) {
	eachRelease(t, func(t *testing.T, e *beam, r *rand.Rand) {
		n := 0
		for range share(2000, 20000) {
			term := e.randomTerm(r, 30)
			if e.isNew(term) {
				continue
			}
			n++
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
		t.Logf("%d terms", n)
	})
}

// randomTerm returns a term of every kind that this release has.
func (e *beam) randomTerm(r *rand.Rand, size int) Term {
	if e.release >= 29 && r.IntN(6) == 0 {
		return Tuple{randomRecord(r, size/2), randomTerm(r, size/2)}
	}
	return randomTerm(r, size)
}

// isNew reports what a BEAM before OTP 24 refuses: pids and references with
// more bits and words than it makes itself, and new encodings of ports.
func (e *beam) isNew(t Term) bool {
	if e.release >= 24 {
		return false
	}
	switch t := t.(type) {
	case Pid:
		return t.ID >= 1<<15 || t.Serial >= 1<<13
	case Port:
		return true // perhaps written as V4_PORT_EXT
	case Ref:
		return t.Len > 3 || t.ID[0] >= 1<<18
	case Opaque: // what a fun holds is not looked into
		return bytes.ContainsAny(t[1:], "\x58\x59\x5a\x65\x66\x67\x72\x78")
	}
	for _, p := range partsOf(t) {
		if e.isNew(p) {
			return true
		}
	}
	return false
}

// TestBeamWrites: terms made by the BEAM survive decoding and encoding.
func TestBeamWrites(t *testing.T) {
	eachRelease(t, func(t *testing.T, e *beam, r *rand.Rand) {
		records := 0
		for range share(2000, 10000) {
			b := e.ask(3, binary.BigEndian.AppendUint32(nil, r.Uint32()), []byte{byte(1 + r.IntN(40))})
			checkSame(t, e, b, b)
			if bytes.IndexByte(b, TagRecord) >= 0 {
				records++
			}
		}
		t.Logf("%d with a native record, perhaps", records)
	})
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

// TestBeamOrders: Compare is <, == and > of the BEAM.
func TestBeamOrders(t *testing.T) {
	eachRelease(t, func(t *testing.T, e *beam, r *rand.Rand) {
		equal, versions, n := 0, 0, 0
		for range share(6000, 100000) {
			a, b := e.similar(r)
			if e.isNew(a) || e.isNew(b) {
				continue
			}
			n++
			x, y := appendVariant(nil, r, a), appendVariant(nil, r, b)
			got, err := Compare(x, y)
			if err != nil {
				t.Fatalf("Compare(%x, %x): %v", x, y, err)
			}
			want, _ := e.compare(x, y)
			if got != want && e.release >= 29 && bytes.IndexByte(x, TagNewFun) >= 0 && bytes.IndexByte(y, TagNewFun) >= 0 {
				// Two versions of one fun, which this release does not order.
				versions++
				continue
			}
			if got != want {
				t.Fatalf("Compare(%x, %x) = %d, the BEAM says %d: %v, %v", x, y, got, want, a, b)
			}
			if got == 0 {
				equal++
			}
		}
		t.Logf("%d pairs, %d equal, %d perhaps of two versions of a fun", n, equal, versions)
	})
}

// TestBeamZeros: 0.0 and -0.0 are equal everywhere but, from OTP 27 on, as keys
// of maps. Compare and Check are as before, so that no release refuses what Check
// accepts.
func TestBeamZeros(t *testing.T) {
	eachRelease(t, func(t *testing.T, e *beam, _ *rand.Rand) {
		plus, minus := mustAppend(t, 0.0), mustAppend(t, math.Copysign(0, -1))
		if order, same := e.compare(plus, minus); order != 0 || same != (e.release < 27) {
			t.Errorf("the BEAM says %d and %v", order, same)
		}
		if r, err := Compare(plus, minus); r != 0 || err != nil {
			t.Errorf("Compare: %d, %v", r, err)
		}
		checkSame(t, e, minus, minus)
		both := AppendMapHeader(nil, 2)
		both = append(append(both, plus...), TagNil)
		both = append(append(both, minus...), TagNil)
		if accepted := e.ask(1, both) != nil; accepted != (e.release >= 27) {
			t.Errorf("the BEAM accepts both zeros as keys of a map: %v", accepted)
		}
		if _, err := Check(both); err == nil {
			t.Error("Check accepts both zeros as keys of a map")
		}
	})
}

// similar is the function similar, and records where the release has them.
func (e *beam) similar(r *rand.Rand) (a, b Term) {
	if e.release >= 29 && r.IntN(4) == 0 {
		a, b = similar(r)
		x, y := randomRecord(r, 8), randomRecord(r, 8)
		switch r.IntN(3) {
		case 0:
			return List{x, a}, List{x, b}
		case 1:
			return x, b
		}
		return x, y
	}
	return similar(r)
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
	eachRelease(t, func(t *testing.T, e *beam, r *rand.Rand) {
		accepted, stricter := 0, 0
		for range share(6000, 100000) {
			b := appendVariant(nil, r, e.randomTerm(r, 10))
			for range 1 + r.IntN(2) {
				b[r.IntN(len(b))] = byte(r.Uint32())
			}
			rest, err := Check(b)
			ok := err == nil && len(rest) == 0
			// OTP 23 dies of some bytes: it is asked about what it could be sent.
			if !ok && (e.release < 24 || trusted(b)) {
				continue
			}
			beam := e.ask(1, b) != nil
			switch {
			case ok && !beam:
				term, _, err := Decode(b, Limits{})
				if err != nil {
					t.Fatalf("Check accepts %x, Decode does not: %v", b, err)
				}
				if !e.isNew(term) && (e.release >= 29 || bytes.IndexByte(b, TagRecord) < 0) {
					t.Fatalf("Check accepts %x, the BEAM does not", b)
				}
			case ok:
				accepted++
				checkSame(t, e, b, b)
			case beam:
				if stricter++; !mayBeStricter(b) {
					t.Fatalf("only the BEAM accepts %x: %v", b, err)
				}
			}
		}
		t.Logf("%d accepted by both, %d by the BEAM only", accepted, stricter)
	})
}

// mayBeStricter reports tags of which the BEAM accepts more than Check: it
// ignores the size of a fun and takes references of no words, arities of other
// widths, and a comma in a float.
func mayBeStricter(b []byte) bool {
	return bytes.ContainsAny(b, string([]byte{TagNewFun, TagNewerReference, TagExport, TagFloat}))
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
