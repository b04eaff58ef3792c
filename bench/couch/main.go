// Command couch measures how many bytes the append-only B+tree writes and how fast it is,
// beside what was recorded of couch_btree, and prints tables in Markdown:
//
//	couch [PART...]
//
// Parts are letters, views, chunks, small, large, database, store and speed; without any it is
// all of them. REPETITIONS (3) is of how many runs the speeds are medians.
package main

import (
	"fmt"
	"io"
	"os"
	"slices"
)

// part is what can be asked for.
type part struct {
	name  string
	print func(w io.Writer, dir string) error // dir is for files
}

// parts are all of them, in the order of the tables.
var parts = []part{
	{"letters", func(w io.Writer, _ string) error { return printLetters(w) }},
	{"views", func(w io.Writer, _ string) error { return printMatrix(w) }},
	{"chunks", func(w io.Writer, _ string) error { return printChunks(w) }},
	{"small", func(w io.Writer, _ string) error { return printSmall(w) }},
	{"large", printLarge},
	{"database", func(w io.Writer, _ string) error { return printDatabase(w) }},
	{"store", func(w io.Writer, _ string) error { return printStore(w) }},
	{"speed", printSpeed},
}

func main() {
	dir, err := os.MkdirTemp("", "couch")
	if err == nil {
		err = run(os.Stdout, dir, os.Args[1:])
		os.RemoveAll(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(w io.Writer, dir string, asked []string) error {
	for _, name := range asked {
		if !slices.ContainsFunc(parts, func(p part) bool { return p.name == name }) {
			return fmt.Errorf("no part %q", name)
		}
	}
	for _, p := range parts {
		if len(asked) > 0 && !slices.Contains(asked, p.name) {
			continue
		}
		if err := p.print(w, dir); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}
