package lsm

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"scanode/storage"
)

// failure is an error on its way out of this package. Its text begins with the
// engine's name, once.
type failure struct{ err error }

// failed makes a failure of err, which may be one.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return &failure{bare(err)}
}

// failedf is failed of fmt.Errorf.
func failedf(format string, args ...any) error { return &failure{fmt.Errorf(format, args...)} }

// bare takes what failed has added from an error.
func bare(err error) error {
	if f, ok := err.(*failure); ok {
		return f.err
	}
	return err
}

// carrier is a line that pebble puts below the texts of errors for its own use.
const carrier = "\n<corruption detail carrier>"

// Error implements error.
func (f *failure) Error() string {
	return Name + ": " + strings.ReplaceAll(f.err.Error(), carrier, "")
}

// Unwrap gives errors.Is and errors.As the error itself.
func (f *failure) Unwrap() error { return f.err }

// parkError says why a store is parked. It is ErrParked for those who use the
// store; Open, which gives none out, takes the cause itself.
type parkError struct{ cause error }

// Error implements error.
func (p *parkError) Error() string { return fmt.Sprintf("%v: %v", storage.ErrParked, p.cause) }

// Unwrap gives errors.Is and errors.As both.
func (p *parkError) Unwrap() []error { return []error{storage.ErrParked, p.cause} }

func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }
