package lsm

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"

	"scanode/storage"
)

// A store that was created with expiry keeps the time of its writing with each
// row, in front of the value:
//
//	time 8 | value
//
// in microseconds since 1970, big endian. The marker says that a store does so.
// A row is hidden from readers once it is as old as the limit that the store was
// opened with. The newest version of a row decides: when it is too old, the row is
// gone, and no older version shows through, whatever its time. Snapshots and
// iterators keep to the clock too: what they saw may be gone at the next look.
//
// Differs from eleveldb: write times can only be kept from the beginning on. A
// store created without is not opened with expiry_enabled; there, rows written
// before would never expire.
const timeBytes = 8

// expiry is how the rows of one store expire.
type expiry struct {
	timed bool  // values carry times
	limit int64 // in microseconds; 0: rows do not expire
	now   func() time.Time
}

// expiryOf works out the expiry of a store. Its values are timed already, or it is
// new.
func expiryOf(set settings, f found, now func() time.Time) (expiry, error) {
	x := expiry{timed: f.timed, now: now}
	if f.place != placeStore && f.place != placeUnfinished {
		x.timed = set.expiryEnabled
	}
	if set.expiryEnabled && !x.timed {
		return x, fmt.Errorf("%w: expiry_enabled: the store was created without it, and its rows carry no times", storage.ErrOption)
	}
	if set.expiryEnabled {
		x.limit = set.expiryMinutes * int64(time.Minute/time.Microsecond)
	}
	return x, nil
}

// cutoff is the time of writing at or before which rows are expired now. Without
// expiry it is before all times.
func (x *expiry) cutoff() uint64 {
	if x.limit == 0 {
		return 0
	}
	return uint64(max(x.now().UnixMicro()-x.limit, 0))
}

// stamp is the time that rows written now get: never 0.
func (x *expiry) stamp() uint64 { return uint64(max(x.now().UnixMicro(), 1)) }

// timeOf reads the time in front of a stored value.
func timeOf(stored []byte) (written uint64, ok bool) {
	if len(stored) < timeBytes {
		return 0, false
	}
	return binary.BigEndian.Uint64(stored), true
}

// userValue takes the time from a stored value. It aliases stored. The error wraps
// ErrCorrupt, or is ErrNotFound for a row that is expired.
func (x *expiry) userValue(stored []byte) ([]byte, error) {
	if !x.timed {
		return stored, nil
	}
	written, ok := timeOf(stored)
	if !ok {
		return nil, errNoTime
	}
	if written <= x.cutoff() {
		return nil, storage.ErrNotFound
	}
	return stored[timeBytes:], nil
}

var errNoTime = fmt.Errorf("%w: a value carries no time", storage.ErrCorrupt)

// set adds a row to a batch.
func (x *expiry) set(b *pebble.Batch, key, value []byte, written uint64) error {
	if !x.timed {
		return b.Set(key, value, nil)
	}
	op := b.SetDeferred(len(key), timeBytes+len(value))
	copy(op.Key, key)
	binary.BigEndian.PutUint64(op.Value, written)
	copy(op.Value[timeBytes:], value)
	return op.Finish()
}

// timedProperty is in the tables of a store whose values carry times, so that
// Repair knows them without the marker.
const timedProperty = "scanode.timed"

// collectors are what puts it there.
func (x *expiry) collectors() []func() pebble.BlockPropertyCollector {
	if !x.timed {
		return nil
	}
	return []func() pebble.BlockPropertyCollector{func() pebble.BlockPropertyCollector { return timedCollector{} }}
}

// timedCollector is a collector of nothing. It could not tell when the rows of a
// table were written: pebble does not show values to collectors.
type timedCollector struct{}

// Name implements pebble.BlockPropertyCollector.
func (timedCollector) Name() string { return timedProperty }

// AddPointKey implements pebble.BlockPropertyCollector.
func (timedCollector) AddPointKey(pebble.InternalKey, []byte) error { return nil }

// AddRangeKeys implements pebble.BlockPropertyCollector.
func (timedCollector) AddRangeKeys(sstable.Span) error { return nil }

// AddCollectedWithSuffixReplacement implements pebble.BlockPropertyCollector.
func (timedCollector) AddCollectedWithSuffixReplacement(_, _, _ []byte) error { return nil }

// SupportsSuffixReplacement implements pebble.BlockPropertyCollector.
func (timedCollector) SupportsSuffixReplacement() bool { return true }

// FinishDataBlock implements pebble.BlockPropertyCollector.
func (timedCollector) FinishDataBlock(buf []byte) ([]byte, error) { return buf, nil }

// AddPrevDataBlockToIndexBlock implements pebble.BlockPropertyCollector.
func (timedCollector) AddPrevDataBlockToIndexBlock() {}

// FinishIndexBlock implements pebble.BlockPropertyCollector.
func (timedCollector) FinishIndexBlock(buf []byte) ([]byte, error) { return buf, nil }

// FinishTable implements pebble.BlockPropertyCollector.
func (timedCollector) FinishTable(buf []byte) ([]byte, error) { return buf, nil }
