package btree

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"scanode/etf"
)

// oddTerm appends a term in one of the forms that binary_to_term reads, not only in that
// which term_to_binary writes.
func oddTerm(dst []byte, rng *rand.Rand, depth int) []byte {
	kinds := 14
	if depth == 0 {
		kinds = 9
	}
	switch rng.IntN(kinds) {
	case 0:
		return append(dst, etf.TagSmallInteger, byte(rng.IntN(256)))
	case 1:
		v := int32(rng.IntN(600) - 300)
		if rng.IntN(4) == 0 {
			v = int32(rng.Uint32())
		}
		return binary.BigEndian.AppendUint32(append(dst, etf.TagInteger), uint32(v))
	case 2:
		n := rng.IntN(10)
		dst = append(dst, etf.TagSmallBig, byte(n), byte(rng.IntN(2)))
		for range n {
			dst = append(dst, []byte{0, 0, 0x7f, 0x80, 0xff, 1}[rng.IntN(6)])
		}
		return dst
	case 3:
		n := rng.IntN(10)
		dst = append(binary.BigEndian.AppendUint32(append(dst, etf.TagLargeBig), uint32(n)), byte(rng.IntN(2)))
		for range n {
			dst = append(dst, byte(rng.Uint32()))
		}
		return dst
	case 4:
		if rng.IntN(2) == 0 {
			return etf.AppendFloat64(dst, rng.NormFloat64())
		}
		text := [31]byte{}
		copy(text[:], "1.25000000000000000000e+00")
		return append(append(dst, etf.TagFloat), text[:]...)
	case 5:
		name := []string{"nil", "a", "ÿé", "Āx", strings.Repeat("Ā", 200), ""}[rng.IntN(6)]
		if rng.IntN(2) == 0 || len(name) > 255 {
			return append(binary.BigEndian.AppendUint16(append(dst, etf.TagAtomUTF8), uint16(len(name))), name...)
		}
		return append(append(dst, etf.TagSmallAtomUTF8, byte(len(name))), name...)
	case 6:
		if rng.IntN(2) == 0 {
			return append(dst, etf.TagSmallAtom, 2, 'x', 0xff)
		}
		return append(dst, etf.TagAtom, 0, 2, 'x', 0xff)
	case 7:
		n := rng.IntN(4)
		dst = append(dst, etf.TagString, 0, byte(n))
		return append(dst, "xyz"[:n]...)
	case 8:
		if rng.IntN(3) == 0 {
			return append(dst, etf.TagBitBinary, 0, 0, 0, 1, 3, 0xa0)
		}
		return etf.AppendBinary(dst, make([]byte, rng.IntN(5)))
	case 9, 10:
		n := rng.IntN(4)
		dst = binary.BigEndian.AppendUint32(append(dst, etf.TagLargeTuple), uint32(n))
		for range n {
			dst = oddTerm(dst, rng, depth-1)
		}
		return dst
	case 11:
		// Bytes, as a list; in one of four something else among them.
		n := rng.IntN(5)
		dst = binary.BigEndian.AppendUint32(append(dst, etf.TagList), uint32(n))
		for range n {
			if rng.IntN(4) == 0 {
				dst = oddTerm(dst, rng, 0)
			} else {
				dst = append(dst, etf.TagInteger, 0, 0, 0, byte(rng.Uint32()))
			}
		}
		return etf.AppendNil(dst)
	case 12:
		dst = append(dst, etf.TagMap, 0, 0, 0, 1)
		return oddTerm(oddTerm(dst, rng, depth-1), rng, depth-1)
	}
	n := rng.IntN(4)
	dst = binary.BigEndian.AppendUint32(append(dst, etf.TagList), uint32(n))
	for range n {
		dst = oddTerm(dst, rng, depth-1)
	}
	// Tails that are lists of some length are not for us: nobody writes them.
	return append(dst, [][]byte{{etf.TagNil}, {etf.TagNil}, {etf.TagString, 0, 0}, {etf.TagList, 0, 0, 0, 0, etf.TagNil}, {etf.TagSmallTuple, 0}}[rng.IntN(5)]...)
}

// TestFormIsTheBEAMs asks the BEAM to write random terms, which are encoded in all sorts of
// ways, as CouchDB has it do.
func TestFormIsTheBEAMs(t *testing.T) {
	if _, err := exec.LookPath("erl"); err != nil {
		t.Skip("no erl on PATH: nothing to compare with")
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	var terms [][]byte
	var lines strings.Builder
	for range 3000 {
		term := oddTerm(nil, rng, 4)
		terms = append(terms, term)
		lines.WriteString(hex.EncodeToString(versioned(term)) + "\n")
	}
	name := filepath.Join(t.TempDir(), "terms")
	if err := os.WriteFile(name, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	program := `{ok, B} = file:read_file(os:getenv("TERMS")),
		[io:format("~s~n", [binary:encode_hex(term_to_binary(binary_to_term(binary:decode_hex(L)), [{minor_version, 1}]))])
		 || L <- binary:split(B, <<"\n">>, [global, trim])], halt().`
	cmd := exec.Command("erl", "-noshell", "-eval", program)
	cmd.Env = append(os.Environ(), "TERMS="+name)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	answers := strings.Fields(string(out))
	if len(answers) != len(terms) {
		t.Fatalf("%d answers to %d terms", len(answers), len(terms))
	}
	for i, term := range terms {
		want, err := hex.DecodeString(answers[i])
		if err != nil {
			t.Fatal(err)
		}
		got, ok := canonical(term)
		if !ok || !bytes.Equal(got, want[1:]) {
			t.Errorf("%x becomes %x, %t, and to the BEAM %x", term, got, ok, want[1:])
		}
		if _, same := scan(want, 1); !same {
			t.Errorf("%x was written by the BEAM and is said to have another form", want[1:])
		}
	}
}
