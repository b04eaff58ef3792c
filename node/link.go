package node

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"scanode/etf"
)

// Reasons a link ends, as Down and the calls that fail because of it get them.
// Anything else is a failure of the connection or of the peer.
var (
	// ErrClosed says that this side closed the link or the node.
	ErrClosed = errors.New("node: closed")
	// ErrPeerClosed says that the peer closed the connection.
	ErrPeerClosed = errors.New("node: the peer closed the connection")
	// ErrPeerSilent says that nothing arrived for too long.
	ErrPeerSilent = errors.New("node: the peer is silent")
	// ErrReplaced says that the peer made a new connection.
	ErrReplaced = errors.New("node: replaced by a new connection")
)

// ErrOtherNode is returned by Send for a pid of a node other than the peer.
var ErrOtherNode = errors.New("node: the process is on another node")

// ErrNoAlias is returned by SendAlias on a link to a node that has none.
var ErrNoAlias = errors.New("node: the peer has no aliases")

// ErrTooLong is returned by Send and SendAlias for a message that would not fit
// into a frame. The link goes on.
var ErrTooLong = errors.New("node: the message is too long")

// Link is a connection to one node, from the end of the handshake on.
type Link struct {
	node *Node
	peer peer
	conn net.Conn
	in   *bufio.Reader
	out  *writer
	form form
	// parts holds unfinished messages where FRAGMENTS is agreed on.
	parts assembler // the read goroutine's

	// handling is set while the read goroutine is in the handler.
	handling atomic.Bool
	// leaving is set when we have said farewell.
	leaving atomic.Bool
	// strange is set when an unknown control message has been logged.
	strange bool // the read goroutine's

	ending sync.Once
	cause  error         // set before done is closed
	done   chan struct{} // closed when the link ends
	gone   chan struct{} // closed when Down has returned

	mu       sync.Mutex
	finished bool // no monitor is fired any more but by Monitor itself
	watches  map[etf.Ref]*watch
	watchers map[etf.Ref]watcher
	pairs    map[pair]struct{}
}

// newLink makes a link whose turn to write is taken: nobody can send before the
// handshake is over and run releases it.
func newLink(n *Node, p peer, conn net.Conn, in *bufio.Reader) *Link {
	l := &Link{
		node: n, peer: p, conn: conn, in: in,
		form:     formOf(p.agreed()),
		parts:    assembler{max: n.cfg.MaxFrameBytes, unfinished: map[uint64]*partial{}},
		done:     make(chan struct{}),
		gone:     make(chan struct{}),
		watches:  map[etf.Ref]*watch{},
		watchers: map[etf.Ref]watcher{},
		pairs:    map[pair]struct{}{},
	}
	l.out = newWriter(conn, l.form, n.cfg.WriteTimeout, l.done, l.reason)
	l.out.turn <- struct{}{}
	return l
}

// Node returns the name of the peer.
func (l *Link) Node() etf.Atom { return l.peer.name }

// String returns the name of the peer.
func (l *Link) String() string { return string(l.peer.name) }

// LogValue returns the name of the peer.
func (l *Link) LogValue() slog.Value { return slog.StringValue(string(l.peer.name)) }

// Done returns a channel that is closed when the link ends, before Down is
// called.
func (l *Link) Done() <-chan struct{} { return l.done }

// ended says whether the link has ended; Down may still be under way.
func (l *Link) ended() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// Close ends the link and returns at once; Down follows. Always nil.
func (l *Link) Close() error {
	l.end(ErrClosed)
	return nil
}

// end ends the link; the first reason stays.
func (l *Link) end(err error) {
	l.ending.Do(func() {
		l.cause = err
		close(l.done)
		l.hangUp()
	})
}

// hangUp closes the connection, at once: what TLS would like to say at the end
// could wait for a peer that does not read.
func (l *Link) hangUp() {
	if secured, ok := l.conn.(*tls.Conn); ok {
		secured.NetConn().Close()
		return
	}
	l.conn.Close()
}

// reason is why the link ended. Only after done is closed.
func (l *Link) reason() error { return l.cause }

// Send sends one message to a process of the peer's: the encoded term, without
// version byte, that is head followed by body. Neither is copied nor kept. It
// blocks while the connection is full. The error is ErrOtherNode, ErrTooLong, or
// why the link has ended.
func (l *Link) Send(to etf.Pid, head, body []byte) error {
	if to.Node != l.peer.name {
		return ErrOtherNode
	}
	return l.send(appendSend(make([]byte, 0, 320), to), head, body)
}

// SendAlias is Send to an alias made by a process of the peer's, which is how
// the tags [alias|Ref] and [[alias|Ref]|_] of calls are to be answered. The
// error may also be ErrNoAlias.
func (l *Link) SendAlias(alias etf.Ref, head, body []byte) error {
	switch {
	case alias.Node != l.peer.name:
		return ErrOtherNode
	case l.peer.agreed()&flagAlias == 0:
		return ErrNoAlias
	}
	return l.send(appendAliasSend(make([]byte, 0, 640), l.node.procs.first, alias), head, body)
}

func (l *Link) send(control, head, body []byte) error {
	const around = 3 // the most that a form adds
	if len(head)+len(body) > l.node.cfg.MaxFrameBytes-len(control)-around {
		return ErrTooLong
	}
	if err := l.out.message(control, head, body); err != nil {
		l.end(err)
		return l.cause
	}
	return nil
}

