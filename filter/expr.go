package filter

// Expr is a parsed and type-checked filter. It is immutable.
type Expr struct {
	root   *node
	fields []string
}

// Fields returns the names of the fields the filter reads, in the order of their
// first mention, each once. The slice is the caller's.
func (e *Expr) Fields() []string { return append([]string(nil), e.fields...) }

// node is one expression. A comparison has operands and no children, and_ and
// or_ have children and no operands, a test that does not depend on the row has
// neither.
type node struct {
	op          operator
	left, right *node
	a, b        operand
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
	// The rest is not written by users. A comparison of two constants is
	// decided when it is parsed; a comparison with [] asks for NULL.
	opTrue
	opFalse
	opNull
	opNotNull
)

// operators maps every spelling to its meaning.
var operators = map[string]operator{
	"=": opEq, "==": opEq, "!=": opNe,
	"<": opLt, ">": opGt, "<=": opLe, "=<": opLe, ">=": opGe,
	"and_": opAnd, "and": opAnd, "or_": opOr, "or": opOr,
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
	}
	return "no type"
}

// bytes reports whether values of the type are compared byte by byte.
func (t fieldType) bytes() bool { return t == typeVarchar || t == typeAny }

// operand is one side of a comparison: a field if typ is set, else a constant,
// already converted to the type of the field it is compared with.
type operand struct {
	typ  fieldType
	name string // of a field
	num  uint64 // constant: int64, uint64, bits of a float64, or 0 … 255
	text []byte // constant of varchar and any
}
