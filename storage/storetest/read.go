package storetest

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"scanode/storage"
)

// This file tries the sentences about keys, values and Get.

var readSentences = []sentence{
	{"keys are ordered byte by byte", func(b *bench) {
		s := b.fresh()
		var keys []string
		for _, k := range []string{"\xff\xff", "a", "\x00", "ab", "b", "", "\xff", "a\x00", "B", "\x00\x00", "\x7f", "\x80"} {
			keys = append(keys, k)
			b.put(s, k, "v")
		}
		slices.Sort(keys) // Go orders strings by bytes
		var got []string
		for _, r := range b.rows(s, storage.Range{}) {
			got = append(got, r.key)
		}
		if !slices.Equal(got, keys) {
			b.Fatalf("order %q, want %q", got, keys)
		}
	}},
	{"empty keys and values are legal and distinct from absence", func(b *bench) {
		s := b.fresh()
		b.wantMissing(s, "")
		b.put(s, "", "value of the empty key", "k", "")
		b.wantGet(s, "", "value of the empty key")
		b.wantGet(s, "k", "")
		b.put(s, "", "")
		b.wantGet(s, "", "")
		b.wantRows(s, storage.Range{}, "", "", "k", "")
		if err := s.Apply([]storage.Op{{Kind: storage.Put, Key: nil, Value: nil}}, false); err != nil {
			b.Fatal(err)
		}
		b.apply(s, false, del(""))
		b.wantMissing(s, "")
		b.wantRows(s, storage.Range{}, "k", "")
	}},
	{"large keys and values", func(b *bench) {
		s := b.fresh()
		rng := rand.New(rand.NewPCG(1, 1))
		key, value := string(filler(rng, 60<<10)), string(filler(rng, 3<<20))
		b.put(s, key, value, "k", "small")
		b.wantGet(s, key, value)
		b.close("store", s)
		s = b.open(b.dir())
		b.wantGet(s, key, value)
		b.wantGet(s, "k", "small")
		b.close("store", s)
	}},
	{"Get appends to dst and returns it unchanged on an error", func(b *bench) {
		s := b.fresh()
		b.put(s, "k", "value")
		for _, room := range []int{0, 3, 100} {
			dst := append(make([]byte, 0, 4+room), "head"...)
			got, err := s.Get(dst, []byte("k"))
			if err != nil || string(got) != "headvalue" {
				b.Fatalf("get: %q, %v", got, err)
			}
			got, err = s.Get(dst, []byte("absent"))
			b.wantIs("get", err, storage.ErrNotFound)
			if string(got) != "head" || cap(got) != cap(dst) {
				b.Fatalf("dst became %q", got)
			}
		}
	}},
	{"what Get returns belongs to the caller", func(b *bench) {
		s := b.fresh()
		b.put(s, "k", "value")
		v, err := s.Get(nil, []byte("k"))
		if err != nil {
			b.Fatal(err)
		}
		clear(v)
		b.wantGet(s, "k", "value")
	}},
	{"slices passed in are only read, and not kept", func(b *bench) {
		s := b.fresh()
		key, value := []byte("key"), []byte("value")
		ops := []storage.Op{{Kind: storage.Put, Key: key, Value: value}}
		if err := s.Apply(ops, false); err != nil {
			b.Fatal(err)
		}
		low, high := []byte("aU")[:1], []byte("zU")[:1] // room behind is not the engine's either
		it := b.iter(s, storage.Range{Start: low, End: high, StartExclusive: true, EndInclusive: true})
		if string(low[:2]) != "aU" || string(high[:2]) != "zU" || string(key) != "key" || string(value) != "value" {
			b.Fatal("the caller's bytes were changed")
		}
		for _, c := range [][]byte{key, value, low, high} {
			for i := range c {
				c[i] = 'z'
			}
		}
		b.wantGet(s, "key", "value")
		if !it.First() || string(it.Key()) != "key" {
			b.Fatalf("bounds were kept: %v", it.Err())
		}
		seek := []byte("b")
		if !it.SeekGE(seek) {
			b.Fatal("no row")
		}
		clear(seek)
		if string(it.Key()) != "key" {
			b.Fatalf("key %q", it.Key())
		}
		b.close("iterator", it)
	}},
	{"a store and its snapshots serve many goroutines at once", func(b *bench) {
		s := b.fresh()
		b.put(s, "fixed", "0")
		sn, err := s.Snapshot()
		if err != nil {
			b.Fatal(err)
		}
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				key := strings.Repeat("k", g+1)
				for i := range 50 {
					if err := s.Apply(puts(key, key, "fixed", key), i%25 == 0); err != nil {
						b.Error(err)
						return
					}
					if v, err := s.Get(nil, []byte(key)); err != nil || string(v) != key {
						b.Errorf("get: %q, %v", v, err)
						return
					}
					if v, err := sn.Get(nil, []byte("fixed")); err != nil || string(v) != "0" {
						b.Errorf("get of the snapshot: %q, %v", v, err)
						return
					}
					if _, err := s.Stats(); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		b.close("snapshot", sn)
	}},
}
