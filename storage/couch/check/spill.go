package check

import (
	"bufio"
	"cmp"
	"container/heap"
	"encoding/binary"
	"errors"
	"io"
	"iter"
	"os"
	"slices"
)

// record is what is sorted: by a, then b, then c.
type record struct{ a, b, c uint64 }

const recordSize = 24

func compareRecords(x, y record) int {
	if c := cmp.Compare(x.a, y.a); c != 0 {
		return c
	}
	if c := cmp.Compare(x.b, y.b); c != 0 {
		return c
	}
	return cmp.Compare(x.c, y.c)
}

// spill sorts any number of records in bounded memory: it keeps limit of them, and
// writes what is more to a temporary file in sorted runs that are merged in the end.
// The zero spill with a limit is ready for use.
type spill struct {
	limit int    // records in memory
	dir   string // of the temporary file; "" is the system's
	buf   []record
	temp  *os.File // nil until the first run is written
	runs  []int64  // where they end
	size  int64    // of temp
}

// add takes r. An error is one of the temporary file.
func (s *spill) add(r record) error {
	if len(s.buf) >= s.limit {
		if err := s.flush(); err != nil {
			return err
		}
	}
	s.buf = append(s.buf, r)
	return nil
}

// flush writes the records in memory as a run.
func (s *spill) flush() error {
	slices.SortFunc(s.buf, compareRecords)
	if s.temp == nil {
		temp, err := os.CreateTemp(s.dir, "scanode-check-")
		if err != nil {
			return err
		}
		s.temp = temp
		// Without a name it is gone with the process, however that ends.
		if err := os.Remove(temp.Name()); err != nil {
			return err
		}
	}
	w := bufio.NewWriterSize(s.temp, 1<<16)
	var b [recordSize]byte
	for _, r := range s.buf {
		r.put(b[:])
		if _, err := w.Write(b[:]); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	s.size += int64(len(s.buf)) * recordSize
	s.runs = append(s.runs, s.size)
	s.buf = s.buf[:0]
	return nil
}

func (r record) put(b []byte) {
	binary.LittleEndian.PutUint64(b, r.a)
	binary.LittleEndian.PutUint64(b[8:], r.b)
	binary.LittleEndian.PutUint64(b[16:], r.c)
}

func readRecord(b []byte) record {
	return record{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])}
}

// sorted returns the records in order. An error ends the sequence. Nothing may be
// added while it is used; it may be used again.
func (s *spill) sorted() iter.Seq2[record, error] {
	slices.SortFunc(s.buf, compareRecords)
	if s.temp == nil {
		return func(yield func(record, error) bool) {
			for _, r := range s.buf {
				if !yield(r, nil) {
					return
				}
			}
		}
	}
	return s.merge
}

// run is a run that is being read, or what is in memory.
type run struct {
	head record
	mem  []record
	r    *bufio.Reader
}

// next reads the next record into head.
func (r *run) next() error {
	if r.r == nil {
		if len(r.mem) == 0 {
			return io.EOF
		}
		r.head, r.mem = r.mem[0], r.mem[1:]
		return nil
	}
	var b [recordSize]byte
	if _, err := io.ReadFull(r.r, b[:]); err != nil {
		return err
	}
	r.head = readRecord(b[:])
	return nil
}

type runHeap []*run

func (h runHeap) Len() int           { return len(h) }
func (h runHeap) Less(i, j int) bool { return compareRecords(h[i].head, h[j].head) < 0 }
func (h runHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *runHeap) Push(x any)        { *h = append(*h, x.(*run)) }
func (h *runHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// runBuffer is how much of each run is read at once.
const runBuffer = 32 << 10

func (s *spill) merge(yield func(record, error) bool) {
	h := runHeap{{mem: s.buf}}
	start := int64(0)
	for _, end := range s.runs {
		h = append(h, &run{r: bufio.NewReaderSize(io.NewSectionReader(s.temp, start, end-start), runBuffer)})
		start = end
	}
	live := h[:0]
	for _, r := range h {
		switch err := r.next(); err {
		case nil:
			live = append(live, r)
		case io.EOF:
		default:
			yield(record{}, err)
			return
		}
	}
	h = live
	heap.Init(&h)
	for len(h) > 0 {
		if !yield(h[0].head, nil) {
			return
		}
		switch err := h[0].next(); err {
		case nil:
			heap.Fix(&h, 0)
		case io.EOF:
			heap.Pop(&h)
		default:
			yield(record{}, err)
			return
		}
	}
}

// close gives up the temporary file.
func (s *spill) close() error {
	s.buf = nil
	if s.temp == nil {
		return nil
	}
	err := s.temp.Close()
	s.temp = nil
	return err
}

// mismatch is a record that one of two spills has and the other has not. When both
// have one of the same a that differs in b, both are set.
type mismatch struct{ left, right *record }

// unmatched returns where x and y, both of records with a key a and a hash b,
// differ, in order of a.
func unmatched(x, y *spill) iter.Seq2[mismatch, error] {
	return func(yield func(mismatch, error) bool) {
		nextX, stopX := iter.Pull2(x.sorted())
		defer stopX()
		nextY, stopY := iter.Pull2(y.sorted())
		defer stopY()
		l, errL, okL := nextX()
		r, errR, okR := nextY()
		for okL || okR {
			if err := errors.Join(errL, errR); err != nil {
				yield(mismatch{}, err)
				return
			}
			var m mismatch
			left, right := l, r
			c := -1
			if okL && okR {
				c = cmp.Compare(l.a, r.a)
			} else if okR {
				c = 1
			}
			if c <= 0 {
				m.left = &left
				l, errL, okL = nextX()
			}
			if c >= 0 {
				m.right = &right
				r, errR, okR = nextY()
			}
			if c == 0 && left.b == right.b {
				continue
			}
			if !yield(m, nil) {
				return
			}
		}
	}
}

// pullRecords is iter.Pull2 with one value less.
func pullRecords(seq iter.Seq2[record, error]) (next func() (record, bool, error), stop func()) {
	pull, stop := iter.Pull2(seq)
	return func() (record, bool, error) {
		r, err, ok := pull()
		return r, ok && err == nil, err
	}, stop
}
