package btree

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/etf"
	"scanode/storage/couch/file"
)

// Files are read by a program in Erlang, erl_test/couch_reader.erl, which was written from
// the description of the format and has nothing in common with this package. What the rows
// are is a sorted list's word, and what they look like to the BEAM is its own.

// aReading is a file and what the reader has to say of it.
type aReading struct {
	name, order, reduction, keys string
	want                         string
}

func (r aReading) job() string {
	return strings.Join([]string{r.name, r.order, r.reduction, r.keys}, " ")
}

// readByBEAM returns the reader's line for each of files.
func readByBEAM(t *testing.T, readings []aReading) []string {
	t.Helper()
	for _, program := range []string{"erl", "erlc"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("no " + program + " on PATH: nothing to compare with")
		}
	}
	dir := t.TempDir()
	sources := []string{"../../../erl_test/couch_reader.erl", "../../../erl_test/couch_xxh3.erl"}
	if out, err := exec.Command("erlc", append([]string{"-o", dir}, sources...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var jobs strings.Builder
	for _, r := range readings {
		jobs.WriteString(r.job() + "\n")
	}
	name := filepath.Join(dir, "jobs")
	if err := os.WriteFile(name, []byte(jobs.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("erl", "-noinput", "-pa", dir, "-eval", "couch_reader:main().")
	cmd.Env = append(os.Environ(), "JOBS="+name, "ERL_CRASH_DUMP_BYTES=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(lines) != len(readings) {
		t.Fatalf("%d lines for %d files: %s", len(lines), len(readings), out)
	}
	return lines
}

// allRows is how many rows the worlds have.
const allRows = 2100

// aWorld is an order and a reducer, and rows for them.
type aWorld struct {
	order, reduction string
	options          Options
	key              func(n int) []byte // of row n; keys of greater n are greater
	value            func(rng *rand.Rand) []byte
}

func worlds() []aWorld {
	integer := func(rng *rand.Rand) []byte { return etf.AppendInt64(nil, rng.Int64N(1<<(1+rng.IntN(40)))-100) }
	text := func(rng *rand.Rand) []byte {
		return stringTerm(strings.Repeat(string(rune('a'+rng.IntN(26))), rng.IntN(60)) + fmt.Sprint(rng.Uint32()))
	}
	long := func(rng *rand.Rand) []byte {
		if rng.IntN(8) > 0 {
			return text(rng)
		}
		value := make([]byte, rng.IntN(9000))
		for i := range value {
			value[i] = byte(rng.Uint32())
		}
		return etf.AppendBinary(nil, value)
	}
	// Integers, bignums, floats, atoms, tuples, binaries: what comes later is greater.
	mixed := func(n int) []byte {
		switch {
		case n >= 200 && n < 300:
			return etf.AppendInt64(nil, int64(n-250)*7)
		case n < 500:
			return etf.AppendInt64(nil, int64(n-250)*30_000_000_000_000_003)
		case n < 900:
			return etf.AppendFloat64(nil, float64(n)*1e17)
		case n < 1200:
			return etf.AppendAtom(nil, etf.Atom(fmt.Sprintf("a%05d", n)))
		case n < 1600:
			return append(etf.AppendTupleHeader(nil, 2), append(etf.AppendInt64(nil, int64(n)), etf.AppendNil(nil)...)...)
		}
		return stringTerm(fmt.Sprintf("%x-%d", 1<<20+n, n%7))
	}
	view := func(n int) []byte {
		var key []byte
		switch n / 700 {
		case 0:
			key = etf.AppendInt64(nil, int64(n/3))
		case 1:
			key = stringTerm(fmt.Sprintf("k%04dz", n))
		default:
			key = append(append(etf.AppendListHeader(nil, 2), stringTerm(fmt.Sprintf("%04d", n/5))...), etf.AppendInt64(nil, int64(n))...)
			key = etf.AppendNil(key)
		}
		return append(append(etf.AppendTupleHeader(nil, 2), key...), stringTerm(fmt.Sprintf("doc%05d", n))...)
	}
	binary := func(n int) []byte { return etf.AppendBinary(nil, fmt.Appendf(nil, "%07d", n*n)) }
	return []aWorld{
		{"term", "sum", Options{Reducer: Sum{}}, mixed, integer},
		{"term", "count", Options{Reducer: Count{}}, mixed, long},
		{"term", "none", Options{}, binary, text},
		{"term", "count_sum", Options{Reducer: sumReducer{}, Order: ByteOrder}, binary, integer},
		{"view", "view", Options{Reducer: View{}, Order: ViewOrder()}, view, text},
	}
}

// write makes a file of random inserts, updates and removes and says what is in it.
func (w aWorld) write(t *testing.T, name string, o Options, rng *rand.Rand, rounds int) (aReading, Tree) {
	t.Helper()
	f, err := file.Create(vfs.Default, name, file.Options{Sum: []file.Sum{file.XXH3, file.MD5}[rng.IntN(2)]})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	o.Order, o.Reducer = w.options.Order, w.options.Reducer
	tree := New(f, Pointer{}, o)
	rows := map[int]Row{}
	next := 0
	for range rounds {
		var inserts []Row
		var removes [][]byte
		inserted, removed := map[int]Row{}, map[int]bool{}
		for range 1 + rng.IntN([]int{1, 10, 300}[rng.IntN(3)]) {
			n := rng.IntN(allRows)
			if rng.IntN(3) == 0 {
				n = next % allRows // in ascending order, for part of the time
				next++
			}
			key := w.key(n)
			if rng.IntN(4) == 0 {
				removes, removed[n] = append(removes, key), true
				continue
			}
			row := Row{key, w.value(rng)}
			inserts = append(inserts, row)
			if _, ok := inserted[n]; !ok {
				inserted[n] = row // the first of equal keys
			}
		}
		if tree, err = tree.AddRemove(inserts, removes); err != nil {
			t.Fatal(err)
		}
		maps.DeleteFunc(rows, func(n int, _ Row) bool { return removed[n] })
		maps.Copy(rows, inserted)
		if rng.IntN(3) == 0 {
			if tree, err = tree.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if tree, err = tree.Flush(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Commit(versioned(tree.Root().Append(nil))); err != nil {
		t.Fatal(err)
	}
	sum, err := tree.Verify(Check{Separators: o.ShortKeys})
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.New()
	for n := range allRows {
		if row, ok := rows[n]; ok {
			pair := append(append(etf.AppendTupleHeader([]byte{etf.Version}, 2), row.Key...), row.Value...)
			canon, ok := canonical(pair[1:])
			if !ok {
				t.Fatal("no term")
			}
			hash.Write(append([]byte{etf.Version}, canon...))
		}
	}
	r := aReading{name: name, order: w.order, reduction: w.reduction, keys: "last"}
	if o.ShortKeys {
		r.keys = "between"
	}
	r.want = fmt.Sprintf("ok rows=%d depth=%d kp=%d,%d,%d kv=%d,%d,%d bytes=%d sha256=%x", len(rows), sum.Depth,
		sum.Inner.Count, sum.Inner.Min, sum.Inner.Max, sum.Leaves.Count, sum.Leaves.Min, sum.Leaves.Max, sum.Bytes, hash.Sum(nil))
	return r, tree
}

// TestBEAMReadsWhatIsWritten has the reader walk random trees of every policy, order and
// compression.
func TestBEAMReadsWhatIsWritten(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	var readings []aReading
	for _, policy := range []Policy{V0, V1, V1b, Compat, Scanode, ScanodeWrite} {
		for i, w := range worlds() {
			for _, compression := range []string{"none", "snappy", "deflate_6", "smallest"} {
				o := Options{Policy: policy, ChunkSize: []int{60, 320, 1279, 1279, 4096}[rng.IntN(5)]}
				if o.Smallest = compression == "smallest"; !o.Smallest {
					o.Compression, _ = file.ParseCompression(compression)
				}
				o.HoldBytes = []int{0, 0, 20_000, 1 << 20}[rng.IntN(4)]
				o.ShortKeys = w.reduction == "none" && rng.IntN(2) == 0
				name := filepath.Join(dir, fmt.Sprintf("%s-%d-%s-%s-%d", policy, i, w.order, compression, o.ChunkSize))
				r, _ := w.write(t, name, o, rng, 1+rng.IntN(30))
				readings = append(readings, r)
			}
		}
	}
	for i, line := range readByBEAM(t, readings) {
		if line != readings[i].want {
			t.Errorf("%s\nread:    %s\nwritten: %s", readings[i].job(), line, readings[i].want)
		}
	}
}

// TestBEAMSeesDamage flips one bit of a node in each of many files: a reader that still says
// the same of it would be no witness.
func TestBEAMSeesDamage(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	var readings []aReading
	for i, w := range worlds() {
		for j, compression := range []string{"none", "snappy", "deflate_6"} {
			o := Options{ChunkSize: 320}
			o.Compression, _ = file.ParseCompression(compression)
			name := filepath.Join(dir, fmt.Sprintf("%d-%d", i, j))
			r, tree := w.write(t, name, o, rng, 12)
			var nodes []Visit
			if _, err := tree.Verify(Check{Visit: func(v Visit) error { nodes = append(nodes, v); return nil }}); err != nil {
				t.Fatal(err)
			}
			whole, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			readings = append(readings, r)
			for k := range 20 {
				node := nodes[rng.IntN(len(nodes))]
				at := node.Ptr + rng.Int64N(node.Bytes)
				if at%file.BlockSize == 0 {
					continue // a tag, which no reader looks at
				}
				damaged := bytes.Clone(whole)
				damaged[at] ^= 1 << rng.IntN(8)
				r.name = fmt.Sprintf("%s-%d-%d", name, k, at)
				if err := os.WriteFile(r.name, damaged, 0o600); err != nil {
					t.Fatal(err)
				}
				if now := plainAt(t, r.name, node.Ptr); now != nil {
					c, err := etf.Compare(now[1:], plainAt(t, name, node.Ptr)[1:])
					if err == nil && c == 0 {
						// Snappy has several encodings of the same bytes, and the sign
						// of a bignum is any byte but 0.
						continue
					}
				}
				r := r
				r.want = "not " + r.want
				readings = append(readings, r)
			}
		}
	}
	for i, line := range readByBEAM(t, readings) {
		want, damaged := strings.CutPrefix(readings[i].want, "not ")
		if (line == want) == damaged {
			t.Errorf("%s\nread:    %s\nwritten: %s", readings[i].job(), line, readings[i].want)
		}
	}
}

// plainAt returns the node at ptr uncompressed, nil if it cannot be read.
func plainAt(t *testing.T, name string, ptr int64) []byte {
	t.Helper()
	f, err := file.OpenReadOnly(vfs.Default, name, file.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	payload, err := f.Read(nil, ptr)
	if err != nil {
		return nil
	}
	plain, err := file.Decompress(nil, payload, DefaultMaxNodeBytes)
	if err != nil {
		return nil
	}
	return plain
}
