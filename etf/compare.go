package etf

import (
	"bytes"
	"cmp"
	"slices"
)

// Compare orders two encoded terms as Erlang's < and == do; trailing bytes do
// not count. The order is
//
//	number < atom < reference < fun < port < pid < tuple < record < map < [] < list < bitstring
//
// Integers and floats compare by value, exactly, so 1 and 1.0 are equal. Tuples
// compare by size, then element by element. Maps compare by size, then by their
// keys in order, then by their values in the order of the keys; among keys (and
// inside of keys) every integer comes before every float. STRING_EXT is the list
// it stands for. Native records (OTP 29) compare by module, name, whether they
// are exported, and number of fields, then by the names and the values of the
// fields. FUN_EXT and LOCAL_EXT have no known order.
//
// Where releases differ, Compare is as the older ones: 0.0 and -0.0 are equal also
// as keys of maps, which OTP 27 and later tell apart there; and equal funs of two
// versions of a module are not, while OTP 29 orders them by nothing.
//
// Compare reads no further than it must: it need not notice what is wrong with
// bytes after the first difference. Maps of more than one pair make it allocate,
// nothing else does.
//
// Errors: ErrTruncated, ErrTag, ErrCompressed, ErrValue for what is no term,
// ErrLimit for terms nested deeper than MaxDepth and for maps nested as keys of
// maps so that comparing them would take more than a fixed multiple of their size.
func Compare(a, b []byte) (int, error) {
	c := comparer{a: a, b: b, steps: stepsFor(len(a) + len(b))}
	r, _, _, err := c.term(0, 0, 0, false)
	return r, err
}

// class is a term's place in the order of types.
type class uint8

const (
	classNumber class = iota
	classAtom
	classRef
	classFun
	classPort
	classPid
	classTuple
	classRecord
	classMap
	classNil
	classList
	classBits
	classOpaque // no order known
)

// classify steps over LIST_EXTs without elements, which are their tails, and
// returns the class of the term at off and where it is.
func classify(b []byte, off int) (class, int, error) {
	for ; ; off += 5 {
		if off >= len(b) {
			return 0, 0, truncated(off)
		}
		switch b[off] {
		case TagSmallInteger, TagInteger, TagNewFloat, TagFloat, TagSmallBig, TagLargeBig:
			return classNumber, off, nil
		case TagSmallAtomUTF8, TagAtomUTF8, TagSmallAtom, TagAtom:
			return classAtom, off, nil
		case TagReference, TagNewReference, TagNewerReference:
			return classRef, off, nil
		case TagNewFun, TagExport:
			return classFun, off, nil
		case TagPort, TagNewPort, TagV4Port:
			return classPort, off, nil
		case TagPid, TagNewPid:
			return classPid, off, nil
		case TagSmallTuple, TagLargeTuple:
			return classTuple, off, nil
		case TagMap:
			return classMap, off, nil
		case TagNil:
			return classNil, off, nil
		case TagString, TagList:
			next, n, err := head(b, off)
			if err != nil {
				return 0, 0, err
			}
			if n > 1 || next > off+3 && b[off] == TagString {
				return classList, off, nil
			}
			if b[off] == TagString {
				return classNil, off, nil
			}
		case TagBinary, TagBitBinary:
			return classBits, off, nil
		case TagRecord:
			return classRecord, off, nil
		case TagFun, TagLocal:
			return classOpaque, off, nil
		default:
			return 0, 0, badTag(b, off, "a term")
		}
	}
}

// comparer compares parts of a with parts of b. Its methods take the offsets of
// two terms and return, when the terms are equal, the offsets after them.
type comparer struct {
	a, b  []byte
	steps int // still allowed
	// duplicates is set to look for keys that come twice. Then terms of
	// classOpaque are ordered by their bytes, and what any release holds for
	// equal is equal.
	duplicates bool
}

// stepsFor allows what sorting the keys of large maps takes, and not what grows
// with a power of the size when maps are keys of maps that are keys of maps.
func stepsFor(size int) int { return 4096 + 16*size }

