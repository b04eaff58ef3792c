package scan

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
)

// lateSink acknowledges what it has been sent when the scan waits for it, or never.
type lateSink struct {
	sink
	never    bool
	largest  int // bytes unacknowledged
	unacked  int
	blockeds int
}

func (s *lateSink) Batch(bin []byte) error {
	s.sizes = append(s.sizes, len(bin))
	s.unacked += len(bin)
	s.largest = max(s.largest, s.unacked)
	return nil
}

func (s *lateSink) Blocked() {
	s.blockeds++
	if !s.never && s.unacked > 0 {
		n := s.unacked
		s.unacked = 0
		if err := s.w.Ack(int64(n)); err != nil {
			s.t.Error(err)
		}
	}
}

// TestSlowStart: the rows are those of a scan without, batches double from the first
// size to the full one and stay there, and the credit ends at its full size.
func TestSlowStart(t *testing.T) {
	const row = 5 + 4 // an encoded key of four bytes, or of five
	const full, window = 32 << 10, 128 << 10
	r := numbered(100_000)
	req := Request{Ranges: everything, Form: keys, MaxBatchBytes: full, MaxUnackedBytes: window, SlowStart: true}
	s := &sink{t: t, w: NewWindow(window)}
	totals, err := Run(r, req, s.w, s)
	want, _, _ := run(t, numbered(100_000), Request{Form: keys, MaxBatchBytes: full})
	if err != nil || totals.Rows != 100_000 || !slices.Equal(s.keys(), want.keys()) {
		t.Fatalf("%v, %v", totals, err)
	}
	bound := firstBatchBytes
	for i, size := range s.sizes[:len(s.sizes)-1] {
		if size < bound || size >= bound+2*row {
			t.Errorf("batch %d has %d bytes, its bound is %d", i, size, bound)
		}
		bound = min(2*bound, full)
	}
	if s.w.max != window {
		t.Errorf("the window ends with %d bytes", s.w.max)
	}
}

// TestSlowStartReadsLittle: a consumer that acknowledges nothing is sent two batches
// at most before the scan waits, and few rows more than those are read.
func TestSlowStartReadsLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := numbered(100_000)
		w := NewWindow(10 << 20)
		s := &lateSink{sink: sink{t: t, w: w}, never: true}
		req := Request{Ranges: everything, Form: keys, MaxBatchBytes: 1 << 20, MaxUnackedBytes: 10 << 20, SlowStart: true}
		done := make(chan Totals)
		go func() {
			totals, err := Run(r, req, w, s)
			if !errors.Is(err, ErrStopped) {
				t.Error(err)
			}
			done <- totals
		}()
		synctest.Wait()
		if len(s.sizes) > 2 || s.unacked > 4*firstBatchBytes {
			t.Errorf("%d batches, %d bytes", len(s.sizes), s.unacked)
		}
		w.Close(ErrStopped)
		// Two batches and the one that was not sent: 1, 2 and 4 KiB of nine or ten bytes a row.
		if totals := <-done; totals.RowsRead > 7<<10/9+3 {
			t.Errorf("%d rows read", totals.RowsRead)
		}
	})
}

// TestSlowStartTiny: bounds below the first size hold from the beginning.
func TestSlowStartTiny(t *testing.T) {
	w := NewWindow(300)
	s := &lateSink{sink: sink{t: t, w: w}}
	req := Request{Ranges: everything, Form: keys, MaxBatchBytes: 100, MaxUnackedBytes: 300, SlowStart: true}
	if _, err := Run(numbered(1000), req, w, s); err != nil {
		t.Fatal(err)
	}
	for _, size := range s.sizes {
		if size >= 100+9 {
			t.Errorf("a batch of %d bytes", size)
		}
	}
	if s.largest >= 300+109 || s.blockeds == 0 {
		t.Errorf("%d bytes unacknowledged, waited %d times", s.largest, s.blockeds)
	}
}
