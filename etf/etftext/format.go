package etftext

import (
	"fmt"
	"math/big"
	"strconv"
	"unicode/utf8"

	"scanode/etf"
)

// MaxBytes is how much text FormatBytes returns at most.
const MaxBytes = 4096

// Format returns all of t as text. What is no term, such as a value of another
// Go type, is named instead.
func Format(t etf.Term) string {
	p := printer{}
	p.term(t, 0)
	return string(p.buf)
}

// FormatBytes returns the first term of b, with or without the version byte 131,
// as text of at most MaxBytes; text cut off ends in "...". Bytes that are no term
// give the error instead, terms of more than 64 Ki parts their size.
func FormatBytes(b []byte) string {
	if len(b) > 0 && b[0] == etf.Version {
		b = b[1:]
	}
	t, _, err := etf.Decode(b, etf.Limits{Count: 1 << 16})
	if err != nil {
		if rest, skipErr := etf.Skip(b); skipErr == nil {
			return fmt.Sprintf("#Term<%d bytes, %v>", len(b)-len(rest), err)
		}
		return fmt.Sprintf("#Error<%v>", err)
	}
	p := printer{limit: MaxBytes}
	p.term(t, 0)
	if len(p.buf) <= MaxBytes {
		return string(p.buf)
	}
	cut := MaxBytes - len("...")
	for cut > 0 && !utf8.RuneStart(p.buf[cut]) {
		cut--
	}
	return string(p.buf[:cut]) + "..."
}

// printer appends text. Once there is more than limit, if there is one, it need
// not go on.
type printer struct {
	buf   []byte
	limit int
}

func (p *printer) full() bool { return p.limit > 0 && len(p.buf) > p.limit }

func (p *printer) text(s string) { p.buf = append(p.buf, s...) }

func (p *printer) printf(format string, args ...any) { p.buf = fmt.Appendf(p.buf, format, args...) }

func (p *printer) term(t etf.Term, depth int) {
	if depth > etf.MaxDepth {
		p.text("...")
		return
	}
	switch t := t.(type) {
	case etf.Atom:
		p.atom(string(t))
	case int64:
		p.buf = strconv.AppendInt(p.buf, t, 10)
	case int:
		p.buf = strconv.AppendInt(p.buf, int64(t), 10)
	case *big.Int:
		p.buf = t.Append(p.buf, 10)
	case float64:
		p.float(t)
	case []byte:
		p.binary(t)
	case etf.Bitstring:
		p.bitstring(t)
	case etf.Tuple:
		p.text("{")
		p.terms(t, depth)
		p.text("}")
	case etf.List:
		p.list(t, depth)
	case etf.Improper:
		p.text("[")
		p.terms(t.Elems, depth)
		p.text("|")
		p.term(t.Tail, depth+1)
		p.text("]")
	case etf.Map:
		p.mapping(t, depth)
	default:
		p.other(t)
	}
}

// other prints what Parse does not read, external funs aside.
func (p *printer) other(t etf.Term) {
	switch t := t.(type) {
	case etf.Pid:
		p.printf("<%s.%d.%d>", t.Node, t.ID, t.Serial)
	case etf.Port:
		p.printf("#Port<%s.%d>", t.Node, t.ID)
	case etf.Ref:
		p.printf("#Ref<%s", t.Node)
		for i := min(int(t.Len), len(t.ID)) - 1; i >= 0; i-- {
			p.printf(".%d", t.ID[i])
		}
		p.text(">")
	case etf.Export:
		p.text("fun ")
		p.atom(string(t.Module))
		p.text(":")
		p.atom(string(t.Function))
		p.printf("/%d", t.Arity)
	case etf.Opaque:
		p.opaque(t)
	default:
		p.printf("#Go<%T>", t)
	}
}

// opaque names a fun as Erlang does and other terms by their kind and size.
func (p *printer) opaque(t etf.Opaque) {
	const module = 30 // where a NEW_FUN_EXT has its module
	if len(t) > module && t[0] == etf.TagNewFun {
		name, rest, err := etf.ReadAtom(t[module:])
		if err == nil {
			index, rest, err := etf.ReadInt64(rest)
			if err == nil {
				if uniq, _, err := etf.ReadInt64(rest); err == nil {
					p.printf("#Fun<%s.%d.%d>", name, index, uniq)
					return
				}
			}
		}
	}
	kind := "Term"
	if len(t) > 0 {
		switch t[0] {
		case etf.TagNewFun, etf.TagFun:
			kind = "Fun"
		case etf.TagRecord:
			kind = "Record"
		case etf.TagLocal:
			kind = "Local"
		}
	}
	p.printf("#%s<%d bytes>", kind, len(t))
}

