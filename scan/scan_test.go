package scan

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"scanode/etf"
	"scanode/filter"
	"scanode/storage"
)

// rows is a storage.Reader over a sorted slice, of which only First and Next
// work. Slices it returned are scribbled over at the next step, and a row whose value
// is unreadable ends the walk with errDisk.
type rows struct {
	kvs    [][2]string
	pause  time.Duration // per row
	closed int
}

var errDisk = errors.New("disk gone")

const unreadable = "unreadable"

func (r *rows) Get(dst, _ []byte) ([]byte, error)          { return dst, storage.ErrNotFound }
func (r *rows) Snapshot() (storage.Snapshot, error)        { return rowsView{r}, nil }
func (r *rows) EstimateBytes(storage.Range) (int64, error) { return 0, nil }
func (r *rows) NewIter(storage.Range) (storage.Iter, error) {
	return &rowIter{rows: r, at: -1}, nil
}

// rowsView is a snapshot of rows that never change.
type rowsView struct{ *rows }

func (rowsView) Close() error { return nil }

type rowIter struct {
	storage.Iter // the moves that Run does not use
	rows         *rows
	at           int
	key, value   []byte
	err          error
}

func (it *rowIter) First() bool { it.at = -1; return it.Next() }
func (it *rowIter) Next() bool {
	for _, b := range [][]byte{it.key, it.value} {
		for i := range b {
			b[i] = 0xee
		}
	}
	time.Sleep(it.rows.pause) // in a synctest bubble: no real time passes
	it.at++
	if it.at >= len(it.rows.kvs) {
		return false
	}
	kv := it.rows.kvs[it.at]
	if kv[1] == unreadable {
		it.err = errDisk
		return false
	}
	it.key, it.value = []byte(kv[0]), []byte(kv[1])
	return true
}
func (it *rowIter) Key() []byte   { return it.key }
func (it *rowIter) Value() []byte { return it.value }
func (it *rowIter) Err() error    { return it.err }
func (it *rowIter) Close() error  { it.rows.closed++; return it.err }

// sink decodes what it is sent and acknowledges it.
type sink struct {
	t        *testing.T
	w        *Window
	batches  [][]etf.Term
	sizes    []int
	progress []int64
	fail     error
}

func (s *sink) Batch(bin []byte) error {
	msg, err := etf.SkipVersion(bin)
	if err != nil {
		s.t.Fatal(err)
	}
	v, rest, err := etf.Decode(msg, etf.DefaultLimits)
	if err != nil || len(rest) > 0 {
		s.t.Fatalf("batch: %v, %d bytes left", err, len(rest))
	}
	// Decode aliases bin, which is overwritten after this call.
	v, _, _ = etf.Decode(bytes.Clone(msg), etf.DefaultLimits)
	s.batches = append(s.batches, v.(etf.List))
	s.sizes = append(s.sizes, len(bin))
	if s.fail != nil {
		return s.fail
	}
	return s.w.Ack(int64(len(bin)))
}
func (s *sink) Progress(n int64) error { s.progress = append(s.progress, n); return nil }
func (s *sink) Blocked()               {}

func (s *sink) keys() []string {
	var keys []string
	for _, b := range s.batches {
		for _, row := range b {
			switch row := row.(type) {
			case []byte:
				keys = append(keys, string(row))
			case etf.Tuple:
				keys = append(keys, string(row[0].([]byte))+"="+string(row[1].([]byte)))
			}
		}
	}
	return keys
}

func numbered(n int) *rows {
	r := &rows{}
	for i := range n {
		r.kvs = append(r.kvs, [2]string{fmt.Sprintf("k%03d", i), fmt.Sprintf("v%d", i)})
	}
	return r
}

var keys = Form{Kind: Keys}

// everything is the range of all keys.
var everything = []storage.Range{{}}

