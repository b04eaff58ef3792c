package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/storage/couch/btree"
)

// 10,000 values of 32 KB, of bytes that do not compress, one by one. (Eric Avdey measured it
// for COUCHDB-3298.) Keys and ids are ten digits: this gives the recorded nodes where they
// ascend.

const (
	largeDocs  = 10_000
	largeBytes = 32 << 10
)

// largeCell is one way to do that.
type largeCell struct {
	encoding, keys string
	state          state
}

// largeResult is what came out of it.
type largeResult struct {
	written
	view btree.Summary
}

// run writes the file below dir, several times as large as the values, and removes it.
func (c largeCell) run(dir string, docs int) (largeResult, error) {
	name := filepath.Join(dir, fmt.Sprintf("%s-%s-%s", c.encoding, c.keys, c.state.name))
	x, err := newIndex(vfs.Default, name, c.state.options(c.encoding))
	if err != nil {
		return largeResult{}, err
	}
	defer os.Remove(name)
	defer x.file.Close()
	noise := rand.NewChaCha8([32]byte{})
	value := text(string(make([]byte, largeBytes)))
	for _, n := range order(docs, c.keys) {
		id := text(fmt.Sprintf("%010d", n))
		if err := x.update([]emitted{{id, id, random(value, noise)}}); err != nil {
			return largeResult{}, fmt.Errorf("%v: %w", c, err)
		}
	}
	view, err := x.view()
	if err != nil {
		return largeResult{}, fmt.Errorf("%v: %w", c, err)
	}
	return largeResult{written{x.file.Size(), x.live()}, view}, nil
}

func printLarge(w io.Writer, dir string) error {
	data := float64(largeDocs * largeBytes)
	t := table{columns: []string{"compression", "state", "keys", "bytes", "recorded", "", "of the data", "depth", "kp {count,min,max}", "recorded", "kv {count,min,max}", "recorded"}}
	nodes := func(n btree.NodeStats) string { return fmt.Sprintf("%d,%d,%d", n.Count, n.Min, n.Max) }
	add := func(c largeCell) error {
		l, err := c.run(dir, largeDocs)
		if err != nil {
			return err
		}
		var r record
		if c.encoding == "snappy" {
			r = find(recorded("large"), "state", c.state.name, "keys", c.keys)
		}
		t.add(c.encoding, c.state.name, c.keys, l.bytes, r.number("bytes"), beside(float64(l.bytes), r.number("bytes")),
			fmt.Sprintf("%.3f", float64(l.bytes)/data), l.view.Depth, nodes(l.view.Inner), r["kp"], nodes(l.view.Leaves), r["kv"])
		return nil
	}
	for _, keys := range []string{"seq", "rand"} {
		for _, s := range all() {
			if err := add(largeCell{"snappy", keys, s}); err != nil {
				return err
			}
		}
	}
	for _, encoding := range []string{"none", "best"} {
		for _, keys := range []string{"seq", "rand"} {
			for _, s := range append([]state{theirs[3]}, ours...) {
				if err := add(largeCell{encoding, keys, s}); err != nil {
					return err
				}
			}
		}
	}
	fmt.Fprintf(w, "## (c) 10,000 values of 32 KB, one by one\n\n%.0f bytes of data that do not compress. Nodes are those of the view's rows.\n\n", data)
	t.print(w)
	return nil
}
