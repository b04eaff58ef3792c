package storetest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"scanode/storage"
)

// Model runs random operations against a store and a sorted map.
func Model(t *testing.T, f Factory) {
	runs, length := 6, 2000
	if testing.Short() {
		runs, length = 2, 500
	}
	for _, seed := range seeds(t, runs) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Logf("again: STORETEST_SEED=%d go test -run '%s'", seed, t.Name())
			m := &model{bench: &bench{TB: t, env: f(t)}, rng: random(seed)}
			m.s = m.open(m.dir())
			m.prefixes = []table{nil}
			for range steps(t, length) {
				m.step()
			}
			m.reopen()
			m.close("store", m.s)
		})
	}
}

// model is a run in progress.
type model struct {
	*bench
	rng *rand.Rand
	s   storage.Store
	// prefixes are the states the store may be in after loss of power: as of
	// the last synced batch, and after each batch since. The last is what it
	// holds now.
	prefixes  []table
	iters     []*modelIter
	snapshots []*modelSnapshot
	trace     []string // the last steps, for the report
}

type modelIter struct {
	it storage.Iter
	c  *cursor
	rg storage.Range
}

type modelSnapshot struct {
	sn storage.Snapshot
	t  table
}

func (m *model) now() table { return m.prefixes[len(m.prefixes)-1] }

// note keeps what was done for the report of a failure.
func (m *model) note(format string, args ...any) {
	if len(m.trace) >= 40 {
		m.trace = m.trace[1:]
	}
	m.trace = append(m.trace, fmt.Sprintf(format, args...))
}

func (m *model) fail(format string, args ...any) {
	m.Helper()
	for _, line := range m.trace {
		m.Log(line)
	}
	m.Fatalf(format, args...)
}

// step does one random thing. Closing and reopening is rare, moving iterators
// common.
func (m *model) step() {
	switch n := m.rng.IntN(1000); {
	case n < 250:
		m.apply()
	case n < 350:
		m.get()
	case n < 430:
		m.newIter()
	case n < 900:
		m.move()
	case n < 930:
		m.dropIter()
	case n < 950:
		m.newSnapshot()
	case n < 965:
		m.dropSnapshot()
	case n < 980:
		m.scan()
	case n < 985:
		m.checkpoint()
	case n < 993:
		m.reopen()
	case n < 994:
		m.repairIt()
	default:
		m.crash()
	}
}

// key makes keys that meet each other: short, over few bytes, often prefixes of
// one another.
func (m *model) key() []byte {
	k := make([]byte, m.rng.IntN(5))
	for i := range k {
		k[i] = "\x00\x01ab\xff"[m.rng.IntN(5)]
	}
	return k
}

// value is mostly small; now and then it fills buffers.
func (m *model) value() []byte {
	switch n := m.rng.IntN(100); {
	case n < 10:
		return nil
	case n < 95:
		return filler(m.rng, m.rng.IntN(200))
	}
	return filler(m.rng, m.rng.IntN(100<<10))
}

func (m *model) apply() {
	var ops []storage.Op
	for range m.rng.IntN(8) {
		op := storage.Op{Kind: storage.Put, Key: m.key(), Value: m.value()}
		if m.rng.IntN(3) == 0 {
			op = storage.Op{Kind: storage.Delete, Key: op.Key}
		}
		ops = append(ops, op)
	}
	sync := m.rng.IntN(5) == 0
	m.note("apply %d operations, sync %v", len(ops), sync)
	next := m.now().with(ops)
	if err := m.s.Apply(ops, sync); err != nil {
		m.fail("apply: %v", err)
	}
	for i := range ops { // the caller's bytes are his own again
		clear(ops[i].Key)
		clear(ops[i].Value)
	}
	if sync {
		m.prefixes = nil
	}
	m.prefixes = append(m.prefixes, next)
}

// reader picks the store or a snapshot of it.
func (m *model) reader() (storage.Reader, table) {
	if n := len(m.snapshots); n > 0 && m.rng.IntN(3) == 0 {
		sn := m.snapshots[m.rng.IntN(n)]
		return sn.sn, sn.t
	}
	return m.s, m.now()
}

func (m *model) get() {
	r, t := m.reader()
	k := m.key()
	m.note("get %q", k)
	v, err := r.Get([]byte("dst"), k)
	i, found := t.find(string(k))
	switch {
	case found && (err != nil || string(v) != "dst"+t[i].value):
		m.fail("get %q: %.20q, %v, want %.20q", k, v, err, t[i].value)
	case !found && (!is(err, storage.ErrNotFound) || string(v) != "dst"):
		m.fail("get %q: %.20q, %v, want none", k, v, err)
	}
}

func (m *model) someRange() storage.Range {
	var rg storage.Range
	if m.rng.IntN(2) == 0 {
		rg.Start = m.key()
	}
	if m.rng.IntN(2) == 0 {
		rg.End = m.key()
	}
	rg.StartExclusive = m.rng.IntN(2) == 0
	rg.EndInclusive = m.rng.IntN(2) == 0
	return rg
}

func (m *model) newIter() {
	if len(m.iters) >= 10 {
		m.dropIter()
	}
	r, t := m.reader()
	rg := m.someRange()
	m.note("new iterator %d over %s", len(m.iters), describe(rg))
	m.iters = append(m.iters, &modelIter{m.iter(r, rg), newCursor(inRange(t, rg)), rg})
}

