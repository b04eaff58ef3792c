// Package msgpack reads and writes MessagePack on byte slices, with the verbs of
// package etf.
//
// A value is one lead byte, which holds its kind and for small values also the
// value or the length, and what the lead byte says follows it:
//
//	{"n": 5}   81       a1      6e   05
//	           │        │       n    └ positive fixint 5
//	           │        └ fixstr of 1 byte
//	           └ fixmap of 1 pair
//
// # Verbs
//
// Skip, Read…, Append…: b goes in, the value and the rest come out. The Read
// functions look at one level; to read a map, read its header and then its keys
// and values in turn. Append functions write the shortest form.
//
// # Lifetime
//
// Everything returned aliases the bytes given in, rests included; numbers are
// copies.
//
// # Bounds
//
// No length is believed before the bytes it speaks of are there, and values
// nested deeper than [MaxDepth] are refused. Skip and the Read functions do not
// allocate unless they fail.
//
// # Goroutines
//
// There is no state: every function may be called from any goroutine, as long
// as nobody changes the bytes meanwhile.
//
// # Source of truth
//
// The MessagePack specification (github.com/msgpack/msgpack, spec.md). Str is
// not checked to be UTF-8. Extension types can be skipped, not read.
package msgpack
