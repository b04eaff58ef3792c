// Package leveldb reads directories of LevelDB's, the stock one and Basho's, which
// eleveldb keeps its stores in. It only reads: nothing is created, renamed or
// removed in them, not even LOCK or LOG.
//
//	Open       CURRENT, the manifest and the logs; takes LevelDB's lock
//	Store.Rows all live rows, in the order of their keys
//
// # What is in a directory
//
//	CURRENT          names the manifest
//	MANIFEST-000007  records, each an edit of the set of tables (see version)
//	000009.log       records, each a batch of writes that no table has yet
//	000008.ldb       a table (stock; .sst before LevelDB 1.14)
//	sst_1/000008.sst a table of level 1 (Basho's)
//
// Basho's tiered storage keeps all of it below two prefixes, tables of the upper
// levels below one and those of the lower levels below the other: Open takes
// several directories and looks for a table in each.
//
// # Keys
//
// Inside, a key carries the number of its write and what was written (see internalKey):
//
//	user key | sequence 7, kind 1                 kinds 0 delete, 1 value
//	user key | time 8 | sequence 7, kind 1        kinds 2 written at, 3 expires at
//
// Kinds 2 and 3 are Basho's; times are microseconds since 1970. All entries of all
// levels and logs are merged by user key, the newest sequence first; of each key the
// first entry counts. So it does not matter which levels overlap, in which the two
// differ.
//
// # Bounds
//
// No length that a file claims is believed before the bytes are there: a block is
// within its file, and what it unpacks to is at most what its packed bytes can. Memory
// is two blocks, an index and a read window a run of tables, and the logs, which are
// held whole (see Options.LogBytes). Whatever is wrong is a Damage with file and offset.
//
// # Goroutines and lifetimes
//
// A Store and its Rows belong to one goroutine at a time. Rows.Key and Rows.Value are
// valid until the next call of Next, SeekAfter or Close.
//
// # Source of truth
//
// LevelDB 1.23 (doc/table_format.md, doc/log_format.md, db/version_edit.cc,
// db/dbformat.h) and Basho's fork at 2.0.3x, from its source: no directory that Riak
// wrote was at hand.
package leveldb
