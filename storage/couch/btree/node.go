package btree

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"scanode/etf"
)

// A Row is a key and its value, each one encoded term without version byte. In an
// inner node the key is the last key of a child and the value the pointer to it.
type Row struct{ Key, Value []byte }

// size is how many bytes the row takes in a node: {Key, Value}.
func (r Row) size() int { return 2 + len(r.Key) + len(r.Value) }

// A node as read: a leaf, {kv_node, [{Key, Value}]}, or an inner node,
// {kp_node, [{LastKey, Pointer}]}. Nodes in the cache are shared and never change; those
// of an iterator are filled anew for each node it comes to.
//
// There is nothing in it that the garbage collector would have to look at, row by row.
type node struct {
	ptr    int64
	leaf   bool
	cached bool   // the cache has it: it must not be filled anew
	plain  []byte // version byte and term, in the form CouchDB writes
	// offs has, for each row, where key and value begin in plain, and one more where
	// a next key would. A key ends where its value begins, a value two bytes, those
	// of a tuple's head, before the next key.
	offs   []uint32
	chunk  int64  // bytes of the file the node takes
	held   *held  // of a node that is in memory only, else nil
	packed []byte // scratch for reading
}

// len returns the number of rows, which is never 0.
func (n *node) len() int { return len(n.offs) / 2 }

// key returns the i-th row's key.
func (n *node) key(i int) []byte {
	end := n.offs[2*i+1]
	return n.plain[n.offs[2*i]:end:end]
}

// value returns the i-th row's value.
func (n *node) value(i int) []byte {
	end := n.offs[2*i+2] - 2
	return n.plain[n.offs[2*i+1]:end:end]
}

// row returns the i-th row.
func (n *node) row(i int) Row { return Row{n.key(i), n.value(i)} }

// last returns the last row's key.
func (n *node) last() []byte { return n.key(n.len() - 1) }

// child returns an inner node's i-th pointer.
func (n *node) child(i int) Pointer {
	p, _ := ParsePointer(n.value(i)) // parse has read it before
	return p
}

// appendRows appends the rows from lo to hi to dst.
func (n *node) appendRows(dst []Row, lo, hi int) []Row {
	for i := lo; i < hi; i++ {
		dst = append(dst, n.row(i))
	}
	return dst
}

// has says whether the rows of n are those of list, term by term.
func (n *node) has(list []Row) bool {
	if n.len() != len(list) {
		return false
	}
	for i, r := range list {
		if !bytes.Equal(n.key(i), r.Key) || !bytes.Equal(n.value(i), r.Value) {
			return false
		}
	}
	return true
}

// nodeHead is how many bytes of a node are in front of its rows: version byte, tuple
// of two, atom of seven, list header.
const nodeHead = 1 + 2 + 10 + 5

// listSize is the size of a list of rows as a term of its own: version byte, header and
// tail around them. That is what CouchDB measures where it cuts lists into nodes.
const listSize = 1 + 5 + 1

// appendNode appends a node with version byte.
func appendNode(dst []byte, leaf bool, rows []Row) []byte {
	name := "kp_node"
	if leaf {
		name = "kv_node"
	}
	dst = append(dst, etf.Version, etf.TagSmallTuple, 2, etf.TagAtom, 0, 7)
	dst = append(dst, name...)
	dst = etf.AppendListHeader(dst, len(rows))
	for _, r := range rows {
		dst = append(dst, etf.TagSmallTuple, 2)
		dst = append(dst, r.Key...)
		dst = append(dst, r.Value...)
	}
	return append(dst, etf.TagNil)
}

// nodeSize is how many bytes appendNode appends.
func nodeSize(rows []Row) int {
	n := nodeHead + 1
	for _, r := range rows {
		n += r.size()
	}
	return n
}

// parse fills leaf and offs from plain and holds the node to the order of its keys. Two
// rows may have the same key: CouchDB stored both of a batch until 2025.
func (n *node) parse(order Order) error {
	canonical, err := n.index(order)
	if err != nil || canonical {
		return err
	}
	// Written by other means than CouchDB's of today. It gets the form that has, so that
	// what is written of it anew is measured and compared as CouchDB would.
	rows := make([]Row, n.len())
	for i := range rows {
		// Here a row's head may have more than two bytes.
		key := appendCanonical(nil, n.key(i))
		end, _ := scan(n.plain, int(n.offs[2*i+1]))
		rows[i] = Row{key, appendCanonical(nil, n.plain[n.offs[2*i+1]:end])}
	}
	n.plain = appendNode(nil, n.leaf, rows)
	_, err = n.index(order)
	return err
}

