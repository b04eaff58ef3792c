package file

import (
	"errors"
	"fmt"
)

// Kinds of errors, for errors.Is.
var (
	// ErrBeyondEOF: a pointer, or the length found there, leads out of the file.
	ErrBeyondEOF = errors.New("read beyond the end of the file")
	// ErrChecksum: the bytes are not those that were written.
	ErrChecksum = errors.New("wrong checksum")
	// ErrNoHeader: the file, or the block asked for, has no valid header.
	ErrNoHeader = errors.New("no valid header")
	// ErrHeaderTerm: a header with the right checksum is not an Erlang term.
	ErrHeaderTerm = errors.New("header is not a term")
	// ErrCompression: not a compressed term of a known method, or a damaged one.
	ErrCompression = errors.New("invalid compression")
	// ErrTooLarge: a length is above the limit.
	ErrTooLarge = errors.New("too large")
	// ErrExists: Create found bytes in the file.
	ErrExists = errors.New("file has bytes already")
	// ErrLocked: somebody has the file open for appending.
	ErrLocked = errors.New("file is locked")
	// ErrReadOnly: the file was opened with OpenReadOnly.
	ErrReadOnly = errors.New("file is open for reading only")
	// ErrChanged: the file is not as long as this handle has made it, so that
	// somebody who does not heed the lock writes to it.
	ErrChanged = errors.New("file was changed by another")
	// ErrFailed: an earlier write or sync failed. What of it is on disk will only
	// be known after the file has been opened anew.
	ErrFailed = errors.New("file handle has failed")
	// ErrClosed: the file is closed.
	ErrClosed = errors.New("file is closed")
)

// Error is an error at a place of a file. Every error of a File's methods is one.
type Error struct {
	Name   string // of the file
	Offset int64  // in the file, in bytes; -1 when the whole file is meant
	Err    error  // what errors.Is looks into: a kind above, or what the file system said
	Detail string // numbers for people; may be empty
}

// Error implements error.
func (e *Error) Error() string {
	s := e.Name
	if e.Offset >= 0 {
		s = fmt.Sprintf("%s at %d", s, e.Offset)
	}
	s += ": " + e.Err.Error()
	if e.Detail != "" {
		s += " (" + e.Detail + ")"
	}
	return s
}

// Unwrap returns what errors.Is and errors.As look into.
func (e *Error) Unwrap() error { return e.Err }

// fault makes an Error of f at off.
func (f *File) fault(off int64, err error, format string, args ...any) error {
	return &Error{Name: f.name, Offset: off, Err: err, Detail: fmt.Sprintf(format, args...)}
}
