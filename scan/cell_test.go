package scan

import (
	"bytes"
	"testing"

	"scanode/etf"
	"scanode/msgpack"
)

// FuzzPlainCells claims: what the quick ways take, the thorough ones take too, and
// with the same outcome.
func FuzzPlainCells(f *testing.F) {
	for _, seed := range [][]byte{
		{97, 255}, {106}, {98, 255, 0, 0, 0}, {110, 6, 0, 1, 2, 3, 4, 5, 6}, {109, 0, 0, 0, 2, 'o', 'k', 106}, {107, 0, 1, 7, 106},
		{70, 0x40, 0x29, 0, 0, 0, 0, 0, 0}, {70, 0x7f, 0xf0, 0, 0, 0, 0, 0, 0}, {109, 255, 255, 255, 255, 0},
		{127}, {0xa0}, {0xa2, 'o', 'k'}, {0xbf}, {0xcb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0}, {0xcf, 255, 0, 0, 0, 0, 0, 0, 0}, {0xcf, 0, 0, 0, 0, 0, 0, 0, 1},
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if size := plainETF(b); size > 0 {
			rest, err := etf.Check(b)
			if err != nil || len(b)-len(rest) != size {
				t.Fatalf("%x is said to have %d bytes: %v", b, size, err)
			}
			if err := crosses(b[:size]); err != nil {
				t.Fatalf("%x is taken: %v", b, err)
			}
		}
		quick, behind, plain := plainMsgpack([]byte("x"), b)
		if !plain {
			if string(quick) != "x" || len(behind) != len(b) {
				t.Fatalf("%x is not taken, but changes something", b)
			}
			return
		}
		rest, err := msgpack.Skip(b)
		if err != nil || len(rest) != len(behind) {
			t.Fatalf("of %x, %d bytes are left, not %d: %v", b, len(behind), len(rest), err)
		}
		if want, _, err := appendMsgpackValue([]byte("x"), b); err != nil || !bytes.Equal(quick, want) {
			t.Fatalf("%x becomes %x, not %x: %v", b, quick, want, err)
		}
	})
}
