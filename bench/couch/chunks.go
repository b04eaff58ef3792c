package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/storage/couch/btree"
	"scanode/storage/couch/file"
)

// 3,000 small rows one by one at several chunk sizes. Keys of ten digits, values of a byte
// and a count give the recorded bytes where keys ascend.

func runChunks(s state, chunk int, keys string) (written, error) {
	const n = 3000
	o := s.options("none")
	o.Reducer, o.ChunkSize = btree.Count{}, chunk
	f, err := file.Create(vfs.NewMem(), "chunks", file.Options{})
	if err != nil {
		return written{}, err
	}
	defer f.Close()
	tree := btree.New(f, btree.Pointer{}, o)
	for _, i := range order(n, keys) {
		if tree, err = tree.Add([]btree.Row{{Key: text(fmt.Sprintf("%010d", i)), Value: integer(1)}}); err != nil {
			return written{}, err
		}
	}
	return written{f.Size() / n, tree.Root().Size}, nil
}

func printChunks(w io.Writer) error {
	t := table{columns: []string{"chunk size", "keys", "compat", "recorded", "", "own-b", "own-w"}}
	for _, r := range recorded("chunks") {
		chunk, err := strconv.Atoi(r["chunk"])
		if err != nil {
			return err
		}
		for _, keys := range []string{"seq", "rand"} {
			row := []any{chunk, keys}
			for _, s := range append([]state{theirs[3]}, ours...) {
				if s != theirs[3] && chunk != btree.DefaultChunkSize {
					continue
				}
				each, err := runChunks(s, chunk, keys)
				if err != nil {
					return err
				}
				row = append(row, each.bytes)
				if s == theirs[3] {
					row = append(row, r.number(keys), beside(float64(each.bytes), r.number(keys)))
				}
			}
			t.add(row...)
		}
	}
	fmt.Fprint(w, "### Chunk sizes\n\nBytes an insert of 3,000 small rows, one by one, uncompressed. Our own policies have no chunk size; they stand beside the default.\n\n")
	t.print(w)
	return nil
}
