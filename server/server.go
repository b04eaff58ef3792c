package server

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"log/slog"
	"sync"
	"sync/atomic"

	"scanode/storage"
)

// Limits bound what peers can make the server hold.
type Limits struct {
	StreamsPerNode  int64 // running scans of all stores
	StreamsPerStore int
	Stores          int   // open stores
	PendingBytes    int64 // unfinished requests of one peer
}

// DefaultLimits are the bounds of docs/protocol.md §5.
var DefaultLimits = Limits{StreamsPerNode: 4096, StreamsPerStore: 256, Stores: 4096, PendingBytes: 64 << 20}

// Config describes a Server.
type Config struct {
	Version string
	// Engines by the name that open's option engine has. One is called lsm.
	Engines map[string]storage.Engine
	// Resolve turns the directory of an open request into an absolute path, or
	// refuses it.
	Resolve func(dir string) (string, error)
	Limits  Limits // DefaultLimits, or narrower
	Logger  *slog.Logger
}

// Server owns the open stores of this process.
type Server struct {
	cfg     Config
	log     *slog.Logger
	calls   map[request]func(*call) // nil for a write, which is queued
	streams atomic.Int64

	mu      sync.Mutex
	closed  bool
	stores  map[int64]*store  // by id
	handles map[int64]*handle // by id
	dirs    map[string]*store // by directory; a nil one is being opened
	change  sync.Cond         // signalled when an entry of dirs goes or is filled
	links   map[*Link]struct{}
}

// request names a call and the number of its arguments.
type request struct {
	name string
	args int
}

// New returns a Server without stores.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg, log: cfg.Logger, stores: map[int64]*store{}, handles: map[int64]*handle{}, dirs: map[string]*store{}, links: map[*Link]struct{}{}}
	s.change.L = &s.mu
	s.calls = map[request]func(*call){
		{"info", 0}:          (*call).nodeInfo,
		{"info", 1}:          (*call).storeInfo,
		{"handles", 1}:       (*call).handles,
		{"open", 2}:          (*call).open,
		{"close", 1}:         (*call).close,
		{"destroy", 2}:       (*call).destroy,
		{"repair", 2}:        (*call).repair,
		{"is_empty", 1}:      (*call).isEmpty,
		{"get", 2}:           (*call).get,
		{"explain", 1}:       (*call).explain,
		{"split", 3}:         (*call).split,
		{"snapshot", 1}:      (*call).snapshot,
		{"snapshot", 2}:      (*call).snapshot,
		{"iterator", 2}:      (*call).iterator,
		{"iterator_read", 3}: (*call).iteratorRead,
		{"write", 3}:         nil,
	}
	return s
}

// Close ends all scans, flushes and closes every store, and refuses to open
// others from then on. It returns early with ctx's error; what is not closed by
// then loses nothing that was synced.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	var all []*store
	for _, st := range s.stores {
		all = append(all, st)
	}
	s.mu.Unlock()
	done := make(chan struct{})
	go func() {
		s.closeAll(all, "scanode ends")
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// closeAll closes stores side by side; why is for the log.
func (s *Server) closeAll(stores []*store, why string) {
	var wg sync.WaitGroup
	for _, st := range stores {
		wg.Go(func() {
			if err := st.close(); err == nil {
				s.log.Info("store closed", "dir", st.dir, "why", why)
			} else if err != errClosed {
				s.log.Error("closing a store", "dir", st.dir, "why", why, "error", err)
			}
		})
	}
	wg.Wait()
}

// idBits is the size of an id: the BEAM keeps such an integer in one
// word.
const idBits = 59

// newID returns an id that no store and no handle had before, also none of an earlier run of
// the program. s.mu is held.
func (s *Server) newID() int64 {
	for {
		var b [8]byte
		if _, err := rand.Read(b[:]); err != nil {
			panic(err) // crypto/rand never fails
		}
		id := int64(binary.BigEndian.Uint64(b[:]) >> (64 - idBits))
		if id > 0 && s.stores[id] == nil && s.handles[id] == nil {
			return id
		}
	}
}