// index is parse for a node in the form CouchDB writes; otherwise canonical is false.
func (n *node) index(order Order) (canonical bool, err error) {
	b := n.plain
	list, canonical, err := n.head(b)
	if err != nil {
		return false, err
	}
	count, ok := 0, list < len(b) && b[list] == etf.TagList
	if ok {
		count, ok = length32(b, list)
	}
	if !ok || count == 0 {
		return false, fmt.Errorf("%w: no rows", ErrNode)
	}
	off := list + 5
	// A row has four bytes at least: what is claimed beyond that is not reserved.
	if count > (len(b)-off)/4 {
		return false, fmt.Errorf("%w: %d rows claimed, %d bytes left", ErrNode, count, len(b)-off)
	}
	if cap(n.offs) < 2*count+1 {
		n.offs = make([]uint32, 0, 2*count+1)
	}
	n.offs = n.offs[:0]
	var prev []byte
	for i := range count {
		head, ok := rowHead(b, off)
		if !ok {
			return false, fmt.Errorf("%w: row %d is no pair", ErrNode, i)
		}
		key := off + head
		value, same := scan(b, key)
		if value < 0 {
			return false, fmt.Errorf("%w: row %d has no key", ErrNode, i)
		}
		end, same2 := scan(b, value)
		if end < 0 {
			return false, fmt.Errorf("%w: row %d has no value", ErrNode, i)
		}
		canonical = canonical && same && same2 && head == 2
		n.offs = append(n.offs, uint32(key), uint32(value))
		if err := n.check(order, prev, b[key:value:value], b[value:end:end]); err != nil {
			return false, fmt.Errorf("%w: row %d", err, i)
		}
		prev, off = b[key:value:value], end
	}
	n.offs = append(n.offs, uint32(off+2))
	if len(b)-off != 1 || b[off] != etf.TagNil {
		return false, fmt.Errorf("%w: the list of rows does not end with the node", ErrNode)
	}
	return canonical, nil
}

// check holds a row to the key before it and, in an inner node, its value to being a
// pointer.
//
// A child lies before its parent, since nodes are written from the leaves up and never
// again: so pointers that are followed only get smaller, and no loop can be gone through.
// Last keys of children differ, and fits holds each child to what lies between two of
// them: so a node with more than one child is come to once, and going through a tree takes
// no longer than its nodes are large, whatever they say.
func (n *node) check(order Order, prev, key, value []byte) error {
	if prev != nil {
		c, err := order(prev, key)
		if err != nil {
			return err
		}
		if c > 0 || c == 0 && !n.leaf {
			return ErrOrder
		}
	}
	if n.leaf {
		return nil
	}
	p, err := ParsePointer(value)
	switch {
	case err != nil:
		return err
	case p.IsNil():
		return fmt.Errorf("%w: nil below the root", ErrPointer)
	case p.Ptr >= n.ptr:
		return fmt.Errorf("%w: to %d, which is not before the node", ErrPointer, p.Ptr)
	}
	return nil
}

// head reads what is in front of the list of rows and returns where that begins.
func (n *node) head(b []byte) (list int, canonical bool, err error) {
	const prefix = nodeHead - 5
	if len(b) > prefix && b[0] == etf.Version && b[1] == etf.TagSmallTuple && b[2] == 2 && b[3] == etf.TagAtom && b[4] == 0 && b[5] == 7 {
		n.leaf = string(b[6:prefix]) == "kv_node"
		if n.leaf || string(b[6:prefix]) == "kp_node" {
			return prefix, true, nil
		}
	}
	rest, err := etf.SkipVersion(b)
	if err != nil {
		return 0, false, fmt.Errorf("%w: %w", ErrNode, err)
	}
	arity, rest, err := etf.ReadTupleHeader(rest)
	if err != nil || arity != 2 {
		return 0, false, fmt.Errorf("%w: no pair of kind and rows", ErrNode)
	}
	name, rest, err := etf.ReadAtom(rest)
	if err != nil || string(name) != "kv_node" && string(name) != "kp_node" {
		return 0, false, fmt.Errorf("%w: neither kv_node nor kp_node", ErrNode)
	}
	n.leaf = string(name) == "kv_node"
	return len(b) - len(rest), false, nil
}

// rowHead returns the length of the header of a tuple of two at off.
func rowHead(b []byte, off int) (int, bool) {
	if len(b)-off >= 2 && b[off] == etf.TagSmallTuple && b[off+1] == 2 {
		return 2, true
	}
	if len(b)-off >= 5 && b[off] == etf.TagLargeTuple && binary.BigEndian.Uint32(b[off+1:]) == 2 {
		return 5, true
	}
	return 0, false
}

// firstGE returns the index of the first row whose key is not before key, the number of
// rows if there is none. It looks from lo on.
func (n *node) firstGE(order Order, lo int, key []byte) (int, error) {
	hi := n.len()
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		c, err := order(n.key(mid), key)
		if err != nil {
			return 0, err
		}
		if c < 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, nil
}