func run(t *testing.T, r *rows, req Request) (*sink, Totals, error) {
	t.Helper()
	s := &sink{t: t, w: NewWindow(1 << 20)}
	req.Ranges = everything
	totals, err := Run(r, req, s.w, s)
	if r.closed != 1 {
		t.Errorf("iterator closed %d times", r.closed)
	}
	return s, totals, err
}

func TestRunForms(t *testing.T) {
	s, totals, err := run(t, numbered(3), Request{MaxBatchBytes: 1000})
	if err != nil || !slices.Equal(s.keys(), []string{"k000=v0", "k001=v1", "k002=v2"}) || totals != (Totals{RowsRead: 3, Rows: 3, Batches: 1, Bytes: int64(s.sizes[0])}) {
		t.Errorf("kv: %v %v %v", s.keys(), totals, err)
	}
	s, _, err = run(t, numbered(2), Request{Form: keys, MaxBatchBytes: 1000})
	if err != nil || !slices.Equal(s.keys(), []string{"k000", "k001"}) {
		t.Errorf("keys: %v %v", s.keys(), err)
	}
	if s, totals, err = run(t, numbered(0), Request{MaxBatchBytes: 1000}); err != nil || len(s.batches) != 0 || totals != (Totals{}) {
		t.Errorf("an empty range sent %v %v %v", s.batches, totals, err)
	}
}

// TestRunBatchSize: a batch is sent as soon as it has the size asked for, so it
// exceeds that by less than one row, and no other batch is smaller.
func TestRunBatchSize(t *testing.T) {
	const row = 5 + 4 // an encoded key of four bytes
	for _, max := range []int{0, 1, 50, 100, 333} {
		s, _, err := run(t, numbered(100), Request{Form: keys, MaxBatchBytes: max})
		if err != nil || len(s.keys()) != 100 {
			t.Fatalf("max %d: %d rows, %v", max, len(s.keys()), err)
		}
		for i, size := range s.sizes {
			if size >= max+row && len(s.batches[i]) > 1 {
				t.Errorf("max %d: batch %d has %d bytes", max, i, size)
			}
			if size < max && i < len(s.sizes)-1 {
				t.Errorf("max %d: batch %d was sent with only %d bytes", max, i, size)
			}
		}
	}
}

func TestRunLimit(t *testing.T) {
	for _, limit := range []int64{1, 2, 99, 100, 101} {
		s, totals, err := run(t, numbered(100), Request{Limit: limit, MaxBatchBytes: 40})
		want := min(limit, 100)
		more := totals.Last != nil
		if err != nil || int64(len(s.keys())) != want || totals.RowsRead != want || more != (limit <= 100) {
			t.Errorf("limit %d: %d rows, %v, %v", limit, len(s.keys()), totals, err)
		}
	}
}

// TestRunErrorsFlush: rows before a fault are sent, then the fault is returned.
func TestRunErrorsFlush(t *testing.T) {
	r := numbered(5)
	r.kvs[3][1] = unreadable
	s, _, err := run(t, r, Request{MaxBatchBytes: 1 << 20})
	if !errors.Is(err, errDisk) || len(s.keys()) != 3 {
		t.Errorf("store error: %v after %d rows", err, len(s.keys()))
	}

	f, err := filter.Parse(etf.Tuple{etf.Atom("="), etf.Tuple{etf.Atom("field"), []byte("x"), etf.Atom("sint64")}, etf.Tuple{etf.Atom("const"), int64(1)}})
	if err != nil {
		t.Fatal(err)
	}
	// {"x": 1} and an object that is none.
	match := "\x35\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x05\x02\x81\xa1x\x01\x00\x00\x00\x00"
	r = &rows{kvs: [][2]string{{"a", match}, {"b", match}, {"c", "not a riak object"}, {"d", match}}}
	s, _, err = run(t, r, Request{Filter: f, Form: keys, MaxBatchBytes: 1 << 20})
	var row *RowError
	if !errors.As(err, &row) || string(row.Key) != "c" || !slices.Equal(s.keys(), []string{"a", "b"}) {
		t.Errorf("row error: %v after %v", err, s.keys())
	}

	r = numbered(5)
	s = &sink{t: t, w: NewWindow(1 << 20), fail: errDisk}
	if _, err := Run(r, Request{Ranges: everything, MaxBatchBytes: 1}, s.w, s); !errors.Is(err, errDisk) || len(s.batches) != 1 {
		t.Errorf("sink error: %v after %d batches", err, len(s.batches))
	}
}

