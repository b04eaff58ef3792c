package check

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Report is what was found in one file. Its JSON has the names of cfcheck where
// that prints the same.
type Report struct {
	FileName string `json:"file_name"`
	FileSize int64  `json:"file_size"` // bytes
	FileType string `json:"file_type"` // TypeDatabase and so on
	Error    string `json:"error,omitempty"`

	ViewSignature string `json:"view_signature,omitempty"` // in hexadecimal digits

	// ActiveSize is what compaction would leave, by the file's own account: nodes of
	// all trees and, in databases, the bodies and attachments of leaf revisions.
	ActiveSize int64 `json:"active_size"`
	// ExternalSize is, in databases, the size of all documents as JSON; in views, as
	// cfcheck has it, the size of the nodes of the views' trees. Sizes has what
	// CouchDB answers.
	ExternalSize  int64  `json:"external_size"`
	Fragmentation string `json:"fragmentation,omitempty"` // "45.46%"
	Sizes         *Sizes `json:"sizes,omitempty"`

	DiskVersion  *int64 `json:"disk_version,omitempty"`
	UpdateSeq    *int64 `json:"update_seq,omitempty"`
	PurgeSeq     *int64 `json:"purge_seq,omitempty"`
	CompactedSeq *int64 `json:"compacted_seq,omitempty"`

	*Documents

	TreeInfo       []*TreeInfo     `json:"tree_info,omitempty"`
	SecurityObject json.RawMessage `json:"security_object,omitempty"`
	Props          json.RawMessage `json:"props,omitempty"`
	UUID           string          `json:"uuid,omitempty"`
	HeaderTerm     string          `json:"header_term,omitempty"` // of files that are neither database nor view, as text

	Generation   int          `json:"generation"` // which header was looked at: 0 is the newest
	Header       *HeaderInfo  `json:"header,omitempty"`
	HeadersCount int          `json:"headers_count"`
	Headers      []HeaderInfo `json:"headers,omitempty"` // the newest ones, newest first

	Bytes *Bytes `json:"bytes,omitempty"`

	DamageCount int       `json:"damage_count"`
	Damage      []Finding `json:"damage,omitempty"` // the first MaxFindings of them
	NotesCount  int       `json:"notes_count"`
	Notes       []Finding `json:"notes,omitempty"` // what is no damage and yet worth knowing

	Conflicted []Conflicted `json:"conflicted,omitempty"` // the first Options.Conflicts documents with conflicts
}

// Kinds of files, as FileType has them.
const (
	TypeDatabase = "db"
	TypeView     = "view"
	TypeStore    = "store"   // of scanode's engine couch
	TypeTree     = "tree"    // a header of another program, with roots of trees in it
	TypeCompact  = "compact" // of a compaction that is not done: its header holds a database's
	TypeError    = "error"   // no header that could be read
)

// Sizes are those CouchDB answers for a database or a view.
type Sizes struct {
	File     int64 `json:"file"`
	Active   int64 `json:"active"`
	External int64 `json:"external"`
}

// Documents is what the id tree of a database says.
type Documents struct {
	DocCount       int64 `json:"doc_count"`
	DelDocCount    int64 `json:"del_doc_count"`
	DocInfoCount   int64 `json:"doc_info_count"`
	PurgedDocCount int64 `json:"purged_doc_count"`
	// Conflicts counts leaf revisions that are not deleted beyond the first of
	// their document.
	//
	// Differs from cfcheck, which counts the branches that begin with no common
	// revision, deleted ones too: most conflicts have one.
	Conflicts        int64 `json:"conflicts"`
	DeletedConflicts int64 `json:"deleted_conflicts"` // deleted leaves that did not win
	ConflictedDocs   int64 `json:"conflicted_docs"`   // documents with the former
	Revisions        int64 `json:"revisions"`         // in all revision trees
	LeafRevisions    int64 `json:"leaf_revisions"`
	Attachments      int64 `json:"attachments"` // of revisions whose bodies are there
}

