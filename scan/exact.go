package scan

import (
	"errors"
	"math"
	"math/big"
	"math/bits"
)

// errRange says that a result is beyond what a float64 can hold.
var errRange = errors.New("beyond the range of a double")

// exact is a sum of binary numbers without any rounding, so that it does not
// depend on their order:
//
//	sum = Σ bins[i] * 2^(32 * (first + i) + scale)
//
// The scale belongs to whoever adds. A bin takes a piece of up to 32 bits of each
// number, of either sign, and is wide enough for as many as laterCarry of them;
// then carry leaves 32 bits in every bin but the last. The bins cover the
// exponents that occurred and no others: numbers of similar size need four.
type exact struct {
	bins  []int64
	first int
	added uint32 // since the last carry
}

// laterCarry is how often a bin may take 32 bits until they must be carried: the
// bin stays below 2^63.
const laterCarry = 1 << 30

// pieces is how many bins an addition may touch: 106 bits, shifted by up to 31.
const pieces = 5

// add adds (hi * 2^64 + lo) * 2^at, negated if neg is -1 and not 0. hi has at
// most 42 bits and at is not negative.
func (e *exact) add(neg int64, hi, lo uint64, at int) {
	shift := uint(at & 31)
	at = at>>5 - e.first
	if uint(at) >= uint(len(e.bins)) || len(e.bins)-at < pieces {
		at = e.widen(at + e.first)
	}
	b := e.bins[at : at+pieces : at+pieces]
	// Three words of 64 bits, the last of no more than 9 bits.
	top := hi >> (64 - shift)
	hi = hi<<shift | lo>>(64-shift)
	lo <<= shift
	b[0] += (int64(lo&math.MaxUint32) ^ neg) - neg
	b[1] += (int64(lo>>32) ^ neg) - neg
	b[2] += (int64(hi&math.MaxUint32) ^ neg) - neg
	if top|hi>>32 != 0 {
		b[3] += (int64(hi>>32) ^ neg) - neg
		b[4] += (int64(top) ^ neg) - neg
	}
	if e.added++; e.added == laterCarry {
		e.carry()
	}
}

// widen makes room for an addition at bin at and returns its place in bins.
func (e *exact) widen(at int) int {
	e.cover(at, at+pieces)
	return at - e.first
}

// cover makes bins for the exponents of all from low to high, high not included.
func (e *exact) cover(low, high int) {
	if len(e.bins) == 0 {
		e.first = low
		e.bins = make([]int64, high-low)
		return
	}
	low, high = min(low, e.first), max(high, e.first+len(e.bins))
	if high-low == len(e.bins) {
		return
	}
	wider := make([]int64, high-low)
	copy(wider[e.first-low:], e.bins)
	e.bins, e.first = wider, low
}

// carry moves what exceeds 32 bits of each bin to the next.
func (e *exact) carry() {
	e.added = 0
	if n := len(e.bins); n > 0 && e.bins[n-1]>>32 != e.bins[n-1]>>63 {
		e.bins = append(e.bins, 0)
	}
	var over int64
	for i := range e.bins {
		v := e.bins[i] + over
		if i == len(e.bins)-1 {
			e.bins[i] = v
			return
		}
		e.bins[i], over = v&math.MaxUint32, v>>32
	}
}

// sum returns the sum as v * 2^exponent, given the scale.
func (e *exact) sum(scale int) (v *big.Int, exponent int) {
	v = new(big.Int)
	if len(e.bins) == 0 {
		return v, 0
	}
	var bin big.Int
	for i := len(e.bins) - 1; i >= 0; i-- {
		v.Lsh(v, 32)
		v.Add(v, bin.SetInt64(e.bins[i]))
	}
	return v, 32*e.first + scale
}

// Scales of the sums of float64 and of their squares: the smallest float64 is
// 2^floatScale.
const (
	floatScale  = -1074
	squareScale = 2 * floatScale
)

// splitFloat returns the magnitude m of a finite float64 and its place: the
// number is ±m * 2^(at + floatScale).
func splitFloat(b uint64) (m uint64, at int, neg int64) {
	m = b & (1<<52 - 1)
	at = int(b >> 52 & 0x7ff)
	if at > 0 {
		m |= 1 << 52
		at--
	}
	return m, at, int64(b) >> 63
}

