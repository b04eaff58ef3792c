package check

import (
	"fmt"

	"scanode/etf"
	"scanode/storage/couch/btree"
)

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: %s", btree.ErrReduction, fmt.Sprintf(format, args...))
}

// checkReduction holds the reduction that a parent has of n against n's rows or
// children. Of views' own reductions it knows nothing: their functions are not in
// the file.
func checkReduction(kind treeKind, n *btree.Node, stored []byte) error {
	switch kind {
	case idTree:
		return checkIDReduction(n, stored)
	case seqTree, purgeTree, purgeSeqTree, storeTree:
		return checkCount(n, stored)
	case localTree, viewIDTree:
		if len(stored) != 1 || stored[0] != etf.TagNil {
			return wrong("%s stored, [] found", text(stored))
		}
	case viewTree:
		return checkViewReduction(n, stored)
	}
	return nil
}

// children calls visit with the reduction of each child.
func children(n *btree.Node, visit func(red []byte) error) error {
	for _, r := range n.Rows {
		p, err := btree.ParsePointer(r.Value)
		if err != nil {
			return nil // reported when it is gone to
		}
		if err := visit(p.Reduction); err != nil {
			return err
		}
	}
	return nil
}

func checkCount(n *btree.Node, stored []byte) error {
	have, err := integer(stored)
	if err != nil {
		return wrong("%s stored", text(stored))
	}
	want := int64(len(n.Rows))
	if !n.Leaf {
		want = 0
		err := children(n, func(red []byte) error {
			c, err := integer(red)
			want += c
			return err
		})
		if err != nil {
			return wrong("child: %v", err)
		}
	}
	if have != want {
		return wrong("%d stored, %d found", have, want)
	}
	return nil
}

// tally is a reduction of the id tree. Old files have not all of it.
type tally struct {
	live, deleted    int64
	active, external int64
	hasActive        bool
	hasExternal      bool
}

func (t *tally) add(u tally) {
	t.live += u.live
	t.deleted += u.deleted
	t.active += u.active
	t.external += u.external
	t.hasActive = t.hasActive && u.hasActive
	t.hasExternal = t.hasExternal && u.hasExternal
}

// sizes reads Active, {Active, External}, {size_info, Active, External}.
func (t *tally) sizes(term []byte) error {
	if n, err := integer(term); err == nil {
		t.active, t.hasActive = n, true
		return nil
	}
	if isAtom(term, "nil") || isAtom(term, "undefined") {
		return nil
	}
	fields, err := tuple(term, 2, 3)
	if err != nil {
		return err
	}
	fields = fields[len(fields)-2:]
	if t.active, err = integer(fields[0]); err != nil {
		return err
	}
	if t.external, err = integer(fields[1]); err != nil {
		return err
	}
	t.hasActive, t.hasExternal = true, true
	return nil
}

func readTally(red []byte) (t tally, err error) {
	fields, err := tuple(red, 2, 3)
	if err != nil {
		return t, err
	}
	if t.live, err = integer(fields[0]); err != nil {
		return t, err
	}
	if t.deleted, err = integer(fields[1]); err != nil || len(fields) == 2 {
		return t, err
	}
	return t, t.sizes(fields[2])
}

func checkIDReduction(n *btree.Node, stored []byte) error {
	have, err := readTally(stored)
	if err != nil {
		return wrong("%s stored", text(stored))
	}
	want := tally{hasActive: true, hasExternal: true}
	if n.Leaf {
		for _, r := range n.Rows {
			i, err := readInfo(r.Key, r.Value, false)
			if err != nil {
				return nil // reported with the row
			}
			t := tally{live: 1}
			if i.deleted {
				t = tally{deleted: 1}
			}
			if err := t.sizes(i.sizes); err != nil {
				return nil
			}
			want.add(t)
		}
	} else {
		err := children(n, func(red []byte) error {
			t, err := readTally(red)
			want.add(t)
			return err
		})
		if err != nil {
			return wrong("child: %v", err)
		}
	}
	if have.live != want.live || have.deleted != want.deleted ||
		have.hasActive && want.hasActive && have.active != want.active ||
		have.hasExternal && want.hasExternal && have.external != want.external {
		return wrong("%s stored, {%d,%d,{size_info,%d,%d}} found", text(stored), want.live, want.deleted, want.active, want.external)
	}
	return nil
}

