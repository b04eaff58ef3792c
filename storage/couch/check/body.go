package check

import (
	"bytes"
	"crypto/md5"
	"fmt"

	"scanode/etf"
	"scanode/storage/couch/btree"
	"scanode/storage/couch/file"
)

// maxAttsBytes is the largest list of attachments that is read.
const maxAttsBytes = 64 << 20

// bodyTerms takes a body's chunk apart: {Body, Atts}, each a binary that holds a
// compressed term, or in old files all of it one compressed term.
func bodyTerms(payload []byte) (body, atts []byte, err error) {
	if !file.IsPlain(payload) {
		if payload, err = file.Decompress(nil, payload, maxAttsBytes); err != nil {
			return nil, nil, err
		}
	}
	fields, err := tuple(payload[1:], 2, 2)
	if err != nil {
		return nil, nil, err
	}
	return fields[0], fields[1], nil
}

// unpack returns the term in a binary of a body, without version byte.
func unpack(term []byte) ([]byte, error) {
	packed, _, err := etf.ReadBinary(term)
	if err != nil {
		return term, nil // of an old file
	}
	plain, err := file.Decompress(nil, packed, maxAttsBytes)
	if err != nil {
		return nil, err
	}
	return plain[1:], nil
}

// attachment is what a body says of one.
type attachment struct {
	name   []byte
	pieces []piece
	length int64 // bytes in the file
	md5    []byte
	fields [][]byte // the tuple's elements; nil if only the revision tree tells of it
}

// piece is a chunk of an attachment. length is -1 where old files do not tell.
type piece struct{ ptr, length int64 }

// readAttachments reads the list of attachments of a body.
func readAttachments(atts []byte) ([]attachment, error) {
	b, err := unpack(atts)
	if err != nil {
		return nil, err
	}
	items, err := list(b)
	if err != nil {
		return nil, err
	}
	var out []attachment
	for _, item := range items {
		a, err := readAttachment(item)
		if err != nil {
			return out, err
		}
		out = append(out, a)
	}
	return out, nil
}

// readAttachment reads {Name, Type, Pieces, AttLen, DiskLen, RevPos, Md5, Encoding}, where
// AttLen is what the pieces have and DiskLen the length before a Content-Encoding; old
// ones have no DiskLen and no Encoding, and the oldest no Md5.
func readAttachment(item []byte) (a attachment, err error) {
	f, err := tuple(item, 5, 8)
	if err != nil {
		return a, err
	}
	if a.name, _, err = etf.ReadBinary(f[0]); err != nil {
		return a, err
	}
	if a.length, err = integer(f[3]); err != nil {
		return a, err
	}
	a.fields = f
	switch len(f) {
	case 6:
		a.md5, _, _ = etf.ReadBinary(f[5])
	case 8:
		a.md5, _, _ = etf.ReadBinary(f[6])
	}
	a.pieces, err = readPieces(f[2])
	return a, err
}

func readPieces(term []byte) ([]piece, error) {
	items, err := list(term)
	if err != nil {
		return nil, err
	}
	var out []piece
	for _, item := range items {
		if ptr, err := integer(item); err == nil {
			out = append(out, piece{ptr, -1})
			continue
		}
		pair, err := tuple(item, 2, 2)
		if err != nil {
			return out, err
		}
		ptr, err := integer(pair[0])
		if err != nil {
			return out, err
		}
		length, err := integer(pair[1])
		if err != nil {
			return out, err
		}
		out = append(out, piece{ptr, length})
	}
	return out, nil
}

// checkBodies reads the bodies of all revisions in the order in which they lie in
// the file.
func (in *inspection) checkBodies() error {
	in.phase("bodies")
	last := int64(-1)
	for r, err := range in.bodies.sorted() {
		if err != nil {
			return err
		}
		ptr := int64(r.a)
		if ptr == last {
			continue
		}
		last = ptr
		if in.bodyReads > maxReadsAgain*in.f.Size() {
			in.rep.incomplete(Finding{Text: "bodies have more bytes than the file, many times over: the rest of them was not looked at", Offset: ptr})
			return nil
		}
		if err := in.checkBody(ptr, use(r.b), int64(r.c)); err != nil {
			return err
		}
		if in.failed != nil {
			return in.failed
		}
	}
	return nil
}

