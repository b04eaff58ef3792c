package scan

import (
	"scanode/filter"
	"scanode/storage"
)

// Request says which rows to send, and how.
type Request struct {
	// Ranges are walked one after the other, in this order, on one view of the
	// store. There is at least one.
	Ranges []storage.Range
	// Reverse walks each range from its end to its start.
	Reverse bool
	// Filter keeps the rows it matches; nil keeps every row, whatever it is.
	Filter *filter.Expr
	// Form is what of a row is sent.
	Form Form
	// Aggregate sends groups instead of rows; Form and After then do not count
	// and Limit counts groups.
	Aggregate *Aggregate
	// Limit ends the scan after so many rows sent; 0 is no limit.
	Limit int64
	// MaxBatchBytes: a batch is sent as soon as it has this size.
	MaxBatchBytes int
	// SlowStart lets a scan begin with small batches and little credit, both of
	// which double with each batch, see pace. MaxUnackedBytes is what the window
	// has in the end; without SlowStart its size is its owner's business.
	SlowStart       bool
	MaxUnackedBytes int
	// After resumes a scan that a limit ended: the rows behind the one it
	// names are sent. nil starts at the beginning.
	After *Position
	// Cost asks for the times in Totals, which costs about 100 ns a row.
	Cost bool
}

// Position names a row of a scan: the range by its number and the key. Key is
// the position's own.
type Position struct {
	Range int
	Key   []byte
}

// rangesAfter returns the ranges still to walk, and the number of the first.
func (r *Request) rangesAfter() (ranges []storage.Range, first int) {
	if r.After == nil {
		return r.Ranges, 0
	}
	ranges = append([]storage.Range(nil), r.Ranges[r.After.Range:]...)
	at := &ranges[0]
	if r.Reverse {
		at.End, at.EndInclusive = r.After.Key, false
	} else {
		at.Start, at.StartExclusive = r.After.Key, true
	}
	return ranges, r.After.Range
}
