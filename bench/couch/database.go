package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/etf"
	"scanode/storage/couch/btree"
	"scanode/storage/couch/file"
)

// A database: bodies, the tree of ids, the tree of sequence numbers, and a header for each
// commit, as couch_db writes them; documents are new and have random ids.

// database is one being written.
type database struct {
	file      *file.File
	ids, seqs btree.Tree
	seq       int64
	padding   int64 // bytes in front of headers
}

func newDatabase(s state) (*database, error) {
	f, err := file.Create(vfs.NewMem(), "db", file.Options{})
	if err != nil {
		return nil, err
	}
	o := s.options("snappy")
	o.Reducer = btree.IDTree{}
	d := &database{file: f, ids: btree.New(f, btree.Pointer{}, o)}
	o.Reducer = btree.Count{}
	d.seqs = btree.New(f, btree.Pointer{}, o)
	return d, nil
}

// update adds documents of these numbers and commits.
func (d *database) update(docs []int) error {
	var ids, seqs []btree.Row
	for _, n := range docs {
		body := file.DefaultCompression.Append(nil, versioned(tuple(list(tuple(text("value"), integer(int64(n)))))))
		atts := file.DefaultCompression.Append(nil, versioned(etf.AppendNil(nil)))
		chunks, err := d.file.AppendSummed([][]byte{versioned(tuple(text(string(body)), text(string(atts))))})
		if err != nil {
			return err
		}
		d.seq++
		id := text(documentID(n))
		sizes := tuple(integer(chunks[0].Size), integer(int64(len(body))))
		revision := binary.BigEndian.AppendUint64(make([]byte, 8, 16), uint64(n)*0x9E3779B97F4A7C15)
		leaf := tuple(integer(0), integer(chunks[0].Ptr), integer(d.seq), sizes, etf.AppendNil(nil))
		revisions := list(tuple(integer(1), tuple(text(string(revision)), leaf, etf.AppendNil(nil))))
		ids = append(ids, btree.Row{Key: id, Value: tuple(integer(d.seq), integer(0), sizes, revisions)})
		seqs = append(seqs, btree.Row{Key: integer(d.seq), Value: tuple(id, integer(0), sizes, revisions)})
	}
	var err error
	if d.ids, err = d.ids.Add(ids); err != nil {
		return err
	}
	if d.seqs, err = d.seqs.Add(seqs); err != nil {
		return err
	}
	end := d.file.Size()
	header, err := d.file.Commit(versioned(d.header()))
	d.padding += header.Ptr - end
	return err
}

// header is that of disk version 8 with what a new database has.
func (d *database) header() []byte {
	null, zero := atom("nil"), integer(0)
	return tuple(atom("db_header"), integer(8), integer(d.seq), zero, d.ids.Root().Append(nil), d.seqs.Root().Append(nil), null, null, null, null,
		integer(1000), text("0123456789abcdef0123456789abcdef"), list(tuple(atom("nonode@nohost"), zero)), zero, integer(1000), atom("undefined"))
}

// documentID is 32 digits that look random, as CouchDB's algorithm `random` makes them.
func documentID(n int) string {
	x := uint64(n+1) * 0xBF58476D1CE4E5B9
	return fmt.Sprintf("%016x%016x", x^x>>31, x*0x94D049BB133111EB)
}

func versioned(term []byte) []byte { return append([]byte{etf.Version}, term...) }

// runDatabase writes n documents with so many a commit.
func runDatabase(s state, n, batch int) (bytes, padding int64, err error) {
	d, err := newDatabase(s)
	if err != nil {
		return 0, 0, err
	}
	defer d.file.Close()
	for docs := range slices.Chunk(order(n, "seq"), batch) {
		if err := d.update(docs); err != nil {
			return 0, 0, err
		}
	}
	return d.file.Size(), d.padding, nil
}

func printDatabase(w io.Writer) error {
	fmt.Fprint(w, `## (d) Documents a commit

Bytes of a database a document: bodies, both trees and headers; documents are small and new, their ids 32 random digits; Snappy. In brackets those before headers, which
begin with a block. Recorded of compat: 1,000 commits of a document each are 4.10 MB, about 2.70 MB of it before headers.

`)
	t := table{columns: []string{"documents", "a commit"}}
	for _, s := range all() {
		t.columns = append(t.columns, s.name)
	}
	for _, n := range []int{1000, 10_000} {
		for _, batch := range []int{1, 10, 100, 1000} {
			row := []any{n, batch}
			for _, s := range all() {
				bytes, padding, err := runDatabase(s, n, batch)
				if err != nil {
					return err
				}
				row = append(row, fmt.Sprintf("%d (%d)", bytes/int64(n), padding/int64(n)))
			}
			t.add(row...)
		}
	}
	t.print(w)
	return nil
}