// checkBody looks at the body at ptr of a revision in a leaf of the id tree.
func (in *inspection) checkBody(ptr int64, use use, leaf int64) error {
	owner := func() string { return in.owner(leaf, ptr) }
	if ptr < 0 || ptr >= in.header.Ptr {
		in.rep.damage(Finding{Text: fmt.Sprintf("body of %s: it does not lie before the header", owner()), Offset: ptr})
		return nil
	}
	payload, info, err := in.f.ReadChunk(in.payload[:0], ptr)
	in.payload = payload[:0]
	in.bodyReads += min(info.Size, in.f.Size())
	in.progress(info.Size)
	if info.Size > 0 && damaging(err) && ptr+info.Size > in.f.Size()+1 {
		info.Size = 0
	}
	if info.Size > 0 {
		if err := in.extent(ptr, info.Size, use); err != nil {
			return err
		}
	}
	var atts []attachment
	if err == nil {
		var a []byte
		if _, a, err = bodyTerms(payload); err == nil {
			atts, err = readAttachments(a)
		}
	} else if !damaging(err) {
		return err
	}
	if err != nil {
		in.rep.damage(Finding{Text: fmt.Sprintf("body of %s: %s", owner(), reason(err)), Offset: ptr})
		// The revision tree has the pieces too. It says less of them.
		atts = in.attachmentsInTree(leaf, ptr)
	}
	if use == useBody {
		in.rep.Documents.Attachments += int64(len(atts))
	}
	within := in.attReads <= maxReadsAgain*in.f.Size()
	for _, a := range atts {
		if err := in.checkAttachment(a, owner); err != nil {
			return err
		}
	}
	if within && in.attReads > maxReadsAgain*in.f.Size() {
		in.rep.incomplete(Finding{Text: fmt.Sprintf("attachments have more bytes than the file, many times over: those of %s, and of what comes later, were not looked at", owner()), Offset: ptr})
	}
	return nil
}

// maxChecked bounds the attachments of which is remembered that they were read: the
// bodies of all revisions of a document lead to the same ones.
// What is read again since there are more is bounded by maxReadsAgain.
const maxChecked = 1 << 20

// maxReadsAgain bounds what is read of attachments, and in salvaging of bodies, in
// multiples of the file's size: pointers that are damaged lead to chunks of any size.
const maxReadsAgain = 64

// checkAttachment looks at the chunks of an attachment and its MD5.
func (in *inspection) checkAttachment(a attachment, owner func() string) error {
	if len(a.pieces) == 0 {
		return nil
	}
	fault := func(ptr int64, format string, args ...any) {
		in.rep.damage(Finding{Text: fmt.Sprintf("attachment %s of %s: %s", quote(a.name), owner(), fmt.Sprintf(format, args...)), Offset: ptr})
	}
	if _, ok := in.checked[a.pieces[0].ptr]; ok {
		return nil
	}
	if len(in.checked) >= maxChecked {
		clear(in.checked)
	}
	in.checked[a.pieces[0].ptr] = struct{}{}
	sum, whole := md5.New(), true
	for _, p := range a.pieces {
		if in.attReads > maxReadsAgain*in.f.Size() {
			return nil // said in checkBody
		}
		in.attReads += minRead
		if p.ptr < 0 || p.ptr >= in.header.Ptr {
			fault(p.ptr, "a piece does not lie before the header")
			whole = false
			continue
		}
		chunk, err := in.f.Stat(p.ptr)
		if err == nil && (p.length >= 0 && chunk.Length != p.length || chunk.Summed) {
			err = fmt.Errorf("a piece of %d bytes, the document says %d", chunk.Length, p.length)
		} else if err == nil {
			if err := in.extent(p.ptr, chunk.Size, useAttachment); err != nil {
				return err
			}
			var payload []byte
			payload, _, err = in.f.ReadChunk(in.payload[:0], p.ptr)
			in.payload = payload[:0]
			sum.Write(payload)
			in.attReads += chunk.Size
			in.progress(chunk.Size)
		}
		if err != nil {
			whole = false
			fault(p.ptr, "%s", reason(err))
		}
	}
	if whole && len(a.md5) == md5.Size && !bytes.Equal(sum.Sum(nil), a.md5) {
		fault(a.pieces[0].ptr, "wrong MD5")
	}
	return nil
}

// owner says whose body lies at ptr, for a finding. The document is in the leaf of
// the id tree at leaf.
func (in *inspection) owner(leaf, ptr int64) string {
	name := "a document in the leaf at " + fmt.Sprint(leaf)
	if len(in.rep.Damage) == MaxFindings {
		return name // the finding is counted and not kept: the leaf is not read for it
	}
	in.findRevision(leaf, ptr, func(i info, r revision) {
		name = fmt.Sprintf("document %s, revision %s", quote(i.id), r)
	})
	return name
}

// attachmentsInTree returns what the revision tree says of the attachments of the
// body at ptr.
func (in *inspection) attachmentsInTree(leaf, ptr int64) (out []attachment) {
	in.findRevision(leaf, ptr, func(_ info, r revision) {
		items, err := list(r.atts)
		for _, item := range items {
			if pair, e := tuple(item, 2, 2); e == nil && err == nil {
				if pieces, e := readPieces(pair[0]); e == nil {
					out = append(out, attachment{pieces: pieces})
				}
			}
		}
	})
	return out
}

// findRevision calls found for the revision with the body at ptr.
func (in *inspection) findRevision(leaf, ptr int64, found func(info, revision)) {
	var n btree.Node
	if n.Read(in.f, leaf, maxNodeBytes) != nil {
		return
	}
	for _, row := range n.Rows {
		i, err := readInfo(row.Key, row.Value, false)
		if err != nil {
			continue
		}
		done := false
		_ = revisions(i.tree, func(r revision) error { // reported before
			if r.body && r.ptr == ptr && !done {
				done = true
				found(i, r)
			}
			return nil
		})
		if done {
			return
		}
	}
}
