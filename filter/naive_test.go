package filter

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/big"
	"regexp"
	"strings"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"scanode/etf"
)

// This file is the second opinion: it decodes a row into Go values and evaluates
// the filter's term by recursion, slowly and with exact numbers. It shares no
// code with the package but etf's general decoder.

// naiveCell is a decoded value: nil for NULL, *big.Int, float64, bool, []byte,
// or naiveOther.
type naiveCell struct {
	value any
	raw   []byte
}

type naiveOther struct{}

// naiveBroken is a value no filter may name.
type naiveBroken struct{}

var errNaive = errors.New("broken")

// errNaiveTail: not all names are there, and the list does not end where it should.
// The row is whole but for that.
var errNaiveTail = errors.New("broken tail")

// naiveMatch is Match.
func naiveMatch(filter etf.Term, key, object []byte) (bool, error) {
	types := make(naiveTypes)
	types.collect(filter, make(map[string]string))
	r := bytes.NewReader(object)
	var head struct {
		Magic, Version byte
		VClock         uint32
	}
	if binary.Read(r, binary.BigEndian, &head) != nil || head.Magic != 53 || head.Version != 1 {
		return false, errNaive
	}
	var value struct {
		Siblings, Size uint32
		Encoding       byte
	}
	if _, err := io.CopyN(io.Discard, r, int64(head.VClock)); err != nil {
		return false, errNaive
	}
	if binary.Read(r, binary.BigEndian, &value) != nil || value.Siblings != 1 || value.Size == 0 || int64(value.Size)-1 > int64(r.Len()) {
		return false, errNaive
	}
	payload := object[len(object)-r.Len():][:value.Size-1]
	var row map[string]naiveCell
	var err error
	switch {
	case value.Encoding == 0:
		row, err = naiveETF(payload, types)
	case value.Encoding == 2:
		row, err = naiveMsgpack(payload, types)
	case value.Encoding == 1 && len(payload) == 0:
		return false, nil
	default:
		err = errNaive
	}
	if err != nil && err != errNaiveTail {
		return false, err
	}
	for name, ts := range types {
		for _, t := range ts {
			if _, err := naiveConvert(t, row[name]); err != nil {
				return false, err
			}
		}
	}
	return naiveEval(filter, key, row, make(map[string]string)) == naiveTrue, nil
}

// naiveTypes lists the types each field is declared under.
type naiveTypes map[string][]string

// collect walks filter left to right; seen is the type given to a name last.
func (t naiveTypes) collect(filter etf.Term, seen map[string]string) {
	tuple, ok := filter.(etf.Tuple)
	if !ok || len(tuple) == 0 {
		return
	}
	if tuple[0] == etf.Atom("field") {
		name := string(tuple[1].([]byte))
		if len(tuple) == 3 {
			seen[name] = string(tuple[2].(etf.Atom))
		}
		t[name] = append(t[name], seen[name])
		return
	}
	if tuple[0] != etf.Atom("const") {
		for _, part := range tuple[1:] {
			t.collect(part, seen)
		}
	}
}

// naiveETF decodes a row until all names of types are found.
func naiveETF(b []byte, types naiveTypes) (map[string]naiveCell, error) {
	row := make(map[string]naiveCell)
	if len(b) < 6 || b[0] != 131 || b[1] != 108 {
		return nil, errNaive
	}
	n, b := binary.BigEndian.Uint32(b[2:]), b[6:]
	for ; n > 0 && len(row) < len(types); n-- {
		arity, pair, err := etf.ReadTupleHeader(b)
		if err != nil || arity != 2 {
			return nil, errNaive
		}
		name, value, err := etf.ReadBinary(pair)
		if err != nil {
			return nil, errNaive
		}
		if b, err = etf.Skip(value); err != nil {
			return nil, errNaive
		}
		raw := value[:len(value)-len(b)]
		if _, dup := row[string(name)]; dup || types[string(name)] == nil {
			continue
		}
		v, err := naiveTerm(raw)
		if err != nil {
			return nil, err
		}
		row[string(name)] = naiveCell{v, raw}
	}
	if len(row) < len(types) && (len(b) == 0 || b[0] != 106) {
		return row, errNaiveTail
	}
	return row, nil
}

