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
// With an Aggregate, the rows that match go into states of groups instead, and the
// groups are the rows that are sent, once everything has been read:
//
//	Matcher.Match ─► Matcher.Cell ─► group (canonical cells) ─► states ─► batch …
//
// States of sums are exact (exact.go): a result is rounded once and depends neither
// on the order of the rows nor on how they were split over several scans. So a large
// range is read in parts, each on a goroutine and into groups of its own (parts.go).
//
// A Cursor walks the same rows in both directions, a page when it is asked for one;
// nothing of it runs in between.
//
// Back-pressure of a scan is the Window and the blocking Sink, and nothing else: there is
// no queue between the iterator and the transport. A scan therefore holds one
// iterator and one batch, however slow its consumer is; an aggregate also its groups,
// and iterator and groups once for each part.
//
// # Goroutines
//
// Run belongs to one goroutine; those of an aggregate's parts end before it returns, and
// only its own calls the Sink. The methods of a Window may be called from any.
//
// # Lifetime of slices
//
// The slice given to Sink.Batch is overwritten after that call returns.
package scan
