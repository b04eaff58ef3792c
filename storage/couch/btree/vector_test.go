package btree

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/etf"
	"scanode/storage/couch/file"
)

// The manifest tells of files that CouchDB's couch_btree wrote, and of what it answered
// about them.

type manifest struct {
	File  string
	Trees []vectorTree
}

type vectorTree struct {
	Name, Less, Reduce string
	Rows               int
	RowsSHA256         string `json:"rows_sha256"`
	Root               struct{ ETF term }
	FullReduce         string `json:"full_reduce"`
	Stats              struct {
		Depth, Items int
		KP           NodeStats `json:"kp_nodes"`
		KV           NodeStats `json:"kv_nodes"`
	}
	Nodes []struct {
		Type       string
		Ptr        int64
		N          int
		Depth      int
		FirstKey   term       `json:"first_key"`
		LastKey    term       `json:"last_key"`
		KeysSHA256 string     `json:"keys_sha256"`
		Children   [][2]int64 // place and size
		Reductions []string   `json:"child_reductions"`
	}
	Folds []struct {
		Options       options `json:"opts"`
		Rows          int
		RowsSHA256    string `json:"rows_sha256"`
		OffsetsSHA256 string `json:"offsets_sha256"`
		LastReduction string `json:"last_reduction"`
		FirstOffset   string `json:"first_offset"`
	}
	FoldReduces []struct {
		Options      options `json:"opts"`
		Group        string
		Groups       int
		GroupsSHA256 string `json:"groups_sha256"`
	} `json:"fold_reduce"`
	Lookups []struct {
		Key, Row term
		Found    bool
	}
}

// options are a fold's, {Name, Term} each.
type options [][2]json.RawMessage

func (o options) rangeOf(t *testing.T) (r Range, level []byte) {
	t.Helper()
	for _, pair := range o {
		var name string
		var value term
		if err := json.Unmarshal(pair[0], &name); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(pair[1], &value); err != nil {
			t.Fatal(err)
		}
		switch name {
		case "dir":
			dir, _, _ := etf.ReadAtom(value)
			r.Reverse = string(dir) == "rev"
		case "start_key":
			r.Start = value
		case "end_key":
			r.End = value
		case "end_key_gt":
			r.EndGT = value
		case "key_group_level":
			level = value
		default:
			t.Fatalf("option %s", name)
		}
	}
	return r, level
}

func readManifest(t testing.TB) []manifest {
	var all []manifest
	readJSON(t, "../testdata/trees.manifest.json.gz", &all)
	if len(all) < 7 {
		t.Fatalf("%d files in the manifest", len(all))
	}
	return all
}

