package etf

import (
	"bytes"
	"cmp"
	"math"
	"math/bits"
)

// number is an integer of 64 bits, a larger one, or a float.
type number struct {
	float  bool
	f      float64
	small  int64
	neg    bool
	digits []byte // of a larger integer: little-endian, the last one not 0; otherwise nil
}

// readNumber reads the number that is all of b.
func readNumber(b []byte) (n number, err error) {
	switch b[0] {
	case TagNewFloat, TagFloat:
		n.float = true
		if n.f, _, err = ReadFloat64(b); err == nil && (math.IsNaN(n.f) || math.IsInf(n.f, 0)) {
			err = badValue(0, "a float that is not finite")
		}
	case TagSmallBig, TagLargeBig:
		if n.neg, n.digits, _, err = readBig(b); err != nil {
			return n, err
		}
		if len(n.digits) > 8 {
			return n, nil
		}
		var mag uint64
		for i, d := range n.digits {
			mag |= uint64(d) << (8 * i)
		}
		if mag <= math.MaxInt64 || n.neg && mag == 1<<63 {
			n.digits, n.small = nil, int64(mag)
			if n.neg {
				n.small = -n.small
			}
		}
	default:
		n.small, _, err = ReadInt64(b)
	}
	return n, err
}

func (n number) negative() bool {
	if n.digits != nil {
		return n.neg
	}
	return n.small < 0
}

// compareNumbers compares by value, or with exact set every integer before every
// float.
func compareNumbers(a, b []byte, exact bool) (int, error) {
	x, err := readNumber(a)
	if err != nil {
		return 0, err
	}
	y, err := readNumber(b)
	if err != nil {
		return 0, err
	}
	switch {
	case x.float && y.float:
		return cmp.Compare(x.f, y.f), nil
	case x.float && exact:
		return 1, nil
	case y.float && exact:
		return -1, nil
	case x.float:
		return -compareToFloat(y, x.f), nil
	case y.float:
		return compareToFloat(x, y.f), nil
	}
	return compareIntegers(x, y), nil
}

func compareIntegers(x, y number) int {
	switch {
	case x.digits == nil && y.digits == nil:
		return cmp.Compare(x.small, y.small)
	case x.negative() != y.negative():
		return sign(x)
	}
	// Of equal sign: a larger magnitude is any that does not fit 64 bits.
	r := cmp.Compare(len(x.digits), len(y.digits))
	for i := len(x.digits) - 1; i >= 0 && r == 0; i-- {
		r = cmp.Compare(x.digits[i], y.digits[i])
	}
	return r * sign(x)
}

func sign(x number) int {
	if x.negative() {
		return -1
	}
	return 1
}

// compareToFloat compares an integer with a finite float without rounding
// either.
func compareToFloat(x number, f float64) int {
	if x.digits != nil {
		return compareBigToFloat(x, f)
	}
	switch whole := math.Trunc(f); {
	case f >= 1<<63:
		return -1
	case f < -1<<63:
		return 1
	case x.small != int64(whole):
		return cmp.Compare(x.small, int64(whole))
	default:
		return cmp.Compare(whole, f)
	}
}

func compareBigToFloat(x number, f float64) int {
	switch {
	case math.Abs(f) < 1<<63, x.neg != (f < 0):
		return sign(x)
	}
	last := len(x.digits) - 1
	size := 8*last + bits.Len8(x.digits[last])
	frac, exp := math.Frexp(math.Abs(f)) // 0.5 <= frac < 1, so |f| has exp bits
	r := cmp.Compare(size, exp)
	if r == 0 {
		// The same size: line up the upper 64 bits. A float has 53.
		top, below := topBits(x.digits, size)
		r = cmp.Compare(top, uint64(math.Ldexp(frac, 64)))
		if r == 0 && below {
			r = 1
		}
	}
	return r * sign(x)
}

// topBits returns the upper 64 of size bits and whether any bit below is set.
func topBits(digits []byte, size int) (top uint64, below bool) {
	low := size - 64
	for i := range 9 {
		at := low/8 + i
		if at >= len(digits) {
			break
		}
		if shift := 8*i - low%8; shift >= 0 {
			top |= uint64(digits[at]) << shift
		} else {
			top |= uint64(digits[at] >> -shift)
		}
	}
	if digits[low/8]<<(8-low%8) != 0 {
		return top, true
	}
	return top, len(bytes.TrimLeft(digits[:low/8], "\x00")) > 0
}
