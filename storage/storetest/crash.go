package storetest

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"scanode/storage"
)

// Crash takes the power away while several goroutines write: at random points,
// with 0 to 100 percent of what was not synced kept. What was acknowledged as
// synced before must be there, batches whole, and each writer's batches without
// a gap.
func Crash(t *testing.T, f Factory) {
	if f(t).Crash == nil {
		t.Skip("the engine's disk cannot crash")
	}
	runs := 10
	if testing.Short() {
		runs = 3
	}
	for _, seed := range seeds(t, runs) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Logf("again: STORETEST_SEED=%d go test -run '%s'", seed, t.Name())
			crashRun(&bench{TB: t, env: f(t)}, seed)
		})
	}
}

const (
	crashWriters = 4
	crashes      = 4 // in a row, within one run
)

// crashWriter writes numbered batches of three rows: its number twice, and a
// row of its own for each number.
type crashWriter struct {
	id      int
	begun   atomic.Int64 // number of the last batch begun
	durable atomic.Int64 // number of the last batch acknowledged with sync
}

func crashRun(b *bench, seed uint64) {
	rng := random(seed)
	writers := make([]*crashWriter, crashWriters)
	for i := range writers {
		writers[i] = &crashWriter{id: i}
	}
	for range crashes {
		s := b.open(b.dir())
		for _, w := range writers {
			w.check(b, s)
		}
		var stop atomic.Bool
		var wg sync.WaitGroup
		for i, w := range writers {
			wrng := random(rng.Uint64() + uint64(i))
			wg.Go(func() { w.run(b, s, &stop, func(n int) int { return wrng.IntN(n) }) })
		}
		// The point of the crash is a number of batches begun, not a time.
		goal := int64(1 + rng.IntN(200))
		start := begun(writers)
		for begun(writers) < start+goal && !b.Failed() {
			if _, err := s.Get(nil, []byte("absent")); !is(err, storage.ErrNotFound) {
				b.Fatalf("get: %v", err)
			}
		}
		durable := make([]int64, len(writers))
		for i, w := range writers {
			durable[i] = w.durable.Load()
		}
		env := b.env.Crash(b.TB, rng.IntN(101), rng)
		stop.Store(true)
		wg.Wait()
		b.close("store", s)
		b.env = env
		for i, w := range writers {
			w.durable.Store(durable[i])
		}
	}
	s := b.open(b.dir())
	for _, w := range writers {
		w.check(b, s)
	}
	b.close("store", s)
}

func begun(writers []*crashWriter) (n int64) {
	for _, w := range writers {
		n += w.begun.Load()
	}
	return n
}

func (w *crashWriter) run(b *bench, s storage.Store, stop *atomic.Bool, intn func(int) int) {
	for !stop.Load() {
		n := w.begun.Add(1)
		sync := intn(6) == 0
		number := strconv.FormatInt(n, 10)
		ops := puts(fmt.Sprintf("%d/a", w.id), number,
			fmt.Sprintf("%d/n/%08d", w.id, n), number,
			fmt.Sprintf("%d/z", w.id), number)
		if intn(20) == 0 {
			ops[1].Value = append(ops[1].Value, make([]byte, 50<<10)...)
		}
		if err := s.Apply(ops, sync); err != nil {
			b.Errorf("apply: %v", err)
			return
		}
		if sync {
			w.durable.Store(n)
		}
	}
}

// check looks at the rows of w after a crash and goes on from what it finds.
func (w *crashWriter) check(b *bench, s storage.Store) {
	last := int64(0)
	prefix := fmt.Sprintf("%d/n/", w.id)
	for i, r := range b.rows(s, storage.Range{Start: []byte(prefix), End: fmt.Appendf(nil, "%d/n0", w.id)}) {
		last = int64(i + 1)
		if want := fmt.Sprintf("%s%08d", prefix, last); r.key != want {
			b.Fatalf("row %q is there, %q is not: a gap", r.key, want)
		}
	}
	if d := w.durable.Load(); last < d {
		b.Fatalf("writer %d: batch %d was acknowledged as synced, %d is the last there", w.id, d, last)
	}
	if top := w.begun.Load(); last > top {
		b.Fatalf("writer %d: batch %d was never written", w.id, last)
	}
	if last > 0 {
		b.wantGet(s, fmt.Sprintf("%d/a", w.id), strconv.FormatInt(last, 10))
		b.wantGet(s, fmt.Sprintf("%d/z", w.id), strconv.FormatInt(last, 10))
	}
	w.begun.Store(last)
}
