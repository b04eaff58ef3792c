package etf

import (
	"bytes"
	"encoding/hex"
	"os"
	"strings"
	"testing"
)

const vectors = "../erl_test/testdata/"

// readVectors returns the words of each line that the BEAM has written.
func readVectors(t *testing.T, name string) [][]string {
	t.Helper()
	text, err := os.ReadFile(vectors + name)
	if err != nil {
		t.Fatal(err)
	}
	var lines [][]string
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 0 && words[0] != "#" {
			lines = append(lines, words)
		}
	}
	if len(lines) == 0 {
		t.Fatalf("no vectors in %s", name)
	}
	return lines
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestVectorTerms: for every recorded encoding, Check and Decode accept what the
// BEAM accepts and find the term it finds.
func TestVectorTerms(t *testing.T) {
	for _, v := range readVectors(t, "etf_terms.txt") {
		name, b := v[0], unhex(t, v[1])
		rest, checkErr := Check(append(b, 0xff))
		term, _, err := Decode(b, Limits{})
		if v[2] == "refused" || name == "compressed" {
			if checkErr == nil {
				t.Errorf("%s: Check accepts %x", name, b)
			}
			if err == nil && b[0] != TagFun {
				t.Errorf("%s: Decode accepts %x as %v", name, b, term)
			}
			continue
		}
		if checkErr != nil || len(rest) != 1 || err != nil {
			t.Errorf("%s: Check leaves %x, %v; Decode: %v", name, rest, checkErr, err)
			continue
		}
		want, _, err := Decode(unhex(t, v[2]), Limits{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		// Funs are carried as they came: compare what they are.
		got, same := mustAppend(t, term), mustAppend(t, want)
		if r, err := Compare(got, same); !bytes.Equal(got, same) && (b[0] != TagNewFun || r != 0 || err != nil) {
			t.Errorf("%s: %x, the BEAM says %x", name, got, same)
		}
	}
}

// TestVectorOrder: Compare agrees with lists:sort about every two terms.
func TestVectorOrder(t *testing.T) {
	lines := readVectors(t, "etf_order.txt")
	terms := make([][]byte, len(lines))
	rank := make([]int, len(lines))
	for i, v := range lines {
		terms[i] = unhex(t, v[1])
		if rank[i] = i; v[0] == "=" {
			rank[i] = rank[i-1]
		}
	}
	for i, a := range terms {
		for j, b := range terms {
			got, err := Compare(a, b)
			if err != nil {
				t.Fatal(err)
			}
			if want := sgn(rank[i] - rank[j]); got != want {
				t.Errorf("Compare(%x, %x) = %d, want %d", a, b, got, want)
			}
		}
	}
}

func sgn(v int) int {
	switch {
	case v < 0:
		return -1
	case v > 0:
		return 1
	}
	return 0
}
