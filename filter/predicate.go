package filter

import (
	"scanode/etf"
)

// This file parses the tests that eleveldb does not have.

// predicate parses is_null, in, between, prefix and match. All of them test one
// field or the key, element 2.
func (p *parser) predicate(c comparison, tuple etf.Tuple) (*node, *Error) {
	if tag, _ := tuple[1].(etf.Tuple); c.op == opNull && (len(tag) == 0 || tag[0] != etf.Term(etf.Atom("field"))) {
		return nil, c.errorf(2, "only a field can be NULL: {field, Name, Type}, not %s", show(tuple[1]))
	}
	a, _, err := p.operand(c, 2, tuple[1])
	if err != nil {
		return nil, err
	}
	if a.typ == typeNone {
		return nil, c.errorf(2, "a field or key is tested, not the constant %s", show(tuple[1]))
	}
	switch c.op {
	case opNull:
		return &node{op: opNull, a: a}, nil
	case opIn:
		return p.in(c, a, tuple[2])
	case opBetween:
		return p.between(c, a, tuple)
	}
	if a.typ != typeVarchar && a.typ != typeKey {
		return nil, c.errorf(2, "%s is for varchar and key, not for %s", c.name, a.typ)
	}
	k, err := c.constantAt(3, a, tuple[2])
	if err != nil {
		return nil, err
	}
	if c.op == opPrefix {
		return &node{op: opPrefix, a: a, b: k}, nil
	}
	re, err := p.pattern(c, string(k.text))
	if err != nil {
		return nil, err
	}
	return &node{op: opMatch, a: a, pattern: re}, nil
}

// constantAt parses element i, which must be a constant of f's type.
func (c comparison) constantAt(i int, f operand, t etf.Term) (operand, *Error) {
	v, ok := constantTerm(t)
	if !ok {
		return operand{}, c.errorf(i, "a constant {const, Value} is wanted, not %s", show(t))
	}
	return c.constant(i, f, v)
}

// constantTerm returns Value of {const, Value}; a third element is ignored.
func constantTerm(t etf.Term) (etf.Term, bool) {
	tuple, ok := t.(etf.Tuple)
	if !ok || len(tuple) < 2 || len(tuple) > 3 || tuple[0] != etf.Term(etf.Atom("const")) {
		return nil, false
	}
	return tuple[1], true
}

// between parses {between, F, {const, Low}, {const, High}}: F >= Low and F =< High.
func (p *parser) between(c comparison, a operand, tuple etf.Tuple) (*node, *Error) {
	if err := p.count(c, 1); err != nil {
		return nil, err
	}
	if err := c.checkOrder(a.typ); err != nil {
		return nil, err
	}
	low, err := c.constantAt(3, a, tuple[2])
	if err != nil {
		return nil, err
	}
	high, err := c.constantAt(4, a, tuple[3])
	if err != nil {
		return nil, err
	}
	return &node{op: opAnd, left: &node{op: opGe, a: a, b: low}, right: &node{op: opLe, a: a, b: high}}, nil
}

// in parses {in, F, [{const, Value}, …]}.
func (p *parser) in(c comparison, a operand, t etf.Term) (*node, *Error) {
	list, ok := t.(etf.List)
	if !ok {
		return nil, c.errorf(3, "a list of {const, Value} is wanted, not %s", show(t))
	}
	if p.listed += len(list); p.listed > maxListed {
		return nil, c.errorf(3, "more than %d constants in lists", maxListed)
	}
	if len(list) == 0 {
		// As or_ of nothing: false, for NULL too. The field is still read.
		return &node{op: opFalse, a: a}, nil
	}
	n := &node{op: opIn, a: a, list: make([]operand, len(list))}
	for i, t := range list {
		v, ok := constantTerm(t)
		if !ok {
			return nil, c.errorf(3, "a list of {const, Value} is wanted, %s is in it", show(t))
		}
		if l, ok := v.(etf.List); ok && len(l) == 0 && a.typ.bytes() {
			return nil, c.errorf(3, "NULL is in no list; to test for NULL use is_null")
		}
		var err *Error
		if n.list[i], err = c.constant(3, a, v); err != nil {
			return nil, err
		}
	}
	return n, nil
}
