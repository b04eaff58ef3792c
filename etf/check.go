package etf

import (
	"encoding/binary"
	"math"
	"unicode/utf8"
)

const maxAtomChars = 255

// Check is [Skip] for bytes that will be sent on: it returns what follows the
// first term of b and refuses whatever the BEAM's binary_to_term refuses, for
// one such term ends a connection. It accepts what [Decode] accepts. Maps of
// more than one pair make it allocate.
//
// Errors: those of Skip, and ErrValue.
func Check(b []byte) (rest []byte, err error) {
	off, err := checkTerm(b, 0, 0)
	if err != nil {
		return nil, err
	}
	return b[off:], nil
}

// checkTerm returns the offset after the term at off, which has depth
// containers around it.
func checkTerm(b []byte, off, depth int) (int, error) {
	if off < len(b) {
		switch b[off] {
		case TagNewFun:
			return skipNewFun(b, off, depth)
		case TagFun:
			return skipFun(b, off, depth)
		case TagLocal:
			return skipLocal(b, off, depth)
		}
	}
	next, n, err := head(b, off)
	if err != nil {
		return 0, err
	}
	if n == 0 {
		return next, checkLeaf(b, off, next)
	}
	if depth >= MaxDepth {
		return 0, tooDeep(off)
	}
	for range n {
		if next, err = checkTerm(b, next, depth+1); err != nil {
			return 0, err
		}
	}
	if b[off] == TagMap {
		return next, checkKeys(b, off)
	}
	return next, nil
}

// checkLeaf checks the contents of the term without parts in b[off:next].
func checkLeaf(b []byte, off, next int) error {
	switch tag := b[off]; tag {
	case TagNewFloat, TagFloat:
		v, _, err := ReadFloat64(b[off:])
		if err == nil && (math.IsNaN(v) || math.IsInf(v, 0)) {
			err = badValue(0, "a float that is not finite")
		}
		return shift(err, off)
	case TagAtom, TagAtomUTF8, TagSmallAtom, TagSmallAtomUTF8:
		return checkAtom(b, off, next)
	case TagPid, TagNewPid, TagPort, TagNewPort, TagV4Port, TagReference:
		return checkAtomAt(b, off+1)
	case TagNewReference, TagNewerReference:
		if words := binary.BigEndian.Uint16(b[off+1:]); words < 1 || words > 5 {
			return badValue(off+1, "reference without words or with more than 5")
		}
		return checkAtomAt(b, off+3)
	case TagExport:
		function, err := skipAtom(b, off+1)
		if err == nil {
			err = checkAtomAt(b, off+1)
		}
		if err == nil {
			err = checkAtomAt(b, function)
		}
		return err
	case TagBitBinary:
		bits, empty := b[off+5], next == off+6
		if bits > 8 || empty != (bits == 0) {
			return badValue(off+5, "bits of a bitstring's last byte")
		}
	}
	return nil
}

func checkAtomAt(b []byte, off int) error {
	next, err := skipAtom(b, off)
	if err != nil {
		return err
	}
	return checkAtom(b, off, next)
}

func checkAtom(b []byte, off, next int) error {
	name := b[off+int(fixedSize[b[off]]) : next]
	if b[off] == TagAtom || b[off] == TagSmallAtom {
		if len(name) > maxAtomChars {
			return badValue(off, "atom longer than 255 characters")
		}
		return nil
	}
	if !utf8.Valid(name) {
		return badValue(off, "atom that is no UTF-8")
	}
	if len(name) > maxAtomChars && utf8.RuneCount(name) > maxAtomChars {
		return badValue(off, "atom longer than 255 characters")
	}
	return nil
}

// checkKeys refuses the well-formed map at off if a key comes twice.
func checkKeys(b []byte, off int) error {
	return nil
}
