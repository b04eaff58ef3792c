package scan

import (
	"fmt"
	"time"

	"scanode/filter"
	"scanode/storage"
)

// Sink receives what a scan produces. Its methods block while the transport
// does; an error from one ends the scan with that error.
type Sink interface {
	// Batch sends one batch; bin is overwritten after it returns.
	Batch(bin []byte) error
	// Progress tells the consumer that the scan is alive after rowsRead rows,
	// at most once a second and only if nothing else was sent in that second.
	Progress(rowsRead int64) error
	// Blocked is called when the scan begins to wait for credit.
	Blocked()
}

// Source is what is scanned: a store or a snapshot. Several ranges need one view
// of a store, which is why it can make one.
type Source interface {
	Splittable
	Snapshot() (storage.Snapshot, error)
}

// Totals counts what a scan did. The times are 0 unless Request.Cost asked for
// them.
type Totals struct {
	RowsRead int64 // rows the iterator produced
	Rows     int64 // rows sent
	Batches  int64
	Bytes    int64 // of all batches

	Engine time.Duration // in the iterator
	Credit time.Duration // waiting for the consumer
	Send   time.Duration // in the transport

	// Last is the last row sent, if a limit ended the scan; nil if there was
	// nothing more to find.
	Last *Position
}

// RowError says that a row is not what the scan needs. Key is a copy.
type RowError struct {
	Key []byte
	Err error
}

// Error names the cause; the key is for whoever knows how to show it.
func (e *RowError) Error() string { return fmt.Sprintf("row with key %s: %v", show(e.Key), e.Err) }

// Unwrap returns the cause.
func (e *RowError) Unwrap() error { return e.Err }

// checkRows is how often, in rows, a scan looks whether it must stop and whether
// a second has passed. It must be a power of two.
const checkRows = 256

const progressEvery = time.Second

// Run scans what req asks for in src and sends it to sink under w's credit. It
// returns nil when the ranges or the limit are exhausted and everything was sent.
// Otherwise the result is not complete: a *RowError, the store's error, the
// sink's, or the one w was closed with. Rows found before a row or store error
// are sent before Run returns it. What Run opens in src it closes.
func Run(src Source, req Request, w *Window, sink Sink) (Totals, error) {
	return runWithin(src, req, w, sink, maxGroupBytes)
}

// runWithin is Run with another bound of the groups' memory.
func runWithin(src Source, req Request, w *Window, sink Sink, groupBytes int) (Totals, error) {
	r := newRunner(req, w, groupBytes)
	r.sink = sink
	r.pace = newPace(&req, w)
	ranges, first := req.rangesAfter()
	parts := divide(src, &req, ranges)
	var view storage.Reader = src
	if len(ranges) > 1 || len(parts) > 1 {
		snapshot, err := src.Snapshot()
		if err != nil {
			return Totals{}, err
		}
		defer snapshot.Close()
		view = snapshot
	}
	r.batch.reset()
	r.spoke = time.Now()
	var full, done bool
	var err error
	if len(parts) > 1 {
		done, err = r.runParts(view, parts, groupBytes)
	}
	if !done && err == nil {
		full, err = r.scanRanges(view, ranges, first)
	}
	if err != nil {
		return r.totals, r.fail(err)
	}
	if full {
		return r.totals, nil
	}
	if r.groups != nil {
		if err := r.sendGroups(); err != nil {
			return r.totals, r.fail(err)
		}
	}
	err = r.flush()
	return r.totals, err
}

// runner is one scan under way, or one part of it.
type runner struct {
	req     Request
	w       *Window
	sink    Sink
	matcher *filter.Matcher // nil without a filter
	form    *former
	groups  *aggregator // nil if rows are sent
	part    *part       // nil if this is the whole
	batch   batch
	pace    pace
	totals  Totals
	at      int       // the number of the range
	spoke   time.Time // when the consumer last heard from the scan
	stopped error     // why nothing can be sent any more
}

func newRunner(req Request, w *Window, groupBytes int) *runner {
	r := &runner{req: req, w: w}
	if req.Aggregate != nil {
		r.groups = newAggregator(req.Aggregate, groupBytes)
	}
	r.matcher = r.newMatcher()
	r.form = newForm(req.Form, r.matcher)
	return r
}

