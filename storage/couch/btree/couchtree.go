package btree

import (
	"fmt"

	"scanode/etf"
)

// This file has the reducers of CouchDB's own trees. That of the trees of sequence
// numbers and purges is Count; local documents and the documents' view keys have none.

// IDTree reduces the tree of document ids to {Live, Deleted, {size_info, Active,
// External}}: numbers of documents, and the sizes of their bodies, stored and as JSON.
// A row's value is {HighSeq, Deleted, Sizes, RevTree}. Sizes are {Active, External}; those
// of old files, which are an Active alone or missing, and old reductions are understood.
type IDTree struct{}

// docs is a reduction of an IDTree.
type docs struct {
	live, deleted    int64
	active, external int64
	unsized          bool // there are reductions from before sizes were kept: they are nil then
}

// Reduce appends the reduction of documents.
//
// Errors: ErrReduce.
func (IDTree) Reduce(dst []byte, rows []Row) ([]byte, error) {
	var d docs
	for _, r := range rows {
		if err := d.addRow(r.Value); err != nil {
			return dst, err
		}
	}
	return d.append(dst), nil
}

func (d *docs) addRow(value []byte) error {
	arity, b, err := etf.ReadTupleHeader(value)
	if err != nil || arity != 3 && arity != 4 {
		return fmt.Errorf("%w: no document", ErrReduce)
	}
	if _, b, err = etf.ReadInt64(b); err != nil {
		return fmt.Errorf("%w: sequence number of a document: %w", ErrReduce, err)
	}
	deleted, b, err := etf.ReadInt64(b)
	if err != nil {
		return fmt.Errorf("%w: deletion mark of a document: %w", ErrReduce, err)
	}
	if deleted == 1 {
		d.deleted++
	} else {
		d.live++
	}
	if arity == 3 {
		return nil
	}
	_, err = d.addSizes(b)
	return err
}

// addSizes adds sizes in any of the forms there have been: an integer, {Active, External},
// {size_info, Active, External}, nil.
func (d *docs) addSizes(b []byte) (rest []byte, err error) {
	if n, rest, err := etf.ReadInt64(b); err == nil {
		d.active += n
		return rest, nil
	}
	if name, rest, err := etf.ReadAtom(b); err == nil && string(name) == "nil" {
		d.unsized = true
		return rest, nil
	}
	arity, b, err := etf.ReadTupleHeader(b)
	if err == nil && arity == 3 {
		_, b, err = etf.ReadAtom(b)
	}
	if err != nil || arity != 2 && arity != 3 {
		return nil, fmt.Errorf("%w: no sizes", ErrReduce)
	}
	active, b, err := etf.ReadInt64(b)
	if err != nil {
		return nil, fmt.Errorf("%w: active size: %w", ErrReduce, err)
	}
	external, b, err := etf.ReadInt64(b)
	if err != nil {
		return nil, fmt.Errorf("%w: external size: %w", ErrReduce, err)
	}
	d.active += active
	d.external += external
	return b, nil
}

// Rereduce appends the sum of reductions.
//
// Errors: ErrReduce.
func (IDTree) Rereduce(dst []byte, reds [][]byte) ([]byte, error) {
	var d docs
	for _, red := range reds {
		arity, b, err := etf.ReadTupleHeader(red)
		if err != nil || arity != 2 && arity != 3 {
			return dst, fmt.Errorf("%w: no reduction of documents", ErrReduce)
		}
		live, b, err := etf.ReadInt64(b)
		if err != nil {
			return dst, fmt.Errorf("%w: number of documents: %w", ErrReduce, err)
		}
		deleted, b, err := etf.ReadInt64(b)
		if err != nil {
			return dst, fmt.Errorf("%w: number of deleted documents: %w", ErrReduce, err)
		}
		d.live += live
		d.deleted += deleted
		if arity == 2 {
			d.unsized = true
		} else if _, err := d.addSizes(b); err != nil {
			return dst, err
		}
	}
	return d.append(dst), nil
}

var sizeInfo = etf.Atom("size_info")

func (d *docs) append(dst []byte) []byte {
	dst = etf.AppendTupleHeader(dst, 3)
	dst = etf.AppendInt64(etf.AppendInt64(dst, d.live), d.deleted)
	if d.unsized {
		return append(dst, nilAtom...)
	}
	dst = etf.AppendTupleHeader(dst, 3)
	dst = appendAtom(dst, []byte(sizeInfo))
	return etf.AppendInt64(etf.AppendInt64(dst, d.active), d.external)
}

// View reduces a view to {RowCount, [Reduction], External}: the reduction of each of its
// reduce functions, and the bytes that its keys, values and reductions have as terms. The
// tree's keys are {Key, DocId}; a value {dups, [Value]} stands for as many rows.
type View struct {
	Reducers []Reducer // of the view's functions; their rows have the tree's keys
}

