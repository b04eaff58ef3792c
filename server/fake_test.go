package server

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"scanode/etf"
	"scanode/etf/etftext"
	"scanode/storage"
	"scanode/storage/lsm"
)

// bean is a BEAM in memory: it keeps what is sent to it and dies on request.
type bean struct {
	t    *testing.T
	link *Link

	mu       sync.Mutex
	arrived  sync.Cond
	inbox    map[string][]etf.Term // by address, as text
	monitors map[etf.Pid][]func()
	done     chan struct{}
}

func newServerIn(t *testing.T, limits Limits) *Server {
	t.Helper()
	engine := lsm.New(lsm.Config{})
	log := slog.New(slog.NewTextHandler(testWriter{t}, nil))
	s := New(Config{Version: "test", Engines: map[string]storage.Engine{"lsm": engine}, Resolve: AbsolutePath, Limits: limits, Logger: log})
	t.Cleanup(func() {
		if err := s.Close(t.Context()); err != nil && !errors.Is(err, t.Context().Err()) {
			t.Error(err)
		}
		engine.Close()
	})
	return s
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Log(string(bytes.TrimSpace(b)))
	return len(b), nil
}

func attach(t *testing.T, s *Server) *bean {
	b := &bean{t: t, inbox: map[string][]etf.Term{}, monitors: map[etf.Pid][]func(){}, done: make(chan struct{})}
	b.arrived.L = &b.mu
	b.link = s.Attach(b)
	t.Cleanup(b.die)
	return b
}

func (b *bean) Node() etf.Atom        { return "bean@here" }
func (b *bean) Done() <-chan struct{} { return b.done }

func (b *bean) Send(to etf.Pid, head, body []byte) error { return b.deliver(to, head, body) }
func (b *bean) SendAlias(to etf.Ref, head, body []byte) error {
	return b.deliver(to, head, body)
}

func (b *bean) deliver(to etf.Term, head, body []byte) error {
	select {
	case <-b.done:
		return io.ErrClosedPipe
	default:
	}
	msg := append(bytes.Clone(head), body...)
	if rest, err := etf.Check(msg); err != nil || len(rest) > 0 {
		b.t.Errorf("the server sends a term the BEAM refuses: %x: %v", msg, err)
	}
	v, _, err := etf.Decode(msg, etf.DefaultLimits)
	if err != nil {
		b.t.Error(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inbox[etftext.Format(to)] = append(b.inbox[etftext.Format(to)], v)
	b.arrived.Broadcast()
	return nil
}

func (b *bean) Monitor(pid etf.Pid, down func()) func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.monitors[pid] = append(b.monitors[pid], down)
	i := len(b.monitors[pid]) - 1
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if i < len(b.monitors[pid]) {
			b.monitors[pid][i] = func() {}
		}
	}
}

// kill makes a process die.
func (b *bean) kill(pid etf.Pid) {
	b.mu.Lock()
	downs := b.monitors[pid]
	delete(b.monitors, pid)
	b.mu.Unlock()
	for _, down := range downs {
		down()
	}
}

// die ends the BEAM and its link.
func (b *bean) die() {
	select {
	case <-b.done:
	default:
		close(b.done)
		b.link.Detach()
	}
}

// receive waits for the next message to an address.
func (b *bean) receive(to etf.Term) etf.Term {
	b.t.Helper()
	key := etftext.Format(to)
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.inbox[key]) == 0 {
		b.arrived.Wait()
	}
	msg := b.inbox[key][0]
	b.inbox[key] = b.inbox[key][1:]
	return msg
}

func (b *bean) send(msg etf.Term) {
	b.t.Helper()
	enc, err := etf.AppendTerm(nil, msg)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := b.link.Message(enc); err != nil {
		b.t.Errorf("%s: %v", etftext.Format(msg), err)
	}
}

var lastRef atomic.Uint32

func newRef() etf.Ref {
	return etf.Ref{Node: "bean@here", Creation: 1, Len: 3, ID: [5]uint32{lastRef.Add(1), 2, 3}}
}

