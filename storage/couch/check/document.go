package check

import (
	"encoding/hex"
	"fmt"
	"hash/maphash"
	"sort"
	"strconv"

	"scanode/etf"
	"scanode/storage/couch/btree"
)

// rowDamage reports a row of a leaf that is not what rows of its tree are.
func (in *inspection) rowDamage(tree string, ptr int64, row btree.Row, err error) {
	in.rep.damage(Finding{Text: fmt.Sprintf("row %s: %v", text(row.Key), err), Offset: ptr, Tree: tree})
}

// idLeaf takes a leaf of the id tree.
func (in *inspection) idLeaf(n *btree.Node, p btree.Pointer) error {
	for _, row := range n.Rows {
		i, err := readInfo(row.Key, row.Value, false)
		if err == nil {
			err = in.document(i, p.Ptr)
		}
		if err != nil && in.failed == nil {
			in.rowDamage("id_tree", p.Ptr, row, err)
		}
	}
	return in.failed
}

// document looks at a row of the id tree and remembers where its bodies are.
func (in *inspection) document(i info, leaf int64) error {
	d := in.rep.Documents
	if i.deleted {
		d.DelDocCount++
	} else {
		d.DocCount++
	}
	d.DocInfoCount++
	in.keep(&in.byID, record{uint64(i.seq), in.hash(i.id, i.same), uint64(leaf)})

	live, dead := 0, 0
	var newest int64
	err := revisions(i.tree, func(r revision) error {
		d.Revisions++
		if r.leaf {
			d.LeafRevisions++
			if r.deleted {
				dead++
			} else if r.body {
				live++
			}
			newest = max(newest, r.seq)
		}
		if !r.body {
			return nil
		}
		use := useOldBody
		if r.leaf {
			use = useBody
		}
		in.keep(&in.bodies, record{uint64(r.ptr), uint64(use), uint64(leaf)})
		return nil
	})
	switch {
	case err != nil:
		return fmt.Errorf("revision tree: %w", err)
	case newest > i.seq:
		in.rep.damage(Finding{Text: fmt.Sprintf("document %s: a revision of sequence %d, its own is %d", quote(i.id), newest, i.seq), Offset: leaf, Tree: "id_tree"})
	case in.a.updateSeq != nil && i.seq > *in.a.updateSeq:
		in.rep.damage(Finding{Text: fmt.Sprintf("document %s: sequence %d, the header has %d", quote(i.id), i.seq, *in.a.updateSeq), Offset: leaf, Tree: "id_tree"})
	case live+dead > 0 && i.deleted != (live == 0):
		in.rep.damage(Finding{Text: fmt.Sprintf("document %s: deleted is %v with %d leaf revisions that are not", quote(i.id), i.deleted, live), Offset: leaf, Tree: "id_tree"})
	}
	in.conflicts(i, live, dead)
	return nil
}

// maxListed bounds the revisions that are listed of all documents with conflicts.
const maxListed = 1 << 18

// conflicts counts a document's leaves beside the winner.
func (in *inspection) conflicts(i info, live, dead int) {
	d := in.rep.Documents
	switch {
	case live > 0:
		d.Conflicts += int64(live - 1)
		d.DeletedConflicts += int64(dead)
	case dead > 0:
		d.DeletedConflicts += int64(dead - 1)
	}
	if live < 2 {
		return
	}
	d.ConflictedDocs++
	if len(in.rep.Conflicted) >= in.o.Conflicts || in.listed >= maxListed {
		return
	}
	var leaves []revision
	_ = revisions(i.tree, func(r revision) error { // it was read without an error before
		if r.leaf && r.body && !r.deleted {
			r.id = append([]byte(nil), r.id...)
			leaves = append(leaves, r)
		}
		return nil
	})
	sort.Slice(leaves, func(i, j int) bool {
		if leaves[i].pos != leaves[j].pos {
			return leaves[i].pos > leaves[j].pos
		}
		return string(leaves[i].id) > string(leaves[j].id)
	})
	in.listed += len(leaves)
	c := Conflicted{ID: string(i.id)}
	for _, r := range leaves {
		c.Revs = append(c.Revs, r.String())
	}
	in.rep.Conflicted = append(in.rep.Conflicted, c)
}

