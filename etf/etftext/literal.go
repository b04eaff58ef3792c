package etftext

import (
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"scanode/etf"
)

func digit(c byte) bool { return c >= '0' && c <= '9' }

// number reads an integer, a character or a float, with or without a sign.
func (p *parser) number() (etf.Term, error) {
	start := p.off
	minus := p.next('-')
	if !minus {
		p.next('+')
	}
	if p.next('$') {
		r, err := p.character()
		if err != nil {
			return nil, err
		}
		if minus {
			r = -r
		}
		return int64(r), nil
	}
	whole := p.digits(10)
	if whole == "" {
		return nil, p.failAt(start, "a number was expected")
	}
	switch {
	case p.peek() == '#':
		base, err := strconv.Atoi(whole)
		if err != nil || base < 2 || base > 36 {
			return nil, p.failAt(start, "base of an integer must be 2 to 36")
		}
		p.off++
		digits := p.digits(base)
		if digits == "" {
			return nil, p.fail("a digit of base %d was expected", base)
		}
		return integer(digits, base, minus), nil
	case p.peek() == '.' && p.off+1 < len(p.s) && digit(p.s[p.off+1]):
		return p.fraction(start, whole, minus)
	}
	return integer(whole, 10, minus), nil
}

// digits reads digits of base, single underscores between them.
func (p *parser) digits(base int) string {
	var out strings.Builder
	for ; p.off < len(p.s); p.off++ {
		c := p.s[p.off]
		if c == '_' && out.Len() > 0 && p.off+1 < len(p.s) && digitOf(p.s[p.off+1], base) {
			continue
		}
		if !digitOf(c, base) {
			break
		}
		out.WriteByte(c)
	}
	return out.String()
}

func digitOf(c byte, base int) bool {
	v := 99
	switch {
	case digit(c):
		v = int(c - '0')
	case c >= 'a' && c <= 'z':
		v = int(c-'a') + 10
	case c >= 'A' && c <= 'Z':
		v = int(c-'A') + 10
	}
	return v < base
}

func integer(digits string, base int, minus bool) etf.Term {
	v, _ := new(big.Int).SetString(digits, base)
	if minus {
		v.Neg(v)
	}
	if v.IsInt64() {
		return v.Int64()
	}
	return v
}

// fraction reads the point, digits and exponent after the whole part.
func (p *parser) fraction(start int, whole string, minus bool) (etf.Term, error) {
	p.off++
	text := whole + "." + p.digits(10)
	if c := p.peek(); c == 'e' || c == 'E' {
		p.off++
		text += "e"
		if c := p.peek(); c == '-' || c == '+' {
			p.off++
			text += string(c)
		}
		exponent := p.digits(10)
		if exponent == "" {
			return nil, p.fail("an exponent was expected")
		}
		text += exponent
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, p.failAt(start, "float out of range")
	}
	if minus {
		f = -f
	}
	return f, nil
}

// string reads a string as list of its characters.
func (p *parser) string() (etf.Term, error) {
	s, err := p.quoted('"')
	if err != nil {
		return nil, err
	}
	var l etf.List
	for _, r := range s {
		l = append(l, int64(r))
	}
	return l, nil
}

// quoted reads text between quotation marks.
func (p *parser) quoted(mark byte) (string, error) {
	start := p.off
	p.off++
	var out []byte
	for {
		if p.off == len(p.s) {
			return "", p.failAt(start, "%q is never closed", mark)
		}
		if p.next(mark) {
			return string(out), nil
		}
		r, err := p.character()
		if err != nil {
			return "", err
		}
		out = utf8.AppendRune(out, r)
	}
}

// character reads one character or one escape.
func (p *parser) character() (rune, error) {
	at := p.off
	if !p.next('\\') {
		r, n := utf8.DecodeRuneInString(p.s[p.off:])
		if n == 0 || r == utf8.RuneError && n == 1 {
			return 0, p.fail("a character in UTF-8 was expected")
		}
		p.off += n
		return r, nil
	}
	switch c := p.peek(); {
	case p.off == len(p.s):
		return 0, p.fail("an escape was expected")
	case c >= '0' && c <= '7':
		v, n := rune(0), 0
		for ; n < 3 && p.peek() >= '0' && p.peek() <= '7'; n++ {
			v = v<<3 | rune(p.peek()-'0')
			p.off++
		}
		return v, nil
	case c == 'x':
		p.off++
		return p.hexadecimal(at)
	case c == '^':
		p.off++
		c := p.peek()
		if (c < '@' || c > '_') && (c < 'a' || c > 'z') {
			return 0, p.failAt(at, "unknown escape")
		}
		p.off++
		return rune(c & 31), nil
	case c == 's':
		p.off++
		return ' ', nil
	}
	r, n := utf8.DecodeRuneInString(p.s[p.off:])
	if r == utf8.RuneError && n == 1 {
		return 0, p.fail("a character in UTF-8 was expected")
	}
	p.off += n
	for value, letter := range escapes {
		if rune(letter) == r {
			return value, nil
		}
	}
	return r, nil
}

// hexadecimal reads what follows \x: two digits, or any in braces.
func (p *parser) hexadecimal(at int) (rune, error) {
	digits := ""
	if p.next('{') {
		if digits = p.digits(16); !p.next('}') {
			return 0, p.failAt(at, "unknown escape")
		}
	} else {
		for len(digits) < 2 && digitOf(p.peek(), 16) {
			digits += string(p.peek())
			p.off++
		}
		if len(digits) != 2 {
			return 0, p.failAt(at, "unknown escape")
		}
	}
	v, err := strconv.ParseUint(digits, 16, 21)
	if err != nil || !utf8.ValidRune(rune(v)) {
		return 0, p.failAt(at, "escape that is no character")
	}
	return rune(v), nil
}
