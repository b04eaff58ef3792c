package scan

import (
	"fmt"
	"time"

	"scanode/filter"
	"scanode/storage"
)

// Request says which rows to send, and how.
type Request struct {
	Range         storage.Range
	Filter        *filter.Expr // nil: every row, whatever it is
	Rows          Rows
	Limit         int64 // end after so many rows sent; 0: no limit
	MaxBatchBytes int   // a batch is sent as soon as it has this size
}

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

// Totals counts what a scan did.
type Totals struct {
	RowsRead int64 // rows the iterator produced
	Rows     int64 // rows sent
	Batches  int64
}

// RowError says that a row is not what the filter needs. Key is a copy.
type RowError struct {
	Key []byte
	Err error
}

// Error names the cause; the key is for whoever knows how to show it.
func (e *RowError) Error() string { return fmt.Sprintf("row with key %q: %v", e.Key, e.Err) }

// Unwrap returns the filter's error.
func (e *RowError) Unwrap() error { return e.Err }

// checkRows is how often, in rows, a scan looks whether it must stop and whether
// a second has passed. It must be a power of two.
const checkRows = 256

const progressEvery = time.Second

// Run scans what req asks for in r and sends it to sink under w's credit. It
// returns nil when the range or the limit is exhausted and everything was sent.
// Otherwise the result is not complete: a *RowError, the store's error, the
// sink's, or the one w was closed with. Rows found before a row or store error
// are sent before Run returns it. The iterator is always closed.
func Run(r storage.Reader, req Request, w *Window, sink Sink) (Totals, error) {
	it, err := r.NewIter(req.Range)
	if err != nil {
		return Totals{}, err
	}
	run := runner{req: req, w: w, sink: sink}
	if req.Filter != nil {
		run.matcher = filter.NewMatcher(req.Filter, filter.DefaultExtractors())
	}
	err = run.walk(it)
	if cerr := it.Close(); err == nil {
		err = cerr
	}
	return run.totals, err
}

type runner struct {
	req     Request
	w       *Window
	sink    Sink
	matcher *filter.Matcher // nil without a filter
	batch   batch
	totals  Totals
	spoke   time.Time // when the consumer last heard from the scan
}

func (r *runner) walk(it storage.Iter) error {
	r.batch.reset()
	r.spoke = time.Now()
	for ok := it.First(); ok; ok = it.Next() {
		if r.totals.RowsRead%checkRows == 0 {
			if err := r.check(); err != nil {
				return err
			}
		}
		r.totals.RowsRead++
		var value []byte
		if r.matcher != nil || r.req.Rows == KV {
			if value = it.Value(); value == nil && it.Err() != nil {
				break
			}
		}
		if r.matcher != nil {
			match, err := r.matcher.Match(it.Key(), value)
			if err != nil {
				return r.fail(&RowError{Key: append([]byte(nil), it.Key()...), Err: err})
			}
			if !match {
				continue
			}
		}
		r.batch.add(r.req.Rows, it.Key(), value)
		r.totals.Rows++
		last := r.totals.Rows == r.req.Limit
		if last || r.batch.size() >= r.req.MaxBatchBytes {
			if err := r.flush(); err != nil || last {
				return err
			}
		}
	}
	if err := it.Err(); err != nil {
		return r.fail(err)
	}
	return r.flush()
}

// fail sends the rows found so far and returns err, or the failure to send them.
func (r *runner) fail(err error) error {
	if ferr := r.flush(); ferr != nil {
		return ferr
	}
	return err
}

func (r *runner) flush() error {
	if r.batch.rows == 0 {
		return nil
	}
	bin := r.batch.finish()
	if err := r.w.Take(len(bin), r.sink.Blocked); err != nil {
		return err
	}
	if err := r.sink.Batch(bin); err != nil {
		return err
	}
	r.totals.Batches++
	r.batch.reset()
	r.spoke = time.Now()
	return nil
}

func (r *runner) check() error {
	if err := r.w.Err(); err != nil {
		return err
	}
	if now := time.Now(); now.Sub(r.spoke) >= progressEvery {
		r.spoke = now
		return r.sink.Progress(r.totals.RowsRead)
	}
	return nil
}
