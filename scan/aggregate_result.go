package scan

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"

	"scanode/etf"
	"scanode/storage"
)

// resultRow is where the row of one group is.
type resultRow struct {
	key  string
	from int   // its first byte in results.bytes
	to   int   // the byte after its last
	at   []int // where the columns are by which it is ordered
}

// results are the rows of an aggregate, ready to be sent.
type results struct {
	bytes []byte
	rows  []resultRow
}

// checkGroups is how often, in groups, results are interrupted by check. Sorting
// counts comparisons.
const checkGroups = 1024

// results makes the rows of all groups and orders them. It calls check now and
// then and ends when that returns an error.
func (a *aggregator) results(check func() error) (*results, error) {
	r := &results{rows: make([]resultRow, len(a.keys))}
	for g, key := range a.keys {
		if g%checkGroups == 0 {
			if err := check(); err != nil {
				return nil, err
			}
		}
		row := resultRow{key: key, from: len(r.bytes)}
		if err := a.appendRow(r, &row, g); err != nil {
			return nil, err
		}
		row.to = len(r.bytes)
		r.rows[g] = row
	}
	return r, a.sort(r, check)
}

// appendRow appends the row of group g.
func (a *aggregator) appendRow(r *results, row *resultRow, g int) error {
	groups := len(a.req.GroupBy)
	starts := make([]int, 0, groups+len(a.outputs))
	r.bytes = etf.AppendListHeader(r.bytes, groups+len(a.outputs))
	if groups > 0 {
		key := []byte(row.key)
		_, cells, _ := etf.ReadListHeader(key)
		for range groups {
			starts = append(starts, len(r.bytes))
			rest, err := etf.Skip(cells)
			if err != nil {
				panic("scan: a group's key is not what was written")
			}
			r.bytes = append(r.bytes, cells[:len(cells)-len(rest)]...)
			cells = rest
		}
	}
	for i, c := range a.req.Compute {
		starts = append(starts, len(r.bytes))
		acc := a.accs[a.outputs[i]]
		if a.req.Partial {
			r.bytes = acc.appendState(r.bytes, g, c.Op)
			continue
		}
		var err error
		if r.bytes, err = acc.appendResult(r.bytes, g, c.Op); err != nil {
			return fmt.Errorf("%w: %s of field %s", err, c.Op, show(c.Column))
		}
	}
	r.bytes = etf.AppendNil(r.bytes)
	for _, o := range a.req.Order {
		row.at = append(row.at, starts[o.Column])
	}
	return nil
}

// sort orders the rows as the request wants, then by the groups' keys.
func (a *aggregator) sort(r *results, check func() error) error {
	var failed error
	compared := 0
	slices.SortFunc(r.rows, func(x, y resultRow) int {
		if compared++; compared%checkGroups == 0 && failed == nil {
			failed = check()
		}
		if failed != nil {
			return 0
		}
		c, err := a.compareRows(r.bytes, &x, &y)
		failed = err
		return c
	})
	return failed
}

func (a *aggregator) compareRows(b []byte, x, y *resultRow) (int, error) {
	if !a.req.Partial {
		for i, o := range a.req.Order {
			c, err := compareResults(b[x.at[i]:], b[y.at[i]:])
			if c == 0 && err == nil {
				continue
			}
			if o.Descending {
				c = -c
			}
			return c, err
		}
	}
	return compareTerms([]byte(x.key), []byte(y.key))
}

// compareResults orders two cells of a result, NULL last.
func compareResults(x, y []byte) (int, error) {
	xNull, yNull := x[0] == etf.TagNil, y[0] == etf.TagNil
	switch {
	case xNull && yNull:
		return 0, nil
	case xNull:
		return 1, nil
	case yNull:
		return -1, nil
	}
	return etf.Compare(x, y)
}

// appendResult appends what op gives for group g.
func (a *accumulator) appendResult(dst []byte, g int, op Op) ([]byte, error) {
	switch op {
	case CountAll, Count:
		return etf.AppendInt64(dst, a.counts[g]), nil
	case Sum:
		return a.moments[g].appendSum(dst)
	case Avg:
		return appendDouble(dst, a.moments[g].average)
	case StddevPop, StddevSamp:
		return appendDouble(dst, func() (float64, bool, error) { return a.deviation(g, op == StddevSamp) })
	}
	return a.chosen[g].append(dst), nil
}

