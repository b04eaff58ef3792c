package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"

	"scanode/storage"
)

// This file tries the sentences about Apply.

var writeSentences = []sentence{
	{"operations of a batch apply in order, a later one on the same key wins", func(b *bench) {
		s := b.fresh()
		ops := puts("a", "1", "a", "2", "b", "1")
		ops = append(ops, del("b"), del("c"))
		ops = append(ops, puts("c", "3")...)
		b.apply(s, false, ops...)
		b.wantRows(s, storage.Range{}, "a", "2", "c", "3")
	}},
	{"a later batch wins", func(b *bench) {
		s := b.fresh()
		b.put(s, "a", "1")
		b.put(s, "a", "2")
		b.wantGet(s, "a", "2")
		b.apply(s, false, del("a"))
		b.wantMissing(s, "a")
		b.put(s, "a", "3")
		b.wantRows(s, storage.Range{}, "a", "3")
	}},
	{"removing an absent key is no error", func(b *bench) {
		s := b.fresh()
		b.apply(s, false, del("absent"))
		b.apply(s, true, del("absent"), del("absent"))
		b.wantRows(s, storage.Range{})
	}},
	{"Value is ignored for Delete", func(b *bench) {
		s := b.fresh()
		b.put(s, "k", "v")
		b.apply(s, false, storage.Op{Kind: storage.Delete, Key: []byte("k"), Value: []byte("x")})
		b.wantMissing(s, "k")
	}},
	{"an empty batch is no error", func(b *bench) {
		s := b.fresh()
		b.apply(s, false)
		b.apply(s, true)
		b.put(s, "k", "v")
		b.apply(s, true)
		b.wantRows(s, storage.Range{}, "k", "v")
	}},
	{"an operation of unknown kind is refused and nothing of its batch applied", func(b *bench) {
		s := b.fresh()
		ops := append(puts("a", "1"), storage.Op{Kind: 200, Key: []byte("b")})
		err := s.Apply(ops, false)
		if err == nil || is(err, storage.ErrUnknown) {
			b.Fatalf("apply: %v", err)
		}
		b.wantRows(s, storage.Range{})
	}},
	{"a reader sees all of a batch or none of it", func(b *bench) {
		s := b.fresh()
		const keys = 20
		batch := func(n int) []storage.Op {
			var kv []string
			for k := range keys {
				kv = append(kv, fmt.Sprintf("%02d", k), fmt.Sprint(n))
			}
			return puts(kv...)
		}
		b.apply(s, false, batch(0)...)
		var stop atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() {
			for n := 1; n <= 300; n++ {
				if err := s.Apply(batch(n), false); err != nil {
					b.Error(err)
				}
			}
			stop.Store(true)
		})
		for !stop.Load() {
			rows := b.rows(s, storage.Range{})
			for _, r := range rows {
				if r.value != rows[0].value || len(rows) != keys {
					b.Fatalf("half a batch: %q", rows)
				}
			}
		}
		wg.Wait()
	}},
	{"what was written is there after close and open", func(b *bench) {
		s := b.fresh()
		for i := range 50 {
			b.apply(s, i%10 == 0, puts(fmt.Sprintf("%03d", i), fmt.Sprint(i), "gone", "x")...)
		}
		b.apply(s, false, del("gone"))
		want := b.rows(s, storage.Range{})
		b.close("store", s)
		for range 3 {
			s = b.open(b.dir())
			if got := b.rows(s, storage.Range{}); !equal(got, want) || len(got) != 50 {
				b.Fatalf("rows %q, want %q", got, want)
			}
			b.close("store", s)
		}
	}},
	{"a synced batch and all before it survive loss of power", func(b *bench) {
		if b.env.Crash == nil {
			b.Skip("the engine's disk cannot crash")
		}
		s := b.fresh()
		b.put(s, "a", "1")
		b.apply(s, true, puts("b", "2")...)
		b.put(s, "c", "3")
		rng := random(1)
		for _, percent := range []int{0, 50, 100} {
			b2 := b.crashed(percent, rng)
			s2 := b2.open(b.dir())
			b2.wantGet(s2, "a", "1")
			b2.wantGet(s2, "b", "2")
			b2.close("store", s2)
		}
		b.apply(s, true)
		b2 := b.crashed(0, rng)
		s2 := b2.open(b.dir())
		b2.wantRows(s2, storage.Range{}, "a", "1", "b", "2", "c", "3")
		b2.close("store", s2)
	}},
}