// naiveTerm decodes one term.
func naiveTerm(raw []byte) (any, error) {
	if raw[0] == 70 { // Decode refuses NaN and infinity
		return math.Float64frombits(binary.BigEndian.Uint64(raw[1:])), nil
	}
	t, _, err := etf.Decode(raw, etf.DefaultLimits)
	if err != nil {
		if raw[0] == 99 {
			return naiveBroken{}, nil
		}
		return naiveOther{}, nil
	}
	switch t := t.(type) {
	case int64:
		return big.NewInt(t), nil
	case *big.Int, float64, []byte:
		return t, nil
	case etf.Atom:
		if t == "true" || t == "false" {
			return t == "true", nil
		}
	case etf.List:
		if len(t) == 0 && raw[0] == 106 {
			return nil, nil
		}
	}
	return naiveOther{}, nil
}

// naiveMsgpack decodes a row until all names of types are found.
func naiveMsgpack(b []byte, types naiveTypes) (map[string]naiveCell, error) {
	row := make(map[string]naiveCell)
	d := msgpack.NewDecoder(bytes.NewReader(b))
	if c, err := d.PeekCode(); err != nil || !msgpcode.IsFixedMap(c) && c != msgpcode.Map16 && c != msgpcode.Map32 {
		return nil, errNaive
	}
	n, err := d.DecodeMapLen()
	if err != nil {
		return nil, errNaive
	}
	for ; n > 0 && len(row) < len(types); n-- {
		if c, err := d.PeekCode(); err != nil || !msgpcode.IsString(c) {
			return nil, errNaive
		}
		name, err := d.DecodeString()
		if err != nil {
			return nil, errNaive
		}
		raw, err := d.DecodeRaw()
		if err != nil {
			return nil, errNaive
		}
		if _, dup := row[name]; !dup && types[name] != nil {
			row[name] = naiveCell{naivePacked(raw), raw}
		}
	}
	return row, nil
}

// naivePacked decodes one MessagePack value.
func naivePacked(raw []byte) any {
	if raw[0] == 0x90 {
		return nil
	}
	var v any
	if err := msgpack.Unmarshal(raw, &v); err != nil {
		return naiveOther{}
	}
	switch v := v.(type) {
	case int8:
		return big.NewInt(int64(v))
	case int16:
		return big.NewInt(int64(v))
	case int32:
		return big.NewInt(int64(v))
	case int64:
		return big.NewInt(v)
	case uint8:
		return big.NewInt(int64(v))
	case uint16:
		return big.NewInt(int64(v))
	case uint32:
		return big.NewInt(int64(v))
	case uint64:
		return new(big.Int).SetUint64(v)
	case float32:
		return float64(v)
	case float64, bool:
		return v
	case string:
		return []byte(v)
	case []byte:
		return v
	}
	return naiveOther{}
}

// naiveConvert returns the value of a cell under a type: nil if there is none,
// *big.Int, float64, []byte, or naiveOther for a varchar that is no text.
func naiveConvert(typ string, c naiveCell) (any, error) {
	if c.value == nil {
		return nil, nil
	}
	if c.value == (any)(naiveBroken{}) {
		return nil, errNaive
	}
	switch typ {
	case "any":
		return c.raw, nil
	case "varchar":
		if b, ok := c.value.([]byte); ok {
			return b, nil
		}
		return naiveOther{}, nil
	case "double":
		switch v := c.value.(type) {
		case float64:
			return v, nil
		case *big.Int:
			if v.BitLen() > 64 {
				return nil, errNaive
			}
		}
		i, err := naiveInt(c.value)
		if err != nil {
			return nil, err
		}
		f, _ := new(big.Float).SetInt(i).Float64()
		return f, nil
	}
	i, err := naiveInt(c.value)
	if err != nil {
		return nil, err
	}
	low, high := big.NewInt(math.MinInt64), big.NewInt(math.MaxInt64)
	switch typ {
	case "timestamp":
		low, high = new(big.Int), new(big.Int).SetUint64(math.MaxUint64)
	case "boolean":
		low, high = new(big.Int), big.NewInt(1)
	}
	if i.Cmp(low) < 0 || i.Cmp(high) > 0 {
		return nil, errNaive
	}
	return i, nil
}

// naiveInt converts a number or boolean to an integer, exactly or not at all.
func naiveInt(v any) (*big.Int, error) {
	switch v := v.(type) {
	case *big.Int:
		return v, nil
	case bool:
		if v {
			return big.NewInt(1), nil
		}
		return new(big.Int), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, errNaive
		}
		i, acc := new(big.Float).SetFloat64(v).Int(nil)
		if acc != big.Exact {
			return nil, errNaive
		}
		return i, nil
	}
	return nil, errNaive
}

// naiveTruth is a value of three-valued logic. The order is that of truth: and_
// is the lesser, or_ the greater, not_ the mirror image.
type naiveTruth int