// appendDouble appends a result, or [] if there is none.
func appendDouble(dst []byte, result func() (v float64, ok bool, err error)) ([]byte, error) {
	v, ok, err := result()
	switch {
	case errors.Is(err, errRange):
		return dst, ErrOverflow
	case !ok:
		return etf.AppendNil(dst), nil
	}
	return etf.AppendFloat64(dst, v), nil
}

// appendSum appends an integer if no float was among the numbers.
func (m *moments) appendSum(dst []byte) ([]byte, error) {
	switch {
	case m.ints+m.floats == 0:
		return etf.AppendNil(dst), nil
	case m.floats == 0 && m.big == nil && int64(m.high) == int64(m.low)>>63:
		return etf.AppendInt64(dst, int64(m.low)), nil
	case m.floats == 0:
		return etf.AppendTerm(dst, m.intSum())
	}
	return appendDouble(dst, func() (float64, bool, error) {
		v, exponent := m.total()
		f, err := nearest(v, exponent)
		return f, true, err
	})
}

// total returns the sum of all numbers as v * 2^exponent.
func (m *moments) total() (v *big.Int, exponent int) {
	v, exponent = m.sum.sum(floatScale)
	return addScaled(v, exponent, m.intSum(), 0)
}

// total returns the sum of all squares as v * 2^exponent.
func (s *spread) total() (v *big.Int, exponent int) {
	v, exponent = s.sum.sum(squareScale)
	return addScaled(v, exponent, s.intSum(), 0)
}

// addScaled returns x * 2^i + y * 2^j. It may change x and y.
func addScaled(x *big.Int, i int, y *big.Int, j int) (*big.Int, int) {
	if x.Sign() == 0 {
		return y, j
	}
	if y.Sign() == 0 {
		return x, i
	}
	low := min(i, j)
	x.Lsh(x, uint(i-low))
	y.Lsh(y, uint(j-low))
	return x.Add(x, y), low
}

// maxExactInt is up to where every integer is a float64.
const maxExactInt = 1 << 53

func (m *moments) average() (v float64, ok bool, err error) {
	n := m.ints + m.floats
	if n == 0 {
		return 0, false, nil
	}
	if sum := int64(m.low); m.floats == 0 && m.big == nil && int64(m.high) == sum>>63 &&
		-maxExactInt <= sum && sum <= maxExactInt && n <= maxExactInt {
		return float64(sum) / float64(n), true, nil // one rounding, as below
	}
	sum, exponent := m.total()
	v, err = nearestRatio(sum, big.NewInt(n), exponent)
	return v, true, err
}

// deviation returns the square root of (n Σx² - (Σx)²) / (n n), or of the same over
// n (n - 1) for the sample, rounded once.
func (a *accumulator) deviation(g int, sample bool) (v float64, ok bool, err error) {
	n := big.NewInt(a.moments[g].ints + a.moments[g].floats)
	den := new(big.Int).Set(n)
	if sample {
		den.Sub(den, big.NewInt(1))
	}
	if den.Sign() <= 0 {
		return 0, false, nil
	}
	sum, i := a.moments[g].total()
	squares, j := a.spreads[g].total()
	sum.Mul(sum, sum)
	num, exponent := addScaled(squares.Mul(squares, n), j, sum.Neg(sum), 2*i)
	v, err = nearestRoot(num, den.Mul(den, n), exponent)
	return v, true, err
}

// append appends the value as a term, [] if there is none.
func (s *chosen) append(dst []byte) []byte {
	switch s.kind {
	case chosenNone:
		return etf.AppendNil(dst)
	case chosenInt:
		return etf.AppendInt64(dst, int64(s.num))
	case chosenFloat:
		return etf.AppendFloat64(dst, math.Float64frombits(s.num))
	}
	return append(dst, s.term...)
}

// sendGroups sends the groups once all rows have been read.
func (r *runner) sendGroups() error {
	results, err := r.groups.results(r.check)
	if err != nil {
		return err
	}
	limit := int64(len(results.rows))
	if r.req.Limit > 0 && !r.req.Aggregate.Partial {
		limit = min(limit, r.req.Limit)
	}
	for _, row := range results.rows[:limit] {
		r.batch.buf = append(r.batch.buf, results.bytes[row.from:row.to]...)
		r.batch.rows++
		r.totals.Rows++
		if r.batch.size() >= r.req.MaxBatchBytes {
			if err := r.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// groupError names the row, unless the fault is not its own.
func groupError(it storage.Iter, err error) error {
	if errors.Is(err, ErrGroups) {
		return err
	}
	return rowError(it, err)
}
