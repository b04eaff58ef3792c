package lsm

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/storage"
)

// testClock is a clock that stands still until it is moved.
type testClock struct{ minutes atomic.Int64 }

func (c *testClock) now() time.Time {
	return time.Unix(1_700_000_000, 0).Add(time.Duration(c.minutes.Load()) * time.Minute)
}

func (c *testClock) move(minutes int) { c.minutes.Add(int64(minutes)) }

func clocked(t testing.TB, fs vfs.FS, c *testClock) *Engine {
	e := New(Config{CacheBytes: 1 << 20, FS: fs, Now: c.now})
	t.Cleanup(e.Close)
	return e
}

// expiring opens /db so that rows expire after so many minutes; a number below
// zero opens it without expiry.
func expiring(t testing.TB, e *Engine, minutes int64, more ...string) *store {
	t.Helper()
	o := map[string]any{"write_buffer_size": int64(256 << 10), "sst_block_size": int64(1024)}
	if minutes >= 0 {
		o["expiry_enabled"], o["expiry_minutes"] = true, minutes
	}
	for _, name := range more {
		o[name] = true
	}
	s, err := e.Open("/db", storage.Options{CreateIfMissing: true, Engine: o})
	if err != nil {
		t.Fatal(err)
	}
	return s.(*store)
}

func mustPut(t testing.TB, s storage.Store, kv ...string) {
	t.Helper()
	for i := 0; i < len(kv); i += 2 {
		if err := s.Apply(put(kv[i], kv[i+1]), false); err != nil {
			t.Fatal(err)
		}
	}
}

func wantKeys(t testing.TB, s storage.Store, want ...string) {
	t.Helper()
	if got := allRows(t, s); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("rows %q, want %q", got, want)
	}
}

