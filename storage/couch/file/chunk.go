package file

import (
	"encoding/binary"
	"slices"
)

// Chunk says where a chunk lies.
type Chunk struct {
	Ptr  int64 // offset in the file; on a block edge, of the tag byte before the chunk
	Size int64 // bytes of the file it takes: length word, checksum, tags and payload
}

const (
	lengthSize = 4
	// summed is the bit of the length word that says that a checksum follows.
	summed = 1 << 31
	// prefixExtent is the most that length word and checksum take of the file:
	// a tag before them and one among them.
	prefixExtent = 1 + lengthSize + 1 + sumSize
	// firstRead is how much is read at once before the length is known. Most tree
	// nodes fit, so that reading one takes one system call; see BenchmarkRead.
	firstRead = 2048
)

// appendChunk appends the chunk of payload, which goes to offset off of the file,
// to dst. With checksum it carries one of kind s.
func (s Sum) appendChunk(dst []byte, off int64, payload []byte, checksum bool) []byte {
	begin := int64(len(dst)) - off
	word := uint32(len(payload))
	if checksum {
		word |= summed
	}
	var length [lengthSize]byte
	binary.BigEndian.PutUint32(length[:], word)
	dst = appendBlocks(dst, off, length[:])
	if checksum {
		sum := s.of(payload)
		dst = appendBlocks(dst, int64(len(dst))-begin, sum[:])
	}
	return appendBlocks(dst, int64(len(dst))-begin, payload)
}

// Read appends the payload of the chunk at ptr to dst and returns the longer
// slice. It uses the room between dst's length and capacity and allocates nothing
// where that holds the chunk with its tags, or firstRead bytes (2 KiB) when the
// chunk is smaller. A checksum is verified where the chunk has one.
//
// Errors: ErrBeyondEOF, ErrChecksum, ErrTooLarge, ErrFailed, ErrClosed, those of the
// file system. A pointer to what is no chunk gives an error or any bytes: most
// chunks have no checksum.
func (f *File) Read(dst []byte, ptr int64) ([]byte, error) {
	dst, _, err := f.ReadChunk(dst, ptr)
	return dst, err
}

// ReadChunk is Read for those who want to know more of the chunk. checksum says
// whether it has one.
func (f *File) ReadChunk(dst []byte, ptr int64) (longer []byte, info ChunkInfo, err error) {
	if err := f.usable(); err != nil {
		return dst, info, err
	}
	eof := f.eof.Load()
	if ptr < 0 || ptr >= eof {
		return dst, info, f.fault(ptr, ErrBeyondEOF, "the end is at %d", eof)
	}
	n := len(dst)
	got := int(min(firstRead, eof-ptr))
	dst = slices.Grow(dst, got)[:n+got]
	if err := f.readAt(dst[n:], ptr); err != nil {
		return dst[:n], info, err
	}

	// The prefix is looked at in a copy: stripping it in place would move bytes
	// whose tags are not known yet.
	var prefix [prefixExtent]byte
	head := stripBlocks(prefix[:copy(prefix[:], dst[n:])], ptr, 0)
	if len(head) < lengthSize {
		return dst[:n], info, f.fault(ptr, ErrBeyondEOF, "the length word, and the end is at %d", eof)
	}
	word := binary.BigEndian.Uint32(head)
	length := int64(word &^ summed)
	skip := lengthSize
	if info.Summed = word&summed != 0; info.Summed {
		skip += sumSize
	}
	whole := extent(ptr, int64(skip)+length)
	info.Chunk = Chunk{Ptr: ptr, Size: written(ptr, int64(skip)+length)}
	if whole > eof-ptr {
		return dst[:n], info, f.fault(ptr, ErrBeyondEOF, "%d bytes, and the end is at %d", whole, eof)
	}
	if length > f.maxChunk {
		return dst[:n], info, f.fault(ptr, ErrTooLarge, "%d bytes, limit %d", length, f.maxChunk)
	}
	if rest := int(whole) - got; rest > 0 {
		dst = slices.Grow(dst, rest)[:n+int(whole)]
		if err := f.readAt(dst[n+got:], ptr+int64(got)); err != nil {
			return dst[:n], info, err
		}
	}
	payload := stripBlocks(dst[n:n+int(whole)], ptr, skip)
	if info.Summed {
		var ok bool
		if info.Sum, ok = f.sum.verify([sumSize]byte(head[lengthSize:]), payload); !ok {
			return dst[:n], info, f.fault(ptr, ErrChecksum, "chunk of %d bytes", length)
		}
	}
	return dst[:n+len(payload)], info, nil
}

// ChunkInfo is what is known of a chunk that was read.
type ChunkInfo struct {
	Chunk
	Summed bool // it carries a checksum
	Sum    Sum  // of this kind
}
