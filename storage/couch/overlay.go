package couch

import (
	"bytes"

	tidwall "github.com/tidwall/btree"

	"scanode/etf"
	"scanode/storage"
	"scanode/storage/couch/btree"
)

// binaryHead is how many bytes of a binary as a term are in front of its own.
const binaryHead = 5

// entry is the last write of a key: key and value as encoded binaries, value nil for a
// deletion.
type entry struct{ key, value []byte }

// user returns the key as those who use the store know it.
func (e entry) user() []byte { return e.key[binaryHead:] }

// overlay has the writes that are not in the tree yet, in the order of keys. It is
// changed by the writer alone; readers have copies, which cost nothing, since the nodes
// of both are shared until one is changed.
type overlay struct {
	rows  *tidwall.BTreeG[entry]
	bytes int64 // of all writes, also those that others have replaced: what they take in memory
}

// entryOverhead is about what an entry costs beside its bytes.
const entryOverhead = 96

func newOverlay() *overlay {
	less := func(a, b entry) bool { return bytes.Compare(a.key[binaryHead:], b.key[binaryHead:]) < 0 }
	return &overlay{rows: tidwall.NewBTreeGOptions(less, tidwall.Options{NoLocks: true})}
}

// view returns what readers get: nil for an empty overlay.
func (o *overlay) view() *tidwall.BTreeG[entry] {
	if o.rows.Len() == 0 {
		return nil
	}
	return o.rows.Copy()
}

// set applies a batch that takes size bytes.
func (o *overlay) set(ops []entry, size int64) {
	for _, e := range ops {
		o.rows.Set(e)
	}
	o.bytes += size
}

// addTo returns t with the writes of the overlay in it.
func (o *overlay) addTo(t btree.Tree) (btree.Tree, error) {
	if o.rows.Len() == 0 {
		return t, nil
	}
	inserts := make([]btree.Row, 0, o.rows.Len())
	var removes [][]byte
	o.rows.Scan(func(e entry) bool {
		if e.value == nil {
			removes = append(removes, e.key)
		} else {
			inserts = append(inserts, btree.Row{Key: e.key, Value: e.value})
		}
		return true
	})
	return t.AddRemove(inserts, removes)
}

// encodeOps copies the operations of a batch, encoded, into memory of one piece. size is
// what they take in an overlay.
func encodeOps(ops []storage.Op) (entries []entry, size int64, err error) {
	room := 0
	for i := range ops {
		op := &ops[i]
		if op.Kind != storage.Put && op.Kind != storage.Delete {
			return nil, 0, failedf("unknown kind of operation %d", op.Kind)
		}
		if len(op.Key) > maxKeyBytes {
			return nil, 0, failedf("key of %d bytes, limit %d", len(op.Key), maxKeyBytes)
		}
		if op.Kind == storage.Put && len(op.Value) > maxValueBytes {
			return nil, 0, failedf("value of %d bytes, limit %d", len(op.Value), maxValueBytes)
		}
		room += binaryHead + len(op.Key)
		if op.Kind == storage.Put {
			room += binaryHead + len(op.Value)
		}
		if room > maxBatchBytes {
			return nil, 0, failedf("batch of more than %d bytes", maxBatchBytes)
		}
	}
	buf := make([]byte, 0, room)
	entries = make([]entry, len(ops))
	for i := range ops {
		start := len(buf)
		buf = etf.AppendBinary(buf, ops[i].Key)
		end := len(buf)
		entries[i].key = buf[start:end:end]
		if ops[i].Kind == storage.Put {
			buf = etf.AppendBinary(buf, ops[i].Value)
			entries[i].value = buf[end:len(buf):len(buf)]
		}
	}
	return entries, int64(room) + int64(len(ops))*entryOverhead, nil
}

// Bounds of what is written. A node has two rows of any size at least, an inner one eight
// keys, and must stay below what the tree reads.
//
// Differs from storage/lsm, which takes whatever fits into a batch of 1 GiB.
const (
	maxKeyBytes   = 1 << 20
	maxValueBytes = 64 << 20
	maxBatchBytes = 256 << 20
)

// overCursor goes through an overlay. Unlike the iterator inside it is without a row behind
// the last one and in front of the first.
type overCursor struct {
	it    tidwall.IterG[entry]
	valid bool
}

func (c *overCursor) init(o *tidwall.BTreeG[entry]) { c.it.Init(o, false) }

func (c *overCursor) first() { c.valid = c.it.First() }
func (c *overCursor) last()  { c.valid = c.it.Last() }
func (c *overCursor) next()  { c.valid = c.valid && c.it.Next() }
func (c *overCursor) prev()  { c.valid = c.valid && c.it.Prev() }

func (c *overCursor) seekGE(key []byte) { c.valid = c.it.Seek(entry{key: key}) }

func (c *overCursor) seekLT(key []byte) {
	if c.it.Seek(entry{key: key}) {
		c.valid = c.it.Prev()
	} else {
		c.valid = c.it.Last()
	}
}

func (c *overCursor) entry() entry { return c.it.Item() }
