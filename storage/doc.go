// Package storage is the contract between scanode and its engines.
//
// A store is an ordered map from byte keys to byte values, kept in one
// directory and held open by at most one process. Keys are ordered byte by
// byte (bytes.Compare). Empty keys and empty values are legal and distinct from
// absence. The store never interprets either.
//
// # Goroutines
//
// A Store and a Snapshot may be used from any number of goroutines at once. An
// Iter belongs to one goroutine at a time.
//
// # Lifetime of slices
//
// Slices passed in are only read, and only until the call returns. Iter.Key and
// Iter.Value are valid until the next positioning call or Close on that
// iterator; the engine may overwrite them afterwards (storetest does). Get
// appends to a buffer of the caller's, so its result belongs to the caller.
//
// # Consistency
//
// Apply is atomic: a reader sees all of a batch or none of it, and a crash
// keeps all of it or none. An iterator sees the store as it was when NewIter was
// called, a snapshot as it was when Snapshot was called; later writes, deletes,
// flushes and compactions change nothing for them.
//
// # Durability
//
// When Apply with sync true has returned nil, the batch and every batch applied
// before it survive a crash of the process and loss of power. A batch applied
// with sync false survives a crash of the process once the operating system
// holds it; after loss of power the store holds a prefix of the batches in
// their order of application, at least up to the last synced one.
//
// # Failure
//
// An engine never ends the process and never panics on bytes of the disk. A
// failing disk turns into an error of the call; when the engine cannot go on
// safely, the store is parked: reads and writes return an error that wraps
// ErrParked until it is closed and opened anew. A failed write wraps ErrUnknown
// when the engine cannot say whether the batch will be there after a restart;
// any other write error means that it will not be. Close waits for running
// calls, and closes nothing else: iterators and snapshots still open at that
// time are ended by it and then return ErrClosed.
//
// The suite storage/storetest states all of this as tests; every engine passes
// it.
package storage
