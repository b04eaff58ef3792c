package scan

import (
	"time"

	"scanode/storage"
)

// clock is the time, if the request wants to know what took how long.
func (r *runner) clock() time.Time {
	if !r.req.Cost {
		return time.Time{}
	}
	return time.Now()
}

// timed returns an iterator whose moves are counted as time in the engine, if the
// request wants to know.
func (r *runner) timed(it storage.Iter) storage.Iter {
	if !r.req.Cost {
		return it
	}
	return &timedIter{Iter: it, spent: &r.totals.Engine}
}

// timedIter measures the moves that a scan makes and the reading of values.
type timedIter struct {
	storage.Iter
	spent *time.Duration
}

func (t *timedIter) First() bool { defer t.since(time.Now()); return t.Iter.First() }
func (t *timedIter) Last() bool  { defer t.since(time.Now()); return t.Iter.Last() }
func (t *timedIter) Next() bool  { defer t.since(time.Now()); return t.Iter.Next() }
func (t *timedIter) Prev() bool  { defer t.since(time.Now()); return t.Iter.Prev() }

func (t *timedIter) Value() []byte { defer t.since(time.Now()); return t.Iter.Value() }

func (t *timedIter) since(start time.Time) { *t.spent += time.Since(start) }
