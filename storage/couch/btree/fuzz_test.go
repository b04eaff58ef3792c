package btree

import (
	"bytes"
	"slices"
	"testing"

	"scanode/etf"
)

// FuzzTerm: scan accepts what the BEAM does, and ends where etf does, and the form that
// CouchDB writes is the same term, has that form, and stays as it is.
func FuzzTerm(f *testing.F) {
	for _, s := range []string{"[]", "[1,2,3]", "[1,2,300]", "[1|2]", "{1,{2,{}}}", "1.5", "kv_node", `<<"abc">>`, "<<5:3>>", "#{a => 1,b => 2}", "-1", "256", "4294967296", "-2147483648", "2147483648", "[[1],[2]]"} {
		f.Add(mustParse(s))
	}
	f.Add([]byte{etf.TagList, 0, 0, 0, 1, 97, 1, etf.TagList, 0, 0, 0, 1, 97, 2, etf.TagNil})
	f.Add([]byte{etf.TagSmallBig, 1, 1, 5})
	f.Add([]byte{etf.TagString, 0, 0})
	f.Add([]byte{etf.TagLargeTuple, 0, 0, 0, 1, etf.TagSmallAtom, 1, 'a'})
	f.Fuzz(func(t *testing.T, b []byte) {
		next, same := scan(b, 0)
		rest, err := etf.Skip(b)
		_, invalid := etf.Check(b)
		if err == nil && next != len(b)-len(rest) && (next >= 0 || invalid == nil) {
			t.Fatalf("scan ends at %d, Skip at %d", next, len(b)-len(rest))
		}
		if next < 0 {
			return
		}
		out := appendCanonical(nil, b[:next])
		if same != bytes.Equal(out, b[:next]) {
			t.Fatalf("scan says %t, and it becomes %x", same, out)
		}
		end, again := scan(out, 0)
		if end != len(out) || !again {
			t.Fatalf("%x becomes %x, which is %t", b[:next], out, again)
		}
		if invalid != nil {
			return // no term the BEAM knows has an order
		}
		if c, err := etf.Compare(b[:next], out); err == nil && c != 0 {
			t.Fatalf("%x becomes %x, which is another term", b[:next], out)
		}
	})
}

// FuzzNode: what is taken for a node is one: its rows are in order, whole terms, and
// written again they give the same node.
func FuzzNode(f *testing.F) {
	for _, s := range [][]byte{kv("[{1,1}]"), kv("[{1,1},{1,2},{b,[1,2,3]}]"), kp("[{1,{0,[],nil}},{2,{5,{1,2},99}},{3,{6,x}}]"), kv("[{1,1}|x]")} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		n := &node{plain: slices.Clone(b), ptr: 1000}
		if n.parse(TermOrder) != nil {
			return
		}
		rows := n.appendRows(nil, 0, n.len())
		if len(rows) == 0 {
			t.Fatal("a node without rows")
		}
		for i, r := range rows {
			for _, term := range [][]byte{r.Key, r.Value} {
				if end, same := scan(term, 0); end != len(term) || !same {
					t.Fatalf("row %d has %x", i, term)
				}
			}
			if i > 0 {
				if c, err := TermOrder(rows[i-1].Key, r.Key); err != nil || c > 0 || c == 0 && !n.leaf {
					t.Fatalf("row %d after %x: %x", i, rows[i-1].Key, r.Key)
				}
			}
			if !n.leaf {
				p, err := ParsePointer(r.Value)
				if err != nil || p.IsNil() || p.Ptr >= n.ptr || p.Ptr < 0 {
					t.Fatalf("row %d is %+v, %v", i, p, err)
				}
			}
		}
		if again := appendNode(nil, n.leaf, rows); !bytes.Equal(again, n.plain) {
			t.Fatalf("%x is written as %x", n.plain, again)
		}
	})
}

// FuzzPointer: a pointer that is read is written as it was, unless it was written in
// another form, and then in the one that stays.
func FuzzPointer(f *testing.F) {
	for _, s := range []string{"nil", "{0,[],5}", "{1,{2,3},nil}", "{1,x}", "{1,2,3,4}", "{4294967296,<<>>,4294967296}"} {
		f.Add(mustParse(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ParsePointer(b)
		if err != nil {
			return
		}
		out := p.Append(nil)
		if _, same := scan(b, 0); same && !bytes.Equal(out, b) {
			t.Fatalf("%x is written as %x", b, out)
		}
		q, err := ParsePointer(out)
		if err != nil || q.Ptr != p.Ptr || q.Size != p.Size || q.short != p.short || !bytes.Equal(q.Reduction, p.Reduction) {
			t.Fatalf("%+v becomes %+v, %v", p, q, err)
		}
	})
}

// FuzzTree changes bytes of a file: Verify fails or all rows are as they were written, and
// whatever is read is in order; see (smallFile).check. Each three bytes of changes are an
// offset and what to xor there.
func FuzzTree(f *testing.F) {
	files := []smallFile{makeSmallFile(f, "none", 30), makeSmallFile(f, "snappy", 60)}
	f.Add(uint8(0), []byte{0, 30, 1})
	f.Add(uint8(1), []byte{1, 200, 0xff, 0, 9, 4})
	f.Fuzz(func(t *testing.T, which uint8, changes []byte) {
		s := files[int(which)%len(files)]
		changed := slices.Clone(s.bytes)
		for ; len(changes) >= 3; changes = changes[3:] {
			changed[(int(changes[0])<<8|int(changes[1]))%len(changed)] ^= changes[2]
		}
		s.check(t, changed)
	})
}

// FuzzOrder: the view order is an order: it is the opposite of itself turned around, says
// that equal keys are equal, and agrees with itself over three keys.
func FuzzOrder(f *testing.F) {
	f.Add(mustParse(`{<<"a">>,<<"x">>}`), mustParse(`{[1,<<"b">>],<<"y">>}`), mustParse(`{{[{<<"a">>,null}]},<<>>}`))
	f.Add(mustParse(`{{p,<<"a">>,1},<<"x">>}`), mustParse(`{1.0,<<"x">>}`), mustParse(`{[1,2,300],<<"x">>}`))
	order := ViewOrder()
	f.Fuzz(func(t *testing.T, a, b, c []byte) {
		keys := [][]byte{a, b, c}
		for _, k := range keys {
			if next, _ := scan(k, 0); next != len(k) {
				return
			}
			if same, err := order(k, k); err != nil || same != 0 {
				return // not a key of a view
			}
			if _, err := etf.Check(k); err != nil {
				return
			}
		}
		sign := func(x, y []byte) int {
			c, err := order(x, y)
			if err != nil {
				t.Skip()
			}
			back, err := order(y, x)
			if err != nil || back != -c && !(back > 0 && c < 0) && !(back < 0 && c > 0) {
				t.Fatalf("%x, %x: %d, and turned around %d, %v", x, y, c, back, err)
			}
			return c
		}
		ab, bc, ac := sign(a, b), sign(b, c), sign(a, c)
		if ab <= 0 && bc <= 0 && (ac > 0 || ac == 0 && (ab < 0 || bc < 0)) {
			t.Fatalf("%x, %x, %x: %d %d %d", a, b, c, ab, bc, ac)
		}
	})
}
