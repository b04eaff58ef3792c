package filter

import (
	"math"
	"math/big"

	"scanode/etf"
)

// Explain says how a scan with e, which may be nil, and the given columns reads
// rows, as a map for people and tools:
//
//	filter        => the normal form of e, none without one
//	outcome       => all | none | depends: which readable rows pass, as far as e
//	                 says without looking at one
//	key           => whether the key is looked at
//	fields        => [{Name, [Type]}], each type a value must fit
//	every_row     => the names up to the last of which every row is walked, []
//	                 if only its header is read
//	matching_rows => the names up to the last of which a row that passes is
//	                 walked further
//	extractors    => [{EncodingByte, etf | msgpack}]
//
// The normal form is a filter that means the same: every field has its type,
// negation stands only in front of tests that have no opposite, between is two
// comparisons and constants have the type they are compared as.
func Explain(e *Expr, columns ...string) etf.Term {
	m := NewMatcher(e, DefaultExtractors(), columns...)
	explained := etf.Map{
		{Key: etf.Atom("filter"), Value: etf.Atom("none")},
		{Key: etf.Atom("outcome"), Value: etf.Atom("all")},
		{Key: etf.Atom("key"), Value: etf.Atom("false")},
	}
	fields, every, matching := etf.List{}, etf.List{}, etf.List{}
	if e != nil {
		explained[0].Value = normal(e.root, false)
		explained[1].Value = m.program.outcome()
		for i := range m.program.insts {
			if m.program.insts[i].key {
				explained[2].Value = etf.Atom("true")
			}
		}
		for _, name := range e.fields {
			n := m.row.names[m.row.index[name]]
			types := etf.List{}
			for _, s := range m.row.slots[n.from:n.to] {
				types = append(types, etf.Atom(s.typ.String()))
			}
			fields = append(fields, etf.Tuple{[]byte(name), types})
			every = append(every, []byte(name))
		}
	}
	seen := make(map[string]bool)
	for _, name := range columns {
		if !seen[name] && m.row.names[m.row.index[name]].stage == stageColumns {
			matching = append(matching, []byte(name))
		}
		seen[name] = true
	}
	return append(explained,
		etf.Pair{Key: etf.Atom("fields"), Value: fields},
		etf.Pair{Key: etf.Atom("every_row"), Value: every},
		etf.Pair{Key: etf.Atom("matching_rows"), Value: matching},
		etf.Pair{Key: etf.Atom("extractors"), Value: etf.List{
			etf.Tuple{int64(EncodingETF), etf.Atom("etf")},
			etf.Tuple{int64(EncodingMsgpack), etf.Atom("msgpack")},
		}})
}

// outcome says whether p needs to look at a row at all.
func (p *program) outcome() etf.Atom {
	switch p.entry {
	case accept:
		return "all"
	case reject:
		return "none"
	}
	return "depends"
}

// spellings are the operators of the normal form.
var spellings = map[operator]etf.Atom{
	opEq: "=", opNe: "!=", opLt: "<", opGt: ">", opLe: "=<", opGe: ">=", opAnd: "and_", opOr: "or_",
	opPrefix: "prefix", opMatch: "match", opIn: "in", opNull: "is_null",
}

// opposites are the operators that say no where the other says yes, given that
// there are two values and both have a place in one order.
var opposites = map[operator]operator{
	opEq: opNe, opNe: opEq, opLt: opGe, opGe: opLt, opGt: opLe, opLe: opGt,
	opAnd: opOr, opOr: opAnd, opTrue: opFalse, opFalse: opTrue, opNotNull: opNull,
}

// normal returns the term of n, or of its negation.
func normal(n *node, not bool) etf.Term {
	op := n.op
	if op == opNot {
		return normal(n.left, !not)
	}
	if opposite, ok := opposites[op]; ok && not && !(op.ordered() && n.a.typ == typeDouble) && !(op == opFalse && n.a.typ != typeNone) {
		op, not = opposite, false
		if op == opAnd || op == opOr {
			return etf.Tuple{spellings[op], normal(n.left, true), normal(n.right, true)}
		}
	}
	var t etf.Tuple
	switch {
	case op == opAnd || op == opOr:
		return etf.Tuple{spellings[op], normal(n.left, false), normal(n.right, false)}
	case op == opFalse && n.a.typ != typeNone:
		t = etf.Tuple{spellings[opIn], n.a.term(n.a.typ), etf.List{}}
	case op == opTrue || op == opFalse:
		other := int64(1)
		if op == opFalse {
			other = 0
		}
		return etf.Tuple{spellings[opEq], constTerm(int64(1)), constTerm(other)}
	case op == opNull:
		t = etf.Tuple{spellings[op], n.a.term(n.a.typ)}
	case op == opNotNull:
		not = true
		t = etf.Tuple{spellings[opNull], n.a.term(n.a.typ)}
	case op == opMatch:
		t = etf.Tuple{spellings[op], n.a.term(n.a.typ), constTerm([]byte(n.pattern.String()))}
	case op == opIn:
		list := make(etf.List, len(n.list))
		for i, k := range n.list {
			list[i] = k.term(n.a.typ)
		}
		t = etf.Tuple{spellings[op], n.a.term(n.a.typ), list}
	default:
		t = etf.Tuple{spellings[op], n.a.term(n.a.typ), n.b.term(n.a.typ)}
	}
	if not {
		return etf.Tuple{etf.Atom("not_"), t}
	}
	return t
}

func constTerm(v etf.Term) etf.Term { return etf.Tuple{etf.Atom("const"), v} }

// term returns o as it is written; t is the type of a constant.
func (o operand) term(t fieldType) etf.Term {
	switch o.typ {
	case typeNone:
		return constTerm(o.value(t))
	case typeKey:
		return etf.Atom("key")
	}
	return etf.Tuple{etf.Atom("field"), []byte(o.name), etf.Atom(o.typ.String())}
}

// value returns a constant of type t.
func (o operand) value(t fieldType) etf.Term {
	switch {
	case t.bytes():
		return append([]byte{}, o.text...)
	case t == typeDouble:
		return float(o.num)
	case t == typeBoolean && o.num <= 1:
		return etf.Atom([]string{"false", "true"}[o.num])
	case t == typeTimestamp && o.num > math.MaxInt64:
		return new(big.Int).SetUint64(o.num)
	}
	return int64(o.num)
}
