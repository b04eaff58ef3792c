package btree

import (
	"fmt"
	"math"
	"math/big"

	"scanode/etf"
)

// number is a number as Erlang reckons with it: integers of any size until a float comes
// in.
type number struct {
	i     int64
	big   *big.Int // if not nil, the integer; never small enough for i
	f     float64
	float bool
}

// readNumber reads a number from the beginning of b.
//
// Errors: ErrReduce.
func readNumber(b []byte) (n number, rest []byte, err error) {
	if n.i, rest, err = etf.ReadInt64(b); err == nil {
		return n, rest, nil
	}
	if n.f, rest, err = etf.ReadFloat64(b); err == nil {
		n.float = true
		return n, rest, n.finite()
	}
	if len(b) > 0 && (b[0] == etf.TagSmallBig || b[0] == etf.TagLargeBig) {
		var t etf.Term
		if t, rest, err = etf.Decode(b, etf.Limits{Depth: 1, Count: 1}); err == nil {
			if v, ok := t.(*big.Int); ok {
				return number{big: v}, rest, nil
			}
		}
	}
	return n, nil, fmt.Errorf("%w: no number", ErrReduce)
}

func (n number) finite() error {
	if n.float && (math.IsInf(n.f, 0) || math.IsNaN(n.f)) {
		return fmt.Errorf("%w: a float out of range", ErrReduce)
	}
	return nil
}

func (n number) append(dst []byte) []byte {
	switch {
	case n.float:
		return etf.AppendFloat64(dst, n.f)
	case n.big != nil:
		// A bignum has no form AppendTerm refuses.
		dst, _ = etf.AppendTerm(dst, n.big)
		return dst
	}
	return etf.AppendInt64(dst, n.i)
}

// bigInt returns an integer as a big one.
func (n number) bigInt() *big.Int {
	if n.big != nil {
		return n.big
	}
	return big.NewInt(n.i)
}

// float64 returns the nearest float.
func (n number) float64() float64 {
	switch {
	case n.float:
		return n.f
	case n.big != nil:
		f, _ := new(big.Float).SetInt(n.big).Float64()
		return f
	}
	return float64(n.i)
}

func fromBig(v *big.Int) number {
	if v.IsInt64() {
		return number{i: v.Int64()}
	}
	return number{big: v}
}

// add returns n + m.
//
// Errors: ErrReduce if that is no finite float.
func (n number) add(m number) (number, error) {
	if n.float || m.float {
		sum := number{f: n.float64() + m.float64(), float: true}
		return sum, sum.finite()
	}
	if n.big == nil && m.big == nil {
		if sum := n.i + m.i; (sum > n.i) == (m.i > 0) {
			return number{i: sum}, nil
		}
	}
	return fromBig(new(big.Int).Add(n.bigInt(), m.bigInt())), nil
}

// square returns n * n.
//
// Errors: ErrReduce if that is no finite float.
func (n number) square() (number, error) {
	if n.float {
		s := number{f: n.f * n.f, float: true}
		return s, s.finite()
	}
	if n.big == nil && n.i < 1<<31 && n.i > -(1<<31) {
		return number{i: n.i * n.i}, nil
	}
	return fromBig(new(big.Int).Mul(n.bigInt(), n.bigInt())), nil
}

// less says whether n < m, by value as Erlang does.
func (n number) less(m number) bool {
	if n.float && m.float {
		return n.f < m.f
	}
	if !n.float && !m.float && n.big == nil && m.big == nil {
		return n.i < m.i
	}
	c, _ := etf.Compare(n.append(nil), m.append(nil))
	return c < 0
}
