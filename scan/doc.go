// Package scan runs one range scan: it walks an iterator, keeps the rows that
// match, collects them in batches and hands each batch on when there is credit
// for it.
//
//	Iter.Next ─► Matcher.Match ─► batch ─► Window.Take ─► Sink.Batch
//	                                           ▲
//	                       consumer's acks ─► Window.Ack
//
// A batch is one term in external format, a list of rows; docs/protocol.md
// describes it byte by byte for the reader. Rows are copied once, from the
// iterator into the batch, and nothing is allocated per row.
//
// Back-pressure is the Window and the blocking Sink, and nothing else: there is
// no queue between the iterator and the transport. A scan therefore holds one
// iterator and one batch, however slow its consumer is.
//
// # Goroutines
//
// Run belongs to one goroutine. The methods of a Window may be called from any.
//
// # Lifetime of slices
//
// The slice given to Sink.Batch is overwritten after that call returns.
package scan
