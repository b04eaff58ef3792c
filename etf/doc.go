// Package etf reads and writes the Erlang external term format on byte slices.
//
// A term is one tag byte and what the tag says follows it:
//
//	{ok, <<"ab">>}   68 02  77 02 6f 6b  6d 00 00 00 02 61 62
//	                 │  │   │  │  o  k   │  └─ length   └ a b
//	                 │  │   │  └ length  └ BINARY_EXT
//	                 │  │   └ SMALL_ATOM_UTF8_EXT
//	                 │  └ arity
//	                 └ SMALL_TUPLE_EXT
//
// The version byte 131 that stands before a term of term_to_binary is no part
// of the term: [SkipVersion] drops it and [AppendVersion] writes it.
//
// # Verbs
//
// Skip, Read…, Append…: b goes in, the value and the rest come out. The Read
// functions look at one level; to read a tuple, read its header and then its
// elements. [Decode] and [AppendTerm] handle whole terms as Go values and are
// meant for requests, not for rows. [Check] is Skip for bytes that will be sent
// on: it accepts exactly what the BEAM accepts. [Compare] orders encoded terms
// as Erlang does.
//
// # Lifetime
//
// Everything returned aliases the bytes given in, names of atoms and rests
// included, unless a function says otherwise. An [Atom] and numbers are copies.
//
// # Bounds
//
// No length is believed before the bytes it speaks of are there. Terms nested
// deeper than [MaxDepth] are refused, so nothing recurses further. Compressed
// terms (tag 80) are always refused: their size is not known before they are
// inflated.
//
// # Goroutines
//
// There is no state: every function may be called from any goroutine, as long
// as nobody changes the bytes meanwhile.
//
// # Source of truth
//
// The chapter "External Term Format" of the ERTS manual, and the BEAM itself
// where the manual is silent: the tests of this package ask it.
package etf
