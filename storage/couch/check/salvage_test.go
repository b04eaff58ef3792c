package check

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/etf"
	"scanode/storage/couch/btree"
	"scanode/storage/couch/file"
)

// dump is all that a reader of a database can see, in a form that does not depend on
// where things lie: revisions with bodies and attachments, local documents, purges.
// It reads by packages btree and file.
func dump(t testing.TB, fs vfs.FS, name string) map[string]string {
	t.Helper()
	f, err := file.OpenReadOnly(fs, name, file.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h, err := f.LastHeader()
	if err != nil {
		t.Fatal(err)
	}
	a, errs := readAnatomy(h.Term)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	seen := map[string]string{"update_seq": fmt.Sprint(*a.updateSeq)}
	for _, r := range a.roots {
		o := btree.Options{}
		if r.kind == viewTree {
			o.Order = btree.ViewOrder()
			seen[r.name+" "+fmt.Sprint(len(seen))] = text(r.p.Reduction)
		}
		it := btree.New(f, r.p, o).Iter(btree.Range{})
		for it.Next() {
			key := r.name + " " + text(it.Key())
			switch r.kind {
			case idTree:
				dumpDocument(t, f, seen, it.Key(), it.Value())
			case seqTree:
				i, err := readInfo(it.Key(), it.Value(), true)
				if err != nil {
					t.Fatal(err)
				}
				seen[key] = string(i.id)
			case viewIDTree:
				// The order of the keys of a document means nothing.
				keys, err := list(it.Value())
				if err != nil {
					t.Fatal(err)
				}
				slices.SortFunc(keys, bytes.Compare)
				seen[key] = text(bytes.Join(append([][]byte{etf.AppendTupleHeader(nil, len(keys))}, keys...), nil))
			default:
				seen[key] = text(it.Value())
			}
		}
		if err := it.Err(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for _, c := range a.terms {
		b, err := f.Read(nil, c.ptr)
		if err == nil {
			b, err = file.Decompress(nil, b, 1<<20)
		}
		if err != nil {
			t.Fatal(err)
		}
		seen[c.name] = text(b[1:])
	}
	return seen
}

func dumpDocument(t testing.TB, f *file.File, seen map[string]string, key, value []byte) {
	i, err := readInfo(key, value, false)
	if err != nil {
		t.Fatal(err)
	}
	seen["doc "+string(i.id)] = fmt.Sprint(i.seq, i.deleted)
	err = revisions(i.tree, func(r revision) error {
		name := fmt.Sprintf("rev %s %s depth %d leaf %v", i.id, r, r.depth, r.leaf)
		if !r.body {
			seen[name] = "no body"
			return nil
		}
		b, err := f.Read(nil, r.ptr)
		if err != nil {
			return err
		}
		body, atts, err := bodyTerms(b)
		if err == nil {
			body, err = unpack(body)
		}
		if err != nil {
			return err
		}
		seen[name] = fmt.Sprint(r.deleted, r.seq, text(body))
		list, err := readAttachments(atts)
		if err != nil {
			return err
		}
		for _, a := range list {
			var content []byte
			for _, p := range a.pieces {
				if content, err = f.Read(content, p.ptr); err != nil {
					return err
				}
			}
			seen[name+" att "+string(a.name)] = fmt.Sprintf("%d %x %x", a.length, a.md5, content)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func salvageBytes(t testing.TB, name string, b []byte, o SalvageOptions) (*Salvaged, vfs.FS, error) {
	t.Helper()
	fs := inMemory(t, name, b)
	r, err := Salvage(fs, name, "out"+filepath.Ext(name), o)
	return r, fs, err
}

// TestSalvageWhole: of a file with nothing wrong all is there afterwards, in a file
// with nothing wrong.
func TestSalvageWhole(t *testing.T) {
	for _, name := range []string{
		"db_small_none.couch", "db_small_snappy.couch", "db_small_deflate_6.couch", "db_many.couch", "db_many_compacted.couch", "db_purged.couch",
		"db_deleted_all.couch", "db_empty.couch", "db_md5.couch", "db_v6_small.couch", "db_v6_many.couch",
		"view_snappy.view", "view_none.view", "view_md5.view", "view_deflate_6.view", "view_empty.view",
	} {
		t.Run(name, func(t *testing.T) {
			r, fs, err := salvageBytes(t, name, readVector(t, name), SalvageOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if r.LostCount != 0 {
				t.Errorf("lost: %v", r.Lost)
			}
			out := "out" + filepath.Ext(name)
			want, got := dump(t, fs, name), dump(t, fs, out)
			compareDumps(t, got, want)
			old, new := inspect(t, name, Options{}), mustFile(t, fs, out)
			fine(t, new)
			if old.ExternalSize != new.ExternalSize && old.FileType == TypeDatabase {
				t.Errorf("external size %d, it was %d", new.ExternalSize, old.ExternalSize)
			}
			if old.Documents != nil && *old.Documents != *new.Documents {
				t.Errorf("%+v, it was %+v", *new.Documents, *old.Documents)
			}
			// What bodies and attachments take is counted anew, by the chunks in the new file.
			if new.FileType == TypeDatabase && new.Sizes.Active > new.Bytes.KVNodes+new.Bytes.KPNodes+new.Bytes.Bodies+new.Bytes.Attachments {
				t.Errorf("active %d of %+v", new.Sizes.Active, *new.Bytes)
			}
		})
	}
}

func mustFile(t testing.TB, fs vfs.FS, name string) *Report {
	t.Helper()
	r, err := File(fs, name, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func compareDumps(t testing.TB, got, want map[string]string) {
	t.Helper()
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s: %s, want %s", k, clip(got[k], 300), clip(v, 300))
		}
	}
	for k, v := range got {
		if _, ok := want[k]; !ok {
			t.Errorf("%s: %s, there was none", k, clip(v, 300))
		}
	}
}

// TestSalvageFlipped flips bytes all over a database with attachments, conflicts and
// local documents. What is salvaged is in the original just so, or is said to be lost;
// the new file is always fine.
func TestSalvageFlipped(t *testing.T) {
	for _, name := range []string{"db_small_none.couch", "db_purged.couch"} {
		original := readVector(t, name)
		whole := dump(t, inMemory(t, name, original), name)
		newest := inspect(t, name, Options{}).Header.Offset
		for i := 0; i < len(original); i += 61 {
			b := bytes.Clone(original)
			b[i] ^= 0x55
			before := inspectBytes(t, name, b, Options{})
			r, fs, err := salvageBytes(t, name, b, SalvageOptions{})
			if err != nil {
				if errors.Is(err, ErrNotSalvaged) && before.Damaged() {
					continue
				}
				t.Fatalf("byte %d: %v", i, err)
			}
			if !before.Damaged() && r.LostCount > 0 {
				t.Errorf("byte %d: nothing is damaged, lost: %v", i, r.Lost)
			}
			got := dump(t, fs, "out.couch")
			if before.Generation > 0 || before.Header == nil || before.Header.Offset != newest {
				continue // of an older header
			}
			for k, v := range whole {
				if r.LostCount == 0 && got[k] != v && k != "security" && !strings.HasPrefix(k, "local_tree") {
					t.Errorf("byte %d: nothing is said to be lost, and %s is %s, not %s", i, k, clip(got[k], 200), clip(v, 200))
				}
			}
		}
	}
}

// TestSalvageTrees breaks one of the trees of a database: the other one has all.
func TestSalvageTrees(t *testing.T) {
	const name = "db_many.couch"
	original := readVector(t, name)
	whole := dump(t, inMemory(t, name, original), name)
	r := inspect(t, name, Options{})
	a, _ := readAnatomy(headerOf(t, original).Term)
	for _, root := range a.roots[:2] {
		b := bytes.Clone(original)
		b[root.p.Ptr+5] ^= 0xff // behind the length word: the root is no node any more
		s, fs, err := salvageBytes(t, name, b, SalvageOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if s.LostCount != 1 || s.Documents != r.DocInfoCount || root.kind == idTree && s.FromSeqTree != r.DocInfoCount {
			t.Errorf("%s: %+v", root.name, s)
		}
		compareDumps(t, dump(t, fs, "out.couch"), whole)
	}
	// Both: only orphaned leaves are left.
	b := bytes.Clone(original)
	for _, root := range a.roots[:2] {
		b[root.p.Ptr+5] ^= 0xff
	}
	s, _, err := salvageBytes(t, name, b, SalvageOptions{})
	if err != nil || s.Documents != 0 || s.LostCount != 2 {
		t.Errorf("%+v, %v", s, err)
	}
	s, fs, err := salvageBytes(t, name, b, SalvageOptions{Orphans: true})
	if err != nil || s.Documents != r.DocInfoCount || s.FromOrphans != s.Documents {
		t.Fatalf("%+v, %v", s, err)
	}
	got := dump(t, fs, "out.couch")
	for k, v := range whole {
		if strings.HasPrefix(k, "rev ") && got[k] != v {
			t.Errorf("%s: %s, want %s", k, got[k], v)
		}
	}
}

func headerOf(t *testing.T, b []byte) file.Header {
	t.Helper()
	f, err := file.OpenReadOnly(inMemory(t, "a", b), "a", file.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h, err := f.LastHeader()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestSalvageNoHeader: without a header there are only leaves.
func TestSalvageNoHeader(t *testing.T) {
	const name = "db_purged.couch"
	original := readVector(t, name)
	b := bytes.Clone(original)
	for i := 0; i < len(b); i += file.BlockSize {
		if b[i] == 1 {
			b[i+6] ^= 1 // in the checksum
		}
	}
	if _, _, err := salvageBytes(t, name, b, SalvageOptions{}); !errors.Is(err, file.ErrNoHeader) {
		t.Errorf("%v", err)
	}
	s, fs, err := salvageBytes(t, name, b, SalvageOptions{Orphans: true})
	if err != nil || s.Documents < 27 || s.LostCount == 0 {
		t.Fatalf("%+v, %v", s, err)
	}
	got, want := dump(t, fs, "out.couch"), dump(t, inMemory(t, name, original), name)
	for k, v := range want {
		if strings.HasPrefix(k, "rev ") && got[k] != v {
			t.Errorf("%s: %s, want %s", k, got[k], v)
		}
	}
	if !strings.Contains(got["security"], "_admin") {
		t.Errorf("security %s", got["security"])
	}
}

// TestSalvageBody: when the body of a leaf is lost, the revision before it is the leaf.
func TestSalvageBody(t *testing.T) {
	const name = "db_small_none.couch"
	original := readVector(t, name)
	f, err := file.OpenReadOnly(inMemory(t, "a", original), "a", file.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	a, _ := readAnatomy(headerOf(t, original).Term)
	var victim int64
	it := btree.New(f, a.roots[0].p, btree.Options{}).Iter(btree.Range{Start: etf.AppendBinary(nil, []byte("gamma")), End: etf.AppendBinary(nil, []byte("gamma"))})
	for it.Next() {
		i, err := readInfo(it.Key(), it.Value(), false)
		if err != nil {
			t.Fatal(err)
		}
		_ = revisions(i.tree, func(r revision) error {
			victim = r.ptr
			return nil
		})
	}
	b := bytes.Clone(original)
	b[victim+30] ^= 1
	s, fs, err := salvageBytes(t, name, b, SalvageOptions{})
	if err != nil || s.LostCount != 2 || s.Documents != 4 || !strings.Contains(s.Lost[0].Text, "gamma") {
		t.Fatalf("%+v, %v", s, err)
	}
	got := dump(t, fs, "out.couch")
	if _, ok := got["doc gamma"]; ok {
		t.Error("gamma has no body and is there")
	}
}

// TestSalvageView: rows that can be read are there, with reductions that are right for
// them, and CouchDB will not take the file.
func TestSalvageView(t *testing.T) {
	const name = "view_snappy.view"
	original := readVector(t, name)
	whole := dump(t, inMemory(t, name, original), name)
	a, _ := readAnatomy(headerOf(t, original).Term)
	f, err := file.OpenReadOnly(inMemory(t, "a", original), "a", file.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, root := range a.roots {
		var n btree.Node
		if err := n.Read(f, root.p.Ptr, maxNodeBytes); err != nil || n.Leaf {
			t.Fatal(err)
		}
		child, err := btree.ParsePointer(n.Rows[3].Value)
		if err != nil {
			t.Fatal(err)
		}
		b := bytes.Clone(original)
		b[child.Ptr+5] ^= 0xff
		s, fs, err := salvageBytes(t, name, b, SalvageOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if s.LostCount == 0 {
			t.Errorf("%+v", s)
		}
		r := mustFile(t, fs, "out.view")
		if r.ViewSignature != strings.Repeat("0", 32) {
			t.Errorf("signature %s", r.ViewSignature)
		}
		got := dump(t, fs, "out.view")
		missing := 0
		for k, v := range whole {
			if _, ok := got[k]; !ok {
				missing++
			} else if got[k] != v && !strings.HasPrefix(v, "{") {
				t.Errorf("%s: %s, it was %s", k, got[k], v)
			}
		}
		if root.kind == viewTree && missing == 0 || missing > 60 {
			t.Errorf("%d rows missing", missing)
		}
	}
}

// TestSalvageKeepsOut: what is there is not touched, and nothing stays of a failure.
func TestSalvageKeepsOut(t *testing.T) {
	fs := inMemory(t, "a.couch", readVector(t, "db_purged.couch"))
	if _, err := Salvage(fs, "a.couch", "a.couch", SalvageOptions{}); !errors.Is(err, file.ErrExists) {
		t.Errorf("%v", err)
	}
	fine(t, mustFile(t, fs, "a.couch"))
	fs = inMemory(t, "b.couch", readVector(t, "torn_first.cf"))
	if _, err := Salvage(fs, "b.couch", "out.couch", SalvageOptions{}); err == nil {
		t.Error("salvaged without a header")
	}
	if _, err := fs.Stat("out.couch"); err == nil {
		t.Error("a failure left a file")
	}
}
