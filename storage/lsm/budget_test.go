package lsm

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// TestBudget: many claims at once never hold more than there is, whether they
// wait to the end or give up.
func TestBudget(t *testing.T) {
	b := &budget{total: 100}
	stopped := make(chan struct{})
	close(stopped)
	var held atomic.Int64
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			rng := newRand(uint64(i))
			for range 200 {
				n := 1 + rng.Int64N(150)
				var stop chan struct{}
				if rng.IntN(4) == 0 {
					stop = stopped
				}
				giveBack := b.take(n, stop)
				if giveBack == nil {
					if stop == nil {
						t.Error("a claim was refused")
					}
					continue
				}
				if h := held.Add(min(n, b.total)); h > b.total {
					t.Errorf("%d bytes are held", h)
				}
				runtime.Gosched()
				held.Add(-min(n, b.total))
				giveBack()
			}
		})
	}
	wg.Wait()
	if b.used != 0 || b.queue.Len() != 0 {
		t.Errorf("%d bytes used, %d claims wait", b.used, b.queue.Len())
	}
}

// TestBudgetInTurn: a large claim is not passed by small ones behind it.
func TestBudgetInTurn(t *testing.T) {
	b := &budget{total: 100}
	first := b.take(60, nil)
	got := make(chan string, 2)
	wait := func(name string, bytes int64, queued int) func() {
		result := make(chan func(), 1)
		go func() {
			giveBack := b.take(bytes, nil)
			got <- name
			result <- giveBack
		}()
		for n := 0; n < queued; runtime.Gosched() {
			b.mu.Lock()
			n = b.queue.Len()
			b.mu.Unlock()
		}
		return func() { (<-result)() }
	}
	large := wait("large", 1000, 1)
	small := wait("small", 10, 2)
	first()
	if name := <-got; name != "large" {
		t.Errorf("%s came first", name)
	}
	large()
	if name := <-got; name != "small" {
		t.Error(name)
	}
	small()
}

// TestParkedWaiter: a writer who waits for his share is answered when his store
// is parked.
func TestParkedWaiter(t *testing.T) {
	e := engine(t, nil)
	s := openIn(t, e, t.TempDir())
	all := e.batches.take(e.batches.total, nil)
	answer := make(chan error, 1)
	go func() { answer <- s.Apply(put("k", string(make([]byte, 2*largeBatch))), true) }()
	for n := 0; n == 0; runtime.Gosched() {
		e.batches.mu.Lock()
		n = e.batches.queue.Len()
		e.batches.mu.Unlock()
	}
	s.park(errDisk)
	if err := <-answer; err == nil {
		t.Error("a write to a parked store worked")
	}
	all()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if e.batches.used != 0 {
		t.Errorf("%d bytes are used", e.batches.used)
	}
}
