package btree

import (
	"fmt"

	"scanode/etf"
)

// Sum adds the values of rows: _sum. Values are numbers, or lists of numbers, which are
// added place by place; a number stands for a list of one then. Without rows the sum is 0.
//
// Differs from CouchDB, which also adds objects name by name, and which makes an object
// that tells of the fault out of a value it cannot add; here that is an error.
type Sum struct{}

// Reduce appends the sum of the rows' values.
//
// Errors: ErrReduce.
func (Sum) Reduce(dst []byte, rows []Row) ([]byte, error) {
	var s summer
	for _, r := range rows {
		if err := s.add(r.Value); err != nil {
			return dst, err
		}
	}
	return s.append(dst), nil
}

// Rereduce appends the sum of sums.
//
// Errors: ErrReduce.
func (Sum) Rereduce(dst []byte, reds [][]byte) ([]byte, error) {
	var s summer
	for _, red := range reds {
		if err := s.add(red); err != nil {
			return dst, err
		}
	}
	return s.append(dst), nil
}

// summer is a sum under way.
type summer struct {
	number
	list []number // instead, if isList
	many bool
}

func (s *summer) add(value []byte) error {
	if len(value) == 0 || !isList(value) {
		n, _, err := readNumber(value)
		if err != nil {
			return err
		}
		if s.many {
			return s.addAt(0, n)
		}
		s.number, err = s.number.add(n)
		return err
	}
	if !s.many {
		s.many = true
		s.list = append(s.list[:0], s.number)
	}
	n, b, err := elements(value)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrReduce, err)
	}
	for i := range n {
		var v number
		if v, b, err = readNumber(b); err != nil {
			return err
		}
		if err := s.addAt(i, v); err != nil {
			return err
		}
	}
	if _, err := endOfList(b); err != nil {
		return fmt.Errorf("%w: %w", ErrReduce, err)
	}
	return nil
}

func (s *summer) addAt(i int, n number) (err error) {
	if i == len(s.list) {
		s.list = append(s.list, n)
		return nil
	}
	s.list[i], err = s.list[i].add(n)
	return err
}

func (s *summer) append(dst []byte) []byte {
	if !s.many {
		return s.number.append(dst)
	}
	list := etf.AppendListHeader(nil, len(s.list))
	for _, n := range s.list {
		list = n.append(list)
	}
	return appendCanonical(dst, etf.AppendNil(list))
}

// Stats makes {Sum, Count, Min, Max, SumOfSquares} of values that are numbers: _stats.
// Without rows all five are 0.
//
// Differs from CouchDB, which also takes lists of numbers, and objects that are such
// statistics; here they are an error.
type Stats struct{}

// Reduce appends the statistics of the rows' values.
//
// Errors: ErrReduce.
func (Stats) Reduce(dst []byte, rows []Row) ([]byte, error) {
	var all stats
	for _, r := range rows {
		n, _, err := readNumber(r.Value)
		if err != nil {
			return dst, err
		}
		square, err := n.square()
		if err != nil {
			return dst, err
		}
		if err := all.add(stats{n, number{i: 1}, n, n, square}); err != nil {
			return dst, err
		}
	}
	return all.append(dst), nil
}

// Rereduce appends the statistics of what others are of.
//
// Errors: ErrReduce.
func (Stats) Rereduce(dst []byte, reds [][]byte) ([]byte, error) {
	var all stats
	for _, red := range reds {
		arity, b, err := etf.ReadTupleHeader(red)
		if err != nil || arity != len(all) {
			return dst, fmt.Errorf("%w: no statistics", ErrReduce)
		}
		var s stats
		for i := range s {
			if s[i], b, err = readNumber(b); err != nil {
				return dst, err
			}
		}
		if err := all.add(s); err != nil {
			return dst, err
		}
	}
	return all.append(dst), nil
}

// stats is sum, count, minimum, maximum and sum of squares.
type stats [5]number

func (s *stats) add(o stats) (err error) {
	if s[1] == (number{}) {
		*s = o
		return nil
	}
	if o[1] == (number{}) {
		return nil
	}
	for _, i := range []int{0, 1, 4} {
		if s[i], err = s[i].add(o[i]); err != nil {
			return err
		}
	}
	if o[2].less(s[2]) {
		s[2] = o[2]
	}
	if s[3].less(o[3]) {
		s[3] = o[3]
	}
	return nil
}

func (s *stats) append(dst []byte) []byte {
	dst = etf.AppendTupleHeader(dst, len(s))
	for _, n := range s {
		dst = n.append(dst)
	}
	return dst
}