// run serves the link until it ends. failed is why the handshake did not come
// to its end, after all; then the handler never hears of the link.
func (l *Link) run(failed error) {
	n := l.node
	up := failed == nil
	if up {
		l.out.unlock()
		var signals sync.WaitGroup
		signals.Go(l.serveSignals)
		n.log.Info("link up", "peer", l, "addr", l.conn.RemoteAddr())
		l.end(l.read())
		signals.Wait()
	} else {
		l.end(failed)
	}
	l.mu.Lock()
	l.finished = true
	watches := l.watches
	l.watches = nil
	l.mu.Unlock()
	for _, w := range watches {
		l.protect(w.fire)
	}
	if up {
		l.protect(func() { n.cfg.Handler.Down(l, l.cause) })
		n.log.Log(n.ctx, downLevel(l.cause), "link down", "peer", l, "err", l.cause)
	}
	n.remove(l)
	close(l.gone)
}

// downLevel is the level the end of a link is logged at: a close on either side
// is no cause for alarm.
func downLevel(err error) slog.Level {
	if errors.Is(err, ErrClosed) || errors.Is(err, ErrPeerClosed) || errors.Is(err, ErrReplaced) {
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

// protect runs f; a panic is logged and ends the link.
func (l *Link) protect(f func()) {
	defer l.recoverPanic()
	f()
}

// recoverPanic is deferred where a panic shall cost the link and no more.
func (l *Link) recoverPanic() {
	if v := recover(); v != nil {
		l.node.log.Error("panic on a link", "peer", l, "panic", v, "stack", string(debug.Stack()))
		l.end(fmt.Errorf("node: panic: %v", v))
	}
}

// read reads frames until the link ends and returns why.
func (l *Link) read() (err error) {
	// After a panic the link has ended already, with the better reason.
	defer l.recoverPanic()
	l.node.cfg.Handler.Up(l)
	for {
		frame, err := readFrame(l.in, l.node.cfg.MaxFrameBytes)
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			if l.leaving.Load() {
				return ErrClosed
			}
			return ErrPeerClosed
		case hungUp(err):
			return fmt.Errorf("%w: %w", ErrPeerClosed, err)
		case errors.Is(err, errFrameTooLong):
			return fmt.Errorf("node: %w", err)
		case errors.Is(err, os.ErrDeadlineExceeded):
			return fmt.Errorf("%w for %v", ErrPeerSilent, silence(l.node.cfg.TickTime).Round(time.Millisecond))
		default:
			return fmt.Errorf("node: reading: %w", err)
		}
		if frame == nil {
			l.answerTick()
			continue
		}
		b, got, err := l.cut(frame)
		if err != nil {
			return fmt.Errorf("node: %w", err)
		}
		if b == nil {
			continue
		}
		m, err := parseControl(b, got)
		if err != nil {
			return fmt.Errorf("node: %w", err)
		}
		if err := l.handle(m); err != nil {
			return err
		}
	}
}

// cut returns what is behind the head of a frame, and the form it has; nil when
// that is not all of a message.
func (l *Link) cut(frame []byte) ([]byte, form, error) {
	if l.form == headed {
		b, err := l.parts.take(frame)
		return b, headed, err
	}
	if len(frame) > 2 && frame[0] == versionTag && frame[1] == headWhole {
		// Not agreed on, but ergo writes and reads nothing else.
		l.out.headed.Store(true)
		b, err := cutRefs(frame[2:])
		return b, headed, err
	}
	b, err := cutFrame(frame)
	return b, passing, err
}

// handle acts on one control message. It runs on the read goroutine and never
// writes: it collects.
func (l *Link) handle(m control) error {
	if !m.known {
		if !l.strange {
			l.strange = true
			l.node.log.Warn("unknown control message, ignored from here on", "peer", l, "op", m.op)
		}
		return nil
	}
	switch m.op {
	case opSend, opSendTT, opSendSender, opSendSenderTT, opRegSend, opRegSendTT:
		return l.deliver(m)
	case opMonitorP:
		return l.monitored(m)
	case opDemonitorP:
		l.demonitored(m.ref)
	case opMonitorPExit, opPayloadMonitorExit:
		l.watchedDied(m.ref)
	case opLink:
		return l.linked(m)
	case opUnlink, opExit, opExitTT, opPayloadExit, opPayloadExitTT:
		// Our processes trap exits: one only ends the process link.
		l.unlinked(m)
	case opUnlinkID:
		l.unlinked(m)
		return l.out.signal(appendUnlinkIDAck(nil, m.id, m.to.pid, m.from), nil)
	case opSpawnRequest, opSpawnRequestTT:
		return l.out.signal(appendSpawnReply(nil, m.ref, m.from, "notsup"), nil)
	}
	// The rest means nothing to a process that traps exits, has no aliases,
	// spawns nothing and never links: EXIT2, UNLINK_ID_ACK, GROUP_LEADER,
	// NODE_LINK, ALIAS_SEND, SPAWN_REPLY.
	return nil
}

// deliver hands a message to the handler. One to nobody is dropped, as in the
// BEAM.
func (l *Link) deliver(m control) error {
	_, name, ok := l.node.procs.find(m.to)
	switch {
	case !ok:
		return nil
	case name == netKernel:
		return l.kernelCall(m.msg)
	}
	l.handling.Store(true)
	l.node.cfg.Handler.Message(l, name, m.msg)
	l.handling.Store(false)
	return nil
}
