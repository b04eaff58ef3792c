package scan

import (
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
)

func noBlock() {}

// windowOf is the window that a size asked for comes to.
func windowOf(size int) int { return max(size, 1) }

// TestWindowBound lets a producer and a consumer of random speed run against each
// other: at no moment is more unacknowledged than the window and one batch, the
// last batch included, and everything gets through.
func TestWindowBound(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	for _, max := range []int{0, 1, 100, 1000, 4096} {
		synctest.Test(t, func(t *testing.T) {
			w := NewWindow(max)
			const batches, largest = 500, 1000
			sizes := make(chan int, batches)
			go func() {
				defer close(sizes)
				for range batches {
					n := 1 + rnd.IntN(largest)
					if err := w.Take(n, noBlock); err != nil {
						t.Errorf("Take: %v", err)
						return
					}
					sizes <- n
				}
			}()
			got := 0
			for {
				synctest.Wait() // the producer has gone as far as it can
				unacked, _ := w.Unacked()
				// A window of nothing still lets one whole batch through.
				if unacked >= windowOf(max)+largest {
					t.Errorf("%d bytes unacknowledged, the window is %d and a batch at most %d", unacked, max, largest)
				}
				n, ok := <-sizes
				if !ok {
					break
				}
				got++
				if err := w.Ack(int64(n)); err != nil {
					t.Fatalf("Ack: %v", err)
				}
			}
			if unacked, _ := w.Unacked(); got != batches || unacked != 0 {
				t.Errorf("%d batches of %d arrived, %d bytes unacknowledged at the end", got, batches, unacked)
			}
		})
	}
}

func TestWindowBlocksUntilAck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWindow(10)
		blocked, through := 0, false
		if err := w.Take(25, func() { blocked++ }); err != nil { // one batch is always allowed
			t.Fatal(err)
		}
		go func() {
			if err := w.Take(1, func() { blocked++ }); err != nil {
				t.Error(err)
			}
			through = true
		}()
		synctest.Wait()
		_ = w.Ack(15) // 10 left: still full
		synctest.Wait()
		if through || blocked != 1 {
			t.Fatalf("through %v, blocked called %d times", through, blocked)
		}
		_ = w.Ack(1)
		synctest.Wait()
		if !through {
			t.Error("still waiting with 9 of 10 bytes unacknowledged")
		}
	})
}

func TestWindowOverAck(t *testing.T) {
	for _, n := range []int64{101, -1, 1 << 62} {
		w := NewWindow(10)
		_ = w.Take(100, noBlock)
		if err := w.Ack(n); !errors.Is(err, ErrOverAck) {
			t.Errorf("Ack(%d) of 100: %v", n, err)
		}
		if err := w.Take(1, noBlock); !errors.Is(err, ErrOverAck) {
			t.Errorf("Take after Ack(%d): %v", n, err)
		}
	}
}

func TestWindowCloseWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWindow(1)
		_ = w.Take(1, noBlock)
		ended := make(chan error)
		go func() { ended <- w.Take(1, noBlock) }()
		synctest.Wait()
		w.Close(ErrStopped)
		w.Close(errors.New("only the first counts"))
		if err := <-ended; !errors.Is(err, ErrStopped) {
			t.Errorf("Take returned %v", err)
		}
	})
}
