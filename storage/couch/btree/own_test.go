package btree

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"scanode/etf"
	"scanode/storage/couch/file"
)

// The oracle of these tests is a sorted list of numbers and what is stored for each; Verify
// says whether nodes are legal.

// A keyspace makes keys of numbers from 0 on, in the order of the numbers.
type keyspace struct {
	name  string
	order Order
	key   func(n int) []byte
}

func keyspaces() []keyspace {
	view := ViewOrder()
	return []keyspace{
		{"etf", TermOrder, func(n int) []byte {
			if n%5 == 4 { // between its neighbours
				return etf.AppendFloat64(nil, float64(n-10_000)-0.5)
			}
			return etf.AppendInt64(nil, int64(n-10_000))
		}},
		{"ids", TermOrder, func(n int) []byte {
			// Digits that differ early, and a tail of any length.
			s := fmt.Sprintf("%07d", n)
			return stringTerm(s + strings.Repeat("0", n*n%23))
		}},
		{"raw", ByteOrder, func(n int) []byte { return stringTerm(fmt.Sprintf("%09d", n)) }},
		{"view", view, func(n int) []byte {
			key := etf.AppendTupleHeader(nil, 2)
			if n%10_000 < 3000 { // a key that many documents have
				key = etf.AppendInt64(key, int64(n/10_000*10_000))
			} else {
				key = etf.AppendInt64(key, int64(n))
			}
			return append(key, stringTerm(fmt.Sprintf("doc%07d", n))...)
		}},
	}
}

func stringTerm(s string) []byte { return append(etf.AppendBinaryHeader(nil, len(s)), s...) }

// sortedModel is what a tree should have.
type sortedModel struct {
	keyspace
	rng  *rand.Rand
	seen []int // in order
	rows map[int][]byte
	next int // all numbers from here on are unused
}

func (m *sortedModel) set(n int, value []byte) {
	if m.rows[n] == nil {
		i, _ := slices.BinarySearch(m.seen, n)
		m.seen = slices.Insert(m.seen, i, n)
	}
	m.rows[n] = value
}

func (m *sortedModel) remove(n int) {
	if m.rows[n] != nil {
		i, _ := slices.BinarySearch(m.seen, n)
		m.seen = slices.Delete(m.seen, i, i+1)
		delete(m.rows, n)
	}
}

// value makes a value; few are so large that they have a leaf of their own.
func (m *sortedModel) value() []byte {
	size := m.rng.IntN(40)
	switch m.rng.IntN(100) {
	case 0:
		size = 600 + m.rng.IntN(4000)
	case 1:
		size = 150
	}
	b := make([]byte, size)
	for i := range b {
		b[i] = byte('a' + m.rng.IntN(4))
	}
	return stringTerm(string(b))
}

// draw makes the actions of one modification and applies them to the model. Kinds of work
// come in runs, for a policy looks at what came before.
func (m *sortedModel) draw(kind, size int) (rows []Row, removes [][]byte) {
	insert := func(n int) {
		value := m.value()
		m.set(n, value)
		rows = append(rows, Row{m.key(n), value})
	}
	done := map[int]bool{}
	if len(m.seen) == 0 {
		kind = 0
	}
	for range size {
		switch k := kind; {
		case k == 0: // behind all others
			m.next += 1 + m.rng.IntN(8)
			insert(m.next - 1)
		case k == 1: // anywhere
			if n := m.rng.IntN(m.next + 1); !done[n] {
				done[n] = true
				insert(n)
			}
		case k == 2: // what is there, mostly behind
			i := len(m.seen) - 1 - int(float64(len(m.seen))*math.Pow(m.rng.Float64(), 3))
			if n := m.seen[max(i, 0)]; !done[n] {
				done[n] = true
				insert(n)
			}
		case len(m.seen) == 0: // all are removed
			return rows, removes
		case k == 3: // what is there, anywhere
			n := m.seen[m.rng.IntN(len(m.seen))]
			removes = append(removes, m.key(n))
			m.remove(n)
		default: // a stretch
			from := m.rng.IntN(len(m.seen))
			for range min(size, len(m.seen)-from) {
				removes = append(removes, m.key(m.seen[from]))
				m.remove(m.seen[from])
			}
			return rows, removes
		}
	}
	m.next = max(m.next, 1)
	return rows, removes
}

