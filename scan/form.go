package scan

import (
	"errors"
	"fmt"

	"scanode/etf"
	"scanode/filter"
	"scanode/msgpack"
)

// Kind is one way to send a row.
type Kind uint8

// The kinds of Form.
const (
	KV     Kind = iota // {Key, Value}, the value as it is stored
	Keys               // Key
	Terms              // [{Name, Cell}]
	Cells              // [Cell], without the names
	Select             // [Cell] of the columns named, in that order
)

// Form says what of a row is sent. Terms, Cells and Select read the stored riak
// object, whatever its encoding, and send its cells as Erlang terms; a deleted
// row is not sent.
type Form struct {
	Kind Kind
	// Columns are the names that Select sends. A column that a row does not
	// have, or that is NULL in it, is [].
	Columns []string
	// WithKeys sends {Key, Row} instead of Row, in Terms, Cells and Select.
	WithKeys bool
	// SkipForeign leaves out rows that hold what must not cross; without it
	// they are errors. See ErrForeign.
	SkipForeign bool
}

// ErrForeign says that a row holds a value that is not sent to another node:
// atoms other than true and false, pids, ports, references, funs, numbers that
// are not finite, MessagePack extensions.
var ErrForeign = errors.New("foreign content")

// former appends rows in one form to a batch.
type former struct {
	Form
	needsValue bool
	columns    map[string]int // of Select: name → position
	cells      [][]byte       // of Select: the encoded cells found, reused
}

func newForm(f Form) *former {
	w := &former{Form: f, needsValue: f.Kind != Keys}
	if f.Kind == Select {
		w.cells = make([][]byte, len(f.Columns))
		w.columns = make(map[string]int, len(f.Columns))
		for i, name := range f.Columns {
			w.columns[name] = i
		}
	}
	return w
}

// append adds a row to b. sent is false for a row that is left out, and then as
// with an error b is as before.
func (f *former) append(b *batch, key, value []byte) (sent bool, err error) {
	switch f.Kind {
	case KV:
		b.buf = etf.AppendTupleHeader(b.buf, 2)
		b.buf = etf.AppendBinary(b.buf, key)
		b.buf = etf.AppendBinary(b.buf, value)
		b.rows++
		return true, nil
	case Keys:
		b.buf = etf.AppendBinary(b.buf, key)
		b.rows++
		return true, nil
	}
	object, err := filter.ParseObject(value)
	if err != nil || object.Tombstone() {
		return false, err
	}
	buf := b.buf
	if f.WithKeys {
		buf = etf.AppendBinary(etf.AppendTupleHeader(buf, 2), key)
	}
	switch object.Encoding {
	case filter.EncodingETF:
		buf, err = f.appendETF(buf, object.Payload)
	case filter.EncodingMsgpack:
		buf, err = f.appendMsgpack(buf, object.Payload)
	default:
		return false, fmt.Errorf("value of encoding %d is no row", object.Encoding)
	}
	if err != nil {
		if f.SkipForeign && errors.Is(err, ErrForeign) {
			return false, nil
		}
		return false, err
	}
	b.buf = buf
	b.rows++
	return true, nil
}

// appendETF appends the row in an ETF payload: 131, 108 N, N × {Name, Cell}.
func (f *former) appendETF(dst, b []byte) ([]byte, error) {
	b, err := etf.SkipVersion(b)
	if err != nil {
		return nil, err
	}
	n, b, err := etf.ReadListHeader(b)
	if err != nil {
		return nil, fmt.Errorf("the row is not a list: %w", err)
	}
	dst = f.begin(dst, n)
	for i := range n {
		arity, rest, err := etf.ReadTupleHeader(b)
		if err != nil || arity != 2 {
			return nil, fmt.Errorf("element %d of the row is not {Name, Value}", i)
		}
		name, rest, err := etf.ReadBinary(rest)
		if err != nil {
			return nil, fmt.Errorf("name %d of the row: %w", i, err)
		}
		if b, err = etf.Skip(rest); err != nil {
			return nil, fmt.Errorf("field %q: %w", name, err)
		}
		cell := rest[:len(rest)-len(b)]
		if dst, err = f.add(dst, name, cell, appendETFCell); err != nil {
			return nil, fmt.Errorf("field %q: %w", name, err)
		}
	}
	return f.finish(dst, appendETFCell)
}

// appendMsgpack appends the row in a MessagePack payload: a map.
func (f *former) appendMsgpack(dst, b []byte) ([]byte, error) {
	n, b, err := msgpack.ReadMapHeader(b)
	if err != nil {
		return nil, fmt.Errorf("the row is not a map: %w", err)
	}
	dst = f.begin(dst, n)
	for i := range n {
		name, rest, err := msgpack.ReadStr(b)
		if err != nil {
			return nil, fmt.Errorf("name %d of the row: %w", i, err)
		}
		if b, err = msgpack.Skip(rest); err != nil {
			return nil, fmt.Errorf("field %q: %w", name, err)
		}
		cell := rest[:len(rest)-len(b)]
		if dst, err = f.add(dst, name, cell, appendMsgpackCell); err != nil {
			return nil, fmt.Errorf("field %q: %w", name, err)
		}
	}
	return f.finish(dst, appendMsgpackCell)
}

// begin starts a row of n fields.
func (f *former) begin(dst []byte, n int) []byte {
	if f.Kind == Select {
		clear(f.cells)
		return dst
	}
	return etf.AppendListHeader(dst, n)
}

// appendCell appends one encoded cell as a term.
type appendCell func(dst, cell []byte) ([]byte, error)

// add takes one field of the row.
func (f *former) add(dst, name, cell []byte, as appendCell) ([]byte, error) {
	switch f.Kind {
	case Select:
		// The first occurrence of a name counts, as in filters.
		if i, ok := f.columns[string(name)]; ok && f.cells[i] == nil {
			f.cells[i] = cell
		}
		return dst, nil
	case Terms:
		dst = etf.AppendBinary(etf.AppendTupleHeader(dst, 2), name)
	}
	return as(dst, cell)
}

// finish ends a row.
func (f *former) finish(dst []byte, as appendCell) ([]byte, error) {
	if f.Kind != Select {
		return etf.AppendNil(dst), nil
	}
	dst = etf.AppendListHeader(dst, len(f.Columns))
	for _, name := range f.Columns {
		cell := f.cells[f.columns[name]]
		if cell == nil {
			dst = etf.AppendNil(dst)
			continue
		}
		var err error
		if dst, err = as(dst, cell); err != nil {
			return nil, fmt.Errorf("field %q: %w", name, err)
		}
	}
	return etf.AppendNil(dst), nil
}
