package check

import (
	"errors"
	"fmt"

	"scanode/etf"
	"scanode/etf/etftext"
	"scanode/storage/couch/btree"
)

// errShape: a term is not what is expected at its place.
var errShape = errors.New("unexpected term")

func shape(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errShape, fmt.Sprintf(format, args...))
}

// skip is etf.Skip, and goes on where that finds a term nested too deep: three levels for
// each of a JSON object's are soon more than its limit.
func skip(b []byte) (rest []byte, err error) {
	if rest, err = etf.Skip(b); errors.Is(err, etf.ErrLimit) {
		return btree.SkipTerm(b)
	}
	return rest, err
}

// maxElements is the most elements of a tuple or list that elements returns.
const maxElements = 1 << 20

// tuple returns the elements of the tuple that is term, which must have between
// least and most of them. They alias term.
func tuple(term []byte, least, most int) ([][]byte, error) {
	n, rest, err := etf.ReadTupleHeader(term)
	if err != nil {
		return nil, err
	}
	if n < least || n > most {
		return nil, shape("a tuple of %d", n)
	}
	return elements(rest, n)
}

// list returns the elements of the proper list that is term.
func list(term []byte) ([][]byte, error) {
	if len(term) > 0 && term[0] == etf.TagString {
		return nil, shape("a list of bytes")
	}
	n, rest, err := etf.ReadListHeader(term)
	if err != nil || n == 0 {
		return nil, err
	}
	if n > maxElements {
		return nil, shape("a list of %d", n)
	}
	return elements(rest, n)
}

func elements(b []byte, n int) ([][]byte, error) {
	var out [][]byte
	for range n {
		rest, err := skip(b)
		if err != nil {
			return nil, err
		}
		out = append(out, b[:len(b)-len(rest):len(b)-len(rest)])
		b = rest
	}
	return out, nil
}

// isAtom says whether term is the atom name.
func isAtom(term []byte, name string) bool {
	a, _, err := etf.ReadAtom(term)
	return err == nil && string(a) == name
}

// integer returns the integer that is term.
func integer(term []byte) (int64, error) {
	n, _, err := etf.ReadInt64(term)
	return n, err
}

// text is term for people, bounded.
func text(b []byte) string { return etftext.FormatBytes(b) }
