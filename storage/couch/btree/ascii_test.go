package btree

import (
	"cmp"
	"math/rand/v2"
	"testing"

	"golang.org/x/text/collate"
	"golang.org/x/text/language"
)

// TestASCIIOrderIsTheCollators compares random strings, of few different characters so that
// beginnings are the same, with what the collator says.
func TestASCIIOrderIsTheCollators(t *testing.T) {
	o, c := newASCIIOrder(), collate.New(language.Und)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	random := func(alphabet string) []byte {
		b := make([]byte, rng.IntN(12))
		for i := range b {
			b[i] = alphabet[rng.IntN(len(alphabet))]
		}
		return b
	}
	all := make([]byte, 0x80)
	for i := range all {
		all[i] = byte(i)
	}
	taken := 0
	for i := range 200_000 {
		alphabet := []string{"aAbB", "aA-_ 1", "abc\x00", string(all), "Zz9.,", "ab\xc3\xa9"}[i%6]
		a, b := random(alphabet), random(alphabet)
		got, ok := o.compare(a, b)
		if !ok {
			continue
		}
		taken++
		if want := cmp.Compare(c.Compare(a, b), 0); got != want {
			t.Fatalf("%q and %q: %d, want %d", a, b, got, want)
		}
	}
	if taken < 100_000 {
		t.Errorf("only %d pairs were compared", taken)
	}
}
