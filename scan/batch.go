package scan

import (
	"encoding/binary"

	"scanode/etf"
)

// batch builds one list of rows in external format:
//
//	131 | 108 | number of rows, 4 bytes | row … | 106
//
// The number is written when the batch is finished.
type batch struct {
	buf  []byte
	rows uint32
}

// batchHead is the length of what precedes the first row.
const batchHead = 6

// batchTail is the length of the NIL that ends the list.
const batchTail = 1

func (b *batch) reset() {
	// Any number but 0 reserves the place of the true one.
	b.buf = etf.AppendListHeader(etf.AppendVersion(b.buf[:0]), 1)
	b.rows = 0
}

// size is the length the finished batch would have now.
func (b *batch) size() int { return len(b.buf) + batchTail }

// finish completes the list and returns it; it is valid until the next reset.
func (b *batch) finish() []byte {
	b.buf = etf.AppendNil(b.buf)
	binary.BigEndian.PutUint32(b.buf[2:batchHead], b.rows)
	return b.buf
}
