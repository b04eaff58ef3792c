package scan

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"

	"scanode/etf"
	"scanode/etf/etftext"
	"scanode/filter"
	"scanode/msgpack"
)

// isNull reports whether a cell is NULL or missing, that is, [] in any spelling.
func isNull(c *filter.Cell) bool {
	switch c.Kind {
	case filter.KindMissing, filter.KindNull:
		return true
	case filter.KindOther:
		term, err := appendCanonical(nil, c)
		return err == nil && len(term) == 1 && term[0] == etf.TagNil
	}
	return false
}

// appendCanonical appends a cell as a term in the one form that all its spellings
// in both encodings have in common; -0.0 becomes 0.0. Equal bytes are then
// identical terms and the reverse. A cell that is missing is []. The error is
// ErrForeign for what must not cross.
func appendCanonical(dst []byte, c *filter.Cell) ([]byte, error) {
	switch c.Kind {
	case filter.KindMissing, filter.KindNull:
		return etf.AppendNil(dst), nil
	case filter.KindText:
		text, _ := c.Text()
		return etf.AppendBinary(dst, text), nil
	case filter.KindInt:
		if v, ok := c.Int64(); ok {
			return etf.AppendInt64(dst, v), nil
		}
		if mag, negative, _ := c.Int(); !negative {
			return etf.AppendUint64(dst, mag), nil
		}
		n, _ := c.Big()
		return etf.AppendTerm(dst, n)
	case filter.KindBigInt:
		n, _ := c.Big()
		return etf.AppendTerm(dst, n)
	case filter.KindFloat:
		v, _ := c.Float()
		if !finite(math.Float64bits(v)) {
			return dst, errNotFinite
		}
		return etf.AppendFloat64(dst, unsignedZero(v)), nil
	case filter.KindBool:
		if v, _ := c.Bool(); v {
			return etf.AppendAtom(dst, "true"), nil
		}
		return etf.AppendAtom(dst, "false"), nil
	}
	return appendOther(dst, c)
}

var errNotFinite = fmt.Errorf("%w: a number that is not finite", ErrForeign)

// unsignedZero returns 0.0 for -0.0: Erlang had no difference between them for most
// of its life.
func unsignedZero(v float64) float64 {
	if v == 0 {
		return 0
	}
	return v
}

// appendOther is appendCanonical for what rows of tables rarely hold.
func appendOther(dst []byte, c *filter.Cell) ([]byte, error) {
	as := appendETFCell
	if c.Encoding == filter.EncodingMsgpack {
		if msgpack.Kind(c.Bytes) == msgpack.Nil {
			return etf.AppendNil(dst), nil
		}
		as = appendMsgpackCell
	}
	term, err := as(nil, c.Bytes)
	if err != nil {
		return dst, err
	}
	t, _, err := etf.Decode(term, etf.DefaultLimits)
	if err != nil {
		return dst, err
	}
	if t, err = canonical(t); err != nil {
		return dst, err
	}
	return etf.AppendTerm(dst, t)
}

// canonical changes what a term may spell in several ways. It recurses as deep as
// Decode allows.
func canonical(t etf.Term) (etf.Term, error) {
	var err error
	all := func(ts []etf.Term) {
		for i := range ts {
			if err == nil {
				ts[i], err = canonical(ts[i])
			}
		}
	}
	switch v := t.(type) {
	case float64:
		return unsignedZero(v), nil
	case etf.List:
		all(v)
	case etf.Tuple:
		all(v)
	case etf.Improper:
		all(v.Elems)
		if err == nil {
			v.Tail, err = canonical(v.Tail)
		}
		return v, err
	case etf.Map:
		return canonicalMap(v)
	}
	return t, err
}

// canonicalMap orders the pairs by the encoded keys.
func canonicalMap(m etf.Map) (etf.Term, error) {
	type pair struct {
		key  []byte
		pair etf.Pair
	}
	pairs := make([]pair, len(m))
	for i, p := range m {
		var err error
		if p.Key, err = canonical(p.Key); err != nil {
			return nil, err
		}
		if p.Value, err = canonical(p.Value); err != nil {
			return nil, err
		}
		if pairs[i].key, err = etf.AppendTerm(nil, p.Key); err != nil {
			return nil, err
		}
		pairs[i].pair = p
	}
	slices.SortFunc(pairs, func(a, b pair) int { return bytes.Compare(a.key, b.key) })
	for i := range pairs {
		m[i] = pairs[i].pair
	}
	return m, nil
}

// appendQuantum appends the start of the quantum a cell falls in: the largest
// multiple of the quantum that is not above it.
func (g *grouping) appendQuantum(dst []byte, c *filter.Cell) ([]byte, error) {
	g.width = 0
	if v, ok := c.Int64(); ok {
		if from, ok := g.start(v); ok { // else it is below all int64
			g.from, g.width = from, uint64(g.quantum)
			return etf.AppendInt64(dst, from), nil
		}
	}
	n, ok := c.Big()
	if !ok {
		if isNull(c) {
			return etf.AppendNil(dst), nil
		}
		return dst, unwanted("a time that is an integer", c)
	}
	size := big.NewInt(g.quantum)
	n.Div(n, size) // rounds down: size is positive
	return etf.AppendTerm(dst, n.Mul(n, size))
}

// unwanted explains a cell that an operation cannot use.
func unwanted(want string, c *filter.Cell) error {
	found := ""
	switch c.Kind {
	case filter.KindText:
		text, _ := c.Text()
		found = show(text[:min(len(text), 64)])
	case filter.KindBool:
		v, _ := c.Bool()
		found = fmt.Sprint(v)
	case filter.KindFloat:
		v, _ := c.Float()
		found = etftext.Format(v)
	default:
		found = "something else"
	}
	return errors.New("needs " + want + ", found " + found)
}
