package check

import (
	"scanode/etf"
)

// revision is one of a document.
type revision struct {
	pos     int64
	depth   int    // below the root of its branch
	term    []byte // its id, encoded
	id      []byte // as it is: 16 bytes, or whatever a client has made up
	leaf    bool
	body    bool // it has one: the following count
	deleted bool
	ptr     int64
	seq     int64
	sizes   []byte // {Active, External}, an integer, or nil in old files
	atts    []byte // [{[{Ptr, Len}], DiskLen}], or nil in old files
}

// revisions calls visit for each revision of the tree that begins term,
//
//	[{StartPos, {RevId, Value, [{RevId, Value, […]}]}}]
//
// Value is [] or {Deleted, BodyPtr, Seq, Sizes, AttSizes}; older ones are shorter.
// It keeps the path itself: trees are as deep as the revs limit, or as somebody
// wants them to be.
func revisions(term []byte, visit func(revision) error) error {
	n, b, err := etf.ReadListHeader(term)
	for ; n > 0 && err == nil; n-- {
		if err = tupleOf(&b, 2); err != nil {
			return err
		}
		var pos int64
		if pos, b, err = etf.ReadInt64(b); err != nil {
			return err
		}
		b, err = branch(b, pos, visit)
	}
	return err
}

// level is a list of siblings on the way to a revision.
type level struct{ left int }

// branch reads one node and all below and returns what follows.
func branch(b []byte, start int64, visit func(revision) error) ([]byte, error) {
	levels := []level{{1}}
	for len(levels) > 0 {
		top := &levels[len(levels)-1]
		if top.left == 0 {
			levels = levels[:len(levels)-1]
			if len(levels) == 0 {
				return b, nil
			}
			if len(b) == 0 || b[0] != etf.TagNil {
				return nil, shape("an improper list of revisions")
			}
			b = b[1:]
			continue
		}
		top.left--
		r := revision{pos: start + int64(len(levels)-1), depth: len(levels) - 1}
		var children int
		var err error
		if children, b, err = node(b, &r); err != nil {
			return nil, err
		}
		if err := visit(r); err != nil {
			return nil, err
		}
		if children > 0 {
			levels = append(levels, level{children})
		}
	}
	return b, nil
}

// node reads {RevId, Value, Children} as far as the first child.
func node(b []byte, r *revision) (children int, rest []byte, err error) {
	if err := tupleOf(&b, 3); err != nil {
		return 0, nil, err
	}
	if rest, err = skip(b); err != nil {
		return 0, nil, err
	}
	r.term = b[:len(b)-len(rest)]
	if r.id, _, err = etf.ReadBinary(b); err != nil {
		r.id = []byte(text(r.term))
	}
	b = rest
	if rest, err = skip(b); err != nil {
		return 0, nil, err
	}
	if err := r.value(b[:len(b)-len(rest)]); err != nil {
		return 0, nil, err
	}
	children, rest, err = etf.ReadListHeader(rest)
	r.leaf = children == 0
	return children, rest, err
}

// value reads what is known of a revision beside its number.
func (r *revision) value(term []byte) error {
	if n, _, err := etf.ReadListHeader(term); err == nil && n == 0 {
		return nil
	}
	fields, err := tuple(term, 3, 5)
	if err != nil {
		return err
	}
	r.body = true
	if r.deleted, err = flag(fields[0]); err != nil {
		return err
	}
	if r.ptr, err = integer(fields[1]); err != nil {
		// nil: written by a replicator that had none.
		if !isAtom(fields[1], "nil") && !isAtom(fields[1], "undefined") {
			return err
		}
		r.body = false
	}
	if r.seq, err = integer(fields[2]); err != nil {
		return err
	}
	if len(fields) > 3 {
		r.sizes = fields[3]
	}
	if len(fields) == 5 {
		r.atts = fields[4]
	}
	return nil
}

// flag reads 0, 1, or an atom of old files.
func flag(term []byte) (bool, error) {
	if n, err := integer(term); err == nil && (n == 0 || n == 1) {
		return n == 1, nil
	}
	if isAtom(term, "true") || isAtom(term, "false") {
		return isAtom(term, "true"), nil
	}
	return false, shape("%s is no flag", text(term))
}

// tupleOf reads the header of a tuple of n.
func tupleOf(b *[]byte, n int) error {
	arity, rest, err := etf.ReadTupleHeader(*b)
	if err != nil {
		return err
	}
	if arity != n {
		return shape("a tuple of %d, not of %d", arity, n)
	}
	*b = rest
	return nil
}

// info is a row of the id tree or of the seq tree.
type info struct {
	id      []byte
	seq     int64
	deleted bool
	sizes   []byte // {Active, External}, or in old files an integer
	tree    []byte // of revisions
	same    []byte // what both trees have alike: from deleted to the end
}

// readInfo reads a row of the id tree, or with bySeq of the seq tree.
func readInfo(key, value []byte, bySeq bool) (i info, err error) {
	b := value
	if err := tupleOf(&b, 4); err != nil {
		return i, err
	}
	first := b
	if b, err = skip(b); err != nil {
		return i, err
	}
	first = first[:len(first)-len(b)]
	id, seq := key, first
	if bySeq {
		id, seq = first, key
	}
	if i.id, _, err = etf.ReadBinary(id); err != nil {
		return i, err
	}
	if i.seq, err = integer(seq); err != nil {
		return i, err
	}
	i.same = b
	if i.deleted, err = flag(b); err != nil {
		return i, err
	}
	if b, err = skip(b); err != nil {
		return i, err
	}
	i.sizes = b
	if b, err = skip(b); err != nil {
		return i, err
	}
	i.sizes = i.sizes[:len(i.sizes)-len(b)]
	i.tree = b
	return i, nil
}
