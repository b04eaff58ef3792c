package filter

import (
	"fmt"
	"strconv"

	"scanode/etf"
)

// Bounds of a filter. Deeper or longer ones are refused, so that neither the
// parser's recursion nor the size of a program depends on the sender's mood.
const (
	maxDepth       = 250   // a request of 256 levels holds as much
	maxComparisons = 4096  // between counts as two, in as one
	maxListed      = 65536 // constants in the lists of in, all together
)

// Parse checks a filter term and returns what it means. The error is a *Error.
// Nothing of t is kept.
func Parse(t etf.Term) (*Expr, error) {
	p := parser{types: make(map[string]fieldType)}
	root, err := p.expr(t, "", 1)
	if err != nil {
		return nil, err
	}
	return &Expr{root: root, fields: p.fields}, nil
}

// parser carries what a filter says from left to right.
type parser struct {
	// types holds the type each field was last given; a field without a type
	// takes it over.
	types       map[string]fieldType
	fields      []string
	comparisons int
	listed      int // constants in lists
	steps       int // instructions of regular expressions
}

// expr parses one expression; path leads to t, depth counts from 1.
func (p *parser) expr(t etf.Term, path string, depth int) (*node, *Error) {
	tuple, ok := t.(etf.Tuple)
	if !ok {
		return nil, &Error{Path: path, Msg: "not an expression, which is a tuple {Operator, A, B}: " + show(t)}
	}
	if depth > maxDepth {
		return nil, &Error{Path: path, Msg: fmt.Sprintf("nested deeper than %d", maxDepth)}
	}
	if len(tuple) == 0 {
		return nil, &Error{Path: path, Msg: "an expression is a tuple {Operator, A, B}, this one has 0 elements"}
	}
	name, ok := symbol(tuple[0])
	if !ok {
		return nil, &Error{Path: join(path, 1), Msg: "an operator is an atom or a char list, not " + show(tuple[0])}
	}
	op, ok := operators[name]
	if !ok {
		return nil, &Error{Path: join(path, 1), Msg: "unknown operator " + show(etf.Atom(name)) + spelling(name) + " in " + show(t)}
	}
	if n := 1 + op.arity(); len(tuple) != n {
		return nil, &Error{Path: path, Msg: fmt.Sprintf("an expression with %s is a tuple of %d elements, this one has %d elements: %s", show(etf.Atom(name)), n, len(tuple), show(t))}
	}
	if op == opAnd || op == opOr || op == opNot {
		return p.junction(op, tuple, path, depth)
	}
	c := comparison{op: op, name: name, path: path}
	if err := p.count(c, 1); err != nil {
		return nil, err
	}
	if op > opOr {
		return p.predicate(c, tuple)
	}
	return p.comparison(c, tuple)
}

// spelling adds to the refusal of an operator what its author may have meant.
func spelling(name string) string {
	if name == "not" {
		return " (negation is not_)"
	}
	return ""
}

// junction parses and_, or_ and not_.
func (p *parser) junction(op operator, tuple etf.Tuple, path string, depth int) (*node, *Error) {
	n := &node{op: op}
	var err *Error
	if n.left, err = p.expr(tuple[1], join(path, 2), depth+1); err != nil {
		return nil, err
	}
	if op == opNot {
		return n, nil
	}
	if n.right, err = p.expr(tuple[2], join(path, 3), depth+1); err != nil {
		return nil, err
	}
	return n, nil
}

// count adds n comparisons to those of the filter.
func (p *parser) count(c comparison, n int) *Error {
	if p.comparisons += n; p.comparisons > maxComparisons {
		return &Error{Path: c.path, Msg: fmt.Sprintf("more than %d comparisons", maxComparisons)}
	}
	return nil
}

// comparison is the place of one comparison, for its errors.
type comparison struct {
	op   operator
	name string // the operator as it was spelt
	path string
}

// errorf returns an error at element i of the comparison, or at the comparison
// itself if i is 0.
func (c comparison) errorf(i int, format string, args ...any) *Error {
	path := c.path
	if i > 0 {
		path = join(path, i)
	}
	return &Error{Path: path, Op: c.name, Msg: fmt.Sprintf(format, args...)}
}

// comparison parses {Op, A, B} with a comparing Op.
func (p *parser) comparison(c comparison, tuple etf.Tuple) (*node, *Error) {
	a, av, err := p.operand(c, 2, tuple[1])
	if err != nil {
		return nil, err
	}
	b, bv, err := p.operand(c, 3, tuple[2])
	if err != nil {
		return nil, err
	}
	switch {
	case a.typ == typeNone && b.typ == typeNone:
		return constants(c, av, bv)
	case a.typ == typeNone:
		c.op = c.op.mirror()
		return fieldConstant(c, b, 2, av)
	case b.typ == typeNone:
		return fieldConstant(c, a, 3, bv)
	}
	if a.typ == typeKey || b.typ == typeKey {
		return nil, c.errorf(0, "the key is compared with constants only: %s and %s", show(tuple[1]), show(tuple[2]))
	}
	if a.typ != b.typ && !(a.typ.bytes() && b.typ.bytes()) {
		return nil, c.errorf(0, "cannot compare %s with %s: %s and %s", a.typ, b.typ, show(tuple[1]), show(tuple[2]))
	}
	if err := c.checkOrder(a.typ); err != nil {
		return nil, err
	}
	return &node{op: c.op, a: a, b: b}, nil
}

