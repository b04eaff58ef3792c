package filter

import (
	"bytes"
	"regexp"
)

// Ends of a program, used as jump targets.
const (
	accept int32 = -1
	reject int32 = -2
)

// inst is one test and where to go on after it.
type inst struct {
	code code
	// not turns the outcome around, except where there is no value: that is
	// neither true nor false, and goes to no.
	not     bool
	key     bool   // the text is the stored key, not that of slot a
	a       uint16 // slot
	b       uint16 // slot, or index into texts, sets or patterns
	yes, no int32
}

// code is the test of an instruction.
type code uint8

const (
	codeNull code = iota // a has no value
	codeNotNull
	codeNumIn // a set
	codeEq    // 64 bits equal: integers, timestamps, booleans
	codeIntLt
	codeIntGt
	codeIntLe
	codeIntGe
	codeUintLt
	codeUintGt
	codeUintLe
	codeUintGe
	codeFloatEq
	codeFloatLt
	codeFloatGt
	codeFloatLe
	codeFloatGe
	codeBytesEq // two slots
	// From here on a text meets a constant.
	codeTextEq
	codeTextLt
	codeTextGt
	codeTextLe
	codeTextGe
	codeTextIn // a set
	codePrefix
	codeMatch // a pattern
)

// program is a filter made flat. Jumps only lead to lower indices, so it ends.
type program struct {
	insts    []inst
	entry    int32
	texts    [][]byte
	sets     []set
	patterns []*regexp.Regexp
}

// compile translates e for the slots of r, to which it adds the constants.
func compile(e *Expr, r *row) *program {
	p := &program{}
	p.entry = p.add(e.root, r, false, accept, reject)
	return p
}

// add appends the code of n, or of its negation, and returns where it begins.
// Targets are known before the jumps to them because what runs later is added
// first.
//
// Negation moves inwards to the tests, where "not true" and "false" part: a test
// without a value is neither, and stays so under any number of not_. Between the
// tests it turns and_ into or_ and back, which holds in three-valued logic too.
func (p *program) add(n *node, r *row, not bool, yes, no int32) int32 {
	switch n.op {
	case opNot:
		return p.add(n.left, r, !not, yes, no)
	case opAnd, opOr:
		right := p.add(n.right, r, not, yes, no)
		if (n.op == opAnd) != not {
			return p.add(n.left, r, not, right, no)
		}
		return p.add(n.left, r, not, yes, right)
	case opTrue, opFalse:
		if (n.op == opTrue) != not {
			return yes
		}
		return no
	}
	in := inst{not: not, key: n.a.typ == typeKey, yes: yes, no: no}
	if !in.key {
		in.a = r.slotOf(n.a)
	}
	p.test(&in, n, r)
	p.insts = append(p.insts, in)
	return int32(len(p.insts) - 1)
}

// test sets the code of in, which evaluates n, and its right side.
func (p *program) test(in *inst, n *node, r *row) {
	op := n.op
	if op == opNe {
		op, in.not = opEq, !in.not
	}
	switch {
	case op == opNull || op == opNotNull:
		if in.code = codeNull; (op == opNotNull) != in.not {
			in.code = codeNotNull
		}
		in.not = false
	case op == opIn:
		in.code = codeNumIn
		if n.a.typ.bytes() {
			in.code = codeTextIn
		}
		in.b = uint16(len(p.sets))
		p.sets = append(p.sets, newSet(n.a.typ, n.list))
	case op == opMatch:
		in.code, in.b = codeMatch, uint16(len(p.patterns))
		p.patterns = append(p.patterns, n.pattern)
	case n.b.typ != typeNone:
		in.code, in.b = codeOf(op, n.a.typ), r.slotOf(n.b)
	case n.a.typ.bytes():
		in.code, in.b = textCode(op), uint16(len(p.texts))
		p.texts = append(p.texts, n.b.text)
	default:
		in.code, in.b = codeOf(op, n.a.typ), r.addConstant(n.b.num)
	}
}

