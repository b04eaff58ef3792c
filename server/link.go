package server

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"golang.org/x/sync/semaphore"

	"scanode/etf"
	"scanode/etf/etftext"
	"scanode/scan"
)

// requestCost is what a request counts beside its own bytes: the goroutine and
// the bookkeeping that answer it.
const requestCost = 4 << 10

// repliesAtOnce bounds how many values are held in memory for one peer while
// the transport is full.
const repliesAtOnce = 64

// Link is the server's side of one transport connection. Message and Detach
// belong to the transport's reading goroutine.
type Link struct {
	s       *Server
	peer    Peer
	alive   context.Context     // ends with the peer
	pending *semaphore.Weighted // bytes of unfinished requests
	replies chan struct{}
	calls   sync.WaitGroup

	mu      sync.Mutex
	down    bool
	streams map[etf.Ref]*stream
}

// Attach makes peer known. Its messages go to the returned Link, whose Detach
// must be called when the connection has ended.
func (s *Server) Attach(peer Peer) *Link {
	alive, end := context.WithCancel(context.Background())
	go func() {
		<-peer.Done()
		end()
	}()
	l := &Link{s: s, peer: peer, alive: alive, pending: semaphore.NewWeighted(s.cfg.Limits.PendingBytes),
		replies: make(chan struct{}, repliesAtOnce), streams: map[etf.Ref]*stream{}}
	s.mu.Lock()
	s.links[l] = struct{}{}
	s.mu.Unlock()
	return l
}

// Detach ends everything the peer's BEAM had: its scans, and the stores its
// processes opened. It returns when they are closed.
func (l *Link) Detach() {
	l.mu.Lock()
	l.down = true
	for _, st := range l.streams {
		st.window.Close(errPeerGone)
	}
	l.mu.Unlock()
	l.calls.Wait()
	l.s.mu.Lock()
	delete(l.s.links, l)
	var opened []*store
	for _, st := range l.s.stores {
		if st.link == l {
			opened = append(opened, st)
		}
	}
	l.s.mu.Unlock()
	l.s.closeAll(opened, "its BEAM is gone")
}

// Message handles one message, a term without the 131, and keeps msg. The error
// says that msg is not one term: then nothing that the peer sends can be trusted
// any more. A term that is only nested too deep costs its sender an error reply.
func (l *Link) Message(msg []byte) error {
	rest, err := etf.Skip(msg)
	switch {
	case errors.Is(err, etf.ErrLimit):
		l.dispatch(msg, reasonf(tagBadRequest, "a request may be nested %d levels deep: %v", etf.MaxDepth, err))
		return nil
	case err != nil:
		return err
	case len(rest) > 0:
		return fmt.Errorf("%d bytes after the term", len(rest))
	}
	l.dispatch(msg, nil)
	return nil
}

// dispatch hands a message to what it asks for. tooDeep is not nil if msg is
// well-formed only as far as it has been read.
func (l *Link) dispatch(msg []byte, tooDeep *reason) {
	n, rest, err := etf.ReadTupleHeader(msg)
	if err != nil || n < 1 {
		l.dropped(msg)
		return
	}
	name, rest, err := etf.ReadAtom(rest)
	if err != nil {
		l.dropped(msg)
		return
	}
	switch {
	case string(name) == "$gen_call" && n == 3:
		l.call(msg, rest, tooDeep)
	case string(name) == "scan" && n == 4:
		l.scan(msg, rest, tooDeep)
	case string(name) == "scan_ack" && n == 3:
		l.scanAck(msg, rest)
	case string(name) == "scan_to" && n == 3:
		l.scanTo(msg, rest)
	case string(name) == "scan_stop" && n == 2:
		if ref, _, err := etf.ReadRef(rest); err == nil {
			l.closeStream(ref, scan.ErrStopped)
		} else {
			l.dropped(msg)
		}
	default:
		l.dropped(msg)
	}
}

// dropped logs a message that nobody waits for an answer to.
func (l *Link) dropped(msg []byte) {
	l.s.log.Warn("message not understood", "peer", l.peer.Node(), "message", etftext.FormatBytes(msg))
}

// charge takes the request's share of the peer's bound, waiting until there is
// room, and returns what gives it back; nil when the peer is gone instead.
func (l *Link) charge(msg []byte) (done func()) {
	cost := min(int64(len(msg)+requestCost), l.s.cfg.Limits.PendingBytes)
	if l.pending.Acquire(l.alive, cost) != nil {
		return nil
	}
	l.calls.Add(1)
	return func() {
		l.pending.Release(cost)
		l.calls.Done()
	}
}

// call dispatches {'$gen_call', From, Request}; b begins at From.
func (l *Link) call(msg, b []byte, tooDeep *reason) {
	to, tag, b, err := readFrom(b)
	if err != nil {
		l.dropped(msg)
		return
	}
	c := &call{link: l, to: to, tag: tag, n: 1, args: b}
	name, rest, err := etf.ReadAtom(b)
	if err == nil {
		c.n, c.args = 0, rest
	} else if n, elems, terr := etf.ReadTupleHeader(b); terr == nil && n > 0 {
		if name, rest, err = etf.ReadAtom(elems); err == nil {
			c.n, c.args = n-1, rest
		}
	}
	run, known := l.s.calls[request{string(name), c.n}]
	switch {
	case tooDeep != nil:
		run = func(c *call) { c.fail(tooDeep) }
	case err != nil || !known:
		run = func(c *call) { c.fail(reasonf(tagBadRequest, "unknown request %s", etftext.FormatBytes(b))) }
	}
	done := l.charge(msg)
	if done == nil {
		return
	}
	if run == nil {
		// Writes keep their order, so they are queued here; the rest may
		// overtake each other.
		l.s.write(c, done)
		return
	}
	go func() {
		defer done()
		defer c.recover()
		run(c)
	}()
}

// recover answers a call that panicked.
func (c *call) recover() {
	if p := recover(); p != nil {
		c.fail(c.link.s.panicked(p))
	}
}

// panicked logs a panic with its stack and returns the reason for the peer.
func (s *Server) panicked(p any) *reason {
	s.log.Error("fault in a request", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	return reasonf(tagInternal, "fault in scanode: %v", p)
}
