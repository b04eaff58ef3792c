package check

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/etf"
	"scanode/storage/couch/btree"
	"scanode/storage/couch/file"
)

// SalvageOptions say what to save.
type SalvageOptions struct {
	Options
	// Orphans takes documents from leaves that no header leads to as well, the newest
	// version of those that are nowhere else. It brings back what was purged.
	Orphans bool
}

// Salvaged says what was saved, and what was not.
type Salvaged struct {
	FileName  string `json:"file_name"`
	FileType  string `json:"file_type"`
	Out       string `json:"out"`
	OutSize   int64  `json:"out_size"` // bytes
	Documents int64  `json:"documents"`
	// FromSeqTree counts documents that were missing in the id tree, FromOrphans those
	// in neither.
	FromSeqTree int64 `json:"from_seq_tree"`
	FromOrphans int64 `json:"from_orphans"`
	Bodies      int64 `json:"bodies"`
	Attachments int64 `json:"attachments"`
	LocalDocs   int64 `json:"local_docs"`
	Rows        int64 `json:"rows"` // of trees other than a database's

	LostCount int       `json:"lost_count"`
	Lost      []Finding `json:"lost,omitempty"` // the first MaxFindings of what could not be read
}

// ErrNotSalvaged: what could be read does not make a valid file.
var ErrNotSalvaged = errors.New("cannot be salvaged")

// Salvage copies what can be read of the file name into a new file out of the same
// kind, and looks at that in the end. It only reads name, and never writes to an out
// that has bytes.
//
// A database gets both its trees, whatever one of them still has; of a revision whose
// body is lost, the nearest older one with a body takes the place. Of a view with
// missing rows the signature is made zero, so that CouchDB will not take it for an index
// of that database.
//
// Errors: file.ErrExists, file.ErrNoHeader, ErrNotSalvaged, those of both files. After
// one there is no file out.
func Salvage(fsys vfs.FS, name, out string, o SalvageOptions) (result *Salvaged, err error) {
	in, err := open(fsys, name, o.Options)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.close()) }()
	in.saving = true
	found, err := in.findHeader()
	if err != nil {
		return nil, err
	}
	if !found && !(o.Orphans && o.Generation == 0) {
		return nil, &file.Error{Name: name, Offset: -1, Err: file.ErrNoHeader, Detail: in.rep.Error}
	}
	to, err := file.Create(fsys, out, file.Options{Sum: in.header.Sum})
	if err != nil {
		return nil, err
	}
	s := &salvage{fs: fsys, in: in, out: to, o: o, result: &Salvaged{FileName: name, Out: out}}
	err = s.run(found)
	err = errors.Join(err, to.Close())
	if err == nil {
		err = s.verify(fsys)
	}
	if err != nil {
		return nil, errors.Join(err, fsys.Remove(out))
	}
	s.result.LostCount, s.result.Lost = in.rep.DamageCount, in.rep.Damage
	return s.result, nil
}

// salvage is one under way. What is lost is damage in in's report.
type salvage struct {
	fs     vfs.FS
	in     *inspection
	out    *file.File
	o      SalvageOptions
	result *Salvaged
	header [][]byte // elements of the header's term
}

func (s *salvage) run(found bool) error {
	if !found {
		s.in.rep.Damage, s.in.rep.DamageCount = nil, 0
		s.in.rep.damage(Finding{Text: "there is no header: all that is known is from leaves, and the security object is that of admins only", Offset: -1})
		s.header = newDatabaseHeader()
		s.in.a = anatomy{fileType: TypeDatabase, version: newestVersion}
		return s.database()
	}
	a, errs := readAnatomy(s.in.header.Term)
	for _, err := range errs {
		s.in.rep.damage(Finding{Text: reason(err), Offset: s.in.header.Ptr})
	}
	s.in.a, s.result.FileType = a, a.fileType
	fields, err := tuple(s.in.header.Term[1:], 1, 64)
	if err != nil {
		return s.refuse("its header is no tuple")
	}
	s.header = fields
	switch a.fileType {
	case TypeDatabase:
		return s.database()
	case TypeView:
		return s.view()
	case TypeTree:
		return s.trees()
	}
	if a.fileType == TypeStore {
		return s.refuse("it is a store of scanode's, which scanode:repair/2 repairs in its directory")
	}
	return s.refuse("the file of a compaction is made anew by CouchDB")
}

func (s *salvage) refuse(format string, args ...any) error {
	return &file.Error{Name: s.in.f.Name(), Offset: -1, Err: ErrNotSalvaged, Detail: fmt.Sprintf(format, args...)}
}

// commit writes the header.
func (s *salvage) commit() error {
	term := etf.AppendTupleHeader(etf.AppendVersion(nil), len(s.header))
	for _, f := range s.header {
		term = append(term, f...)
	}
	_, err := s.out.Commit(term)
	s.result.OutSize = s.out.Size()
	return err
}

// verify looks at what was written.
func (s *salvage) verify(fsys vfs.FS) error {
	o := s.in.o
	o.Generation, o.Headers, o.Conflicts = 0, 0, 0
	r, err := File(fsys, s.result.Out, o)
	if err != nil {
		return err
	}
	for _, f := range r.Damage {
		// The name of OUT is the caller's business.
		if f.Offset != r.Header.Offset {
			return s.refuse("what was written is damaged: %s", f)
		}
	}
	return nil
}

// tree is an empty tree of the new file.
func (s *salvage) tree(r btree.Reducer) btree.Tree {
	return btree.New(s.out, btree.Pointer{}, btree.Options{Reducer: r, Compression: file.DefaultCompression})
}

// filler adds rows to a tree in batches.
type filler struct {
	t     btree.Tree
	rows  []btree.Row
	bytes int
}

const (
	fillRows  = 1000
	fillBytes = 1 << 20
)

// add adds a copy of a row.
func (f *filler) add(key, value []byte) error {
	f.rows = append(f.rows, btree.Row{Key: bytes.Clone(key), Value: bytes.Clone(value)})
	f.bytes += len(key) + len(value)
	if len(f.rows) < fillRows && f.bytes < fillBytes {
		return nil
	}
	return f.flush()
}

func (f *filler) flush() error {
	if len(f.rows) == 0 {
		return nil
	}
	t, err := f.t.Add(f.rows)
	if err != nil {
		return err
	}
	f.t, f.rows, f.bytes = t, f.rows[:0], 0
	return nil
}

// root ends the tree and returns the term for the header.
func (f *filler) root() ([]byte, error) {
	if err := f.flush(); err != nil {
		return nil, err
	}
	return f.t.Root().Append(nil), nil
}

// WriteText writes the result for people to w.
func (r *Salvaged) WriteText(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s: salvaged into %s, %d bytes\n", r.FileName, r.Out, r.OutSize)
	if r.FileType == TypeDatabase {
		line(&b, "documents", "%d (from the seq tree only %d, from orphans %d), bodies %d, attachments %d, local documents %d",
			r.Documents, r.FromSeqTree, r.FromOrphans, r.Bodies, r.Attachments, r.LocalDocs)
	} else {
		line(&b, "rows", "%d", r.Rows)
	}
	if r.LostCount == 0 {
		line(&b, "lost", "nothing")
	}
	writeFindings(&b, "lost", r.Lost, r.LostCount)
	_, err := w.Write(b.Bytes())
	return err
}
