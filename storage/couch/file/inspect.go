package file

import "encoding/binary"

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
