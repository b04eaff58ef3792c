package leveldb

import (
	"encoding/binary"
	"errors"
)

// A record of a log is a batch of writes, which have consecutive sequence numbers:
//
//	sequence of the first 8 | count 4 | writes
//	write: kind 1 | key | [time, a varint, of kinds 2 and 3] | [value, of all but deletes]
//
// Keys and values come behind their lengths. Basho's writes a time of 0 where the row
// shall get the time at which it reaches memory; when that was is not in the log.
const batchHeader = 12

// write is one write of a batch. Its slices alias the record.
type write struct {
	key   internalKey
	value []byte
}

var (
	errBatchShort = errors.New("a batch is too short")
	errBatchWrite = errors.New("a write of a batch cannot be read")
	errBatchCount = errors.New("a batch does not have as many writes as it says")
)

// readBatch calls each with the writes of a batch, which is known to be whole before
// the first call.
func readBatch(record []byte, each func(write)) error {
	if err := walkBatch(record, func(write) {}); err != nil {
		return err
	}
	return walkBatch(record, each)
}

func walkBatch(record []byte, each func(write)) error {
	if len(record) < batchHeader {
		return errBatchShort
	}
	sequence := binary.LittleEndian.Uint64(record)
	count := binary.LittleEndian.Uint32(record[8:])
	b := record[batchHeader:]
	found := uint32(0)
	for ; len(b) > 0; found++ {
		var w write
		var ok bool
		if w, b, ok = readWrite(b); !ok || found == count {
			return errBatchWrite
		}
		w.key.tag |= (sequence + uint64(found)) << 8
		each(w)
	}
	if found != count {
		return errBatchCount
	}
	return nil
}

func readWrite(b []byte) (w write, rest []byte, ok bool) {
	kind := b[0]
	if kind > maxKind {
		return w, nil, false
	}
	w.key.tag = uint64(kind)
	w.key.user, b, ok = readBytes(b[1:])
	if ok && kind >= kindWritten {
		w.key.time, b, ok = readUint(b)
	}
	if ok && kind != kindDelete {
		w.value, b, ok = readBytes(b)
	}
	return w, b, ok
}
