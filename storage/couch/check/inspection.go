package check

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/etf"
	"scanode/storage/couch/btree"
	"scanode/storage/couch/file"
)

// Options say what to look at.
type Options struct {
	// Generation is the header to look at: 0 is the newest, 1 the one before.
	Generation int
	// Headers is how many headers a Report lists, the newest; 0 is none.
	Headers int
	// Conflicts is how many documents with conflicts a Report lists.
	Conflicts int
	// ChunkSize is what fill is measured by, in bytes; 0 is CouchDB's default.
	ChunkSize int
	// SortRecords is how many records of 24 bytes each are kept in memory by each of
	// up to eight sorts; what is more goes to temporary files.
	// 0 is DefaultSortRecords.
	SortRecords int
	// TempDir is where temporary files are; "" is the system's place.
	TempDir string
	// Progress, if not nil, is told now and then how much of a phase is done, in
	// bytes. total is an upper bound.
	Progress func(phase string, done, total int64)
}

var errNotRegular = errors.New("not a regular file")

// DefaultSortRecords makes sorts of 24 MiB.
const DefaultSortRecords = 1 << 20

// inspection is one file being looked at.
type inspection struct {
	f      *file.File
	o      Options
	rep    *Report
	header file.Header
	// compacting: the seq tree is all there is of the documents
	compacting bool
	newest     int64 // where the newest valid header is, -1 if there is none
	a          anatomy
	viewOrder  btree.Order // made when a tree asks for it
	seed       maphash.Seed

	extents spill // {offset, size, use}
	bodies  spill // {offset, use, leaf of the id tree}
	// What two trees must have alike, {key, hash, leaf}: the id tree and the seq tree
	// by sequence, or a view file's id tree and its views by hash.
	byID, bySeq         spill
	purges, purgesBySeq spill
	lastPurge           int64

	// Bytes read of nodes by all walks, of bodies, and of attachments: see maxReads and maxReadsAgain.
	walked, bodyReads, attReads int64

	payload []byte
	checked map[int64]struct{} // attachments that were read
	failed  error              // of a spill

	logBytes   int64                                // behind the header of a store
	listed     int                                  // revisions of documents with conflicts
	saving     bool                                 // nobody asks for extents
	orphanLeaf func(n *btree.Node, ptr int64) error // if not nil, takes leaves to which nothing leads

	phaseName   string
	done, shown int64
}

// File looks at the file name, which it only reads. Damage is in the report; the
// error says that the file, or a temporary file, could not be read or written.
func File(fsys vfs.FS, name string, o Options) (*Report, error) {
	in, err := open(fsys, name, o)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(in.run(), in.close()); err != nil {
		return nil, err
	}
	return in.rep, nil
}

func open(fsys vfs.FS, name string, o Options) (*inspection, error) {
	// A pipe would be waited for, and a device does not say where it ends.
	if info, err := fsys.Stat(name); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil, &file.Error{Name: name, Offset: -1, Err: errNotRegular}
	}
	f, err := file.OpenReadOnly(fsys, name, file.Options{})
	if err != nil {
		return nil, err
	}
	if o.ChunkSize <= 0 {
		o.ChunkSize = btree.DefaultChunkSize
	}
	if o.SortRecords <= 0 {
		o.SortRecords = DefaultSortRecords
	}
	in := &inspection{
		f: f, o: o,
		rep:     &Report{FileName: name, FileSize: f.Size(), FileType: TypeError, Generation: o.Generation},
		seed:    maphash.MakeSeed(),
		checked: map[int64]struct{}{},
		newest:  -1,
		header:  file.Header{Ptr: f.Size()},
	}
	for _, s := range in.spills() {
		s.limit, s.dir = o.SortRecords, o.TempDir
	}
	return in, nil
}

func (in *inspection) spills() []*spill {
	return []*spill{&in.extents, &in.bodies, &in.byID, &in.bySeq, &in.purges, &in.purgesBySeq}
}

// close closes the file and removes temporary ones. It returns what has failed in
// between, too.
func (in *inspection) close() error {
	in.closeSpills(in.spills()...)
	return errors.Join(in.failed, in.f.Close())
}