func (c *comparer) step(off, n int) error {
	if c.steps -= n; c.steps < 0 {
		return &Error{off, "maps as keys take too long to compare", ErrLimit}
	}
	return nil
}

// term compares the terms at i and j, which have depth containers around them.
// With exact set, every integer comes before every float, as for keys of maps.
func (c *comparer) term(i, j, depth int, exact bool) (r, ni, nj int, err error) {
	if depth > MaxDepth {
		return 0, 0, 0, tooDeep(i)
	}
	if err := c.step(i, 1); err != nil {
		return 0, 0, 0, err
	}
	x, i, err := classify(c.a, i)
	if err != nil {
		return 0, 0, 0, err
	}
	y, j, err := classify(c.b, j)
	if err != nil {
		return 0, 0, 0, err
	}
	if (x == classOpaque || y == classOpaque) && !c.duplicates {
		return 0, 0, 0, unordered(i)
	}
	if x != y {
		return cmp.Compare(x, y), 0, 0, nil
	}
	switch x {
	case classTuple:
		return c.tuple(i, j, depth, exact)
	case classRecord:
		return c.record(i, j, depth, exact)
	case classMap:
		return c.mapping(i, j, depth, exact)
	case classList:
		return c.list(i, j, depth, exact)
	case classFun:
		return c.fun(i, j, depth, exact)
	}
	return c.leaf(x, i, j, exact)
}

// leaf compares terms of class x that have no parts.
func (c *comparer) leaf(x class, i, j int, exact bool) (r, ni, nj int, err error) {
	if ni, err = walk(c.a, i, 0, structure); err != nil {
		return 0, 0, 0, err
	}
	if nj, err = walk(c.b, j, 0, structure); err != nil {
		return 0, 0, 0, err
	}
	a, b := c.a[i:ni], c.b[j:nj]
	switch x {
	case classOpaque:
		r = bytes.Compare(a, b)
	case classNumber:
		r, err = compareNumbers(a, b, exact)
	case classAtom:
		r, err = compareAtoms(a, b)
	case classRef:
		r, err = compareRefs(a, b)
	case classPort:
		r, err = comparePorts(a, b)
	case classPid:
		r, err = comparePids(a, b)
	case classBits:
		r, err = compareBits(a, b)
	}
	return r, ni, nj, err
}

func unordered(off int) error {
	return &Error{off, "old fun or local term, which has no known order", ErrTag}
}

func (c *comparer) tuple(i, j, depth int, exact bool) (r, ni, nj int, err error) {
	ni, n, err := head(c.a, i)
	if err != nil {
		return 0, 0, 0, err
	}
	nj, m, err := head(c.b, j)
	if err != nil {
		return 0, 0, 0, err
	}
	if n != m {
		return cmp.Compare(n, m), 0, 0, nil
	}
	return c.terms(ni, nj, n, depth, exact)
}

// terms compares n terms in turn.
func (c *comparer) terms(i, j, n, depth int, exact bool) (r, ni, nj int, err error) {
	for range n {
		if r, i, j, err = c.term(i, j, depth+1, exact); r != 0 || err != nil {
			return r, 0, 0, err
		}
	}
	return 0, i, j, nil
}

// fun compares local funs, which come first, and exports.
func (c *comparer) fun(i, j, depth int, exact bool) (r, ni, nj int, err error) {
	if c.a[i] != c.b[j] {
		if c.a[i] == TagNewFun {
			return -1, 0, 0, nil
		}
		return 1, 0, 0, nil
	}
	if c.a[i] == TagExport {
		return c.export(i, j)
	}
	f, err := readFun(c.a, i)
	if err != nil {
		return 0, 0, 0, err
	}
	g, err := readFun(c.b, j)
	if err != nil {
		return 0, 0, 0, err
	}
	r = cmp.Or(bytes.Compare(f.module, g.module), cmp.Compare(f.index, g.index))
	if r == 0 && !c.duplicates {
		r = cmp.Compare(f.oldUniq, g.oldUniq)
	}
	if r = cmp.Or(r, cmp.Compare(f.free, g.free)); r != 0 {
		return r, 0, 0, nil
	}
	if r, _, _, err = c.terms(f.freeOff, g.freeOff, f.free, depth, exact); r != 0 || err != nil {
		return r, 0, 0, err
	}
	return 0, f.end, g.end, nil
}

