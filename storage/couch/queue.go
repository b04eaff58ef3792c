package couch

import (
	"fmt"
	"sync"

	"scanode/storage"
)

// queue has the writes of a store in their order. Whoever comes first leads: he writes
// his own batch and those that wait behind it, all together, and then hands the lead on
// to the next. So a store needs no goroutine, and the batches that gathered while one sync
// ran share the next.
type queue struct {
	mu      sync.Mutex
	waiting []*request
	led     bool // somebody leads: the first of waiting, once he is told
}

// request is one batch, or something that must not run beside writes.
type request struct {
	ops   []entry
	size  int64
	sync  bool
	alone func() error // instead of a batch

	err  error
	turn chan bool // true: lead; false: done
}

// Bounds of what is written together, beyond which the rest waits for its turn.
const (
	maxGroup      = 1024
	maxGroupBytes = 16 << 20
)

// submit has a request done and returns its error. The store is entered.
func (s *store) submit(r *request) error {
	q := &s.queue
	q.mu.Lock()
	q.waiting = append(q.waiting, r)
	if q.led {
		r.turn = make(chan bool, 1)
		q.mu.Unlock()
		if lead := <-r.turn; !lead {
			return r.err
		}
	} else {
		q.led = true
		q.mu.Unlock()
	}
	group := q.take()
	s.work(group)
	q.pass()
	for _, other := range group[1:] {
		other.turn <- false
	}
	return r.err
}

// alone runs f while nobody writes.
func (s *store) alone(f func() error) error { return s.submit(&request{alone: f}) }

// take returns the first requests of the queue, which can be done together. The first is
// that of the caller.
func (q *queue) take() []*request {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, size := 1, q.waiting[0].size
	for q.waiting[0].alone == nil && n < min(len(q.waiting), maxGroup) {
		next := q.waiting[n]
		if next.alone != nil || size+next.size > maxGroupBytes {
			break
		}
		size += next.size
		n++
	}
	group := append([]*request(nil), q.waiting[:n]...)
	rest := copy(q.waiting, q.waiting[n:])
	clear(q.waiting[rest:])
	q.waiting = q.waiting[:rest]
	return group
}

// pass hands the lead on.
func (q *queue) pass() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.led = len(q.waiting) > 0; q.led {
		q.waiting[0].turn <- true
	}
}

// work does a group of requests. A panic would leave all behind it waiting; it parks the
// store instead.
func (s *store) work(group []*request) {
	defer func() {
		if r := recover(); r != nil {
			s.park(fmt.Errorf("panic: %v", r))
			for _, r := range group {
				r.err = s.unknown()
			}
		}
	}()
	if s.parkErr.Load() != nil {
		for _, r := range group {
			r.err = failed(s.parkErr.Load())
		}
		return
	}
	if f := group[0].alone; f != nil {
		group[0].err = f()
		return
	}
	if err := s.writer.apply(group); err != nil {
		s.park(err)
		for _, r := range group {
			r.err = s.unknown()
		}
	}
}

// unknown is the error of a batch that a failure of the disk has met.
func (s *store) unknown() error { return failedf("%w: %w", storage.ErrUnknown, s.parkErr.Load()) }
