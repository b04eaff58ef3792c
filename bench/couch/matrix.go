package main

import (
	"fmt"
	"io"
	"runtime"
	"strconv"
	"sync"

	"golang.org/x/sync/errgroup"
)

// matrix has what the cells' work gave, by work and name of the state.
type matrix struct {
	mu      sync.Mutex
	results map[string]written
}

func matrixKey(c viewCell, s state) string { return fmt.Sprint(c.work(), s.name) }

func (m *matrix) get(c viewCell, s state) written { return m.results[matrixKey(c, s)] }

// cells returns the cells of the recorded table, with another compression if told so.
func cells(compression string) (all []viewCell) {
	for _, r := range recorded("views") {
		size, _ := strconv.Atoi(r["size"])
		c := viewCell{r["compression"], r["emit"], size, r["query"], r["keys"]}
		if compression == "" || c.compression == "none" {
			if compression != "" {
				c.compression = compression
			}
			all = append(all, c)
		}
	}
	return all
}

// runMatrix does the work of all cells, each once, as many at a time as there are
// processors.
func runMatrix() (*matrix, error) {
	m := &matrix{results: map[string]written{}}
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	started := map[string]bool{}
	for _, encoding := range encodings {
		for _, c := range cells(encoding) {
			for _, s := range all() {
				key := matrixKey(c, s)
				if started[key] {
					continue
				}
				started[key] = true
				g.Go(func() error {
					w, err := c.run(s)
					m.mu.Lock()
					m.results[key] = w
					m.mu.Unlock()
					return err
				})
			}
		}
	}
	return m, g.Wait()
}

func printMatrix(w io.Writer) error {
	m, err := runMatrix()
	if err != nil {
		return err
	}
	fmt.Fprint(w, `## (b) A view of 1,000 documents

The bytes of its file, and how much more or less that is than recorded. `+"`live`"+` is what of compat's file its trees need.

`)
	t := table{columns: []string{"compression", "emit", "size", "query", "keys"}}
	for _, s := range theirs {
		t.columns = append(t.columns, s.name, "beside recorded")
	}
	t.columns = append(t.columns, "live", "beside recorded")
	for i, c := range cells("") {
		r := recorded("views")[i]
		row := []any{c.compression, c.emit, c.size, c.query, c.keys}
		for _, s := range theirs {
			bytes := m.get(c, s).bytes
			row = append(row, bytes, beside(float64(bytes), r.number(s.name)))
		}
		live := m.get(c, theirs[3]).live
		t.add(append(row, live, beside(float64(live), r.number("live")))...)
	}
	t.print(w)
	fmt.Fprint(w, `The same work with our own policies, beside the best that v0, v1 and compat write in this run. best: each node as the smallest of none, snappy and deflate.

`)
	t = table{columns: []string{"compression", "emit", "size", "query", "keys", "best of theirs"}}
	for _, s := range ours {
		t.columns = append(t.columns, s.name, "ratio", "live")
	}
	for _, encoding := range encodings {
		for _, c := range cells(encoding) {
			if c.emit == "one" && c.size > 10 {
				continue // the same rows
			}
			best := min(m.get(c, theirs[0]).bytes, m.get(c, theirs[1]).bytes, m.get(c, theirs[3]).bytes)
			row := []any{c.compression, c.emit, c.size, c.query, c.keys, best}
			for _, s := range ours {
				own := m.get(c, s)
				row = append(row, own.bytes, fmt.Sprintf("%.3f", float64(own.bytes)/float64(best)), own.live)
			}
			t.add(row...)
		}
	}
	t.print(w)
	return nil
}
