package check

import (
	"bytes"
	"fmt"

	"scanode/etf"
	"scanode/storage/couch/btree"
)

// purges copies what either of the trees of purges has into both.
func (s *salvage) purges() error {
	if s.in.a.version <= 6 {
		return nil // a number and a list
	}
	byUUID := &filler{t: s.tree(btree.Count{})}
	for _, kind := range []treeKind{purgeSeqTree, purgeTree} {
		r, ok := s.root(kind)
		if !ok {
			continue
		}
		_, err := s.in.walk(r, func(n *btree.Node, p btree.Pointer) error {
			for _, row := range n.Rows {
				// purgeLeaf says what is wrong with one that cannot be read.
				if uuid, seq, rest, err := readPurge(row, kind == purgeSeqTree); err == nil {
					if err := byUUID.add(uuid, join(seq, rest)); err != nil {
						return err
					}
				}
			}
			return s.in.purgeLeaf(n, p.Ptr, kind == purgeSeqTree)
		})
		if err != nil {
			return err
		}
	}
	// Where they differ, the purge tree was the last to be copied.
	if err := s.in.compare("purge_tree", "purge_seq_tree", "purge sequence", &s.in.purges, &s.in.purgesBySeq); err != nil {
		return err
	}
	return s.purgesBySeq(byUUID)
}

// readPurge reads a row of the purge tree, or with bySeq of the purge seq tree. rest is
// the id and the revisions.
func readPurge(row btree.Row, bySeq bool) (uuid, seq, rest []byte, err error) {
	b := row.Value
	if err := tupleOf(&b, 3); err != nil {
		return nil, nil, nil, err
	}
	if rest, err = skip(b); err != nil {
		return nil, nil, nil, err
	}
	uuid, seq = row.Key, b[:len(b)-len(rest)]
	if bySeq {
		uuid, seq = seq, uuid
	}
	_, err = integer(seq)
	return uuid, seq, rest, err
}

// join is the tuple of three that first and rest are.
func join(first, rest []byte) []byte {
	return append(append(etf.AppendTupleHeader(nil, 3), first...), rest...)
}

// purgesBySeq builds the purge seq tree from the new purge tree. Of two purges of one
// sequence, which only damage makes, the second is taken out of that.
func (s *salvage) purgesBySeq(byUUID *filler) error {
	if err := byUUID.flush(); err != nil {
		return err
	}
	order := spill{limit: s.in.o.SortRecords, dir: s.in.o.TempDir}
	defer s.in.closeSpills(&order)
	_, err := byUUID.t.Verify(btree.Check{Visit: func(v btree.Visit) error {
		if !v.Leaf {
			return nil
		}
		for _, row := range v.Rows {
			uuid, seq, _, err := readPurge(row, false)
			if err != nil {
				return err
			}
			n, _ := integer(seq)
			if err := order.add(record{uint64(n), s.in.hash(uuid), uint64(v.Ptr)}); err != nil {
				return err
			}
		}
		return nil
	}})
	if err != nil {
		return err
	}
	bySeq := &filler{t: s.tree(btree.Count{})}
	var twice [][]byte
	last := ^uint64(0)
	var n btree.Node
	for r, err := range order.sorted() {
		if err == nil {
			err = n.Read(s.out, int64(r.c), maxNodeBytes)
		}
		if err != nil {
			return err
		}
		for _, row := range n.Rows {
			uuid, seq, rest, err := readPurge(row, false)
			if err != nil {
				return err
			}
			if s.in.hash(uuid) != r.b {
				continue
			}
			if r.a == last {
				s.in.rep.damage(Finding{Text: fmt.Sprintf("purge %s has the sequence of another one, %d", text(uuid), r.a), Offset: -1})
				twice = append(twice, bytes.Clone(uuid))
			} else if err := bySeq.add(seq, join(uuid, rest)); err != nil {
				return err
			}
			last = r.a
			break
		}
	}
	if byUUID.t, err = byUUID.t.AddRemove(nil, twice); err != nil {
		return err
	}
	s.header[dbPurgeTree] = byUUID.t.Root().Append(nil)
	s.header[dbPurgeSeqTree], err = bySeq.root()
	return err
}
