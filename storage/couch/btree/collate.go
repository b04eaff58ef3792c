package btree

import (
	"bytes"
	"cmp"
	"fmt"
	"sync"

	"golang.org/x/text/collate"
	"golang.org/x/text/language"

	"scanode/etf"
)

// ViewOrder returns the order of CouchDB's views. Keys of the tree are {Key, DocId}. Keys
// compare as JSON values, and when they are equal, DocIds as bytes. JSON values are encoded
// as CouchDB does, objects as {[{Name, Value}]}, and are ordered
//
//	null < false < true < numbers < strings < arrays < objects
//
// Numbers compare by value; arrays and objects element by element in the order they are
// stored in, the shorter one first when it is the beginning of the longer. In partitioned
// databases Key is {p, Partition, Key}: partitions compare as bytes. Strings compare by
// the root collation of the Unicode collation algorithm, three levels of it, and the
// string FF FF FF FF, which is none in UTF-8, comes after all others.
//
// Differs from ICU, which CouchDB uses: the collation's data are those of x/text, which
// are CLDR 23's (Unicode 6.2), and a CouchDB has any later ones. 20,000 random pairs of
// strings of each of ASCII, Latin 1, Latin Extended, Thai, kana and Hangul compare as ICU
// 72 does it. Signs, letters and emoji that came into Unicode since do not, nor do a few
// that were moved: of pairs of random emoji 13 in 100, of Cyrillic 3, Arabic and Hebrew
// 2.5, Greek 0.9, Devanagari 0.8, Chinese 0.1, nearly all for letters that nobody writes.
// Strings that are not UTF-8 compare differently as well. Where a tree was written with such
// keys the other way round, reading gives ErrOrder: it has to be built anew, as CouchDB
// does after a change of ICU.
//
// Errors: ErrKey, those of [etf.Compare].
func ViewOrder() Order { return newViewOrder().compare }

// viewOrder is ViewOrder with what it needs.
type viewOrder struct {
	ascii     *asciiOrder
	collators sync.Pool // of *collate.Collator, which only one goroutine may use at a time
}

func newViewOrder() *viewOrder {
	return &viewOrder{ascii: newASCIIOrder(), collators: sync.Pool{New: func() any { return collate.New(language.Und) }}}
}

func (o *viewOrder) compare(a, b []byte) (int, error) {
	x, idA, err := splitPair(a)
	if err != nil {
		return 0, err
	}
	y, idB, err := splitPair(b)
	if err != nil {
		return 0, err
	}
	if !bytes.Equal(x, y) {
		c, _, _, err := o.json(x, y, 0)
		if c != 0 || err != nil {
			return c, err
		}
	}
	return TermOrder(idA, idB)
}

// splitPair returns the elements of a tuple of two, one behind the other in pair.
func splitPair(pair []byte) (first, second []byte, err error) {
	if n, ok := rowHead(pair, 0); ok {
		if next, _ := scan(pair, n); next >= 0 {
			return pair[n:next:next], pair[next:], nil
		}
	}
	return nil, nil, fmt.Errorf("%w: no pair of key and document id", ErrKey)
}

// kind is a place in the order of JSON values.
type kind uint8

const (
	kindNull kind = iota
	kindFalse
	kindTrue
	kindNumber
	kindString
	kindArray
	kindObject
	kindPartitioned // {p, Partition, Key}
)

// kindOf returns the kind of the value at the beginning of b.
func kindOf(b []byte) (kind, error) {
	if len(b) == 0 {
		return 0, fmt.Errorf("%w: no JSON value", ErrKey)
	}
	switch b[0] {
	case etf.TagSmallInteger, etf.TagInteger, etf.TagNewFloat, etf.TagFloat, etf.TagSmallBig, etf.TagLargeBig:
		return kindNumber, nil
	case etf.TagBinary:
		return kindString, nil
	case etf.TagNil, etf.TagList, etf.TagString:
		return kindArray, nil
	case etf.TagSmallTuple:
		if len(b) > 2 && b[1] == 1 && (b[2] == etf.TagNil || b[2] == etf.TagList) {
			return kindObject, nil
		}
		if len(b) > 2 && b[1] == 3 {
			if name, _, err := etf.ReadAtom(b[2:]); err == nil && string(name) == "p" {
				return kindPartitioned, nil
			}
		}
	}
	if name, _, err := etf.ReadAtom(b); err == nil {
		switch string(name) {
		case "null":
			return kindNull, nil
		case "false":
			return kindFalse, nil
		case "true":
			return kindTrue, nil
		}
	}
	return 0, fmt.Errorf("%w: no JSON value", ErrKey)
}

// json compares the values at the beginnings of a and b. When they are equal it returns
// what follows them.
func (o *viewOrder) json(a, b []byte, depth int) (c int, restA, restB []byte, err error) {
	if depth > etf.MaxDepth {
		return 0, nil, nil, fmt.Errorf("%w: nested too deep: %w", ErrKey, etf.ErrLimit)
	}
	x, err := kindOf(a)
	if err != nil {
		return 0, nil, nil, err
	}
	y, err := kindOf(b)
	if err != nil {
		return 0, nil, nil, err
	}
	if x != y {
		return cmp.Compare(x, y), nil, nil, nil
	}
	switch x {
	case kindArray:
		return o.array(a, b, depth)
	case kindObject:
		return o.object(a[2:], b[2:], depth)
	case kindPartitioned:
		return o.partitioned(a[2:], b[2:], depth)
	}
	na, _ := scan(a, 0)
	nb, _ := scan(b, 0)
	if na < 0 || nb < 0 {
		return 0, nil, nil, fmt.Errorf("%w: no whole value", ErrKey)
	}
	switch x {
	case kindNumber:
		c, err = TermOrder(a[:na], b[:nb])
	case kindString:
		c = o.strings(a[5:na], b[5:nb])
	}
	return c, a[na:], b[nb:], err
}