// TestExpiry: the rules of docs/protocol.md §2.1, one after the other.
func TestExpiry(t *testing.T) {
	clock := &testClock{}
	e := clocked(t, vfs.NewMem(), clock)
	s := expiring(t, e, 10)
	mustPut(t, s, "a", "1", "b", "1", "empty", "")
	clock.move(5)
	mustPut(t, s, "b", "2", "c", "2")
	sn, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	it, err := s.NewIter(storage.Range{})
	if err != nil {
		t.Fatal(err)
	}
	wantKeys(t, s, "a", "b", "c", "empty")
	if v, err := s.Get([]byte("x"), []byte("empty")); err != nil || string(v) != "x" {
		t.Errorf("%q, %v", v, err)
	}
	clock.move(5) // a and empty are ten minutes old
	wantKeys(t, s, "b", "c")
	for _, r := range []storage.Reader{s, sn} {
		if v, err := r.Get([]byte("x"), []byte("a")); !errors.Is(err, storage.ErrNotFound) || string(v) != "x" {
			t.Errorf("%q, %v", v, err)
		}
		if v, err := r.Get(nil, []byte("b")); err != nil || string(v) != "2" {
			t.Errorf("%q, %v", v, err)
		}
	}
	if !it.First() || string(it.Key()) != "b" || it.Prev() || !it.Last() || string(it.Key()) != "c" ||
		!it.SeekGE([]byte("a")) || string(it.Key()) != "b" || it.SeekLT([]byte("b")) || !it.SeekLT([]byte("z")) {
		t.Errorf("the iterator stands on %q, %v", it.Key(), it.Err())
	}
	mustPut(t, s, "a", "3")
	clock.move(5) // b and c expire: the older version of b does not show through
	wantKeys(t, s, "a")
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	wantKeys(t, s, "a")
	if err := errors.Join(it.Close(), sn.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}

	s = expiring(t, e, 60) // the limit is that of the open
	wantKeys(t, s, "a", "b", "c", "empty")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = expiring(t, e, -1) // without, nothing expires, and times are kept on
	clock.move(100000)
	mustPut(t, s, "d", "4")
	wantKeys(t, s, "a", "b", "c", "d", "empty")
	if err := s.Checkpoint("/copy"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = expiring(t, e, 1)
	wantKeys(t, s, "d")
	clock.move(-5) // a clock that is put back
	wantKeys(t, s, "d")
	clock.move(6)
	if empty, err := s.IsEmpty(); err != nil || !empty {
		t.Errorf("empty: %v, %v", empty, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := e.Open("/copy", storage.Options{Engine: map[string]any{"expiry_enabled": true, "expiry_minutes": int64(100)}})
	if err != nil {
		t.Fatal(err)
	}
	wantKeys(t, c, "d")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestExpiryOfOldStores: a store created without expiry is not opened with it.
func TestExpiryOfOldStores(t *testing.T) {
	e := clocked(t, vfs.NewMem(), &testClock{})
	s := expiring(t, e, -1)
	mustPut(t, s, "k", "v")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := e.Open("/db", storage.Options{CreateIfMissing: true, Engine: map[string]any{"expiry_enabled": true}})
	if !errors.Is(err, storage.ErrOption) || !strings.Contains(err.Error(), "created without") {
		t.Error(err)
	}
	s = expiring(t, e, -1)
	wantKeys(t, s, "k")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// timedRow is a row of the naive model: its newest version.
type timedRow struct {
	value  string
	minute int64
}

// TestExpiryModel runs random writes, sweeps, flushes, compactions, reopens, crashes
// and moves of the clock beside a map. The oracle is the rule: a row is there while
// its newest version is younger than the limit.
func TestExpiryModel(t *testing.T) {
	t.Parallel()
	_, rng := testSeed(t)
	const limit = 10
	for round := range 6 {
		clock := &testClock{}
		mem := vfs.NewCrashableMem()
		var more []string
		if round%2 == 1 {
			more = []string{"whole_file_expiry"}
		}
		e := clocked(t, mem, clock)
		s := expiring(t, e, limit, more...)
		model := map[string]timedRow{}
		swept := int64(0)
		check := func(what string) {
			t.Helper()
			alive := 0
			for k, r := range model {
				v, err := s.Get(nil, []byte(k))
				young := clock.minutes.Load()-r.minute < limit
				if young != (err == nil) || young && string(v) != r.value || err != nil && !errors.Is(err, storage.ErrNotFound) {
					t.Fatalf("round %d, %s: row %q of %+v is %q, %v at minute %d", round, what, k, r, v, err, clock.minutes.Load())
				}
				if young {
					alive++
				}
			}
			if n := len(allRows(t, s)); n != alive {
				t.Fatalf("round %d, %s: %d rows, want %d", round, what, n, alive)
			}
		}
		for i := range 1500 {
			k := fmt.Sprintf("%03d", rng.IntN(400))
			switch n := rng.IntN(100); {
			case n < 60:
				model[k] = timedRow{fmt.Sprint(i, strings.Repeat("x", rng.IntN(2000))), clock.minutes.Load()}
				mustPut(t, s, k, model[k].value)
			case n < 70:
				delete(model, k)
				if err := s.Apply([]storage.Op{{Kind: storage.Delete, Key: []byte(k)}}, false); err != nil {
					t.Fatal(err)
				}
			case n < 85:
				clock.move(rng.IntN(2))
			case n < 87:
				// What a sweep has deleted does not come back.
				clock.minutes.Store(max(swept, clock.minutes.Load()-rng.Int64N(3)))
			case n < 92:
				if _, _, err := s.sweep(); err != nil {
					t.Fatal(err)
				}
				swept = clock.minutes.Load()
				check("sweep")
			case n < 95:
				if err := s.db.Flush(); err != nil {
					t.Fatal(err)
				}
			case n < 97:
				if err := s.db.Compact(t.Context(), []byte{0}, []byte{255}, false); err != nil {
					t.Fatal(err)
				}
				check("compaction")
			case n < 98:
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = expiring(t, e, limit, more...)
				check("reopen")
			case n < 99:
				if err := s.Apply(nil, true); err != nil {
					t.Fatal(err)
				}
				after := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				mem, e = after, clocked(t, after, clock)
				s = expiring(t, e, limit, more...)
				check("crash")
			}
		}
		check("end")
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSweepGivesSpaceBack: when all rows have expired, a sweep and the compactions
// after it leave next to nothing; with whole_file_expiry too, where rows of one age
// are beside each other. A row alone among young ones stays on the disk then.
func TestSweepGivesSpaceBack(t *testing.T) {
	for _, whole := range []bool{false, true} {
		clock := &testClock{}
		e := clocked(t, vfs.NewMem(), clock)
		var more []string
		if whole {
			more = []string{"whole_file_expiry"}
		}
		s := expiring(t, e, 10, more...)
		rng := newRand(3)
		value := func() string { return string(fillerBytes(rng, 500)) }
		mustPut(t, s, "0 alone", value())
		clock.move(5)
		mustPut(t, s, "0 a", value(), "0 z", value())
		clock.move(-5)
		for i := range 4000 {
			mustPut(t, s, fmt.Sprintf("%05d", i), value())
		}
		if err := s.db.Flush(); err != nil {
			t.Fatal(err)
		}
		before, err := s.Stats()
		if err != nil {
			t.Fatal(err)
		}
		if n, _, err := s.sweep(); n != 0 || err != nil {
			t.Errorf("%d rows were deleted before their time, %v", n, err)
		}
		clock.move(11)
		n, _, err := s.sweep()
		want := 4001
		if whole {
			want = 4000
		}
		if n != want || err != nil {
			t.Errorf("whole=%v: %d rows were deleted, %v", whole, n, err)
		}
		if n, _, err := s.sweep(); n != 0 || err != nil {
			t.Errorf("whole=%v: %d rows were deleted twice, %v", whole, n, err)
		}
		wantKeys(t, s, "0 a", "0 z")
		if err := s.db.Compact(t.Context(), []byte{0}, []byte{255}, false); err != nil {
			t.Fatal(err)
		}
		after, err := s.Stats()
		if err != nil || after.TableBytes > before.TableBytes/20 {
			t.Errorf("whole=%v: %d bytes of tables became %d, %v", whole, before.TableBytes, after.TableBytes, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func fillerBytes(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// TestSweepsComeInTime: a sweep says how old the oldest row is that it leaves, also
// when that row is beside those it deletes, and the next one comes when that row
// expires: not later than the limit, and not sooner than a tenth of it.
func TestSweepsComeInTime(t *testing.T) {
	clock := &testClock{}
	s := expiring(t, clocked(t, vfs.NewMem(), clock), 100)
	defer s.Close()
	next := func(deleted int, minutes int) {
		t.Helper()
		n, oldest, err := s.sweep()
		if n != deleted || err != nil {
			t.Errorf("%d rows were deleted, not %d; %v", n, deleted, err)
		}
		if got := s.expiry.nextSweep(oldest); got != time.Duration(minutes)*time.Minute {
			t.Errorf("the next sweep comes after %v, not %d minutes", got, minutes)
		}
	}
	next(0, 100) // no rows
	mustPut(t, s, "a", "1")
	next(0, 100)
	clock.move(30)
	mustPut(t, s, "b", "2")
	next(0, 70) // a has 70 minutes left
	clock.move(30)
	mustPut(t, s, "z", "3")
	clock.move(40)
	next(1, 30) // b, behind a in its step
	clock.move(25)
	next(0, 10) // a tenth, not the 5 that are left
	clock.move(5)
	next(1, 30) // z
	if got := s.expiry.nextSweep(0); got != 10*time.Minute {
		t.Errorf("after a sweep that was cut short the next comes after %v", got)
	}
}

// TestSweepBesideWriters: a row that is written anew while a sweep runs is never
// deleted by it.
func TestSweepBesideWriters(t *testing.T) {
	clock := &testClock{}
	e := clocked(t, vfs.NewMem(), clock)
	s := expiring(t, e, 10)
	_, rng := testSeed(t)
	const rows, writers = 6000, 3
	for round := range 5 {
		var old []storage.Op
		for i := range rows {
			old = append(old, put(fmt.Sprintf("%04d", i), "old")...)
		}
		if err := s.Apply(old, false); err != nil {
			t.Fatal(err)
		}
		clock.move(20) // all are expired; then the clock stands still
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, _, err := s.sweep(); err != nil {
				t.Error(err)
			}
		})
		written := make([][]int, writers)
		for w := range writers {
			order := rng.Perm(rows)[:rows/4]
			written[w] = order
			wg.Go(func() {
				for _, i := range order {
					if err := s.Apply(put(fmt.Sprintf("%04d", i), "new"), false); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		for _, order := range written {
			for _, i := range order {
				if v, err := s.Get(nil, fmt.Appendf(nil, "%04d", i)); err != nil || string(v) != "new" {
					t.Fatalf("round %d: row %d is %q, %v", round, i, v, err)
				}
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestExpiryAllocations: a step of an iterator allocates nothing here either.
func TestExpiryAllocations(t *testing.T) {
	clock := &testClock{}
	s := expiring(t, clocked(t, vfs.NewMem(), clock), 10)
	defer s.Close()
	for i := range 6000 {
		if i == 3000 {
			clock.move(5)
		}
		mustPut(t, s, fmt.Sprintf("%d", i*7919%6000), "value") // old and young ones mixed
	}
	clock.move(6)
	it, err := s.NewIter(storage.Range{})
	if err != nil || !it.First() {
		t.Fatal(err)
	}
	defer it.Close()
	if n := testing.AllocsPerRun(2900, func() {
		if !it.Next() || len(it.Key()) == 0 || string(it.Value()) != "value" {
			t.Fatal(it.Err())
		}
	}); n > 0 {
		t.Errorf("%.2f allocations a step", n)
	}
}

// TestRepairKeepsTimes: rows of a repaired store expire when they would have, also
// when the marker is lost.
func TestRepairKeepsTimes(t *testing.T) {
	for _, lost := range []bool{false, true} {
		clock := &testClock{}
		fs := vfs.NewMem()
		e := clocked(t, fs, clock)
		s := expiring(t, e, 10)
		mustPut(t, s, "a", "1")
		clock.move(5)
		mustPut(t, s, "b", "2")
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if lost {
			if err := fs.Remove("/db/" + markerName); err != nil {
				t.Fatal(err)
			}
		}
		if done, err := e.Repair("/db"); err != nil || done.Rows != 2 {
			t.Fatalf("%+v, %v", done, err)
		}
		s = expiring(t, e, 10)
		wantKeys(t, s, "a", "b")
		clock.move(5)
		wantKeys(t, s, "b")
		clock.move(5)
		wantKeys(t, s)
		if n, _, err := s.sweep(); n != 2 || err != nil {
			t.Errorf("%d rows were swept, %v", n, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
