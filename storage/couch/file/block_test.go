package file

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// naiveWrite puts content at offset off of a file byte by byte: a tag comes
// wherever the offset is a multiple of the block size, also right behind the last
// byte.
func naiveWrite(off int64, content []byte) []byte {
	var out []byte
	tag := func() {
		if (off+int64(len(out)))%4096 == 0 {
			out = append(out, 0)
		}
	}
	tag()
	for _, c := range content {
		out = append(out, c)
		tag()
	}
	return out
}

// naiveRead reads n bytes of content at offset off of file byte by byte. It
// returns fewer when the file ends before.
func naiveRead(file []byte, off, n int64) []byte {
	var out []byte
	for ; int64(len(out)) < n && off < int64(len(file)); off++ {
		if off%4096 != 0 {
			out = append(out, file[off])
		}
	}
	return out
}

// edges draws offsets and lengths, most of them near block edges.
func edges(most int64) *rapid.Generator[int64] {
	return rapid.Custom(func(t *rapid.T) int64 {
		n := rapid.Int64Range(0, most/4096).Draw(t, "blocks")*4096 + rapid.Int64Range(-8, 8).Draw(t, "near")
		if rapid.IntRange(0, 3).Draw(t, "far") == 0 {
			n = rapid.Int64Range(0, most).Draw(t, "any")
		}
		return max(0, n)
	})
}

func pattern(n int64) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i%251 + 2) // never like a tag
	}
	return b
}

// TestBlocks compares blocks with those written and read byte by byte.
func TestBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		off := edges(3*4096).Draw(t, "offset")
		content := pattern(edges(4*4096).Draw(t, "length"))
		cut := rapid.IntRange(0, len(content)).Draw(t, "cut")
		skip := rapid.IntRange(0, min(20, len(content))).Draw(t, "skip")

		want := naiveWrite(off, content)
		prefix := []byte("before")
		got := appendBlocks(prefix, off, content)[len(prefix):]
		if !bytes.Equal(got, want) {
			t.Fatalf("%d bytes, want %d", len(got), len(want))
		}
		parts := appendBlocks(nil, off, content[:cut])
		parts = appendBlocks(parts, off+int64(len(parts)), content[cut:])
		if !bytes.Equal(parts, want) {
			t.Fatalf("in two parts: %d bytes, want %d", len(parts), len(want))
		}
		if len(content) == 0 {
			return // no chunk is empty: it has a length word
		}
		if n := written(off, int64(len(content))); n != int64(len(want)) {
			t.Fatalf("written %d, want %d", n, len(want))
		}
		quirk := int64(0)
		if (off+int64(len(want)))%4096 == 1 {
			quirk = 1
		}
		if n := extent(off, int64(len(content))); n != int64(len(want))-quirk {
			t.Fatalf("extent %d, want %d", n, int64(len(want))-quirk)
		}
		if back := stripBlocks(got[:len(got)-int(quirk)], off, skip); !bytes.Equal(back, content[skip:]) {
			t.Fatalf("stripped: %d bytes, want %d", len(back), len(content)-skip)
		}
	})
}

// TestSums holds the checksums against values of the reference implementations:
// xxhsum -H2 and RFC 1321.
func TestSums(t *testing.T) {
	for _, c := range []struct {
		sum  Sum
		text string
		want string
	}{
		{XXH3, "", "99AA06D3014798D86001C324468D497F"},
		{XXH3, "a", "A96FAF705AF16834E6C632B61E964E1F"},
		{XXH3, strings.Repeat("abc", 300), "4D9125E941BE6697C830818B7D87ADB0"},
		{MD5, "", "D41D8CD98F00B204E9800998ECF8427E"},
		{MD5, "abc", "900150983CD24FB0D6963F7D28E17F72"},
	} {
		sum := c.sum.of([]byte(c.text))
		if got := strings.ToUpper(hex.EncodeToString(sum[:])); got != c.want {
			t.Errorf("%v of %.10q: %s, want %s", c.sum, c.text, got, c.want)
		}
		for _, first := range []Sum{XXH3, MD5} {
			if kind, ok := first.verify(sum, []byte(c.text)); !ok || kind != c.sum {
				t.Errorf("%v first: %v, %v; want %v", first, kind, ok, c.sum)
			}
			if _, ok := first.verify(sum, []byte(c.text+"x")); ok {
				t.Errorf("%v first: another text has the checksum", first)
			}
		}
	}
}