// Conflicted is a document with more than one leaf revision that is not deleted.
type Conflicted struct {
	ID   string   `json:"id"`
	Revs []string `json:"revs"` // the leaves that are not deleted, the winner first
}

// HeaderInfo is a header of the file.
type HeaderInfo struct {
	Generation int    `json:"generation"` // 0 is the newest
	Offset     int64  `json:"offset"`
	Size       int64  `json:"size"` // bytes of the file it takes
	Checksum   string `json:"checksum"`
	UpdateSeq  *int64 `json:"update_seq,omitempty"`
	Error      string `json:"error,omitempty"`
}

// TreeInfo is one tree of the file.
//
// Differs from cfcheck, which knows no trees of purges.
//
// Its JSON is an object of one member, the
// tree's name.
type TreeInfo struct {
	Name      string
	Depth     int    // levels; 0 for a tree without rows
	KP        Nodes  // inner nodes
	KV        Nodes  // leaves
	Rows      int64  // in the leaves that could be read
	Size      int64  // bytes of the file that the nodes take
	Reduction string // of the whole tree, as text
	Collation string // of view trees: "json", "raw"
	// Broken counts nodes that could not be read, and so whose rows are missing.
	Broken int64
	// Separators counts pointers whose key is greater than the last one below.
	Separators int64

	size int64 // as the root has it
	ext  int64 // of views: the third part of the reduction
}

// FillBuckets is how many buckets of a tenth of the chunk size Nodes.Fill has; the
// last one is for all that is larger.
const FillBuckets = 16

// Nodes are the nodes of a kind.
//
// Differs from cfcheck, whose kv_nodes' min and max are also those of the kp nodes
// above.
type Nodes struct {
	Count int64              `json:"count"`
	Min   int                `json:"min"` // fewest entries
	Max   int                `json:"max"`
	Fill  [FillBuckets]int64 `json:"fill"` // by size when uncompressed, in tenths of the chunk size
}

func (n *Nodes) add(entries, plain, chunkSize int) {
	if n.Count == 0 || entries < n.Min {
		n.Min = entries
	}
	n.Max = max(n.Max, entries)
	n.Count++
	// The list of rows is what is held against the chunk size: the node without
	// the tuple and the atom around it.
	n.Fill[min(max(plain-12, 0)*10/chunkSize, FillBuckets-1)]++
}

// MarshalJSON has the form of cfcheck, {"id_tree": {"depth": …}}, and more members.
func (t *TreeInfo) MarshalJSON() ([]byte, error) {
	body, err := json.Marshal(struct {
		Depth      int    `json:"depth"`
		KP         *Nodes `json:"kp_nodes"`
		KV         *Nodes `json:"kv_nodes"`
		Rows       int64  `json:"rows"`
		Size       int64  `json:"size"`
		Reduction  string `json:"reduction,omitempty"`
		Collation  string `json:"collation,omitempty"`
		Broken     int64  `json:"broken_nodes,omitempty"`
		Separators int64  `json:"separators,omitempty"`
	}{t.Depth, &t.KP, &t.KV, t.Rows, t.Size, t.Reduction, t.Collation, t.Broken, t.Separators})
	if err != nil {
		return nil, err
	}
	name, err := json.Marshal(t.Name)
	if err != nil {
		return nil, err
	}
	return bytes.Join([][]byte{{'{'}, name, {':'}, body, {'}'}}, nil), nil
}

// MaxFindings is how many findings of a kind a Report keeps; the rest is counted.
const MaxFindings = 200

// Finding is something wrong, or worth knowing.
type Finding struct {
	Text   string `json:"text"`
	Offset int64  `json:"offset"`         // in the file; -1 if it is at no one place
	Tree   string `json:"tree,omitempty"` // of this tree,
	Path   string `json:"path,omitempty"` // and there at the entries taken from the root on, "0/3", or "root"
}

