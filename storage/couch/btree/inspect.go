package btree

import (
	"fmt"

	"scanode/etf"
	"scanode/storage/couch/file"
)

// A Node is a node as it lies in the file, for those who look at files and not at
// rows: terms are not brought into another form, and nothing is said of the order of
// keys or of where pointers lead. The zero Node is ready for use; its memory is used
// again by the next Read or Parse, and what Rows has is valid until then.
type Node struct {
	Leaf  bool
	Rows  []Row
	Size  int64 // bytes of the file its chunk takes, or would if it were whole; 0 after Parse
	Plain int   // bytes of it uncompressed, version byte included

	packed, plain []byte
}

// SkipTerm returns what follows the first term of b. It is etf.Skip without a limit of depth:
// terms in CouchDB's files are nested as deep as somebody wants them to be.
//
// Errors: ErrNode, when there is no whole term.
func SkipTerm(b []byte) (rest []byte, err error) {
	next, _ := scan(b, 0)
	if next < 0 {
		return nil, fmt.Errorf("%w: no whole term", ErrNode)
	}
	return b[next:], nil
}

// maxRows is the most rows a Node may have. Rows takes 48 bytes of memory for each, which
// may have four in the node, and a thousandth of that in the file. CouchDB's have some tens.
const maxRows = 1 << 20

// Read fills n with the node at ptr. maxBytes is the largest that is read,
// uncompressed.
//
// Errors: ErrNode, those of the file.
func (n *Node) Read(c Chunks, ptr int64, maxBytes int) error {
	packed, info, err := c.ReadChunk(n.packed[:0], ptr)
	n.packed, n.Size = packed[:0], info.Size
	if err != nil {
		return err
	}
	n.plain, err = file.Decompress(n.plain[:0], packed, maxBytes)
	if err != nil {
		return err
	}
	err = n.Parse(n.plain)
	n.Size = info.Size
	return err
}

// Parse fills n with the node that plain, a chunk's payload after decompression, is.
// Rows alias plain.
//
// Errors: ErrNode.
func (n *Node) Parse(plain []byte) error {
	n.Rows, n.Size, n.Plain = n.Rows[:0], 0, len(plain)
	b, err := etf.SkipVersion(plain)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNode, err)
	}
	head, ok := rowHead(b, 0)
	if !ok {
		return fmt.Errorf("%w: no pair of kind and rows", ErrNode)
	}
	kind, b, err := etf.ReadAtom(b[head:])
	if err != nil || string(kind) != "kv_node" && string(kind) != "kp_node" {
		return fmt.Errorf("%w: neither kv_node nor kp_node", ErrNode)
	}
	n.Leaf = string(kind) == "kv_node"
	count, b, err := etf.ReadListHeader(b)
	if err != nil || count == 0 {
		return fmt.Errorf("%w: no rows", ErrNode)
	}
	if count > maxRows {
		return fmt.Errorf("%w: %d rows, limit %d", ErrNode, count, maxRows)
	}
	for i := range count {
		head, ok := rowHead(b, 0)
		if !ok {
			return fmt.Errorf("%w: row %d is no pair", ErrNode, i)
		}
		b = b[head:]
		value, _ := scan(b, 0)
		if value < 0 {
			return fmt.Errorf("%w: row %d has no key", ErrNode, i)
		}
		end, _ := scan(b, value)
		if end < 0 {
			return fmt.Errorf("%w: row %d has no value", ErrNode, i)
		}
		n.Rows = append(n.Rows, Row{b[:value:value], b[value:end:end]})
		b = b[end:]
	}
	if len(b) != 1 || b[0] != etf.TagNil {
		return fmt.Errorf("%w: the list of rows does not end with the node", ErrNode)
	}
	return nil
}
