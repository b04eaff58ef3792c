package btree

import (
	"bytes"
	"slices"
	"testing"

	"scanode/etf"
	"scanode/etf/etftext"
)

// The files here were written by CouchDB itself, with documents and views; what their
// trees are reduced to is in them, and answers to reduce queries were recorded.

type couchFile struct {
	File, Type string
	Trees      []couchTree
	Queries    []struct {
		View   int
		Opts   string
		Nth    int
		Groups int
		First  [][2]string
	} `json:"reduce_queries"`
}

type couchTree struct {
	vectorTree
	ReduceFuns []string `json:"reduce_funs"`
}

// reducerOf returns what a tree of CouchDB's is reduced with.
func reducerOf(t *testing.T, kind string, tree *couchTree) Reducer {
	t.Helper()
	switch tree.Name {
	case "id_tree":
		if kind == "db" {
			return IDTree{}
		}
		return nil
	case "seq_tree", "purge_tree", "purge_seq_tree":
		return Count{}
	case "local_tree":
		return nil
	}
	var v View
	for _, name := range tree.ReduceFuns {
		r := map[string]Reducer{"_sum": Sum{}, "_count": Count{}, "_stats": Stats{}}[name]
		if r == nil {
			t.Fatalf("reduce function %s", name)
		}
		v.Reducers = append(v.Reducers, r)
	}
	return v
}

// TestCouchTrees holds the trees of databases and views to their reductions, and answers
// the queries that CouchDB answered.
func TestCouchTrees(t *testing.T) {
	var files []couchFile
	readJSON(t, "../testdata/couch.manifest.json.gz", &files)
	if len(files) < 14 {
		t.Fatalf("%d files", len(files))
	}
	for _, cf := range files {
		t.Run(cf.File, func(t *testing.T) {
			f, _ := openRecorded(t, cf.File)
			var trees []Tree
			for i := range cf.Trees {
				vt := &cf.Trees[i]
				root, err := ParsePointer(vt.Root.ETF)
				if err != nil {
					t.Fatal(err)
				}
				o := Options{Reducer: reducerOf(t, cf.Type, vt)}
				if vt.Less == "json_ids" {
					o.Order = ViewOrder()
				}
				tree := New(f, root, o)
				trees = append(trees, tree)
				checkNodes(t, tree, &vt.vectorTree)
				if sum, n := rowsHash(t, tree.Iter(Range{})); sum != vt.RowsSHA256 || n != vt.Rows {
					t.Errorf("%s: %d other rows, recorded %d", vt.Name, n, vt.Rows)
				}
			}
			for _, q := range cf.Queries {
				// The first tree of a view file is that of document ids.
				query(t, trees[1+q.View], q.Opts, q.Nth, q.Groups, q.First)
			}
		})
	}
}

// query answers one reduce query with the nth function and compares it with what was
// recorded: how many groups, and the first of them.
func query(t *testing.T, tree Tree, opts string, nth, groups int, first [][2]string) {
	t.Helper()
	r, group := queryOptions(t, tree, opts)
	n := 0
	err := tree.FoldReduce(r, group, func(key []byte, p Partial) (Step, error) {
		red, err := tree.FinalReduce(nil, p)
		if err != nil {
			return Stop, err
		}
		if n++; n > len(first) {
			return Next, nil
		}
		_, lists, _, err := splitView(red)
		if err != nil {
			return Stop, err
		}
		_, b, err := elements(lists)
		if err != nil {
			return Stop, err
		}
		for range nth - 1 {
			end, _ := scan(b, 0)
			b = b[end:]
		}
		end, _ := scan(b, 0)
		k, _ := viewKey(key)
		if want := first[n-1]; !bytes.Equal(k, fromText(t, want[0])) || !bytes.Equal(b[:end], fromText(t, want[1])) {
			t.Errorf("%s: group %d is %x of %x, recorded %s of %s", opts, n, b[:end], k, want[1], want[0])
		}
		return Next, nil
	})
	if err != nil || n != groups {
		t.Errorf("%s: %d groups, recorded %d, %v", opts, n, groups, err)
	}
}