func (in *inspection) closeSpills(spills ...*spill) {
	for _, s := range spills {
		if err := s.close(); err != nil && in.failed == nil {
			in.failed = err
		}
	}
}

func (in *inspection) phase(name string) { in.phaseName, in.done, in.shown = name, 0, 0 }

// progressStep is how many bytes are between two calls of Options.Progress.
const progressStep = 8 << 20

func (in *inspection) progress(n int64) {
	in.done += n
	if in.o.Progress != nil && in.done-in.shown >= progressStep {
		in.shown = in.done
		in.o.Progress(in.phaseName, in.done, in.f.Size())
	}
}

func (in *inspection) run() error {
	found, err := in.findHeader()
	if err != nil {
		return err
	}
	if found {
		if err := in.checkTrees(); err != nil {
			return err
		}
	}
	if err := in.checkBytes(); err != nil {
		return err
	}
	in.summarize()
	return nil
}

// findHeader lists the headers and chooses one.
func (in *inspection) findHeader() (bool, error) {
	in.phase("headers")
	found := false
	i := 0
	for h, err := range in.f.Headers(in.f.Size()) {
		info := HeaderInfo{Generation: i, Offset: h.Ptr, Size: h.Size, Checksum: h.Sum.String()}
		switch {
		case errors.Is(err, file.ErrHeaderTerm):
			info.Error = reason(err)
			f := Finding{Text: "a header with the right checksum that is no term: " + reason(err), Offset: h.Ptr}
			if i == 0 {
				// CouchDB takes no older one then.
				f.Text += "; CouchDB will not open the file"
			}
			in.rep.damage(f)
		case err != nil:
			return false, err
		default:
			in.newest = max(in.newest, h.Ptr)
		}
		u := orphanHeader
		// A header that is no term counts, but is not looked at.
		if err == nil && !found && i >= in.o.Generation {
			found, u = true, useHeader
			in.header, in.rep.Generation = h, i
		}
		if err == nil {
			a, _ := readAnatomy(h.Term)
			info.UpdateSeq = a.updateSeq
		}
		if u == useHeader {
			in.rep.Header = &info
		}
		if i < in.o.Headers {
			in.rep.Headers = append(in.rep.Headers, info)
		}
		if err := in.extent(h.Ptr, h.Size, u); err != nil {
			return false, err
		}
		in.done = in.f.Size() - h.Ptr - 1
		in.progress(1)
		i++
	}
	in.rep.HeadersCount = i
	switch {
	case !found && i > 0 && in.o.Generation > 0:
		in.fatal(fmt.Sprintf("there is no header of generation %d, the file has %d", in.o.Generation, i))
	case !found:
		in.fatal(file.ErrNoHeader.Error())
	}
	return found, nil
}

// fatal makes the file one of which nothing but its bytes can be told.
func (in *inspection) fatal(text string) {
	in.rep.FileType, in.rep.Error = TypeError, text
	in.rep.damage(Finding{Text: text, Offset: -1})
}