const (
	naiveFalse naiveTruth = iota - 1
	naiveUnknown
	naiveTrue
)

func naiveBool(b bool) naiveTruth {
	if b {
		return naiveTrue
	}
	return naiveFalse
}

// naiveEval evaluates a filter Parse has accepted.
func naiveEval(filter etf.Term, key []byte, row map[string]naiveCell, seen map[string]string) naiveTruth {
	tuple := filter.(etf.Tuple)
	op := naiveOp(tuple[0])
	switch op {
	case "and_", "and", "or_", "or":
		a, b := naiveEval(tuple[1], key, row, seen), naiveEval(tuple[2], key, row, seen)
		if op[0] == 'a' {
			return min(a, b)
		}
		return max(a, b)
	case "not_":
		return -naiveEval(tuple[1], key, row, seen)
	}
	typ := ""
	var side [3]any
	var null [3]bool // the operand is the constant []
	for i, o := range tuple[1:] {
		if o == etf.Term(etf.Atom("key")) {
			typ, side[i] = "varchar", key
			if key == nil {
				side[i] = []byte{}
			}
			continue
		}
		f, ok := o.(etf.Tuple)
		if !ok || f[0] != etf.Term(etf.Atom("field")) {
			continue
		}
		name := string(f[1].([]byte))
		if len(f) == 3 {
			seen[name] = string(f[2].(etf.Atom))
		}
		typ = seen[name]
		side[i], _ = naiveConvert(typ, row[name])
	}
	if op == "is_null" {
		return naiveBool(side[0] == nil)
	}
	if op == "in" { // a chain of or_
		truth := naiveFalse
		for _, k := range tuple[2].(etf.List) {
			one := naiveUnknown
			if side[0] != nil {
				one = naiveBool(naiveCompare("=", side[0], naiveConstant(typ, k.(etf.Tuple)[1])))
			}
			truth = max(truth, one)
		}
		return truth
	}
	for i, o := range tuple[1:] {
		if f, ok := o.(etf.Tuple); ok && f[0] == etf.Term(etf.Atom("const")) {
			if l, ok := f[1].(etf.List); ok && len(l) == 0 {
				null[i] = true
				continue
			}
			side[i] = naiveConstant(typ, f[1])
		}
	}
	if null[0] || null[1] {
		isNull := side[0] == nil && side[1] == nil
		return naiveBool(isNull == (op != "!="))
	}
	if side[0] == nil || side[1] == nil {
		return naiveUnknown
	}
	if op == "between" {
		return min(naiveBool(naiveCompare(">=", side[0], side[1])), naiveBool(naiveCompare("<=", side[0], side[2])))
	}
	return naiveBool(naiveCompare(op, side[0], side[1]))
}

func naiveOp(t etf.Term) string {
	if a, ok := t.(etf.Atom); ok {
		return string(a)
	}
	var s []byte
	for _, c := range t.(etf.List) {
		s = append(s, byte(c.(int64)))
	}
	return string(s)
}

// naiveConstant converts a constant for a field of the type; without a field on
// the other side it is a double.
func naiveConstant(typ string, t etf.Term) any {
	if b, ok := t.([]byte); ok {
		return b
	}
	c := naiveCell{value: t}
	switch v := t.(type) {
	case int64:
		c.value = big.NewInt(v)
	case etf.Atom:
		c.value = v == "true"
	}
	if typ == "double" || typ == "" {
		v, _ := naiveConvert("double", c)
		return v
	}
	i, _ := naiveInt(c.value)
	return i
}

func naiveCompare(op string, a, b any) bool {
	var less, equal bool
	switch x := a.(type) {
	case *big.Int:
		c := x.Cmp(b.(*big.Int))
		less, equal = c < 0, c == 0
	case float64:
		y := b.(float64)
		if math.IsNaN(x) || math.IsNaN(y) {
			return op == "!="
		}
		less, equal = x < y, x == y
	case []byte:
		y, ok := b.([]byte)
		if !ok {
			break
		}
		switch op {
		case "prefix":
			return strings.HasPrefix(string(x), string(y))
		case "match":
			return regexp.MustCompile(string(y)).FindStringIndex(string(x)) != nil
		}
		less, equal = string(x) < string(y), string(x) == string(y)
	}
	switch op {
	case "=", "==":
		return equal
	case "!=":
		return !equal
	case "<":
		return less
	case ">":
		return !less && !equal
	case "prefix", "match": // of what is no text
		return false
	case "<=", "=<":
		return less || equal
	}
	return !less
}
