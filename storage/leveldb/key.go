package leveldb

import (
	"bytes"
	"encoding/binary"
)

// The kinds of entries.
const (
	kindDelete  = 0
	kindValue   = 1
	kindWritten = 2 // Basho's: with the time of writing
	kindExpires = 3 // Basho's: with the time at which the row is gone
	maxKind     = kindExpires
)

// tagBytes is the size of sequence and kind, timeBytes that of a time before them.
const (
	tagBytes  = 8
	timeBytes = 8
)

// internalKey is a key as tables and logs have it. user aliases what it was parsed
// from. A tag is a sequence number and, in its low byte, a kind.
type internalKey struct {
	user []byte
	tag  uint64
	time uint64 // microseconds since 1970, of kinds 2 and 3
}

func (k *internalKey) kind() byte { return byte(k.tag) }

// parseKey takes an encoded internal key apart.
func parseKey(b []byte) (k internalKey, ok bool) {
	n := len(b) - tagBytes
	if n < 0 {
		return k, false
	}
	k.tag = binary.LittleEndian.Uint64(b[n:])
	switch kind := k.kind(); {
	case kind > maxKind:
		return k, false
	case kind >= kindWritten:
		if n -= timeBytes; n < 0 {
			return k, false
		}
		k.time = binary.LittleEndian.Uint64(b[n:])
	}
	k.user = b[:n:n]
	return k, true
}

// compare orders by user key and, of the same, newest first.
func (k *internalKey) compare(o *internalKey) int {
	if c := bytes.Compare(k.user, o.user); c != 0 {
		return c
	}
	switch {
	case k.tag > o.tag:
		return -1
	case k.tag < o.tag:
		return 1
	}
	return 0
}