// checkOrder refuses < and its kin on types that have only equality.
func (c comparison) checkOrder(t fieldType) *Error {
	if (c.op.ordered() || c.op == opBetween) && !t.ordered() {
		return c.errorf(1, "%s values can only be tested with =, == and !=", t)
	}
	return nil
}

// fieldConstant builds "f op v"; i is the position of the constant.
func fieldConstant(c comparison, f operand, i int, v etf.Term) (*node, *Error) {
	if err := c.checkOrder(f.typ); err != nil {
		return nil, err
	}
	if f.typ == typeVarchar || f.typ == typeAny {
		if l, ok := v.(etf.List); ok && len(l) == 0 {
			// Differs from eleveldb: [] tests for NULL on either side, and <<>>
			// is the empty string. The original looks for NULL whenever the
			// right side has no bytes, and never when [] is on the left.
			op := opNull
			if c.op == opNe {
				op = opNotNull
			}
			return &node{op: op, a: f}, nil
		}
	}
	k, err := c.constant(i, f, v)
	if err != nil {
		return nil, err
	}
	return &node{op: c.op, a: f, b: k}, nil
}

// constant converts v, found at or in element i, to the type of f.
func (c comparison) constant(i int, f operand, v etf.Term) (operand, *Error) {
	k, ok := constant(f.typ, v)
	switch {
	case ok:
		return k, nil
	case f.typ == typeKey:
		return k, c.errorf(i, "constant %s is no key, which is a binary", show(v))
	}
	return k, c.errorf(i, "constant %s is no %s, the type of field %s%s", show(v), f.typ, show([]byte(f.name)), hint(f.typ, v))
}

// constants decides a comparison of two constants, which are doubles.
func constants(c comparison, a, b etf.Term) (*node, *Error) {
	x, ok := constant(typeDouble, a)
	if !ok {
		return nil, c.errorf(2, "two constants are compared as doubles, which %s is not", show(a))
	}
	y, ok := constant(typeDouble, b)
	if !ok {
		return nil, c.errorf(3, "two constants are compared as doubles, which %s is not", show(b))
	}
	if compareFloat(c.op, float(x.num), float(y.num)) {
		return &node{op: opTrue}, nil
	}
	return &node{op: opFalse}, nil
}

// notOperand refuses element i.
func (c comparison) notOperand(i int, t etf.Term) *Error {
	return c.errorf(i, "an operand is {field, Name, Type}, key or {const, Value}, not %s", show(t))
}

// operand parses element i of a comparison: a field with its type, or a constant
// whose value is returned as it is, for its type depends on the other side.
func (p *parser) operand(c comparison, i int, t etf.Term) (operand, etf.Term, *Error) {
	if t == etf.Term(etf.Atom("key")) {
		return operand{typ: typeKey}, nil, nil
	}
	tuple, ok := t.(etf.Tuple)
	if !ok || len(tuple) == 0 {
		return operand{}, nil, c.notOperand(i, t)
	}
	switch tag, _ := tuple[0].(etf.Atom); tag {
	case "field":
		f, err := p.field(c, i, tuple)
		return f, nil, err
	case "const":
		// A third element is allowed and ignored.
		if len(tuple) != 2 && len(tuple) != 3 {
			return operand{}, nil, c.errorf(i, "a constant is {const, Value}, not %s", show(t))
		}
		return operand{}, tuple[1], nil
	}
	return operand{}, nil, c.notOperand(i, t)
}

// field parses {field, Name, Type} and {field, Name}.
func (p *parser) field(c comparison, i int, tuple etf.Tuple) (operand, *Error) {
	if len(tuple) != 2 && len(tuple) != 3 {
		return operand{}, c.errorf(i, "a field is {field, Name, Type}, not %s", show(tuple))
	}
	b, ok := tuple[1].([]byte)
	if !ok {
		return operand{}, c.errorf(i, "a field's name is a binary, not %s", show(tuple[1]))
	}
	name := string(b)
	typ, known := p.types[name]
	if len(tuple) == 3 {
		a, ok := tuple[2].(etf.Atom)
		if !ok {
			return operand{}, c.errorf(i, "a type is an atom, not %s", show(tuple[2]))
		}
		if typ, ok = fieldTypes[string(a)]; !ok {
			return operand{}, c.errorf(i, "unknown type %s; types are varchar, sint64, timestamp, double, boolean and any", show(a))
		}
	} else if !known {
		return operand{}, c.errorf(i, "field %s has no type, here or further left", show(tuple[1]))
	}
	if !known {
		p.fields = append(p.fields, name)
	}
	p.types[name] = typ
	return operand{typ: typ, name: name}, nil
}

// symbol returns the text of an atom or of a char list.
func symbol(t etf.Term) (string, bool) {
	switch t := t.(type) {
	case etf.Atom:
		return string(t), true
	case etf.List:
		if len(t) == 0 || len(t) > 255 {
			return "", false
		}
		s := make([]rune, len(t))
		for i, c := range t {
			n, ok := c.(int64)
			if !ok || n < 0 || n > 0x10ffff {
				return "", false
			}
			s[i] = rune(n)
		}
		return string(s), true
	}
	return "", false
}

// join appends position i to a path.
func join(path string, i int) string {
	if path == "" {
		return strconv.Itoa(i)
	}
	return path + "." + strconv.Itoa(i)
}
