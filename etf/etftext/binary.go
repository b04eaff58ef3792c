package etftext

import (
	"math/big"
	"strings"

	"scanode/etf"
)

// maxSegmentBits bounds what an integer segment such as 1:64 may take.
const maxSegmentBits = 1 << 16

// bits collects the segments of a binary.
type bits struct {
	bytes []byte
	used  uint // bits used in the last byte, 0 if all
}

// push appends the lower n bits of v.
func (b *bits) push(v *big.Int, n uint) {
	for n > 0 {
		if b.used == 0 {
			b.bytes = append(b.bytes, 0)
		}
		room := 8 - b.used
		k := min(room, n)
		part := new(big.Int).Rsh(v, n-k)
		chunk := byte(part.And(part, big.NewInt(1<<k-1)).Uint64())
		b.bytes[len(b.bytes)-1] |= chunk << (room - k)
		b.used = (b.used + k) % 8
		n -= k
	}
}

func (b *bits) term() etf.Term {
	if b.used == 0 {
		return append([]byte{}, b.bytes...)
	}
	return etf.Bitstring{Bytes: b.bytes, Bits: uint8(b.used)}
}

// binary reads <<...>>.
func (p *parser) binary() (etf.Term, error) {
	p.off += len("<<")
	var out bits
	p.space()
	if strings.HasPrefix(p.s[p.off:], ">>") {
		p.off += len(">>")
		return out.term(), nil
	}
	for {
		p.space()
		var err error
		if p.peek() == '"' {
			err = p.textSegment(&out)
		} else {
			err = p.integerSegment(&out)
		}
		if err != nil {
			return nil, err
		}
		p.space()
		if strings.HasPrefix(p.s[p.off:], ">>") {
			p.off += len(">>")
			return out.term(), nil
		}
		if !p.next(',') {
			return nil, p.fail("a comma or '>>' was expected")
		}
	}
}

// textSegment reads "text", one byte a character, or "text"/utf8.
func (p *parser) textSegment(out *bits) error {
	start := p.off
	s, err := p.quoted('"')
	if err != nil {
		return err
	}
	var data []byte
	if strings.HasPrefix(p.s[p.off:], "/utf8") {
		p.off += len("/utf8")
		data = []byte(s)
	} else {
		for _, r := range s {
			if r > 255 {
				return p.failAt(start, "character beyond Latin-1 in a binary that is not /utf8")
			}
			data = append(data, byte(r))
		}
	}
	if out.used == 0 {
		out.bytes = append(out.bytes, data...)
		return nil
	}
	for _, c := range data {
		out.push(big.NewInt(int64(c)), 8)
	}
	return nil
}

// integerSegment reads an integer of 8 bits, or of as many as follow a colon.
func (p *parser) integerSegment(out *bits) error {
	start := p.off
	t, err := p.number()
	if err != nil {
		return err
	}
	var v *big.Int
	switch t := t.(type) {
	case int64:
		v = big.NewInt(t)
	case *big.Int:
		v = t
	default:
		return p.failAt(start, "an integer was expected")
	}
	size := uint(8)
	if p.next(':') {
		at := p.off
		n, err := p.number()
		if err != nil {
			return err
		}
		bits, ok := n.(int64)
		if !ok || bits < 0 || bits > maxSegmentBits {
			return p.failAt(at, "size of a segment must be 0 to %d", maxSegmentBits)
		}
		size = uint(bits)
	}
	out.push(v, size)
	return nil
}
