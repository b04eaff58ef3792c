package couch

import (
	"bytes"
	"crypto/rand"
	"fmt"

	"scanode/etf"
	"scanode/storage"
	"scanode/storage/couch/btree"
	"scanode/storage/couch/file"
)

// header is what the header of a store's file says, as the term
//
//	{scanode_store, 1, Id, Seq, Behind, Root, Origin}
//
//	Id      a binary of 16 random bytes, the same in all headers of a file
//	Seq     how many batches were applied to the store until then
//	Behind  log: records of a log may lie behind the header; none: nothing does that counts
//	Root    pointer to the tree, see btree.Pointer
//	Origin  nil, or what is copied into the file: {SourceId, SourceRoot, Whole}
//
// CouchDB reads the file as one of couch_file's, and refuses the term as a database's or
// a view's; so it never appends behind it, which would lose what is in a log.
type header struct {
	id     fileID
	seq    int64
	log    bool
	root   btree.Pointer
	origin origin
}

type fileID [16]byte

// origin says what a compaction has copied into a file: the rows of the tree at root in the
// file id, all of them if whole, else those up to the last one there is.
type origin struct {
	id    fileID
	root  btree.Pointer
	whole bool
}

const (
	headerName    = "scanode_store"
	headerVersion = 1
)

func newID() (id fileID) {
	rand.Read(id[:]) // never fails
	return id
}

// append appends the header's term with its version byte.
func (h *header) append(dst []byte) []byte {
	dst = etf.AppendTupleHeader(etf.AppendVersion(dst), 7)
	dst = etf.AppendAtom(dst, headerName)
	dst = etf.AppendInt64(dst, headerVersion)
	dst = etf.AppendBinary(dst, h.id[:])
	dst = etf.AppendInt64(dst, h.seq)
	behind := etf.Atom("none")
	if h.log {
		behind = "log"
	}
	dst = etf.AppendAtom(dst, behind)
	dst = h.root.Append(dst)
	if h.origin.id == (fileID{}) {
		return etf.AppendAtom(dst, "nil")
	}
	dst = etf.AppendTupleHeader(dst, 3)
	dst = etf.AppendBinary(dst, h.origin.id[:])
	dst = h.origin.root.Append(dst)
	if h.origin.whole {
		return etf.AppendAtom(dst, "true")
	}
	return etf.AppendAtom(dst, "false")
}

// readHeader reads a header's term. Errors wrap ErrForeign when it is somebody else's or
// newer, ErrCorrupt when it is ours and wrong.
func readHeader(term []byte) (header, error) {
	var h header
	r := termReader{b: term}
	r.version()
	arity := r.tuple()
	if name := r.atom(); r.err != nil || name != headerName {
		return h, fmt.Errorf("%w: the header is not one of scanode's", storage.ErrForeign)
	}
	if v := r.integer(); r.err == nil && v != headerVersion {
		return h, fmt.Errorf("%w: header of version %d, this program knows %d", storage.ErrForeign, v, headerVersion)
	}
	r.id(&h.id)
	h.seq = r.integer()
	h.log = r.word("log", "none")
	h.root = r.pointer()
	if r.isNil() {
		r.atom()
	} else {
		if r.tuple() != 3 {
			r.fail("origin")
		}
		r.id(&h.origin.id)
		h.origin.root = r.pointer()
		h.origin.whole = r.word("true", "false")
	}
	if r.err == nil && (arity != 7 || len(r.b) > 0 || h.seq < 0 || h.id == (fileID{})) {
		r.fail("its elements")
	}
	if r.err != nil {
		return h, fmt.Errorf("%w: header: %w", storage.ErrCorrupt, r.err)
	}
	return h, nil
}

// termReader reads elements of a term one after the other. The first that is not what it
// should be is kept, and those after it are zero.
type termReader struct {
	b   []byte
	err error
}

func (r *termReader) fail(what string) {
	if r.err == nil {
		r.err = fmt.Errorf("%s cannot be read", what)
	}
	r.b = nil
}

func (r *termReader) version() {
	var err error
	if r.b, err = etf.SkipVersion(r.b); err != nil {
		r.fail("version byte")
	}
}

func (r *termReader) tuple() int {
	n, rest, err := etf.ReadTupleHeader(r.b)
	if r.b = rest; err != nil {
		r.fail("tuple")
		return 0
	}
	return n
}

func (r *termReader) atom() string {
	name, rest, err := etf.ReadAtom(r.b)
	if r.b = rest; err != nil {
		r.fail("atom")
		return ""
	}
	return string(name)
}

// word reads one of two atoms and says whether it is the first.
func (r *termReader) word(yes, no string) bool {
	a := r.atom()
	if a != yes && a != no {
		r.fail(yes + " or " + no)
	}
	return a == yes
}

func (r *termReader) integer() int64 {
	n, rest, err := etf.ReadInt64(r.b)
	if r.b = rest; err != nil {
		r.fail("integer")
		return 0
	}
	return n
}

func (r *termReader) id(id *fileID) {
	b, rest, err := etf.ReadBinary(r.b)
	if r.b = rest; err != nil || len(b) != len(id) {
		r.fail("id")
		return
	}
	copy(id[:], b)
}

// pointer reads a root. It does not alias the term.
func (r *termReader) pointer() btree.Pointer {
	rest, err := etf.Skip(r.b)
	if err != nil {
		r.fail("pointer")
		return btree.Pointer{}
	}
	p, err := btree.ParsePointer(bytes.Clone(r.b[:len(r.b)-len(rest)]))
	if r.b = rest; err != nil {
		r.fail("pointer")
	}
	return p
}

func (r *termReader) isNil() bool {
	name, _, err := etf.ReadAtom(r.b)
	return err == nil && string(name) == "nil"
}

// lastHeader returns the newest header of a file and what it says.
func lastHeader(f *file.File) (file.Header, header, error) {
	at, err := f.LastHeader()
	if err != nil {
		return at, header{}, corrupt(err)
	}
	h, err := readHeader(at.Term)
	return at, h, err
}