func queryOptions(t *testing.T, tree Tree, opts string) (r Range, group Group) {
	t.Helper()
	v, err := etftext.Parse(opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range v.(etf.List) {
		pair := o.(etf.Tuple)
		b, err := etf.AppendTerm(nil, pair[1])
		if err != nil {
			t.Fatal(err)
		}
		switch pair[0] {
		case etf.Atom("dir"):
			r.Reverse = pair[1] == etf.Atom("rev")
		case etf.Atom("start_key"):
			r.Start = b
		case etf.Atom("end_key"):
			r.End = b
		case etf.Atom("key_group_level"):
			group = GroupExact(tree.o.Order)
			if n, ok := pair[1].(int64); ok {
				group = GroupLevel(int(n), tree.o.Order)
			}
		default:
			t.Fatalf("option %v", pair)
		}
	}
	return r, group
}

// TestReducers reduces values by hand: all rows at once, and in two parts whose reductions
// are reduced, give the same. The results are what couch_query_servers answers.
func TestReducers(t *testing.T) {
	for _, c := range []struct {
		reducer Reducer
		values  string
		want    string // "" for an error
	}{
		{Count{}, "[]", "0"},
		{Count{}, "[a,b,c]", "3"},
		{Sum{}, "[]", "0"},
		{Sum{}, "[1,2,3]", "6"},
		{Sum{}, "[1,2.5,-3]", "0.5"},
		{Sum{}, "[9223372036854775807,1]", "9223372036854775808"},
		{Sum{}, "[9223372036854775808,-1]", "9223372036854775807"},
		{Sum{}, "[-9223372036854775808,-9223372036854775808,1]", "-18446744073709551615"},
		{Sum{}, "[36893488147419103232,0.5]", "36893488147419103232.0"},
		{Sum{}, "[[1,2],[10,20,300]]", "[11,22,300]"},
		{Sum{}, "[5,[1,2]]", "[6,2]"},
		{Sum{}, "[[1,2],5]", "[6,2]"},
		{Sum{}, "[[1,1000],[2,0.5]]", "[3,1000.5]"},
		{Sum{}, "[1,a]", ""},
		{Sum{}, "[[a]]", ""},
		{Sum{}, "[1.7e308,1.7e308]", ""},
		{Stats{}, "[]", "{0,0,0,0,0}"},
		{Stats{}, "[3]", "{3,1,3,3,9}"},
		{Stats{}, "[3,-1,2]", "{4,3,-1,3,14}"},
		{Stats{}, "[0.5,2]", "{2.5,2,0.5,2,4.25}"},
		{Stats{}, "[4294967296,1]", "{4294967297,2,1,4294967296,18446744073709551617}"},
		{Stats{}, "[-2147483648,2147483648]", "{0,2,-2147483648,2147483648,9223372036854775808}"},
		{Stats{}, "[[1]]", ""},
		{IDTree{}, "[{1,0,{10,20},[]},{2,1,{1,2},[]},{3,0,{5,5},[]}]", "{2,1,{size_info,16,27}}"},
		{IDTree{}, "[{1,0,{size_info,10,20},[]},{2,1,7,[]},{3,0,[]}]", "{2,1,{size_info,17,20}}"},
		{IDTree{}, "[{1,0,nil,[]}]", "{1,0,nil}"},
		{IDTree{}, "[]", "{0,0,{size_info,0,0}}"},
		{IDTree{}, "[{1,0,{10},[]}]", ""},
		{IDTree{}, "[x]", ""},
	} {
		v, err := etftext.Parse(c.values)
		if err != nil {
			t.Fatal(err)
		}
		var rows []Row
		for _, e := range v.(etf.List) {
			b, err := etf.AppendTerm(nil, e)
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, Row{[]byte{97, 1}, appendCanonical(nil, b)})
		}
		whole, err := c.reducer.Reduce(nil, rows)
		if (err != nil) != (c.want == "") {
			t.Errorf("%T of %s: %v", c.reducer, c.values, err)
		}
		if err != nil {
			continue
		}
		if !bytes.Equal(whole, fromText(t, c.want)) {
			t.Errorf("%T of %s is %x, want %s", c.reducer, c.values, whole, c.want)
		}
		for cut := range rows {
			a, err1 := c.reducer.Reduce(nil, rows[:cut])
			b, err2 := c.reducer.Reduce(nil, rows[cut:])
			both, err3 := c.reducer.Rereduce(nil, [][]byte{a, b})
			if err1 != nil || err2 != nil || err3 != nil || !bytes.Equal(both, whole) && cut > 0 {
				t.Errorf("%T of %s cut at %d is %x, %v, %v, %v", c.reducer, c.values, cut, both, err1, err2, err3)
			}
		}
	}
}

// TestOldReductions reads those from before sizes were kept.
func TestOldReductions(t *testing.T) {
	reds := [][]byte{mustParse("{2,1}"), mustParse("{3,4,{size_info,5,6}}")}
	got, err := IDTree{}.Rereduce(nil, reds)
	if err != nil || !bytes.Equal(got, fromText(t, "{5,5,nil}")) {
		t.Errorf("%x, %v", got, err)
	}
	got, err = IDTree{}.Rereduce(nil, [][]byte{mustParse("{2,1,7}"), mustParse("{3,4,{5,6}}")})
	if err != nil || !bytes.Equal(got, fromText(t, "{5,5,{size_info,12,6}}")) {
		t.Errorf("%x, %v", got, err)
	}
}

// TestDups counts the values of {dups, Values} one by one. 131 is a byte of each term.
func TestDups(t *testing.T) {
	rows := []Row{
		{fromText(t, `{1,<<"a">>}`), fromText(t, "10")},
		{fromText(t, `{2,<<"b">>}`), fromText(t, "{dups,[1,2]}")},
		{fromText(t, `{3,<<"c">>}`), fromText(t, "{dups,[300]}")},
	}
	got, err := View{[]Reducer{Sum{}, Count{}}}.Reduce(nil, slices.Clone(rows))
	// Keys and values of three bytes each but for 300, which has six; [313,4] has 14.
	if want := fromText(t, "{4,[313,4],41}"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%x, want %x, %v", got, want, err)
	}
}
