package node

import (
	"crypto/md5"
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"
	"strconv"
)

// Cookie is the secret the nodes of a cluster share. However it is printed,
// logged or marshalled, "[cookie]" is all that comes out.
type Cookie []byte

// String returns "[cookie]".
func (Cookie) String() string { return "[cookie]" }

// Format writes "[cookie]" for every verb: without it %d and %x would print the
// bytes.
func (Cookie) Format(f fmt.State, _ rune) { io.WriteString(f, "[cookie]") }

// LogValue returns "[cookie]".
func (Cookie) LogValue() slog.Value { return slog.StringValue("[cookie]") }

// MarshalText returns "[cookie]".
func (Cookie) MarshalText() ([]byte, error) { return []byte("[cookie]"), nil }

type digest [md5.Size]byte

// digester computes the answer to a challenge. It is a closure so that no value
// of this package holds the cookie in a field that fmt could walk into.
type digester func(challenge uint32) digest

func newDigester(c Cookie) digester {
	secret := append([]byte(nil), c...)
	return func(challenge uint32) digest {
		h := md5.New()
		h.Write(secret)
		h.Write(strconv.AppendUint(nil, uint64(challenge), 10))
		var d digest
		h.Sum(d[:0])
		return d
	}
}

func (d digest) equal(e digest) bool {
	return subtle.ConstantTimeCompare(d[:], e[:]) == 1
}