// check compares the whole tree with the model.
func (m *sortedModel) check(t *testing.T, tree Tree) Summary {
	t.Helper()
	sum, err := tree.Verify(Check{Separators: tree.o.ShortKeys})
	if err != nil {
		t.Fatal(err)
	}
	i := 0
	for it := tree.Iter(Range{}); ; i++ {
		if !it.Next() {
			if it.Err() != nil || i != len(m.seen) {
				t.Fatalf("%d rows, expected %d, %v", i, len(m.seen), it.Err())
			}
			break
		}
		if i == len(m.seen) || string(it.Key()) != string(m.key(m.seen[i])) || string(it.Value()) != string(m.rows[m.seen[i]]) {
			t.Fatalf("row %d is %x %x, expected %v", i, it.Key(), it.Value(), m.seen[:min(len(m.seen), i+1)])
		}
	}
	if n := len(m.seen); n > 0 {
		k := m.seen[m.rng.IntN(n)]
		if v, ok, err := tree.Get(m.key(k)); !ok || err != nil || string(v) != string(m.rows[k]) {
			t.Fatalf("lookup: %x %t %v", v, ok, err)
		}
	}
	// The bound that edge.go promises.
	if n := len(m.seen); n >= 4 && tree.Held() == 0 && float64(sum.Depth) > 2*math.Log2(float64(n)/4)+6 {
		t.Fatalf("%d levels for %d rows", sum.Depth, n)
	}
	return sum
}

// TestOwnPolicies does random work in all orders, with the policies of our own and with
// Compat in between, which goes on where the others were.
func TestOwnPolicies(t *testing.T) {
	works := []struct {
		name                  string
		commits, largest, top int
	}{{"small", 250, 30, 4000}, {"large", 15, 20_000, 60_000}}
	for _, ks := range keyspaces() {
		for _, w := range works {
			for _, mixed := range []bool{false, true} {
				name := fmt.Sprintf("%s/%s/mixed=%t", ks.name, w.name, mixed)
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					seed := seedOf(t)
					m := &sortedModel{keyspace: ks, rng: rand.New(rand.NewPCG(seed, 1)), rows: map[int][]byte{}}
					ownWork(t, m, mixed, w.commits, w.largest, w.top)
				})
			}
		}
	}
}

// seedOf returns the seed for a test: SEED, or any.
func seedOf(t *testing.T) uint64 {
	seed, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	t.Log("SEED", seed)
	return seed
}

func ownWork(t *testing.T, m *sortedModel, mixed bool, commits, largest, top int) {
	policies := []Policy{Scanode, ScanodeWrite}
	if mixed {
		policies = append(policies, Compat, V0)
	}
	// A tree of CouchDB's goes on without short keys.
	short := m.name == "ids"
	f := newFile(t)
	tree := New(f, Pointer{}, Options{Order: m.order, Reducer: digestReducer{}, Cache: NewCache(1 << 20)})
	if m.rng.IntN(2) == 0 {
		tree.o.Cache = nil
	}
	tree.o.ShortKeys = short
	if m.rng.IntN(4) == 0 {
		tree.o.Reducer = noReducer{}
	}
	kind, size := 0, 1
	for left := 0; commits > 0; commits, left = commits-1, left-1 {
		if left <= 0 {
			left = 1 + m.rng.IntN(20)
			kind = m.rng.IntN(5)
			size = int(math.Pow(float64(largest), m.rng.Float64()))
			if len(m.seen) > top {
				kind = 4
			}
			tree.o.Policy = policies[m.rng.IntN(len(policies))]
			tree.o.Compression, _ = file.ParseCompression([]string{"none", "snappy"}[m.rng.IntN(2)])
			tree.o.Smallest = m.rng.IntN(4) == 0
			tree.o.HoldBytes = []int{0, 0, 5000, 100_000, 1 << 30}[m.rng.IntN(5)]
		}
		rows, removes := m.draw(kind, size)
		var err error
		if tree, err = tree.AddRemove(rows, removes); err != nil {
			t.Fatal(err)
		}
		if tree.Held() > tree.o.HoldBytes {
			t.Fatalf("%d bytes in memory, %d allowed", tree.Held(), tree.o.HoldBytes)
		}
		m.check(t, tree)
		if m.rng.IntN(8) == 0 {
			before := tree
			if tree, err = tree.Flush(); err != nil {
				t.Fatal(err)
			}
			if tree.Held() != 0 {
				t.Fatal("Flush has left nodes in memory")
			}
			m.check(t, tree)
			m.check(t, before)
		}
	}
	t.Logf("%d rows at the end", len(m.seen))
}

func (m *sortedModel) clone() sortedModel {
	c := *m
	c.seen, c.rows = slices.Clone(m.seen), maps.Clone(m.rows)
	return c
}
