// Package file reads and writes CouchDB's append-only files.
//
//	File      Open, Create, OpenReadOnly; Append, Commit, Read, Headers
//	Chunk     what Append has written and Read reads
//	Header    what Commit has written and Headers finds
//	Compression, Decompress    terms as they are stored in chunks
package file
