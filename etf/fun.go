package etf

import "encoding/binary"

// skipNewFun skips a NEW_FUN_EXT:
//
//	112 size:32 arity:8 uniq:128 index:32 free:32 module oldindex olduniq pid term*free
//
// The size covers itself and everything after it. The BEAM does not look at it,
// so a size that differs from the structure would let two readers disagree on
// where the term ends: it is refused.
func skipNewFun(b []byte, off, depth int) (int, error) {
	const fixed = 1 + 4 + 1 + 16 + 4 + 4
	if len(b)-off < fixed {
		return 0, truncated(len(b))
	}
	size := binary.BigEndian.Uint32(b[off+1:])
	if uint64(size) > uint64(len(b)-off-1) {
		return 0, truncated(len(b))
	}
	end := off + 1 + int(size)
	if end < off+fixed {
		return 0, badValue(off+1, "size of a fun is below its fixed part")
	}
	free := binary.BigEndian.Uint32(b[off+fixed-4:])
	next, err := skipAtom(b[:end], off+fixed)
	for range 2 {
		if err == nil {
			next, err = skipSmall(b[:end], next)
		}
	}
	if err == nil {
		next, err = skipPid(b[:end], next)
	}
	if err == nil {
		next, err = skipFree(b[:end], next, free, depth)
	}
	if err == nil && next != end {
		err = badValue(off+1, "size of a fun differs from its parts")
	}
	return next, err
}

// skipFun skips a FUN_EXT: 117 free:32 pid module index uniq term*free.
func skipFun(b []byte, off, depth int) (int, error) {
	if len(b)-off < 5 {
		return 0, truncated(len(b))
	}
	free := binary.BigEndian.Uint32(b[off+1:])
	next, err := skipPid(b, off+5)
	if err == nil {
		next, err = skipAtom(b, next)
	}
	for range 2 {
		if err == nil {
			next, err = skipSmall(b, next)
		}
	}
	if err == nil {
		next, err = skipFree(b, next, free, depth)
	}
	return next, err
}

func skipFree(b []byte, off int, free uint32, depth int) (int, error) {
	off, n, err := count(b, off, uint64(free))
	if err != nil {
		return 0, err
	}
	return skipTerms(b, off, n, depth)
}

// skipSmall skips an integer of at most 32 bits.
func skipSmall(b []byte, off int) (int, error) {
	if off < len(b) && b[off] != TagSmallInteger && b[off] != TagInteger {
		return 0, badTag(b, off, "an integer of at most 32 bits")
	}
	next, _, err := head(b, off)
	return next, err
}

func skipPid(b []byte, off int) (int, error) {
	if off < len(b) && b[off] != TagPid && b[off] != TagNewPid {
		return 0, badTag(b, off, "a pid")
	}
	next, _, err := head(b, off)
	return next, err
}

// skipLocal skips a LOCAL_EXT. Only the node that wrote it knows where it ends,
// so it takes all bytes there are, and is no part of another term.
func skipLocal(b []byte, off, depth int) (int, error) {
	if depth > 0 {
		return 0, badTag(b, off, "a term other than a local one")
	}
	return len(b), nil
}
