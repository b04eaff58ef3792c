package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/storage/couch/btree"
	"scanode/storage/couch/file"
)

// The example of COUCHDB-3298: rows a to f with values of 1,000 bytes, one by one.

// letters is what a state makes of it.
type letters struct {
	nodes   int
	bytes   int64
	garbage []string // keys of the leaves that are no longer used
}

func runLetters(s state) (l letters, err error) {
	o := s.options("none")
	o.Reducer = btree.Count{}
	f, err := file.Create(vfs.NewMem(), "letters", file.Options{})
	if err != nil {
		return l, err
	}
	defer f.Close()
	tree := btree.New(f, btree.Pointer{}, o)
	leaves := map[int64]string{} // that were ever part of the tree, by where they are
	nodes := map[int64]bool{}
	live := map[int64]bool{}
	for _, c := range "abcdef" {
		row := btree.Row{Key: atom(string(c)), Value: text(strings.Repeat("x", 1000))}
		if tree, err = tree.Add([]btree.Row{row}); err != nil {
			return l, err
		}
		clear(live)
		_, err = tree.Verify(btree.Check{Visit: func(v btree.Visit) error {
			nodes[v.Ptr], live[v.Ptr] = true, true
			if v.Leaf {
				var keys []byte
				for _, r := range v.Rows {
					keys = append(keys, bytes.TrimPrefix(r.Key, atom("x")[:3])...)
				}
				leaves[v.Ptr] = string(keys)
			}
			return nil
		}})
		if err != nil {
			return l, err
		}
	}
	for ptr, keys := range leaves {
		if !live[ptr] {
			l.garbage = append(l.garbage, keys)
		}
	}
	slices.Sort(l.garbage)
	l.nodes, l.bytes = len(nodes), f.Size()
	return l, nil
}

func printLetters(w io.Writer) error {
	t := table{columns: []string{"state", "nodes", "bytes", "recorded", "", "leaves left as garbage"}}
	for _, s := range all() {
		l, err := runLetters(s)
		if err != nil {
			return err
		}
		r := find(recorded("letters"), "state", s.name)
		t.add(s.name, l.nodes, l.bytes, r.number("bytes"), beside(float64(l.bytes), r.number("bytes")), strings.Join(l.garbage, ", "))
	}
	fmt.Fprint(w, "## (a) a to f\n\nSix rows with values of 1,000 bytes, one by one, uncompressed.\n\n")
	t.print(w)
	return nil
}
