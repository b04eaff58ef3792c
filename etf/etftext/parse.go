package etftext

import (
	"fmt"
	"strings"

	"scanode/etf"
)

// Error is what Parse finds wrong, and where.
type Error struct {
	Line, Column int // from 1; Column counts bytes
	Msg          string
}

// Error returns "line:column: message".
func (e *Error) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Msg) }

// Parse reads one literal term, which must be all of s. Strings become lists of
// characters, as in Erlang. Terms nested deeper than etf.MaxDepth are refused.
//
// Errors: *Error.
func Parse(s string) (etf.Term, error) {
	p := parser{s: s}
	t, err := p.term(0)
	if err != nil {
		return nil, err
	}
	p.space()
	if p.next('.') {
		p.space()
	}
	if p.off < len(s) {
		return nil, p.fail("text after the term")
	}
	return t, nil
}

type parser struct {
	s   string
	off int
}

func (p *parser) fail(format string, args ...any) error { return p.failAt(p.off, format, args...) }

func (p *parser) failAt(off int, format string, args ...any) error {
	before := p.s[:min(off, len(p.s))]
	return &Error{
		Line:   1 + strings.Count(before, "\n"),
		Column: len(before) - strings.LastIndexByte(before, '\n'),
		Msg:    fmt.Sprintf(format, args...),
	}
}

// space skips white space and comments.
func (p *parser) space() {
	for p.off < len(p.s) {
		switch c := p.s[p.off]; {
		case c == '%':
			end := strings.IndexByte(p.s[p.off:], '\n')
			if end < 0 {
				end = len(p.s) - p.off
			}
			p.off += end
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			p.off++
		default:
			return
		}
	}
}

// peek returns the next byte, 0 at the end.
func (p *parser) peek() byte {
	if p.off < len(p.s) {
		return p.s[p.off]
	}
	return 0
}

func (p *parser) next(c byte) bool {
	if p.peek() == c && p.off < len(p.s) {
		p.off++
		return true
	}
	return false
}

func (p *parser) term(depth int) (etf.Term, error) {
	p.space()
	if p.off == len(p.s) {
		return nil, p.fail("a term was expected")
	}
	rest := p.s[p.off:]
	switch c := p.peek(); {
	case c == '{':
		p.off++
		ts, _, err := p.terms(depth, '}')
		return etf.Tuple(ts), err
	case c == '[':
		return p.list(depth)
	case strings.HasPrefix(rest, "<<"):
		return p.binary()
	case strings.HasPrefix(rest, "#{"):
		return p.mapping(depth)
	case c == '"':
		return p.string()
	case c == '$' || c == '-' || c == '+' || digit(c):
		return p.number()
	}
	name, quoted, err := p.atom()
	if err != nil {
		return nil, err
	}
	if name == "fun" && !quoted {
		return p.export()
	}
	return name, nil
}

// enter refuses a container that has too many around it. An empty one does not
// count, but need not be told apart here.
func (p *parser) enter(depth int) error {
	if depth >= etf.MaxDepth {
		return p.fail("nested deeper than %d", etf.MaxDepth)
	}
	return nil
}

// terms reads terms separated by commas up to and with the closing mark, or up to
// and with a bar if the mark is that of a list.
func (p *parser) terms(depth int, closing byte) (ts []etf.Term, bar bool, err error) {
	p.space()
	if p.next(closing) {
		return nil, false, nil
	}
	if err := p.enter(depth); err != nil {
		return nil, false, err
	}
	for {
		t, err := p.term(depth + 1)
		if err != nil {
			return nil, false, err
		}
		ts = append(ts, t)
		p.space()
		switch {
		case p.next(','):
		case p.next(closing):
			return ts, false, nil
		case closing == ']' && p.next('|'):
			return ts, true, nil
		default:
			return nil, false, p.fail("a comma or %q was expected", closing)
		}
	}
}

func (p *parser) list(depth int) (etf.Term, error) {
	p.off++
	ts, bar, err := p.terms(depth, ']')
	if err != nil || !bar {
		return etf.List(ts), err
	}
	tail, err := p.term(depth + 1)
	if err != nil {
		return nil, err
	}
	p.space()
	if !p.next(']') {
		return nil, p.fail("']' was expected")
	}
	switch tail := tail.(type) {
	case etf.List:
		return etf.List(append(ts, tail...)), nil
	case etf.Improper:
		return etf.Improper{Elems: append(ts, tail.Elems...), Tail: tail.Tail}, nil
	}
	return etf.Improper{Elems: ts, Tail: tail}, nil
}

func (p *parser) mapping(depth int) (etf.Term, error) {
	start := p.off
	p.off += len("#{")
	p.space()
	if p.next('}') {
		return etf.Map(nil), nil
	}
	if err := p.enter(depth); err != nil {
		return nil, err
	}
	var m, keys etf.Map
	for {
		k, err := p.term(depth + 1)
		if err != nil {
			return nil, err
		}
		p.space()
		if !strings.HasPrefix(p.s[p.off:], "=>") {
			return nil, p.fail("'=>' was expected")
		}
		p.off += len("=>")
		v, err := p.term(depth + 1)
		if err != nil {
			return nil, err
		}
		m, keys = append(m, etf.Pair{Key: k, Value: v}), append(keys, etf.Pair{Key: k, Value: int64(0)})
		p.space()
		if p.next('}') {
			break
		}
		if !p.next(',') {
			return nil, p.fail("a comma or '}' was expected")
		}
	}
	if _, err := etf.AppendTerm(nil, keys); err != nil {
		return nil, p.failAt(start, "keys of the map: %v", err)
	}
	return m, nil
}

// atom reads an atom with or without quotes.
func (p *parser) atom() (name etf.Atom, quoted bool, err error) {
	start := p.off
	if p.peek() == '\'' {
		s, err := p.quoted('\'')
		if err == nil {
			err = p.checkAtom(start, etf.Atom(s))
		}
		return etf.Atom(s), true, err
	}
	end := start
	for i, r := range p.s[start:] {
		if i == 0 && !lower(r) || !nameChar(r) {
			break
		}
		end = start + i + len(string(r))
	}
	if end == start {
		return "", false, p.fail("a term was expected")
	}
	name = etf.Atom(p.s[start:end])
	if name != "fun" && reserved(string(name)) {
		return "", false, p.fail("reserved word %s", name)
	}
	p.off = end
	return name, false, p.checkAtom(start, name)
}

func (p *parser) checkAtom(start int, name etf.Atom) error {
	if _, err := etf.AppendTerm(nil, name); err != nil {
		return p.failAt(start, "%v", err)
	}
	return nil
}

// export reads what follows "fun": Module:Function/Arity.
func (p *parser) export() (etf.Term, error) {
	var names [2]etf.Atom
	for i, mark := range []byte{':', '/'} {
		p.space()
		name, _, err := p.atom()
		if err != nil {
			return nil, err
		}
		p.space()
		if !p.next(mark) {
			return nil, p.fail("%q was expected", mark)
		}
		names[i] = name
	}
	p.space()
	at := p.off
	t, err := p.number()
	if err != nil {
		return nil, err
	}
	arity, ok := t.(int64)
	if !ok || arity < 0 || arity > 255 {
		return nil, p.failAt(at, "an arity from 0 to 255 was expected")
	}
	return etf.Export{Module: names[0], Function: names[1], Arity: uint8(arity)}, nil
}
