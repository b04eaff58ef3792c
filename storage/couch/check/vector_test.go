package check

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// vectors holds files that CouchDB wrote, and what it and cfcheck said of them.
const vectors = "../testdata"

func inspect(t testing.TB, name string, o Options) *Report {
	t.Helper()
	r, err := File(vfs.Default, filepath.Join(vectors, name), o)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if r.Bytes.Total != r.FileSize {
		t.Errorf("%s: the uses of its bytes add up to %d, it has %d: %+v", name, r.Bytes.Total, r.FileSize, *r.Bytes)
	}
	var sum int64
	for u := range uses {
		n := *r.Bytes.of(u)
		if n < 0 {
			t.Errorf("%s: %d bytes of %s", name, n, byteLines[u])
		}
		sum += n
	}
	if sum != r.FileSize {
		t.Errorf("%s: %d bytes of all uses, it has %d", name, sum, r.FileSize)
	}
	return r
}

func fine(t *testing.T, r *Report) {
	t.Helper()
	for _, f := range r.Damage {
		t.Errorf("%s: damage: %s", r.FileName, f)
	}
}

func readJSON(t *testing.T, name string, v any) {
	t.Helper()
	f, err := os.Open(filepath.Join(vectors, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var d *json.Decoder
	if strings.HasSuffix(name, ".gz") {
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		d = json.NewDecoder(z)
	} else {
		d = json.NewDecoder(f)
	}
	if err := d.Decode(v); err != nil {
		t.Fatal(err)
	}
}

// nodeStats is how the recorded data count nodes.
type nodeStats struct{ Count, Min, Max int }

func (n nodeStats) check(t *testing.T, what string, got Nodes) {
	t.Helper()
	if int64(n.Count) != got.Count || n.Min != got.Min || n.Max != got.Max {
		t.Errorf("%s: %d nodes of %d to %d, CouchDB has %+v", what, got.Count, got.Min, got.Max, n)
	}
	var filled int64
	for _, c := range got.Fill {
		filled += c
	}
	if filled != got.Count {
		t.Errorf("%s: %d nodes in the histogram, there are %d", what, filled, got.Count)
	}
}

type treeVector struct {
	Name  string
	Rows  int64
	Root  struct{ Text string }
	Stats struct {
		Depth int
		KP    nodeStats `json:"kp_nodes"`
		KV    nodeStats `json:"kv_nodes"`
	}
}

func (v treeVector) check(t *testing.T, got *TreeInfo) {
	t.Helper()
	if got.Depth != v.Stats.Depth || got.Rows != v.Rows {
		t.Errorf("%s: depth %d, %d rows; CouchDB has %d, %d", v.Name, got.Depth, got.Rows, v.Stats.Depth, v.Rows)
	}
	v.Stats.KP.check(t, v.Name+" kp", got.KP)
	v.Stats.KV.check(t, v.Name+" kv", got.KV)
	if got.Rows > 0 && !strings.Contains(v.Root.Text, got.Reduction) {
		t.Errorf("%s: reduction %s, CouchDB's root is %s", v.Name, got.Reduction, v.Root.Text)
	}
	if got.size != got.Size {
		t.Errorf("%s: nodes of %d bytes, the root has %d", v.Name, got.Size, got.size)
	}
}

// couchVector is what CouchDB answered about a file when it had it open.
type couchVector struct {
	File, Type, Signature string
	Size                  int64
	Trees                 []treeVector
	UpdateSeq             int64 `json:"update_seq"`
	ActiveSize            int64 `json:"active_size"`
	ExternalSize          int64 `json:"external_size"`
	Security              json.RawMessage
	Info                  struct {
		DocCount     int64 `json:"doc_count"`
		DocDelCount  int64 `json:"doc_del_count"`
		UpdateSeq    int64 `json:"update_seq"`
		PurgeSeq     int64 `json:"purge_seq"`
		CompactedSeq int64 `json:"compacted_seq"`
		DiskVersion  int64 `json:"disk_format_version"`
		Sizes        Sizes
		UUID         string
	}
	Docs []struct {
		ID      string
		Deleted bool
		Leafs   [][]any
	}
}

// TestCouchFiles holds what is found in CouchDB's own files against that.
func TestCouchFiles(t *testing.T) {
	var manifest []couchVector
	readJSON(t, "couch.manifest.json.gz", &manifest)
	if len(manifest) != 14 {
		t.Fatalf("%d files", len(manifest))
	}
	for _, m := range manifest {
		t.Run(m.File, func(t *testing.T) {
			r := inspect(t, m.File, Options{Conflicts: 100})
			fine(t, r)
			if r.FileSize != m.Size || r.FileType != m.Type || len(r.TreeInfo) != len(m.Trees) {
				t.Fatalf("%s of %d bytes with %d trees", r.FileType, r.FileSize, len(r.TreeInfo))
			}
			for i, v := range m.Trees {
				v.check(t, r.TreeInfo[i])
			}
			// CouchDB was never stopped: there is nothing in them that could not be told.
			if b := r.Bytes; b.Unknown+b.Unreadable+b.Newer > 0 || b.Padding == 0 || b.OrphanHeaders == 0 {
				t.Errorf("%+v", *b)
			}
			if m.Type == TypeView {
				m.checkView(t, r)
			} else {
				m.checkInfo(t, r)
				m.checkDocs(t, r)
			}
		})
	}
}

func (m *couchVector) checkView(t *testing.T, r *Report) {
	want := Sizes{m.Size, m.ActiveSize, m.ExternalSize}
	if m.File == "view_empty.view" {
		// CouchDB calls the reduce functions for no rows; they are not in the file.
		want.External = 0
	}
	if *r.Sizes != want || *r.UpdateSeq != m.UpdateSeq || r.ViewSignature != m.Signature {
		t.Errorf("%+v, update_seq %d, signature %s; CouchDB has %+v", *r.Sizes, *r.UpdateSeq, r.ViewSignature, want)
	}
}

func (m *couchVector) checkInfo(t *testing.T, r *Report) {
	i := m.Info
	if *r.Sizes != i.Sizes || *r.UpdateSeq != i.UpdateSeq || *r.PurgeSeq != i.PurgeSeq || *r.CompactedSeq != i.CompactedSeq ||
		*r.DiskVersion != i.DiskVersion || r.UUID != i.UUID || r.DocCount != i.DocCount || r.DelDocCount != i.DocDelCount {
		t.Errorf("%+v, CouchDB has %+v", *r, i)
	}
	// Not the order of members: the recorded JSON was read and written once more.
	var got, want any
	if json.Unmarshal(r.SecurityObject, &got) != nil || len(m.Security) > 0 && json.Unmarshal(m.Security, &want) != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("security %s, CouchDB has %s", r.SecurityObject, m.Security)
	}
}

func (m *couchVector) checkDocs(t *testing.T, r *Report) {
	var leaves, conflicts int64
	conflicted := map[string]int{}
	for _, d := range m.Docs {
		leaves += int64(len(d.Leafs))
		live := 0
		for _, l := range d.Leafs {
			doc, _ := l[1].(map[string]any)
			if doc["_deleted"] != true {
				live++
			}
		}
		if live > 1 {
			conflicts += int64(live - 1)
			conflicted[d.ID] = live
		}
	}
	if r.DocInfoCount != int64(len(m.Docs)) || r.LeafRevisions != leaves || r.Conflicts != conflicts || len(r.Conflicted) != len(conflicted) {
		t.Errorf("%d documents, %d leaves, %d conflicts, conflicted %+v; CouchDB has %d, %d, %d, %v",
			r.DocInfoCount, r.LeafRevisions, r.Conflicts, r.Conflicted, len(m.Docs), leaves, conflicts, conflicted)
	}
	for _, c := range r.Conflicted {
		if conflicted[c.ID] != len(c.Revs) {
			t.Errorf("conflict %+v", c)
		}
	}
}

// TestTreeFiles does the same with files of bare trees.
func TestTreeFiles(t *testing.T) {
	var manifest []struct {
		File  string
		Size  int64
		Trees []treeVector
	}
	readJSON(t, "trees.manifest.json.gz", &manifest)
	for _, m := range manifest {
		r := inspect(t, m.File, Options{})
		fine(t, r)
		if r.FileType != TypeTree || len(r.TreeInfo) != len(m.Trees) {
			t.Fatalf("%s: %s with %d trees", m.File, r.FileType, len(r.TreeInfo))
		}
		for i, v := range m.Trees {
			v.check(t, r.TreeInfo[i])
		}
		if n := r.Bytes.Unknown + r.Bytes.Unreadable + r.Bytes.OrphanTerms; n > 0 {
			t.Errorf("%s: %d bytes not known, and all were written by a tree", m.File, n)
		}
	}
}

// TestEveryFile adds up the bytes of all recorded files, damaged ones too.
func TestEveryFile(t *testing.T) {
	files := 0
	for _, pattern := range []string{"*.cf", "*.couch", "*.view"} {
		names, err := filepath.Glob(filepath.Join(vectors, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			files++
			inspect(t, filepath.Base(name), Options{})
		}
	}
	if files < 50 {
		t.Errorf("only %d files", files)
	}
}

// TestHeaderFiles holds the choice of the header, and what is said of the damage,
// against what CouchDB did.
func TestHeaderFiles(t *testing.T) {
	var manifest []struct {
		File   string
		Result *struct {
			NoValidHeader bool                  `json:"no_valid_header"`
			Class         string                // of an error of the header itself
			HeaderTerm    struct{ Text string } `json:"header_term"`
			Tree          *struct {
				Rows  int64
				Class string
			}
		}
	}
	readJSON(t, "headers.manifest.json", &manifest)
	for _, m := range manifest {
		r := inspect(t, m.File, Options{})
		switch {
		case m.Result == nil: // only chunks
		case m.Result.NoValidHeader:
			if r.FileType != TypeError || !r.Damaged() {
				t.Errorf("%s: %s, CouchDB finds no header", m.File, r.FileType)
			}
		case m.Result.Class != "":
			// CouchDB takes no older header. Neither is the file fine here.
			if !r.Damaged() || r.Generation != 1 {
				t.Errorf("%s: generation %d, damage %v", m.File, r.Generation, r.Damage)
			}
		default:
			if want := m.Result.HeaderTerm.Text; r.HeaderTerm != want && !strings.HasPrefix(want, "{vh_big,") {
				t.Errorf("%s: header %s, CouchDB has %s", m.File, r.HeaderTerm, want)
			}
			tree := m.Result.Tree
			if tree == nil {
				continue
			}
			if tree.Class != "" {
				if !r.Damaged() || r.TreeInfo[0].Broken != 1 {
					t.Errorf("%s: damage %v, CouchDB has %s", m.File, r.Damage, tree.Class)
				}
			} else if n := rows(r); n != tree.Rows {
				t.Errorf("%s: %d rows, CouchDB has %d", m.File, n, tree.Rows)
			}
		}
	}
}

func rows(r *Report) (n int64) {
	for _, t := range r.TreeInfo {
		n += t.Rows
	}
	return n
}

// TestOrphans: in files that a tree alone wrote, and to which no header leads, every
// byte is a node.
func TestOrphans(t *testing.T) {
	for _, name := range []string{"rand_small_snappy.oplog.cf", "big_values.oplog.cf"} {
		var log struct {
			Ops []struct{ Written [][]any }
		}
		readJSON(t, strings.TrimSuffix(name, ".cf")+".json.gz", &log)
		var kp, kv int64
		for _, op := range log.Ops {
			for _, w := range op.Written {
				if w[2] == "kv_node" {
					kv += int64(w[1].(float64))
				} else {
					kp += int64(w[1].(float64))
				}
			}
		}
		r := inspect(t, name, Options{})
		if b := r.Bytes; b.OrphanKPNodes != kp || b.OrphanKVNodes != kv || kp == 0 || kp+kv != r.FileSize {
			t.Errorf("%s: kp %d, kv %d bytes; CouchDB wrote %d and %d", name, b.OrphanKPNodes, b.OrphanKVNodes, kp, kv)
		}
	}
}

// TestSmallMemory: sorting through temporary files changes nothing.
func TestSmallMemory(t *testing.T) {
	for _, name := range []string{"db_many.couch", "view_snappy.view", "db_purged.couch"} {
		dir := t.TempDir()
		small := inspect(t, name, Options{SortRecords: 3, TempDir: dir})
		if large := inspect(t, name, Options{}); !reflect.DeepEqual(small, large) {
			t.Errorf("%s: %+v and %+v", name, small, large)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%v left in the temporary directory, %v", left, err)
		}
	}
}
