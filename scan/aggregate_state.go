package scan

import (
	"bytes"
	"math"
	"math/big"
	"math/bits"

	"scanode/etf"
	"scanode/filter"
)

// accumulator holds, for every group, the state of one operation on one column. Of
// its slices only that of its operation is used.
type accumulator struct {
	op      Op // CountAll, Count, Sum (for all that add up), Min, Max, First, Last
	what    Op // one that was asked for
	column  int
	name    string
	squares bool // Sum: the squares are summed up as well
	keys    bool // First, Last: the key of the row is kept

	counts  []int64
	moments []moments
	spreads []spread
	chosen  []chosen

	scratch [2][]byte
}

// moments is the exact sum of numbers.
type moments struct {
	ints, floats int64  // how many
	low, high    uint64 // the sum of integers of 64 bits, in two's complement
	big          *big.Int
	sum          exact
}

// spread is the exact sum of the squares of the same numbers.
type spread struct {
	ints [3]uint64 // lowest first
	big  *big.Int
	sum  exact
}

// chosen is one of many values.
type chosen struct {
	kind chosenKind
	num  uint64 // an int64 or the bits of a float64
	term []byte // all others, canonical
	key  []byte // of the row it is from, where that is wanted
}

type chosenKind uint8

const (
	chosenNone chosenKind = iota
	chosenInt
	chosenFloat
	chosenText
	chosenOther
)

// Sizes of states, for the bound of memory; sums of floats start with one window.
const (
	momentsBytes = 64 + 24 + 8*pieces
	spreadBytes  = 32 + 40 + 8*pieces
	chosenBytes  = 64
)

// grow adds the state of a new group and returns its size.
func (a *accumulator) grow() int {
	switch a.op {
	case CountAll, Count:
		a.counts = append(a.counts, 0)
		return 8
	case Sum:
		a.moments = append(a.moments, moments{})
		if !a.squares {
			return momentsBytes
		}
		a.spreads = append(a.spreads, spread{})
		return momentsBytes + spreadBytes
	}
	a.chosen = append(a.chosen, chosen{})
	return chosenBytes
}

// add takes one cell, not NULL, of a row of group g; key is the row's. It returns how many
// bytes the state has grown by.
func (a *accumulator) add(g int, c *filter.Cell, key []byte) (grown int, err error) {
	switch a.op {
	case Count:
		a.counts[g]++
	case Sum:
		return 0, a.addNumber(g, c)
	case Min, Max:
		return a.addExtreme(&a.chosen[g], c)
	case First:
		if s := &a.chosen[g]; s.kind == chosenNone {
			return a.take(s, c, key)
		}
	case Last:
		return a.take(&a.chosen[g], c, key)
	}
	return 0, nil
}

func (a *accumulator) addNumber(g int, c *filter.Cell) error {
	m := &a.moments[g]
	switch c.Kind {
	case filter.KindInt:
		mag, negative, _ := c.Int()
		m.addInt(mag, negative)
		if a.squares {
			a.spreads[g].addInt(mag)
		}
	case filter.KindFloat:
		v, _ := c.Float()
		b := math.Float64bits(v)
		if !finite(b) {
			return unwanted("a finite number", c)
		}
		m.addFloat(b)
		if a.squares {
			a.spreads[g].sum.addSquare(b)
		}
	case filter.KindBigInt:
		n, _ := c.Big()
		m.ints++
		m.big = addBig(m.big, n)
		if a.squares {
			s := &a.spreads[g]
			s.big = addBig(s.big, n.Mul(n, n))
		}
	default:
		return unwanted("a number", c)
	}
	return nil
}

func (m *moments) addFloat(b uint64) {
	m.floats++
	m.sum.addFloat(b)
}

// addInt adds an integer of 64 bits and a sign; 2^63 of them fit.
func (m *moments) addInt(mag uint64, negative bool) {
	m.ints++
	var carry uint64
	if negative {
		m.low, carry = bits.Sub64(m.low, mag, 0)
		m.high -= carry
		return
	}
	m.low, carry = bits.Add64(m.low, mag, 0)
	m.high += carry
}

func (s *spread) addInt(mag uint64) {
	high, low := bits.Mul64(mag, mag)
	var carry uint64
	s.ints[0], carry = bits.Add64(s.ints[0], low, 0)
	s.ints[1], carry = bits.Add64(s.ints[1], high, carry)
	s.ints[2] += carry
}

