package scan

import "math/bits"

// This file makes one aggregator of two: what both have seen, one after the other.
// Sums are exact and extremes do not depend on the order of rows, so the result is
// what one would have made of all rows.

// merge adds the groups of b, whose rows follow those of a. It takes what b has; b is
// of no use any more. It calls check now and then and ends when that returns an error.
func (a *aggregator) merge(b *aggregator, check func() error) error {
	for h, key := range b.keys {
		if h%checkGroups == 0 {
			if err := check(); err != nil {
				return err
			}
		}
		g, known := a.index[key]
		if !known {
			a.key = append(a.key[:0], key...)
			var err error
			if g, err = a.newGroup(); err != nil {
				return err
			}
		}
		for i, acc := range a.accs {
			grown, err := acc.merge(g, b.accs[i], h)
			if err != nil {
				return err
			}
			a.bytes += grown
		}
		if a.bytes > a.maxBytes {
			return a.tooLarge()
		}
	}
	return nil
}

// merge adds the state of group h of b to that of group g. It returns how many bytes
// the latter has grown by.
func (a *accumulator) merge(g int, b *accumulator, h int) (grown int, err error) {
	switch a.op {
	case CountAll, Count:
		a.counts[g] += b.counts[h]
		return 0, nil
	case Sum:
		a.moments[g].merge(&b.moments[h])
		if a.squares {
			a.spreads[g].merge(&b.spreads[h])
		}
		return 0, nil
	}
	s, later := &a.chosen[g], &b.chosen[h]
	take := s.kind == chosenNone
	switch {
	case later.kind == chosenNone:
		return 0, nil
	case a.op == Last:
		take = true
	case !take && (a.op == Min || a.op == Max):
		a.scratch[0] = s.append(a.scratch[0][:0])
		a.scratch[1] = later.append(a.scratch[1][:0])
		if take, err = a.better(a.scratch[1], a.scratch[0]); err != nil {
			return 0, err
		}
	}
	if take {
		grown = cap(later.term) + cap(later.key) - cap(s.term) - cap(s.key)
		*s = *later
	}
	return grown, nil
}

func (m *moments) merge(o *moments) {
	m.ints += o.ints
	m.floats += o.floats
	var carry uint64
	m.low, carry = bits.Add64(m.low, o.low, 0)
	m.high += o.high + carry
	if o.big != nil {
		m.big = addBig(m.big, o.big)
	}
	m.sum.merge(&o.sum)
}

func (s *spread) merge(o *spread) {
	var carry uint64
	for i := range s.ints {
		s.ints[i], carry = bits.Add64(s.ints[i], o.ints[i], carry)
	}
	if o.big != nil {
		s.big = addBig(s.big, o.big)
	}
	s.sum.merge(&o.sum)
}

// merge adds o, of the same scale. It may change how o is written.
func (e *exact) merge(o *exact) {
	if len(o.bins) == 0 {
		return
	}
	o.carry()
	e.carry()
	e.cover(o.first, o.first+len(o.bins))
	for i, bin := range o.bins {
		e.bins[o.first-e.first+i] += bin // 33 bits at most
	}
	e.carry()
}
