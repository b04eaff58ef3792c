package storetest

import (
	"fmt"
	"math/rand/v2"

	"scanode/storage"
)

// This file tries the sentences about snapshots, checkpoints and statistics.

var viewSentences = []sentence{
	{"a snapshot does not change", func(b *bench) {
		s := b.fresh()
		rng := rand.New(rand.NewPCG(4, 4))
		b.put(s, "a", "1", "b", "2")
		sn, err := s.Snapshot()
		if err != nil {
			b.Fatal(err)
		}
		for range 40 {
			b.apply(s, false, storage.Op{Kind: storage.Put, Key: []byte("c"), Value: filler(rng, 50<<10)})
		}
		b.put(s, "a", "new")
		b.apply(s, true, del("b"))
		b.wantRows(sn, storage.Range{}, "a", "1", "b", "2")
		b.wantGet(sn, "b", "2")
		b.wantMissing(sn, "c")
		b.wantMissing(s, "b")
		b.close("snapshot", sn)
	}},
	{"a closed snapshot is ErrClosed, its iterators live on", func(b *bench) {
		s := b.fresh()
		b.put(s, "a", "1")
		sn, err := s.Snapshot()
		if err != nil {
			b.Fatal(err)
		}
		b.put(s, "a", "2")
		it := b.iter(sn, storage.Range{})
		b.close("snapshot", sn)
		b.wantIs("second close", sn.Close(), storage.ErrClosed)
		dst, err := sn.Get([]byte("dst"), []byte("a"))
		b.wantIs("get", err, storage.ErrClosed)
		if string(dst) != "dst" {
			b.Fatalf("dst became %q", dst)
		}
		_, err = sn.NewIter(storage.Range{})
		b.wantIs("new iterator", err, storage.ErrClosed)
		if !it.First() || string(it.Value()) != "1" {
			b.Fatalf("iterator: %q, %v", it.Value(), it.Err())
		}
		b.close("iterator", it)
	}},
	{"a checkpoint is a store of its own", func(b *bench) {
		s := b.fresh()
		for i := range 200 {
			b.put(s, fmt.Sprintf("%03d", i), "old")
		}
		b.apply(s, false, del("100"))
		want := b.rows(s, storage.Range{})
		copyDir := b.env.Dir + "/copy"
		if err := s.Checkpoint(copyDir); err != nil {
			b.Fatal(err)
		}
		b.put(s, "new", "x", "000", "new")
		c, err := b.env.Engine.Open(copyDir, storage.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if got := b.rows(c, storage.Range{}); !equal(got, want) {
			b.Fatalf("the copy holds %q, want %q", got, want)
		}
		b.put(c, "only in the copy", "x")
		b.wantMissing(s, "only in the copy")
		b.wantMissing(c, "new")
		b.close("copy", c)
		b.wantGet(s, "000", "new")
		b.close("store", s)
		s = b.open(b.dir())
		b.wantGet(s, "000", "new")
		b.close("store", s)
	}},
	{"a checkpoint survives loss of power once it is there", func(b *bench) {
		if b.env.Crash == nil {
			b.Skip("the engine's disk cannot crash")
		}
		s := b.fresh()
		b.put(s, "a", "1")
		b.apply(s, true, puts("b", "2")...)
		b.put(s, "c", "3") // not synced, but before the checkpoint
		if err := s.Checkpoint(b.env.Dir + "/copy"); err != nil {
			b.Fatal(err)
		}
		c, err := b.crashed(0, random(5)).env.Engine.Open(b.env.Dir+"/copy", storage.Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.wantRows(c, storage.Range{}, "a", "1", "b", "2", "c", "3")
		b.close("copy", c)
	}},
	{"a checkpoint does not go into a directory that exists", func(b *bench) {
		s := b.fresh()
		b.put(s, "a", "1")
		if err := s.Checkpoint(b.env.Dir + "/copy"); err != nil {
			b.Fatal(err)
		}
		for _, dir := range []string{b.env.Dir + "/copy", b.dir()} {
			if err := s.Checkpoint(dir); err == nil {
				b.Fatalf("checkpoint over %s", dir)
			}
		}
		c := b.open(b.env.Dir + "/copy")
		b.wantRows(c, storage.Range{}, "a", "1")
		b.close("copy", c)
		b.wantRows(s, storage.Range{}, "a", "1")
	}},
	{"statistics name the engine and count what is open", func(b *bench) {
		s := b.fresh()
		b.apply(s, true, puts("a", "1", "b", "2")...)
		sn, err := s.Snapshot()
		if err != nil {
			b.Fatal(err)
		}
		its := []storage.Iter{b.iter(s, storage.Range{}), b.iter(sn, storage.Range{})}
		want := func(iters, snapshots int64) {
			b.Helper()
			st, err := s.Stats()
			if err != nil {
				b.Fatal(err)
			}
			if st.Iterators != iters || st.Snapshots != snapshots {
				b.Fatalf("%d iterators, %d snapshots, want %d, %d", st.Iterators, st.Snapshots, iters, snapshots)
			}
			if st.Engine == "" || st.Text == "" || st.DiskBytes <= 0 || st.MemoryBytes < 0 || st.Files < 0 || st.Parked || st.ReadErrors != 0 {
				b.Fatalf("statistics %+v", st)
			}
		}
		want(2, 1)
		b.close("iterator", its[0])
		want(1, 1)
		b.close("snapshot", sn)
		want(1, 0)
		b.close("iterator", its[1])
		b.close("iterator", its[1])
		want(0, 0)
	}},
}
