package lsm

import (
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// compactor shares a number of concurrent compactions among all stores of an
// engine. Pebble's own scheduler knows one store only, wakes ten times a second
// for each, and outlives a failed Open.
//
// Locks: pebble calls TrySchedule with the mutex of the database held, so the
// compactor's mutex comes after it and is never held while calling a database.
type compactor struct {
	limit int

	mu      sync.Mutex
	idle    *sync.Cond // a call into a database has ended
	running int
	missed  bool // a database was refused since the last round of grants
	held    bool // that round passed over a store that waits after a failure
	members []*member
}

func newCompactor(limit int) *compactor {
	c := &compactor{limit: limit}
	c.idle = sync.NewCond(&c.mu)
	return c
}

// member is the place of one store in the compactor: the CompactionScheduler
// its database knows, and the handle of every compaction it was granted.
type member struct {
	c    *compactor
	shut func() bool // whether the store must not start compactions now

	// The fields below belong to c.mu.
	db      pebble.DBForCompaction
	running int
	calls   int // calls into db under way
	gone    bool
}

var (
	_ pebble.CompactionScheduler   = (*member)(nil)
	_ pebble.CompactionGrantHandle = (*member)(nil)
)

// join makes a place for a store. shut must be cheap and lock nothing.
func (c *compactor) join(shut func() bool) *member { return &member{c: c, shut: shut} }

// Register implements pebble.CompactionScheduler.
func (m *member) Register(_ int, db pebble.DBForCompaction) {
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	m.db = db
	m.c.members = append(m.c.members, m)
}

// Unregister implements pebble.CompactionScheduler. It may be called again, and
// without Register before it.
func (m *member) Unregister() {
	c := m.c
	c.mu.Lock()
	defer c.mu.Unlock()
	m.gone = true
	for i, o := range c.members {
		if o == m {
			c.members = append(c.members[:i:i], c.members[i+1:]...)
			break
		}
	}
	for m.calls > 0 {
		c.idle.Wait()
	}
}

// take counts a compaction of m when there is room. c.mu must be held.
func (m *member) take() bool {
	c := m.c
	if m.gone || c.running >= c.limit || m.running >= m.db.GetAllowedWithoutPermission() {
		return false
	}
	if m.shut() {
		c.held = true // its database may wait, and will not ask again
		return false
	}
	c.running++
	m.running++
	return true
}

// isRunning reports whether a compaction of the store runs.
func (m *member) isRunning() bool {
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	return m.running > 0
}

// TrySchedule implements pebble.CompactionScheduler.
func (m *member) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	if !m.take() {
		m.c.missed = true
		return false, nil
	}
	return true, m
}

// UpdateGetAllowedWithoutPermission implements pebble.CompactionScheduler. It
// is called with the database locked, so the grants are given elsewhere.
func (m *member) UpdateGetAllowedWithoutPermission() { m.c.poke() }

// poke starts a round of grants if a database waits for one.
func (c *compactor) poke() {
	c.mu.Lock()
	wanted := c.missed || c.held
	c.mu.Unlock()
	if wanted {
		go c.grant()
	}
}

// pokeAfter does so later.
func (c *compactor) pokeAfter(d time.Duration) { time.AfterFunc(d, c.poke) }

// grant offers free places to the stores, one each in turn, until none takes
// one.
func (c *compactor) grant() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for again := true; again; {
		c.missed, c.held, again = false, false, false
		for _, m := range append([]*member(nil), c.members...) {
			if !m.take() {
				continue
			}
			m.calls++
			c.mu.Unlock()
			waiting, _ := m.db.GetWaitingCompaction()
			accepted := waiting && m.db.Schedule(m)
			c.mu.Lock()
			m.calls--
			c.idle.Broadcast()
			if accepted {
				again = true
				continue
			}
			c.running--
			m.running--
		}
		// A store that asked while its place was being offered around was
		// refused and will not ask again.
		again = again || c.missed && c.running < c.limit
	}
}

// Started implements pebble.CompactionGrantHandle.
func (m *member) Started() {}

// MeasureCPU implements pebble.CompactionGrantHandle.
func (m *member) MeasureCPU(pebble.CompactionGoroutineKind) {}

// CumulativeStats implements pebble.CompactionGrantHandle.
func (m *member) CumulativeStats(pebble.CompactionGrantHandleStats) {}

// Done implements pebble.CompactionGrantHandle.
func (m *member) Done() {
	c := m.c
	c.mu.Lock()
	c.running--
	m.running--
	c.mu.Unlock()
	c.grant()
}