// elements reads the head of a list; STRING_EXT, a list of small integers, it
// returns spelt out.
func elements(b []byte) (n int, rest []byte, err error) {
	if len(b) > 0 && b[0] == etf.TagString {
		next, _ := scan(b, 0)
		if next < 0 {
			return 0, nil, fmt.Errorf("%w: no whole list", ErrKey)
		}
		n = next - 3
		out := make([]byte, 0, 2*n+1+len(b)-next)
		for _, v := range b[3:next] {
			out = append(out, etf.TagSmallInteger, v)
		}
		return n, append(etf.AppendNil(out), b[next:]...), nil
	}
	n, rest, err = etf.ReadListHeader(b)
	if err == nil && n == 0 {
		// The tail was read with it: put it back, so that all lists end alike.
		return 0, b[len(b)-len(rest)-1:], nil
	}
	return n, rest, err
}

// endOfList drops the tail of a list.
func endOfList(b []byte) ([]byte, error) {
	if len(b) == 0 || b[0] != etf.TagNil {
		return nil, fmt.Errorf("%w: improper list", ErrKey)
	}
	return b[1:], nil
}

// array compares two lists.
func (o *viewOrder) array(a, b []byte, depth int) (c int, restA, restB []byte, err error) {
	return o.sequence(a, b, func(a, b []byte) (int, []byte, []byte, error) {
		return o.json(a, b, depth+1)
	})
}

// object compares two lists of pairs of name and value.
func (o *viewOrder) object(a, b []byte, depth int) (c int, restA, restB []byte, err error) {
	return o.sequence(a, b, func(a, b []byte) (int, []byte, []byte, error) {
		x, a, err := readName(a)
		if err != nil {
			return 0, nil, nil, err
		}
		y, b, err := readName(b)
		if err != nil {
			return 0, nil, nil, err
		}
		if c := o.strings(x, y); c != 0 {
			return c, nil, nil, nil
		}
		return o.json(a, b, depth+1)
	})
}

// readName reads the head of a pair and its first element, a string.
func readName(b []byte) (name, rest []byte, err error) {
	n, ok := rowHead(b, 0)
	if !ok {
		return nil, nil, fmt.Errorf("%w: no member of an object", ErrKey)
	}
	name, rest, err = etf.ReadBinary(b[n:])
	if err != nil {
		return nil, nil, fmt.Errorf("%w: no name of a member", ErrKey)
	}
	return name, rest, nil
}

// sequence compares two lists by their elements.
func (o *viewOrder) sequence(a, b []byte, element func(a, b []byte) (int, []byte, []byte, error)) (c int, restA, restB []byte, err error) {
	x, a, err := elements(a)
	if err != nil {
		return 0, nil, nil, err
	}
	y, b, err := elements(b)
	if err != nil {
		return 0, nil, nil, err
	}
	for range min(x, y) {
		if c, a, b, err = element(a, b); c != 0 || err != nil {
			return c, nil, nil, err
		}
	}
	if x != y {
		return cmp.Compare(x, y), nil, nil, nil
	}
	if a, err = endOfList(a); err != nil {
		return 0, nil, nil, err
	}
	b, err = endOfList(b)
	return 0, a, b, err
}

// partitioned compares what follows the head of two tuples {p, Partition, Key}.
func (o *viewOrder) partitioned(a, b []byte, depth int) (c int, restA, restB []byte, err error) {
	var x, y []byte
	if _, a, err = etf.ReadAtom(a); err == nil {
		x, a, err = etf.ReadBinary(a)
	}
	if err != nil {
		return 0, nil, nil, fmt.Errorf("%w: no partition", ErrKey)
	}
	if _, b, err = etf.ReadAtom(b); err == nil {
		y, b, err = etf.ReadBinary(b)
	}
	if err != nil {
		return 0, nil, nil, fmt.Errorf("%w: no partition", ErrKey)
	}
	if c := bytes.Compare(x, y); c != 0 {
		return c, nil, nil, nil
	}
	return o.json(a, b, depth+1)
}

// greatest sorts after every other string: clients of CouchDB end ranges with it.
var greatest = []byte{0xff, 0xff, 0xff, 0xff}

// strings compares two strings by the root collation.
func (o *viewOrder) strings(a, b []byte) int {
	if bytes.Equal(a, b) {
		return 0
	}
	x, y := bytes.Equal(a, greatest), bytes.Equal(b, greatest)
	if x || y {
		if x {
			return 1
		}
		return -1
	}
	if c, ok := o.ascii.compare(a, b); ok {
		return c
	}
	c := o.collators.Get().(*collate.Collator)
	defer o.collators.Put(c)
	return c.Compare(a, b)
}
