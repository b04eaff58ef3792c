package check

import (
	"errors"

	"scanode/etf"
	"scanode/storage/couch/btree"
)

// fromOrphans saves the newest version of each document that is only in leaves to
// which nothing leads.
func (s *salvage) fromOrphans(ids *filler) error {
	again, err := open(s.fs, s.in.f.Name(), s.in.o)
	if err != nil {
		return err
	}
	found := spill{limit: s.in.o.SortRecords, dir: s.in.o.TempDir}
	defer s.in.closeSpills(&found)
	newest := int64(0)
	again.orphanLeaf = func(n *btree.Node, ptr int64) error {
		for _, row := range n.Rows {
			for _, bySeq := range []bool{false, true} {
				i, err := readInfo(row.Key, row.Value, bySeq)
				if err != nil {
					continue
				}
				newest = max(newest, i.seq)
				at := uint64(ptr) << 1
				if bySeq {
					at |= 1
				}
				// The greatest sequence of an id first.
				if err := found.add(record{s.in.hash(i.id), ^uint64(i.seq), at}); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := errors.Join(again.run(), again.close()); err != nil {
		return err
	}
	if seq, err := integer(s.header[dbUpdateSeq]); err == nil {
		newest = max(newest, seq)
	}
	before := s.result.Documents
	var done uint64
	for r, err := range found.sorted() {
		if err != nil {
			return err
		}
		if r.a == done {
			continue
		}
		leaf := int64(r.c >> 1)
		i, ok, err := s.in.infoAt(s.in.f, leaf, int64(^r.b), r.c&1 == 1, &r.a)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		done = r.a
		// Its own sequence may be another document's by now.
		newest++
		i.seq = newest
		if err := s.saveNew(ids, i, leaf); err != nil {
			return err
		}
	}
	s.result.FromOrphans = s.result.Documents - before
	s.header[dbUpdateSeq] = etf.AppendInt64(nil, newest)
	return nil
}
