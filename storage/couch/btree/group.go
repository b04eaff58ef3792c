package btree

import (
	"bytes"
	"fmt"

	"scanode/etf"
)

// A Group says whether two keys of a reduce query belong to one group. a is the first
// key met in the group. Keys that belong together are neighbours in the tree's order.
type Group func(a, b []byte) (bool, error)

// GroupAll makes one group of all rows.
func GroupAll(_, _ []byte) (bool, error) { return true, nil }

// GroupExact makes a group of the rows of a view that have the same key. Keys of the tree
// are {Key, DocId}; order is that of the tree.
func GroupExact(order Order) Group {
	return func(a, b []byte) (bool, error) {
		x, err := viewKey(a)
		if err != nil {
			return false, err
		}
		y, err := viewKey(b)
		if err != nil {
			return false, err
		}
		return equalKeys(order, x, y)
	}
}

// GroupLevel makes a group of the rows of a view whose keys are lists that have their
// first level elements in common; other keys are as for GroupExact. Level 0 is
// GroupAll. Keys of the tree are {Key, DocId} or, in partitioned databases,
// {{p, Partition, Key}, DocId}.
func GroupLevel(level int, order Order) Group {
	if level <= 0 {
		return GroupAll
	}
	return func(a, b []byte) (bool, error) {
		x, err := viewKey(a)
		if err != nil {
			return false, err
		}
		y, err := viewKey(b)
		if err != nil {
			return false, err
		}
		x, y = withoutPartition(x), withoutPartition(y)
		if !isList(x) || !isList(y) {
			return equalKeys(order, x, y)
		}
		return equalKeys(order, firstElements(x, level), firstElements(y, level))
	}
}

// equalKeys compares keys of rows without their document ids, by means of an order that
// knows pairs of both.
func equalKeys(order Order, a, b []byte) (bool, error) {
	if bytes.Equal(a, b) {
		return true, nil
	}
	c, err := order(pairWith(nil, a), pairWith(nil, b))
	return c == 0, err
}

// pairWith appends {key, <<>>}.
func pairWith(dst, key []byte) []byte {
	dst = etf.AppendTupleHeader(dst, 2)
	return etf.AppendBinary(append(dst, key...), nil)
}

// viewKey returns Key of {Key, DocId}.
func viewKey(pair []byte) ([]byte, error) {
	arity, b, err := etf.ReadTupleHeader(pair)
	if err != nil || arity != 2 {
		return nil, fmt.Errorf("%w: no pair of key and document id", ErrKey)
	}
	n, _ := scan(b, 0)
	if n < 0 {
		return nil, fmt.Errorf("%w: no pair of key and document id", ErrKey)
	}
	return b[:n:n], nil
}

// withoutPartition returns Key of {p, Partition, Key}, and other keys as they are.
func withoutPartition(key []byte) []byte {
	arity, b, err := etf.ReadTupleHeader(key)
	if err != nil || arity != 3 {
		return key
	}
	name, b, err := etf.ReadAtom(b)
	if err != nil || string(name) != "p" {
		return key
	}
	n, _ := scan(b, 0)
	if n < 0 {
		return key
	}
	return b[n:]
}

func isList(term []byte) bool {
	return len(term) > 0 && (term[0] == etf.TagList || term[0] == etf.TagString || term[0] == etf.TagNil)
}

// firstElements returns the list of the first n elements of a list, or the list if it
// has no more.
func firstElements(list []byte, n int) []byte {
	switch list[0] {
	case etf.TagString:
		if len(list)-3 <= n {
			return list
		}
		return append([]byte{etf.TagString, byte(n >> 8), byte(n)}, list[3:3+n]...)
	case etf.TagList:
		count, rest, err := etf.ReadListHeader(list)
		if err != nil || count <= n {
			return list
		}
		off := len(list) - len(rest)
		for range n {
			if off, _ = scan(list, off); off < 0 {
				return list
			}
		}
		cut := etf.AppendListHeader(nil, n)
		return etf.AppendNil(append(cut, list[len(list)-len(rest):off]...))
	}
	return list
}
