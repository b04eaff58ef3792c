package btree

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"scanode/etf"
	"scanode/etf/etftext"
	"scanode/storage/couch/file"
)

// A universe is all the keys a model test uses, in order. Keys of one class are equal to
// the tree. The order is spelt out here, and nothing of the product has a part in it.
type universe struct {
	name  string
	order Order
	keys  [][][]byte
}

// words encodes texts of terms as a class each.
func words(texts ...string) [][][]byte {
	var keys [][][]byte
	for _, t := range texts {
		keys = append(keys, [][]byte{mustParse(t)})
	}
	return keys
}

func mustParse(text string) []byte {
	t, err := etftext.Parse(text)
	if err != nil {
		panic(err)
	}
	b, err := etf.AppendTerm(nil, t)
	if err != nil {
		panic(err)
	}
	return b
}

// termUniverse has keys of all types; integers and floats of the same value are one class.
func termUniverse() universe {
	var keys [][][]byte
	keys = append(keys, words("-100000000000000000000", "-5000000000", "-2.5", "-1")...)
	for i := range 200 {
		class := [][]byte{mustParse(fmt.Sprint(i))}
		if i%3 == 0 {
			class = append(class, mustParse(fmt.Sprintf("%d.0", i)))
		}
		keys = append(keys, class, [][]byte{mustParse(fmt.Sprintf("%d.5", i))})
	}
	keys = append(keys, words("4294967296", "1.0e30", "a", "b", "nil", "z", "{}", "{1}", "{2}", "{z}", "{1,1}", "{1,a}", "[]", "[0|1]", "[0]", "[0,0]", "[1]", "[1,2]", "[300]", "[a]")...)
	for i := range 60 {
		keys = append(keys, words(fmt.Sprintf(`<<"doc-%03d">>`, i))...)
	}
	keys = append(keys, words(`<<"e">>`, `<<"ea">>`, `<<255>>`, `<<255,0>>`)...)
	return universe{"term", TermOrder, keys}
}

// byteUniverse has binaries of one length.
func byteUniverse() universe {
	var keys [][][]byte
	for i := range 300 {
		keys = append(keys, words(fmt.Sprintf(`<<"%06d">>`, i*i))...)
	}
	return universe{"bytes", ByteOrder, keys}
}

// viewUniverse has keys of views: JSON values in the order that CouchDB's documentation
// gives ("View Collation"), each with two documents.
func viewUniverse() universe {
	json := []string{"null", "false", "true", "-1", "0", "0.5", "1", "2", "10", "100000000000000000000"}
	for i := range 40 {
		json = append(json, fmt.Sprintf("1.0e%d", 25+i))
	}
	for _, s := range []string{"", "_", "-", ",", "0", "1", "a", "A", "aa", "ab", "b", "B", "ba", "bb"} {
		json = append(json, fmt.Sprintf("<<%q>>", s))
	}
	json = append(json, "[]", "[null]", `[<<"a">>]`, `[<<"b">>]`, `[<<"b">>,<<"c">>]`, `[<<"b">>,<<"c">>,<<"a">>]`, `[<<"b">>,<<"d">>]`, `[<<"b">>,<<"d">>,<<"e">>]`, "[[]]", "[[1,2,3]]", "[[1,2,4]]",
		"{[]}", `{[{<<"a">>,1}]}`, `{[{<<"a">>,2}]}`, `{[{<<"b">>,1}]}`, `{[{<<"b">>,2}]}`, `{[{<<"b">>,2},{<<"a">>,1}]}`, `{[{<<"b">>,2},{<<"c">>,2}]}`)
	var keys [][][]byte
	for _, j := range json {
		keys = append(keys, words(fmt.Sprintf(`{%s,<<"A">>}`, j), fmt.Sprintf(`{%s,<<"b">>}`, j))...)
	}
	return universe{"view", ViewOrder(), keys}
}

// model is the tree by other means: for each class of its universe a row, or none.
type model struct {
	*universe
	rows []*Row
}

func (m model) clone() model { return model{m.universe, slices.Clone(m.rows)} }

// all returns the rows that are there, from class lo to class hi, both inclusive.
func (m model) all(lo, hi int, reverse bool) []Row {
	var rows []Row
	for i := max(lo, 0); i <= min(hi, len(m.rows)-1); i++ {
		if m.rows[i] != nil {
			rows = append(rows, *m.rows[i])
		}
	}
	if reverse {
		slices.Reverse(rows)
	}
	return rows
}

// TestModel holds trees to a model: random operations in every order, policy, chunk size
// and compression, each followed by Verify and by reading.
func TestModel(t *testing.T) {
	for _, u := range []universe{termUniverse(), byteUniverse(), viewUniverse()} {
		t.Run(u.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { runModel(t, &u) })
		})
	}
}