func (m *model) move() {
	if len(m.iters) == 0 {
		return
	}
	i := m.rng.IntN(len(m.iters))
	mi := m.iters[i]
	var what string
	var got, want bool
	switch m.rng.IntN(10) {
	case 0:
		what, got, want = "first", mi.it.First(), mi.c.first()
	case 1:
		what, got, want = "last", mi.it.Last(), mi.c.last()
	case 2:
		k := m.key()
		what, got, want = fmt.Sprintf("seek >= %q", k), mi.it.SeekGE(k), mi.c.seekGE(string(k))
	case 3:
		k := m.key()
		what, got, want = fmt.Sprintf("seek < %q", k), mi.it.SeekLT(k), mi.c.seekLT(string(k))
	case 4, 5, 6:
		what, got, want = "next", mi.it.Next(), mi.c.next()
	default:
		what, got, want = "prev", mi.it.Prev(), mi.c.prev()
	}
	m.note("iterator %d %s", i, what)
	if err := mi.c.same(mi.it, got, want); err != nil {
		m.fail("iterator %d over %s, %s: %v", i, describe(mi.rg), what, err)
	}
}

func (m *model) dropIter() {
	if len(m.iters) == 0 {
		return
	}
	i := m.rng.IntN(len(m.iters))
	m.note("close iterator %d", i)
	m.close("iterator", m.iters[i].it)
	m.iters = append(m.iters[:i], m.iters[i+1:]...)
}

func (m *model) newSnapshot() {
	if len(m.snapshots) >= 5 {
		m.dropSnapshot()
	}
	m.note("new snapshot %d", len(m.snapshots))
	sn, err := m.s.Snapshot()
	if err != nil {
		m.fail("snapshot: %v", err)
	}
	m.snapshots = append(m.snapshots, &modelSnapshot{sn, m.now()})
}

func (m *model) dropSnapshot() {
	if len(m.snapshots) == 0 {
		return
	}
	i := m.rng.IntN(len(m.snapshots))
	m.note("close snapshot %d", i)
	m.close("snapshot", m.snapshots[i].sn)
	m.snapshots = append(m.snapshots[:i], m.snapshots[i+1:]...)
}

func (m *model) scan() {
	r, t := m.reader()
	m.note("scan")
	if empty, err := m.s.IsEmpty(); err != nil || empty != (len(m.now()) == 0) {
		m.fail("empty: %v, %v, with %d rows", empty, err, len(m.now()))
	}
	if got := m.rows(r, storage.Range{}); !equal(got, t) {
		m.fail("scan: %d rows differ from the %d there should be", len(got), len(t))
	}
}

func (m *model) checkpoint() {
	dir := fmt.Sprintf("%s/copy%d", m.env.Dir, m.rng.Uint64())
	m.note("checkpoint")
	if err := m.s.Checkpoint(dir); err != nil {
		m.fail("checkpoint: %v", err)
	}
	m.prefixes = []table{m.now()} // everything before it is synced
	c := m.open(dir)
	if got := m.rows(c, storage.Range{}); !equal(got, m.now()) {
		m.fail("checkpoint: %d rows differ from the %d there should be", len(got), len(m.now()))
	}
	m.close("copy", c)
}

// repairIt repairs the store, which has no damage.
func (m *model) repairIt() {
	m.note("repair")
	m.close("store", m.s)
	m.ended()
	if r := m.repair(m.dir()); r.Rows != int64(len(m.now())) {
		m.fail("repair: %d rows were kept of %d", r.Rows, len(m.now()))
	}
	m.s = m.open(m.dir())
	m.prefixes = []table{m.now()}
	if got := m.rows(m.s, storage.Range{}); !equal(got, m.now()) {
		m.fail("repair: %d rows differ from the %d there should be", len(got), len(m.now()))
	}
}

// reopen closes the store under whatever is open and opens it again.
func (m *model) reopen() {
	m.note("reopen")
	m.close("store", m.s)
	s := m.open(m.dir())
	m.ended()
	m.s = s
	m.prefixes = []table{m.now()}
	if got := m.rows(m.s, storage.Range{}); !equal(got, m.now()) {
		m.fail("reopen: %d rows differ from the %d there should be", len(got), len(m.now()))
	}
}

// ended checks and drops the iterators and snapshots of a closed store.
func (m *model) ended() {
	for _, mi := range m.iters {
		if mi.it.Next() || mi.it.First() {
			m.fail("an iterator of a closed store moved")
		}
		m.wantIs("close of an iterator", mi.it.Close(), storage.ErrClosed)
	}
	for _, sn := range m.snapshots {
		m.wantIs("close of a snapshot", sn.sn.Close(), storage.ErrClosed)
	}
	m.iters, m.snapshots = nil, nil
}

// crash takes the power away. The store that comes back must be in one of the
// states since the last sync.
func (m *model) crash() {
	if m.env.Crash == nil {
		return
	}
	percent := m.rng.IntN(101)
	m.note("crash, %d %% of what was not synced is kept", percent)
	env := m.env.Crash(m.TB, percent, m.rng)
	m.close("store", m.s)
	m.ended()
	m.env = env
	m.s = m.open(m.dir())
	got := m.rows(m.s, storage.Range{})
	for i := len(m.prefixes) - 1; i >= 0; i-- {
		if equal(got, m.prefixes[i]) {
			m.note("%d of %d unsynced batches came back", i, len(m.prefixes)-1)
			m.prefixes = []table{m.prefixes[i]}
			return
		}
	}
	m.fail("after the crash: %d rows are none of the %d possible states", len(got), len(m.prefixes))
}