// checkTrees goes through all that the header leads to.
func (in *inspection) checkTrees() error {
	in.phase("trees")
	a, errs := readAnatomy(in.header.Term)
	if strings.HasSuffix(in.f.Name(), ".meta") && a.fileType == TypeCompact {
		// Both files of a compaction have the same header; its roots are in the other.
		a.roots, a.terms = nil, nil
	}
	in.a, in.rep.FileType = a, a.fileType
	for _, err := range errs {
		in.rep.damage(Finding{Text: reason(err), Offset: in.header.Ptr})
	}
	if want := typeByName(in.f.Name()); want != "" && a.fileType != want && a.fileType != TypeCompact && (a.fileType != TypeStore || want == TypeView) {
		in.rep.damage(Finding{Text: fmt.Sprintf("the name is that of a %s file, the header that of a %s file", want, a.fileType), Offset: in.header.Ptr})
	}
	if a.fileType == TypeDatabase || a.fileType == TypeCompact {
		in.rep.Documents = &Documents{}
	}
	views := 0
	for _, r := range a.roots {
		// A compaction builds the id tree in the end, from a file of its own.
		if a.fileType == TypeCompact && r.kind == idTree {
			in.compacting = r.p.IsNil()
		}
		var leaf func(*btree.Node, btree.Pointer) error
		switch r.kind {
		case idTree:
			leaf = in.idLeaf
		case seqTree:
			leaf = in.seqLeaf
		case localTree:
			leaf = in.localLeaf
		case purgeTree, purgeSeqTree:
			bySeq := r.kind == purgeSeqTree
			leaf = func(n *btree.Node, p btree.Pointer) error { return in.purgeLeaf(n, p.Ptr, bySeq) }
		case viewIDTree:
			leaf = in.viewIDLeaf
		case viewTree:
			view := views
			views++
			leaf = func(n *btree.Node, p btree.Pointer) error { return in.viewLeaf(n, p.Ptr, view) }
		}
		t, err := in.walk(r, leaf)
		if err != nil {
			return err
		}
		if v, err := readViewReduction(r.p.Reduction); err == nil {
			t.ext = v.external
		}
	}
	if err := in.checkLog(); err != nil {
		return err
	}
	if err := in.checkTerms(); err != nil {
		return err
	}
	if err := in.crossCheck(); err != nil {
		return err
	}
	return in.checkBodies()
}

// typeByName is the type a file of this name must have, "" if any will do.
func typeByName(name string) string {
	base := filepath.Base(name)
	switch {
	case strings.HasSuffix(base, ".view"):
		return TypeView
	case strings.HasSuffix(base, ".couch"):
		return TypeDatabase
	}
	return ""
}

// checkTerms reads the chunks that the header itself leads to.
func (in *inspection) checkTerms() error {
	for _, c := range in.a.terms {
		plain, err := in.readTerm(c.ptr)
		if err != nil && !damaging(err) && !errors.Is(err, errShape) {
			return err
		}
		if err == nil {
			err = in.takeTerm(c.name, plain)
		}
		switch {
		case errors.Is(err, etf.ErrLimit):
			in.rep.note(Finding{Text: c.name + ": nested too deeply to be shown", Offset: c.ptr})
		case err != nil:
			in.rep.damage(Finding{Text: c.name + ": " + reason(err), Offset: c.ptr})
		}
	}
	return nil
}

func (in *inspection) readTerm(ptr int64) ([]byte, error) {
	if ptr < 0 || ptr >= in.header.Ptr {
		return nil, fmt.Errorf("%w: %d does not lie before the header", btree.ErrPointer, ptr)
	}
	payload, info, err := in.f.ReadChunk(nil, ptr)
	if err != nil {
		return nil, err
	}
	if err := in.extent(ptr, info.Size, useTerm); err != nil {
		return nil, err
	}
	return file.Decompress(nil, payload, maxNodeBytes)
}

// takeTerm puts what is shown of a term into the report.
func (in *inspection) takeTerm(name string, plain []byte) error {
	rest, err := skip(plain[1:])
	if err != nil || len(rest) > 0 {
		return shape("not one whole term")
	}
	switch name {
	case "security":
		in.rep.SecurityObject, err = ejson(plain[1:])
	case "props":
		in.rep.Props, err = ejson(plain[1:])
	case "purged_docs":
		var docs [][]byte
		if docs, err = list(plain[1:]); err == nil && in.rep.Documents != nil {
			in.rep.PurgedDocCount = int64(len(docs))
		}
	}
	return err
}

// crossCheck compares the trees that say the same in another order.
func (in *inspection) crossCheck() error {
	switch in.a.fileType {
	case TypeDatabase, TypeCompact:
		if in.compacting {
			return nil
		}
		if err := in.compare("id_tree", "seq_tree", "sequence", &in.byID, &in.bySeq); err != nil {
			return err
		}
		return in.compare("purge_tree", "purge_seq_tree", "purge sequence", &in.purges, &in.purgesBySeq)
	case TypeView:
		return in.compare("id_tree", "view_tree", "", &in.byID, &in.bySeq)
	}
	return nil
}

