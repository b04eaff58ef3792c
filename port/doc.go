// Package port is the transport of a program that an Erlang runtime started with
// open_port and {packet, 4}: frames on standard input and standard output.
//
//	length, 4 bytes big-endian | one term in external format, 131 …
//
// A frame from the BEAM is a message as it would be sent to the registered name
// of a node, or {down, Pid}. A frame to the BEAM is {To, Msg}: To is a pid or an
// alias that Msg is for, or the atom port for the port's owner itself.
// docs/protocol.md §1.2 is the source of truth.
//
// # Goroutines
//
// Serve reads; it belongs to one goroutine and calls the Handler there. All
// other methods may be called from any goroutine. They block while the BEAM does
// not read; nothing is queued here.
//
// # Lifetime of slices
//
// The slice given to Handler.Message is freshly allocated and may be kept. The
// slices given to Send are only read, and only until it returns.
package port
