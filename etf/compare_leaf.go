package etf

import (
	"bytes"
	"cmp"
	"encoding/binary"
)

// These compare terms without parts, each of which is all of its bytes.

func compareAtoms(a, b []byte) (int, error) {
	x, _, err := ReadAtom(a)
	if err != nil {
		return 0, err
	}
	y, _, err := ReadAtom(b)
	// UTF-8 keeps the order of the characters.
	return bytes.Compare(x, y), err
}

// comparePids: serial, id, then node and creation.
func comparePids(a, b []byte) (int, error) {
	x, f, _, err := readIdentifier(a, 1)
	if err != nil {
		return 0, err
	}
	y, g, _, err := readIdentifier(b, 1)
	if err != nil {
		return 0, err
	}
	return cmp.Or(bytes.Compare(f[4:8], g[4:8]), bytes.Compare(f[:4], g[:4]),
		bytes.Compare(x, y), cmp.Compare(readCreation(f[8:]), readCreation(g[8:]))), nil
}

// comparePorts: node, creation, then id.
func comparePorts(a, b []byte) (int, error) {
	x, f, _, err := readIdentifier(a, 1)
	if err != nil {
		return 0, err
	}
	y, g, _, err := readIdentifier(b, 1)
	if err != nil {
		return 0, err
	}
	xid, xcreation := portFields(a[0], f)
	yid, ycreation := portFields(b[0], g)
	return cmp.Or(bytes.Compare(x, y), cmp.Compare(xcreation, ycreation), cmp.Compare(xid, yid)), nil
}

// portFields splits what follows a port's node.
func portFields(tag byte, f []byte) (id uint64, creation uint32) {
	if tag == TagV4Port {
		return binary.BigEndian.Uint64(f), readCreation(f[8:])
	}
	return uint64(binary.BigEndian.Uint32(f)), readCreation(f[4:])
}

// compareRefs: node, creation, then the words as one number, the last word
// first; words of zero at the end of a longer one do not count.
func compareRefs(a, b []byte) (int, error) {
	x, xcreation, f, err := refFields(a)
	if err != nil {
		return 0, err
	}
	y, ycreation, g, err := refFields(b)
	if err != nil {
		return 0, err
	}
	r := cmp.Or(bytes.Compare(x, y), cmp.Compare(xcreation, ycreation))
	for off := max(len(f), len(g)) - 4; off >= 0 && r == 0; off -= 4 {
		r = cmp.Compare(word(f, off), word(g, off))
	}
	return r, nil
}

func word(f []byte, off int) uint32 {
	if off < len(f) {
		return binary.BigEndian.Uint32(f[off:])
	}
	return 0
}

// refFields splits a reference.
func refFields(b []byte) (node []byte, creation uint32, words []byte, err error) {
	at, n := 1, 1
	if b[0] != TagReference {
		if n = int(binary.BigEndian.Uint16(b[1:])); n < 1 || n > maxRefWords {
			return nil, 0, nil, badValue(1, "reference without words or with more than 5")
		}
		at = 3
	}
	node, f, _, err := readIdentifier(b, at)
	if err != nil {
		return nil, 0, nil, err
	}
	if b[0] == TagReference {
		return node, readCreation(f[4:]), f[:4], nil
	}
	split := len(f) - 4*n
	return node, readCreation(f[:split]), f[split:], nil
}

// compareBits compares bit by bit; of two that agree the shorter is less.
func compareBits(a, b []byte) (int, error) {
	x, xbits, err := bitsOf(a)
	if err != nil {
		return 0, err
	}
	y, ybits, err := bitsOf(b)
	if err != nil {
		return 0, err
	}
	common := min(xbits, ybits)
	whole, part := common/8, common%8
	r := bytes.Compare(x[:whole], y[:whole])
	if r == 0 && part > 0 {
		r = cmp.Compare(x[whole]>>(8-part), y[whole]>>(8-part))
	}
	return cmp.Or(r, cmp.Compare(xbits, ybits)), nil
}

// bitsOf returns a bitstring's bytes and how many bits they hold.
func bitsOf(b []byte) (data []byte, n uint64, err error) {
	if b[0] == TagBinary {
		return b[5:], 8 * uint64(len(b)-5), nil
	}
	data, last := b[6:], uint64(b[5])
	if last > 8 || (len(data) == 0) != (last == 0) {
		return nil, 0, badValue(5, "bits of a bitstring's last byte")
	}
	return data, 8*uint64(len(data)) - (8-last)%8, nil
}
