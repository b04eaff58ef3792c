package file

import (
	"crypto/md5"

	"github.com/zeebo/xxh3"
)

// Sum is a kind of checksum. Nothing in a file says which kind a checksum is: a
// reader tries one and then the other.
type Sum uint8

const (
	// XXH3 is xxHash3 of 128 bits, seed 0, in canonical (big endian) order: what
	// CouchDB writes since 3.5 and reads since 3.4.
	XXH3 Sum = iota
	// MD5 is what CouchDB wrote before.
	MD5
)

const sumSize = 16

// String returns the name of s.
func (s Sum) String() string {
	if s == MD5 {
		return "md5"
	}
	return "xxh3"
}

func (s Sum) of(b []byte) [sumSize]byte {
	if s == MD5 {
		return md5.Sum(b)
	}
	return xxh3.Hash128(b).Bytes()
}

// verify says whether want is the checksum of b, and of which kind. s is tried
// first.
func (s Sum) verify(want [sumSize]byte, b []byte) (Sum, bool) {
	if s.of(b) == want {
		return s, true
	}
	other := XXH3
	if s == XXH3 {
		other = MD5
	}
	return other, other.of(b) == want
}
