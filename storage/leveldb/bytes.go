package leveldb

import (
	"encoding/binary"
	"math"
)

// readUint reads a varint of up to 64 bits.
func readUint(b []byte) (v uint64, rest []byte, ok bool) {
	v, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, nil, false
	}
	return v, b[n:], true
}

// readUint32 reads a varint of up to 32 bits.
func readUint32(b []byte) (v uint32, rest []byte, ok bool) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint32(b[0]), b[1:], true
	}
	u, rest, ok := readUint(b)
	if !ok || u > math.MaxUint32 {
		return 0, nil, false
	}
	return uint32(u), rest, true
}

// readBytes reads a length and as many bytes, which alias b.
func readBytes(b []byte) (v, rest []byte, ok bool) {
	n, rest, ok := readUint32(b)
	if !ok || uint64(n) > uint64(len(rest)) {
		return nil, nil, false
	}
	return rest[:n:n], rest[n:], true
}
