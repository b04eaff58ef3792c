package btree

// BytesBefore returns about how many bytes of the file the rows before key take, which may
// be any term, and the nodes that lead to them. It reads one node a level. Subtrees whose
// size is not known, see [NoSize], count nothing.
//
// Errors: those of Get.
func (t Tree) BytesBefore(key []byte) (int64, error) {
	c := t.Cursor()
	if c.SeekGE(key); c.err != nil {
		return 0, c.err
	}
	if c.leaf == nil {
		return max(0, t.root.Size), nil
	}
	var sum int64
	for d := range c.depth {
		f := &c.frames[d]
		if f.leaf {
			return sum + f.chunk*int64(f.i)/int64(f.len()), nil
		}
		for i := range f.i {
			sum += max(0, f.child(i).Size)
		}
	}
	return sum, nil
}

// Depth returns how many levels there are from the root to the first leaf, which no other
// leaf is below of. A tree without rows has none. It reads one node a level.
//
// Errors: those of Get.
func (t Tree) Depth() (int, error) {
	c := t.Cursor()
	c.First()
	return c.depth, c.err
}
