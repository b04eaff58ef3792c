package leveldb

import (
	"encoding/binary"
	"errors"
	"io"
)

// Logs and manifests are blocks of 32 KiB (the last may be shorter) of fragments:
//
//	checksum 4 | length 2 | type 1 | bytes
//
// A record is one fragment of type 1, or one of type 2, any of type 3 and one of type
// 4. A rest of a block that is too small for a header is zeros. The checksum is of the
// type and the bytes.
const (
	logBlockBytes  = 32 << 10
	fragmentHeader = 7
)

const (
	fragmentZero = iota // room that was taken in advance
	fragmentFull
	fragmentFirst
	fragmentMiddle
	fragmentLast
)

// records reads the records of a log or a manifest.
type records struct {
	file string
	in   io.Reader

	block  []byte // what is left of the block
	at     int64  // offset of block
	short  bool   // the block was the last
	room   []byte // of the block
	record []byte
	begin  int64 // where the record began

	// pending is a fragment that came where the end of another record should have.
	pending     []byte
	pendingType byte
	pendingAt   int64

	torn   bool // the file ends within a record, as after a crash
	tornAt int64
	// followed says that behind damage in the last block there are bytes which were
	// written whole: so the damage is not where writing was cut short.
	followed bool
}

func newRecords(file string, in io.Reader) *records {
	return &records{file: file, in: in, room: make([]byte, logBlockBytes)}
}

// next returns the next record, valid until the next call, and where it began. After
// a *Damage it goes on behind it. The end is io.EOF; torn then says whether it came
// too soon. Other errors are the disk's.
func (r *records) next() (record []byte, at int64, err error) {
	r.record = r.record[:0]
	inside := false
	for {
		kind, data, at, err := r.take()
		var d *Damage
		switch {
		case err == io.EOF:
			if inside {
				r.torn, r.tornAt = true, r.begin
			}
			return nil, 0, err
		case errors.As(err, &d) && inside:
			return nil, 0, damage(r.file, r.begin, "a record is cut short: %s", d.What)
		case err != nil:
			return nil, 0, err
		case inside && (kind == fragmentFull || kind == fragmentFirst):
			r.pending, r.pendingType, r.pendingAt = data, kind, at
			return nil, 0, damage(r.file, r.begin, "a record has no end")
		case !inside && (kind == fragmentMiddle || kind == fragmentLast):
			return nil, 0, damage(r.file, at, "a record has no beginning")
		}
		switch kind {
		case fragmentFull:
			return data, at, nil
		case fragmentFirst:
			inside, r.begin = true, at
		}
		r.record = append(r.record, data...)
		if kind == fragmentLast {
			return r.record, r.begin, nil
		}
	}
}

// take returns the pending fragment or reads one.
func (r *records) take() (kind byte, data []byte, at int64, err error) {
	if r.pendingType != fragmentZero {
		kind = r.pendingType
		r.pendingType = fragmentZero
		return kind, r.pending, r.pendingAt, nil
	}
	return r.fragment()
}

func (r *records) fragment() (kind byte, data []byte, at int64, err error) {
	for {
		if len(r.block) < fragmentHeader {
			if r.short {
				if len(r.block) > 0 {
					r.torn, r.tornAt = true, r.at
				}
				return 0, nil, 0, io.EOF
			}
			if err := r.fill(); err != nil {
				return 0, nil, 0, err
			}
			continue
		}
		at = r.at
		kind = r.block[6]
		size := fragmentHeader + int(binary.LittleEndian.Uint16(r.block[4:]))
		switch {
		case kind == fragmentZero && size == fragmentHeader:
			// LevelDB took files to be mapped, once, and they ended in zeros.
			r.drop(len(r.block))
			continue
		case size > len(r.block) && r.short && !r.wholeBehind():
			r.torn, r.tornAt = true, at
			return 0, nil, 0, io.EOF
		case size > len(r.block):
			r.followed = r.followed || r.short
			r.drop(len(r.block))
			return 0, nil, 0, damage(r.file, at, "a record of %d bytes leaves its block", size)
		}
		data = r.block[fragmentHeader:size:size]
		if binary.LittleEndian.Uint32(r.block) != checksum(r.block[6:7], data) {
			// The length may be what is wrong, so nothing behind it is believed.
			r.followed = r.followed || r.short && r.wholeBehind()
			r.drop(len(r.block))
			return 0, nil, 0, damage(r.file, at, "the checksum of a record is wrong")
		}
		r.drop(size)
		if kind > fragmentLast || kind == fragmentZero {
			return 0, nil, 0, damage(r.file, at, "a record of the unknown type %d", kind)
		}
		return kind, data, at, nil
	}
}

// wholeBehind says whether a fragment with bytes and the right checksum begins anywhere
// in the rest of the block, behind its first byte.
//
// Differs from LevelDB: that takes a length which leaves the last block for the end of
// the file, whatever comes behind it, so one bad bit in an edit of the manifest takes all
// edits after it away, and brings tables back that are no more.
func (r *records) wholeBehind() bool {
	for at := 1; at+fragmentHeader < len(r.block); at++ {
		b := r.block[at:]
		n := int(binary.LittleEndian.Uint16(b[4:]))
		if b[6] < fragmentFull || b[6] > fragmentLast || n == 0 || fragmentHeader+n > len(b) {
			continue
		}
		if binary.LittleEndian.Uint32(b) == checksum(b[6:7], b[fragmentHeader:fragmentHeader+n]) {
			return true
		}
	}
	return false
}

func (r *records) drop(n int) {
	r.block = r.block[n:]
	r.at += int64(n)
}

// fill reads the next block. What is left of the one before is too small for a header.
func (r *records) fill() error {
	r.at += int64(len(r.block))
	n, err := io.ReadFull(r.in, r.room)
	r.block = r.room[:n]
	r.short = n < logBlockBytes
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return nil
	}
	return err
}
