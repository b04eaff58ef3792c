// Package check looks at CouchDB's files, and at others of the same format, and
// says what is in them and what is wrong with them. It never writes to what it looks at.
//
//	File      what one file holds: a Report
//	Summary   of many reports
//	Salvage   what can be read of a damaged file, in a new one
//
// A report has all that cfcheck shows, under the same names, and beside that says for
// every byte of the file what it is used for:
//
//	block 0              block 1                                   block 2
//	├─ kv ─┬─ body ─┬─ kv ─┬ 00… ┤ header ├─ kv ─┬─ kp ─┬ ?? ┬ 00… ┤ header ┤
//	 orphan  body    kv     padding older   kv     kp     │          header
//	                                                      └ unreadable
//
// # How
//
//  1. All headers are found, and one is chosen: the newest, if not told otherwise.
//  2. Each tree it leads to is walked in key order. Nodes are held against what their
//     parents say of them: last key, reduction, size, place; keys against each other.
//     Trees that have the same in another order are compared.
//  3. Bodies are read in the order in which they lie in the file, then their
//     attachments: checksums, MD5s, lengths.
//  4. What all of it takes of the file is sorted by offset. What lies in between is
//     garbage, and is read chunk by chunk.
//
// # Bounds
//
// A file may be larger than memory and have been made by an enemy. What is sorted, 24
// bytes for each node, body, piece of an attachment and document, goes to temporary
// files beyond Options.SortRecords. A node is read up to 64 MiB, the nodes on one path up
// to 256 MiB, a body or a piece of an attachment up to 256 MiB; findings are counted and
// the first are kept. Trees are walked without recursion, pointers only lead backwards,
// and no walk reads more nodes than the file has bytes. So time is bounded by a
// multiple of the file's size.
//
// # What it cannot know
//
// Reductions by functions of views: the functions are in the design document, not in
// the view's file; numbers of rows and external sizes are verified. Nodes and
// attachments have no checksums: a bit that is wrong inside a value of a view is not
// seen. A chunk that nothing leads to and that is no term is unknown.
//
// # Goroutines
//
// There is no global state; several files may be looked at side by side.
//
// # Source of truth
//
// couch_bt_engine, couch_mrview and couch_file of CouchDB (August 2026), whose files and
// answers the tests hold this against; cfcheck for names and numbers.
package check
