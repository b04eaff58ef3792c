package filter

import (
	"encoding/binary"
	"fmt"
)

// Encoding bytes of a riak object's value.
const (
	EncodingETF     = 0 // term_to_binary of a list of {Name, Value}
	EncodingRaw     = 1 // bytes as the client sent them; no row
	EncodingMsgpack = 2 // a MessagePack map
)

// Object is the one value of a stored riak object.
type Object struct {
	// Encoding is the byte that precedes the payload.
	Encoding byte
	// Payload aliases the object. It may be empty.
	Payload []byte
}

// Tombstone reports whether the object marks a deleted key: a raw value without
// a byte.
func (o Object) Tombstone() bool { return o.Encoding == EncodingRaw && len(o.Payload) == 0 }

// ParseObject reads the header of a riak object of version 1, all integers
// 32 bits big-endian:
//
//	53 1 | len vclock | siblings = 1 | len enc payload | len metadata
//
// Exactly one sibling is required. The metadata is not looked at and may be
// missing. Every length is checked against b before it is used; the error is a
// *RowError.
func ParseObject(b []byte) (Object, error) {
	if len(b) < 6 || b[0] != 53 || b[1] != 1 {
		return Object{}, foreignObject(b)
	}
	// Lengths are compared as uint64, so that no sum of them can wrap.
	vclock := uint64(binary.BigEndian.Uint32(b[2:]))
	rest := b[6:]
	if uint64(len(rest)) < vclock+8 {
		return Object{}, &RowError{Msg: fmt.Sprintf("riak object ends inside its header: %d bytes, vclock of %d", len(b), vclock)}
	}
	rest = rest[vclock:]
	if n := binary.BigEndian.Uint32(rest); n != 1 {
		return Object{}, &RowError{Msg: fmt.Sprintf("riak object with %d siblings, want 1", n)}
	}
	value := uint64(binary.BigEndian.Uint32(rest[4:]))
	rest = rest[8:]
	switch {
	case value == 0:
		return Object{}, &RowError{Msg: "riak object with an empty value: no encoding byte"}
	case uint64(len(rest)) < value:
		return Object{}, &RowError{Msg: fmt.Sprintf("riak object ends inside its value: %d of %d bytes", len(rest), value)}
	}
	return Object{Encoding: rest[0], Payload: rest[1:value:value]}, nil
}

// foreignObject explains bytes that do not begin like a riak object of version 1.
func foreignObject(b []byte) error {
	switch {
	case len(b) > 0 && b[0] == 131:
		return &RowError{Msg: "riak object of version 0, want version 1"}
	case len(b) > 1 && b[0] == 53 && b[1] != 1:
		return &RowError{Msg: fmt.Sprintf("riak object of version %d, want version 1", b[1])}
	}
	return &RowError{Msg: fmt.Sprintf("not a riak object: %d bytes, beginning %s", len(b), show(b[:min(len(b), 8)]))}
}
