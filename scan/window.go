package scan

import (
	"errors"
	"sync"
)

// ErrOverAck is returned by Window.Ack, and then ends the scan: the consumer
// acknowledged more bytes than were sent.
var ErrOverAck = errors.New("more bytes acknowledged than sent")

// ErrStopped ends a scan whose consumer wants no more of it.
var ErrStopped = errors.New("stopped")

// Window is the byte credit of one scan. Bytes are unacknowledged from the
// moment Take grants them until Ack gives them back; while max or more are, Take
// blocks. One batch may always be under way, even one larger than max, so no
// window is too small to make progress. Unacknowledged bytes therefore stay
// below max plus one batch.
type Window struct {
	mu      sync.Mutex
	wake    sync.Cond // signalled when unacked falls or err is set
	max     int
	unacked int
	waits   int   // how often Take had to wait
	err     error // why the scan must end; set once
}

// NewWindow returns a Window of max bytes.
func NewWindow(max int) *Window {
	w := &Window{max: max}
	w.wake.L = &w.mu
	return w
}

// SetMax changes the window's size. Only what Take grants from then on obeys it.
func (w *Window) SetMax(max int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.max = max
	w.wake.Signal()
}

// Take grants n bytes, n > 0, when there is credit. Before it blocks it calls
// blocked, once, without holding a lock. It returns the window's error when the
// scan must end instead.
func (w *Window) Take(n int, blocked func()) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil && w.full() {
		w.waits++
		w.mu.Unlock()
		blocked()
		w.mu.Lock()
	}
	for w.err == nil && w.full() {
		w.wake.Wait()
	}
	if w.err != nil {
		return w.err
	}
	w.unacked += n
	return nil
}

func (w *Window) full() bool { return w.unacked > 0 && w.unacked >= w.max }

// Ack gives n bytes back. Acknowledging a negative number or more than is
// outstanding closes the window with ErrOverAck and returns it.
func (w *Window) Ack(n int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n < 0 || n > int64(w.unacked) {
		w.close(ErrOverAck)
		return ErrOverAck
	}
	w.unacked -= int(n)
	w.wake.Signal()
	return nil
}

// Close makes every Take, a waiting one included, return err. Only the first
// Close counts.
func (w *Window) Close(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.close(err)
}

func (w *Window) close(err error) {
	if w.err == nil {
		w.err = err
		w.wake.Broadcast()
	}
}

// Err returns why the scan must end, nil while it may go on.
func (w *Window) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Unacked returns the bytes sent and not yet acknowledged, and how often Take
// has had to wait.
func (w *Window) Unacked() (bytes, waits int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unacked, w.waits
}
