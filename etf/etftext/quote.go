package etftext

import (
	"fmt"
	"unicode/utf8"
)

// atom prints a name, in quotes where Erlang needs them.
func (p *printer) atom(name string) {
	if plainAtom(name) {
		p.text(name)
		return
	}
	p.quote(name, '\'')
}

// plainAtom reports whether erl_scan reads name as an atom without quotes.
func plainAtom(name string) bool {
	first, _ := utf8.DecodeRuneInString(name)
	if !lower(first) || reserved(name) {
		return false
	}
	for _, r := range name {
		if !nameChar(r) {
			return false
		}
	}
	return true
}

// Erlang's names are made of ASCII and the letters of Latin-1.

func lower(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'ß' && r <= 'ÿ' && r != '÷'
}

func nameChar(r rune) bool {
	return lower(r) || r >= 'A' && r <= 'Z' || r >= 'À' && r <= 'Þ' && r != '×' ||
		r >= '0' && r <= '9' || r == '_' || r == '@'
}

// reserved is erl_scan:reserved_word/1.
func reserved(name string) bool {
	switch name {
	case "after", "and", "andalso", "band", "begin", "bnot", "bor", "bsl", "bsr", "bxor", "case",
		"catch", "cond", "div", "end", "fun", "if", "let", "not", "of", "or", "orelse", "receive",
		"rem", "try", "when", "xor":
		return true
	}
	return false
}

// escapes are the characters that a letter stands for after a backslash.
var escapes = map[rune]byte{
	'\b': 'b', '\t': 't', '\n': 'n', '\v': 'v', '\f': 'f', '\r': 'r', 0x1b: 'e', 0x7f: 'd',
}

// quote prints s between quotation marks.
func (p *printer) quote(s string, mark rune) {
	p.buf = utf8.AppendRune(p.buf, mark)
	for _, r := range s {
		letter, ok := escapes[r]
		switch {
		case ok:
			p.buf = append(p.buf, '\\', letter)
		case r == mark || r == '\\':
			p.buf = append(p.buf, '\\', byte(r))
		case r < ' ' || r >= 0x80 && r < 0xa0:
			p.buf = fmt.Appendf(p.buf, "\\%03o", r)
		default:
			p.buf = utf8.AppendRune(p.buf, r)
		}
	}
	p.buf = utf8.AppendRune(p.buf, mark)
}
