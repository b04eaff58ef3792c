package leveldb

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/golang/snappy"
	"github.com/pierrec/lz4/v4"
)

// A block is stored as its bytes, packed or not, and a trailer:
//
//	bytes n | compression 1 | checksum 4
//
// The checksum is of the bytes and the compression.
const blockTrailer = 5

// The compressions. 2 is zlib in other forks; here it is Basho's LZ4, the unpacked
// length in four bytes, little endian, before it.
const (
	packedNot    = 0
	packedSnappy = 1
	packedLZ4    = 2
)

// maxBlockBytes bounds a block, packed and unpacked: LevelDB ends a block with the
// first row that fills it, and values are of less than 4 GiB in theory, of a few MiB
// in practice.
const maxBlockBytes = 1 << 30

// handle is where a block is in its file. The trailer comes after size bytes.
type handle struct{ offset, size int64 }

func readHandle(b []byte) (h handle, rest []byte, ok bool) {
	offset, b, ok1 := readUint(b)
	if !ok1 {
		return h, nil, false
	}
	size, b, ok2 := readUint(b)
	h = handle{int64(offset), int64(size)}
	return h, b, ok2 && h.offset >= 0 && h.size >= 0
}

// unpack checks the trailer of a stored block and returns what it holds: a part of
// stored, or of room, which is grown where it must be.
func unpack(stored []byte, room *[]byte) (block []byte, err error) {
	n := len(stored) - blockTrailer
	if n < 0 {
		return nil, errors.New("a block is too short")
	}
	if binary.LittleEndian.Uint32(stored[n+1:]) != checksum(stored[:n+1], nil) {
		return nil, errors.New("the checksum of a block is wrong")
	}
	packed := stored[:n:n]
	switch stored[n] {
	case packedNot:
		return packed, nil
	case packedSnappy:
		return unpackSnappy(packed, room)
	case packedLZ4:
		return unpackLZ4(packed, room)
	}
	return nil, fmt.Errorf("a block has the unknown compression %d", stored[n])
}

// maxSnappyFactor is more than snappy can make of a byte: three bytes copy 64.
const maxSnappyFactor = 24

func unpackSnappy(packed []byte, room *[]byte) ([]byte, error) {
	size, err := snappy.DecodedLen(packed)
	if err != nil || size > maxBlockBytes || size > maxSnappyFactor*len(packed) {
		return nil, errors.New("a block of snappy's claims an impossible length")
	}
	*room = grown(*room, size)
	block, err := snappy.Decode(*room, packed)
	if err != nil {
		return nil, errors.New("a block cannot be unpacked by snappy")
	}
	return block, nil
}

// maxLZ4Factor is what LZ4 can make of a byte: a byte of 255 lengthens a copy by as much.
const maxLZ4Factor = 255

func unpackLZ4(packed []byte, room *[]byte) ([]byte, error) {
	if len(packed) < 4 {
		return nil, errors.New("a block of compression 2 has no length")
	}
	size := int64(binary.LittleEndian.Uint32(packed))
	if packed = packed[4:]; size > maxBlockBytes || size > maxLZ4Factor*int64(len(packed)) {
		return nil, errors.New("a block of compression 2 claims an impossible length: it is no LZ4 of Basho's, but may be zlib")
	}
	*room = grown(*room, int(size))
	block := *room
	n, err := lz4.UncompressBlock(packed, block)
	if err != nil || n != len(block) {
		return nil, errors.New("a block of compression 2 cannot be unpacked by LZ4")
	}
	return block, nil
}

// grown returns room with n bytes in it, their content undefined.
func grown(room []byte, n int) []byte {
	if cap(room) < n {
		return make([]byte, n, n+n/4)
	}
	return room[:n]
}

// blockCursor walks the entries of an unpacked block:
//
//	shared, unshared, value length (varints) | rest of the key | value
//
// A key is the first shared bytes of the one before it and the rest. At the end are
// offsets of entries that share nothing, for searching, and their number; only their
// size matters here.
type blockCursor struct {
	whole int    // bytes of entries
	left  []byte // entries to come
	key   []byte // of the current one; the room is kept from block to block
	value []byte // aliases the block
}

var errEntry = errors.New("an entry of a block cannot be read")

// reset begins with a block.
func (c *blockCursor) reset(block []byte) error {
	c.left, c.key, c.value, c.whole = nil, c.key[:0], nil, 0
	n := len(block) - 4
	if n < 0 {
		return errors.New("a block has no end")
	}
	restarts := int64(binary.LittleEndian.Uint32(block[n:]))
	if 4*restarts > int64(n) {
		return errors.New("a block has more restarts than bytes")
	}
	c.whole = n - 4*int(restarts)
	c.left = block[:c.whole]
	return nil
}

// offset is where the next entry begins in the block.
func (c *blockCursor) offset() int { return c.whole - len(c.left) }

// next moves to the next entry. It returns false at the end.
func (c *blockCursor) next() (bool, error) {
	b := c.left
	if len(b) == 0 {
		return false, nil
	}
	shared, b, ok1 := readUint32(b)
	unshared, b, ok2 := readUint32(b)
	size, b, ok3 := readUint32(b)
	if !ok1 || !ok2 || !ok3 || int64(shared) > int64(len(c.key)) || int64(unshared)+int64(size) > int64(len(b)) {
		return false, errEntry
	}
	c.key = append(c.key[:shared], b[:unshared]...)
	end := int(unshared) + int(size)
	c.value = b[unshared:end:end]
	c.left = b[end:]
	return true, nil
}
