package couch

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"scanode/storage"
	"scanode/storage/couch/btree"
	"scanode/storage/couch/file"
)

// Stats implements storage.Store. A parked store tells what needs no reading.
func (s *store) Stats() (storage.Stats, error) {
	refusal := s.refusal()
	if refusal != nil && !errors.Is(refusal, storage.ErrParked) {
		return storage.Stats{}, refusal
	}
	v := s.acquire()
	defer v.gen.release()
	st := storage.Stats{
		Engine:      Name,
		Iterators:   s.iters.Load(),
		Snapshots:   s.snapshots.Load(),
		ReadErrors:  s.readErrors.Load(),
		Parked:      refusal != nil,
		TableBytes:  max(0, v.tree.Root().Size),
		MemoryBytes: s.writer.overBytes.Load() + int64(v.cache.Bytes()),
	}
	var old, copying int64
	s.mu.Lock()
	for g := range s.generations {
		st.Files++
		if g != v.gen {
			old += g.file.Size()
		}
	}
	s.mu.Unlock()
	if c := s.compactor.current(); c != nil {
		if info, err := s.engine.fs.Stat(s.path(compactName)); err == nil {
			copying = info.Size()
			st.Files++
		}
	}
	st.DiskBytes = v.gen.file.Size() + old + copying
	var text strings.Builder
	if refusal != nil {
		fmt.Fprintf(&text, "%v\n", s.parkErr.Load())
	} else if err := s.describe(&text, v); err != nil {
		return storage.Stats{}, s.readError(err)
	}
	w := &s.writer
	fmt.Fprintf(&text, "commits: %d headers and %d syncs of the log since open\n", w.commits.Load(), w.logSyncs.Load())
	fmt.Fprintf(&text, "log: %d batches in %d bytes behind the header; %d bytes of writes in memory\n", w.logBatches.Load(), w.logBytes.Load(), w.overBytes.Load())
	if old > 0 {
		fmt.Fprintf(&text, "old files: %d bytes, held by iterators and snapshots\n", old)
	}
	s.compactor.describe(&text)
	st.Text = text.String()
	return st, nil
}

// describe writes what the file and the tree are like.
func (s *store) describe(text *strings.Builder, v *version) error {
	e, err := s.estimates.of(v)
	if err != nil {
		return err
	}
	size, live := v.gen.file.Size(), max(0, v.tree.Root().Size)
	percent := func(n int64) int64 { return n * 100 / max(1, size) }
	fmt.Fprintf(text, "tree: %d rows, depth %d, %d bytes of nodes, leaves %.0f %% full\n", e.rows, e.depth, live, 100*e.fill)
	fmt.Fprintf(text, "file: %d bytes, %d (%d %%) garbage\n", size, size-live, percent(size-live))
	win := max(0, size-e.compacted)
	fmt.Fprintf(text, "compaction: would leave about %d bytes and win %d (%d %%)\n", e.compacted, win, percent(win))
	return nil
}

// estimate is what is known of a tree without reading all of it.
type estimate struct {
	root      int64 // of this tree
	rows      int64
	depth     int
	fill      float64 // of leaves, 1 is full
	compacted int64   // bytes of the file that a compaction would leave, about
}

// estimates keeps the estimate of the last tree that was asked for: Stats may be polled.
type estimates struct {
	mu   sync.Mutex
	last *estimate
}

// samples is at how many places a tree is looked at.
const samples = 24

func (s *estimates) of(v *version) (estimate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	root := v.tree.Root()
	if s.last != nil && s.last.root == root.Ptr {
		return *s.last, nil
	}
	e, err := estimateOf(v.tree)
	if err == nil {
		s.last = &e
	}
	return e, err
}

func estimateOf(tree btree.Tree) (estimate, error) {
	e := estimate{root: tree.Root().Ptr}
	var err error
	if e.rows, err = rowsOf(tree); err != nil {
		return e, err
	}
	if e.depth, err = tree.Depth(); err != nil {
		return e, err
	}
	sample, err := tree.Sample(samples)
	if err != nil {
		return e, err
	}
	e.fill = sample.Fill
	e.compacted = 2 * file.BlockSize // the headers
	if sample.Rows > 0 {
		// All rows are counted, and what a row takes is drawn. In small trees of unlike
		// rows the draw may be bad, but nothing becomes larger.
		e.compacted += min(tree.Root().Size, int64(float64(e.rows)*sample.Built/sample.Rows))
	}
	return e, nil
}

// current returns the compaction that runs, or nil.
func (c *compactor) current() *compaction {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running
}

// describe writes what compactions do and have done.
func (c *compactor) describe(text *strings.Builder) {
	if r := c.current(); r != nil {
		phase := "begins"
		if p := r.phase.Load(); p != nil {
			phase = *p
		}
		fmt.Fprintf(text, "compaction: %s, %d of %d rows\n", phase, r.have.Load(), r.total.Load())
	}
	fmt.Fprintf(text, "compactions: %d since open, %d failed\n", c.count.Load(), c.failures.Load())
}
