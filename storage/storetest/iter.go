package storetest

import (
	"fmt"
	"math/rand/v2"

	"scanode/storage"
)

// This file tries the sentences about Iter and Range.

var iterSentences = []sentence{
	{"an iterator starts unpositioned", func(b *bench) {
		s := b.fresh()
		b.put(s, "a", "1", "b", "2")
		it := b.iter(s, storage.Range{})
		if it.Valid() || it.Err() != nil {
			b.Fatalf("valid %v, error %v", it.Valid(), it.Err())
		}
		if it.Next() || it.Prev() {
			b.Fatal("moved without a position")
		}
		if !it.First() || string(it.Key()) != "a" {
			b.Fatalf("first: %q, %v", it.Key(), it.Err())
		}
		b.close("iterator", it)
	}},
	{"First, Last, SeekGE, SeekLT, Next and Prev move as they say", testMoves},
	{"a range holds the keys it describes", testRanges},
	{"past the end an iterator stays until it is positioned again", func(b *bench) {
		s := b.fresh()
		b.put(s, "a", "1", "b", "2")
		it := b.iter(s, storage.Range{})
		for _, move := range []func() bool{it.Next, it.Prev} {
			if !it.Last() {
				b.Fatal(it.Err())
			}
			if it.Next() {
				b.Fatal("a row past the last")
			}
			for range 3 {
				if move() || it.Valid() || it.Err() != nil {
					b.Fatalf("came back to %q, %v", it.Key(), it.Err())
				}
			}
			if !it.First() || it.Prev() || it.Valid() {
				b.Fatal("a row before the first")
			}
			for range 3 {
				if move() || it.Valid() || it.Err() != nil {
					b.Fatalf("came back to %q, %v", it.Key(), it.Err())
				}
			}
		}
		if !it.SeekGE([]byte("b")) || string(it.Value()) != "2" {
			b.Fatal("could not be positioned again")
		}
		b.close("iterator", it)
	}},
	{"key and value stay until the next positioning call", func(b *bench) {
		s := b.fresh()
		rng := rand.New(rand.NewPCG(2, 2))
		b.put(s, "a", "old a", "b", "old b")
		it := b.iter(s, storage.Range{})
		if !it.First() {
			b.Fatal(it.Err())
		}
		key, value := it.Key(), it.Value()
		for range 40 {
			b.apply(s, false, storage.Op{Kind: storage.Put, Key: []byte("a"), Value: filler(rng, 50<<10)})
			b.rows(s, storage.Range{})
		}
		if string(key) != "a" || string(value) != "old a" || string(it.Key()) != "a" || string(it.Value()) != "old a" {
			b.Fatalf("became %q, %q", key, value)
		}
		b.close("iterator", it)
	}},
	{"key and value are nil without a position", func(b *bench) {
		s := b.fresh()
		b.put(s, "a", "1")
		it := b.iter(s, storage.Range{})
		if it.Key() != nil || it.Value() != nil {
			b.Fatal("a row before the first move")
		}
		it.First()
		it.Next()
		if it.Key() != nil || it.Value() != nil {
			b.Fatal("a row after the end")
		}
		b.close("iterator", it)
	}},
	{"an iterator sees the store as it was when it was made", func(b *bench) {
		s := b.fresh()
		rng := rand.New(rand.NewPCG(3, 3))
		for i := range 100 {
			b.put(s, fmt.Sprintf("%03d", i), "old")
		}
		unmoved := b.iter(s, storage.Range{})
		moved := b.iter(s, storage.Range{})
		if !moved.SeekGE([]byte("050")) {
			b.Fatal(moved.Err())
		}
		for i := range 300 { // enough for engines with small buffers to flush
			b.apply(s, false, storage.Op{Kind: storage.Put, Key: fmt.Appendf(nil, "%03d", i), Value: filler(rng, 20<<10)})
			if i%3 == 0 {
				b.apply(s, false, del(fmt.Sprintf("%03d", i)))
			}
		}
		check := func(it storage.Iter, ok bool, from int) {
			n := from
			for ; ok; ok = it.Next() {
				if string(it.Key()) != fmt.Sprintf("%03d", n) || string(it.Value()) != "old" {
					b.Fatalf("row %d is %q", n, it.Key())
				}
				n++
			}
			if n != 100 {
				b.Fatalf("ended at %d, %v", n, it.Err())
			}
			b.close("iterator", it)
		}
		check(unmoved, unmoved.First(), 0)
		check(moved, moved.Valid(), 50)
	}},
	{"an iterator is closed once or twice and is then at its end", func(b *bench) {
		s := b.fresh()
		b.put(s, "a", "1")
		it := b.iter(s, storage.Range{})
		it.First()
		b.close("iterator", it)
		b.close("iterator", it)
		if it.Valid() || it.First() || it.Next() || it.SeekGE(nil) || it.Key() != nil {
			b.Fatal("a closed iterator moved")
		}
		if err := it.Err(); err != nil {
			b.Fatal(err)
		}
	}},
	{"many iterators at once, each its own", func(b *bench) {
		s := b.fresh()
		for i := range 10 {
			b.put(s, fmt.Sprint(i), fmt.Sprint(i))
		}
		var its []storage.Iter
		for i := range 10 {
			it := b.iter(s, storage.Range{Start: fmt.Appendf(nil, "%d", i)})
			if !it.First() {
				b.Fatal(it.Err())
			}
			its = append(its, it)
		}
		for i, it := range its {
			if string(it.Key()) != fmt.Sprint(i) {
				b.Fatalf("iterator %d stands on %q", i, it.Key())
			}
			b.close("iterator", it)
		}
	}},
}

