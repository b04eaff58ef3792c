package file

import (
	"errors"
	"fmt"
	"hash"

	"scanode/etf"
)

// walk reads a whole tree by the file's own methods, without any knowledge of
// trees but the shape of their nodes. It is an oracle for files, not for trees.
type walk struct {
	file *File
	hash hash.Hash // over the rows, each as a term of its own
	rows int
}

// root walks the tree whose root is the last element of the tuple header.
func (w *walk) root(header []byte) error {
	arity, b, err := etf.ReadTupleHeader(header[1:])
	for ; arity > 1 && err == nil; arity-- {
		b, err = etf.Skip(b)
	}
	if err != nil {
		return err
	}
	return w.pointer(b, 0)
}

// pointer walks the tree at nil or {Ptr, Reduction, Size}.
func (w *walk) pointer(b []byte, depth int) error {
	if name, _, err := etf.ReadAtom(b); err == nil && string(name) == "nil" {
		return nil
	}
	_, b, err := etf.ReadTupleHeader(b)
	if err != nil {
		return err
	}
	ptr, _, err := etf.ReadInt64(b)
	if err != nil {
		return err
	}
	if depth > 20 {
		return errors.New("too deep")
	}
	return w.node(ptr, depth)
}

func (w *walk) node(ptr int64, depth int) error {
	b, err := w.file.Read(nil, ptr)
	if err != nil {
		return err
	}
	if b, err = Decompress(nil, b, 1<<24); err != nil {
		return err
	}
	_, b, err = etf.ReadTupleHeader(b[1:])
	if err != nil {
		return err
	}
	kind, b, err := etf.ReadAtom(b)
	if err != nil {
		return err
	}
	n, b, err := etf.ReadListHeader(b)
	for ; n > 0 && err == nil; n-- {
		entry := b
		if b, err = etf.Skip(b); err != nil {
			break
		}
		entry = entry[:len(entry)-len(b)]
		switch string(kind) {
		case "kv_node":
			w.rows++
			w.hash.Write([]byte{etf.Version})
			w.hash.Write(entry)
		case "kp_node":
			var child []byte
			if _, child, err = etf.ReadTupleHeader(entry); err == nil {
				child, err = etf.Skip(child)
			}
			if err == nil {
				err = w.pointer(child, depth+1)
			}
		default:
			err = fmt.Errorf("node %q", kind)
		}
	}
	return err
}