// openRecorded opens a recorded file and returns the terms of its header.
func openRecorded(t testing.TB, name string) (f *file.File, terms []etf.Term) {
	t.Helper()
	f, err := file.OpenReadOnly(vfs.Default, filepath.Join("../testdata", name), file.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	h, err := f.LastHeader()
	if err != nil {
		t.Fatal(err)
	}
	rest, err := etf.SkipVersion(h.Term)
	if err != nil {
		t.Fatal(err)
	}
	v, _, err := etf.Decode(rest, etf.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return f, v.(etf.Tuple)
}

// pointerOf makes a pointer of a decoded term.
func pointerOf(t testing.TB, v etf.Term) Pointer {
	t.Helper()
	b, err := etf.AppendTerm(nil, v)
	if err != nil {
		t.Fatal(err)
	}
	p, err := ParsePointer(appendCanonical(nil, b))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestRecordedTrees(t *testing.T) {
	for _, m := range readManifest(t) {
		for i, vt := range m.Trees {
			t.Run(m.File+"/"+vt.Name, func(t *testing.T) {
				f, header := openRecorded(t, m.File)
				root := pointerOf(t, header[2+i])
				if string(root.Append(nil)) != string(vt.Root.ETF) {
					t.Errorf("root %x, recorded %x", root.Append(nil), vt.Root.ETF)
				}
				o := recordedOptions(t, vt.Less, vt.Reduce, "none", 0)
				for _, cache := range []*Cache{nil, NewCache(20_000)} {
					o.Cache = cache
					tree := New(f, root, o)
					checkNodes(t, tree, &vt)
					checkFolds(t, tree, &vt)
					checkFoldReduces(t, tree, &vt)
					checkLookups(t, tree, &vt)
				}
			})
		}
	}
}

func checkNodes(t *testing.T, tree Tree, vt *vectorTree) {
	i := 0
	sum, err := tree.Verify(Check{Visit: func(n Visit) error {
		if i >= len(vt.Nodes) {
			t.Fatalf("more than %d nodes", i)
		}
		want := vt.Nodes[i]
		i++
		keys := sha256.New()
		for _, r := range n.Rows {
			keys.Write(versioned(r.Key))
		}
		if n.Ptr != want.Ptr || n.Leaf != (want.Type == "kv_node") || len(n.Rows) != want.N || len(n.Path)+1 != want.Depth ||
			hex.EncodeToString(keys.Sum(nil)) != want.KeysSHA256 {
			t.Fatalf("node %+v\nrecorded %+v", n, want)
		}
		for j, c := range want.Children {
			p, err := ParsePointer(n.Rows[j].Value)
			if err != nil {
				t.Fatal(err)
			}
			if p.Ptr != c[0] || p.Size != c[1] || string(p.Reduction) != string(fromText(t, want.Reductions[j])) {
				t.Fatalf("child %d of node %d is %+v, recorded %v", j, n.Ptr, p, c)
			}
		}
		return nil
	}})
	if err != nil {
		t.Error(err)
	}
	if i != len(vt.Nodes) && len(vt.Nodes) > 0 {
		t.Errorf("%d nodes, recorded %d", i, len(vt.Nodes))
	}
	if sum.Depth != vt.Stats.Depth || sum.Inner != vt.Stats.KP || sum.Leaves != vt.Stats.KV || sum.Rows != int64(vt.Stats.Items) {
		t.Errorf("%+v, recorded %+v", sum, vt.Stats)
	}
	full, err := tree.FullReduce()
	if err != nil || vt.FullReduce != "" && string(full) != string(fromText(t, vt.FullReduce)) {
		t.Errorf("full reduction %x, recorded %s, %v", full, vt.FullReduce, err)
	}
}

func checkFolds(t *testing.T, tree Tree, vt *vectorTree) {
	for _, f := range vt.Folds {
		r, _ := f.Options.rangeOf(t)
		rows, offsets, n := sha256.New(), sha256.New(), 0
		last, err := tree.Fold(r, func(row Row, at *Iter) (Step, error) {
			offset, err := tree.FinalReduce(nil, at.Passed())
			if err != nil {
				return Stop, err
			}
			if n == 0 && string(offset) != string(fromText(t, f.FirstOffset)) {
				t.Errorf("%s: first offset %x, recorded %s", f.Options, offset, f.FirstOffset)
			}
			n++
			offsets.Write(versioned(offset))
			rows.Write([]byte{etf.Version, etf.TagSmallTuple, 2})
			rows.Write(row.Key)
			rows.Write(row.Value)
			return Next, nil
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if n != f.Rows || hex.EncodeToString(rows.Sum(nil)) != f.RowsSHA256 {
			t.Errorf("%s: %d other rows, recorded %d", f.Options, n, f.Rows)
		}
		if hex.EncodeToString(offsets.Sum(nil)) != f.OffsetsSHA256 {
			t.Errorf("%s: other offsets", f.Options)
		}
		red, err := tree.FinalReduce(nil, last)
		if err != nil || string(red) != string(fromText(t, f.LastReduction)) {
			t.Errorf("%s: last reduction %x, recorded %s, %v", f.Options, red, f.LastReduction, err)
		}
	}
}

func checkFoldReduces(t *testing.T, tree Tree, vt *vectorTree) {
	for _, f := range vt.FoldReduces {
		r, level := f.Options.rangeOf(t)
		order := tree.o.Order
		var group Group
		switch f.Group {
		case "all":
			group = GroupAll
		case "div100":
			group = func(a, b []byte) (bool, error) {
				x, _, _ := etf.ReadInt64(a)
				y, _, err := etf.ReadInt64(b)
				return x/100 == y/100, err
			}
		case "each":
			group = func(a, b []byte) (bool, error) {
				c, err := order(a, b)
				return c == 0, err
			}
		case "key_group_level_exact":
			group = GroupExact(order)
		default:
			n, _, err := etf.ReadInt64(level)
			if err != nil {
				t.Fatalf("group %s", f.Group)
			}
			group = GroupLevel(int(n), order)
		}
		h, n := sha256.New(), 0
		err := tree.FoldReduce(r, group, func(key []byte, p Partial) (Step, error) {
			red, err := tree.FinalReduce(nil, p)
			h.Write([]byte{etf.Version, etf.TagSmallTuple, 2})
			h.Write(key)
			h.Write(red)
			n++
			return Next, err
		})
		if err != nil {
			t.Fatal(err)
		}
		if n != f.Groups || hex.EncodeToString(h.Sum(nil)) != f.GroupsSHA256 {
			t.Errorf("%s by %s: %d other groups, recorded %d", f.Options, f.Group, n, f.Groups)
		}
	}
}

func checkLookups(t *testing.T, tree Tree, vt *vectorTree) {
	var keys [][]byte
	for _, l := range vt.Lookups {
		keys = append(keys, l.Key)
		value, found, err := tree.Get(l.Key)
		if err != nil || found != l.Found || found && string(value) != string(l.Row) {
			t.Errorf("%x: %x, %t, %v; recorded %x", l.Key, value, found, err, l.Row)
		}
	}
	results, err := tree.Lookup(keys)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		l := vt.Lookups[i]
		if string(r.Key) != string(l.Key) || r.Found != l.Found || string(r.Value) != string(l.Row) {
			t.Errorf("%x: %x, %t; recorded %x", l.Key, r.Value, r.Found, l.Row)
		}
	}
}

func (o options) String() string {
	b, _ := json.Marshal([][2]json.RawMessage(o))
	return string(b)
}
