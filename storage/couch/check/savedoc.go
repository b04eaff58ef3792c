package check

import (
	"bytes"
	"crypto/md5"
	"errors"
	"fmt"

	"scanode/etf"
	"scanode/storage/couch/file"
)

// savedRev is a revision on its way into the new file. They come in the order of the
// tree, each before its children.
type savedRev struct {
	revision
	value    []byte // to be written; [] without a body
	body     bool   // there is one in the new file
	kept     bool
	children int // that are kept
	parent   int // -1: the root of a branch

	active, external int64
	atts             []savedAtt
}

// savedAtt is an attachment in the new file.
type savedAtt struct {
	pieces []byte // [{Ptr, Len}]
	length int64
}

// document copies all that can be read of a document and returns its row for the new
// id tree, or nil if nothing of it can be read.
func (s *salvage) document(i info) ([]byte, error) {
	revs, err := s.revisions(i)
	if err != nil {
		return nil, err
	}
	// From the end: whether a revision is kept is known before its parent's turn.
	kept := 0
	for n := len(revs) - 1; n >= 0; n-- {
		r := &revs[n]
		r.kept = r.body || r.children > 0 || r.leaf && !r.revision.body
		if r.kept {
			kept++
			if r.parent >= 0 {
				revs[r.parent].children++
			}
		}
	}
	if kept == 0 {
		s.in.rep.damage(Finding{Text: fmt.Sprintf("document %s: no revision of it can be read", quote(i.id)), Offset: -1})
		return nil, nil
	}
	deleted, sizes := total(revs)
	row := etf.AppendTupleHeader(nil, 4)
	row = etf.AppendInt64(row, i.seq)
	row = etf.AppendInt64(row, deleted)
	row = append(row, sizes...)
	return appendRevTree(row, revs), nil
}

