package main

import (
	"fmt"

	"scanode/etf"
	"scanode/storage/couch/btree"
)

// countSum reduces rows whose values are integers to {Count, Sum}, which is what the trees
// had whose speed was recorded.
type countSum struct{}

// Reduce implements btree.Reducer.
func (countSum) Reduce(dst []byte, rows []btree.Row) ([]byte, error) {
	var sum int64
	for _, r := range rows {
		v, _, err := etf.ReadInt64(r.Value)
		if err != nil {
			return dst, fmt.Errorf("%w: %w", btree.ErrReduce, err)
		}
		sum += v
	}
	return appendCountSum(dst, int64(len(rows)), sum), nil
}

// Rereduce implements btree.Reducer.
func (countSum) Rereduce(dst []byte, reds [][]byte) ([]byte, error) {
	var count, sum int64
	for _, red := range reds {
		arity, b, err := etf.ReadTupleHeader(red)
		if err == nil && arity != 2 {
			err = etf.ErrTag
		}
		var n, s int64
		if err == nil {
			n, b, err = etf.ReadInt64(b)
		}
		if err == nil {
			s, _, err = etf.ReadInt64(b)
		}
		if err != nil {
			return dst, fmt.Errorf("%w: %w", btree.ErrReduce, err)
		}
		count, sum = count+n, sum+s
	}
	return appendCountSum(dst, count, sum), nil
}

func appendCountSum(dst []byte, count, sum int64) []byte {
	return etf.AppendInt64(etf.AppendInt64(etf.AppendTupleHeader(dst, 2), count), sum)
}