// String is the finding in one line, without the file's name.
func (f Finding) String() string {
	s := f.Text
	if f.Tree != "" {
		s = f.Tree + ": " + s
	}
	switch {
	case f.Path != "":
		s += fmt.Sprintf(" (at %d, path %s)", f.Offset, f.Path)
	case f.Offset >= 0:
		s += fmt.Sprintf(" (at %d)", f.Offset)
	}
	return s
}

func (r *Report) damage(f Finding) { add(&r.Damage, &r.DamageCount, f) }
func (r *Report) note(f Finding)   { add(&r.Notes, &r.NotesCount, f) }

// incomplete is damage that ends a check early. It is kept in any case: nobody may take the
// report for that of the whole file.
func (r *Report) incomplete(f Finding) {
	if r.damage(f); r.DamageCount > MaxFindings {
		r.Damage[MaxFindings-1] = f
	}
}

func add(list *[]Finding, count *int, f Finding) {
	if *count++; len(*list) < MaxFindings {
		*list = append(*list, f)
	}
}

// Bytes says what the file's bytes are used for. Tags, length words, checksums and
// the tag behind a chunk that ends with a block belong to the chunk. The numbers
// add up to the file's size. All but the first eight would be gone after a
// compaction; OldBodies too.
type Bytes struct {
	Header      int64 `json:"header"`
	KPNodes     int64 `json:"kp_nodes"`
	KVNodes     int64 `json:"kv_nodes"`
	Bodies      int64 `json:"bodies"`     // of leaf revisions
	OldBodies   int64 `json:"old_bodies"` // of revisions that have a successor: reachable until the next compaction
	Attachments int64 `json:"attachments"`
	Terms       int64 `json:"terms"`         // security, props and so on
	Log         int64 `json:"log,omitempty"` // in stores: batches behind the newest header

	OrphanHeaders     int64 `json:"orphan_headers"` // older ones
	OrphanKPNodes     int64 `json:"orphan_kp_nodes"`
	OrphanKVNodes     int64 `json:"orphan_kv_nodes"`
	OrphanBodies      int64 `json:"orphan_bodies"`
	OrphanAttachments int64 `json:"orphan_attachments"` // those that an orphaned body leads to
	OrphanTerms       int64 `json:"orphan_terms"`
	OrphanLog         int64 `json:"orphan_log,omitempty"` // batches that are in the tree
	Padding           int64 `json:"padding"`              // zeros up to a block's end
	Unknown           int64 `json:"unknown"`              // whole chunks of which nothing tells what they are: mostly attachments
	Unreadable        int64 `json:"unreadable"`           // where no chunk begins that could be read
	Newer             int64 `json:"newer"`                // behind the header, when that is not the newest

	Total int64 `json:"total"` // of them all
}

// use is what bytes are used for.
type use uint8

// In the order in which two uses of the same bytes are decided: the first one counts.
const (
	useHeader use = iota
	useKP
	useKV
	useBody
	useOldBody
	useAttachment
	useTerm
	useLog
	orphanHeader
	orphanKP
	orphanKV
	orphanBody
	orphanAttachment
	orphanTerm
	orphanLog
	usePadding
	useUnknown
	useUnreadable
	useNewer
	uses
)

func (b *Bytes) of(u use) *int64 {
	return [uses]*int64{
		&b.Header, &b.KPNodes, &b.KVNodes, &b.Bodies, &b.OldBodies, &b.Attachments, &b.Terms, &b.Log,
		&b.OrphanHeaders, &b.OrphanKPNodes, &b.OrphanKVNodes, &b.OrphanBodies, &b.OrphanAttachments, &b.OrphanTerms, &b.OrphanLog,
		&b.Padding, &b.Unknown, &b.Unreadable, &b.Newer,
	}[u]
}

func (b *Bytes) add(u use, n int64) {
	*b.of(u) += n
	b.Total += n
}

// Live is the number of bytes that are reachable from the header, and it.
func (b *Bytes) Live() int64 {
	var n int64
	for u := useHeader; u <= useLog; u++ {
		n += *b.of(u)
	}
	return n
}
