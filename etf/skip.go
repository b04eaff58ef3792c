package etf

import "encoding/binary"

// MaxDepth is how many tuples, lists and maps may be around a term.
const MaxDepth = 256

// Skip returns what follows the first term of b. It looks at tags and lengths
// only, so it accepts contents that [Check] and [Decode] refuse. It does not
// allocate unless it fails.
//
// Errors: ErrTruncated, ErrTag, ErrLimit, ErrCompressed.
func Skip(b []byte) (rest []byte, err error) {
	// The flat loop knows how many terms are still to come, but not how deep it
	// is. No term can be nested deeper than the number of containers seen, so
	// with few of them, as in a row, the depth needs no watching; with many, and
	// for anything wrong, skipDeep does the work from the start.
	off, left, containers := 0, uint64(1), 0
	for ; left > 0; left-- {
		if off >= len(b) {
			return skipDeep(b)
		}
		switch b[off] {
		case TagSmallInteger:
			off += 2
		case TagInteger:
			off += 5
		case TagNewFloat:
			off += 9
		case TagNil:
			off++
		case TagSmallAtomUTF8, TagSmallAtom:
			if len(b)-off < 2 {
				return skipDeep(b)
			}
			off += 2 + int(b[off+1])
		case TagAtom, TagAtomUTF8, TagString:
			if len(b)-off < 3 {
				return skipDeep(b)
			}
			off += 3 + int(binary.BigEndian.Uint16(b[off+1:]))
		case TagBinary:
			if len(b)-off < 5 {
				return skipDeep(b)
			}
			n := binary.BigEndian.Uint32(b[off+1:])
			if uint64(n) > uint64(len(b)-off) {
				return skipDeep(b)
			}
			off += 5 + int(n)
		case TagSmallBig:
			if len(b)-off < 3 {
				return skipDeep(b)
			}
			off += 3 + int(b[off+1])
		case TagSmallTuple:
			if len(b)-off < 2 {
				return skipDeep(b)
			}
			left += uint64(b[off+1])
			off += 2
			containers++
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
// stack of 2 KiB would cost more than all of a small term.
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
		if off < len(b) && fixedSize[b[off]] == 0 { // funs, local terms, unknown tags
			next, err := walk(b, off, depth, structure)
			if err != nil {
				return nil, err
			}
			off = next
			continue
		}
		next, n, err := head(b, off)
		if err != nil {
			return nil, err
		}
		if n > 0 {
			if depth == MaxDepth {
				return nil, tooDeep(off)
			}
			around[depth] = left
			depth++
			left = n
		}
		off = next
	}
}

// SkipVersion checks and drops the version byte 131.
//
// Errors: ErrTruncated, ErrTag.
func SkipVersion(b []byte) (rest []byte, err error) {
	if len(b) == 0 {
		return nil, truncated(0)
	}
	if b[0] != Version {
		return nil, badTag(b, 0, "the version byte 131")
	}
	return b[1:], nil
}

// strictness says what walk looks at.
type strictness uint8

const (
	structure strictness = iota // tags and lengths
	contents                    // also values, as the BEAM does
	sendable                    // contents, and no tag that a BEAM reads no more or only its own
)

// walk returns the offset after the term at off, which has depth containers
// around it.
func walk(b []byte, off, depth int, how strictness) (int, error) {
	if off < len(b) {
		switch b[off] {
		case TagNewFun:
			return walkNewFun(b, off, depth, how)
		case TagFun:
			return walkFun(b, off, depth, how)
		case TagLocal:
			return walkLocal(b, off, depth, how)
		case TagRecord:
			if how != structure {
				return walkRecord(b, off, depth, how)
			}
		}
	}
	next, n, err := head(b, off)
	if err != nil {
		return 0, err
	}
	if n > 2 && b[off] == TagMap && how != structure {
		pairs, next, err := walkPairs(b, next, n/2, depth, how)
		if err == nil {
			err = checkKeys(b, pairs, next-off)
		}
		return next, err
	}
	if n > 0 {
		if next, err = walkParts(b, next, n, depth, how); err != nil {
			return 0, err
		}
	}
	if how == structure {
		return next, nil
	}
	return next, checkContents(b, off, next)
}

// walkParts walks the n parts of a container that has depth containers around it.
func walkParts(b []byte, off, n, depth int, how strictness) (int, error) {
	if n > 0 && depth >= MaxDepth {
		return 0, tooDeep(off)
	}
	var err error
	for range n {
		if off, err = walk(b, off, depth+1, how); err != nil {
			return 0, err
		}
	}
	return off, nil
}

// head measures the term at off, which must not be a fun or local: next is the
// offset after its own bytes, where its parts follow, parts of them. There are
// at least as many bytes left as parts.
func head(b []byte, off int) (next, parts int, err error) {
	if off >= len(b) {
		return 0, 0, truncated(off)
	}
	fixed := int(fixedSize[b[off]])
	if fixed == 0 {
		return 0, 0, badTag(b, off, "a term")
	}
	if len(b)-off < fixed {
		return 0, 0, truncated(len(b))
	}
	next = off + fixed
	var more uint64 // bytes that follow
	switch b[off] {
	case TagAtom, TagAtomUTF8, TagString:
		more = uint64(binary.BigEndian.Uint16(b[off+1:]))
	case TagSmallAtom, TagSmallAtomUTF8, TagSmallBig:
		more = uint64(b[off+1])
	case TagBinary, TagBitBinary, TagLargeBig:
		more = uint64(binary.BigEndian.Uint32(b[off+1:]))
	case TagSmallTuple:
		parts = int(b[off+1])
	case TagLargeTuple:
		return count(b, next, uint64(binary.BigEndian.Uint32(b[off+1:])))
	case TagList:
		return count(b, next, uint64(binary.BigEndian.Uint32(b[off+1:]))+1)
	case TagMap:
		return count(b, next, uint64(binary.BigEndian.Uint32(b[off+1:]))*2)
	case TagRecord:
		// Module and name, then as many names as values.
		return count(b, next, uint64(binary.BigEndian.Uint32(b[off+1:]))*2+2)
	case TagPid, TagNewPid, TagPort, TagNewPort, TagV4Port, TagReference, TagNewReference, TagNewerReference, TagExport:
		next, err = skipIdentifier(b, off)
		return next, 0, err
	}
	if more > uint64(len(b)-next) {
		return 0, 0, truncated(len(b))
	}
	return next + int(more), parts, nil
}

// count checks a claimed number of parts against the bytes that are there.
func count(b []byte, next int, n uint64) (int, int, error) {
	if n > uint64(len(b)-next) {
		return 0, 0, truncated(len(b))
	}
	return next, int(n), nil
}

// fixedSize is the size of a term's tag and length fields, of the whole term
// where it has no variable part, and 0 for tags that head does not know.
var fixedSize = [256]uint8{
	TagRecord: 6, TagNewFloat: 9, TagBitBinary: 6, TagNewPid: 1, TagNewPort: 1, TagNewerReference: 3,
	TagSmallInteger: 2, TagInteger: 5, TagFloat: 32, TagAtom: 3, TagReference: 1, TagPort: 1,
	TagPid: 1, TagSmallTuple: 2, TagLargeTuple: 5, TagNil: 1, TagString: 3, TagList: 5,
	TagBinary: 5, TagSmallBig: 3, TagLargeBig: 6, TagExport: 1, TagNewReference: 3,
	TagSmallAtom: 2, TagMap: 5, TagAtomUTF8: 3, TagSmallAtomUTF8: 2, TagV4Port: 1,
}

// skipIdentifier skips what holds atoms: pids, ports, references, exports.
func skipIdentifier(b []byte, off int) (int, error) {
	tag, after := b[off], 0
	off++
	switch tag {
	case TagPid:
		after = 9
	case TagNewPid, TagV4Port:
		after = 12
	case TagPort, TagReference:
		after = 5
	case TagNewPort:
		after = 8
	case TagNewReference, TagNewerReference:
		after = 1 + 4*int(binary.BigEndian.Uint16(b[off:]))
		if tag == TagNewerReference {
			after += 3
		}
		off += 2
	case TagExport:
		var err error
		if off, err = skipAtom(b, off); err != nil {
			return 0, err
		}
		if off, err = skipAtom(b, off); err != nil {
			return 0, err
		}
		if off < len(b) && b[off] != TagSmallInteger {
			return 0, badTag(b, off, "an arity")
		}
		if len(b)-off < 2 {
			return 0, truncated(len(b))
		}
		return off + 2, nil
	}
	off, err := skipAtom(b, off)
	if err != nil {
		return 0, err
	}
	if len(b)-off < after {
		return 0, truncated(len(b))
	}
	return off + after, nil
}

func skipAtom(b []byte, off int) (int, error) {
	if off < len(b) && !isAtomTag(b[off]) {
		return 0, badTag(b, off, "an atom")
	}
	next, _, err := head(b, off)
	return next, err
}

func isAtomTag(tag byte) bool {
	return tag == TagSmallAtomUTF8 || tag == TagAtom || tag == TagAtomUTF8 || tag == TagSmallAtom
}
