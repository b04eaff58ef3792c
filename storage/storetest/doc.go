// Package storetest holds the contract of package storage as tests. Every
// engine runs it:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t testing.TB) storetest.Env { … })
//	}
//
// It has three parts. Conformance tries every sentence of the contract in a
// subtest of its name. Model runs random operations against a store and a
// sorted map side by side and compares all that can be seen: rows, moves of
// iterators in every kind of range, snapshots, what is there after a reopen and
// after a crash. Crash takes the power away under concurrent writers.
//
// Random parts print their seed; STORETEST_SEED=n runs that one again, and
// STORETEST_STEPS=n makes the model longer.
//
// Scribble wraps a store so that the slices of an iterator turn to rubbish as
// soon as the contract allows it: for tests of code that uses stores.
//
// The source of truth is the text of package storage; where a test and the text
// differ, one of them is to be changed.
package storetest
