package scan

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"scanode/etf"
	"scanode/etf/etftext"
	"scanode/filter"
	"scanode/storage"
	"scanode/storage/lsm"
)

// heavy is a Source over sorted rows, each of which it claims to take a MiB, so that
// a handful is worth dividing. It can be read by several goroutines.
type heavy struct {
	kvs   [][2]string
	pause time.Duration // per row
	iters atomic.Int64  // open
	views atomic.Int64  // open
	read  atomic.Int64  // rows, by iterators of views
}

func (h *heavy) Get(dst, _ []byte) ([]byte, error)             { return dst, storage.ErrNotFound }
func (h *heavy) NewIter(r storage.Range) (storage.Iter, error) { return h.iter(r, false), nil }
func (h *heavy) EstimateBytes(r storage.Range) (int64, error) {
	from, to := h.within(r)
	return int64(to-from) << 20, nil
}
func (h *heavy) Snapshot() (storage.Snapshot, error) {
	h.views.Add(1)
	return heavyView{h}, nil
}

type heavyView struct{ *heavy }

func (v heavyView) NewIter(r storage.Range) (storage.Iter, error) { return v.iter(r, true), nil }
func (v heavyView) Close() error                                  { v.views.Add(-1); return nil }

func (h *heavy) within(r storage.Range) (from, to int) {
	search := func(bound string, behind bool) int {
		return sort.Search(len(h.kvs), func(i int) bool { return h.kvs[i][0] > bound || !behind && h.kvs[i][0] == bound })
	}
	to = len(h.kvs)
	if r.Start != nil {
		from = search(string(r.Start), r.StartExclusive)
	}
	if r.End != nil {
		to = search(string(r.End), r.EndInclusive)
	}
	return from, max(from, to)
}

func (h *heavy) iter(r storage.Range, ofView bool) storage.Iter {
	h.iters.Add(1)
	it := &heavyIter{h: h, ofView: ofView}
	it.from, it.to = h.within(r)
	return it
}

type heavyIter struct {
	storage.Iter // the moves that nobody uses here
	h            *heavy
	ofView       bool
	from, to, at int
	err          error
}

func (it *heavyIter) stand(at int) bool {
	if it.at = at; at < it.from || at >= it.to || it.err != nil {
		return false
	}
	if it.ofView {
		time.Sleep(it.h.pause) // in a synctest bubble: no real time passes
		it.h.read.Add(1)
	}
	if it.h.kvs[at][1] == unreadable {
		it.err = errDisk
		return false
	}
	return true
}
func (it *heavyIter) First() bool { return it.stand(it.from) }
func (it *heavyIter) Last() bool  { return it.stand(it.to - 1) }
func (it *heavyIter) Next() bool  { return it.stand(it.at + 1) }
func (it *heavyIter) Prev() bool  { return it.stand(it.at - 1) }
func (it *heavyIter) SeekGE(key []byte) bool {
	from, _ := it.h.within(storage.Range{Start: key})
	return it.stand(max(from, it.from))
}
func (it *heavyIter) Key() []byte   { return []byte(it.h.kvs[it.at][0]) }
func (it *heavyIter) Value() []byte { return []byte(it.h.kvs[it.at][1]) }
func (it *heavyIter) Err() error    { return it.err }
func (it *heavyIter) Close() error  { it.h.iters.Add(-1); return it.err }

// drawAggregate draws a query on the columns g, x, any and t of naive rows; broken ones
// among them are errors for some queries.
func drawAggregate(t *rapid.T) *Aggregate {
	req := &Aggregate{MaxGroups: rapid.SampledFrom([]int{1000, 1000, 3}).Draw(t, "max_groups"), Partial: rapid.Bool().Draw(t, "partial")}
	for range rapid.IntRange(1, 5).Draw(t, "computed") {
		op := Op(rapid.IntRange(0, int(Last)).Draw(t, "op"))
		c := Compute{Op: op}
		if op != CountAll {
			c.Column = rapid.SampledFrom([]string{"x", "x", "x", "any", "none"}).Draw(t, "column")
		}
		req.Compute = append(req.Compute, c)
	}
	for _, g := range []GroupBy{{Column: "g"}, {Column: "x"}, {Column: "t", QuantumMs: 4}} {
		if rapid.IntRange(0, 2).Draw(t, "grouped") == 0 {
			req.GroupBy = append(req.GroupBy, g)
		}
	}
	return req
}

