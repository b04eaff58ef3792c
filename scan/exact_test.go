package scan

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// anyFloat draws finite floats of all magnitudes, and those that nearly cancel.
func anyFloat(t *rapid.T) float64 {
	switch rapid.IntRange(0, 3).Draw(t, "kind of float") {
	case 0:
		return rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1, -1, 0.1, 0.2, 0.3, 1e16, -1e16, 1e300, -1e300, math.MaxFloat64, -math.MaxFloat64,
			math.SmallestNonzeroFloat64, -math.SmallestNonzeroFloat64, 0x1p-1022, 0x0.fffffffffffffp-1022, 1 << 53, 1<<53 + 2}).Draw(t, "float")
	case 1:
		return float64(rapid.IntRange(-1000, 1000).Draw(t, "tenths")) / 10
	}
	b := rapid.Uint64().Draw(t, "bits")
	if !finite(b) {
		b &^= 1 << 62
	}
	return math.Float64frombits(b)
}

// TestExact: the sum and the sum of squares are those of rational arithmetic,
// whenever bins are carried.
func TestExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sum, squares exact
		wantSum, wantSquares := new(big.Rat), new(big.Rat)
		for range rapid.IntRange(0, 40).Draw(t, "count") {
			f := anyFloat(t)
			sum.addFloat(math.Float64bits(f))
			squares.addSquare(math.Float64bits(f))
			r := new(big.Rat).SetFloat64(f)
			wantSum.Add(wantSum, r)
			wantSquares.Add(wantSquares, r.Mul(r, r))
			if rapid.IntRange(0, 5).Draw(t, "carry") == 0 {
				sum.carry()
				squares.carry()
			}
		}
		if got := rational(sum.sum(floatScale)); got.Cmp(wantSum) != 0 {
			t.Fatalf("sum %v, want %v", got, wantSum)
		}
		if got := rational(squares.sum(squareScale)); got.Cmp(wantSquares) != 0 {
			t.Fatalf("squares %v, want %v", got, wantSquares)
		}
	})
}

// TestExactCarries fills the bins to their bound, as 2^30 additions would.
func TestExactCarries(t *testing.T) {
	for _, f := range []float64{math.MaxFloat64, -math.MaxFloat64, 0x1.fffffffffffffp31} {
		var e exact
		e.addFloat(math.Float64bits(f))
		for i := range e.bins { // the most there may be between two carries
			e.bins[i] *= laterCarry
		}
		e.carry()
		for _, b := range e.bins[:len(e.bins)-1] {
			if b>>32 != 0 {
				t.Fatalf("%v: %x after a carry", f, e.bins)
			}
		}
		want := new(big.Rat).SetFloat64(f)
		want.Mul(want, new(big.Rat).SetInt64(laterCarry))
		if got := rational(e.sum(floatScale)); got.Cmp(want) != 0 {
			t.Fatalf("%v: %v", f, got)
		}
	}
	e := exact{added: laterCarry - 1}
	e.addFloat(math.Float64bits(1))
	if e.added != 0 {
		t.Error("not carried after the last addition there is room for")
	}
}

func rational(m *big.Int, exponent int) *big.Rat {
	r := new(big.Rat).SetInt(m)
	power := new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), uint(max(exponent, -exponent))))
	if exponent < 0 {
		power.Inv(power)
	}
	return r.Mul(r, power)
}

// anyScaled draws integers of interest to rounding: near and at the middle
// between floats, of many lengths.
func anyScaled(t *rapid.T) *big.Int {
	m := new(big.Int).SetUint64(rapid.Uint64().Draw(t, "top"))
	m.Lsh(m, uint(rapid.IntRange(0, 200).Draw(t, "zeros")))
	m.Add(m, big.NewInt(rapid.Int64Range(-2, 2).Draw(t, "near")))
	if rapid.Bool().Draw(t, "negative") {
		m.Neg(m)
	}
	return m
}

// TestNearest compares with the rounding of math/big.
func TestNearest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		num, exponent := anyScaled(t), rapid.IntRange(-1400, 1000).Draw(t, "exponent")
		den := new(big.Int).Abs(anyScaled(t))
		if den.Sign() == 0 || rapid.Bool().Draw(t, "whole") {
			den.SetInt64(1)
		}
		want := rational(num, exponent)
		want.Quo(want, new(big.Rat).SetInt(den))
		got, err := nearestRatio(num, den, exponent)
		checkNearest(t, want, got, err)
		if den.IsInt64() && den.Int64() == 1 {
			got, err := nearest(num, exponent)
			checkNearest(t, want, got, err)
		}
	})
}

func checkNearest(t *rapid.T, want *big.Rat, got float64, err error) {
	f, _ := want.Float64()
	if math.IsInf(f, 0) != (err != nil) || err == nil && f != got {
		t.Fatalf("got %v, %v, want %v", got, err, f)
	}
}

// TestNearestRoot: the root is the nearest if the number lies between the squares
// of the middles to the neighbours.
func TestNearestRoot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		num, exponent := new(big.Int).Abs(anyScaled(t)), rapid.IntRange(-2400, 1900).Draw(t, "exponent")
		den := new(big.Int).Abs(anyScaled(t))
		switch {
		case rapid.Bool().Draw(t, "square"):
			num.Mul(num, num)
			den.SetInt64(1)
		case den.Sign() == 0:
			den.SetInt64(3)
		}
		square := rational(num, exponent)
		square.Quo(square, new(big.Rat).SetInt(den))
		got, err := nearestRoot(num, den, exponent)
		checkRoot(t, square, got, err)
	})
}

func checkRoot(t *rapid.T, square *big.Rat, got float64, err error) {
	if err != nil {
		// The middle between the largest float64 and the next there would be.
		bound := rational(big.NewInt(1<<54-1), 1024-54)
		if square.Cmp(bound.Mul(bound, bound)) < 0 {
			t.Fatalf("%v for the root of %v", err, square)
		}
		return
	}
	next := math.Nextafter(got, math.Inf(1))
	above := rational(big.NewInt(1<<54-1), 1024-54)
	if !math.IsInf(next, 0) {
		above = middle(got, next)
	}
	below := new(big.Rat)
	if got > 0 {
		below = middle(math.Nextafter(got, 0), got)
	}
	if square.Cmp(below.Mul(below, below)) < 0 || square.Cmp(above.Mul(above, above)) > 0 {
		t.Fatalf("%v is not nearest to the root of %v", got, square)
	}
}

func middle(a, b float64) *big.Rat {
	m := new(big.Rat).SetFloat64(a)
	m.Add(m, new(big.Rat).SetFloat64(b))
	return m.Quo(m, big.NewRat(2, 1))
}
