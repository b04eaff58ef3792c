package lsm

import (
	"github.com/cockroachdb/pebble/v2"

	"scanode/storage"
)

type iter struct{ it *pebble.Iterator }

// bounds turns a range into pebble's half-open one. The smallest key above k
// is k followed by a zero byte.
func bounds(r storage.Range) *pebble.IterOptions {
	o := &pebble.IterOptions{LowerBound: r.Start, UpperBound: r.End}
	if r.Start != nil && r.StartExclusive {
		o.LowerBound = append(append(make([]byte, 0, len(r.Start)+1), r.Start...), 0)
	}
	if r.End != nil && r.EndInclusive {
		o.UpperBound = append(append(make([]byte, 0, len(r.End)+1), r.End...), 0)
	}
	return o
}

func (i *iter) First() bool            { return i.it.First() }
func (i *iter) Last() bool             { return i.it.Last() }
func (i *iter) SeekGE(key []byte) bool { return i.it.SeekGE(key) }
func (i *iter) SeekLT(key []byte) bool { return i.it.SeekLT(key) }
func (i *iter) Next() bool             { return i.it.Next() }
func (i *iter) Prev() bool             { return i.it.Prev() }
func (i *iter) Valid() bool            { return i.it.Valid() }
func (i *iter) Key() []byte            { return i.it.Key() }
func (i *iter) Value() []byte          { v, _ := i.it.ValueAndErr(); return v }
func (i *iter) Err() error             { return translate(i.it.Error()) }
func (i *iter) Close() error           { return translate(i.it.Close()) }
