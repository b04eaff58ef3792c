package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sync/errgroup"

	"scanode/storage/couch/btree"
	"scanode/storage/couch/file"
)

// A tree as views have it, with 100,000 rows of about 40 bytes, uncompressed.

const smallRows = 100_000

// smallCell is one way to write it.
type smallCell struct {
	keys  string
	batch int
	state state
}

func (c smallCell) run() (written, btree.Summary, error) {
	o := c.state.options("none")
	o.Reducer = btree.View{}
	f, err := file.Create(vfs.NewMem(), "small", file.Options{})
	if err != nil {
		return written{}, btree.Summary{}, err
	}
	defer f.Close()
	tree := btree.New(f, btree.Pointer{}, o)
	for batch := range slices.Chunk(order(smallRows, c.keys), c.batch) {
		var rows []btree.Row
		for _, n := range batch {
			id := text(fmt.Sprintf("%010d", n))
			rows = append(rows, btree.Row{Key: tuple(id, id), Value: integer(int64(1000 + n))})
		}
		if tree, err = tree.Add(rows); err != nil {
			return written{}, btree.Summary{}, err
		}
	}
	sum, err := tree.Verify(btree.Check{})
	return written{f.Size(), tree.Root().Size}, sum, err
}

func printSmall(w io.Writer) error {
	states := append([]state{theirs[0], theirs[3]}, ours...)
	t := table{columns: []string{"a batch", "keys"}}
	for _, s := range states {
		t.columns = append(t.columns, s.name)
	}
	batches, keys := []int{1, 10, 100, 1000, 20_000}, []string{"seq", "rand"}
	t.rows = make([][]string, len(batches)*len(keys))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range t.rows {
		c := smallCell{keys: keys[i%len(keys)], batch: batches[i/len(keys)]}
		t.rows[i] = make([]string, 2+len(states))
		t.rows[i][0], t.rows[i][1] = cell(c.batch), c.keys
		for j, s := range states {
			g.Go(func() error {
				c := c
				c.state = s
				bytes, sum, err := c.run()
				t.rows[i][2+j] = fmt.Sprintf("%.1f (%.1f, %d)", float64(bytes.bytes)/smallRows, float64(bytes.live)/smallRows, sum.Depth)
				return err
			})
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	fmt.Fprint(w, "### A view of 100,000 small rows\n\nKeys {Key, DocId} of ten digits each, integers, no reduce function, uncompressed: bytes a row that were written (those that are live, depth).\n\n")
	t.print(w)
	return nil
}
