package lsm

import (
	"bytes"

	"github.com/cockroachdb/pebble/v2"

	"scanode/storage"
)

// Pebble v2.1.7 ends the process with a panic of its flush when a block of a
// table would hold nothing but the empty key. So it is never shown one: a key
// that is empty or begins with a zero byte is stored with a zero byte before
// it. All others, which is nearly all, are stored as they are. The order stays:
//
//	key      ""   00      00 00      00 61      01   61
//	stored   00   00 00   00 00 00   00 00 61   01   61
//
// and so does the rule that k followed by a zero byte is the next key after k.

// storedKey returns the stored form of key: key itself, or a copy in buf.
func storedKey(buf, key []byte) []byte {
	if len(key) > 0 && key[0] != 0 {
		return key
	}
	return append(append(buf[:0], 0), key...)
}

// userKey is the inverse of storedKey. It aliases stored.
func userKey(stored []byte) []byte {
	if stored[0] == 0 {
		return stored[1:]
	}
	return stored
}

// bounds turns a range into pebble's half-open one; empty says that no key can
// be in it. The slices are the iterator's own.
func bounds(r storage.Range) (o pebble.IterOptions, empty bool) {
	bound := func(key []byte, next bool) []byte {
		if key == nil {
			return nil
		}
		b := append(make([]byte, 0, len(key)+2), storedKey(nil, key)...)
		if next {
			b = append(b, 0)
		}
		return b
	}
	o.LowerBound, o.UpperBound = bound(r.Start, r.StartExclusive), bound(r.End, r.EndInclusive)
	// Nothing is below the empty key, and so nothing between nil and it.
	empty = r.End != nil && (bytes.Compare(o.LowerBound, o.UpperBound) >= 0 ||
		len(r.End) == 0 && !r.EndInclusive)
	return o, empty
}
