package msgpack

import (
	"errors"
	"fmt"
)

// What is wrong with the bytes; every error of this package wraps one of these.
var (
	ErrTruncated = errors.New("truncated")       // the bytes end inside the value
	ErrKind      = errors.New("unexpected kind") // not the kind asked for, or the unused lead byte c1
	ErrLimit     = errors.New("limit exceeded")  // nested deeper than MaxDepth
	ErrRange     = errors.New("out of range")    // an integer that the Go type cannot hold
)

// Error says what is wrong and where.
type Error struct {
	Off int    // offset in the bytes given to the function that failed
	Msg string // what was read or expected there
	Err error  // ErrTruncated and so on
}

// Error returns the kind, the offset and what was found.
func (e *Error) Error() string {
	return fmt.Sprintf("msgpack: %v at offset %d: %s", e.Err, e.Off, e.Msg)
}

// Unwrap returns the kind, for errors.Is.
func (e *Error) Unwrap() error { return e.Err }

func truncated(off int) error { return &Error{off, "more bytes expected", ErrTruncated} }

func badKind(b []byte, off int, want string) error {
	return &Error{off, fmt.Sprintf("lead byte %#02x where %s was expected", b[off], want), ErrKind}
}

func outOfRange(msg string) error { return &Error{0, msg, ErrRange} }
