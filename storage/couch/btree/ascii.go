package btree

import (
	"cmp"
	"slices"

	"golang.org/x/text/collate"
	"golang.org/x/text/language"
)

// asciiOrder is the root collation for strings of ASCII characters that weigh something, which
// most keys are, from tables: ten times as fast as the collator it is made with. Among those
// no character changes what another weighs, and there are two levels: which characters, and,
// if they are the same, the case of the first that differs.
type asciiOrder struct {
	letter [256]uint8 // rank without regard to case; 0 for what has no place here
	exact  [256]uint8 // rank with regard to case
}

// newASCIIOrder asks a collator about all characters one by one.
func newASCIIOrder() *asciiOrder {
	o := &asciiOrder{}
	exact := collate.New(language.Und)
	letter := collate.New(language.Und, collate.IgnoreCase)
	var chars []string
	for c := range 0x80 {
		// What is equal to nothing is ignored, and needs the collator.
		if s := string(rune(c)); exact.CompareString(s, "") != 0 {
			chars = append(chars, s)
		}
	}
	rank := func(c *collate.Collator, into *[256]uint8) {
		slices.SortStableFunc(chars, c.CompareString)
		n := uint8(0)
		for i, s := range chars {
			if i == 0 || c.CompareString(chars[i-1], s) != 0 {
				n++
			}
			into[s[0]] = n
		}
	}
	rank(letter, &o.letter)
	rank(exact, &o.exact)
	return o
}

// compare compares two strings. ok is false if they are not for this order.
func (o *asciiOrder) compare(a, b []byte) (c int, ok bool) {
	n := min(len(a), len(b))
	first := n // where the letters differ
	for i := range n {
		x, y := o.letter[a[i]], o.letter[b[i]]
		if x == 0 || y == 0 {
			return 0, false
		}
		if x != y && first == n {
			first = i
		}
	}
	for _, rest := range [][]byte{a[n:], b[n:]} {
		for _, char := range rest {
			if o.letter[char] == 0 {
				return 0, false
			}
		}
	}
	if first < n {
		return cmp.Compare(o.letter[a[first]], o.letter[b[first]]), true
	}
	if len(a) != len(b) {
		return cmp.Compare(len(a), len(b)), true
	}
	for i := range n {
		if a[i] != b[i] {
			return cmp.Compare(o.exact[a[i]], o.exact[b[i]]), true
		}
	}
	return 0, true
}
