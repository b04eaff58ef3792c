package storetest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"scanode/storage"
)

// Env is what the suite needs of an engine for one test.
type Env struct {
	// Engine is the engine under test.
	Engine storage.Engine
	// Dir is an absolute path below which the test may create stores. It
	// exists and is empty.
	Dir string
	// Options are the engine options the stores are opened with; nil is none.
	// Small buffers make small tests reach flushes.
	Options map[string]any
	// Crash returns the Env of a machine that finds the disk as it would be
	// after power loss now, with about that many percent of the bytes not
	// synced kept. The old Env and its stores live on apart from it. It may be
	// called while the store is written, and is nil for engines without such a
	// disk.
	Crash func(t testing.TB, unsyncedPercent int, rng *rand.Rand) Env
	// WriteFile and ReadDir reach the disk below the engine. Tests of foreign
	// directories are left out where they are nil.
	WriteFile func(path string, data []byte) error
	ReadDir   func(path string) ([]string, error)
	// BadOption is the name of an engine option with a value out of range, if
	// the engine has one.
	BadOption string
	BadValue  any
}

// Factory makes an Env. It is called anew for each test and cleans up with
// t.Cleanup.
type Factory func(t testing.TB) Env

// Run runs the whole suite.
func Run(t *testing.T, f Factory) {
	t.Run("Conformance", func(t *testing.T) { Conformance(t, f) })
	t.Run("Model", func(t *testing.T) { Model(t, f) })
	t.Run("Crash", func(t *testing.T) { Crash(t, f) })
}

// Conformance runs the sentences of the contract.
func Conformance(t *testing.T, f Factory) {
	for _, group := range [][]sentence{openSentences, readSentences, writeSentences, iterSentences, viewSentences, closeSentences, destroySentences} {
		for _, s := range group {
			t.Run(s.name, func(t *testing.T) { s.test(&bench{TB: t, env: f(t)}) })
		}
	}
}

// sentence is one statement of the contract and its test.
type sentence struct {
	name string
	test func(b *bench)
}

// bench is one test with its environment.
type bench struct {
	testing.TB
	env Env
}

// crashed is the same test on the machine after loss of power.
func (b *bench) crashed(unsyncedPercent int, rng *rand.Rand) *bench {
	b.Helper()
	return &bench{TB: b.TB, env: b.env.Crash(b.TB, unsyncedPercent, rng)}
}

func (b *bench) dir() string { return b.env.Dir + "/store" }

// open opens the store at dir, which must work.
func (b *bench) open(dir string) storage.Store {
	b.Helper()
	s, err := b.env.Engine.Open(dir, storage.Options{CreateIfMissing: true, Engine: b.env.Options})
	if err != nil {
		b.Fatalf("open: %v", err)
	}
	return s
}

// fresh opens an empty store that is closed when the test ends.
func (b *bench) fresh() storage.Store {
	b.Helper()
	s := b.open(b.dir())
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.wantIs("close", err, storage.ErrClosed)
		}
	})
	return s
}

func (b *bench) close(what string, c interface{ Close() error }) {
	b.Helper()
	if err := c.Close(); err != nil {
		b.Fatalf("close of %s: %v", what, err)
	}
}

// put applies rows key, value, key, value, ….
func (b *bench) put(s storage.Store, kv ...string) {
	b.Helper()
	b.apply(s, false, puts(kv...)...)
}

func (b *bench) apply(s storage.Store, sync bool, ops ...storage.Op) {
	b.Helper()
	if err := s.Apply(ops, sync); err != nil {
		b.Fatalf("apply: %v", err)
	}
}

// get returns the value of a key that must be there.
func (b *bench) get(r storage.Reader, key string) string {
	b.Helper()
	v, err := r.Get(nil, []byte(key))
	if err != nil {
		b.Fatalf("get %q: %v", key, err)
	}
	return string(v)
}

func (b *bench) wantGet(r storage.Reader, key, want string) {
	b.Helper()
	if got := b.get(r, key); got != want {
		b.Fatalf("get %q: %q, want %q", key, got, want)
	}
}

func (b *bench) wantMissing(r storage.Reader, key string) {
	b.Helper()
	v, err := r.Get(nil, []byte(key))
	b.wantIs(fmt.Sprintf("get %q (%q)", key, v), err, storage.ErrNotFound)
}

func (b *bench) wantIs(what string, err, target error) {
	b.Helper()
	if !is(err, target) {
		b.Fatalf("%s: error %v, want %v", what, err, target)
	}
}

func (b *bench) iter(r storage.Reader, rg storage.Range) storage.Iter {
	b.Helper()
	it, err := r.NewIter(rg)
	if err != nil {
		b.Fatalf("new iterator: %v", err)
	}
	return it
}

// rows reads a whole range.
func (b *bench) rows(r storage.Reader, rg storage.Range) []row {
	b.Helper()
	it := b.iter(r, rg)
	var out []row
	for ok := it.First(); ok; ok = it.Next() {
		out = append(out, row{string(it.Key()), string(it.Value())})
	}
	b.close("iterator", it)
	return out
}

func (b *bench) wantRows(r storage.Reader, rg storage.Range, kv ...string) {
	b.Helper()
	got, want := b.rows(r, rg), rowsOf(kv...)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		b.Fatalf("rows %q, want %q", got, want)
	}
}

// row is a key and its value.
type row struct{ key, value string }

func rowsOf(kv ...string) []row {
	var out []row
	for i := 0; i < len(kv); i += 2 {
		out = append(out, row{kv[i], kv[i+1]})
	}
	return out
}

func puts(kv ...string) []storage.Op {
	var ops []storage.Op
	for i := 0; i < len(kv); i += 2 {
		ops = append(ops, storage.Op{Kind: storage.Put, Key: []byte(kv[i]), Value: []byte(kv[i+1])})
	}
	return ops
}

func del(key string) storage.Op { return storage.Op{Kind: storage.Delete, Key: []byte(key)} }

// filler is a value of n bytes that does not compress to nothing.
func filler(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// seeds returns the seeds a random test runs with: the one of STORETEST_SEED,
// or n new ones.
func seeds(t testing.TB, n int) []uint64 {
	if s := os.Getenv("STORETEST_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("STORETEST_SEED: %v", err)
		}
		return []uint64{seed}
	}
	out := make([]uint64, n)
	for i := range out {
		out[i] = rand.Uint64()
	}
	return out
}

// random is the generator of a seed.
func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x73746f7265)) }

// steps is the length of a random run.
func steps(t testing.TB, n int) int {
	if s := os.Getenv("STORETEST_STEPS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("STORETEST_STEPS: %v", err)
		}
		return n
	}
	return n
}

func equal(a, b []row) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
