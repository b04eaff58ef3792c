package couch

import "scanode/storage/couch/btree"

// loader changes rows of a tree, many at a time. It keeps loadBytes of them, about.
type loader struct {
	tree    btree.Tree
	rows    []btree.Row
	removes [][]byte
	buf     []byte // what rows and removes are in
}

// loadBytes is how many bytes of rows are done at once.
const loadBytes = 1 << 20

// add adds a row, whose key and value are encoded and are copied.
func (l *loader) add(key, value []byte) error {
	start := len(l.buf)
	l.buf = append(l.buf, key...)
	end := len(l.buf)
	l.buf = append(l.buf, value...)
	l.rows = append(l.rows, btree.Row{Key: l.buf[start:end:end], Value: l.buf[end:len(l.buf):len(l.buf)]})
	if len(l.buf) < loadBytes {
		return nil
	}
	return l.flush()
}

// remove removes a row by its encoded key, of which no other is added.
func (l *loader) remove(key []byte) error {
	start := len(l.buf)
	l.buf = append(l.buf, key...)
	l.removes = append(l.removes, l.buf[start:len(l.buf):len(l.buf)])
	if len(l.buf) < loadBytes {
		return nil
	}
	return l.flush()
}

// flush does what was kept.
func (l *loader) flush() (err error) {
	if len(l.rows) > 0 || len(l.removes) > 0 {
		l.tree, err = l.tree.AddRemove(l.rows, l.removes)
		l.rows, l.removes, l.buf = l.rows[:0], l.removes[:0], l.buf[:0]
	}
	return err
}
