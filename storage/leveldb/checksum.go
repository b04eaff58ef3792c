package leveldb

import "hash/crc32"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// masked is a CRC-32C as LevelDB stores it: turned and moved, so that bytes which
// hold checksums have no checksum that is easy to hit upon.
func masked(sum uint32) uint32 { return (sum>>15 | sum<<17) + 0xa282ead8 }

// checksum is the stored checksum of a followed by b.
func checksum(a, b []byte) uint32 {
	return masked(crc32.Update(crc32.Checksum(a, castagnoli), castagnoli, b))
}
