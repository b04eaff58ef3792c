package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/etf"
	"scanode/storage/couch/btree"
	"scanode/storage/couch/file"
)

func readVector(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(vectors, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// inMemory makes a file system with one file.
func inMemory(t testing.TB, name string, b []byte) vfs.FS {
	t.Helper()
	fs := vfs.NewMem()
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = f.Write(bytes.Clone(b)) // with the race detector it spoils what it is given
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return fs
}

func inspectBytes(t testing.TB, name string, b []byte, o Options) *Report {
	t.Helper()
	r, err := File(inMemory(t, name, b), name, o)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if r.Bytes.Total != int64(len(b)) {
		t.Fatalf("%s: the uses of its bytes add up to %d, it has %d", name, r.Bytes.Total, len(b))
	}
	return r
}

// allRows reads all rows of all trees of the newest header by package btree, which
// holds nodes against nothing but themselves and their parents' keys.
func allRows(t testing.TB, name string, b []byte) (string, error) {
	t.Helper()
	f, err := file.OpenReadOnly(inMemory(t, name, b), name, file.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h, err := f.LastHeader()
	if err != nil {
		return "", err
	}
	a, errs := readAnatomy(h.Term)
	if len(errs) > 0 {
		return "", errs[0]
	}
	var out bytes.Buffer
	for _, r := range a.roots {
		o := btree.Options{}
		if r.kind == viewTree {
			o.Order = btree.ViewOrder()
		}
		it := btree.New(f, r.p, o).Iter(btree.Range{})
		for it.Next() {
			fmt.Fprintf(&out, "%s %x %x\n", r.name, it.Key(), it.Value())
		}
		if err := it.Err(); err != nil {
			return "", err
		}
	}
	return out.String(), nil
}

// content is what a report says beside garbage and headers.
func content(t testing.TB, r *Report) string {
	t.Helper()
	c := *r
	c.Bytes, c.Headers, c.HeadersCount, c.Notes, c.NotesCount, c.Generation = nil, nil, 0, nil, 0, 0
	c.Header, c.FileSize, c.Fragmentation, c.Sizes = nil, 0, "", nil
	b, err := json.Marshal(&c)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestEveryByteFlipped flips each byte of a database once. Either damage is found, or
// nothing has changed: the report says the same, and another reader finds the same
// rows. What may differ unseen is the security object, which nothing else tells of.
func TestEveryByteFlipped(t *testing.T) {
	t.Parallel()
	const name = "db_deleted_all.couch"
	original := readVector(t, name)
	rows, err := allRows(t, name, original)
	if err != nil {
		t.Fatal(err)
	}
	whole := inspectBytes(t, name, original, Options{})
	security := string(whole.SecurityObject)
	want := strings.Replace(content(t, whole), security, "", 1)
	found := 0
	step := 1
	if testing.Short() {
		step = 7
	}
	for i := 0; i < len(original); i += step {
		b := bytes.Clone(original)
		b[i] ^= 0xff
		r := inspectBytes(t, name, b, Options{})
		if r.Damaged() {
			found++
			continue
		}
		if got := strings.Replace(content(t, r), string(r.SecurityObject), "", 1); got != want {
			t.Fatalf("byte %d flipped: no damage, and\n%s\nnot\n%s", i, got, want)
		}
		if got, err := allRows(t, name, b); err != nil || got != rows {
			t.Fatalf("byte %d flipped: no damage found, and other rows, %v", i, err)
		}
	}
	// Without the tags, all of what the newest header leads to but the terms.
	live := int(whole.Bytes.Live() - whole.Bytes.Terms)
	if step == 1 && found < live-4 {
		t.Errorf("%d flips found, %d bytes are reachable", found, live)
	}
}

// TestEveryPrefix cuts a database after each byte. What is left is what was there at
// the newest header that is whole, and nothing is damaged: that is what a loss of
// power does.
func TestEveryPrefix(t *testing.T) {
	t.Parallel()
	const name = "db_deleted_all.couch"
	original := readVector(t, name)
	var want []string
	whole := inspectBytes(t, name, original, Options{Headers: 100})
	for i := range whole.Headers {
		want = append(want, content(t, inspectBytes(t, name, original, Options{Generation: i})))
	}
	if len(want) < 3 {
		t.Fatal("only", len(want), "headers")
	}
	step := 1
	if testing.Short() {
		step = 7
	}
	for n := 0; n < len(original); n += step {
		newest := -1
		for i := len(whole.Headers) - 1; i >= 0; i-- {
			if h := whole.Headers[i]; h.Offset+h.Size <= int64(n) {
				newest = i
			}
		}
		r := inspectBytes(t, name, original[:n], Options{})
		if newest < 0 {
			if r.FileType != TypeError || !r.Damaged() {
				t.Fatalf("%d bytes: %s without a header", n, r.FileType)
			}
			continue
		}
		if got := content(t, r); got != want[newest] {
			t.Fatalf("%d bytes:\n%s\nwant generation %d\n%s", n, got, newest, want[newest])
		}
	}
}

// TestViewFlipped: in views values have no double, so they may change unseen, but
// never is a row lost or gained without a word.
func TestViewFlipped(t *testing.T) {
	t.Parallel()
	const name = "view_md5.view"
	original := readVector(t, name)
	whole := inspectBytes(t, name, original, Options{})
	for i := 0; i < len(original); i += 5 {
		b := bytes.Clone(original)
		b[i] ^= 0x40
		r := inspectBytes(t, name, b, Options{})
		if !r.Damaged() && (rowsOf(r) != rowsOf(whole) || len(r.TreeInfo) != len(whole.TreeInfo)) {
			t.Fatalf("byte %d flipped: %s rows and no damage, there are %s", i, rowsOf(r), rowsOf(whole))
		}
	}
}

func rowsOf(r *Report) string {
	s := ""
	for _, t := range r.TreeInfo {
		s += fmt.Sprint(t.Rows, " ")
	}
	return s
}

// forge writes a file with the nodes that write makes, and a header {forged, Root}.
func forge(t *testing.T, write func(add func(payload []byte) file.Chunk) btree.Pointer) []byte {
	t.Helper()
	return forgeHeader(t, func(add func([]byte) file.Chunk) []byte {
		p := write(add)
		return p.Append(etf.AppendAtom(etf.AppendTupleHeader(nil, 2), "forged"))
	})
}

// forgeHeader writes a file with the chunks that write makes and the header it returns.
func forgeHeader(t *testing.T, write func(add func(payload []byte) file.Chunk) []byte) []byte {
	t.Helper()
	f, err := file.Create(vfs.NewMem(), "forged", file.Options{})
	if err != nil {
		t.Fatal(err)
	}
	term := write(func(payload []byte) file.Chunk {
		c, err := f.Append([][]byte{payload})
		if err != nil {
			t.Fatal(err)
		}
		return c[0]
	})
	if _, err := f.Commit(append(etf.AppendVersion(nil), term...)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, f.Size())
	if err := f.ReadRaw(b, 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return b
}

// forgedNode is a node with these keys and values.
func forgedNode(kind string, key int64, values ...[]byte) []byte {
	b := etf.AppendTupleHeader(etf.AppendVersion(nil), 2)
	b = etf.AppendListHeader(etf.AppendAtom(b, etf.Atom(kind)), len(values))
	for _, v := range values {
		b = etf.AppendTupleHeader(b, 2)
		b = append(etf.AppendInt64(b, key), v...)
	}
	return etf.AppendNil(b)
}

func pointerTo(ptr, size int64) btree.Pointer {
	return btree.Pointer{Ptr: ptr, Reduction: []byte{etf.TagNil}, Size: size}
}

// forgedTrees are trees that no writer makes, and what must be said of them.
var forgedTrees = map[string]struct {
	want  string
	write func(t *testing.T, add func([]byte) file.Chunk) btree.Pointer
}{
	"a node that leads to itself": {"impossible pointer", func(t *testing.T, add func([]byte) file.Chunk) btree.Pointer {
		first := add(forgedLeaf)
		ptr := first.Ptr + first.Size
		add(forgedNode("kp_node", 1, pointerTo(ptr, 0).Append(nil)))
		return pointerTo(ptr, btree.NoSize)
	}},
	"a node that leads ahead": {"impossible pointer", func(t *testing.T, add func([]byte) file.Chunk) btree.Pointer {
		c := add(forgedNode("kp_node", 1, pointerTo(1<<40, 0).Append(nil)))
		add(forgedLeaf)
		return pointerTo(c.Ptr, btree.NoSize)
	}},
	"a chain of inner nodes": {"tree too deep", func(t *testing.T, add func([]byte) file.Chunk) btree.Pointer {
		c := add(forgedLeaf)
		for range maxDepth {
			c = add(forgedNode("kp_node", 1, pointerTo(c.Ptr, btree.NoSize).Append(nil)))
		}
		return pointerTo(c.Ptr, btree.NoSize)
	}},
	"each node twice, and again": {"more nodes than the file has bytes", func(t *testing.T, add func([]byte) file.Chunk) btree.Pointer {
		c := add(forgedLeaf)
		for range 100 {
			p := pointerTo(c.Ptr, btree.NoSize).Append(nil)
			c = add(forgedNode("kp_node", 1, p, p))
		}
		return pointerTo(c.Ptr, btree.NoSize)
	}},
	"a root that is no node": {"malformed node", func(t *testing.T, add func([]byte) file.Chunk) btree.Pointer {
		return pointerTo(add([]byte{etf.Version, etf.TagNil}).Ptr, btree.NoSize)
	}},
	"a pointer of another kind": {"impossible pointer", func(t *testing.T, add func([]byte) file.Chunk) btree.Pointer {
		return pointerTo(add(forgedNode("kp_node", 1, []byte{etf.TagNil})).Ptr, btree.NoSize)
	}},
	"nil below the root": {"nil below the root", func(t *testing.T, add func([]byte) file.Chunk) btree.Pointer {
		return pointerTo(add(forgedNode("kp_node", 1, btree.Pointer{}.Append(nil))).Ptr, btree.NoSize)
	}},
	"keys that descend": {"keys out of order: 2 before 1", func(t *testing.T, add func([]byte) file.Chunk) btree.Pointer {
		b := etf.AppendListHeader(etf.AppendAtom(etf.AppendTupleHeader(etf.AppendVersion(nil), 2), "kv_node"), 2)
		for key := int64(2); key > 0; key-- {
			b = etf.AppendNil(etf.AppendInt64(etf.AppendTupleHeader(b, 2), key))
		}
		return pointerTo(add(etf.AppendNil(b)).Ptr, btree.NoSize)
	}},
	"a leaf that belongs to the left": {"keys out of order", func(t *testing.T, add func([]byte) file.Chunk) btree.Pointer {
		one, two := add(forgedNode("kv_node", 1, []byte{etf.TagNil})), add(forgedNode("kv_node", 2, []byte{etf.TagNil}))
		b := etf.AppendListHeader(etf.AppendAtom(etf.AppendTupleHeader(etf.AppendVersion(nil), 2), "kp_node"), 2)
		b = pointerTo(two.Ptr, btree.NoSize).Append(etf.AppendInt64(etf.AppendTupleHeader(b, 2), 2))
		b = pointerTo(one.Ptr, btree.NoSize).Append(etf.AppendInt64(etf.AppendTupleHeader(b, 2), 3))
		return pointerTo(add(etf.AppendNil(b)).Ptr, btree.NoSize)
	}},
	"a wrong size": {"stored size", func(t *testing.T, add func([]byte) file.Chunk) btree.Pointer {
		return pointerTo(add(forgedLeaf).Ptr, 7)
	}},
	"a deflate bomb": {"too large", func(t *testing.T, add func([]byte) file.Chunk) btree.Pointer {
		big := forgedNode("kv_node", 1, etf.AppendBinary(nil, make([]byte, maxNodeBytes)))
		return pointerTo(add(mustCompression(t, "deflate_9").Append(nil, big)).Ptr, btree.NoSize)
	}},
	"a node in a node's chunk": {"overlaps", func(t *testing.T, add func([]byte) file.Chunk) btree.Pointer {
		// The value of the outer one is the bytes of a chunk of its own.
		inner := append([]byte{0, 0, 0, byte(len(forgedLeaf))}, forgedLeaf...)
		outer := forgedNode("kv_node", 0, etf.AppendBinary(nil, inner))
		c := add(outer)
		at := c.Ptr + 1 + 4 + int64(bytes.Index(outer, inner))
		both := etf.AppendTupleHeader(etf.AppendVersion(nil), 2)
		both = etf.AppendListHeader(etf.AppendAtom(both, "kp_node"), 2)
		for i, p := range []int64{c.Ptr, at} {
			both = etf.AppendInt64(etf.AppendTupleHeader(both, 2), int64(i))
			both = pointerTo(p, btree.NoSize).Append(both)
		}
		return pointerTo(add(etf.AppendNil(both)).Ptr, btree.NoSize)
	}},
}

// forgedLeaf is the least node.
var forgedLeaf = forgedNode("kv_node", 1, []byte{etf.TagNil})

// TestForged: looking at them ends, with a word for each.
func TestForged(t *testing.T) {
	for name, c := range forgedTrees {
		t.Run(name, func(t *testing.T) {
			b := forge(t, func(add func([]byte) file.Chunk) btree.Pointer { return c.write(t, add) })
			said := ""
			for _, f := range inspectBytes(t, "forged.cf", b, Options{}).Damage {
				said += f.String() + "\n"
			}
			if !strings.Contains(said, c.want) {
				t.Errorf("damage:\n%swant: %s", said, c.want)
			}
		})
	}
}

// TestKind: a file must be what its name says.
func TestKind(t *testing.T) {
	db, view := readVector(t, "db_deleted_all.couch"), readVector(t, "view_md5.view")
	for name, c := range map[string]struct {
		b       []byte
		damaged bool
	}{
		"a.couch": {db, false}, "a.couch.compact.data": {db, false}, "a.view": {view, false}, "a.compact.view": {view, false},
		"b.view": {db, true}, "b.couch": {view, true},
	} {
		r := inspectBytes(t, name, c.b, Options{})
		if r.Damaged() != c.damaged {
			t.Errorf("%s: damage %v", name, r.Damage)
		}
	}
}

// TestCompaction: while a database is compacted, the new file has a header of another
// kind, and the seq tree only; and the file beside it the same header and none of it.
func TestCompaction(t *testing.T) {
	const name = "db_many.couch"
	fs := inMemory(t, name, readVector(t, name))
	f, err := file.Open(fs, name, file.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h, err := f.LastHeader()
	if err != nil {
		t.Fatal(err)
	}
	fields, err := tuple(h.Term[1:], dbFields, dbFields)
	if err != nil {
		t.Fatal(err)
	}
	fields[dbIDTree] = appendAtom(nil, "nil")
	header := appendTuple([][]byte{appendAtom(nil, "comp_header"), appendTuple(fields), appendAtom(nil, "nil")})
	if _, err := f.Commit(append(etf.AppendVersion(nil), header...)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, f.Size())
	if err := errors.Join(f.ReadRaw(b, 0), f.Close()); err != nil {
		t.Fatal(err)
	}
	r := inspectBytes(t, name+".compact.data", b, Options{})
	whole := inspect(t, name, Options{})
	if r.FileType != TypeCompact || r.Damaged() || r.DocCount != whole.DocCount || r.Bytes.Bodies != whole.Bytes.Bodies {
		t.Errorf("%s, %+v, %+v, damage %v", r.FileType, *r.Documents, *r.Bytes, r.Damage)
	}
	if r := inspectBytes(t, name+".compact.meta", b, Options{}); r.FileType != TypeCompact || r.Damaged() || len(r.TreeInfo) > 0 {
		t.Errorf("%s, damage %v", r.FileType, r.Damage)
	}
}

// TestFaultsOfCFCheck are those of cfcheck that TestCFCheck cannot show, by letter.
func TestFaultsOfCFCheck(t *testing.T) {
	newest := func(letter, name string, offset int64) *Report {
		t.Helper()
		r := inspect(t, name, Options{})
		if r.Header == nil || r.Header.Offset != offset || r.Damaged() {
			t.Errorf("(%s) %s: header %+v, damage %v", letter, name, r.Header, r.Damage)
		}
		return r
	}
	// (b) headers with xxHash sums, (c) of 15 fields with trees of purges.
	if r := newest("b", "db_purged.couch", 16384); r.PurgedDocCount != 3 || *r.PurgeSeq != 3 || len(r.TreeInfo) != 5 {
		t.Errorf("(c) %+v", r)
	}
	// (c) a view that is new or was just reset.
	if r := inspect(t, "view_md5.view", Options{Generation: 1}); r.FileType != TypeView || len(r.TreeInfo) != 0 || r.Damaged() {
		t.Errorf("(c) %+v", r)
	}
	// (d) a header longer than a block.
	if r := newest("d", "big_header.cf", 8192); r.Header.Size != 10051 {
		t.Errorf("(d) %+v", r.Header)
	}
	// (e) The newest header is taken from the first call on: every test of a vector
	// here is one in a new process when run alone.
	newest("e", "hdr_md5.cf", 12288)
	// (g) is about names: see TestCheckable of the command.
	// (h) a body whose checksum is wrong, and attachments' MD5: see TestBodies.
}

// TestBodies damages bodies and attachments.
func TestBodies(t *testing.T) {
	const name = "db_small_none.couch"
	original := readVector(t, name)
	for what, c := range map[string]struct {
		bytes, want string
	}{
		"body":       {"\x83h\x02m", "wrong checksum"},
		"attachment": {"", "wrong MD5"},
	} {
		b := bytes.Clone(original)
		var at int
		if c.bytes != "" {
			at = bytes.LastIndex(b, []byte(c.bytes)) + 12
		} else {
			at = attachmentAt(t, b)
		}
		b[at] ^= 1
		r := inspectBytes(t, name, b, Options{})
		said := ""
		for _, f := range r.Damage {
			said += f.String() + "\n"
		}
		if len(r.Damage) != 1 || !strings.Contains(said, c.want) || !strings.Contains(said, "document \"") {
			t.Errorf("%s: damage:\n%swant: %s", what, said, c.want)
		}
	}
}

// attachmentAt returns where the content of an attachment lies.
func attachmentAt(t *testing.T, b []byte) int {
	t.Helper()
	f, err := file.OpenReadOnly(inMemory(t, "a", b), "a", file.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// The manifest's document "att" has a.bin of 5,000 bytes in one piece.
	for ptr := int64(0); ptr < f.Size(); ptr++ {
		if c, err := f.Stat(ptr); err == nil && c.Length == 5000 && !c.Summed {
			return int(ptr) + 100
		}
	}
	t.Fatal("no attachment")
	return 0
}

func mustCompression(t *testing.T, name string) file.Compression {
	t.Helper()
	c, err := file.ParseCompression(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