// outcome is all that a consumer sees of an aggregate.
func outcome(t testing.TB, src Source, req Request, groupBytes int) string {
	s := &collector{t: t, w: NewWindow(1 << 30)}
	totals, err := runWithin(src, req, s.w, s, groupBytes)
	rows := make(etf.List, len(s.rows))
	for i := range rows {
		rows[i] = s.rows[i]
	}
	if err != nil {
		return fmt.Sprintf("%v, %d rows", err, len(rows))
	}
	return fmt.Sprintf("%s, %d read", etftext.Format(rows), totals.RowsRead)
}

// TestPartsAreTheWhole: whatever is computed of whatever rows in whatever ranges, with
// faults in some of them, on several goroutines it is what it is on one, to the bit and
// to the text of the error.
func TestPartsAreTheWhole(t *testing.T) {
	divided, failed := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		src := &heavy{}
		for i := range rapid.IntRange(0, 24).Draw(rt, "rows") {
			numeric := rapid.IntRange(0, 15).Draw(rt, "clean") > 0
			row := naiveRow{"g": naiveField(rt, false), "x": naiveField(rt, numeric), "any": naiveField(rt, numeric), "t": naiveInteger(rt)}
			src.kvs = append(src.kvs, [2]string{fmt.Sprintf("%03d", i), naiveObject(rt, row)})
		}
		if n := len(src.kvs); n > 0 && rapid.IntRange(0, 9).Draw(rt, "disk") == 0 {
			src.kvs[rapid.IntRange(0, n-1).Draw(rt, "at")][1] = unreadable
		}
		req := Request{Aggregate: drawAggregate(rt), Reverse: rapid.Bool().Draw(rt, "reverse"), MaxBatchBytes: 100, Ranges: everything}
		bound := rapid.Custom(func(t *rapid.T) []byte {
			if n := rapid.IntRange(-1, 24).Draw(t, "bound"); n >= 0 {
				return fmt.Appendf(nil, "%03d", n)
			}
			return nil
		})
		if rapid.Bool().Draw(rt, "several") {
			req.Ranges = nil
			for range rapid.IntRange(1, 4).Draw(rt, "ranges") {
				req.Ranges = append(req.Ranges, storage.Range{Start: bound.Draw(rt, "start"), End: bound.Draw(rt, "end"), StartExclusive: rapid.Bool().Draw(rt, "exclusive")})
			}
		}
		groupBytes := rapid.SampledFrom([]int{maxGroupBytes, 20000, 8000}).Draw(rt, "bytes")
		want := outcome(t, src, req, groupBytes)
		req.Aggregate.Parallel = rapid.IntRange(2, 5).Draw(rt, "parallel")
		if parts := divide(src, &req, req.Ranges); len(parts) > 1 {
			divided++
		}
		got := outcome(t, src, req, groupBytes)
		if got != want {
			rt.Fatalf("%d goroutines: %s\n1 goroutine:  %s", req.Aggregate.Parallel, got, want)
		}
		if !strings.HasPrefix(want, "[") {
			failed++
		}
		if src.iters.Load() != 0 || src.views.Load() != 0 {
			rt.Fatalf("%d iterators and %d views left", src.iters.Load(), src.views.Load())
		}
	})
	if divided == 0 || failed == 0 {
		t.Errorf("%d cases divided, %d failed", divided, failed)
	}
}

