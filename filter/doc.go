// Package filter decides which stored rows a scan delivers.
//
// A filter arrives as an Erlang term, the one eleveldb's range_filter option
// takes:
//
//	{and_, {'>', {field, <<"time">>, timestamp}, {const, 1000}},
//	       {'=', {field, <<"name">>, varchar}, {const, <<"a">>}}}
//
// docs/filters.md is the reference for its users. It goes three steps:
//
//	Parse       term -> Expr        checks shape and types, explains what is wrong
//	NewMatcher  Expr -> Matcher     a flat program of tests and jumps over slots
//	Match       key, stored object -> yes, no or a row error
//	Cell        column -> its encoded value, decoded where aggregates need it
//
// Match takes a whole riak object. ParseObject cuts the payload out of it, the
// encoding byte in front of the payload picks an Extractor, and the extractor
// walks the row once: a list of {Name, Value} pairs in Erlang's external format,
// or a MessagePack map. It skips what the filter does not name and puts what it
// does name into slots, one slot for every type a field is declared under. Then
// the program runs over the slots:
//
//	object   53 1 … | enc | payload
//	                   │      └─ walked until every named field is found
//	                   └─ 0: ETF, 2: msgpack
//	slots    time/timestamp  name/varchar │ constants
//	program  0: slot 1 = constant 0       yes → accept  no → reject
//	         1: slot 0 > slot 2 (uint64)  yes → 0       no → reject   ← entry
//
// A matcher may be given columns as well: names whose encoded values the same walk
// finds. It goes to the last field of the filter first; if the row passes, it goes on
// from there to the last column. So a row that does not pass costs what it costs
// without columns.
//
// Truth is three-valued: a test of a field without a value is unknown. The program
// knows two outcomes only, true and the rest, so negations are moved inwards to the
// tests when it is made, and each test says no where it has no value.
//
// Rows of one table look alike. The shapes of the latest rows are kept as templates:
// their structure (headers, names, tags and lengths) as masked words. A row in which
// all of these are the same is walked the same way, so its fields are where the
// template says; see template. A row no template fits is walked, and there the
// extractor guesses that a field begins as the one at its place in the row before
// did, and checks; where values hardly change their kind it guesses their sizes too. All
// that is for speed alone: no answer depends on the rows before.
//
// # Lifetime of slices
//
// Parse copies what it keeps of the term. A Matcher without columns holds on to no
// object after Match has returned, one with columns to the last. Cell.Bytes,
// Cell.Text and Object.Payload alias the object.
//
// # Goroutines
//
// An Expr is immutable and may be shared. A Matcher belongs to one scan and to
// one goroutine at a time.
//
// # Source of truth
//
// The behaviour of eleveldb's riak_ts branch, recorded case by case in testdata,
// with the differences that docs/filters.md lists; each carries a comment
// "Differs from eleveldb" at its place in the code.
package filter
