// Package dump is the portable stream of rows: what "scanode export" writes and "scanode
// import" reads, and what any Erlang program can write and read with term_to_binary and
// erlang:crc32 (docs/stream.md has such programs).
//
// A stream is frames:
//
//	length 4 | checksum 4 | external term of that length
//
// big endian; the checksum is zlib's CRC-32 of the term's bytes. The terms are
//
//	{scanode_rows, 1, Info}                                    once, first
//	[{Key, Value} | {Key, Value, Written}, …]                  any number
//	{scanode_rows_end, Rows, KeyBytes, ValueBytes, Checksum}   once, last
//
// Info is a map of whatever the writer wants to tell. Keys and values are binaries, and
// keys ascend strictly from the first row to the last. Written is microseconds since
// 1970. The last term counts all rows and their bytes; its checksum is the CRC-32 of the
// checksums of the frames of rows, four bytes each, in order. So a stream that is cut
// short, or lacks a frame, or has frames in another order, is noticed.
//
// # Bounds
//
// A frame has at most MaxFrame bytes; room for it is taken as its bytes come, not by its
// length.
//
// # Goroutines and lifetimes
//
// Writer and Reader belong to one goroutine at a time. The slices of a row are valid
// until the next call.
package dump