// TestPartsTooLarge: groups that are in all parts take more than the parts' shares, and
// less than there is; then one goroutine reads everything anew.
func TestPartsTooLarge(t *testing.T) {
	src := &heavy{}
	const groups, size = 10, 200
	for i := range 8 * groups {
		g := bytes.Repeat([]byte{byte('a' + i%groups)}, size)
		value, _ := rowOf(t, filter.EncodingETF, []field{{name: "g", ttb: g}})
		src.kvs = append(src.kvs, [2]string{fmt.Sprintf("%03d", i), value})
	}
	req := Request{Ranges: everything, MaxBatchBytes: 1000, Aggregate: &Aggregate{MaxGroups: 100, Parallel: 4, GroupBy: []GroupBy{{Column: "g"}}, Compute: []Compute{{Op: CountAll}}}}
	for _, c := range []struct {
		groupBytes int
		want       string
		read       int // rows against those there are: as many, more, less
	}{
		{8 * groups * 2 * size, "[[", 0},
		{groups * 2 * size, "[[", 1},
		{groups * size, "too many groups: ", -1},
	} {
		before := src.read.Load()
		got := outcome(t, src, req, c.groupBytes)
		if read := int(src.read.Load() - before); !strings.HasPrefix(got, c.want) || cmp.Compare(read, len(src.kvs)) != c.read {
			t.Errorf("%d bytes: %.40s, %d rows read", c.groupBytes, got, read)
		}
	}
}

// TestPartsOfAStore reads a table of the engine while it is being written to.
func TestPartsOfAStore(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.NewChaCha8([32]byte(binary.LittleEndian.AppendUint64(make([]byte, 24), seed)))
	engine := lsm.New(lsm.Config{})
	t.Cleanup(engine.Close)
	st, err := engine.Open(filepath.Join(t.TempDir(), "table"), storage.Options{CreateIfMissing: true, Engine: map[string]any{"write_buffer_size": int64(1 << 20)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	write := func(generation int64) {
		var ops []storage.Op
		for i := range 12000 {
			noise := make([]byte, 700)
			_, _ = rnd.Read(noise) // never fails
			value, _ := rowOf(t, filter.EncodingETF, []field{{name: "g", ttb: int64(i % 50)}, {name: "generation", ttb: generation}, {name: "noise", ttb: noise}})
			if ops = append(ops, storage.Op{Key: fmt.Appendf(nil, "%06d", i), Value: []byte(value)}); len(ops) == 1000 {
				if err := st.Apply(ops, false); err != nil {
					t.Error(err)
				}
				ops = nil
			}
		}
	}
	write(0)
	req := Request{Ranges: everything, MaxBatchBytes: 1 << 20, Aggregate: &Aggregate{
		MaxGroups: 1000, Parallel: 3, GroupBy: []GroupBy{{Column: "g"}}, Compute: []Compute{{Op: CountAll}, {Op: First, Column: "noise"}, {Op: Last, Column: "noise"}},
	}}
	if parts := divide(st, &req, everything); len(parts) != 3 {
		t.Fatalf("%d parts", len(parts))
	}
	serial := req
	alone := *req.Aggregate
	alone.Parallel, serial.Aggregate = 1, &alone
	if got, want := outcome(t, st, req, maxGroupBytes), outcome(t, st, serial, maxGroupBytes); got != want {
		t.Errorf("3 goroutines: %.300s\n1 goroutine:  %.300s", got, want)
	}
	// One view: all rows are of one generation, or of two where it changed, never of more, and
	// each key counts once.
	written := make(chan struct{})
	go func() {
		defer close(written)
		for generation := range int64(2) {
			write(generation + 1)
		}
	}()
	req.Aggregate.GroupBy, req.Aggregate.Compute = []GroupBy{{Column: "generation"}}, []Compute{{Op: CountAll}}
	for done := false; !done; {
		select {
		case <-written:
			done = true
		default:
		}
		s := &collector{t: t, w: NewWindow(1 << 30)}
		if _, err := Run(st, req, s.w, s); err != nil {
			t.Fatal(err)
		}
		var rows int64
		for i, row := range s.rows {
			rows += row[1].(int64)
			if i > 0 && row[0].(int64) != s.rows[i-1][0].(int64)+1 {
				t.Fatalf("generations %v", s.rows)
			}
		}
		if rows != 12000 || len(s.rows) > 2 {
			t.Fatalf("%d rows of %v", rows, s.rows)
		}
	}
}

// slow is a table of parts that take a minute each.
func slow(t *testing.T) (*heavy, Request) {
	src := &heavy{pause: 10 * time.Millisecond}
	for i := range 24000 {
		value, _ := rowOf(t, filter.EncodingETF, []field{{name: "x", ttb: int64(i)}})
		src.kvs = append(src.kvs, [2]string{fmt.Sprintf("%06d", i), value})
	}
	return src, Request{Ranges: everything, MaxBatchBytes: 1000, Aggregate: &Aggregate{Parallel: 4, MaxGroups: 10, Compute: []Compute{{Op: Sum, Column: "x"}}}}
}

// TestPartsTellProgress: once a second, as one goroutine does; and a sink that fails, a
// window that is closed, and a fault end all parts at once.
func TestPartsTellProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, req := slow(t)
		s := &sink{t: t}
		s.w = NewWindow(1 << 30)
		began := time.Now()
		totals, err := Run(src, req, s.w, s)
		took := time.Since(began)
		if err != nil || totals.RowsRead != 24000 || took > 90*time.Second || len(s.progress) < int(took/time.Second)-1 || !slices.IsSorted(s.progress) || s.progress[len(s.progress)-1] > 24000 {
			t.Errorf("%+v, %v after %v, progress %d", totals, err, took, s.progress)
		}
	})
	ends := func(name string, end func(src *heavy, s *failing)) {
		synctest.Test(t, func(t *testing.T) {
			src, req := slow(t)
			s := &failing{w: NewWindow(1 << 30)}
			end(src, s)
			began := time.Now()
			_, err := Run(src, req, s.w, s)
			if err == nil || time.Since(began) > 15*time.Second || src.iters.Load() != 0 || src.views.Load() != 0 {
				t.Errorf("%s: %v after %v, %d iterators left", name, err, time.Since(began), src.iters.Load())
			}
		})
	}
	ends("sink", func(_ *heavy, s *failing) { s.err = errors.New("gone") })
	ends("window", func(_ *heavy, s *failing) {
		time.AfterFunc(5*time.Second, func() { s.w.Close(ErrStopped) })
	})
	ends("fault", func(src *heavy, _ *failing) { src.kvs[100][1] = "no row" })
}