// newMatcher returns what looks into the rows: for the filter and, on the same
// walk, for the columns; nil if nobody wants to know.
func (r *runner) newMatcher() *filter.Matcher {
	var columns []string
	switch {
	case r.groups != nil:
		columns = r.groups.columns
	case r.req.Form.Kind == Select:
		columns = r.req.Form.Columns
	case r.req.Filter == nil:
		return nil
	}
	return filter.NewMatcher(r.req.Filter, filter.DefaultExtractors(), columns...)
}

// scanRanges walks ranges, the first of which has the given number; full says that
// the limit is reached.
func (r *runner) scanRanges(view storage.Reader, ranges []storage.Range, first int) (full bool, err error) {
	for i, rng := range ranges {
		r.at = first + i
		if full, err = r.scanRange(view, rng); full || err != nil {
			break
		}
	}
	return full, err
}

func (r *runner) scanRange(view storage.Reader, rng storage.Range) (full bool, err error) {
	it, err := view.NewIter(rng)
	if err != nil {
		return false, err
	}
	full, err = r.walk(r.timed(it))
	if cerr := it.Close(); err == nil {
		err = cerr
	}
	return full, err
}

// walk sends the rows of one range; full says that the limit is reached, and
// then everything has been sent.
func (r *runner) walk(it storage.Iter) (full bool, err error) {
	step := it.Next
	ok := false
	if r.req.Reverse {
		step, ok = it.Prev, it.Last()
	} else {
		ok = it.First()
	}
	for ; ok; ok = step() {
		if r.totals.RowsRead%checkRows == 0 {
			if err := r.check(); err != nil {
				return false, err
			}
		}
		r.totals.RowsRead++
		var value []byte
		if r.matcher != nil || r.form.needsValue {
			if value = it.Value(); value == nil && it.Err() != nil {
				break
			}
		}
		if r.matcher != nil {
			match, err := r.matcher.Match(it.Key(), value)
			if err != nil {
				return false, rowError(it, err)
			}
			if !match {
				continue
			}
		}
		if r.groups != nil {
			if err := r.groups.add(it.Key(), r.matcher); err != nil {
				return false, groupError(it, err)
			}
			continue
		}
		sent, err := r.form.append(&r.batch, it.Key(), value)
		if err != nil {
			return false, rowError(it, err)
		}
		if !sent {
			continue
		}
		r.totals.Rows++
		full = r.totals.Rows == r.req.Limit
		if full {
			r.totals.Last = &Position{Range: r.at, Key: append([]byte(nil), it.Key()...)}
		}
		if full || r.batch.size() >= r.pace.batchBytes() {
			if err := r.flush(); err != nil || full {
				return full, err
			}
		}
	}
	return false, it.Err()
}

func rowError(it storage.Iter, err error) error {
	return &RowError{Key: append([]byte(nil), it.Key()...), Err: err}
}

// fail sends the rows found so far and returns err, or the failure to send them.
func (r *runner) fail(err error) error {
	if r.stopped == nil {
		r.flush()
	}
	if r.stopped != nil {
		return r.stopped
	}
	return err
}

// stop remembers why nothing can be sent any more.
func (r *runner) stop(err error) error {
	r.stopped = err
	return err
}

// flush sends the batch, if there are rows in it.
func (r *runner) flush() error {
	if r.batch.rows == 0 {
		return nil
	}
	bin := r.batch.finish()
	start := r.clock()
	if err := r.w.Take(len(bin), r.sink.Blocked); err != nil {
		return r.stop(err)
	}
	granted := r.clock()
	if err := r.sink.Batch(bin); err != nil {
		return r.stop(err)
	}
	if r.req.Cost {
		r.totals.Credit += granted.Sub(start)
		r.totals.Send += time.Since(granted)
	}
	r.pace.sent(r.w)
	r.totals.Batches++
	r.totals.Bytes += int64(len(bin))
	r.batch.reset()
	r.spoke = time.Now()
	return nil
}

func (r *runner) check() error {
	if err := r.w.Err(); err != nil {
		return r.stop(err)
	}
	if r.part != nil {
		return r.part.check()
	}
	if now := time.Now(); now.Sub(r.spoke) >= progressEvery {
		r.spoke = now
		if err := r.sink.Progress(r.totals.RowsRead); err != nil {
			return r.stop(err)
		}
	}
	return nil
}
