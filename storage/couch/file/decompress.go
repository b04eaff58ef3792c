package file

import (
	"bytes"
	"fmt"
	"io"
	"slices"

	"github.com/golang/snappy"

	"scanode/etf"
)

// IsPlain says whether data, a term as it is stored, is the encoded term itself, so
// that Decompress would only copy it.
func IsPlain(data []byte) bool {
	return len(data) > 1 && data[0] == etf.Version && data[1] != tagCompressed
}

// Decompress appends the encoded term that is stored as data, with its version
// byte, to dst and returns the longer slice; on errors, dst. Of the term nothing
// but the version byte is looked at. It may be called from any goroutine.
//
// limit is the most bytes the term may have. A size that data claims is not
// believed: nothing is allocated for it beyond what data's own length allows for.
//
// Errors: ErrCompression, ErrTooLarge.
func Decompress(dst, data []byte, limit int) (out []byte, err error) {
	switch {
	case IsPlain(data):
		if len(data) > limit {
			return dst, tooLarge(int64(len(data)), limit)
		}
		return append(dst, data...), nil
	case len(data) > 1 && data[0] == etf.Version:
		out, err = inflate(dst, data, limit)
	case len(data) > 0 && data[0] == tagSnappy:
		out, err = unsnap(dst, data[1:], limit)
	case bytes.HasPrefix(data, zstdMagic):
		out, err = appendUnzstd(dst, data, limit)
	case len(data) == 0:
		return dst, badTerm("no bytes")
	default:
		return dst, badTerm("first byte %d", data[0])
	}
	if err != nil {
		return dst, err
	}
	if !IsPlain(out[len(dst):]) {
		return dst, badTerm("what was compressed is not a plain term")
	}
	return out, nil
}

// maxSnappyRatio is the most bytes that a byte of a snappy block stands for,
// rounded up: three bytes copy at most 64.
const maxSnappyRatio = 22

func unsnap(dst, block []byte, limit int) ([]byte, error) {
	size, err := snappy.DecodedLen(block)
	switch {
	case err != nil:
		return dst, badTerm("%v", err)
	case size > limit:
		return dst, tooLarge(int64(size), limit)
	case size > maxSnappyRatio*len(block):
		return dst, badTerm("%d bytes cannot be compressed to %d", size, len(block))
	}
	n := len(dst)
	dst = slices.Grow(dst, size)
	if _, err := snappy.Decode(dst[n:n+size], block); err != nil {
		return dst[:n], badTerm("%v", err)
	}
	return dst[:n+size], nil
}

// appendAll appends what r has to dst, but not much more than limit bytes, so that
// one can see that there are more. dst grows with what was read.
func appendAll(dst []byte, r io.Reader, limit int) ([]byte, error) {
	most := len(dst) + limit + 1
	for len(dst) < most {
		if len(dst) == cap(dst) {
			dst = slices.Grow(dst, min(max(len(dst), 512), most-len(dst)))
		}
		n, err := r.Read(dst[len(dst):min(cap(dst), most)])
		dst = dst[:len(dst)+n]
		if err == io.EOF {
			return dst, nil
		}
		if err != nil {
			return dst, err
		}
	}
	return dst, nil
}

func badTerm(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCompression, fmt.Sprintf(format, args...))
}

func tooLarge(size int64, limit int) error {
	return fmt.Errorf("%w: term of %d bytes, limit %d", ErrTooLarge, size, limit)
}
