package leveldb

import (
	"bytes"
	"container/heap"
	"errors"
)

// Rows walks the live rows of a store in the order of their keys.
//
//	for rows.Next() {
//		use(rows.Key(), rows.Value())
//	}
//	if err := rows.Err(); err != nil { … }
type Rows struct {
	all   []cursor // to be closed
	heap  merged   // those with an entry; the first is the smallest
	begun bool
	key   []byte // of the current row
	value []byte // aliases its cursor
	at    internalKey
	err   error
}

// Rows returns the rows. It can be called once.
func (s *Store) Rows() (*Rows, error) {
	if s.given {
		return nil, errors.New("the rows of a store can be read once")
	}
	s.given = true
	r := &Rows{}
	for len(s.files) > 0 {
		n := 1
		for n < len(s.files) && s.files[n].level == s.files[0].level {
			n++
		}
		for _, files := range disjoint(s.files[:n]) {
			r.all = append(r.all, &run{s: s, files: files})
		}
		s.files = s.files[n:]
	}
	if len(s.logs.rows) > 0 {
		r.all = append(r.all, &s.logs)
	}
	return r, nil
}

// SeekAfter leaves out rows whose key is not above key. It may only be called before
// the first Next.
func (r *Rows) SeekAfter(key []byte) {
	for _, c := range r.all {
		c.seekAfter(key)
	}
}

// Next moves to the next row. False is the end or an error.
func (r *Rows) Next() bool {
	if r.err != nil {
		return false
	}
	if !r.begun {
		r.begun = true
		if !r.start() {
			return false
		}
	} else if !r.pass() {
		return false
	}
	for len(r.heap) > 0 {
		key, value := r.heap[0].entry()
		r.key = append(r.key[:0], key.user...)
		if key.kind() != kindDelete {
			r.at, r.value = *key, value
			return true
		}
		if !r.pass() {
			return false
		}
	}
	return false
}

// start moves every cursor to its first entry.
func (r *Rows) start() bool {
	for _, c := range r.all {
		ok, err := c.next()
		if err != nil {
			r.err = err
			return false
		}
		if ok {
			r.heap = append(r.heap, c)
		}
	}
	heap.Init(&r.heap)
	return true
}

// pass passes over all entries of the current key.
func (r *Rows) pass() bool {
	for len(r.heap) > 0 {
		if key, _ := r.heap[0].entry(); !bytes.Equal(key.user, r.key) {
			return true
		}
		ok, err := r.heap[0].next()
		switch {
		case err != nil:
			r.err = err
			return false
		case !ok:
			heap.Pop(&r.heap)
		case len(r.heap) > 1:
			heap.Fix(&r.heap, 0)
		}
	}
	return true
}

// Key returns the key of the row.
func (r *Rows) Key() []byte { return r.key }

// Value returns the value of the row.
func (r *Rows) Value() []byte { return r.value }

// Written returns when the row was written, in microseconds since 1970, or 0 where the
// store does not say.
func (r *Rows) Written() uint64 {
	if r.at.kind() == kindWritten {
		return r.at.time
	}
	return 0
}

// Expires returns when the row is gone, in microseconds since 1970, or 0 where nothing
// of that kind was said of this row.
func (r *Rows) Expires() uint64 {
	if r.at.kind() == kindExpires {
		return r.at.time
	}
	return 0
}

// Err returns the error that has ended the walk.
func (r *Rows) Err() error { return r.err }

// Close closes the files.
func (r *Rows) Close() error {
	var errs []error
	for _, c := range r.all {
		errs = append(errs, c.close())
	}
	r.all, r.heap = nil, nil
	return errors.Join(errs...)
}

// merged is a heap of cursors by their entries.
type merged []cursor

func (m merged) Len() int { return len(m) }

func (m merged) Less(i, j int) bool {
	a, _ := m[i].entry()
	b, _ := m[j].entry()
	return a.compare(b) < 0
}

func (m merged) Swap(i, j int) { m[i], m[j] = m[j], m[i] }

// Push implements heap.Interface.
func (m *merged) Push(c any) { *m = append(*m, c.(cursor)) }

// Pop implements heap.Interface.
func (m *merged) Pop() any {
	last := (*m)[len(*m)-1]
	*m = (*m)[:len(*m)-1]
	return last
}
