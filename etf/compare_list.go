package etf

import (
	"bytes"
	"cmp"
)

// listCursor walks a list that may be encoded in several pieces: a LIST_EXT
// whose tail is a LIST_EXT or a STRING_EXT is one list.
type listCursor struct {
	b      []byte
	off    int  // of the next element, or of the tail
	n      int  // elements left in this piece
	string bool // this piece is a STRING_EXT: elements are bytes, the tail is []
}

// open starts the piece at off, which classify has called a list.
func (l *listCursor) open(off int) error {
	next, n, err := head(l.b, off)
	if err != nil {
		return err
	}
	l.string = l.b[off] == TagString
	l.off, l.n = next, n-1
	if l.string {
		l.off, l.n = off+3, next-off-3
	}
	return nil
}

// more reports whether an element is next; if none is, tail is the class of
// what ends the list.
func (l *listCursor) more() (more bool, tail class, err error) {
	if l.n > 0 {
		return true, 0, nil
	}
	if l.string {
		return false, classNil, nil
	}
	tail, off, err := classify(l.b, l.off)
	if err != nil {
		return false, 0, err
	}
	l.off = off
	if tail == classList {
		return true, 0, l.open(off)
	}
	return false, tail, nil
}

// list compares lists element by element and then what is left of them.
func (c *comparer) list(i, j, depth int, exact bool) (r, ni, nj int, err error) {
	x, y := listCursor{b: c.a}, listCursor{b: c.b}
	if err := x.open(i); err != nil {
		return 0, 0, 0, err
	}
	if err := y.open(j); err != nil {
		return 0, 0, 0, err
	}
	for {
		more, xtail, err := x.more()
		if err != nil {
			return 0, 0, 0, err
		}
		ymore, ytail, err := y.more()
		if err != nil {
			return 0, 0, 0, err
		}
		switch {
		case more && ymore:
			if r, err = c.elements(&x, &y, depth, exact); r != 0 || err != nil {
				return r, 0, 0, err
			}
		case more || ymore:
			if more {
				xtail = classList
			} else {
				ytail = classList
			}
			if (xtail == classOpaque || ytail == classOpaque) && !c.duplicates {
				return 0, 0, 0, unordered(i)
			}
			return cmp.Compare(xtail, ytail), 0, 0, nil
		case x.string && y.string:
			return 0, x.off, y.off, nil
		case x.string || y.string:
			return c.nilTail(&x, &y, xtail, ytail)
		default:
			return c.term(x.off, y.off, depth+1, exact)
		}
	}
}

// nilTail compares the ends of lists one of which is a STRING_EXT, whose end has
// no bytes.
func (c *comparer) nilTail(x, y *listCursor, xtail, ytail class) (r, ni, nj int, err error) {
	if (xtail == classOpaque || ytail == classOpaque) && !c.duplicates {
		return 0, 0, 0, unordered(x.off)
	}
	if r = cmp.Compare(xtail, ytail); r != 0 {
		return r, 0, 0, nil
	}
	for _, l := range []*listCursor{x, y} {
		if !l.string {
			l.off++ // over the NIL_EXT
		}
	}
	return 0, x.off, y.off, nil
}

// elements compares the next elements: a run of bytes, or one each.
func (c *comparer) elements(x, y *listCursor, depth int, exact bool) (int, error) {
	switch {
	case x.string && y.string:
		n := min(x.n, y.n)
		r := bytes.Compare(x.b[x.off:x.off+n], y.b[y.off:y.off+n])
		x.take(x.off+n, n)
		y.take(y.off+n, n)
		return r, nil
	case x.string:
		r, next, err := c.byteElement(x, y, exact)
		y.take(next, 1)
		return r, err
	case y.string:
		r, next, err := c.byteElement(y, x, exact)
		x.take(next, 1)
		return -r, err
	}
	r, i, j, err := c.term(x.off, y.off, depth+1, exact)
	x.take(i, 1)
	y.take(j, 1)
	return r, err
}

func (l *listCursor) take(next, n int) { l.off, l.n = next, l.n-n }

// byteElement compares the next byte of the STRING_EXT s with the next element
// of l, and returns where that ends.
func (c *comparer) byteElement(s, l *listCursor, exact bool) (r, next int, err error) {
	v := s.b[s.off]
	s.take(s.off+1, 1)
	if err := c.step(l.off, 1); err != nil {
		return 0, 0, err
	}
	x, off, err := classify(l.b, l.off)
	if err != nil {
		return 0, 0, err
	}
	if x == classOpaque && !c.duplicates {
		return 0, 0, unordered(off)
	}
	if x != classNumber {
		return cmp.Compare(classNumber, x), 0, nil
	}
	next, _, err = head(l.b, off)
	if err != nil {
		return 0, 0, err
	}
	r, err = compareNumbers([]byte{TagSmallInteger, v}, l.b[off:next], exact)
	return r, next, err
}