// failing is a Sink that progress makes fail.
type failing struct {
	w   *Window
	err error
}

func (*failing) Batch([]byte) error     { return nil }
func (f *failing) Progress(int64) error { return f.err }
func (*failing) Blocked()               {}

// TestPartsPanicInTheCaller: a fault of ours on a goroutine of a scan is one of the
// goroutine that called Run, where it is contained.
func TestPartsPanicInTheCaller(t *testing.T) {
	src, req := slow(t)
	src.pause = 0
	goroutines := runtime.NumGoroutine()
	defer func() {
		fault := fmt.Sprint(recover())
		if !strings.Contains(fault, "out of order") || !strings.Contains(fault, "goroutine") || src.iters.Load() > 1 {
			t.Errorf("%s, %d iterators left", fault, src.iters.Load())
		}
		if n := runtime.NumGoroutine(); n > goroutines {
			t.Errorf("%d goroutines, %d before", n, goroutines)
		}
	}()
	w := NewWindow(1)
	_, _ = Run(panicking{src}, req, w, discard{})
}

type panicking struct{ *heavy }

func (p panicking) Snapshot() (storage.Snapshot, error) {
	return panickingView{heavyView{p.heavy}}, nil
}

type panickingView struct{ heavyView }

func (v panickingView) NewIter(r storage.Range) (storage.Iter, error) {
	if bytes.Compare(r.Start, []byte("006")) > 0 {
		panic("out of order")
	}
	return v.heavyView.NewIter(r)
}
