package lsm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
)

// Repair sorts versions of rows in a scratch store. The key of a version there is
//
//	row's stored key, 00 as 00 ff | 00 01 | ^sequence number 8 | ^file number 8
//
// so that the versions of a row are beside each other, the newest first; its value
// is the kind and the value. Sequence numbers order all writes of a store, but
// those of rows in the lowest level are zero. Of equal ones the file that was made
// later counts.
//
// When the manifest is lost, files may be there that a compaction has replaced. A
// deletion in one of these may be older than a row whose number is zero by now. A
// row of number zero therefore outlives deletions in files that are older than its
// own. That keeps what must be kept, and may bring back a row whose deletion has not
// come down to the lowest level yet.

// internalKey is a key with its sequence number and kind.
type internalKey = pebble.InternalKey

// rangeDel deletes the versions of [start, end) with lower sequence numbers.
type rangeDel struct {
	start, end string
	seq, num   uint64
}

func newRangeDel(start, end []byte, seq, num uint64) rangeDel {
	return rangeDel{string(start), string(end), seq, num}
}

// version is one version of a row.
type version struct {
	seq, num uint64
	set      bool // or deleted
}

// versionWriter fills the scratch store.
type versionWriter struct {
	s   *store
	b   *pebble.Batch
	key []byte
}

// repairBatch is how many bytes are written at once.
const repairBatch = 1 << 20

// add takes a version of a row. Kinds that this engine does not write end it.
func (v *versionWriter) add(key []byte, seq, num uint64, kind pebble.InternalKeyKind, value []byte) error {
	set := byte(0)
	switch kind {
	case pebble.InternalKeyKindSet, pebble.InternalKeyKindSetWithDelete:
		set = 1
	case pebble.InternalKeyKindDelete, pebble.InternalKeyKindSingleDelete, pebble.InternalKeyKindDeleteSized:
		value = nil
	default:
		return fmt.Errorf("a row of kind %v", kind)
	}
	if v.b == nil {
		v.b = v.s.db.NewBatch()
	}
	v.key = appendVersionKey(v.key[:0], key, seq, num)
	op := v.b.SetDeferred(len(v.key), 1+len(value))
	copy(op.Key, v.key)
	op.Value[0] = set
	copy(op.Value[1:], value)
	if err := op.Finish(); err != nil {
		return err
	}
	if v.b.Len() < repairBatch {
		return nil
	}
	return v.flush()
}

// flush writes what add has gathered.
func (v *versionWriter) flush() error {
	if v.b == nil {
		return nil
	}
	b := v.b
	v.b = nil
	return v.s.applyRaw(b)
}

// applyRaw writes a batch of a store that only Repair knows.
func (s *store) applyRaw(b *pebble.Batch) (err error) {
	defer s.guard(&err)
	s.written.Store(true)
	if err = s.db.Apply(b, pebble.NoSync); err == nil {
		err = b.Close()
	}
	if cause := s.cause(); cause != nil {
		err = cause
	}
	return err
}

func appendVersionKey(dst, key []byte, seq, num uint64) []byte {
	for _, c := range key {
		if dst = append(dst, c); c == 0 {
			dst = append(dst, 0xff)
		}
	}
	dst = append(dst, 0, 1)
	dst = binary.BigEndian.AppendUint64(dst, math.MaxUint64-seq)
	return binary.BigEndian.AppendUint64(dst, math.MaxUint64-num)
}

var errVersionKey = errors.New("a key of the scratch store is damaged")

// splitVersionKey undoes appendVersionKey. The row's key is appended to dst.
func splitVersionKey(dst, b []byte) (key []byte, seq, num uint64, err error) {
	for i := 0; i < len(b); i++ {
		if b[i] != 0 {
			dst = append(dst, b[i])
			continue
		}
		switch rest := b[i+1:]; {
		case len(rest) > 0 && rest[0] == 0xff:
			dst = append(dst, 0)
			i++
		case len(rest) == 1+16 && rest[0] == 1:
			return dst, math.MaxUint64 - binary.BigEndian.Uint64(rest[1:]), math.MaxUint64 - binary.BigEndian.Uint64(rest[9:]), nil
		default:
			return nil, 0, 0, errVersionKey
		}
	}
	return nil, 0, 0, errVersionKey
}