// String is the revision as CouchDB spells it: "2-a1b2…".
func (r revision) String() string {
	if len(r.id) == 16 {
		return strconv.FormatInt(r.pos, 10) + "-" + hex.EncodeToString(r.id)
	}
	return strconv.FormatInt(r.pos, 10) + "-" + string(r.id)
}

// quote is an id for people.
func quote(id []byte) string {
	if len(id) > 200 {
		return strconv.Quote(string(id[:200])) + "…"
	}
	return strconv.Quote(string(id))
}

// seqLeaf takes a leaf of the seq tree.
func (in *inspection) seqLeaf(n *btree.Node, p btree.Pointer) error {
	for _, row := range n.Rows {
		i, err := readInfo(row.Key, row.Value, true)
		if err != nil {
			in.rowDamage("seq_tree", p.Ptr, row, err)
			continue
		}
		in.keep(&in.bySeq, record{uint64(i.seq), in.hash(i.id, i.same), uint64(p.Ptr)})
		if !in.compacting {
			continue
		}
		if err := in.document(i, p.Ptr); err != nil {
			in.rowDamage("seq_tree", p.Ptr, row, err)
		}
	}
	return in.failed
}

// localLeaf takes a leaf of the tree of local documents.
func (in *inspection) localLeaf(n *btree.Node, p btree.Pointer) error {
	for _, row := range n.Rows {
		if _, _, err := etf.ReadBinary(row.Key); err != nil {
			in.rowDamage("local_tree", p.Ptr, row, err)
		} else if _, err := tuple(row.Value, 2, 2); err != nil {
			in.rowDamage("local_tree", p.Ptr, row, err)
		}
	}
	return nil
}

// purgeLeaf takes a leaf of either tree of purges: UUID -> {Seq, DocId, Revs}, or
// with bySeq Seq -> {UUID, DocId, Revs}.
func (in *inspection) purgeLeaf(n *btree.Node, ptr int64, bySeq bool) error {
	tree, to := "purge_tree", &in.purges
	if bySeq {
		tree, to = "purge_seq_tree", &in.purgesBySeq
	}
	for _, row := range n.Rows {
		uuid, seq, rest, err := readPurge(row, bySeq)
		if err != nil {
			in.rowDamage(tree, ptr, row, err)
			continue
		}
		number, _ := integer(seq) // it is one
		in.keep(to, record{uint64(number), in.hash(uuid, rest), uint64(ptr)})
		if bySeq {
			in.lastPurge = max(in.lastPurge, number)
		}
	}
	return in.failed
}

// viewIDLeaf takes a leaf of a view file's id tree.
func (in *inspection) viewIDLeaf(n *btree.Node, p btree.Pointer) error {
	for _, row := range n.Rows {
		keys, err := list(row.Value)
		for _, k := range keys {
			var pair [][]byte
			if pair, err = tuple(k, 2, 2); err != nil {
				break
			}
			in.keep(&in.byID, record{in.hash(pair[0], unpartitioned(pair[1]), row.Key), 0, uint64(p.Ptr)})
		}
		if err != nil {
			in.rowDamage("id_tree", p.Ptr, row, err)
		}
	}
	return in.failed
}

// viewLeaf takes a leaf of the view of this number.
func (in *inspection) viewLeaf(n *btree.Node, ptr int64, view int) error {
	number := etf.AppendInt64(nil, int64(view))
	for _, row := range n.Rows {
		pair, err := tuple(row.Key, 2, 2)
		if err != nil {
			in.rowDamage("view_tree", ptr, row, err)
			continue
		}
		in.keep(&in.bySeq, record{in.hash(number, unpartitioned(pair[0]), pair[1]), 0, uint64(ptr)})
	}
	return in.failed
}

// unpartitioned is the Key in {p, Partition, Key}.
func unpartitioned(key []byte) []byte {
	if fields, err := tuple(key, 3, 3); err == nil && isAtom(fields[0], "p") {
		return fields[2]
	}
	return key
}

// hash is of several terms. It is not the same in another process.
func (in *inspection) hash(terms ...[]byte) uint64 {
	var h maphash.Hash
	h.SetSeed(in.seed)
	for _, t := range terms {
		h.Write(t)
		h.WriteByte(0)
	}
	return h.Sum64()
}

// keep adds r to s. A spill that cannot be written ends the inspection: see failed.
func (in *inspection) keep(s *spill, r record) {
	if in.failed == nil {
		in.failed = s.add(r)
	}
}
