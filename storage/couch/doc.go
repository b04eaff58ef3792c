// Package couch is the storage engine of the append-only B+tree.
//
//	Engine      opens directories, see storage.Engine
//
// # A store
//
// A store is one file of storage/couch/file with one tree of storage/couch/btree in it, whose
// keys and values are binaries, in the directory beside a marker and a lock:
//
//	store.couch   │ nodes │ header │ log │ nodes │ header │ log │ …
//	                  ▲        │     └ batches since, one record each
//	                  └────────┘
//
// Every header is a whole state of the store, see header.go; CouchDB's tools can read the
// file's blocks, chunks and nodes, and refuse its header.
//
// # Writing
//
// Batches gather in memory, in an overlay that lies in front of the tree, and are put into
// it many at a time. What keeps them until then is up to the option commit:
//
//	log      each batch is appended to the log at once; sync means to sync that
//	header   sync puts all batches into the tree and writes a header
//
// Both are durable as the contract wants it. With a log a batch costs little more than its
// own bytes, and survives the end of the process without a sync; a header costs a block of
// 4 KiB and the nodes on the way to its rows, and leaves a file that is whole at every
// moment to whoever reads it, and has nothing behind its last header that counts.
//
// One goroutine writes at a time: whoever comes first leads, see queue.go. Batches that come
// while he waits for the disk share the next sync.
//
// # Reading
//
// A version is the tree at a root and a copy of the overlay, which shares its memory with
// all others. It never changes. Readers take the current one from an atomic pointer and
// lock nothing; iterators and snapshots keep theirs, and the file it is in.
//
// # Compaction
//
// What is changed is appended, and what it was stays in the file as garbage. A compaction
// builds a fresh file beside reads and writes and puts it into the place of the old one, see
// compaction.go. All that the store holds of one file is a generation.
//
// # Bounds
//
// Memory: the cache of nodes (node_cache_size); the overlay (write_buffer_size, and what one
// group of batches adds), once more for each version of it that an iterator or a snapshot
// keeps; a batch, up to 256 MiB, while it is written. Keys have up to 1 MiB, values up to
// 64 MiB. What is read from the file is bounded as the packages below say.
//
// # Failure
//
// A write or a sync that fails parks the store: what is on the disk is only known when it is
// opened anew. A node that cannot be read fails the call that reads it. All nodes, log
// records and headers carry checksums.
//
// # Goroutines
//
// All functions and methods may be called from any goroutine, but an iterator from one at a
// time.
package couch
