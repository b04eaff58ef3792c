package check

import (
	"hash/maphash"
	"strings"
	"testing"

	"scanode/etf"
	"scanode/etf/etftext"
	"scanode/storage/couch/btree"
	"scanode/storage/couch/file"
)

var testSeed = maphash.MakeSeed()

// enc is a term as it lies in a node.
func enc(t testing.TB, s string) []byte {
	t.Helper()
	term, err := etftext.Parse(s)
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	b, err := etf.AppendTerm(nil, term)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func rowsOfText(t testing.TB, pairs ...string) (rows []btree.Row) {
	for i := 0; i < len(pairs); i += 2 {
		rows = append(rows, btree.Row{Key: enc(t, pairs[i]), Value: enc(t, pairs[i+1])})
	}
	return rows
}

// TestReductions: the right ones were made by hand.
func TestReductions(t *testing.T) {
	doc := func(deleted, sizes string) string { return "{7, " + deleted + ", " + sizes + ", []}" }
	ids := rowsOfText(t, `<<"a">>`, doc("0", "{10, 20}"), `<<"b">>`, doc("1", "{1, 2}"), `<<"c">>`, doc("0", "{100, 200}"))
	old := rowsOfText(t, `<<"a">>`, doc("0", "10"), `<<"b">>`, doc("1", "1"))
	idChildren := rowsOfText(t, `<<"a">>`, "{0, {2, 1, {size_info, 111, 222}}, 9}", `<<"b">>`, "{9, {1, 0, {size_info, 5, 6}}, 9}")
	counts := rowsOfText(t, "1", "{0, 3, 9}", "2", "{9, 4}")
	views := rowsOfText(t, `{1, <<"a">>}`, "{0, {3, [16, 3], 30}, 9}", `{2, <<"a">>}`, "{9, {1, [1, 1], 12}, 9}")
	for _, c := range []struct {
		name  string
		kind  treeKind
		leaf  bool
		rows  []btree.Row
		right string
		wrong []string
	}{
		{"ids", idTree, true, ids, "{2, 1, {size_info, 111, 222}}", []string{"{1, 1, {size_info, 111, 222}}", "{2, 2, {size_info, 111, 222}}", "{2, 1, {size_info, 112, 222}}", "{2, 1, {size_info, 111, 221}}", "3", "[]"}},
		{"ids without sizes", idTree, true, ids, "{2, 1}", []string{"{2, 0}"}},
		{"old ids", idTree, true, old, "{1, 1, 11}", []string{"{1, 1, 12}", "{0, 1, 11}"}},
		{"inner ids", idTree, false, idChildren, "{3, 1, {size_info, 116, 228}}", []string{"{3, 1, {size_info, 117, 228}}", "{4, 1, {size_info, 116, 228}}"}},
		{"sequences", seqTree, true, ids, "3", []string{"2", "[]", "{3}"}},
		{"inner sequences", seqTree, false, counts, "7", []string{"8", "2"}},
		{"purges", purgeTree, true, ids, "3", []string{"4"}},
		{"local", localTree, true, ids, "[]", []string{"3", "[1]"}},
		{"view keys", viewIDTree, false, ids, "[]", []string{"nil"}},
		{"inner view", viewTree, false, views, "{4, [17, 4], 42}", []string{"{3, [17, 4], 42}", "{4, [17, 4], 43}", "{4, [17], 42}"}},
	} {
		n := &btree.Node{Leaf: c.leaf, Rows: c.rows}
		if err := checkReduction(c.kind, n, enc(t, c.right)); err != nil {
			t.Errorf("%s: %s: %v", c.name, c.right, err)
		}
		for _, w := range c.wrong {
			if checkReduction(c.kind, n, enc(t, w)) == nil {
				t.Errorf("%s: %s is taken", c.name, w)
			}
		}
	}
}

// TestViewReduction is apart since CouchDB writes a list of small integers as a string,
// and its bytes count. Key and value of each of the three rows have three bytes each
// with the version byte, the list has six.
func TestViewReduction(t *testing.T) {
	n := &btree.Node{Leaf: true, Rows: rowsOfText(t, `{1, <<"a">>}`, "5", `{2, <<"a">>}`, "{dups, [5, 6]}")}
	if err := checkReduction(viewTree, n, viewOfThree(24)); err != nil {
		t.Error(err)
	}
	for _, w := range [][]byte{viewOfThree(25), enc(t, "{2, [], 24}"), enc(t, "3")} {
		if checkReduction(viewTree, n, w) == nil {
			t.Errorf("%s is taken", text(w))
		}
	}
}

// viewOfThree is {3, [16, 3], external}, the list as CouchDB writes it.
func viewOfThree(external int64) []byte {
	b := etf.AppendInt64(etf.AppendTupleHeader(nil, 3), 3)
	b = append(b, etf.TagString, 0, 2, 16, 3)
	return etf.AppendInt64(b, external)
}

// TestDocumentRules: what a document's own row says must be what its revisions say.
func TestDocumentRules(t *testing.T) {
	const (
		live = `[{1, {<<"r">>, {0, 50, 7, {1, 1}, []}, []}}]`
		dead = `[{1, {<<"r">>, {1, 50, 7, {1, 1}, []}, []}}]`
		both = `[{1, {<<"r">>, {1, 50, 7, {1, 1}, []}, []}}, {1, {<<"s">>, {0, 60, 6, {1, 1}, []}, []}}]`
		fork = `[{1, {<<"r">>, [], [{<<"s">>, {0, 50, 7, {1, 1}, []}, []}, {<<"t">>, {0, 60, 6, {1, 1}, []}, []}]}}]`
	)
	for _, c := range []struct {
		seq, deleted, tree string
		want               string // "" is fine
	}{
		{"7", "0", live, ""}, {"7", "1", dead, ""}, {"7", "0", both, ""}, {"9", "0", live, ""}, {"7", "0", fork, ""},
		{"7", "1", live, "deleted is true"}, {"7", "0", dead, "deleted is false"}, {"7", "1", both, "deleted is true"},
		{"6", "0", live, "a revision of sequence 7"}, {"11", "0", live, "the header has 10"},
		{"7", "0", "[{1, {<<\"r\">>, {2, 50, 7, {1, 1}, []}, []}}]", "no flag"}, {"7", "0", "[{1, nobody}]", "unexpected"},
	} {
		in := &inspection{rep: &Report{Documents: &Documents{}}}
		ten := int64(10)
		in.a.updateSeq = &ten
		in.seed = testSeed
		in.byID.limit, in.bodies.limit = 100, 100
		row := rowsOfText(t, `<<"doc">>`, "{"+c.seq+", "+c.deleted+", {1, 1}, "+c.tree+"}")
		if err := in.idLeaf(&btree.Node{Leaf: true, Rows: row}, btree.Pointer{}); err != nil {
			t.Fatal(err)
		}
		said := ""
		for _, f := range in.rep.Damage {
			said += f.String()
		}
		if (said == "") != (c.want == "") || !strings.Contains(said, c.want) {
			t.Errorf("%v: %q, want %q", c, said, c.want)
		}
		if c.tree == fork && (in.rep.Conflicts != 1 || in.rep.ConflictedDocs != 1 || in.rep.Revisions != 3) {
			t.Errorf("fork: %+v", *in.rep.Documents)
		}
	}
}

// TestDeepRevisions: a tree of revisions deeper than anything else may be.
func TestDeepRevisions(t *testing.T) {
	const depth = 100000
	b := etf.AppendInt64(etf.AppendTupleHeader(etf.AppendListHeader(nil, 1), 2), 1)
	for i := range depth {
		b = etf.AppendNil(etf.AppendBinary(etf.AppendTupleHeader(b, 3), []byte("0123456789abcdef")))
		if i < depth-1 {
			b = etf.AppendListHeader(b, 1)
		}
	}
	for range depth + 1 {
		b = etf.AppendNil(b)
	}
	n, last := 0, revision{}
	err := revisions(b, func(r revision) error {
		n++
		last = r
		return nil
	})
	if err != nil || n != depth || last.pos != depth || !last.leaf || last.depth != depth-1 {
		t.Errorf("%d revisions, the last %+v, %v", n, last, err)
	}
}

// TestTotal: an attachment that several leaves have counts once.
func TestTotal(t *testing.T) {
	att := savedAtt{pieces: []byte("piece"), length: 1000}
	leaf := func(atts ...savedAtt) savedRev {
		return savedRev{kept: true, body: true, active: 10, external: 1, atts: atts, parent: -1}
	}
	inner := leaf(savedAtt{pieces: []byte("older"), length: 5000})
	inner.children = 2
	deleted, sizes := total([]savedRev{inner, leaf(att), leaf(att, savedAtt{pieces: []byte("other"), length: 7})})
	if want := enc(t, "{1027, 1009}"); deleted != 0 || string(sizes) != string(want) {
		t.Errorf("%d, %s", deleted, text(sizes))
	}
}

// TestGuess: a function is known by what it makes of the leaves.
func TestGuess(t *testing.T) {
	leaf := &btree.Node{Leaf: true, Rows: rowsOfText(t, `{1, <<"a">>}`, "5", `{2, <<"b">>}`, "6")}
	for _, c := range []struct {
		kind   treeKind
		stored []string
		faults int
		want   btree.Reducer
		known  bool
	}{
		{viewTree, []string{"{2, [], 1}"}, 1, btree.View{}, true},
		{viewTree, []string{"{2, [11, x], 1}"}, 0, nil, false},
		{viewTree, []string{"{2, [11, [2]], 1}"}, 0, nil, false},
		{viewTree, []string{"{2, [{11, 2, 5, 6, 61}, 11], 1}"}, 0, btree.View{Reducers: []btree.Reducer{btree.Stats{}, btree.Sum{}}}, true},
		{viewTree, []string{"{2, [{11, 2, 5, 6, 61}, 11], 1}", "{2, [{11, 2, 5, 6, 61}, 12], 1}"}, 1, btree.View{Reducers: []btree.Reducer{btree.Stats{}, btree.Sum{}}}, true},
		{viewTree, []string{"{2, [{11, 2, 5, 6, 61}, 11], 1}", "{2, [{11, 2, 5, 6, 61}, 12], 1}"}, 0, nil, false},
		{plainTree, []string{"2"}, 0, btree.Count{}, true},
		{plainTree, []string{"[]"}, 0, nil, true},
		{plainTree, []string{"{2, 11}"}, 0, nil, false},
	} {
		g := newGuess(c.kind)
		for _, s := range c.stored {
			if err := g.leaf(leaf, enc(t, s)); err != nil {
				t.Fatal(err)
			}
		}
		got, known := g.reducer(c.faults)
		if known != c.known || known && text(mustReduce(t, got, leaf.Rows)) != text(mustReduce(t, c.want, leaf.Rows)) {
			t.Errorf("%+v: %T %v", c, got, known)
		}
	}
}

func mustReduce(t *testing.T, r btree.Reducer, rows []btree.Row) []byte {
	t.Helper()
	b, err := reduce(r, rows)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestTreesAreHeldAgainstReductions forges a database whose seq tree says that it has two
// rows and has one.
func TestTreesAreHeldAgainstReductions(t *testing.T) {
	for count, want := range map[string]string{"1": "", "2": "seq_tree: stored reduction is not that of the node: 2 stored, 1 found"} {
		b := forgeHeader(t, func(add func([]byte) file.Chunk) []byte {
			leaf := etf.AppendListHeader(etf.AppendAtom(etf.AppendTupleHeader(etf.AppendVersion(nil), 2), "kv_node"), 1)
			leaf = append(etf.AppendInt64(etf.AppendTupleHeader(leaf, 2), 7), enc(t, `{<<"a">>, 0, {1, 1}, []}`)...)
			c := add(etf.AppendNil(leaf))
			header := newDatabaseHeader()
			header[dbSeqTree] = btree.Pointer{Ptr: c.Ptr, Reduction: enc(t, count), Size: c.Size}.Append(nil)
			return appendTuple(header)
		})
		said := ""
		for _, f := range inspectBytes(t, "forged.couch", b, Options{}).Damage {
			if strings.HasPrefix(f.String(), "seq_tree") {
				said += f.String()
			}
		}
		if (want == "") != (said == "") || !strings.HasPrefix(said, want) {
			t.Errorf("%s: %q, want %q", count, said, want)
		}
	}
}