func (p *printer) terms(ts []etf.Term, depth int) {
	for i, t := range ts {
		if i > 0 {
			p.text(",")
		}
		if p.full() {
			return
		}
		p.term(t, depth+1)
	}
}

func (p *printer) list(l etf.List, depth int) {
	if s, ok := characters(l); ok {
		p.quote(s, '"')
		return
	}
	p.text("[")
	p.terms(l, depth)
	p.text("]")
}

// characters returns a list of printable characters as string.
func characters(l etf.List) (string, bool) {
	if len(l) == 0 {
		return "", false
	}
	for _, t := range l {
		if c, ok := t.(int64); !ok || c < 0 || c > utf8.MaxRune || !printable(rune(c)) {
			return "", false
		}
	}
	s := make([]byte, 0, len(l))
	for _, t := range l {
		s = utf8.AppendRune(s, rune(t.(int64)))
	}
	return string(s), true
}

func (p *printer) mapping(m etf.Map, depth int) {
	p.text("#{")
	for i, pair := range m {
		if i > 0 {
			p.text(",")
		}
		if p.full() {
			break
		}
		p.term(pair.Key, depth+1)
		p.text(" => ")
		p.term(pair.Value, depth+1)
	}
	p.text("}")
}

func (p *printer) bitstring(t etf.Bitstring) {
	if len(t.Bytes) == 0 || t.Bits < 1 || t.Bits > 7 {
		p.text("#Go<bad etf.Bitstring>")
		return
	}
	last := len(t.Bytes) - 1
	p.text("<<")
	for _, c := range t.Bytes[:last] {
		p.printf("%d,", c)
		if p.full() {
			return
		}
	}
	p.printf("%d:%d>>", t.Bytes[last]>>(8-t.Bits), t.Bits)
}

// binary prints text as text: as UTF-8 if it is that, else as Latin-1.
func (p *printer) binary(b []byte) {
	if len(b) == 0 {
		p.text("<<>>")
		return
	}
	shown := b
	if p.limit > 0 && len(b) > p.limit {
		shown = b[:p.limit] // more would not be shown anyway
		for len(shown) > p.limit-utf8.UTFMax && !utf8.Valid(shown[max(0, len(shown)-utf8.UTFMax):]) {
			shown = shown[:len(shown)-1]
		}
	}
	p.text("<<")
	switch {
	case isPrintableUTF8(shown):
		p.quote(string(shown), '"')
		if !isASCII(shown) {
			p.text("/utf8")
		}
	case isPrintableLatin1(shown):
		p.quote(latin1(shown), '"')
	default:
		for i, c := range shown {
			if i > 0 {
				p.text(",")
			}
			p.buf = strconv.AppendUint(p.buf, uint64(c), 10)
			if p.full() {
				return
			}
		}
	}
	if len(shown) < len(b) {
		p.text("...")
		p.limit = 1 // nothing after this matters
	}
	p.text(">>")
}

func isPrintableUTF8(b []byte) bool {
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 || !printable(r) {
			return false
		}
		b = b[n:]
	}
	return true
}

func isPrintableLatin1(b []byte) bool {
	for _, c := range b {
		if !printable(rune(c)) {
			return false
		}
	}
	return true
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func latin1(b []byte) string {
	s := make([]byte, 0, 2*len(b))
	for _, c := range b {
		s = utf8.AppendRune(s, rune(c))
	}
	return string(s)
}

// printable is io_lib:printable_unicode_list/1 for one character.
func printable(r rune) bool {
	switch {
	case r >= ' ' && r < 0x7f, r >= 0xa0 && r < 0xd800, r >= 0xe000 && r < 0xfffe, r >= 0x10000 && r <= utf8.MaxRune:
		return true
	}
	return r >= '\b' && r <= '\r' || r == 0x1b // \b \t \n \v \f \r \e
}
