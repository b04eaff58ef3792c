package main

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The matrix of a view: 1,000 documents; a row of key 1 and value 1, or of a generated key
// and value; a query after each document or after all; ids that ascend or are in random
// order. (Nick Vatamaniuc measured it for COUCHDB-3298.)
//
// Keys and sizes are those that give the recorded bytes where documents ascend, in all four
// states of couch_btree. A query after all documents brings them in by batches of 100.

const (
	viewDocs  = 1000
	viewBatch = 100
)

// viewCell is a cell of it.
type viewCell struct {
	compression, emit string
	size              int
	query, keys       string
}

// work is what of a cell makes a difference: rows of 1 and 1 have no size.
func (c viewCell) work() viewCell {
	if c.emit == "one" {
		c.size = 0
	}
	return c
}

// written is what came out of it.
type written struct{ bytes, live int64 }

// run does a cell's work in a state.
func (c viewCell) run(s state) (written, error) {
	x, err := newIndex(vfs.NewMem(), "view", s.options(c.compression))
	if err != nil {
		return written{}, err
	}
	defer x.file.Close()
	noise := rand.NewChaCha8([32]byte{})
	batch := 1
	if c.query == "final" {
		batch = viewBatch
	}
	for docs := range slices.Chunk(order(viewDocs, c.keys), batch) {
		var emits []emitted
		for _, n := range docs {
			e := emitted{id: text(fmt.Sprintf("%08d", n)), key: integer(1), value: integer(1)}
			if c.emit == "gen" {
				e.key = text(fmt.Sprintf("K%08d", n))
				e.value = random(text(string(make([]byte, c.size))), noise)
			}
			emits = append(emits, e)
		}
		if err := x.update(emits); err != nil {
			return written{}, fmt.Errorf("%v, %s: %w", c, s.name, err)
		}
	}
	return written{x.file.Size(), x.live()}, nil
}

// order returns the numbers below n, ascending (seq) or as a fixed generator mixes them.
func order(n int, keys string) []int {
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = i
	}
	if keys == "rand" {
		rand.New(rand.NewPCG(1, 2)).Shuffle(n, func(i, j int) { numbers[i], numbers[j] = numbers[j], numbers[i] })
	}
	return numbers
}