// codeOf returns the code that compares two slots of type t; op is not opNe.
func codeOf(op operator, t fieldType) code {
	first := codeIntLt
	switch {
	case t.bytes():
		return codeBytesEq
	case t == typeDouble && op == opEq:
		return codeFloatEq
	case op == opEq:
		return codeEq
	case t == typeDouble:
		first = codeFloatLt
	case t == typeTimestamp:
		first = codeUintLt
	}
	return first + code(op-opLt)
}

// textCode returns the code that compares a text with a constant.
func textCode(op operator) code {
	switch op {
	case opEq:
		return codeTextEq
	case opPrefix:
		return codePrefix
	}
	return codeTextLt + code(op-opLt)
}

// run evaluates p over the slots of r.
func (p *program) run(r *row) bool {
	pc := p.entry
	for pc >= 0 {
		in := &p.insts[pc]
		// Both targets are loaded first, so that a conditional move picks one:
		// which way a test goes can often not be predicted.
		yes, no := in.yes, in.no
		if pc = no; in.test(p, r) {
			pc = yes
		}
	}
	return pc == accept
}

// test evaluates one instruction.
func (in *inst) test(p *program, r *row) bool {
	if in.key {
		return in.text(p, r.key) != in.not
	}
	a := &r.slots[in.a]
	switch {
	case a.state == slotEmpty:
		return in.code == codeNull
	case in.code <= codeNotNull:
		return in.code == codeNotNull
	case in.code == codeNumIn:
		return p.sets[in.b].hasNumber(a.num) != in.not
	case in.code >= codeTextEq:
		return (a.state == slotValue && in.text(p, r.bytes(a))) != in.not
	}
	b := &r.slots[in.b]
	if b.state == slotEmpty {
		return false
	}
	var is bool
	switch in.code {
	case codeEq:
		is = a.num == b.num
	case codeIntLt:
		is = int64(a.num) < int64(b.num)
	case codeIntGt:
		is = int64(a.num) > int64(b.num)
	case codeIntLe:
		is = int64(a.num) <= int64(b.num)
	case codeIntGe:
		is = int64(a.num) >= int64(b.num)
	case codeUintLt:
		is = a.num < b.num
	case codeUintGt:
		is = a.num > b.num
	case codeUintLe:
		is = a.num <= b.num
	case codeUintGe:
		is = a.num >= b.num
	case codeFloatEq:
		is = float(a.num) == float(b.num)
	case codeFloatLt:
		is = float(a.num) < float(b.num)
	case codeFloatGt:
		is = float(a.num) > float(b.num)
	case codeFloatLe:
		is = float(a.num) <= float(b.num)
	case codeFloatGe:
		is = float(a.num) >= float(b.num)
	default:
		is = r.equal(a, b)
	}
	return is != in.not
}

// text evaluates the test of a text and a constant.
func (in *inst) text(p *program, text []byte) bool {
	switch in.code {
	case codeTextEq:
		return string(text) == string(p.texts[in.b])
	case codeTextLt:
		return bytes.Compare(text, p.texts[in.b]) < 0
	case codeTextGt:
		return bytes.Compare(text, p.texts[in.b]) > 0
	case codeTextLe:
		return bytes.Compare(text, p.texts[in.b]) <= 0
	case codeTextGe:
		return bytes.Compare(text, p.texts[in.b]) >= 0
	case codeTextIn:
		return p.sets[in.b].hasText(text)
	case codePrefix:
		return bytes.HasPrefix(text, p.texts[in.b])
	}
	return p.patterns[in.b].Match(text)
}

// bytes returns what a bytes slot refers to.
func (r *row) bytes(s *slot) []byte { return r.payload[s.off : s.off+s.size] }

// equal reports whether two bytes slots with values hold the same bytes. A value
// that is no text equals nothing, itself included.
func (r *row) equal(a, b *slot) bool {
	return a.state == slotValue && b.state == slotValue && bytes.Equal(r.bytes(a), r.bytes(b))
}