// addBatch takes the operations of a record of a log, which is a batch: its first
// operation has the number in its header, the others the following ones.
func (r *repair) addBatch(v *versionWriter, record []byte, num uint64) error {
	h, ok := batchrepr.ReadHeader(record)
	if !ok {
		r.lose(fmt.Sprintf("%s: a record of %d bytes", logName(num), len(record)))
		return nil
	}
	ops := batchrepr.Read(record)
	for seq := uint64(h.SeqNum); ; seq++ {
		kind, key, value, ok, err := ops.Next()
		if err != nil {
			r.lose(fmt.Sprintf("%s: the end of a batch", logName(num)))
			return nil
		}
		switch {
		case !ok:
			return nil
		case kind == pebble.InternalKeyKindLogData:
			seq-- // it takes no number
		case kind == pebble.InternalKeyKindRangeDelete:
			r.rangeDels = append(r.rangeDels, newRangeDel(key, value, seq, num))
		default:
			if err := v.add(key, seq, num, kind, value); err != nil {
				return err
			}
		}
	}
}

// settle writes the newest version of each row to the fresh store.
func (r *repair) settle(scratch, fresh *store) (err error) {
	it, err := scratch.db.NewIter(nil)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := it.Close(); err == nil {
			err = cerr
		}
	}()
	b := fresh.db.NewBatch()
	row := rowChooser{repair: r}
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		if len(v) == 0 {
			return errVersionKey
		}
		keep, err := row.next(it.Key(), v[0] == 1)
		if err != nil {
			return err
		}
		if !keep {
			continue
		}
		if err := b.Set(row.key, v[1:], nil); err != nil {
			return err
		}
		r.done.Rows++
		if b.Len() >= repairBatch {
			if err := fresh.applyRaw(b); err != nil {
				return err
			}
			b = fresh.db.NewBatch()
		}
	}
	if err := it.Error(); err != nil {
		return err
	}
	return fresh.applyRaw(b)
}

// rowChooser goes through the versions of all rows.
type rowChooser struct {
	*repair
	key     []byte // of the row
	begun   bool   // key is one
	decided bool   // about it
	newest  version
	active  []rangeDel // those that reach the key or beyond
	ahead   int        // index of the first range deletion not yet active
	room    []byte
}

// next looks at the next version, and reports whether it is to be kept.
func (c *rowChooser) next(versionKey []byte, set bool) (keep bool, err error) {
	key, seq, num, err := splitVersionKey(c.room[:0], versionKey)
	if err != nil {
		return false, err
	}
	v := version{seq, num, set}
	if !c.begun || !bytes.Equal(key, c.key) {
		c.room, c.key = c.key, key
		c.begun, c.decided, c.newest = true, false, v
		c.reach()
	}
	if c.decided {
		return false, nil
	}
	if v == c.newest {
		// Without a guess the newest version decides.
		keep = set && !c.deleted(v)
		c.decided = keep || !c.guess
		return keep, nil
	}
	// The newest is a deletion, or deleted.
	keep = set && seq == 0 && (c.newest.set || num > c.newest.num) && !c.deleted(v)
	c.decided = keep
	return keep, nil
}

// reach moves the range deletions on to the key.
func (c *rowChooser) reach() {
	key := string(c.key)
	for c.ahead < len(c.rangeDels) && c.rangeDels[c.ahead].start <= key {
		c.active = append(c.active, c.rangeDels[c.ahead])
		c.ahead++
	}
	kept := c.active[:0]
	for _, d := range c.active {
		if d.end > key {
			kept = append(kept, d)
		}
	}
	c.active = kept
}

// deleted reports whether a range deletion hides v.
func (c *rowChooser) deleted(v version) bool {
	for _, d := range c.active {
		if d.seq > v.seq && !(c.guess && v.seq == 0 && v.num > d.num) {
			return true
		}
	}
	return false
}
