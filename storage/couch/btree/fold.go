package btree

// Fold calls visit for each row of r and returns what was passed when it ended: all of
// the tree, as one reduction, if it ran to the edge, also when Start lies behind every
// row. at is the place of the row; at.Passed is what couch_btree gives to a function of
// three arguments.
//
// traverse, if not nil, is called with a child's last key and reduction before the fold
// descends to it, but not for the root and those children that lead to Start. It may
// skip the child. visit and traverse may stop the fold, which is no error.
//
// Errors: those of reading, and what the callbacks return. Rows that were visited before
// an error are no result.
func (t Tree) Fold(r Range, visit func(row Row, at *Iter) (Step, error), traverse func(lastKey, reduction []byte) (Step, error)) (Partial, error) {
	it := t.iter(r, traverse)
	for it.Next() {
		step, err := visit(it.Row(), it)
		if err != nil {
			return Partial{}, err
		}
		if step == Stop {
			it.stop()
			break
		}
	}
	if it.err != nil {
		return Partial{}, it.err
	}
	return it.Passed(), nil
}
