// Package file reads and writes CouchDB's append-only files.
//
//	File                       Open, Create, OpenReadOnly; Append, Commit, Read, Headers
//	Chunk                      what Append has written and Read reads
//	Header                     what Commit has written and Headers finds
//	Compression, Decompress    terms as they are stored in chunks
//
// # Blocks
//
// A file is a sequence of blocks of 4096 bytes. The first byte of each is a tag: 1
// where a header begins, else 0. Everything else is content, in chunks that follow
// each other; wherever the file comes to a multiple of 4096, a tag goes in first.
// So no content, whatever it is, can look like a header. Readers of chunks do not
// look at tags.
//
// A chunk is a length word and a payload. The length word is the payload's length
// in 31 bits; its top bit says that a checksum of 16 bytes lies between the two.
// Bodies of documents have one, nodes of trees and attachments have none. A pointer
// is the offset at which a chunk begins, a tag before it included. Here are four
// chunks, of 4091, 4, 4082 and 1 bytes, the first ones of a file:
//
//	offset     0    1            5                                    4096
//	           00 │ 00 00 0f fb │ payload, 4091 bytes, ends at 4095 │ 00 │
//	           tag  length                                            tag
//	           └──────────────── pointer 0, size 4097 ─────────────────┘
//
//	offset     4097          4101          4105          4109
//	           00 00 00 04 │ 4 bytes     │ 00 00 0f f2 │ 4082 bytes, to 8190 │
//	           pointer 4097, size 8        pointer 4105, size 4086
//
//	offset     8191 8192 8193       8196
//	           00 │ 00 │ 00 00 01 │ p │
//	                tag
//	           └─ pointer 8191, size 6 ─┘
//
// The first one ends where its block does, and the next block's tag counts as its
// last byte; so a pointer is on a block edge only at the beginning of a file and
// where a file was cut. The last one's length word lies in two blocks.
//
// # Headers
//
// A header begins a block: tag 1, the length, then checksum and term, with tags of
// 0 at every further edge. Before it come zeros, half a block on average. This is
// the last of three in a file of 12336 bytes:
//
//	offset     9319          12288   12289         12293                12309
//	  chunks │ 00 00 … 00  │ 01    │ 00 00 00 2b │ checksum, 16 bytes │ 83 68 03 …
//	           padding       tag     length 43                          {vh,3,{9186,…}}
//
// The newest header is searched for from the end of the file, block by block; one
// counts when all its bytes are there and its checksum is right. Whatever comes
// after it, and it may be anything, is garbage of a write that was cut short, and
// stays there.
//
// Checksums are MD5, or XXH3 since CouchDB 3.4. Nothing says which; both are tried.
//
// # Durability
//
// Nothing is ever overwritten or cut off, and every header leads to the state of its
// time. Commit syncs what was appended, writes the header and syncs that, so a header
// that is found leads to bytes that are there. A write or a sync that fails ends the
// handle's use: what is on disk will be known when the file is opened anew.
//
// # Reading
//
// A read is one pread, two for a chunk of more than 2 KiB. Mapping the file would
// save the system call, and end the process when another program cuts the file
// short. What is read over and over, the nodes near a root, is better kept decoded
// than as blocks, by whoever knows them.
//
// # Bounds
//
// No length that a file claims is believed: a chunk must lie in the file and below
// Options.MaxChunkBytes, a compressed term below the limit given to Decompress, and
// nothing is allocated for the claim alone. A search for headers reads the file a
// bounded number of times, whatever is in it.
//
// # Goroutines and lifetimes
//
// All methods and functions may be called from any goroutine. Nothing that is passed
// in is kept, and nothing that is returned is used again.
//
// # Source of truth
//
// couch_file and couch_compress of CouchDB (August 2026), whose files and answers lie
// in ../testdata.
package file