func (c *comparer) export(i, j int) (r, ni, nj int, err error) {
	if ni, _, err = head(c.a, i); err != nil {
		return 0, 0, 0, err
	}
	if nj, _, err = head(c.b, j); err != nil {
		return 0, 0, 0, err
	}
	a, b := c.a[i+1:ni], c.b[j+1:nj]
	for range 2 {
		var x, y []byte
		if x, a, err = ReadAtom(a); err != nil {
			return 0, 0, 0, err
		}
		if y, b, err = ReadAtom(b); err != nil {
			return 0, 0, 0, err
		}
		if r = bytes.Compare(x, y); r != 0 {
			return r, 0, 0, nil
		}
	}
	return bytes.Compare(a, b), ni, nj, nil
}

// pair is where a map's key and value are.
type pair struct{ key, value int }

func (c *comparer) mapping(i, j, depth int, exact bool) (r, ni, nj int, err error) {
	_, n, err := head(c.a, i)
	if err != nil {
		return 0, 0, 0, err
	}
	_, m, err := head(c.b, j)
	if err != nil {
		return 0, 0, 0, err
	}
	if n != m {
		return cmp.Compare(n, m), 0, 0, nil
	}
	x, ni, err := c.sortedPairs(c.a, i, depth)
	if err != nil {
		return 0, 0, 0, err
	}
	y, nj, err := c.sortedPairs(c.b, j, depth)
	if err != nil {
		return 0, 0, 0, err
	}
	for k := range x {
		if r, _, _, err = c.term(x[k].key, y[k].key, depth+1, true); r != 0 || err != nil {
			return r, 0, 0, err
		}
	}
	for k := range x {
		if r, _, _, err = c.term(x[k].value, y[k].value, depth+1, exact); r != 0 || err != nil {
			return r, 0, 0, err
		}
	}
	return 0, ni, nj, nil
}

// sortedPairs returns the pairs of the map at off, ordered by key, and the
// offset after the map.
func (c *comparer) sortedPairs(b []byte, off, depth int) ([]pair, int, error) {
	next, n, err := head(b, off)
	if err != nil {
		return nil, 0, err
	}
	pairs, next, err := walkPairs(b, next, n/2, depth, structure)
	if err != nil {
		return nil, 0, err
	}
	if err := c.step(off, len(pairs)+(next-off)/4); err != nil {
		return nil, 0, err
	}
	keys := comparer{b, b, c.steps, c.duplicates}
	err = keys.sortPairs(pairs, depth)
	c.steps = keys.steps
	return pairs, next, err
}

// sortPairs orders pairs of c.a, which is c.b, by key, and refuses a key that
// comes twice.
func (c *comparer) sortPairs(pairs []pair, depth int) error {
	var err error
	slices.SortFunc(pairs, func(p, q pair) int {
		if err != nil || p == q {
			return 0
		}
		var r int
		if r, _, _, err = c.term(p.key, q.key, depth+1, true); r == 0 && err == nil {
			err = badValue(max(p.key, q.key), "key of a map that comes twice")
		}
		return r
	})
	return err
}

// walkPairs walks the n pairs of a map that has depth containers around it.
func walkPairs(b []byte, off, n, depth int, how strictness) ([]pair, int, error) {
	if n > 0 && depth >= MaxDepth {
		return nil, 0, tooDeep(off)
	}
	pairs := make([]pair, 0, min(n, 64))
	for range n {
		value, err := walk(b, off, depth+1, how)
		if err != nil {
			return nil, 0, err
		}
		pairs = append(pairs, pair{off, value})
		if off, err = walk(b, value, depth+1, how); err != nil {
			return nil, 0, err
		}
	}
	return pairs, off, nil
}

// checkKeys refuses a key that comes twice in pairs, which it reorders; the map
// they are in takes size bytes.
func checkKeys(b []byte, pairs []pair, size int) error {
	c := comparer{b, b, stepsFor(size), true}
	return c.sortPairs(pairs, 0)
}
