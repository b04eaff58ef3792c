package check

import (
	"encoding/hex"
	"fmt"

	"scanode/etf"
	"scanode/storage/couch"
	"scanode/storage/couch/btree"
)

// maxViews is the most views a file may have: each has a place in the report.
const maxViews = 1 << 14

// treeKind says what the rows of a tree are.
type treeKind uint8

const (
	plainTree    treeKind = iota // of another program: nothing is known of its rows
	idTree                       // of a database: DocId -> {Seq, Deleted, Sizes, RevTree}
	seqTree                      // Seq -> {DocId, Deleted, Sizes, RevTree}
	localTree                    // local documents
	purgeTree                    // UUID -> {Seq, DocId, Revs}
	purgeSeqTree                 // Seq -> {UUID, DocId, Revs}
	viewIDTree                   // DocId -> [{View, Key}]
	viewTree                     // {Key, DocId} -> Value
	storeTree                    // of a store of scanode's: binaries to binaries
)

// root is a tree that a header leads to.
type root struct {
	name string
	kind treeKind
	p    btree.Pointer
}

// chunkRef is a chunk that a header leads to and that is no node.
type chunkRef struct {
	name string
	ptr  int64
}

// anatomy is what a header's term says of the file.
type anatomy struct {
	fileType  string
	version   int64 // of databases
	updateSeq *int64
	purgeSeq  *int64
	compacted *int64
	uuid      string
	signature string         // of views
	store     couch.Contents // of stores
	roots     []root
	terms     []chunkRef
}

// Positions in db_header, counted from 0, and how many there are at most.
const (
	dbVersion = 1 + iota
	dbUpdateSeq
	dbTimeSeq
	dbIDTree
	dbSeqTree
	dbLocalTree
	dbPurgeTree // until version 6 the purge sequence
	dbPurgeSeqTree
	dbSecurity
	dbRevsLimit
	dbUUID
	dbEpochs
	dbCompacted
	dbPurgeInfos
	dbProps
	dbFields
)

const (
	oldestVersion = 4 // that CouchDB reads
	newestVersion = 8
)

// readAnatomy reads a header's term, which has its version byte. What of it cannot
// be read is left out, and the errors say so.
func readAnatomy(term []byte) (anatomy, []error) {
	b, err := etf.SkipVersion(term)
	if err != nil {
		return anatomy{}, []error{err}
	}
	fields, err := tuple(b, 1, 64)
	if err != nil {
		return anatomy{fileType: TypeTree}, nil
	}
	switch {
	case isAtom(fields[0], "db_header"):
		return readDatabase(fields)
	case isAtom(fields[0], "comp_header") && len(fields) >= 2:
		inner, err := tuple(fields[1], 1, 64)
		if err != nil || !isAtom(inner[0], "db_header") {
			return anatomy{fileType: TypeCompact}, []error{shape("no database header in that of a compaction")}
		}
		a, errs := readDatabase(inner)
		a.fileType = TypeCompact
		return a, errs
	case isAtom(fields[0], "scanode_store"):
		return readStore(term)
	case len(fields) == 2:
		if sig, _, err := etf.ReadBinary(fields[0]); err == nil && len(sig) == 16 {
			return readView(sig, fields[1])
		}
	}
	return readForeign(fields), nil
}

// reader collects errors of fields.
type reader struct{ errs []error }

func (r *reader) failed(name string, err error) {
	r.errs = append(r.errs, fmt.Errorf("header: %s: %w", name, err))
}

func (r *reader) integer(name string, term []byte) *int64 {
	n, err := integer(term)
	if err != nil {
		r.failed(name, err)
		return nil
	}
	return &n
}

func (r *reader) root(a *anatomy, name string, kind treeKind, term []byte) {
	p, err := btree.ParsePointer(term)
	if err != nil {
		r.failed(name, err)
		return
	}
	a.roots = append(a.roots, root{name, kind, p})
}

// chunk adds a pointer that may be missing.
func (r *reader) chunk(a *anatomy, name string, term []byte) {
	if isAtom(term, "nil") || isAtom(term, "undefined") {
		return
	}
	if ptr := r.integer(name, term); ptr != nil {
		a.terms = append(a.terms, chunkRef{name, *ptr})
	}
}

