package btree

import (
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
// {kp_node, [{LastKey, Pointer}]}. Rows alias plain. Nodes in the cache are shared
// and never change; those of an iterator are filled anew for each node it comes to.
type node struct {
	ptr       int64
	leaf      bool
	canonical bool // every term has the form CouchDB writes
	rows      []Row
	children  []Pointer // of an inner node, parsed; reductions alias plain
	plain     []byte    // version byte and term
	packed    []byte    // scratch for reading: what plain was before
	chunk     int64     // bytes of the file the node takes
	cached    bool      // the cache holds it: it must not be filled anew
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

// parse fills leaf, rows and canonical from plain and holds the node to the order of its
// keys. Two rows may have the same key: CouchDB stored both of a batch until 2025.
func (n *node) parse(order Order) error {
	b := n.plain
	n.children = n.children[:0]
	list, err := n.head(b)
	if err != nil {
		return err
	}
	count, ok := 0, list < len(b) && b[list] == etf.TagList
	if ok {
		count, ok = length32(b, list)
	}
	if !ok || count == 0 {
		return fmt.Errorf("%w: no rows", ErrNode)
	}
	off := list + 5
	// A row has four bytes at least: what is claimed beyond that is not reserved.
	if most := (len(b) - off) / 4; count > most {
		return fmt.Errorf("%w: %d rows claimed, %d bytes left", ErrNode, count, len(b)-off)
	}
	if cap(n.rows) < count {
		n.rows = make([]Row, 0, count)
	}
	n.rows = n.rows[:0]
	for i := range count {
		head, ok := rowHead(b, off)
		if !ok {
			return fmt.Errorf("%w: row %d is no pair", ErrNode, i)
		}
		key := off + head
		value, same := scan(b, key)
		if value < 0 {
			return fmt.Errorf("%w: row %d has no key", ErrNode, i)
		}
		next, same2 := scan(b, value)
		if next < 0 {
			return fmt.Errorf("%w: row %d has no value", ErrNode, i)
		}
		n.canonical = n.canonical && same && same2 && head == 2
		r := Row{b[key:value:value], b[value:next:next]}
		if i > 0 {
			c, err := order(n.rows[i-1].Key, r.Key)
			if err != nil {
				return fmt.Errorf("row %d: %w", i, err)
			}
			if c > 0 {
				return fmt.Errorf("%w: row %d", ErrOrder, i)
			}
		}
		n.rows = append(n.rows, r)
		if !n.leaf {
			if err := n.addChild(r.Value); err != nil {
				return fmt.Errorf("row %d: %w", i, err)
			}
		}
		off = next
	}
	if len(b)-off != 1 || b[off] != etf.TagNil {
		return fmt.Errorf("%w: the list of rows does not end with the node", ErrNode)
	}
	return nil
}

// addChild reads the pointer to a child. A child lies before its parent, since nodes are
// written from the leaves up and never again: so pointers that are followed only get
// smaller, and no loop can be gone through.
func (n *node) addChild(value []byte) error {
	p, err := ParsePointer(value)
	if err != nil {
		return err
	}
	if p.IsNil() {
		return fmt.Errorf("%w: nil below the root", ErrPointer)
	}
	if p.Ptr >= n.ptr {
		return fmt.Errorf("%w: to %d, which is not before the node", ErrPointer, p.Ptr)
	}
	n.children = append(n.children, p)
	return nil
}

// head reads what is in front of the list of rows and returns where that begins.
func (n *node) head(b []byte) (int, error) {
	n.canonical = true
	const prefix = nodeHead - 5
	if len(b) > prefix && b[1] == etf.TagSmallTuple && b[2] == 2 && b[3] == etf.TagAtom && b[4] == 0 && b[5] == 7 {
		switch string(b[6:prefix]) {
		case "kv_node":
			n.leaf = true
			return prefix, nil
		case "kp_node":
			n.leaf = false
			return prefix, nil
		}
	}
	rest, err := etf.SkipVersion(b)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrNode, err)
	}
	n.canonical = false
	arity, rest, err := etf.ReadTupleHeader(rest)
	if err != nil || arity != 2 {
		return 0, fmt.Errorf("%w: no pair of kind and rows", ErrNode)
	}
	name, rest, err := etf.ReadAtom(rest)
	if err != nil || string(name) != "kv_node" && string(name) != "kp_node" {
		return 0, fmt.Errorf("%w: neither kv_node nor kp_node", ErrNode)
	}
	n.leaf = string(name) == "kv_node"
	return len(b) - len(rest), nil
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

// canonicalize gives a node written by other means the form CouchDB writes, so that
// what is written of it anew is measured and compared as CouchDB would.
func (n *node) canonicalize(order Order) (*node, error) {
	rows := make([]Row, len(n.rows))
	for i, r := range n.rows {
		rows[i] = Row{appendCanonical(nil, r.Key), appendCanonical(nil, r.Value)}
	}
	c := &node{ptr: n.ptr, plain: appendNode(nil, n.leaf, rows), chunk: n.chunk}
	if err := c.parse(order); err != nil {
		return nil, err
	}
	return c, nil
}

// firstGE returns the index of the first row whose key is not before key, len(rows) if
// there is none. It looks from lo on.
func firstGE(order Order, rows []Row, lo int, key []byte) (int, error) {
	hi := len(rows)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		c, err := order(rows[mid].Key, key)
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
