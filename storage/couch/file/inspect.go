package file

import (
	"encoding/binary"
	"errors"
	"slices"

	"scanode/etf"
)

// Extent is what a chunk's length word says of it.
type Extent struct {
	Chunk
	Length int64 // bytes of the payload
	Summed bool  // a checksum stands before it
}

// Stat reads no more than the length word of the chunk at ptr. What it says is
// whole within the file, as it was when its end was last looked at, and is not
// otherwise believed: the payload is not looked at, nor is Options.MaxChunkBytes.
//
// Errors: ErrBeyondEOF, ErrFailed, ErrClosed, those of the file system.
func (f *File) Stat(ptr int64) (Extent, error) {
	var e Extent
	eof := f.eof.Load()
	if ptr < 0 || ptr >= eof {
		return e, f.fault(ptr, ErrBeyondEOF, "the end is at %d", eof)
	}
	var prefix [prefixExtent]byte
	raw := prefix[:min(int64(len(prefix)), eof-ptr)]
	if err := f.readAt(raw, ptr); err != nil {
		return e, err
	}
	head := stripBlocks(raw, ptr, 0)
	if len(head) < lengthSize {
		return e, f.fault(ptr, ErrBeyondEOF, "the length word, and the end is at %d", eof)
	}
	word := binary.BigEndian.Uint32(head)
	e.Length, e.Summed = int64(word&^summed), word&summed != 0
	content := lengthSize + e.Length
	if e.Summed {
		content += sumSize
	}
	if whole := extent(ptr, content); whole > eof-ptr {
		return e, f.fault(ptr, ErrBeyondEOF, "%d bytes, and the end is at %d", whole, eof)
	}
	e.Chunk = Chunk{Ptr: ptr, Size: written(ptr, content)}
	return e, nil
}

// ReadRaw fills b with the bytes of the file at off as they lie there, tags
// included.
//
// Errors: ErrBeyondEOF, ErrFailed, ErrClosed, those of the file system.
func (f *File) ReadRaw(b []byte, off int64) error {
	if eof := f.Size(); off < 0 || off > eof || int64(len(b)) > eof-off {
		return f.fault(off, ErrBeyondEOF, "%d bytes, and the end is at %d", len(b), eof)
	}
	if err := f.usable(); err != nil {
		return err
	}
	return f.readAt(b, off)
}

// maxGuessed is the largest header that GuessHeader finds.
const maxGuessed = 64 << 10

// GuessHeader returns the header in the block at ptr although its tag or its length
// word is wrong: its term says itself where it ends, and its checksum that it is one.
// No reader of the file would take it.
//
// Errors: ErrNoHeader when there is none, ErrBeyondEOF, ErrFailed, ErrClosed, those of
// the file system.
func (f *File) GuessHeader(ptr int64) (Header, error) {
	eof := f.Size()
	if ptr < 0 || ptr >= eof || ptr%BlockSize != 0 {
		return Header{}, f.fault(ptr, ErrNoHeader, "not a block of the file")
	}
	none := f.fault(ptr, ErrNoHeader, "none at its place")
	b := make([]byte, min(BlockSize, eof-ptr))
	for {
		if err := f.readAt(b, ptr); err != nil {
			return Header{}, err
		}
		if len(b) <= headerStart+sumSize || b[headerStart+sumSize] != etf.Version {
			return Header{}, none
		}
		content := stripBlocks(slices.Clone(b[headerStart:]), ptr+headerStart, 0)
		rest, err := etf.Skip(content[sumSize+1:])
		if err == nil {
			h := Header{Ptr: ptr, Term: content[sumSize : len(content)-len(rest)]}
			h.Size = headerStart + written(ptr+headerStart, int64(sumSize+len(h.Term)))
			var ok bool
			if h.Sum, ok = f.sum.verify([sumSize]byte(content), h.Term); !ok {
				return Header{}, none
			}
			return h, nil
		}
		// It may be longer than what was read.
		if !errors.Is(err, etf.ErrTruncated) || int64(len(b)) == min(maxGuessed, eof-ptr) {
			return Header{}, none
		}
		b = make([]byte, min(maxGuessed, eof-ptr))
	}
}
