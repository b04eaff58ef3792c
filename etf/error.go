package etf

import (
	"errors"
	"fmt"
)

// What is wrong with the bytes; every error of this package wraps one of these.
var (
	ErrTruncated  = errors.New("truncated")       // the bytes end inside the term
	ErrTag        = errors.New("unexpected tag")  // an unknown tag, or not the kind of term asked for
	ErrLimit      = errors.New("limit exceeded")  // nested too deep, too many elements, too many bytes
	ErrRange      = errors.New("out of range")    // an integer that the Go type cannot hold
	ErrValue      = errors.New("invalid value")   // well-formed, but no term: NaN, bad UTF-8, a map key twice
	ErrCompressed = errors.New("compressed term") // tag 80
)

// Error says what is wrong and where.
type Error struct {
	Off int    // offset in the bytes given to the function that failed; for AppendTerm, in dst
	Msg string // what was read or expected there
	Err error  // ErrTruncated and so on
}

// Error returns the kind, the offset and what was found.
func (e *Error) Error() string {
	return fmt.Sprintf("etf: %v at offset %d: %s", e.Err, e.Off, e.Msg)
}

// Unwrap returns the kind, for errors.Is.
func (e *Error) Unwrap() error { return e.Err }

func truncated(off int) error { return &Error{off, "more bytes expected", ErrTruncated} }

func tooDeep(off int) error {
	return &Error{off, fmt.Sprintf("nested deeper than %d", MaxDepth), ErrLimit}
}

func badTag(b []byte, off int, want string) error {
	switch tag := b[off]; tag {
	case TagCompressed:
		return &Error{off, "compressed terms (tag 80) are refused", ErrCompressed}
	default:
		return &Error{off, fmt.Sprintf("tag %d where %s was expected", tag, want), ErrTag}
	}
}

func badValue(off int, msg string) error { return &Error{off, msg, ErrValue} }

// shift moves the offset of an error of a part that starts at off.
func shift(err error, off int) error {
	if e, ok := err.(*Error); ok && off != 0 {
		return &Error{e.Off + off, e.Msg, e.Err}
	}
	return err
}
