package scan

import (
	"encoding/binary"
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
	matcher    *filter.Matcher // of Select: has found the columns
}

func newForm(f Form, m *filter.Matcher) *former {
	return &former{Form: f, needsValue: f.Kind != Keys, matcher: m}
}

// append adds a row to b, which the matcher, where there is one, has let through.
// sent is false for a row that is left out, and then as
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
	buf := b.buf
	if f.WithKeys {
		buf = etf.AppendBinary(etf.AppendTupleHeader(buf, 2), key)
	}
	if f.Kind == Select {
		buf, err = f.appendColumns(buf)
	} else {
		object, perr := filter.ParseObject(value)
		if perr != nil || object.Tombstone() {
			return false, perr
		}
		switch object.Encoding {
		case filter.EncodingETF:
			buf, err = f.appendETF(buf, object.Payload)
		case filter.EncodingMsgpack:
			buf, err = f.appendMsgpack(buf, object.Payload)
		default:
			return false, fmt.Errorf("value of encoding %d is no row", object.Encoding)
		}
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

// appendColumns appends the list of the cells that the matcher found.
func (f *former) appendColumns(dst []byte) ([]byte, error) {
	dst = etf.AppendListHeader(dst, len(f.Columns))
	for i, name := range f.Columns {
		cell := f.matcher.Cell(i)
		var err error
		switch {
		case cell.Kind == filter.KindMissing:
			dst = etf.AppendNil(dst)
		case cell.Encoding == filter.EncodingETF:
			dst, err = appendETFCell(dst, cell.Bytes)
		default:
			dst, err = appendMsgpackCell(dst, cell.Bytes)
		}
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", show(name), err)
		}
	}
	return etf.AppendNil(dst), nil
}

// appendETF appends the row in an ETF payload: 131, 108 N, N × {Name, Cell}.
func (f *former) appendETF(dst, b []byte) ([]byte, error) {
	b, err := etf.SkipVersion(b)
	if err != nil {
		return nil, err
	}
	if len(b) > 0 && b[0] == etf.TagNil {
		return nil, errors.New("the row is [], which is none") // as filters have it
	}
	n, b, err := etf.ReadListHeader(b)
	if err != nil {
		return nil, fmt.Errorf("the row is not a list of fields: %w", err)
	}
	dst = etf.AppendListHeader(dst, n)
	for i := range n {
		name, rest, err := readField(b, i)
		if err != nil {
			return nil, err
		}
		if size := plainETF(rest); size > 0 {
			dst, b = append(f.appendName(dst, name), rest[:size]...), rest[size:]
			continue
		}
		if b, err = etf.Skip(rest); err != nil {
			return nil, fmt.Errorf("field %s: %w", show(name), err)
		}
		cell := rest[:len(rest)-len(b)]
		if dst, err = appendETFCell(f.appendName(dst, name), cell); err != nil {
			return nil, fmt.Errorf("field %s: %w", show(name), err)
		}
	}
	if n > 0 && (len(b) == 0 || b[0] != etf.TagNil) {
		return nil, errors.New("the list does not end behind the last field")
	}
	return etf.AppendNil(dst), nil
}

// readField reads the name of field i, the pair that b begins with; its value
// follows in rest.
func readField(b []byte, i int) (name, rest []byte, err error) {
	const head = 7 // 104 2 109 and the length of the name: most fields begin so
	if len(b) >= head && b[0] == etf.TagSmallTuple && b[1] == 2 && b[2] == etf.TagBinary {
		if n := uint64(binary.BigEndian.Uint32(b[3:])); n <= uint64(len(b)-head) {
			return b[head : head+n : head+n], b[head+n:], nil
		}
	}
	arity, rest, err := etf.ReadTupleHeader(b)
	if err != nil || arity != 2 {
		return nil, nil, fmt.Errorf("element %d of the row is not {Name, Value}", i+1)
	}
	if name, rest, err = etf.ReadBinary(rest); err != nil {
		return nil, nil, fmt.Errorf("name %d of the row: %w", i+1, err)
	}
	return name, rest, nil
}

// appendMsgpack appends the row in a MessagePack payload: a map.
func (f *former) appendMsgpack(dst, b []byte) ([]byte, error) {
	n, b, err := msgpack.ReadMapHeader(b)
	if err != nil {
		return nil, fmt.Errorf("the row is not a map: %w", err)
	}
	dst = etf.AppendListHeader(dst, n)
	for i := range n {
		name, rest, err := readName(b)
		if err != nil {
			return nil, fmt.Errorf("name %d of the row: %w", i+1, err)
		}
		dst = f.appendName(dst, name)
		var plain bool
		if dst, b, plain = plainMsgpack(dst, rest); plain {
			continue
		}
		if b, err = msgpack.Skip(rest); err != nil {
			return nil, fmt.Errorf("field %s: %w", show(name), err)
		}
		cell := rest[:len(rest)-len(b)]
		if dst, err = appendMsgpackCell(dst, cell); err != nil {
			return nil, fmt.Errorf("field %s: %w", show(name), err)
		}
	}
	return etf.AppendNil(dst), nil
}

// readName reads a str, mostly one of up to 31 bytes.
func readName(b []byte) (name, rest []byte, err error) {
	if len(b) > 0 && b[0]>>5 == 5 {
		if n := 1 + int(b[0]&31); n <= len(b) {
			return b[1:n:n], b[n:], nil
		}
	}
	return msgpack.ReadStr(b)
}

// appendName begins a field, in the form that has names.
func (f *former) appendName(dst, name []byte) []byte {
	if f.Kind == Terms {
		dst = etf.AppendBinary(etf.AppendTupleHeader(dst, 2), name)
	}
	return dst
}
