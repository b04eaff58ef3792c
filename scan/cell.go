package scan

import (
	"encoding/binary"
	"fmt"
	"math"

	"scanode/etf"
	"scanode/etf/etftext"
	"scanode/msgpack"
)

// appendETFCell appends the cell of an ETF row, one well-formed term, if it may
// cross.
func appendETFCell(dst, cell []byte) ([]byte, error) {
	if plainETF(cell) == len(cell) {
		return append(dst, cell...), nil
	}
	if cell[0] == etf.TagNewFloat {
		return nil, fmt.Errorf("%w: a number that is not finite", ErrForeign)
	}
	if _, err := etf.Check(cell); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForeign, err)
	}
	if err := crosses(cell); err != nil {
		return nil, err
	}
	return append(dst, cell...), nil
}

// plainETF returns the size of the term that b begins with if it is of the kinds
// that most cells are, whole, and may cross; 0 says that it takes a closer look.
func plainETF(b []byte) int {
	if len(b) < 5 {
		switch {
		case len(b) >= 1 && b[0] == etf.TagNil:
			return 1
		case len(b) >= 2 && b[0] == etf.TagSmallInteger:
			return 2
		}
		return 0
	}
	var size uint64
	switch b[0] {
	case etf.TagSmallInteger:
		return 2
	case etf.TagNil:
		return 1
	case etf.TagInteger:
		return 5
	case etf.TagNewFloat:
		if len(b) < 9 || !finite(binary.BigEndian.Uint64(b[1:])) {
			return 0
		}
		return 9
	case etf.TagSmallBig:
		size = 3 + uint64(b[1])
	case etf.TagString:
		size = 3 + uint64(binary.BigEndian.Uint16(b[1:]))
	case etf.TagBinary:
		size = 5 + uint64(binary.BigEndian.Uint32(b[1:]))
	}
	if size > uint64(len(b)) {
		return 0
	}
	return int(size)
}

func finite(bits uint64) bool {
	const exponent = 0x7ff << 52
	return bits&exponent != exponent
}

// crosses looks for foreign content in a term that etf.Check accepts. In prefix
// order every term comes before its parts, so a count of the terms still to come
// is all there is to remember.
func crosses(b []byte) error {
	for left := 1; left > 0; left-- {
		parts, head := 0, 0
		switch tag := b[0]; tag {
		case etf.TagSmallTuple:
			parts, head = int(b[1]), 2
		case etf.TagLargeTuple:
			parts, head = int(binary.BigEndian.Uint32(b[1:])), 5
		case etf.TagList:
			parts, head = int(binary.BigEndian.Uint32(b[1:]))+1, 5
		case etf.TagMap:
			parts, head = 2*int(binary.BigEndian.Uint32(b[1:])), 5
		case etf.TagSmallInteger, etf.TagInteger, etf.TagSmallBig, etf.TagLargeBig, etf.TagNewFloat, etf.TagFloat,
			etf.TagNil, etf.TagString, etf.TagBinary, etf.TagBitBinary:
		case etf.TagAtom, etf.TagSmallAtom, etf.TagAtomUTF8, etf.TagSmallAtomUTF8:
			name, _, err := etf.ReadAtom(b)
			if err != nil {
				return err
			}
			if string(name) != "true" && string(name) != "false" {
				return fmt.Errorf("%w: the atom %s", ErrForeign, name)
			}
		default:
			return fmt.Errorf("%w: %s", ErrForeign, foreignKind(tag))
		}
		if head > 0 {
			b, left = b[head:], left+parts
			continue
		}
		rest, err := etf.Skip(b)
		if err != nil {
			return err
		}
		b = rest
	}
	return nil
}

// foreignKind names what a tag stands for.
func foreignKind(tag byte) string {
	switch tag {
	case etf.TagPid, etf.TagNewPid:
		return "a pid"
	case etf.TagPort, etf.TagNewPort, etf.TagV4Port:
		return "a port"
	case etf.TagReference, etf.TagNewReference, etf.TagNewerReference:
		return "a reference"
	case etf.TagFun, etf.TagNewFun, etf.TagExport:
		return "a fun"
	}
	return fmt.Sprintf("a term with tag %d", tag)
}

