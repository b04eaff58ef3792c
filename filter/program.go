package filter

import "bytes"

// Ends of a program, used as jump targets.
const (
	accept int32 = -1
	reject int32 = -2
)

// inst is one test and where to go on after it.
type inst struct {
	code    code
	a, b    uint16 // slots; b of codeText… is an index into texts
	yes, no int32
}

// code is the test of an instruction. A test with a slot that has no value
// fails, codeNull excepted.
type code uint8

const (
	codeNull code = iota // a has no value
	codeNotNull
	codeEq // 64 bits equal: integers, timestamps, booleans
	codeNe
	codeIntLt
	codeIntGt
	codeIntLe
	codeIntGe
	codeUintLt
	codeUintGt
	codeUintLe
	codeUintGe
	codeFloatEq
	codeFloatNe
	codeFloatLt
	codeFloatGt
	codeFloatLe
	codeFloatGe
	codeBytesEq // two slots
	codeBytesNe
	codeTextEq // a slot and a constant
	codeTextNe
)

// program is a filter made flat. Jumps only lead to lower indices, so it ends.
type program struct {
	insts []inst
	entry int32
	texts [][]byte
}

// compile translates e for the slots of r, to which it adds the constants.
func compile(e *Expr, r *row) *program {
	p := &program{}
	p.entry = p.add(e.root, r, accept, reject)
	return p
}

// add appends the code of n and returns where it begins. Targets are known
// before the jumps to them because what runs later is added first.
func (p *program) add(n *node, r *row, yes, no int32) int32 {
	switch n.op {
	case opAnd:
		return p.add(n.left, r, p.add(n.right, r, yes, no), no)
	case opOr:
		return p.add(n.left, r, yes, p.add(n.right, r, yes, no))
	case opTrue:
		return yes
	case opFalse:
		return no
	}
	in := inst{a: r.slotOf(n.a), yes: yes, no: no}
	switch {
	case n.op == opNull:
		in.code = codeNull
	case n.op == opNotNull:
		in.code = codeNotNull
	case n.b.typ != typeNone:
		in.b = r.slotOf(n.b)
		in.code = codeOf(n.op, n.a.typ)
	case n.a.typ.bytes():
		in.b = uint16(len(p.texts))
		p.texts = append(p.texts, n.b.text)
		in.code = codeTextEq + code(n.op-opEq)
	default:
		in.b = r.addConstant(n.b.num)
		in.code = codeOf(n.op, n.a.typ)
	}
	p.insts = append(p.insts, in)
	return int32(len(p.insts) - 1)
}

// codeOf returns the code that compares two slots of type t.
func codeOf(op operator, t fieldType) code {
	switch {
	case t.bytes():
		return codeBytesEq + code(op-opEq)
	case t == typeDouble:
		return codeFloatEq + code(op-opEq)
	case !op.ordered():
		return codeEq + code(op-opEq)
	case t == typeTimestamp:
		return codeUintLt + code(op-opLt)
	}
	return codeIntLt + code(op-opLt)
}

// run evaluates p over the slots of r.
func (p *program) run(r *row) bool {
	pc := p.entry
	for pc >= 0 {
		in := &p.insts[pc]
		if in.test(p, r) {
			pc = in.yes
		} else {
			pc = in.no
		}
	}
	return pc == accept
}

// test evaluates one instruction.
func (in *inst) test(p *program, r *row) bool {
	a := &r.slots[in.a]
	if a.state == slotEmpty {
		return in.code == codeNull
	}
	switch in.code {
	case codeNull:
		return false
	case codeNotNull:
		return true
	case codeTextEq:
		return a.state == slotValue && string(r.bytes(a)) == string(p.texts[in.b])
	case codeTextNe:
		return a.state != slotValue || string(r.bytes(a)) != string(p.texts[in.b])
	}
	b := &r.slots[in.b]
	if b.state == slotEmpty {
		return false
	}
	switch in.code {
	case codeEq:
		return a.num == b.num
	case codeNe:
		return a.num != b.num
	case codeIntLt:
		return int64(a.num) < int64(b.num)
	case codeIntGt:
		return int64(a.num) > int64(b.num)
	case codeIntLe:
		return int64(a.num) <= int64(b.num)
	case codeIntGe:
		return int64(a.num) >= int64(b.num)
	case codeUintLt:
		return a.num < b.num
	case codeUintGt:
		return a.num > b.num
	case codeUintLe:
		return a.num <= b.num
	case codeUintGe:
		return a.num >= b.num
	case codeBytesEq:
		return r.equal(a, b)
	case codeBytesNe:
		return !r.equal(a, b)
	}
	return compareFloat(opEq+operator(in.code-codeFloatEq), float(a.num), float(b.num))
}

// bytes returns what a bytes slot refers to.
func (r *row) bytes(s *slot) []byte { return r.payload[s.off : s.off+s.size] }

// equal reports whether two bytes slots with values hold the same bytes. A value
// that is no text equals nothing, itself included.
func (r *row) equal(a, b *slot) bool {
	return a.state == slotValue && b.state == slotValue && bytes.Equal(r.bytes(a), r.bytes(b))
}