func pid(n uint32) etf.Pid { return etf.Pid{Node: "bean@here", ID: n, Creation: 1} }

var (
	ok       = etf.Atom("ok")
	notFound = etf.Atom("not_found")
)

// ask makes a call by an alias, as gen_server:call does, and returns the reply.
func (b *bean) ask(from etf.Pid, req etf.Term) etf.Term {
	b.t.Helper()
	ref := newRef()
	tag := etf.Improper{Elems: etf.List{etf.Atom("alias")}, Tail: ref}
	b.send(etf.Tuple{etf.Atom("$gen_call"), etf.Tuple{from, tag}, req})
	reply := b.receive(ref).(etf.Tuple)
	if etftext.Format(reply[0]) != etftext.Format(tag) {
		b.t.Fatalf("reply carries %s, want %s", etftext.Format(reply[0]), etftext.Format(tag))
	}
	return reply[1]
}

// expect makes a call whose reply is known. want is Erlang text; a … at its end
// stands for anything.
func (b *bean) expect(from etf.Pid, req etf.Term, want string) {
	b.t.Helper()
	got := etftext.Format(b.ask(from, req))
	if head, open := strings.CutSuffix(want, "…"); got != want && !(open && strings.HasPrefix(got, head)) {
		b.t.Errorf("%s: got %s, want %s", etftext.Format(req), got, want)
	}
}

func (b *bean) open(from etf.Pid, dir string, opts ...etf.Pair) int64 {
	b.t.Helper()
	reply := b.ask(from, etf.Tuple{etf.Atom("open"), []byte(dir), etf.Map(opts)})
	if t, isTuple := reply.(etf.Tuple); isTuple && t[0] == ok {
		return t[1].(int64)
	}
	b.t.Fatalf("open: %s", etftext.Format(reply))
	return 0
}

func opt(name string, value etf.Term) etf.Pair { return etf.Pair{Key: etf.Atom(name), Value: value} }

func put(key, value string) etf.Term {
	return etf.Tuple{etf.Atom("put"), []byte(key), []byte(value)}
}

func writeReq(id int64, ops ...etf.Term) etf.Term {
	return etf.Tuple{etf.Atom("write"), id, etf.List(ops), etf.Map{}}
}

func get(id int64, key string) etf.Term { return etf.Tuple{etf.Atom("get"), id, []byte(key)} }

// startScan sends a scan request and returns its reference.
func (b *bean) startScan(from etf.Pid, id int64, opts ...etf.Pair) etf.Ref {
	b.t.Helper()
	ref := newRef()
	alias := etf.Improper{Elems: etf.List{etf.Atom("alias")}, Tail: ref}
	b.send(etf.Tuple{etf.Atom("scan"), etf.Tuple{from, alias}, id, etf.Map(opts)})
	return ref
}

// collect receives a scan until its end, acknowledging, and returns the rows as
// text and the message that ended it.
func (b *bean) collect(ref etf.Ref) (rows []string, end etf.Tuple) {
	b.t.Helper()
	for {
		msg := b.receive(ref).(etf.Tuple)
		switch msg[0] {
		case etf.Atom("scan_batch"):
			bin := msg[2].([]byte)
			rows = append(rows, batchRows(b.t, bin)...)
			b.send(etf.Tuple{etf.Atom("scan_ack"), ref, int64(len(bin))})
		case etf.Atom("scan_progress"):
		default:
			return rows, msg
		}
	}
}

func batchRows(t *testing.T, bin []byte) []string {
	t.Helper()
	msg, err := etf.SkipVersion(bin)
	if err != nil {
		t.Fatal(err)
	}
	v, _, err := etf.Decode(msg, etf.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, row := range v.(etf.List) {
		rows = append(rows, etftext.Format(row))
	}
	return rows
}

func storeDir(t *testing.T) string {
	dir := filepath.Join(t.TempDir(), "db")
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func symlink(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}