// show prints a name or a key as Erlang text of bounded length.
func show[T string | []byte](b T) string {
	return etftext.FormatBytes(etf.AppendBinary(nil, []byte(b)))
}

// appendMsgpackCell appends the cell of a MessagePack row, one well-formed value,
// as a term: nil and empty arrays are [], str and bin are binaries, a map is a
// list of pairs, as Riak TS reads them.
func appendMsgpackCell(dst, cell []byte) ([]byte, error) {
	if dst, _, plain := plainMsgpack(dst, cell); plain {
		return dst, nil
	}
	dst, _, err := appendMsgpackValue(dst, cell)
	return dst, err
}

// plainMsgpack appends the value that b begins with if it is of the kinds that
// most cells are; without ok it is to be looked at closer and nothing is appended.
func plainMsgpack(dst, b []byte) (out, rest []byte, ok bool) {
	const float64Lead, uint64Lead = 0xcb, 0xcf
	if len(b) == 0 {
		return dst, b, false
	}
	switch lead := b[0]; {
	case lead < 0x80: // an integer
		return append(dst, etf.TagSmallInteger, lead), b[1:], true
	case lead>>5 == 5: // a str of up to 31 bytes
		n := int(lead & 31)
		if n >= len(b) {
			return dst, b, false
		}
		dst = append(dst, etf.TagBinary, 0, 0, 0, byte(n))
		return append(dst, b[1:1+n]...), b[1+n:], true
	case len(b) < 9:
	case lead == float64Lead:
		if finite(binary.BigEndian.Uint64(b[1:])) {
			return append(append(dst, etf.TagNewFloat), b[1:9]...), b[9:], true
		}
	case lead == uint64Lead:
		return etf.AppendUint64(dst, binary.BigEndian.Uint64(b[1:])), b[9:], true
	}
	return dst, b, false
}

// appendMsgpackValue recurses as deep as msgpack.Skip allows.
func appendMsgpackValue(dst, b []byte) (out, rest []byte, err error) {
	switch msgpack.Kind(b) {
	case msgpack.Int:
		if v, rest, err := msgpack.ReadInt64(b); err == nil {
			return etf.AppendInt64(dst, v), rest, nil
		}
		v, rest, err := msgpack.ReadUint64(b)
		return etf.AppendUint64(dst, v), rest, err
	case msgpack.Float:
		v, rest, err := msgpack.ReadFloat64(b)
		if err == nil && !finite(math.Float64bits(v)) {
			err = fmt.Errorf("%w: a number that is not finite", ErrForeign)
		}
		return etf.AppendFloat64(dst, v), rest, err
	case msgpack.Str, msgpack.Bin:
		v, rest, err := msgpack.ReadBytes(b)
		return etf.AppendBinary(dst, v), rest, err
	case msgpack.Bool:
		v, rest, err := msgpack.ReadBool(b)
		if v {
			return etf.AppendAtom(dst, "true"), rest, err
		}
		return etf.AppendAtom(dst, "false"), rest, err
	case msgpack.Nil:
		rest, err := msgpack.ReadNil(b)
		return etf.AppendNil(dst), rest, err
	case msgpack.Array:
		n, rest, err := msgpack.ReadArrayHeader(b)
		return appendMsgpackList(dst, rest, n, 1, err)
	case msgpack.Map:
		n, rest, err := msgpack.ReadMapHeader(b)
		return appendMsgpackList(dst, rest, n, 2, err)
	}
	return dst, b, fmt.Errorf("%w: a MessagePack extension", ErrForeign)
}

// appendMsgpackList appends n elements of width values each; two become a pair.
func appendMsgpackList(dst, b []byte, n, width int, err error) (out, rest []byte, _ error) {
	if err != nil {
		return dst, b, err
	}
	dst = etf.AppendListHeader(dst, n)
	for range n {
		if width > 1 {
			dst = etf.AppendTupleHeader(dst, width)
		}
		for range width {
			if dst, b, err = appendMsgpackValue(dst, b); err != nil {
				return dst, b, err
			}
		}
	}
	return etf.AppendNil(dst), b, nil
}
