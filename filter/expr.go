package filter

import "regexp"

// Expr is a parsed and type-checked filter. It is immutable.
type Expr struct {
	root   *node
	fields []string
}

// Fields returns the names of the fields the filter reads, in the order of their
// first mention, each once. The slice is the caller's.
func (e *Expr) Fields() []string { return append([]string(nil), e.fields...) }

// node is one expression. A test has operands and no children, and_ and or_ have
// two children, not_ has left only, a test that does not depend on the row has
// neither operands nor children.
type node struct {
	op          operator
	left, right *node
	a, b        operand
	list        []operand      // constants of in
	pattern     *regexp.Regexp // of match
}

// operator is what stands first in an expression's tuple.
type operator uint8

const (
	opEq operator = iota
	opNe
	opLt
	opGt
	opLe
	opGe
	opAnd
	opOr
	opNot
	opNull // is_null, and a comparison with []
	opIn
	opBetween // parsed into two comparisons
	opPrefix
	opMatch
	// The rest is not written by users. A comparison of two constants is
	// decided when it is parsed; != [] asks for any value.
	opNotNull
	opTrue
	opFalse
)

// operators maps every spelling to its meaning. There is no 'not': eleveldb refuses
// it, and what it refuses by a recorded case is refused here.
var operators = map[string]operator{
	"=": opEq, "==": opEq, "!=": opNe,
	"<": opLt, ">": opGt, "<=": opLe, "=<": opLe, ">=": opGe,
	"and_": opAnd, "and": opAnd, "or_": opOr, "or": opOr, "not_": opNot,
	"is_null": opNull, "in": opIn, "between": opBetween, "prefix": opPrefix, "match": opMatch,
}

// arity returns how many elements follow op in its tuple.
func (op operator) arity() int {
	switch op {
	case opNot, opNull:
		return 1
	case opBetween:
		return 3
	}
	return 2
}

// mirror returns the operator that means the same with the operands exchanged.
func (op operator) mirror() operator {
	switch op {
	case opLt:
		return opGt
	case opGt:
		return opLt
	case opLe:
		return opGe
	case opGe:
		return opLe
	}
	return op
}

// ordered reports whether op needs an order and not only equality.
func (op operator) ordered() bool { return op >= opLt && op <= opGe }

// fieldType is the type a field is declared under.
type fieldType uint8

const (
	typeNone fieldType = iota // an operand that is no field
	typeVarchar
	typeSint64
	typeTimestamp
	typeDouble
	typeBoolean
	typeAny
	typeKey // of the operand key only
)

// fieldTypes maps the names of types.
var fieldTypes = map[string]fieldType{
	"varchar": typeVarchar, "sint64": typeSint64, "timestamp": typeTimestamp,
	"double": typeDouble, "boolean": typeBoolean, "any": typeAny,
}

func (t fieldType) String() string {
	switch t {
	case typeVarchar:
		return "varchar"
	case typeSint64:
		return "sint64"
	case typeTimestamp:
		return "timestamp"
	case typeDouble:
		return "double"
	case typeBoolean:
		return "boolean"
	case typeAny:
		return "any"
	case typeKey:
		return "key"
	}
	return "no type"
}

// bytes reports whether values of the type are compared byte by byte.
func (t fieldType) bytes() bool { return t == typeVarchar || t == typeAny || t == typeKey }

// ordered reports whether values of the type can be tested with < and its kin.
func (t fieldType) ordered() bool { return t != typeVarchar && t != typeAny && t != typeBoolean }

// operand is one side of a comparison: a field or the key if typ is set, else a
// constant, already converted to the type of what it is compared with.
type operand struct {
	typ  fieldType
	name string // of a field
	num  uint64 // constant: int64, uint64, bits of a float64, or 0 … 255
	text []byte // constant of varchar, any and the key
}
