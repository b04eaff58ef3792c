package check

import (
	"errors"
	"fmt"

	"scanode/etf"
	"scanode/storage/couch/btree"
	"scanode/storage/couch/file"
)

// database copies a database.
func (s *salvage) database() error {
	s.result.FileType = TypeDatabase
	s.in.rep.Documents = &Documents{}
	for len(s.header) < dbFields {
		s.header = append(s.header, missingField(len(s.header), s.in.a.version))
	}
	if len(s.header) > dbFields {
		return s.refuse("its header has %d fields, known are %d", len(s.header), dbFields)
	}
	ids, err := s.documents()
	if err != nil {
		return err
	}
	if err := s.seqTree(ids); err != nil {
		return err
	}
	if err := s.localDocs(); err != nil {
		return err
	}
	if err := s.purges(); err != nil {
		return err
	}
	if err := s.terms(); err != nil {
		return err
	}
	return s.commit()
}

// missingField is what CouchDB takes for a field that an older header has not.
func missingField(i int, version int64) []byte {
	switch i {
	case dbPurgeTree:
		if version <= 6 {
			return etf.AppendInt64(nil, 0)
		}
	case dbCompacted:
		return etf.AppendInt64(nil, 0)
	case dbRevsLimit, dbPurgeInfos:
		return etf.AppendInt64(nil, 1000)
	case dbUUID, dbEpochs, dbProps, dbTimeSeq:
		return appendAtom(nil, "undefined")
	}
	return appendAtom(nil, "nil")
}

// appendAtom appends an atom as CouchDB writes it.
func appendAtom(dst []byte, name string) []byte {
	return append(append(dst, etf.TagAtom, 0, byte(len(name))), name...)
}

// newDatabaseHeader is that of a database of which no header is left.
func newDatabaseHeader() [][]byte {
	header := [][]byte{appendAtom(nil, "db_header"), etf.AppendInt64(nil, newestVersion), etf.AppendInt64(nil, 0)}
	for len(header) < dbFields {
		header = append(header, missingField(len(header), newestVersion))
	}
	return header
}

// root returns the header's root of this kind.
func (s *salvage) root(kind treeKind) (root, bool) {
	for _, r := range s.in.a.roots {
		if r.kind == kind {
			return r, true
		}
	}
	return root{}, false
}

// eachRow walks the header's tree of this kind, if it has one. key and value are valid
// during the call.
func (s *salvage) eachRow(kind treeKind, visit func(row btree.Row, leaf int64) error) (*TreeInfo, error) {
	r, ok := s.root(kind)
	if !ok {
		return &TreeInfo{}, nil
	}
	return s.in.walk(r, func(n *btree.Node, p btree.Pointer) error {
		for _, row := range n.Rows {
			if err := visit(row, p.Ptr); err != nil {
				return err
			}
		}
		return s.in.failed
	})
}

