package btree

import (
	"bytes"
	"testing"
)

// TestSeparator tries all pairs of short strings of few letters. The oracle is the search
// for the shortest string among all that are as long.
func TestSeparator(t *testing.T) {
	letters := []byte{0, 1, 'a', 'b', 0xFE, 0xFF}
	all := [][]byte{{}}
	for at := 0; len(all[at]) < 3; at++ {
		for _, c := range letters {
			all = append(all, append(bytes.Clone(all[at]), c))
		}
	}
	for _, a := range all {
		for _, b := range all {
			if bytes.Compare(a, b) >= 0 {
				continue
			}
			shortest := len(a)
			for _, s := range all {
				if len(s) < shortest && bytes.Compare(a, s) <= 0 && bytes.Compare(s, b) < 0 {
					shortest = len(s)
				}
			}
			s := separator(stringTerm(string(a)), stringTerm(string(b)))
			if s == nil {
				s = stringTerm(string(a))
			}
			s = s[5:]
			if bytes.Compare(a, s) > 0 || bytes.Compare(s, b) >= 0 || len(s) > shortest {
				t.Fatalf("%x is between %x and %x, %d bytes do", s, a, b, shortest)
			}
		}
	}
}