// TestRunStops: a closed window ends a scan that sends nothing.
func TestRunStops(t *testing.T) {
	r := numbered(5)
	w := NewWindow(1)
	w.Close(ErrStopped)
	if totals, err := Run(r, Request{Ranges: everything, MaxBatchBytes: 1}, w, &sink{t: t, w: w}); !errors.Is(err, ErrStopped) || totals.RowsRead != 0 {
		t.Errorf("%v after %d rows", err, totals.RowsRead)
	}
}

func TestRunProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := numbered(10 * checkRows)
		r.pause = 3 * time.Second / (2 * checkRows) // a check every 1.5 seconds
		s, _, err := run(t, r, Request{Form: keys, MaxBatchBytes: 1 << 20})
		if err != nil || len(s.keys()) != 10*checkRows {
			t.Fatalf("%d rows, %v", len(s.keys()), err)
		}
		if want := []int64{256, 512, 768, 1024, 1280, 1536, 1792, 2048, 2304}; !slices.Equal(s.progress, want) {
			t.Errorf("progress %v, want %v", s.progress, want)
		}
	})
}

// TestRunAllocates nothing per row.
func TestRunAllocates(t *testing.T) {
	cost := func(n int) float64 {
		r := &steady{n: n}
		w := NewWindow(1 << 30)
		return testing.AllocsPerRun(5, func() {
			if _, err := Run(r, Request{Ranges: everything, MaxBatchBytes: 64 << 10}, w, discard{}); err != nil {
				t.Fatal(err)
			}
		})
	}
	if few, many := cost(10_000), cost(20_000); many > few {
		t.Errorf("%v allocations for 10,000 rows, %v for 20,000", few, many)
	}
}

// steady produces the same row n times without allocating.
type steady struct{ n int }

type steadyIter struct {
	storage.Iter
	left int
}

var steadyKey, steadyValue = bytes.Repeat([]byte("k"), 40), bytes.Repeat([]byte("v"), 190)

func (s *steady) Get(dst, _ []byte) ([]byte, error)          { return dst, storage.ErrNotFound }
func (s *steady) Snapshot() (storage.Snapshot, error)        { return nil, storage.ErrClosed }
func (s *steady) EstimateBytes(storage.Range) (int64, error) { return 0, nil }
func (s *steady) NewIter(storage.Range) (storage.Iter, error) {
	return &steadyIter{left: s.n}, nil
}
func (it *steadyIter) First() bool   { return it.Next() }
func (it *steadyIter) Next() bool    { it.left--; return it.left >= 0 }
func (it *steadyIter) Key() []byte   { return steadyKey }
func (it *steadyIter) Value() []byte { return steadyValue }
func (it *steadyIter) Err() error    { return nil }
func (it *steadyIter) Close() error  { return nil }

type discard struct{}

func (discard) Batch([]byte) error   { return nil }
func (discard) Progress(int64) error { return nil }
func (discard) Blocked()             {}

func BenchmarkRun(b *testing.B) {
	b.SetBytes(int64(len(steadyKey) + len(steadyValue)))
	w := NewWindow(1 << 60)
	b.ReportAllocs()
	if _, err := Run(&steady{n: b.N}, Request{Ranges: everything, MaxBatchBytes: 128 << 10}, w, discard{}); err != nil {
		b.Fatal(err)
	}
}