func readDatabase(fields [][]byte) (anatomy, []error) {
	var r reader
	a := anatomy{fileType: TypeDatabase}
	if len(fields) > dbFields {
		r.errs = append(r.errs, shape("header: %d fields, known are %d", len(fields), dbFields))
	}
	undefined := etf.AppendAtom(nil, "undefined")
	null := etf.AppendAtom(nil, "nil")
	field := func(i int, missing []byte) []byte {
		if i < len(fields) {
			return fields[i]
		}
		return missing
	}
	zero := etf.AppendInt64(nil, 0)
	if v := r.integer("disk_version", field(dbVersion, undefined)); v != nil {
		a.version = *v
		if *v < oldestVersion || *v > newestVersion {
			r.errs = append(r.errs, shape("header: disk_version %d, known are %d to %d", *v, oldestVersion, newestVersion))
		}
	}
	a.updateSeq = r.integer("update_seq", field(dbUpdateSeq, undefined))
	// CouchDB's very first header of a database has none.
	if c := field(dbCompacted, zero); !isAtom(c, "undefined") {
		a.compacted = r.integer("compacted_seq", c)
	}
	r.root(&a, "id_tree", idTree, field(dbIDTree, undefined))
	r.root(&a, "seq_tree", seqTree, field(dbSeqTree, undefined))
	r.root(&a, "local_tree", localTree, field(dbLocalTree, undefined))
	if a.version <= 6 {
		a.purgeSeq = r.integer("purge_seq", field(dbPurgeTree, zero))
		r.chunk(&a, "purged_docs", field(dbPurgeSeqTree, null))
	} else {
		r.root(&a, "purge_tree", purgeTree, field(dbPurgeTree, null))
		r.root(&a, "purge_seq_tree", purgeSeqTree, field(dbPurgeSeqTree, null))
		r.chunk(&a, "time_seq", field(dbTimeSeq, undefined))
	}
	if a.version > 4 {
		r.chunk(&a, "security", field(dbSecurity, null))
	}
	r.chunk(&a, "props", field(dbProps, undefined))
	if uuid, _, err := etf.ReadBinary(field(dbUUID, undefined)); err == nil {
		a.uuid = string(uuid)
	}
	return a, r.errs
}

// readView reads what stands beside the signature.
func readView(sig, term []byte) (anatomy, []error) {
	a := anatomy{fileType: TypeView, signature: hex.EncodeToString(sig)}
	if isAtom(term, "nil") {
		return a, nil // new, or just reset
	}
	var r reader
	fields, err := tuple(term, 5, 6)
	if err != nil {
		r.failed("view", err)
		return a, r.errs
	}
	if !isAtom(fields[0], "mrheader") && !isAtom(fields[0], "index_header") {
		r.errs = append(r.errs, shape("header: %s beside the signature of a view", text(fields[0])))
		return a, r.errs
	}
	a.updateSeq = r.integer("update_seq", fields[1])
	a.purgeSeq = r.integer("purge_seq", fields[2])
	r.root(&a, "id_tree", viewIDTree, fields[3])
	states, err := list(fields[len(fields)-1])
	if err != nil {
		r.failed("views", err)
	}
	if len(states) > maxViews {
		r.errs = append(r.errs, shape("header: %d views, limit %d", len(states), maxViews))
		return a, r.errs
	}
	for _, s := range states {
		r.root(&a, "view_tree", viewTree, viewState(s))
	}
	return a, r.errs
}

// readStore reads the header of a store of scanode's.
func readStore(term []byte) (anatomy, []error) {
	a := anatomy{fileType: TypeStore}
	c, err := couch.ReadContents(term)
	if err != nil {
		return a, []error{err}
	}
	a.store, a.updateSeq = c, &c.Seq
	a.roots = append(a.roots, root{"rows", storeTree, c.Root})
	return a, nil
}

// viewState returns the root in {Root, …}, or in a bare root.
func viewState(state []byte) []byte {
	fields, err := tuple(state, 2, 5)
	if err != nil {
		return state // nil
	}
	if _, err := integer(fields[0]); err == nil {
		return state
	}
	return fields[0]
}

// readForeign takes every element that can be the root of a tree for one.
func readForeign(fields [][]byte) anatomy {
	a := anatomy{fileType: TypeTree}
	for _, f := range fields {
		arity, _, err := etf.ReadTupleHeader(f)
		if err != nil || arity != 2 && arity != 3 {
			continue
		}
		if p, err := btree.ParsePointer(f); err == nil {
			a.roots = append(a.roots, root{fmt.Sprintf("tree_%d", len(a.roots)), plainTree, p})
		}
	}
	return a
}