// universe are the keys over which moves and ranges are tried exhaustively: the
// empty key, neighbours in the order, and bytes at its ends.
var universe = []string{"", "\x00", "\x00\x00", "a", "a\x00", "a\x00\x00", "aa", "b", "\xff", "\xff\x00", "\xff\xff"}

func testMoves(b *bench) {
	s := b.fresh()
	var all []row
	for i, k := range universe {
		if i%2 == 1 { // every second key is absent, so seeks hit and miss
			all = append(all, row{k, k + "!"})
			b.put(s, k, k+"!")
		}
	}
	it, m := b.iter(s, storage.Range{}), newCursor(all)
	do := func(what string, got, want bool) {
		if err := m.same(it, got, want); err != nil {
			b.Fatalf("%s: %v", what, err)
		}
	}
	for _, seek := range universe {
		for _, start := range []int{0, 1} {
			for path := range 16 { // every path of four steps from every seek
				if start == 0 {
					do(fmt.Sprintf("seek >= %q", seek), it.SeekGE([]byte(seek)), m.seekGE(seek))
				} else {
					do(fmt.Sprintf("seek < %q", seek), it.SeekLT([]byte(seek)), m.seekLT(seek))
				}
				for step := range 4 {
					if path>>step&1 == 0 {
						do("next", it.Next(), m.next())
					} else {
						do("prev", it.Prev(), m.prev())
					}
				}
			}
		}
	}
	do("first", it.First(), m.first())
	do("last", it.Last(), m.last())
	b.close("iterator", it)
}

// testRanges compares all ranges over the universe, nil bounds and reversed ones
// included, with the same range of the sorted keys.
func testRanges(b *bench) {
	s := b.fresh()
	var all []row
	for _, k := range universe {
		all = append(all, row{k, k + "!"})
		b.put(s, k, k+"!")
	}
	bounds := []*string{nil}
	for i := range universe {
		bounds = append(bounds, &universe[i])
	}
	bytesOf := func(s *string) []byte {
		if s == nil {
			return nil
		}
		return append([]byte{}, *s...)
	}
	for _, start := range bounds {
		for _, end := range bounds {
			for flags := range 4 {
				rg := storage.Range{Start: bytesOf(start), End: bytesOf(end), StartExclusive: flags&1 != 0, EndInclusive: flags&2 != 0}
				tryRange(b, s, rg, all)
			}
		}
	}
}

func tryRange(b *bench, s storage.Store, rg storage.Range, all []row) {
	want := inRange(all, rg)
	if got := b.rows(s, rg); !equal(got, want) {
		b.Fatalf("%s: %q, want %q", describe(rg), got, want)
	}
	it, m := b.iter(s, rg), newCursor(want)
	if err := m.same(it, it.Last(), m.last()); err != nil {
		b.Fatalf("%s: last: %v", describe(rg), err)
	}
	for _, k := range universe {
		if err := m.same(it, it.SeekGE([]byte(k)), m.seekGE(k)); err != nil {
			b.Fatalf("%s: seek >= %q: %v", describe(rg), k, err)
		}
		if err := m.same(it, it.Prev(), m.prev()); err != nil {
			b.Fatalf("%s: seek >= %q, prev: %v", describe(rg), k, err)
		}
		if err := m.same(it, it.SeekLT([]byte(k)), m.seekLT(k)); err != nil {
			b.Fatalf("%s: seek < %q: %v", describe(rg), k, err)
		}
		if err := m.same(it, it.Next(), m.next()); err != nil {
			b.Fatalf("%s: seek < %q, next: %v", describe(rg), k, err)
		}
	}
	b.close("iterator", it)
}
