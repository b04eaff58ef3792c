package file

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/golang/snappy"
)

// Method is a way to compress terms.
type Method uint8

// The methods. A file may hold all of them; a reader need not be told.
const (
	None Method = iota
	Snappy
	Deflate
	Zstd
)

// Compression is a method and how hard it tries. It is comparable; the zero value
// compresses nothing.
type Compression struct {
	Method Method
	Level  int // Deflate: 1 to 9; Zstd: 1 to 22, 0 is 3; else 0
}

// DefaultCompression is CouchDB's default.
var DefaultCompression = Compression{Method: Snappy}

// First bytes of a term as it is stored.
const (
	tagSnappy     = 1
	tagCompressed = 80 // follows the version byte of a term that term_to_binary has deflated
)

var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// ParseCompression reads the words of CouchDB's setting file_compression: none,
// snappy, deflate_1 to deflate_9, zstd, zstd_1 to zstd_22.
func ParseCompression(s string) (Compression, error) {
	word, level, leveled := strings.Cut(s, "_")
	n, err := strconv.Atoi(level)
	numbered := err == nil && level == strconv.Itoa(n)
	switch {
	case s == "none":
		return Compression{}, nil
	case s == "snappy":
		return Compression{Method: Snappy}, nil
	case word == "deflate" && numbered && 1 <= n && n <= 9:
		return Compression{Method: Deflate, Level: n}, nil
	case s == "zstd":
		return Compression{Method: Zstd}, nil
	case word == "zstd" && leveled && numbered && 1 <= n && n <= maxZstdLevel:
		return Compression{Method: Zstd, Level: n}, nil
	}
	return Compression{}, fmt.Errorf("compression %q is none of none, snappy, deflate_1 to deflate_9, zstd, zstd_1 to zstd_22", s)
}

// String returns the word that ParseCompression reads.
func (c Compression) String() string {
	s := [...]string{"none", "snappy", "deflate", "zstd"}[min(c.Method, Zstd)]
	if c.Level != 0 {
		s += "_" + strconv.Itoa(c.Level)
	}
	return s
}

// Append appends term as it is stored to dst. term is an encoded term with its
// version byte. It may be called from any goroutine.
//
// Like term_to_binary, Deflate leaves a term as it is when it would not become
// smaller. Snappy and Zstd never do. The bytes are not those that another
// implementation of the method makes, nor need they be.
func (c Compression) Append(dst, term []byte) []byte {
	switch c.Method {
	case Snappy:
		dst = append(dst, tagSnappy)
		n := len(dst)
		need := snappy.MaxEncodedLen(len(term))
		if need < 0 {
			panic("term of more than 4 GiB")
		}
		dst = slices.Grow(dst, need) // Encode wants room for the worst case
		return dst[:n+len(snappy.Encode(dst[n:n+need], term))]
	case Deflate:
		return c.appendDeflated(dst, term)
	case Zstd:
		return c.appendZstd(dst, term)
	}
	return append(dst, term...)
}
