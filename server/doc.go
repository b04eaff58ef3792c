// Package server answers requests: it owns the open stores, the scans that run
// on them and their limits, and decides who may ask what. It is the same for
// every transport: a transport hands it messages (Server.Message) and gives it a
// Peer to answer through. docs/protocol.md is the source of truth for both
// directions.
//
//	transport read loop ─► Message ─┬─► ack, stop: done at once
//	                                ├─► scan: a goroutine runs scan.Run
//	                                ├─► write: the store's queue, applied in order
//	                                └─► other calls: a goroutine each
//
// # Goroutines
//
// For one Peer, Up, Message and Down are called one after the other; different
// peers may call at the same time. Message never writes to the peer and never
// waits for a scan, so acknowledgements always get through. It does wait when
// the peer has too many bytes of unfinished requests (Limits.PendingBytes), which
// stops the transport from reading further.
//
// # Lifetime of slices
//
// A message given to Message is kept until its request is done; the caller must
// not use it again.
//
// # Faults
//
// A panic in a request is answered as {internal, Text}, logged with its stack,
// and ends nothing else.
package server
