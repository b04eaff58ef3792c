package scan

import (
	"bytes"
	"math/big"

	"scanode/storage"
)

// splitWalkBytes is the size below which Split reads the range instead of
// estimating: what is that small may be in memory only, where estimates do not
// look.
const splitWalkBytes = 4 << 20

// splitSteps bounds the search for one boundary: every step, a seek and an
// estimate, settles one bit of it.
const splitSteps = 8 * midpointBytes

// Splittable is what can be split.
type Splittable interface {
	storage.Reader
	EstimateBytes(r storage.Range) (int64, error)
}

// Split cuts r into at most n ranges of similar size that follow each other and
// together hold what r holds: for scans side by side. The sizes are estimates.
func Split(st Splittable, r storage.Range, n int) ([]storage.Range, error) {
	it, err := st.NewIter(r)
	if err != nil {
		return nil, err
	}
	defer it.Close()
	s := splitter{st: st, it: it, r: r}
	if !it.First() {
		return []storage.Range{r}, it.Err()
	}
	s.first = bytes.Clone(it.Key())
	if !it.Last() {
		return nil, it.Err()
	}
	s.last = bytes.Clone(it.Key())
	if s.total, err = st.EstimateBytes(r); err != nil {
		return nil, err
	}
	var cuts [][]byte
	if s.total < splitWalkBytes {
		cuts, err = s.walk(n)
	} else {
		cuts, err = s.search(n)
	}
	if err != nil {
		return nil, err
	}
	return cutRange(r, cuts), nil
}

// cutRange makes ranges of r and the first keys of all but the first of them.
func cutRange(r storage.Range, cuts [][]byte) []storage.Range {
	var ranges []storage.Range
	for _, cut := range cuts {
		left := r
		left.End, left.EndInclusive = cut, false
		ranges = append(ranges, left)
		r.Start, r.StartExclusive = cut, false
	}
	return append(ranges, r)
}

type splitter struct {
	st          Splittable
	it          storage.Iter
	r           storage.Range
	first, last []byte
	total       int64
}

// walk reads the range and cuts where the parts are exactly right, to the row.
func (s *splitter) walk(n int) ([][]byte, error) {
	var total int64
	for ok := s.it.First(); ok; ok = s.it.Next() {
		total += s.rowBytes()
	}
	var cuts [][]byte
	var before int64
	for ok := s.it.First(); ok && len(cuts) < n-1; ok = s.it.Next() {
		if before > 0 && before*int64(n) >= total*int64(len(cuts)+1) {
			cuts = append(cuts, bytes.Clone(s.it.Key()))
		}
		before += s.rowBytes()
	}
	return cuts, s.it.Err()
}

func (s *splitter) rowBytes() int64 { return int64(len(s.it.Key()) + len(s.it.Value())) }

// search finds each cut by bisection between keys, as if they were fractions.
func (s *splitter) search(n int) ([][]byte, error) {
	var cuts [][]byte
	at := s.first
	near := s.total / int64(20*n)
	for i := 1; i < n; i++ {
		cut, err := s.find(at, s.total/int64(n)*int64(i), near)
		if err != nil {
			return nil, err
		}
		if bytes.Compare(cut, at) > 0 {
			cuts, at = append(cuts, cut), cut
		}
	}
	return cuts, nil
}

// find returns a key of the range, from lo on, before which there are about
// target bytes.
func (s *splitter) find(lo []byte, target, near int64) ([]byte, error) {
	hi, best := s.last, lo
	for range splitSteps {
		mid := midpoint(lo, hi)
		if bytes.Compare(mid, lo) <= 0 || bytes.Compare(mid, hi) >= 0 {
			break
		}
		if !s.it.SeekGE(mid) {
			if err := s.it.Err(); err != nil {
				return nil, err
			}
			hi = mid
			continue
		}
		key := s.it.Key()
		before := s.r
		before.End, before.EndInclusive = key, false
		size, err := s.st.EstimateBytes(before)
		if err != nil {
			return nil, err
		}
		best = bytes.Clone(key)
		switch {
		case size < target-near:
			lo = best
		case size > target+near:
			hi = mid
		default:
			return best, nil
		}
	}
	return best, nil
}

// midpointBytes is how much of two keys beyond their common start matters to
// midpoint.
const midpointBytes = 12

// midpoint returns a string of bytes about halfway from lo to hi.
func midpoint(lo, hi []byte) []byte {
	common := 0
	for common < len(lo) && common < len(hi) && lo[common] == hi[common] {
		common++
	}
	fraction := func(b []byte) *big.Int {
		padded := make([]byte, midpointBytes)
		copy(padded, b[common:])
		return new(big.Int).SetBytes(padded)
	}
	sum := new(big.Int).Add(fraction(lo), fraction(hi))
	half := sum.Rsh(sum, 1).FillBytes(make([]byte, midpointBytes))
	return append(bytes.Clone(lo[:common]), half...)
}