// compare reports what only one of two trees has. When nodes could not be read, of
// course rows are missing.
func (in *inspection) compare(left, right, key string, x, y *spill) error {
	var onlyLeft, onlyRight, differ int64
	var first mismatch
	for m, err := range unmatched(x, y) {
		if err != nil {
			return err
		}
		if first.left == nil && first.right == nil {
			first = m
		}
		switch {
		case m.right == nil:
			onlyLeft++
		case m.left == nil:
			onlyRight++
		default:
			differ++
		}
	}
	if onlyLeft+onlyRight+differ == 0 {
		return nil
	}
	r := first.left
	if r == nil {
		r = first.right
	}
	text := fmt.Sprintf("rows of the %[2]s without one in the %[3]s: %[1]d; the other way round: %[4]d; different: %[5]d", onlyLeft, left, right, onlyRight, differ)
	if key != "" {
		text += fmt.Sprintf("; the first of %s %d", key, r.a)
	}
	f := Finding{Text: text, Offset: int64(r.c)}
	if key == "" && onlyRight == 0 {
		// Keys that are equal in the view's order and not the same are one row there.
		in.rep.note(f)
		return nil
	}
	in.rep.damage(f)
	return nil
}

// summarize fills what is made of the rest.
func (in *inspection) summarize() {
	r, a := in.rep, in.a
	if n := r.Bytes.Unreadable; n > 0 {
		r.note(Finding{Text: fmt.Sprintf("%d bytes that nothing leads to and in which no chunk could be found", n), Offset: -1})
	}
	if r.Header == nil {
		return
	}
	if end := in.header.Ptr + in.header.Size + in.logBytes; r.Generation == 0 && in.f.Size() > end {
		r.note(Finding{Text: fmt.Sprintf("%d bytes behind the newest header, never committed", in.f.Size()-end), Offset: end})
	}
	r.UpdateSeq, r.PurgeSeq = a.updateSeq, a.purgeSeq
	r.ViewSignature, r.UUID = a.signature, a.uuid
	switch a.fileType {
	case TypeDatabase, TypeCompact:
		version := a.version
		r.DiskVersion, r.CompactedSeq = &version, a.compacted
		if a.version > 6 {
			r.PurgeSeq = &in.lastPurge
		}
		in.databaseSizes()
	case TypeView:
		in.viewSizes()
	default:
		r.HeaderTerm = text(in.header.Term[1:])
		for _, t := range r.TreeInfo {
			r.ActiveSize += t.size
		}
		r.Fragmentation = fragmentation(r.FileSize, r.ActiveSize)
	}
}

func (in *inspection) databaseSizes() {
	r := in.rep
	for i, root := range in.a.roots {
		r.ActiveSize += r.TreeInfo[i].size
		switch root.kind {
		case idTree:
			if t, err := readTally(root.p.Reduction); err == nil {
				r.ActiveSize += t.active
				r.ExternalSize = t.external
			}
		case purgeTree:
			r.PurgedDocCount = r.TreeInfo[i].Rows
		}
	}
	r.Fragmentation = fragmentation(r.FileSize, r.ActiveSize)
	r.Sizes = &Sizes{r.FileSize, r.ActiveSize, r.ExternalSize}
}

func (in *inspection) viewSizes() {
	r := in.rep
	r.Sizes = &Sizes{File: r.FileSize}
	for i, root := range in.a.roots {
		t := r.TreeInfo[i]
		r.ActiveSize += t.size
		if root.kind == viewTree {
			r.ExternalSize += t.size
			r.Sizes.Active += t.size
			r.Sizes.External += t.ext
		}
	}
	r.Fragmentation = fragmentation(r.FileSize, r.ExternalSize)
}

func fragmentation(size, used int64) string {
	if size == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f%%", 100*float64(size-used)/float64(size))
}

// ejson turns a term as CouchDB keeps JSON into JSON: {[{Name, Value}]} is an
// object, and so is a bare list of pairs.
func ejson(term []byte) (json.RawMessage, error) {
	t, _, err := etf.Decode(term, etf.DefaultLimits)
	if err != nil {
		return nil, err
	}
	return appendJSON(nil, t, true)
}
