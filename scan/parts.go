package scan

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"scanode/storage"
)

// This file reads the rows of one aggregate on several goroutines. The ranges are
// divided into parts that follow each other; each is read into groups of its own, on
// the same view, and the groups are merged in the order of the parts. What comes of it
// is what one goroutine finds, errors included:
//
//	part 0   ████████████████            read to its end
//	part 1   ███████████ fault           its groups up to there count
//	part 2   ██████                      stopped: its rows come after the fault
//
// If the groups of parts 0 and 1 together are too many, one goroutine would have seen
// that before the fault, so that is the error; otherwise the fault is.

// divideBytes is the size from which on a scan is worth dividing, on disk: some
// milliseconds of reading.
const divideBytes = splitWalkBytes

// maxEstimates is up to how many ranges are divided by their sizes, which takes a
// look into the store for each. More are divided by their number.
const maxEstimates = 256

// divide returns what each goroutine reads, at least two, or nil if one is to read
// everything. A fault on the way is none yet: one goroutine may find another before it.
func divide(src Splittable, req *Request, ranges []storage.Range) [][]storage.Range {
	if req.Aggregate == nil || req.Aggregate.Parallel < 2 {
		return nil
	}
	n := req.Aggregate.Parallel
	pieces := ranges
	sizes := make([]int64, len(ranges))
	for i := range sizes {
		sizes[i] = 1
	}
	total := int64(len(ranges))
	if len(ranges) <= maxEstimates {
		var err error
		if pieces, sizes, total, err = cutLarge(src, req, ranges, n); err != nil || total < divideBytes {
			return nil
		}
	}
	parts := make([][]storage.Range, n)
	before := int64(0)
	for i, piece := range pieces {
		at := int(float64(before+sizes[i]/2) / float64(total) * float64(n))
		at = min(at, n-1)
		parts[at] = append(parts[at], piece)
		before += sizes[i]
	}
	return slices.DeleteFunc(parts, func(p []storage.Range) bool { return len(p) == 0 })
}

// cutLarge cuts the ranges that are too large for one of n parts. The pieces are in
// the order in which they are walked.
func cutLarge(src Splittable, req *Request, ranges []storage.Range, n int) (pieces []storage.Range, sizes []int64, total int64, err error) {
	whole := make([]int64, len(ranges))
	for i, r := range ranges {
		if whole[i], err = src.EstimateBytes(r); err != nil {
			return nil, nil, 0, err
		}
		total += whole[i]
	}
	if total < divideBytes {
		return nil, nil, total, nil
	}
	for i, r := range ranges {
		cut := []storage.Range{r}
		if want := int((whole[i]*int64(n) + total - 1) / total); want > 1 && whole[i] >= splitWalkBytes {
			if cut, err = Split(src, r, want); err != nil {
				return nil, nil, 0, err
			}
		}
		if req.Reverse {
			slices.Reverse(cut)
		}
		pieces = append(pieces, cut...)
		for range cut {
			sizes = append(sizes, whole[i]/int64(len(cut)))
		}
	}
	return pieces, sizes, total, nil
}

// errNeedless ends a part that comes after one that has failed.
var errNeedless = errors.New("an earlier part has failed")

// part is what one goroutine reads.
type part struct {
	*runner
	number int
	ranges []storage.Range
	all    *parts
	told   int64 // of the rows read, those that are in all.rows
	err    error
	fault  any // a panic, and where it was
}

// parts are those of one scan.
type parts struct {
	list []*part
	last atomic.Int64 // the number of the last part that is still needed
	rows atomic.Int64 // read by all of them, about
}

// runParts reads the parts and merges their groups into those of r. done is false,
// without an error, if that takes too much memory: the groups that the parts have in
// common are kept once for each of them, which one goroutine does not do.
func (r *runner) runParts(view storage.Reader, divided [][]storage.Range, groupBytes int) (done bool, err error) {
	all := &parts{}
	for i, ranges := range divided {
		p := &part{runner: newRunner(r.req, r.w, groupBytes/len(divided)), number: i, ranges: ranges, all: all}
		p.runner.part = p
		all.list = append(all.list, p)
	}
	all.last.Store(int64(len(divided)))
	var running sync.WaitGroup
	for _, p := range all.list {
		running.Go(func() { p.run(view) })
	}
	ended := make(chan struct{})
	go func() {
		running.Wait()
		close(ended)
	}()
	err = r.await(all, ended)
	for _, p := range all.list {
		if p.fault != nil {
			panic(p.fault) // of ours: it ends this scan, as on its own goroutine
		}
		r.totals.RowsRead += p.totals.RowsRead
		r.totals.Engine += p.totals.Engine
	}
	if err != nil {
		return false, err
	}
	return r.mergeParts(all)
}

// await waits until all parts have ended, and tells the consumer that they have not.
func (r *runner) await(all *parts, ended chan struct{}) error {
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	var failed error
	for {
		select {
		case <-ended:
			return failed
		case <-tick.C:
		}
		if failed != nil {
			continue
		}
		if err := r.sink.Progress(all.rows.Load()); err != nil {
			failed = r.stop(err)
			all.last.Store(-1)
		}
	}
}

// mergeParts merges the groups of the parts up to the first that has failed.
func (r *runner) mergeParts(all *parts) (done bool, err error) {
	for _, p := range all.list {
		if p.groups.large {
			r.totals = Totals{}
			return false, nil
		}
	}
	for _, p := range all.list {
		if p.stopped != nil {
			return false, r.stop(p.stopped)
		}
		if err := r.groups.merge(p.groups, r.check); err != nil {
			return false, err
		}
		if p.err != nil {
			return false, p.err
		}
		p.groups = nil
	}
	return true, nil
}

// run reads the part.
func (p *part) run(view storage.Reader) {
	defer func() {
		if fault := recover(); fault != nil {
			p.fault = fmt.Sprintf("%v, in part %d of a scan\n%s", fault, p.number, debug.Stack())
			p.all.needOnly(-1)
		}
	}()
	if _, p.err = p.scanRanges(view, p.ranges, 0); p.err != nil {
		p.all.needOnly(p.number)
	}
}

// needOnly makes all parts behind number end soon.
func (a *parts) needOnly(number int) {
	for {
		last := a.last.Load()
		if last <= int64(number) || a.last.CompareAndSwap(last, int64(number)) {
			return
		}
	}
}

// check is what runner.check does in a part: whether it is needed.
func (p *part) check() error {
	p.all.rows.Add(p.totals.RowsRead - p.told)
	p.told = p.totals.RowsRead
	if p.all.last.Load() < int64(p.number) {
		return errNeedless
	}
	return nil
}
