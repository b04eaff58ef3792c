package etf

import "encoding/binary"

// walkNewFun walks a NEW_FUN_EXT:
//
//	112 size:32 arity:8 uniq:128 index:32 free:32 module oldindex olduniq pid term*free
//
// The size covers itself and everything after it. The BEAM does not look at it,
// so a size that differs from the structure would let two readers disagree on
// where the term ends: it is refused.
func walkNewFun(b []byte, off, depth int, how strictness) (int, error) {
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
	next, err := walkAtom(b[:end], off+fixed, how)
	for range 2 {
		if err == nil {
			next, err = skipSmall(b[:end], next)
		}
	}
	if err == nil {
		next, err = walkPid(b[:end], next, how)
	}
	if err == nil {
		next, err = walkFree(b[:end], next, free, depth, how)
	}
	if err == nil && next != end {
		err = badValue(off+1, "size of a fun differs from its parts")
	}
	return next, err
}

// walkFun walks a FUN_EXT: 117 free:32 pid module index uniq term*free. No
// release since OTP 23 reads it.
func walkFun(b []byte, off, depth int, how strictness) (int, error) {
	if how == sendable {
		return 0, badTag(b, off, "a term that is still in use")
	}
	if len(b)-off < 5 {
		return 0, truncated(len(b))
	}
	free := binary.BigEndian.Uint32(b[off+1:])
	next, err := walkPid(b, off+5, how)
	if err == nil {
		next, err = walkAtom(b, next, how)
	}
	for range 2 {
		if err == nil {
			next, err = skipSmall(b, next)
		}
	}
	if err == nil {
		next, err = walkFree(b, next, free, depth, how)
	}
	return next, err
}

func walkFree(b []byte, off int, free uint32, depth int, how strictness) (int, error) {
	off, n, err := count(b, off, uint64(free))
	if err != nil {
		return 0, err
	}
	return walkParts(b, off, n, depth, how)
}

func walkAtom(b []byte, off int, how strictness) (int, error) {
	next, err := skipAtom(b, off)
	if err == nil && how != structure {
		err = checkAtom(b, off, next)
	}
	return next, err
}

func walkPid(b []byte, off int, how strictness) (int, error) {
	if off < len(b) && b[off] != TagPid && b[off] != TagNewPid {
		return 0, badTag(b, off, "a pid")
	}
	return walk(b, off, 0, how)
}

// skipSmall skips an integer of at most 32 bits.
func skipSmall(b []byte, off int) (int, error) {
	if off < len(b) && b[off] != TagSmallInteger && b[off] != TagInteger {
		return 0, badTag(b, off, "an integer of at most 32 bits")
	}
	next, _, err := head(b, off)
	return next, err
}

// walkLocal walks a LOCAL_EXT. Only the node that wrote it knows where it ends,
// so it takes all bytes there are, and is no part of another term.
func walkLocal(b []byte, off, depth int, how strictness) (int, error) {
	if depth > 0 || how == sendable {
		return 0, badTag(b, off, "a term other than a local one")
	}
	return len(b), nil
}

// fun is what Erlang orders funs by: fields of a NEW_FUN_EXT.
type fun struct {
	module       []byte
	index        uint32
	oldUniq      int64
	free         int // number of free variables
	freeOff, end int
}

// readFun reads the NEW_FUN_EXT at off.
func readFun(b []byte, off int) (f fun, err error) {
	if f.end, err = walkNewFun(b, off, 0, structure); err != nil {
		return fun{}, err
	}
	f.index = binary.BigEndian.Uint32(b[off+22:])
	f.free = int(binary.BigEndian.Uint32(b[off+26:]))
	module, rest, err := ReadAtom(b[off+30 : f.end])
	if err != nil {
		return fun{}, err
	}
	f.module = module
	if _, rest, err = ReadInt64(rest); err != nil { // the old index orders nothing
		return fun{}, err
	}
	if f.oldUniq, rest, err = ReadInt64(rest); err != nil {
		return fun{}, err
	}
	if rest, err = Skip(rest); err != nil { // nor does the pid
		return fun{}, err
	}
	f.freeOff = f.end - len(rest)
	return f, nil
}
