package couch

import (
	"scanode/storage"
	"scanode/storage/couch/btree"
)

// loader adds rows that come in the order of their keys to a tree, many at a time, so that
// each node is full and written once. It keeps loadBytes of them, about.
type loader struct {
	tree  btree.Tree
	rows  []btree.Row
	buf   []byte // what rows are in
	count int64  // rows added
}

// loadBytes is how many bytes of rows are added to a tree at once.
const loadBytes = 1 << 20

// add adds a row, whose key and value are encoded and are copied.
func (l *loader) add(key, value []byte) error {
	start := len(l.buf)
	l.buf = append(l.buf, key...)
	end := len(l.buf)
	l.buf = append(l.buf, value...)
	l.rows = append(l.rows, btree.Row{Key: l.buf[start:end:end], Value: l.buf[end:len(l.buf):len(l.buf)]})
	l.count++
	if len(l.buf) < loadBytes {
		return nil
	}
	return l.flush()
}

// flush adds what was kept.
func (l *loader) flush() (err error) {
	if len(l.rows) > 0 {
		l.tree, err = l.tree.Add(l.rows)
		l.rows, l.buf = l.rows[:0], l.buf[:0]
	}
	return err
}

// load adds all rows of a version.
func (l *loader) load(v *version) error {
	it := newIter(nil, v, storage.Range{})
	for ok := it.First(); ok; ok = it.Next() {
		if err := l.add(it.encoded()); err != nil {
			return err
		}
	}
	if it.err != nil {
		return it.err
	}
	return l.flush()
}
