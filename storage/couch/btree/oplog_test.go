package btree

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/etf"
	"scanode/etf/etftext"
	"scanode/storage/couch/file"
)

// The oplogs were recorded by CouchDB's own couch_btree: they say of each operation
// what it answered, which nodes it wrote, where, and what is in them.

// term is one encoded term, recorded with its version byte.
type term []byte

func (t *term) UnmarshalJSON(b []byte) error {
	var s *string
	if err := json.Unmarshal(b, &s); err != nil || s == nil {
		return err
	}
	raw, err := hex.DecodeString(*s)
	if err != nil {
		return err
	}
	*t, err = etf.SkipVersion(raw)
	return err
}

type oplog struct {
	Name        string
	Less        string
	Reduce      string
	Compression string
	ChunkSize   int `json:"chunk_size"`
	File        struct {
		Size   int64
		SHA256 string
	}
	Ops []struct {
		Lookup, Remove []term
		Insert         [][2]term
		Results        [][]any
		Written        [][]any
		Root           string
		EOF            int64
	}
	Final struct {
		Rows       int
		RowsSHA256 string `json:"rows_sha256"`
	}
}

// readJSON reads recorded data.
func readJSON(t testing.TB, name string, into any) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatal(name, err)
	}
}

// recordedOptions returns those that recorded data name.
func recordedOptions(t testing.TB, less, reduce, compression string, chunkSize int) Options {
	t.Helper()
	o := Options{ChunkSize: chunkSize}
	switch less {
	case "raw":
	case "json_ids":
		o.Order = ViewOrder()
	default:
		t.Fatalf("order %q", less)
	}
	switch reduce {
	case "none":
	case "count_red":
		o.Reducer = Count{}
	case "sum_red":
		o.Reducer = sumReducer{}
	case "view_red":
		o.Reducer = View{}
	case "big_red":
		o.Reducer = bigReducer{}
	default:
		t.Fatalf("reducer %q", reduce)
	}
	var err error
	if o.Compression, err = file.ParseCompression(compression); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestOplogs(t *testing.T) {
	names, err := filepath.Glob("../testdata/*.oplog.json.gz")
	if err != nil || len(names) < 18 {
		t.Fatalf("%d oplogs, %v", len(names), err)
	}
	for _, name := range names {
		var log oplog
		readJSON(t, name, &log)
		for _, cache := range []*Cache{nil, NewCache(1 << 20)} {
			t.Run(fmt.Sprintf("%s/cache=%v", log.Name, cache != nil), func(t *testing.T) { replay(t, &log, cache) })
		}
	}
}

func replay(t *testing.T, log *oplog, cache *Cache) {
	fs := vfs.NewMem()
	f, err := file.Create(fs, "tree", file.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := recordedOptions(t, log.Less, log.Reduce, log.Compression, log.ChunkSize)
	o.Cache = cache
	exact := o.Compression.Method == file.None
	tree := New(f, Pointer{}, o)
	for i, op := range log.Ops {
		end := f.Size()
		var rows []Row
		for _, r := range op.Insert {
			rows = append(rows, Row{r[0], r[1]})
		}
		results, next, err := tree.Modify(keysOf(op.Lookup), rows, keysOf(op.Remove))
		if err != nil {
			t.Fatalf("operation %d: %v", i, err)
		}
		tree = next
		if got, want := describe(results), recordedResults(op.Results); got != want {
			t.Fatalf("operation %d: results\n%s, recorded\n%s", i, got, want)
		}
		if got, want := describeNodes(t, f, end, exact), recordedWrites(op.Written, exact); got != want {
			t.Fatalf("operation %d: wrote\n%s, recorded\n%s", i, got, want)
		}
		if exact {
			if f.Size() != op.EOF {
				t.Fatalf("operation %d: end at %d, recorded %d", i, f.Size(), op.EOF)
			}
			if got, want := tree.Root().Append(nil), fromText(t, op.Root); !bytes.Equal(got, want) {
				t.Fatalf("operation %d: root %x, recorded %s", i, got, op.Root)
			}
		}
	}
	if got, n := rowsHash(t, tree.Iter(Range{})); got != log.Final.RowsSHA256 || n != log.Final.Rows {
		t.Errorf("%d rows, %s; recorded %d, %s", n, got, log.Final.Rows, log.Final.RowsSHA256)
	}
	if _, err := tree.Verify(Check{Limit: f.Size()}); err != nil {
		t.Error(err)
	}
	if !exact {
		tolerance := 0.01
		if o.Compression.Method == file.Deflate {
			tolerance = 0.045 // see TestRecordedTerms of package file
		}
		if ratio := float64(f.Size()) / float64(log.File.Size); ratio < 1-tolerance || ratio > 1+tolerance {
			t.Errorf("file of %d bytes, recorded %d", f.Size(), log.File.Size)
		}
		return
	}
	whole := readAll(t, fs)
	if sum := sha256.Sum256(whole); hex.EncodeToString(sum[:]) != log.File.SHA256 {
		t.Errorf("file %x, recorded %s", sum, log.File.SHA256)
	}
}

func readAll(t *testing.T, fs vfs.FS) []byte {
	t.Helper()
	r, err := fs.Open("tree")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func keysOf(terms []term) [][]byte {
	var keys [][]byte
	for _, t := range terms {
		keys = append(keys, t)
	}
	return keys
}

func versioned(b []byte) []byte { return append([]byte{etf.Version}, b...) }

func describe(results []Result) string {
	var b strings.Builder
	for _, r := range results {
		if r.Found {
			fmt.Fprintf(&b, "ok %x %x\n", versioned(r.Key), versioned(r.Value))
		} else {
			fmt.Fprintf(&b, "not_found %x\n", versioned(r.Key))
		}
	}
	return b.String()
}

func recordedResults(results [][]any) string {
	var b strings.Builder
	for _, r := range results {
		if r[0] == "ok" {
			fmt.Fprintf(&b, "ok %s %s\n", r[1], r[2])
		} else {
			fmt.Fprintf(&b, "not_found %s\n", r[1])
		}
	}
	return b.String()
}

// describeNodes tells of each node written behind offset from kind, number of rows and hashes of keys and
// of all that is in it, and with places set, where it is. Without, pointers differ, and so
// does what is in inner nodes.
func describeNodes(t *testing.T, f *file.File, from int64, places bool) string {
	t.Helper()
	var b strings.Builder
	for from < f.Size() {
		payload, w, err := f.ReadChunk(nil, from)
		if err != nil {
			t.Fatal(err)
		}
		from += w.Size
		plain, err := file.Decompress(nil, payload, 1<<24)
		if err != nil {
			t.Fatal(err)
		}
		n := node{plain: plain, ptr: w.Ptr}
		if err := n.parse(func(_, _ []byte) (int, error) { return -1, nil }); err != nil {
			t.Fatal(err)
		}
		name := "kp_node"
		if n.leaf {
			name = "kv_node"
		}
		keys := sha256.New()
		for i := range n.len() {
			keys.Write(versioned(n.key(i)))
		}
		if places {
			fmt.Fprintf(&b, "%d+%d ", w.Ptr, w.Size)
		}
		fmt.Fprintf(&b, "%s %d %.16x", name, n.len(), keys.Sum(nil)[:8])
		if places || n.leaf {
			sum := sha256.Sum256(plain)
			fmt.Fprintf(&b, " %x", sum[:8])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func recordedWrites(all [][]any, places bool) string {
	var b strings.Builder
	for _, w := range all {
		if places {
			fmt.Fprintf(&b, "%.0f+%.0f ", w[0], w[1])
		}
		fmt.Fprintf(&b, "%s %.0f %s", w[2], w[3], w[4])
		if places || w[2] == "kv_node" {
			fmt.Fprintf(&b, " %s", w[5])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// fromText returns the encoded term that text stands for.
func fromText(t testing.TB, text string) []byte {
	t.Helper()
	v, err := etftext.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	b, err := etf.AppendTerm(nil, v)
	if err != nil {
		t.Fatal(err)
	}
	return appendCanonical(nil, b)
}

// rowsHash goes through rows and returns the hash of them as recorded, and their number.
func rowsHash(t testing.TB, it *Iter) (sum string, n int) {
	t.Helper()
	h := sha256.New()
	for it.Next() {
		h.Write([]byte{etf.Version, etf.TagSmallTuple, 2})
		h.Write(it.Key())
		h.Write(it.Value())
		n++
	}
	if err := it.Err(); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil)), n
}
