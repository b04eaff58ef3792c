package main

import (
	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/etf"
	"scanode/storage/couch/btree"
	"scanode/storage/couch/file"
)

// An index is what a view with one map function has in its file: a tree of the rows that it
// emitted, and one that says which keys each document has there. The file is all nodes; in
// CouchDB it would have a header now and then, and figures are recorded without.
type index struct {
	file      *file.File
	ids, rows btree.Tree
}

// emitted is one document's row.
type emitted struct{ id, key, value []byte }

func newIndex(fsys vfs.FS, name string, o btree.Options) (*index, error) {
	f, err := file.Create(fsys, name, file.Options{})
	if err != nil {
		return nil, err
	}
	x := &index{file: f, ids: btree.New(f, btree.Pointer{}, o)}
	o.Reducer = btree.View{}
	x.rows = btree.New(f, btree.Pointer{}, o)
	return x, nil
}

// update brings documents into the index, as one query would that finds them new.
func (x *index) update(docs []emitted) (err error) {
	var back, rows []btree.Row
	for _, d := range docs {
		back = append(back, btree.Row{Key: d.id, Value: list(tuple(integer(0), d.key))})
		rows = append(rows, btree.Row{Key: tuple(d.key, d.id), Value: d.value})
	}
	if x.ids, err = x.ids.Add(back); err != nil {
		return err
	}
	x.rows, err = x.rows.Add(rows)
	return err
}

// live returns how many bytes of the file the two trees have.
func (x *index) live() int64 { return x.ids.Root().Size + x.rows.Root().Size }

// view returns what the tree of rows consists of.
func (x *index) view() (btree.Summary, error) { return x.rows.Verify(btree.Check{}) }

// random fills the bytes of a term that is a binary.
func random(term []byte, noise interface{ Read([]byte) (int, error) }) []byte {
	noise.Read(term[len(etf.AppendBinary(nil, nil)):])
	return term
}
