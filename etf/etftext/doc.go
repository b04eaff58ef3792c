// Package etftext turns Erlang terms into the text that Erlang prints for them,
// and such text back into terms. It serves tests, traces and the command line,
// not rows.
//
// # Format
//
// One line, what io:format("~0tp") prints with printable range unicode:
//
//	{ok,[1.5,"text",'An atom',<<"bytes">>,<<1,2,5:3>>,#{key => [a|b]}]}
//
// Pids, ports and references name their node instead of a number that only one
// BEAM can interpret, <a@host.7.0>, and opaque terms say what they are,
// #Fun<m.0.123>; neither can be parsed. [Format] prints all of a term,
// [FormatBytes] an encoded term and no more than [MaxBytes] of text.
//
// # Parse
//
// [Parse] reads literal terms: atoms, integers (16#ff, $c, 1_000), floats,
// strings, binaries with integer and string segments, lists, tuples, maps and
// external funs. Parse(Format(t)) is t for every term made of those. Comments
// start with % and a full stop may end the text.
//
// # Lifetime, goroutines
//
// Results share nothing with the arguments. There is no state.
//
// # Source of truth
//
// io_lib_pretty and erl_scan of the BEAM, which the tests ask.
package etftext
