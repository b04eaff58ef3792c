package filter

import (
	"bytes"
	"math"
	"math/big"

	"scanode/etf"
)

// maxIntegralFloat bounds floats written for an integer type: all below it are
// exact and were accepted by eleveldb too.
const maxIntegralFloat = 1 << 31

// constant converts v to the type of the field it is compared with; false if it
// is no such value.
func constant(t fieldType, v etf.Term) (operand, bool) {
	var num uint64
	var ok bool
	switch t {
	case typeSint64:
		num, ok = integer(v, math.MinInt64, math.MaxInt64)
	case typeTimestamp:
		num, ok = integer(v, 0, math.MaxUint64)
	case typeBoolean:
		num, ok = integer(v, 0, math.MaxUint8)
	case typeDouble:
		num, ok = double(v)
	default:
		b, isBinary := v.([]byte)
		return operand{text: bytes.Clone(b)}, isBinary
	}
	return operand{num: num}, ok
}

// integer converts v to an integer from low to high, in two's complement.
func integer(v etf.Term, low int64, high uint64) (uint64, bool) {
	switch v := v.(type) {
	case int64:
		return uint64(v), v >= low && (v < 0 || uint64(v) <= high)
	case *big.Int:
		if v.IsInt64() {
			return integer(v.Int64(), low, high)
		}
		return v.Uint64(), v.IsUint64() && v.Uint64() <= high
	case float64:
		if v != math.Trunc(v) || math.Abs(v) >= maxIntegralFloat {
			return 0, false
		}
		return integer(int64(v), low, high)
	}
	return boolean(v)
}

// double converts v to the bits of a float64: any float, integers from −2^63 to
// 2^64−1, rounded, and booleans.
func double(v etf.Term) (uint64, bool) {
	switch v := v.(type) {
	case int64:
		return math.Float64bits(float64(v)), true
	case *big.Int:
		if v.IsInt64() {
			return double(v.Int64())
		}
		return math.Float64bits(float64(v.Uint64())), v.IsUint64()
	case float64:
		return math.Float64bits(v), true
	}
	n, ok := boolean(v)
	return math.Float64bits(float64(n)), ok
}

// boolean converts true and false to 1 and 0.
func boolean(v etf.Term) (uint64, bool) {
	switch v {
	case etf.Atom("true"):
		return 1, true
	case etf.Atom("false"):
		return 0, true
	}
	return 0, false
}

// hint adds to the refusal of v what its author may have meant.
func hint(t fieldType, v etf.Term) string {
	l, isList := v.(etf.List)
	switch {
	case isList && len(l) == 0:
		return "; to test for NULL declare the field as varchar"
	case isList && t.bytes():
		return "; text is written as a binary"
	}
	return ""
}

// float returns the float64 with the given bits.
func float(bits uint64) float64 { return math.Float64frombits(bits) }

// compareFloat decides "a op b" as IEEE 754 does: a NaN differs from everything
// and has no order.
func compareFloat(op operator, a, b float64) bool {
	switch op {
	case opEq:
		return a == b
	case opNe:
		return a != b
	case opLt:
		return a < b
	case opGt:
		return a > b
	case opLe:
		return a <= b
	case opGe:
		return a >= b
	}
	return false
}
