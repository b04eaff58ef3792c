package couch

import (
	"errors"
	"fmt"
	"io/fs"

	"scanode/storage"
	"scanode/storage/couch/btree"
	"scanode/storage/couch/file"
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

// Error implements error.
func (f *failure) Error() string { return Name + ": " + f.err.Error() }

// Unwrap gives errors.Is and errors.As the error itself.
func (f *failure) Unwrap() error { return f.err }

// parkError says why a store is parked. It is ErrParked for those who use the store.
type parkError struct{ cause error }

// Error implements error.
func (p *parkError) Error() string { return fmt.Sprintf("%v: %v", storage.ErrParked, p.cause) }

// Unwrap gives errors.Is and errors.As both.
func (p *parkError) Unwrap() []error { return []error{storage.ErrParked, p.cause} }

func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// damage are the errors that bytes of the disk cause.
var damage = []error{
	file.ErrBeyondEOF, file.ErrChecksum, file.ErrNoHeader, file.ErrHeaderTerm, file.ErrCompression, file.ErrTooLarge,
	btree.ErrNode, btree.ErrOrder, btree.ErrLastKey, btree.ErrPointer, btree.ErrDepth, btree.ErrKey, btree.ErrReduce,
	btree.ErrReduction, btree.ErrSize, btree.ErrDuplicate,
}

// corrupt marks an error of reading with ErrCorrupt if bytes of the disk have caused it.
func corrupt(err error) error {
	for _, kind := range damage {
		if errors.Is(err, kind) && !errors.Is(err, storage.ErrCorrupt) {
			return fmt.Errorf("%w: %w", storage.ErrCorrupt, err)
		}
	}
	return err
}