// documents copies the documents and returns the new id tree.
func (s *salvage) documents() (*filler, error) {
	ids := &filler{t: s.tree(btree.IDTree{})}
	t, err := s.eachRow(idTree, func(row btree.Row, leaf int64) error {
		i, err := readInfo(row.Key, row.Value, false)
		if err != nil {
			s.in.rowDamage("id_tree", leaf, row, err)
			return nil
		}
		readable, err := s.save(ids, i, leaf)
		if readable {
			s.in.keep(&s.in.byID, record{uint64(i.seq), s.in.hash(i.id, i.same), uint64(leaf)})
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := s.fromSeqTree(ids, t.Broken > 0); err != nil {
		return nil, err
	}
	if s.o.Orphans {
		if err := s.fromOrphans(ids); err != nil {
			return nil, err
		}
	}
	return ids, ids.flush()
}

// save copies a document of the leaf at leaf into the new id tree. readable says
// whether its row was one.
func (s *salvage) save(ids *filler, i info, leaf int64) (readable bool, err error) {
	value, err := s.document(i)
	switch {
	case err != nil && damagingTerm(err):
		s.in.rep.damage(Finding{Text: fmt.Sprintf("document %s: %s", quote(i.id), reason(err)), Offset: leaf})
		return false, nil
	case err != nil || value == nil:
		return true, err
	}
	s.result.Documents++
	return true, ids.add(etf.AppendBinary(nil, i.id), value)
}

// has says whether the new id tree has the document.
func (f *filler) has(id []byte) (bool, error) {
	if err := f.flush(); err != nil {
		return false, err
	}
	_, found, err := f.t.Get(etf.AppendBinary(nil, id))
	return found, err
}

// damagingTerm says whether err is of the bytes of a row.
func damagingTerm(err error) bool {
	for _, kind := range []error{errShape, etf.ErrTruncated, etf.ErrTag, etf.ErrLimit, etf.ErrRange, etf.ErrValue, etf.ErrCompressed} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// fromSeqTree saves the documents that only the seq tree still has, and says where
// the trees do not agree. Where they differ nobody knows which one is right: what the id
// tree has is in the new file. broken says that the id tree has lost rows.
func (s *salvage) fromSeqTree(ids *filler, broken bool) error {
	t, err := s.eachRow(seqTree, func(row btree.Row, leaf int64) error {
		if i, err := readInfo(row.Key, row.Value, true); err == nil {
			s.in.keep(&s.in.bySeq, record{uint64(i.seq), s.in.hash(i.id, i.same), uint64(leaf)})
		}
		return nil
	})
	if err != nil {
		return err
	}
	before := s.result.Documents
	for m, err := range unmatched(&s.in.byID, &s.in.bySeq) {
		if err != nil {
			return err
		}
		said := ""
		switch {
		case m.left != nil && m.right != nil:
			said = "differs in the id tree and the seq tree; the former was taken"
		case m.left != nil && t.Broken == 0:
			said = "is not in the seq tree"
		case m.left == nil && !broken:
			said = "is not in the id tree"
		}
		r := m.right
		if r == nil {
			r = m.left
		}
		if said != "" {
			s.in.rep.damage(Finding{Text: fmt.Sprintf("the document of sequence %d %s", r.a, said), Offset: int64(r.c)})
		}
		if m.left != nil {
			continue
		}
		i, ok, err := s.in.infoAt(s.in.f, int64(r.c), int64(r.a), true, nil)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if err := s.saveNew(ids, i, int64(r.c)); err != nil {
			return err
		}
	}
	s.result.FromSeqTree = s.result.Documents - before
	return nil
}

// saveNew saves a document unless the new id tree has it already.
func (s *salvage) saveNew(ids *filler, i info, leaf int64) error {
	if there, err := ids.has(i.id); there || err != nil {
		return err
	}
	_, err := s.save(ids, i, leaf)
	return err
}

// infoAt returns the document of this sequence in the leaf at ptr of f, which is of
// the id tree, or with bySeq of the seq tree. With hash it must have the id with that
// hash as well.
func (in *inspection) infoAt(f *file.File, ptr, seq int64, bySeq bool, hash *uint64) (info, bool, error) {
	var n btree.Node
	if err := n.Read(f, ptr, maxNodeBytes); err != nil {
		return info{}, false, err
	}
	for _, row := range n.Rows {
		i, err := readInfo(row.Key, row.Value, bySeq)
		if err == nil && i.seq == seq && (hash == nil || in.hash(i.id) == *hash) {
			return i, true, nil
		}
	}
	return info{}, false, nil
}

// seqTree builds the new seq tree from the new id tree, in order of sequences.
func (s *salvage) seqTree(ids *filler) error {
	bySeq := spill{limit: s.in.o.SortRecords, dir: s.in.o.TempDir}
	defer s.in.closeSpills(&bySeq)
	newest, err := integer(s.header[dbUpdateSeq])
	if err != nil {
		newest = 0
	}
	_, err = ids.t.Verify(btree.Check{Visit: func(v btree.Visit) error {
		if !v.Leaf {
			return nil
		}
		for _, row := range v.Rows {
			i, err := readInfo(row.Key, row.Value, false)
			if err != nil {
				return err
			}
			newest = max(newest, i.seq)
			if err := bySeq.add(record{uint64(i.seq), s.in.hash(i.id), uint64(v.Ptr)}); err != nil {
				return err
			}
		}
		return nil
	}})
	if err != nil {
		return err
	}
	seqs := &filler{t: s.tree(btree.Count{})}
	last := ^uint64(0)
	var again []info // documents of a sequence that another one has: only damage makes that
	for r, err := range bySeq.sorted() {
		if err != nil {
			return err
		}
		i, ok, err := s.in.infoAt(s.out, int64(r.c), int64(r.a), false, &r.b)
		if err != nil || !ok {
			return errors.Join(err, s.refuse("sequence %d is gone", r.a))
		}
		if r.a == last {
			if len(again) == maxAgain {
				return s.refuse("more than %d documents have the sequences of others", maxAgain)
			}
			again = append(again, i)
			continue
		}
		last = r.a
		if err := seqs.addInfo(i); err != nil {
			return err
		}
	}
	for _, i := range again {
		s.in.rep.damage(Finding{Text: fmt.Sprintf("document %s has sequence %d, and so has another one; it got a new one", quote(i.id), i.seq), Offset: -1})
		newest++
		i.seq = newest
		if err := seqs.addInfo(i); err != nil {
			return err
		}
		row := etf.AppendInt64(etf.AppendTupleHeader(nil, 4), i.seq)
		if err := ids.add(etf.AppendBinary(nil, i.id), append(row, i.same...)); err != nil {
			return err
		}
	}
	if err := ids.flush(); err != nil {
		return err
	}
	s.header[dbIDTree] = ids.t.Root().Append(nil)
	s.header[dbUpdateSeq] = etf.AppendInt64(nil, newest)
	s.header[dbSeqTree], err = seqs.root()
	return err
}

// maxAgain bounds the documents that get new sequences since others have theirs.
const maxAgain = 1000

// addInfo adds a document to a seq tree.
func (f *filler) addInfo(i info) error {
	value := etf.AppendBinary(etf.AppendTupleHeader(nil, 4), i.id)
	return f.add(etf.AppendInt64(nil, i.seq), append(value, i.same...))
}

func (s *salvage) localDocs() (err error) {
	local := &filler{t: s.tree(nil)}
	_, err = s.eachRow(localTree, func(row btree.Row, _ int64) error {
		s.result.LocalDocs++
		return local.add(row.Key, row.Value)
	})
	if err != nil {
		return err
	}
	s.header[dbLocalTree], err = local.root()
	return err
}

// terms copies the chunks that the header itself leads to.
func (s *salvage) terms() error {
	places := map[string]int{"purged_docs": dbPurgeSeqTree, "time_seq": dbTimeSeq, "security": dbSecurity, "props": dbProps}
	saved := map[string]bool{}
	for _, c := range s.in.a.terms {
		place := places[c.name]
		plain, err := s.in.readTerm(c.ptr)
		if err == nil {
			var rest []byte
			if rest, err = skip(plain[1:]); err == nil && len(rest) > 0 {
				err = shape("not one whole term")
			}
		}
		switch {
		case err == nil:
			if s.header[place], err = s.putTerm(plain); err != nil {
				return err
			}
			saved[c.name] = true
		case damaging(err) || damagingTerm(err):
			s.in.rep.damage(Finding{Text: fmt.Sprintf("%s: %s", c.name, reason(err)), Offset: c.ptr})
			s.header[place] = missingField(place, s.in.a.version)
		default:
			return err
		}
	}
	if saved["security"] || s.in.a.version <= 4 {
		return nil
	}
	// Without one CouchDB would let in whom its configuration says, which in old
	// releases is everybody.
	plain, err := etf.AppendTerm(etf.AppendVersion(nil), adminsOnly)
	if err != nil {
		return err
	}
	s.header[dbSecurity], err = s.putTerm(plain)
	return err
}

// adminsOnly is the security object of a database that only admins may read.
var adminsOnly = etf.List{
	etf.Tuple{[]byte("members"), etf.Tuple{etf.List{etf.Tuple{[]byte("roles"), etf.List{[]byte("_admin")}}}}},
	etf.Tuple{[]byte("admins"), etf.Tuple{etf.List{etf.Tuple{[]byte("roles"), etf.List{[]byte("_admin")}}}}},
}

// putTerm writes a compressed term and returns the pointer to it.
func (s *salvage) putTerm(plain []byte) ([]byte, error) {
	c, err := s.out.Append([][]byte{file.DefaultCompression.Append(nil, plain)})
	if err != nil {
		return nil, err
	}
	return etf.AppendInt64(nil, c[0].Ptr), nil
}
