package etf

import (
	"encoding/binary"
	"math"
	"unicode/utf8"
)

const (
	maxAtomChars = 255
	maxRefWords  = 5
)

// Check is [Skip] for bytes that will be sent on: it returns what follows the
// first term of b and accepts nothing that the BEAM's binary_to_term refuses,
// for one such term ends a connection. That is what any release refuses: keys of
// a map must differ to all of them. The exceptions are what a release cannot have
// sent itself, native records before OTP 29, and before OTP 24 V4_PORT_EXT,
// references of more than three words, and pids and references of more bits than
// that had. Maps of more than one pair and native records make it allocate.
//
// Errors: those of Skip, and ErrValue.
func Check(b []byte) (rest []byte, err error) {
	off, err := walk(b, 0, 0, sendable)
	if err != nil {
		return nil, err
	}
	return b[off:], nil
}

// checkContents checks the term in b[off:next], its parts aside.
func checkContents(b []byte, off, next int) error {
	switch b[off] {
	case TagNewFloat, TagFloat:
		v, _, err := ReadFloat64(b[off:])
		if err == nil && (math.IsNaN(v) || math.IsInf(v, 0)) {
			err = badValue(0, "a float that is not finite")
		}
		return shift(err, off)
	case TagAtom, TagAtomUTF8, TagSmallAtom, TagSmallAtomUTF8:
		return checkAtom(b, off, next)
	case TagPid, TagNewPid, TagPort, TagNewPort, TagV4Port, TagReference, TagNewReference, TagNewerReference:
		return checkIdentifier(b, off, next)
	case TagExport:
		function, err := walkAtom(b, off+1, contents)
		if err == nil {
			_, err = walkAtom(b, function, contents)
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

// checkIdentifier checks the bounds the BEAM has for pids, ports and references:
// in the old formats, two bits of creation and 18 of a reference's first word.
func checkIdentifier(b []byte, off, next int) error {
	node := off + 1
	words, creation := 0, 0
	switch b[off] {
	case TagPid, TagPort:
		creation = next - 1
	case TagReference:
		words, creation = 1, next-1
	case TagNewReference:
		words = int(binary.BigEndian.Uint16(b[off+1:]))
		creation = next - 1 - 4*words
		node += 2
	case TagNewerReference:
		node += 2
		words = int(binary.BigEndian.Uint16(b[off+1:]))
	}
	if node == off+3 && (words < 1 || words > maxRefWords) {
		return badValue(off+1, "reference without words or with more than 5")
	}
	if creation != 0 {
		if b[creation] > 3 {
			return badValue(creation, "creation of more than two bits in an old format")
		}
		first := next - 4*words // of NEW_REFERENCE_EXT; before the creation in REFERENCE_EXT
		if b[off] == TagReference {
			first = next - 5
		}
		if words > 0 && binary.BigEndian.Uint32(b[first:]) >= 1<<18 {
			return badValue(first, "reference of more than 18 bits in an old format")
		}
	}
	_, err := walkAtom(b, node, contents)
	return err
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
