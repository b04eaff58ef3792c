package storetest

import (
	"fmt"
	"sync"

	"scanode/storage"
)

// This file tries the sentences about Store.Close.

var closeSentences = []sentence{
	{"after Close every call is ErrClosed", func(b *bench) {
		s := b.fresh()
		b.put(s, "a", "1")
		b.close("store", s)
		dst, err := s.Get([]byte("dst"), []byte("a"))
		b.wantIs("get", err, storage.ErrClosed)
		if string(dst) != "dst" {
			b.Fatalf("dst became %q", dst)
		}
		_, err = s.NewIter(storage.Range{})
		b.wantIs("new iterator", err, storage.ErrClosed)
		_, err = s.NewIter(storage.Range{End: []byte{}})
		b.wantIs("new iterator of nothing", err, storage.ErrClosed)
		b.wantIs("apply", s.Apply(puts("a", "2"), false), storage.ErrClosed)
		b.wantIs("empty apply", s.Apply(nil, false), storage.ErrClosed)
		_, err = s.Snapshot()
		b.wantIs("snapshot", err, storage.ErrClosed)
		b.wantIs("checkpoint", s.Checkpoint(b.env.Dir+"/copy"), storage.ErrClosed)
		_, err = s.Stats()
		b.wantIs("stats", err, storage.ErrClosed)
		b.wantIs("second close", s.Close(), storage.ErrClosed)
	}},
	{"iterators and snapshots open at Close are ended by it", testEnded},
	{"slices of an iterator outlive Close until its next call", func(b *bench) {
		s := b.fresh()
		for i := range 100 {
			b.put(s, fmt.Sprintf("%03d", i), fmt.Sprint(i))
		}
		it := b.iter(s, storage.Range{})
		if !it.SeekGE([]byte("042")) {
			b.Fatal(it.Err())
		}
		key, value := it.Key(), it.Value()
		b.close("store", s)
		s = b.open(b.dir())
		for i := range 100 {
			b.put(s, fmt.Sprintf("%03d", i), "overwritten")
		}
		if string(key) != "042" || string(value) != "42" {
			b.Fatalf("became %q, %q", key, value)
		}
		if it.Next() {
			b.Fatal("moved after the close")
		}
		b.wantIs("error of the iterator", it.Err(), storage.ErrClosed)
		b.wantIs("close of the iterator", it.Close(), storage.ErrClosed)
		b.wantGet(s, "042", "overwritten")
		b.close("store", s)
	}},
	{"a walk that ended before Close stays without error", func(b *bench) {
		s := b.fresh()
		b.put(s, "a", "1")
		it := b.iter(s, storage.Range{})
		for ok := it.First(); ok; ok = it.Next() {
		}
		b.close("store", s)
		if err := it.Err(); err != nil {
			b.Fatal(err)
		}
		b.close("iterator", it)
	}},
	{"Close waits for running calls, which succeed or are ErrClosed", testCloseRace},
}

func testEnded(b *bench) {
	s := b.fresh()
	b.put(s, "a", "1", "b", "2")
	sn, err := s.Snapshot()
	if err != nil {
		b.Fatal(err)
	}
	unmoved, moved, ofSnapshot := b.iter(s, storage.Range{}), b.iter(s, storage.Range{}), b.iter(sn, storage.Range{})
	if !moved.First() || !ofSnapshot.Last() {
		b.Fatal("no rows")
	}
	b.close("store", s)
	for name, it := range map[string]storage.Iter{"unmoved": unmoved, "moved": moved, "of the snapshot": ofSnapshot} {
		if it.Next() || it.First() || it.Prev() || it.Last() || it.SeekGE(nil) || it.SeekLT([]byte("z")) || it.Valid() {
			b.Fatalf("iterator %s moved", name)
		}
		b.wantIs("error of the iterator "+name, it.Err(), storage.ErrClosed)
		b.wantIs("close of the iterator "+name, it.Close(), storage.ErrClosed)
	}
	_, err = sn.Get(nil, []byte("a"))
	b.wantIs("get of the snapshot", err, storage.ErrClosed)
	_, err = sn.NewIter(storage.Range{})
	b.wantIs("iterator of the snapshot", err, storage.ErrClosed)
	b.wantIs("close of the snapshot", sn.Close(), storage.ErrClosed)
	s = b.open(b.dir())
	b.wantRows(s, storage.Range{}, "a", "1", "b", "2")
	b.close("store", s)
}

// testCloseRace closes a store under readers, writers and iterators, again and
// again, and reopens it while the iterators are still held.
func testCloseRace(b *bench) {
	fine := func(what string, err error) bool {
		if err != nil && !is(err, storage.ErrClosed) {
			b.Errorf("%s: %v", what, err)
		}
		return err == nil
	}
	acked := make([]int, 2) // by writer; each round goes on where the last ended
	for range 25 {
		s := b.open(b.dir())
		var wg sync.WaitGroup
		warm := make(chan struct{}, 16)
		for w := range acked {
			wg.Go(func() {
				for {
					n := acked[w] + 1
					if !fine("apply", s.Apply(puts(fmt.Sprintf("w%d", w), fmt.Sprint(n)), n%8 == 0)) {
						return
					}
					acked[w] = n
				}
			})
		}
		for range 2 {
			wg.Go(func() {
				for {
					if _, err := s.Get(nil, []byte("w0")); !is(err, storage.ErrNotFound) && !fine("get", err) {
						return
					}
				}
			})
			wg.Go(func() {
				for walk(b, s, fine) {
				}
			})
			wg.Go(func() {
				for {
					sn, err := s.Snapshot()
					if !fine("snapshot", err) {
						return
					}
					walk(b, sn, fine)
					fine("close of the snapshot", sn.Close())
					select {
					case warm <- struct{}{}:
					default:
					}
				}
			})
		}
		for range 4 {
			<-warm
		}
		b.close("store", s)
		again, err := b.env.Engine.Open(b.dir(), storage.Options{Engine: b.env.Options})
		if err != nil {
			b.Fatal(err)
		}
		wg.Wait()
		for w, n := range acked {
			if n > 0 {
				b.wantGet(again, fmt.Sprintf("w%d", w), fmt.Sprint(n))
			}
		}
		b.close("store", again)
		if b.Failed() {
			return
		}
	}
}

// walk runs an iterator over r there and back.
func walk(b *bench, r storage.Reader, fine func(string, error) bool) bool {
	it, err := r.NewIter(storage.Range{})
	if !fine("new iterator", err) {
		return false
	}
	for range 20 {
		for ok := it.First(); ok; ok = it.Next() {
			if k, v := it.Key(), it.Value(); len(k) != 2 || k[0] != 'w' || len(v) == 0 || v[0] > '9' {
				b.Errorf("row %q, %q", k, v)
			}
		}
		for ok := it.Last(); ok; ok = it.Prev() {
			if k := it.Key(); len(k) != 2 || k[0] != 'w' {
				b.Errorf("key %q", k)
			}
		}
	}
	return fine("close of the iterator", it.Close())
}