func runModel(t *rapid.T, u *universe) {
	f := newFile(t)
	o := Options{Order: u.order, Reducer: digestReducer{}}
	o.ChunkSize = rapid.SampledFrom([]int{1, 30, 100, 300, 1279, 5000}).Draw(t, "chunk")
	o.Fill = rapid.SampledFrom([]float64{0, 0.1, 0.5, 1}).Draw(t, "fill")
	o.Cache = rapid.SampledFrom([]*Cache{nil, NewCache(2000), NewCache(1 << 20)}).Draw(t, "cache")
	if o.Cache != nil {
		o.Cache = NewCache(o.Cache.shards[0].limit * cacheShards)
	}
	tree, m := New(f, Pointer{}, o), model{u, make([]*Row, len(u.keys))}
	var old []Tree
	var oldModels []model
	for range rapid.IntRange(1, 8).Draw(t, "operations") {
		// Any policy goes on with what another has written.
		o.Policy = rapid.SampledFrom([]Policy{V0, V1, V1b, Compat, Scanode, ScanodeWrite}).Draw(t, "policy")
		o.Compression, _ = file.ParseCompression(rapid.SampledFrom([]string{"none", "snappy", "deflate_6"}).Draw(t, "compression"))
		tree = New(f, tree.Root(), o)
		old, oldModels = append(old, tree), append(oldModels, m.clone())
		tree = modifyBoth(t, tree, m)
		if _, err := tree.Verify(Check{Limit: f.Size()}); err != nil {
			t.Fatal(err)
		}
		readBoth(t, tree, m)
	}
	i := rapid.IntRange(0, len(old)-1).Draw(t, "version")
	readBoth(t, old[i], oldModels[i])
}

// pick draws a key and returns its class as well.
func pick(t *rapid.T, u *universe) (int, []byte) {
	class := rapid.IntRange(0, len(u.keys)-1).Draw(t, "class")
	return class, rapid.SampledFrom(u.keys[class]).Draw(t, "key")
}

// modifyBoth modifies tree and model in the same way, at random.
func modifyBoth(t *rapid.T, tree Tree, m model) Tree {
	var lookups, removes [][]byte
	var inserts []Row
	var found []int
	for range rapid.SampledFrom([]int{0, 0, 3}).Draw(t, "lookups") {
		class, key := pick(t, m.universe)
		lookups, found = append(lookups, key), append(found, class)
	}
	before := m.clone()
	for range rapid.SampledFrom([]int{0, 1, 1, 5, 50}).Draw(t, "removes") {
		class, key := pick(t, m.universe)
		removes = append(removes, key)
		m.rows[class] = nil
	}
	run := rapid.Bool().Draw(t, "run")
	start := rapid.IntRange(0, len(m.keys)-1).Draw(t, "start")
	seen := map[int]bool{}
	for i := range rapid.SampledFrom([]int{0, 1, 1, 1, 8, 100}).Draw(t, "inserts") {
		class, key := pick(t, m.universe)
		if run {
			class = (start + i) % len(m.keys)
			key = m.keys[class][0]
		}
		size := rapid.SampledFrom([]int{0, 1, 20, 200, 2000}).Draw(t, "size")
		row := Row{key, etf.AppendBinary(nil, bytes.Repeat([]byte{byte(i)}, size))}
		inserts = append(inserts, row)
		if !seen[class] { // of equal keys the first counts
			m.rows[class] = &Row{appendCanonical(nil, row.Key), row.Value}
		}
		seen[class] = true
	}
	results, next, err := tree.Modify(lookups, inserts, removes)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	slices.Reverse(found)
	for i, class := range found {
		row := before.rows[class]
		if len(results) != len(found) || results[i].Found != (row != nil) || row != nil && !same(results[i].Row, *row) {
			t.Fatalf("looked up classes %v, got %v", found, results)
		}
	}
	if !next.Root().IsNil() && len(inserts) == 0 && len(removes) == 0 && next.Root().Ptr != tree.Root().Ptr {
		t.Fatal("nothing changed and a root was written")
	}
	return next
}

func same(a, b Row) bool { return bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value) }

// digest returns the reduction of rows.
func digest(rows []Row) []byte {
	d, _ := digestReducer{}.Reduce(nil, rows)
	return d
}

