package msgpack

import (
	"encoding/binary"
	"fmt"
)

// MaxDepth is how many arrays and maps may be around a value.
const MaxDepth = 256

// Skip returns what follows the first value of b.
//
// Errors: ErrTruncated, ErrKind, ErrLimit.
func Skip(b []byte) (rest []byte, err error) {
	// The flat loop knows how many values are still to come, but not how deep it
	// is. No value can be nested deeper than the number of containers seen, so
	// with few of them the depth needs no watching; with many, and for anything
	// wrong, skipDeep does the work from the start.
	off, left, containers := 0, uint64(1), 0
	for ; left > 0; left-- {
		if off >= len(b) {
			return skipDeep(b)
		}
		c := b[off]
		l := leads[c]
		switch {
		case l.width == 0 && l.fixed != 0:
			off += int(l.fixed)
			if l.kind == Str {
				off += int(l.small)
			} else if l.small > 0 {
				left += uint64(l.small)
				containers++
			}
		case c == leadStr8 || c == leadBin8:
			if len(b)-off < 2 {
				return skipDeep(b)
			}
			off += 2 + int(b[off+1])
		default:
			next, n, err := head(b, off)
			if err != nil {
				return skipDeep(b)
			}
			if off = next; n > 0 {
				left += uint64(n)
				containers++
			}
		}
		if containers > MaxDepth {
			return skipDeep(b)
		}
	}
	if off > len(b) {
		return skipDeep(b)
	}
	return b[off:], nil
}

// skipDeep is Skip by definition: it watches the depth and names the error. Its
// stack of 2 KiB would cost more than all of a small value.
func skipDeep(b []byte) ([]byte, error) {
	var around [MaxDepth]int // parts left in each container around the current one
	off, left, depth := 0, 1, 0
	for {
		for ; left == 0; left = around[depth] {
			if depth == 0 {
				return b[off:], nil
			}
			depth--
		}
		left--
		next, n, err := head(b, off)
		if err != nil {
			return nil, err
		}
		if n > 0 {
			if depth == MaxDepth {
				return nil, &Error{off, fmt.Sprintf("nested deeper than %d", MaxDepth), ErrLimit}
			}
			around[depth] = left
			depth++
			left = n
		}
		off = next
	}
}

// head measures the value at off: next is the offset after its own bytes, where
// its parts follow, parts of them. There are at least as many bytes left as
// parts.
func head(b []byte, off int) (next, parts int, err error) {
	if off >= len(b) {
		return 0, 0, truncated(off)
	}
	l := leads[b[off]]
	if l.fixed == 0 {
		return 0, 0, badKind(b, off, "a value")
	}
	if len(b)-off < int(l.fixed) {
		return 0, 0, truncated(len(b))
	}
	next = off + int(l.fixed)
	n := uint64(l.small)
	switch l.width {
	case 1:
		n = uint64(b[off+1])
	case 2:
		n = uint64(binary.BigEndian.Uint16(b[off+1:]))
	case 4:
		n = uint64(binary.BigEndian.Uint32(b[off+1:]))
	}
	if l.kind == Map && l.width > 0 {
		n *= 2
	}
	if n > uint64(len(b)-next) {
		return 0, 0, truncated(len(b))
	}
	if l.kind == Array || l.kind == Map {
		return next, int(n), nil
	}
	return next + int(n), 0, nil
}
