package storetest

import (
	"errors"
	"slices"
	"sync"

	"scanode/storage"
)

func is(err, target error) bool { return errors.Is(err, target) }

// This file tries the sentences about Engine.Open and Options.

var openSentences = []sentence{
	{"missing directory without CreateIfMissing is ErrMissing and stays missing", func(b *bench) {
		_, err := b.env.Engine.Open(b.dir(), storage.Options{Engine: b.env.Options})
		b.wantIs("open", err, storage.ErrMissing)
		if b.env.ReadDir != nil {
			if names, _ := b.env.ReadDir(b.env.Dir); len(names) != 0 {
				b.Fatalf("open left %q behind", names)
			}
		}
	}},
	{"CreateIfMissing creates the directory and those above it", func(b *bench) {
		s := b.open(b.env.Dir + "/a/b/store")
		b.wantRows(s, storage.Range{})
		b.close("store", s)
	}},
	{"CreateIfMissing opens what is there", func(b *bench) {
		s := b.fresh()
		b.put(s, "k", "v")
		b.close("store", s)
		s = b.open(b.dir())
		b.wantRows(s, storage.Range{}, "k", "v")
		b.close("store", s)
	}},
	{"without CreateIfMissing what is there opens", func(b *bench) {
		s := b.fresh()
		b.put(s, "k", "v")
		b.close("store", s)
		s, err := b.env.Engine.Open(b.dir(), storage.Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.wantRows(s, storage.Range{}, "k", "v")
		b.close("store", s)
	}},
	{"ErrorIfExists refuses a store with ErrExists and creates a new one", func(b *bench) {
		o := storage.Options{CreateIfMissing: true, ErrorIfExists: true, Engine: b.env.Options}
		s, err := b.env.Engine.Open(b.dir(), o)
		if err != nil {
			b.Fatal(err)
		}
		b.put(s, "k", "v")
		b.close("store", s)
		_, err = b.env.Engine.Open(b.dir(), o)
		b.wantIs("open", err, storage.ErrExists)
		s = b.open(b.dir())
		b.wantRows(s, storage.Range{}, "k", "v")
		b.close("store", s)
	}},
	{"a second open of a directory is ErrLocked until the first is closed", func(b *bench) {
		s := b.open(b.dir())
		for range 3 {
			_, err := b.env.Engine.Open(b.dir(), storage.Options{CreateIfMissing: true})
			b.wantIs("second open", err, storage.ErrLocked)
			_, err = b.env.Engine.Open(b.dir()+"/.", storage.Options{CreateIfMissing: true})
			b.wantIs("second open by another path", err, storage.ErrLocked)
		}
		b.put(s, "k", "v")
		b.close("store", s)
		s = b.open(b.dir())
		b.wantRows(s, storage.Range{}, "k", "v")
		b.close("store", s)
	}},
	{"of many opens at once one wins and the others are ErrLocked", func(b *bench) {
		var wg sync.WaitGroup
		results := make([]error, 8)
		stores := make([]storage.Store, len(results))
		for i := range results {
			wg.Go(func() {
				stores[i], results[i] = b.env.Engine.Open(b.dir(), storage.Options{CreateIfMissing: true, Engine: b.env.Options})
			})
		}
		wg.Wait()
		won := 0
		for i, err := range results {
			if err == nil {
				won++
				b.close("store", stores[i])
				continue
			}
			b.wantIs("open", err, storage.ErrLocked)
		}
		if won != 1 {
			b.Fatalf("%d opens won", won)
		}
	}},
	{"an unknown option is ErrOption and creates nothing", func(b *bench) {
		_, err := b.env.Engine.Open(b.dir(), storage.Options{
			CreateIfMissing: true, Engine: map[string]any{"no_such_option": int64(1)}})
		b.wantIs("open", err, storage.ErrOption)
		_, err = b.env.Engine.Open(b.dir(), storage.Options{Engine: b.env.Options})
		b.wantIs("open after it", err, storage.ErrMissing)
	}},
	{"a bad value of an option is ErrOption", func(b *bench) {
		if b.env.BadOption == "" {
			b.Skip("the engine has no option to try")
		}
		for _, v := range []any{b.env.BadValue, 1.5, nil, []byte("x")} {
			_, err := b.env.Engine.Open(b.dir(), storage.Options{
				CreateIfMissing: true, Engine: map[string]any{b.env.BadOption: v}})
			b.wantIs("open", err, storage.ErrOption)
		}
	}},
	{"a foreign directory is ErrForeign and untouched", func(b *bench) {
		if b.env.WriteFile == nil || b.env.ReadDir == nil {
			b.Skip("no way to the disk")
		}
		for _, name := range []string{"CURRENT", "notes.txt"} {
			dir := b.env.Dir + "/with-" + name
			if err := b.env.WriteFile(dir+"/"+name, []byte("MANIFEST-000001\n")); err != nil {
				b.Fatal(err)
			}
			for _, create := range []bool{false, true} {
				_, err := b.env.Engine.Open(dir, storage.Options{CreateIfMissing: create})
				b.wantIs("open", err, storage.ErrForeign)
			}
			if names, err := b.env.ReadDir(dir); err != nil || !slices.Equal(names, []string{name}) {
				b.Fatalf("%q, %v is left of %q", names, err, name)
			}
		}
	}},
	{"a directory inside a store is ErrForeign, open or not, and is not made", func(b *bench) {
		s := b.open(b.dir())
		for range 2 {
			for _, below := range []string{"/sub", "/sub/sub"} {
				_, err := b.env.Engine.Open(b.dir()+below, storage.Options{CreateIfMissing: true})
				b.wantIs("open", err, storage.ErrForeign)
			}
			if b.env.ReadDir != nil {
				if names, err := b.env.ReadDir(b.dir()); err != nil || slices.Contains(names, "sub") {
					b.Fatalf("%q, %v", names, err)
				}
			}
			_ = s.Close()
		}
	}},
	{"a failed open leaves no lock", func(b *bench) {
		s := b.open(b.dir())
		b.close("store", s)
		for range 20 {
			_, err := b.env.Engine.Open(b.dir(), storage.Options{ErrorIfExists: true})
			b.wantIs("open", err, storage.ErrExists)
		}
		s = b.open(b.dir())
		b.close("store", s)
	}},
	{"one engine opens many directories", func(b *bench) {
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				dir := b.env.Dir + "/many" + string(rune('a'+i))
				s, err := b.env.Engine.Open(dir, storage.Options{CreateIfMissing: true, Engine: b.env.Options})
				if err != nil {
					b.Error(err)
					return
				}
				if err := s.Apply(puts("dir", dir), false); err != nil {
					b.Error(err)
				}
				if v, err := s.Get(nil, []byte("dir")); err != nil || string(v) != dir {
					b.Errorf("%q, %v", v, err)
				}
				if err := s.Close(); err != nil {
					b.Error(err)
				}
			})
		}
		wg.Wait()
	}},
}