// addFloat adds the finite float64 with the bits b; the scale is floatScale. It is
// add for 53 bits, which three bins take.
func (e *exact) addFloat(b uint64) {
	m, at, neg := splitFloat(b)
	if m == 0 {
		return
	}
	shift := uint(at & 31)
	at = at>>5 - e.first
	if uint(at) >= uint(len(e.bins)) || len(e.bins)-at < pieces {
		at = e.widen(at + e.first)
	}
	bins := e.bins[at : at+3 : at+3]
	low, high := m<<shift, m>>1>>(63-shift)
	bins[0] += (int64(low&math.MaxUint32) ^ neg) - neg
	bins[1] += (int64(low>>32) ^ neg) - neg
	bins[2] += (int64(high) ^ neg) - neg
	if e.added++; e.added == laterCarry {
		e.carry()
	}
}

// addSquare adds its square; the scale is squareScale.
func (e *exact) addSquare(b uint64) {
	m, at, _ := splitFloat(b)
	if m != 0 {
		hi, lo := bits.Mul64(m, m)
		e.add(0, hi, lo, 2*at)
	}
}

// nearest returns the float64 nearest to m * 2^exponent, ties to even; never -0.0.
func nearest(m *big.Int, exponent int) (float64, error) {
	if m.Sign() == 0 {
		return 0, nil
	}
	length := m.BitLen()
	drop := max(length-53, floatScale-exponent)
	r := new(big.Int).Abs(m)
	if drop > 0 {
		odd := drop < length && r.Bit(drop) == 1
		half := drop <= length && r.Bit(drop-1) == 1
		below := half && r.TrailingZeroBits() < uint(drop-1)
		r.Rsh(r, uint(drop))
		if half && (odd || below) {
			r.Add(r, big.NewInt(1))
		}
		exponent += drop
	}
	if r.BitLen()+exponent > 1024 {
		return 0, errRange
	}
	// r has 53 bits at most, or is 2^53: nothing below rounds.
	f := math.Ldexp(float64(r.Uint64()), exponent)
	if m.Sign() < 0 {
		f = -f
	}
	return unsignedZero(f), nil
}

// nearestRatio returns the float64 nearest to num / den * 2^exponent; den is
// positive.
func nearestRatio(num, den *big.Int, exponent int) (float64, error) {
	q, exponent := quotient(num, den, exponent, 64)
	return nearest(q, exponent)
}

// quotient returns num / den * 2^exponent as q * 2^exponent, q of at least
// precision bits. The last bit of q is set if anything was cut off, so q rounds
// as the exact quotient does to anything shorter by two bits.
func quotient(num, den *big.Int, exponent, precision int) (*big.Int, int) {
	up := max(0, precision+1+den.BitLen()-num.BitLen())
	abs := new(big.Int).Abs(num)
	q, rest := abs.QuoRem(abs.Lsh(abs, uint(up)), den, new(big.Int))
	q.Lsh(q, 1)
	if rest.Sign() != 0 {
		q.SetBit(q, 0, 1)
	}
	if num.Sign() < 0 {
		q.Neg(q)
	}
	return q, exponent - up - 1
}

// nearestRoot returns the float64 nearest to the square root of
// num / den * 2^exponent; neither is negative, den not 0.
func nearestRoot(num, den *big.Int, exponent int) (float64, error) {
	q, exponent := quotient(num, den, exponent, 128)
	if exponent&1 != 0 {
		q.Lsh(q, 1)
		exponent--
	}
	// If something was cut off, q is odd or twice an odd number, so that its root
	// is next to no number that rounding must tell from its neighbours: those
	// are even, and 64 bits leave ten below the last that counts.
	root := new(big.Int).Sqrt(q)
	whole := new(big.Int).Mul(root, root).Cmp(q) == 0
	root.Lsh(root, 1)
	if !whole {
		root.SetBit(root, 0, 1)
	}
	return nearest(root, exponent/2-1)
}
