package btree

import "fmt"

// A Builder makes a tree of rows that come in the order of their keys. Each node is written
// once, full, and never again, but for those at the right edge, which every call of Tree
// writes as they are at the time.
//
//	level 2   [ child child … ]                     pending
//	level 1   [ leaf leaf leaf … leaf ]             pending
//	level 0   [ row row … ]                         pending
//	           └ when full it is written, and its pointer goes to the level above
//
// It keeps one list a level, of at most a node's size and a row. It is used by one
// goroutine; between its first row and Tree nobody else may write to the file.
type Builder struct {
	t      Tree
	m      *modification // under way from the first row on until Tree
	levels []level
	last   []byte // key of the last row, its own memory
	failed error
}

// level is a node that grows.
type level struct {
	rows []Row
	size int
	buf  []byte // of a leaf: what rows are in
}

// overfullBytes is the size that a node with more than one row does not exceed.
const overfullBytes = denseBytes / 4 * 5

// Builder returns a builder that goes on behind the last row of t. All of t must be in the
// file.
//
// Errors: those of reading.
func (t Tree) Builder() (*Builder, error) {
	b := &Builder{t: t}
	b.t.o.Cache = nil // what is written once is read much later
	c := b.t.Cursor()
	if !c.Last() {
		return b, c.Err()
	}
	b.last = append(b.last, c.Key()...)
	b.levels = make([]level, c.depth)
	for d := range c.depth {
		f := &c.frames[d]
		l := &b.levels[c.depth-1-d]
		count := f.len()
		if !f.leaf {
			count-- // the last child goes on growing below
		}
		for i := range count {
			l.add(f.row(i), true)
		}
	}
	return b, nil
}

// add appends a row; copied says that it must not alias what it was given in.
func (l *level) add(r Row, copied bool) {
	if copied {
		start := len(l.buf)
		l.buf = append(append(l.buf, r.Key...), r.Value...)
		end := start + len(r.Key)
		r = Row{l.buf[start:end:end], l.buf[end:len(l.buf):len(l.buf)]}
	}
	l.rows = append(l.rows, r)
	l.size += r.size()
}

func (l *level) clear() { l.rows, l.size, l.buf = l.rows[:0], 0, l.buf[:0] }

// Add adds a row behind all others. It does not keep key and value.
//
// Errors: ErrOrder when the key is not behind the last one, ErrTerm, ErrReduce, those of
// Chunks. After one the builder is of no use.
func (b *Builder) Add(key, value []byte) error {
	if b.failed == nil {
		b.failed = b.add(key, value)
	}
	return b.failed
}

func (b *Builder) add(key, value []byte) error {
	key, ok := canonical(key)
	if ok {
		value, ok = canonical(value)
	}
	if !ok {
		return fmt.Errorf("%w: row", ErrTerm)
	}
	if b.last != nil {
		c, err := b.t.o.Order(b.last, key)
		if err != nil {
			return err
		}
		if c >= 0 {
			return fmt.Errorf("%w: row that is not behind the last one", ErrOrder)
		}
	}
	if len(b.levels) == 0 {
		b.levels = append(b.levels, level{})
	}
	r := Row{key, value}
	if leaf := &b.levels[0]; leaf.size > 0 && (leaf.size >= denseBytes || leaf.size+r.size() > overfullBytes) {
		if err := b.cut(0); err != nil {
			return err
		}
		b.shorten(key)
	}
	b.levels[0].add(r, true)
	b.last = append(b.last[:0], key...)
	return nil
}

// cut writes the pending node of a level and adds its pointer above, where that may make
// another one full first.
func (b *Builder) cut(at int) error {
	entry, err := b.write(at, b.levels[at].rows)
	if err != nil {
		return err
	}
	b.levels[at].clear()
	if at+1 == len(b.levels) {
		if at+2 > MaxDepth {
			return ErrDepth
		}
		b.levels = append(b.levels, level{})
	}
	if above := &b.levels[at+1]; len(above.rows) > 1 && above.size+entry.size() > denseBytes {
		if err := b.cut(at + 1); err != nil {
			return err
		}
	}
	b.levels[at+1].add(entry, false)
	return nil
}

// shorten gives the entry of the leaf that was just cut a key that only keeps it apart from
// the next row's.
func (b *Builder) shorten(next []byte) {
	if !b.t.o.ShortKeys {
		return
	}
	above := &b.levels[1]
	entry := &above.rows[len(above.rows)-1]
	if s := separator(entry.Key, next); s != nil {
		above.size += len(s) - len(entry.Key)
		entry.Key = s
	}
}

// write writes a node and returns what stands for it.
func (b *Builder) write(at int, rows []Row) (Row, error) {
	if b.m == nil {
		b.m = newModification(&b.t, 0, false)
	}
	out, err := b.m.write(nil, at == 0, [][]Row{rows})
	if err != nil {
		return Row{}, err
	}
	return out[0], nil
}

// Tree returns the tree of all rows that were added until now. It can be read, and its root
// committed; more rows may be added after it.
//
// Errors: those of Add.
func (b *Builder) Tree() (Tree, error) {
	if b.failed != nil {
		return Tree{}, b.failed
	}
	root, err := b.root()
	if b.m != nil {
		if err == nil {
			err = b.m.publish(b.m.batch.Flush())
		}
		b.m.end()
		b.m = nil
	}
	if b.failed = err; err != nil {
		return Tree{}, err
	}
	return b.t.At(root), nil
}

// root writes what is pending of each level, with the one below, and returns the pointer to
// the uppermost.
func (b *Builder) root() (Pointer, error) {
	var below []Row // what stands for the levels below: one entry, or none
	for at := range b.levels {
		rows := append(b.levels[at].rows[:len(b.levels[at].rows):len(b.levels[at].rows)], below...)
		// A single child needs no parent, but to be as far from the root as its
		// neighbours.
		if len(rows) == 0 || at > 0 && len(rows) == 1 && b.isTop(at) {
			below = rows
			continue
		}
		entry, err := b.write(at, rows)
		if err != nil {
			return Pointer{}, err
		}
		below = []Row{entry}
	}
	if len(below) == 0 {
		return Pointer{}, nil
	}
	return ParsePointer(below[0].Value)
}

// isTop says whether nothing is pending above a level.
func (b *Builder) isTop(at int) bool {
	for _, l := range b.levels[at+1:] {
		if len(l.rows) > 0 {
			return false
		}
	}
	return true
}

// Discard ends a builder whose tree is not wanted. After Tree it does nothing.
func (b *Builder) Discard() {
	if b.m != nil {
		b.m.end()
		b.m = nil
	}
}
