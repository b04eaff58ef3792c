package storetest

import (
	"fmt"
	"slices"

	"scanode/storage"
)

// This file tries the sentences about Engine.Destroy, Engine.Repair and
// Store.IsEmpty.

var destroySentences = []sentence{
	{"Destroy removes a store and its directory", func(b *bench) {
		s := b.fresh()
		b.put(s, "k", "v")
		b.close("store", s)
		b.destroy(b.dir())
		b.wantGone()
		s = b.open(b.dir()) // at once, at the same place
		b.wantRows(s, storage.Range{})
		b.close("store", s)
	}},
	{"Destroy of nothing is fine", func(b *bench) {
		b.destroy(b.dir())
		b.destroy(b.env.Dir)
		b.destroy(b.env.Dir + "/a/b/c")
		b.wantGone()
	}},
	{"Destroy of an open store is ErrLocked and touches nothing", func(b *bench) {
		s := b.fresh()
		b.put(s, "k", "v")
		b.wantIs("destroy", b.env.Engine.Destroy(b.dir()), storage.ErrLocked)
		b.wantGet(s, "k", "v")
		b.close("store", s)
		s = b.open(b.dir())
		b.wantGet(s, "k", "v")
		b.close("store", s)
	}},
	{"Destroy and Repair of a foreign directory are ErrForeign and touch nothing", func(b *bench) {
		if b.env.WriteFile == nil || b.env.ReadDir == nil {
			b.Skip("no way to the disk")
		}
		for _, name := range []string{"CURRENT", "notes.txt"} {
			dir := b.env.Dir + "/with-" + name
			if err := b.env.WriteFile(dir+"/"+name, []byte("x")); err != nil {
				b.Fatal(err)
			}
			b.wantIs("destroy", b.env.Engine.Destroy(dir), storage.ErrForeign)
			_, err := b.env.Engine.Repair(dir)
			b.wantIs("repair", err, storage.ErrForeign)
			if names, err := b.env.ReadDir(dir); err != nil || !slices.Equal(names, []string{name}) {
				b.Fatalf("%q, %v is left of %q", names, err, name)
			}
		}
	}},
	{"Destroy leaves what is not the store's", func(b *bench) {
		if b.env.WriteFile == nil || b.env.ReadDir == nil {
			b.Skip("no way to the disk")
		}
		s := b.fresh()
		b.close("store", s)
		if err := b.env.WriteFile(b.dir()+"/notes.txt", []byte("x")); err != nil {
			b.Fatal(err)
		}
		b.destroy(b.dir())
		if names, err := b.env.ReadDir(b.dir()); err != nil || !slices.Equal(names, []string{"notes.txt"}) {
			b.Fatalf("%q, %v is left", names, err)
		}
	}},
	{"Repair of an open store is ErrLocked, of nothing is fine", func(b *bench) {
		s := b.fresh()
		_, err := b.env.Engine.Repair(b.dir())
		b.wantIs("repair", err, storage.ErrLocked)
		b.close("store", s)
		if r, err := b.env.Engine.Repair(b.env.Dir + "/none"); err != nil || r.Rows != 0 || r.Aside != "" {
			b.Fatalf("%+v, %v", r, err)
		}
	}},
	{"Repair of a store without damage keeps every row", func(b *bench) {
		s := b.fresh()
		rng := random(8)
		for i := range 200 {
			b.put(s, fmt.Sprintf("%03d", i), string(filler(rng, 3000)), "over", fmt.Sprint(i))
			b.apply(s, i%10 == 0, del(fmt.Sprintf("%03d", i/2)))
		}
		want := b.rows(s, storage.Range{})
		b.close("store", s)
		for round := range 2 {
			r := b.repair(b.dir())
			if r.Rows != int64(len(want)) || r.Aside == "" {
				b.Fatalf("repair %d: %+v, want %d rows", round, r, len(want))
			}
			s = b.open(b.dir())
			if got := b.rows(s, storage.Range{}); !equal(got, want) {
				b.Fatalf("repair %d: %d rows differ from the %d there were", round, len(got), len(want))
			}
			b.close("store", s)
		}
		b.destroy(b.dir())
		b.wantGone()
	}},
	{"IsEmpty knows of rows, deletions and nothing else", func(b *bench) {
		s := b.fresh()
		want := func(empty bool) {
			b.Helper()
			if got, err := s.IsEmpty(); err != nil || got != empty {
				b.Fatalf("empty: %v, %v, want %v", got, err, empty)
			}
		}
		want(true)
		b.put(s, "", "")
		want(false)
		b.apply(s, false, del(""))
		want(true)
		b.put(s, "\xff\xff", "v")
		want(false)
		b.close("store", s)
		s = b.open(b.dir())
		want(false)
		b.apply(s, false, del("\xff\xff"))
		want(true)
		b.close("store", s)
		_, err := s.IsEmpty()
		b.wantIs("a closed store", err, storage.ErrClosed)
	}},
}

func (b *bench) destroy(dir string) {
	b.Helper()
	if err := b.env.Engine.Destroy(dir); err != nil {
		b.Fatalf("destroy: %v", err)
	}
}

// repair repairs a store without damage.
func (b *bench) repair(dir string) storage.Repaired {
	b.Helper()
	r, err := b.env.Engine.Repair(dir)
	if err != nil || len(r.Lost) > 0 {
		b.Fatalf("repair: %+v, %v", r, err)
	}
	return r
}

// wantGone wants nothing below the test's directory.
func (b *bench) wantGone() {
	b.Helper()
	if b.env.ReadDir == nil {
		return
	}
	if names, err := b.env.ReadDir(b.env.Dir); err == nil && len(names) > 0 {
		b.Fatalf("%q is left", names)
	}
}
