// Package transfer brings rows from somewhere else into a new store, in a way that can
// be cut short at any moment and gone on with, and that is checked at the end.
//
// # On the way
//
// While it is under way nothing is at the target. Beside it there is
//
//	TARGET.importing/IMPORT   what is known of the transfer (see state)
//	TARGET.importing/store/   the store that is being made
//
// Rows come in the order of their keys. From time to time the store is synced, and then
// IMPORT gets the last key in it and the sum of all rows up to there. Whoever goes on
// begins behind that key; rows behind it that are in the store already are written once
// more, the same.
//
// # At the end
//
// The store is closed, opened anew and read from end to end, and its sum must be that
// of the rows that were given. Only then it is renamed to the target. Both directories
// lie in the same one, so the target is there whole or not at all.
//
// # Goroutines
//
// Run reads the source on a goroutine of its own, which has ended when it returns, but
// for what Config.Stop says.
package transfer
