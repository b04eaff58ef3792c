package scan

import (
	"encoding/binary"

	"scanode/etf"
)

// batch builds one list of rows in external format, behind what buf held when it
// was begun:
//
//	131 | 108 | number of rows, 4 bytes | row … | 106
//
// The number is written when the batch is finished. A list of no rows is 131 106.
type batch struct {
	buf   []byte
	start int // where in buf it begins
	rows  uint32
}

// batchHead is the length of what precedes the first row.
const batchHead = 6

// batchTail is the length of the NIL that ends the list.
const batchTail = 1

func (b *batch) reset() {
	// Any number but 0 reserves the place of the true one.
	b.buf = etf.AppendListHeader(etf.AppendVersion(b.buf[:b.start]), 1)
	b.rows = 0
}

// size is the length the finished batch would have now.
func (b *batch) size() int { return len(b.buf) - b.start + batchTail }

// finish completes the list and returns buf; it is valid until the next reset.
func (b *batch) finish() []byte {
	if b.rows == 0 {
		b.buf = etf.AppendNil(etf.AppendVersion(b.buf[:b.start]))
		return b.buf
	}
	b.buf = etf.AppendNil(b.buf)
	binary.BigEndian.PutUint32(b.buf[b.start+2:b.start+batchHead], b.rows)
	return b.buf
}