// viewReduction is {Rows, Reductions, ExternalBytes}; old files have not the last.
type viewReduction struct {
	rows, external int64
	functions      int    // how many reductions
	list           []byte // of them
	hasExternal    bool
}

func readViewReduction(red []byte) (v viewReduction, err error) {
	fields, err := tuple(red, 2, 3)
	if err != nil {
		return v, err
	}
	if v.rows, err = integer(fields[0]); err != nil {
		return v, err
	}
	v.list = fields[1]
	if len(v.list) > 0 && v.list[0] == etf.TagString {
		if len(v.list) < 3 {
			return v, shape("a list")
		}
		v.functions = len(v.list) - 3
	} else if v.functions, _, err = etf.ReadListHeader(v.list); err != nil {
		return v, err
	}
	if len(fields) == 3 {
		v.hasExternal = true
		v.external, err = integer(fields[2])
	}
	return v, err
}

func checkViewReduction(n *btree.Node, stored []byte) error {
	have, err := readViewReduction(stored)
	if err != nil {
		return wrong("%s stored", text(stored))
	}
	want := viewReduction{hasExternal: true, functions: have.functions}
	if n.Leaf {
		want.external = termSize(have.list)
		for _, r := range n.Rows {
			rows, size, ok := viewRow(r)
			want.rows += rows
			want.external += size
			want.hasExternal = want.hasExternal && ok
		}
	} else {
		err := children(n, func(red []byte) error {
			v, err := readViewReduction(red)
			want.rows += v.rows
			want.external += v.external
			want.hasExternal = want.hasExternal && v.hasExternal
			if v.functions != want.functions {
				want.functions = -1
			}
			return err
		})
		if err != nil {
			return wrong("child: %v", err)
		}
	}
	switch {
	case have.rows != want.rows:
		return wrong("%d rows stored, %d found", have.rows, want.rows)
	case have.hasExternal && want.hasExternal && have.external != want.external:
		return wrong("external size %d stored, %d found", have.external, want.external)
	case want.functions < 0:
		return wrong("children have not all %d reductions", have.functions)
	}
	return nil
}

// termSize is what erlang:external_size says of an encoded term.
func termSize(term []byte) int64 { return int64(len(term)) + 1 }

// viewRow returns how many rows {Key, DocId} -> Value, or -> {dups, [Value]}, stands
// for and what they count for in the external size, if that can be told.
func viewRow(r btree.Row) (rows, size int64, ok bool) {
	rows = 1
	values := [][]byte{r.Value}
	if fields, err := tuple(r.Value, 2, 2); err == nil && isAtom(fields[0], "dups") {
		n, err := anyList(fields[1])
		if err != nil {
			return 1, 0, false
		}
		rows, values = int64(len(n)), n
	}
	key, err := tuple(r.Key, 2, 2)
	if err != nil {
		return rows, 0, false
	}
	if inner, err := tuple(key[0], 3, 3); err == nil && isAtom(inner[0], "p") {
		return rows, 0, false // of a partitioned database
	}
	for _, v := range values {
		size += termSize(key[0]) + termSize(v)
	}
	return rows, size, true
}

// anyList is list, which also takes a list of bytes.
func anyList(term []byte) ([][]byte, error) {
	if len(term) > 3 && term[0] == etf.TagString {
		var out [][]byte
		for _, v := range term[3:] {
			out = append(out, []byte{etf.TagSmallInteger, v})
		}
		return out, nil
	}
	return list(term)
}