func addBig(sum, n *big.Int) *big.Int {
	if sum == nil {
		sum = new(big.Int)
	}
	return sum.Add(sum, n)
}

// intSum returns the sum of the integers.
func (m *moments) intSum() *big.Int {
	sum := big.NewInt(int64(m.high))
	sum.Lsh(sum, 64)
	sum.Add(sum, new(big.Int).SetUint64(m.low))
	if m.big != nil {
		sum.Add(sum, m.big)
	}
	return sum
}

// intSum returns the sum of the squares of the integers.
func (s *spread) intSum() *big.Int {
	sum, word := new(big.Int), new(big.Int)
	for i := len(s.ints) - 1; i >= 0; i-- {
		sum.Lsh(sum, 64)
		sum.Add(sum, word.SetUint64(s.ints[i]))
	}
	if s.big != nil {
		sum.Add(sum, s.big)
	}
	return sum
}

// addExtreme keeps the least or the greatest value. The order is Erlang's. Of
// values that are equal there, as 1 and 1.0, the one with the integer is kept, so
// that the order in which they come does not count.
func (a *accumulator) addExtreme(s *chosen, c *filter.Cell) (grown int, err error) {
	better, sure := false, true
	switch c.Kind {
	case filter.KindInt:
		v, ok := c.Int64()
		if sure = ok && s.kind == chosenInt; sure {
			better = v < int64(s.num)
			if a.op == Max {
				better = v > int64(s.num)
			}
		}
	case filter.KindFloat:
		v, _ := c.Float()
		if sure = s.kind == chosenFloat && finite(math.Float64bits(v)); sure {
			better = v < math.Float64frombits(s.num)
			if a.op == Max {
				better = v > math.Float64frombits(s.num)
			}
		}
	case filter.KindText:
		text, _ := c.Text()
		if sure = s.kind == chosenText; sure {
			r := bytes.Compare(text, s.term[binaryHead:])
			better = r < 0
			if a.op == Max {
				better = r > 0
			}
		}
	default:
		sure = false
	}
	if !sure && s.kind != chosenNone {
		if better, err = a.compare(s, c); err != nil {
			return 0, err
		}
	}
	if better || s.kind == chosenNone {
		return a.take(s, c, nil)
	}
	return 0, nil
}

// binaryHead is the length of what precedes the bytes of an encoded binary.
const binaryHead = 5

// compare is the whole truth of addExtreme: whether c is to be kept instead of s.
func (a *accumulator) compare(s *chosen, c *filter.Cell) (better bool, err error) {
	was := s.append(a.scratch[0][:0])
	is, err := appendCanonical(a.scratch[1][:0], c)
	a.scratch = [2][]byte{was, is}
	if err != nil {
		return false, err
	}
	return a.better(is, was)
}

// better reports whether the term is is to be kept instead of was.
func (a *accumulator) better(is, was []byte) (bool, error) {
	r, err := etf.Compare(is, was)
	switch {
	case err != nil:
		return false, err
	case r == 0 && !bytes.Equal(is, was):
		r, err = compareExact(is, was)
		return r < 0, err
	case a.op == Min:
		return r < 0, nil
	}
	return r > 0, nil
}

// take keeps c. It returns how many bytes s has grown by.
func (a *accumulator) take(s *chosen, c *filter.Cell, key []byte) (grown int, err error) {
	before := cap(s.term) + cap(s.key)
	kind := chosenOther
	switch c.Kind {
	case filter.KindInt:
		if v, ok := c.Int64(); ok {
			kind, s.num = chosenInt, uint64(v)
		}
	case filter.KindFloat:
		if v, _ := c.Float(); finite(math.Float64bits(v)) {
			kind, s.num = chosenFloat, math.Float64bits(unsignedZero(v))
		}
	case filter.KindText:
		kind = chosenText
	}
	if kind >= chosenText {
		if s.term, err = appendCanonical(s.term[:0], c); err != nil {
			return 0, err
		}
	}
	s.kind = kind
	if a.keys {
		s.key = append(s.key[:0], key...)
	}
	return cap(s.term) + cap(s.key) - before, nil
}
