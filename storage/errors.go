package storage

import "errors"

// Errors of Open, Destroy and Repair.
var (
	// ErrMissing: there is no store in the directory and CreateIfMissing is
	// false.
	ErrMissing = errors.New("store does not exist")
	// ErrExists: there is a store and ErrorIfExists is true.
	ErrExists = errors.New("store exists")
	// ErrLocked: the store is open already, in this process or another.
	ErrLocked = errors.New("store is locked")
	// ErrForeign: the directory holds files that are not a store of this
	// engine. Nothing in it was touched.
	ErrForeign = errors.New("not a store of this engine")
	// ErrOption: an engine option is unknown or its value unusable.
	ErrOption = errors.New("bad option")
)

// Errors of calls on an open store.
var (
	// ErrNotFound: the key is not there.
	ErrNotFound = errors.New("not found")
	// ErrClosed: the store, or the snapshot or iterator, is closed.
	ErrClosed = errors.New("closed")
	// ErrParked: the engine met a failure it cannot work around; the store
	// takes no more calls but Stats and Close.
	ErrParked = errors.New("store is parked")
	// ErrUnknown: whether the batch is applied will only be known after the
	// store has been opened anew.
	ErrUnknown = errors.New("outcome unknown")
	// ErrCorrupt: bytes on disk are not what was written.
	ErrCorrupt = errors.New("corruption")
)
