package node

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"scanode/etf"
)

// pipeLink runs a link over one end of a pipe, without a node around it.
func pipeLink(conn net.Conn, name, to etf.Atom, change ...func(*Config)) (*Link, *recorder) {
	r := newRecorder()
	cfg, err := Config{Name: name, Cookie: Cookie("x"), Processes: []etf.Atom{"scanode"}, Handler: r,
		Logger: slog.New(newLogLines())}.withDefaults()
	if err != nil {
		panic(err)
	}
	for _, c := range change {
		c(&cfg)
	}
	n := &Node{cfg: cfg, log: cfg.Logger, creation: 7, ctx: context.Background(), links: map[etf.Atom]*Link{},
		procs: newProcesses(name, 7, cfg.Processes)}
	timed := &timedReader{conn: conn, limit: silence(cfg.TickTime)}
	l := newLink(n, peer{name: to, flags: ourFlags, ours: ourFlags}, conn, bufio.NewReader(timed))
	n.links[to] = l
	go l.run(nil)
	return l, r
}

// countTicks reads empty frames into a count until the connection ends.
func countTicks(conn net.Conn, count *atomic.Int32) {
	for {
		frame, err := readFrame(conn, 1<<20)
		if err != nil {
			return
		}
		if frame == nil {
			count.Add(1)
		}
	}
}

// TestSilentPeer says nothing for longer than the tick time, while it is ticked.
func TestSilentPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		_, r := pipeLink(ours, "a@h", "b@h")
		var ticks atomic.Int32
		countTicks(theirs, &ticks)
		r.next(t, "up")
		if e := r.next(t, "down"); !errors.Is(e.err, ErrPeerSilent) {
			t.Errorf("down with %v", e.err)
		}
		if n := ticks.Load(); n < 3 || n > 5 {
			t.Errorf("%d ticks within five quarters of the tick time", n)
		}
	})
}

// TestTwoTickers leaves two links that both answer ticks to themselves: they
// last, and do not answer each other without end.
func TestTwoTickers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := net.Pipe()
		a, ra := pipeLink(&countedConn{Conn: one}, "a@h", "b@h")
		b, rb := pipeLink(two, "b@h", "a@h")
		<-time.After(time.Hour) // of the bubble's clock
		if got := a.conn.(*countedConn).writes.Load(); got < 100 || got > 500 {
			t.Errorf("%d writes in an hour", got)
		}
		a.Close()
		b.Close()
		synctest.Wait()
		for _, r := range []*recorder{ra, rb} {
			r.next(t, "up")
			r.next(t, "down")
		}
	})
}

type countedConn struct {
	net.Conn
	writes atomic.Int32
}

func (c *countedConn) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// TestTicksWhileHeld holds the handler up: there is a tick every beat.
func TestTicksWhileHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		l, r := pipeLink(ours, "a@h", "b@h")
		go theirs.Write(frame(etf.Tuple{opRegSend, etf.Pid{Node: "b@h"}, etf.Atom(""), etf.Atom("scanode")},
			etf.Tuple{etf.Atom("$gen_call"), etf.Tuple{etf.Pid{Node: "b@h"}, etf.Atom("tag")}, etf.Atom("hold")}))
		var ticks atomic.Int32
		go countTicks(theirs, &ticks)
		<-time.After(time.Minute) // of the bubble's clock
		if n := ticks.Load(); n < 55 || n > 60 {
			t.Errorf("%d ticks in a minute", n)
		}
		close(r.hold)
		l.Close()
		synctest.Wait()
	})
}

// TestSignalsGoFirst collects an acknowledgement while a frame is being written:
// it precedes every message sent after it.
func TestSignalsGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		l, _ := pipeLink(ours, "a@h", "b@h")
		to := etf.Pid{Node: "b@h", ID: 1}
		// The pipe has no buffer: the first message is half written until it is read.
		go l.Send(to, etf.AppendAtom(nil, "first"), nil)
		synctest.Wait()
		for i := range 3 {
			l.out.signal(appendUnlinkIDAck(nil, uint64(i), l.node.procs.first, to), nil)
		}
		go l.Send(to, etf.AppendAtom(nil, "second"), nil)
		p := &fakePeer{t: t, conn: theirs, in: bufio.NewReader(theirs), name: "b@h", node: l.node}
		p.want(etf.Tuple{opSend, etf.Atom(""), to}, etf.Atom("first"))
		for i := range 3 {
			p.want(etf.Tuple{opUnlinkIDAck, i, l.node.procs.first, to})
		}
		p.want(etf.Tuple{opSend, etf.Atom(""), to}, etf.Atom("second"))
		l.Close()
		io.Copy(io.Discard, theirs)
	})
}

// TestPendingIsBounded collects signals for a peer that does not read: the
// collector blocks, and is freed by the end of the link.
func TestPendingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		l, r := pipeLink(ours, "a@h", "b@h")
		for range 4 {
			go func() {
				for l.out.signal(make([]byte, 1000), nil) == nil {
				}
			}()
		}
		synctest.Wait()
		l.out.mu.Lock()
		if n := len(l.out.pending); n > maxPendingBytes {
			t.Errorf("%d bytes are pending", n)
		}
		l.out.mu.Unlock()
		r.next(t, "up")
		r.next(t, "down") // of the write timeout
		theirs.Close()
	})
}