// Reduce appends the reduction of rows of a view.
//
// Errors: ErrReduce.
func (v View) Reduce(dst []byte, rows []Row) ([]byte, error) {
	rows, err := expand(rows)
	if err != nil {
		return dst, err
	}
	lists, err := v.each(func(r Reducer, dst []byte, _ int) ([]byte, error) { return r.Reduce(dst, rows) })
	if err != nil {
		return dst, err
	}
	external := int64(1 + len(lists))
	for _, r := range rows {
		key, err := viewKey(r.Key)
		if err != nil {
			return dst, fmt.Errorf("%w: %w", ErrReduce, err)
		}
		external += int64(1 + len(key) + 1 + len(r.Value))
	}
	return appendView(dst, int64(len(rows)), lists, external), nil
}

// each makes the list of the functions' reductions.
func (v View) each(reduce func(r Reducer, dst []byte, i int) ([]byte, error)) (list []byte, err error) {
	list = etf.AppendListHeader(list, len(v.Reducers))
	for i, r := range v.Reducers {
		if list, err = reduce(r, list, i); err != nil {
			return nil, err
		}
	}
	list = etf.AppendNil(list)
	if len(v.Reducers) > 0 && list[5] == etf.TagSmallInteger {
		list = appendCanonical(nil, list) // small integers only make a string
	}
	return list, nil
}

func appendView(dst []byte, count int64, lists []byte, external int64) []byte {
	dst = etf.AppendTupleHeader(dst, 3)
	dst = etf.AppendInt64(dst, count)
	return etf.AppendInt64(append(dst, lists...), external)
}

// expand makes rows of the values {dups, [Value]}.
func expand(rows []Row) ([]Row, error) {
	for i, r := range rows {
		if _, ok := dups(r.Value); !ok {
			continue
		}
		all := append([]Row(nil), rows[:i]...)
		for _, r := range rows[i:] {
			list, ok := dups(r.Value)
			if !ok {
				all = append(all, r)
				continue
			}
			n, b, err := elements(list)
			if err != nil {
				return nil, fmt.Errorf("%w: values of one key: %w", ErrReduce, err)
			}
			for range n {
				next, _ := scan(b, 0)
				if next < 0 {
					return nil, fmt.Errorf("%w: values of one key", ErrReduce)
				}
				all = append(all, Row{r.Key, b[:next:next]})
				b = b[next:]
			}
		}
		return all, nil
	}
	return rows, nil
}

// dups returns the list of {dups, List}.
func dups(value []byte) (list []byte, ok bool) {
	n, ok := rowHead(value, 0)
	if !ok {
		return nil, false
	}
	name, list, err := etf.ReadAtom(value[n:])
	return list, err == nil && string(name) == "dups" && len(list) > 0 && isList(list)
}

// Rereduce appends the reduction of reductions.
//
// Errors: ErrReduce.
func (v View) Rereduce(dst []byte, reds [][]byte) ([]byte, error) {
	var count, external int64
	parts := make([][][]byte, len(v.Reducers))
	for _, red := range reds {
		n, lists, ext, err := splitView(red)
		if err != nil {
			return dst, err
		}
		count += n
		external += ext
		if len(v.Reducers) == 0 {
			continue
		}
		m, b, err := elements(lists)
		if err != nil || m != len(v.Reducers) {
			return dst, fmt.Errorf("%w: reductions of another view", ErrReduce)
		}
		for i := range parts {
			next, _ := scan(b, 0)
			if next < 0 {
				return dst, fmt.Errorf("%w: reductions of a view", ErrReduce)
			}
			parts[i] = append(parts[i], b[:next:next])
			b = b[next:]
		}
	}
	lists, err := v.each(func(r Reducer, dst []byte, i int) ([]byte, error) { return r.Rereduce(dst, parts[i]) })
	if err != nil {
		return dst, err
	}
	return appendView(dst, count, lists, external), nil
}

// splitView takes a reduction apart.
func splitView(red []byte) (count int64, lists []byte, external int64, err error) {
	arity, b, err := etf.ReadTupleHeader(red)
	if err != nil || arity != 3 {
		return 0, nil, 0, fmt.Errorf("%w: no reduction of a view", ErrReduce)
	}
	if count, b, err = etf.ReadInt64(b); err != nil {
		return 0, nil, 0, fmt.Errorf("%w: number of rows: %w", ErrReduce, err)
	}
	next, _ := scan(b, 0)
	if next < 1 || !isList(b) {
		return 0, nil, 0, fmt.Errorf("%w: reductions of a view", ErrReduce)
	}
	lists = b[:next]
	if external, _, err = etf.ReadInt64(b[next:]); err != nil {
		return 0, nil, 0, fmt.Errorf("%w: external size: %w", ErrReduce, err)
	}
	return count, lists, external, nil
}
