package scan

import (
	"math/big"

	"scanode/etf"
)

// The states that partial results are made of, as terms. Fractions travel as
// integers, scaled by fixed powers of two, so that whoever merges them adds
// integers:
//
//	count                     N
//	sum, avg                  {Ints, Floats, IntSum, FloatSum}
//	stddev_pop, stddev_samp   {Ints, Floats, IntSum, FloatSum, IntSquares, FloatSquares}
//	min, max                  Value | []
//	first, last               {Key, Value} | []
//
// Ints and Floats count; FloatSum is scaled by 2^1074, FloatSquares by 2^2148.

// appendState appends what op needs of the state of group g.
func (a *accumulator) appendState(dst []byte, g int, op Op) []byte {
	switch op {
	case CountAll, Count:
		return etf.AppendInt64(dst, a.counts[g])
	case Sum, Avg:
		return a.moments[g].append(etf.AppendTupleHeader(dst, 4))
	case StddevPop, StddevSamp:
		dst = a.moments[g].append(etf.AppendTupleHeader(dst, 6))
		return a.spreads[g].append(dst)
	case First, Last:
		s := &a.chosen[g]
		if s.kind == chosenNone {
			return etf.AppendNil(dst)
		}
		dst = etf.AppendBinary(etf.AppendTupleHeader(dst, 2), s.key)
		return s.append(dst)
	}
	return a.chosen[g].append(dst)
}

func (m *moments) append(dst []byte) []byte {
	dst = etf.AppendInt64(etf.AppendInt64(dst, m.ints), m.floats)
	return appendScaled(appendBig(dst, m.intSum()), &m.sum)
}

func (s *spread) append(dst []byte) []byte {
	return appendScaled(appendBig(dst, s.intSum()), &s.sum)
}

// appendScaled appends the sum in units of its scale.
func appendScaled(dst []byte, e *exact) []byte {
	v, exponent := e.sum(0)
	return appendBig(dst, v.Lsh(v, uint(exponent)))
}

func appendBig(dst []byte, n *big.Int) []byte {
	dst, err := etf.AppendTerm(dst, n)
	if err != nil {
		panic("scan: an integer that is no term: " + err.Error())
	}
	return dst
}