// revisions copies the bodies of a document.
func (s *salvage) revisions(i info) ([]savedRev, error) {
	var revs []savedRev
	var path []int
	err := revisions(i.tree, func(r revision) error {
		path = append(path[:r.depth], len(revs))
		saved := savedRev{revision: r, value: etf.AppendNil(nil), parent: -1}
		if r.depth > 0 {
			saved.parent = path[r.depth-1]
		}
		revs = append(revs, saved)
		if r.body && r.seq > i.seq {
			return shape("a revision of sequence %d, its own is %d", r.seq, i.seq)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	// The same attachment may be in several revisions.
	atts := map[int64]*savedAtt{}
	for n := range revs {
		r := &revs[n]
		if !r.revision.body {
			continue
		}
		err := s.body(i, r, atts)
		if err != nil && (damaging(err) || damagingTerm(err)) {
			s.in.rep.damage(Finding{Text: fmt.Sprintf("document %s, revision %s: body: %s", quote(i.id), r.revision, reason(err)), Offset: r.ptr})
			continue
		}
		if err != nil {
			return nil, err
		}
		r.body = true
		s.result.Bodies++
	}
	return revs, nil
}

// body copies the body of a revision, and its attachments.
func (s *salvage) body(i info, r *savedRev, done map[int64]*savedAtt) error {
	if s.in.bodyReads > maxReadsAgain*s.in.f.Size() {
		return shape("the bodies have more bytes than the file, many times over")
	}
	payload, info, err := s.in.f.ReadChunk(nil, r.ptr)
	s.in.bodyReads += min(info.Size, s.in.f.Size())
	if err != nil {
		return err
	}
	s.in.progress(info.Size)
	body, attsTerm, err := bodyTerms(payload)
	if err != nil {
		return err
	}
	atts, err := readAttachments(attsTerm)
	if err != nil {
		return err
	}
	if _, _, err := etf.ReadBinary(body); err != nil {
		// Of an old file: in the form of today it is a binary.
		body = etf.AppendBinary(nil, file.DefaultCompression.Append(nil, append(etf.AppendVersion(nil), body...)))
	}
	list := etf.AppendVersion(nil)
	var kept [][]byte
	for _, a := range atts {
		saved, err := s.attachment(i, r, a, done)
		if err != nil {
			return err
		}
		if saved == nil {
			continue
		}
		s.result.Attachments++
		r.atts = append(r.atts, *saved)
		kept = append(kept, a.withPieces(saved.pieces))
	}
	list = etf.AppendListHeader(list, len(kept))
	for _, k := range kept {
		list = append(list, k...)
	}
	list = etf.AppendNil(list)
	out := etf.AppendTupleHeader(etf.AppendVersion(nil), 2)
	out = append(out, body...)
	out = etf.AppendBinary(out, file.DefaultCompression.Append(nil, list))
	c, err := s.out.AppendSummed([][]byte{out})
	if err != nil {
		return err
	}
	var t tally
	if r.sizes != nil {
		if err := t.sizes(r.sizes); err != nil {
			return err
		}
	}
	r.active, r.external = c[0].Size, t.external
	r.value = r.appendValue(nil, c[0].Ptr)
	return nil
}

// appendValue appends {Deleted, BodyPtr, Seq, {Active, External}, AttSizes}.
func (r *savedRev) appendValue(dst []byte, ptr int64) []byte {
	dst = etf.AppendTupleHeader(dst, 5)
	deleted := int64(0)
	if r.deleted {
		deleted = 1
	}
	dst = etf.AppendInt64(dst, deleted)
	dst = etf.AppendInt64(dst, ptr)
	dst = etf.AppendInt64(dst, r.seq)
	dst = etf.AppendTupleHeader(dst, 2)
	dst = etf.AppendInt64(etf.AppendInt64(dst, r.active), r.external)
	dst = etf.AppendListHeader(dst, len(r.atts))
	for _, a := range r.atts {
		dst = append(etf.AppendTupleHeader(dst, 2), a.pieces...)
		dst = etf.AppendInt64(dst, a.length)
	}
	return etf.AppendNil(dst)
}

// withPieces is the attachment's tuple with other pieces.
func (a attachment) withPieces(pieces []byte) []byte {
	out := etf.AppendTupleHeader(nil, len(a.fields))
	for i, f := range a.fields {
		if i == 2 {
			f = pieces
		}
		out = append(out, f...)
	}
	return out
}

// attachment copies an attachment. It returns nil for one that cannot be read whole.
func (s *salvage) attachment(i info, r *savedRev, a attachment, done map[int64]*savedAtt) (*savedAtt, error) {
	if len(a.pieces) > 0 {
		if saved, ok := done[a.pieces[0].ptr]; ok {
			return saved, nil
		}
	}
	saved := &savedAtt{length: a.length}
	sum := md5.New()
	pieces := etf.AppendListHeader(nil, len(a.pieces))
	var lost error
	for _, p := range a.pieces {
		if s.in.attReads > maxReadsAgain*s.in.f.Size() {
			lost = shape("the attachments have more bytes than the file, many times over")
			break
		}
		payload, info, err := s.in.f.ReadChunk(s.in.payload[:0], p.ptr)
		s.in.payload = payload[:0]
		if err == nil && (info.Summed || p.length >= 0 && int64(len(payload)) != p.length) {
			err = shape("a piece of %d bytes, the document says %d", len(payload), p.length)
		}
		if err != nil {
			if !damaging(err) && !errors.Is(err, errShape) {
				return nil, err
			}
			lost = err
			break
		}
		s.in.attReads += info.Size
		s.in.progress(info.Size)
		sum.Write(payload)
		c, err := s.out.Append([][]byte{payload})
		if err != nil {
			return nil, err
		}
		pieces = etf.AppendTupleHeader(pieces, 2)
		pieces = etf.AppendInt64(etf.AppendInt64(pieces, c[0].Ptr), int64(len(payload)))
	}
	if lost == nil && len(a.pieces) > 0 && len(a.md5) == md5.Size && !bytes.Equal(sum.Sum(nil), a.md5) {
		lost = shape("wrong MD5")
	}
	if lost != nil {
		saved = nil
		s.in.rep.damage(Finding{Text: fmt.Sprintf("document %s, revision %s: attachment %s: %s", quote(i.id), r.revision, quote(a.name), reason(lost)), Offset: a.pieces[0].ptr})
	} else {
		saved.pieces = etf.AppendNil(pieces)
	}
	if len(a.pieces) > 0 {
		done[a.pieces[0].ptr] = saved
	}
	return saved, nil
}

// total returns what the document's own row says of its leaves: whether all are
// deleted, and {Active, External}.
func total(revs []savedRev) (deleted int64, sizes []byte) {
	var active, external int64
	deleted = 1
	seen := map[string]bool{}
	for i := range revs {
		r := &revs[i]
		if !r.kept || r.children > 0 {
			continue
		}
		if r.body && !r.deleted {
			deleted = 0
		}
		active += r.active
		external += r.external
		for _, a := range r.atts {
			if !seen[string(a.pieces)] {
				seen[string(a.pieces)] = true
				active += a.length
				external += a.length
			}
		}
	}
	sizes = etf.AppendTupleHeader(nil, 2)
	return deleted, etf.AppendInt64(etf.AppendInt64(sizes, active), external)
}

// appendRevTree appends the tree of the revisions that are kept.
func appendRevTree(dst []byte, revs []savedRev) []byte {
	branches := 0
	for i := range revs {
		if revs[i].kept && revs[i].parent < 0 {
			branches++
		}
	}
	dst = etf.AppendListHeader(dst, branches)
	var left []int // children to come, of each revision on the path
	for i := range revs {
		r := &revs[i]
		if !r.kept {
			continue
		}
		if r.parent < 0 {
			dst = etf.AppendInt64(etf.AppendTupleHeader(dst, 2), r.pos)
		}
		dst = append(etf.AppendTupleHeader(dst, 3), r.term...)
		dst = append(dst, r.value...)
		dst = etf.AppendListHeader(dst, r.children)
		left = append(left, r.children)
		// The ends of all lists that end here.
		for len(left) > 0 && left[len(left)-1] == 0 {
			dst = etf.AppendNil(dst)
			left = left[:len(left)-1]
			if len(left) > 0 {
				left[len(left)-1]--
			}
		}
	}
	return etf.AppendNil(dst)
}