// readBoth reads tree in all ways there are and compares with the model.
func readBoth(t *rapid.T, tree Tree, m model) {
	for range 3 {
		foldBoth(t, tree, m)
	}
	reduceBoth(t, tree, m)
	var keys [][]byte
	var classes []int
	for range 10 {
		class, key := pick(t, m.universe)
		value, found, err := tree.Get(key)
		row := m.rows[class]
		if err != nil || found != (row != nil) || found && !bytes.Equal(value, row.Value) {
			t.Fatalf("got %x, %t, %v for class %d", value, found, err, class)
		}
		keys, classes = append(keys, key), append(classes, class)
	}
	results, err := tree.Lookup(keys)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		row := m.rows[classes[i]]
		if r.Found != (row != nil) || !bytes.Equal(r.Key, keys[i]) || row != nil && !bytes.Equal(r.Value, row.Value) {
			t.Fatalf("lookup %d of class %d gave %v", i, classes[i], r)
		}
	}
}

// drawRange draws a range and returns which classes are in it.
func drawRange(t *rapid.T, u *universe) (r Range, lo, hi int) {
	r.Reverse = rapid.Bool().Draw(t, "reverse")
	first, last := 0, len(u.keys)-1
	if r.Reverse {
		first, last = last, first
	}
	if rapid.Bool().Draw(t, "start") {
		first, r.Start = pick(t, u)
	}
	switch rapid.IntRange(0, 2).Draw(t, "end") {
	case 1:
		last, r.End = pick(t, u)
	case 2:
		last, r.EndGT = pick(t, u)
		_, r.End = pick(t, u) // does not count
		if r.Reverse {
			last++
		} else {
			last--
		}
	}
	if r.Reverse {
		return r, last, first
	}
	return r, first, last
}

// foldBoth folds over a range and compares rows, offsets and what is left behind.
func foldBoth(t *rapid.T, tree Tree, m model) {
	r, lo, hi := drawRange(t, m.universe)
	want := m.all(lo, hi, r.Reverse)
	// What is passed before the first row.
	passed := m.all(0, lo-1, false)
	if r.Reverse {
		passed = m.all(hi+1, len(m.keys)-1, false)
	}
	stopAt := -1
	if rapid.Bool().Draw(t, "stop") {
		stopAt = rapid.IntRange(0, 20).Draw(t, "at")
	}
	n := 0
	last, err := tree.Fold(r, func(row Row, at *Iter) (Step, error) {
		if n >= len(want) || !same(row, want[n]) {
			t.Fatalf("row %d of %d is %x", n, len(want), row)
		}
		if n%7 == 0 {
			offset, err := tree.FinalReduce(nil, at.Passed())
			if err != nil || !bytes.Equal(offset, digest(append(passed[:len(passed):len(passed)], want[:n]...))) {
				t.Fatalf("offset of row %d: %x, %v", n, offset, err)
			}
		}
		if n == stopAt {
			return Stop, nil
		}
		n++
		return Next, nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	stopped := stopAt >= 0 && stopAt < len(want)
	if !stopped && n != len(want) {
		t.Fatalf("%d rows of %d", n, len(want))
	}
	red, err := tree.FinalReduce(nil, last)
	if err != nil {
		t.Fatal(err)
	}
	behind := digest(append(passed[:len(passed):len(passed)], want[:n]...))
	if full := digest(m.all(0, len(m.keys)-1, false)); !bytes.Equal(red, behind) && (stopped || !bytes.Equal(red, full)) {
		t.Fatalf("left behind %x, want %x or %x", red, behind, full)
	}
}

// reduceBoth reduces a range in groups of ten classes.
func reduceBoth(t *rapid.T, tree Tree, m model) {
	r, lo, hi := drawRange(t, m.universe)
	width := rapid.SampledFrom([]int{1, 10, 1000}).Draw(t, "width")
	classOf := func(key []byte) int {
		return slices.IndexFunc(m.keys, func(class [][]byte) bool {
			return slices.ContainsFunc(class, func(k []byte) bool { return bytes.Equal(appendCanonical(nil, k), key) })
		})
	}
	type group struct{ key, red []byte }
	var want []group
	rows := m.all(lo, hi, r.Reverse)
	for i := 0; i < len(rows); {
		j := i
		for j < len(rows) && classOf(rows[j].Key)/width == classOf(rows[i].Key)/width {
			j++
		}
		want = append(want, group{rows[i].Key, digest(rows[i:j])})
		i = j
	}
	n := 0
	err := tree.FoldReduce(r, func(a, b []byte) (bool, error) { return classOf(a)/width == classOf(b)/width, nil },
		func(key []byte, p Partial) (Step, error) {
			red, err := tree.FinalReduce(nil, p)
			if err != nil {
				return Stop, err
			}
			if n >= len(want) || !bytes.Equal(key, want[n].key) || !bytes.Equal(red, want[n].red) {
				t.Fatalf("group %d is %x of %x", n, red, key)
			}
			n++
			return Next, nil
		})
	if err != nil || n != len(want) {
		t.Fatalf("%d groups of %d, %v", n, len(want), err)
	}
}
