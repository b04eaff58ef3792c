package node

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"scanode/etf"
)

const (
	// maxHalfOpen bounds the handshakes under way on accepted connections;
	// further connections wait to be accepted.
	maxHalfOpen = 64

	// readBufferBytes is the buffer of one link's reader.
	readBufferBytes = 64 << 10

	// acceptPause keeps a listener that fails (no file descriptors left) from
	// spinning.
	acceptPause = 100 * time.Millisecond
)

// accept takes connections until the listener is closed.
func (n *Node) accept() {
	for {
		select {
		case n.slots <- struct{}{}:
		case <-n.ctx.Done():
			return
		}
		conn, err := n.listener.Accept()
		if err == nil {
			n.wg.Go(func() { n.serve(conn) })
			continue
		}
		<-n.slots
		if errors.Is(err, net.ErrClosed) {
			return
		}
		n.log.Warn("accept", "err", err)
		select {
		case <-time.After(acceptPause):
		case <-n.ctx.Done():
			return
		}
	}
}

// serve carries out the handshake on an accepted connection, then its link.
func (n *Node) serve(conn net.Conn) {
	release := func(*Link, error) { <-n.slots }
	n.established(conn, "", release, func(h *handshake, ready func(peer) error) (peer, error) {
		return h.answer(n.admit, ready)
	})
}

// admit decides on a caller by its name.
func (n *Node) admit(p peer) status {
	if p.name == n.cfg.Name || !n.cfg.Allow(p.name) {
		return statusNotAllowed
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := n.dials[p.name]; !ok {
		return statusOK
	}
	// Both call at once: the call of the greater name goes on.
	if n.cfg.Name > p.name {
		return statusNok
	}
	return statusOKSimultaneous
}

// established runs a handshake on conn and then, on this goroutine, the link. It
// closes conn. host is the peer's where this side calls, else empty. settled is
// called once with the outcome of the handshake.
func (n *Node) established(conn net.Conn, host string, settled func(*Link, error), shake func(*handshake, func(peer) error) (peer, error)) {
	ctx, cancel := context.WithTimeout(n.ctx, n.cfg.Handshake)
	defer cancel()
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	timed := &timedReader{}
	var l *Link
	p, err := func() (p peer, err error) {
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("node: panic: %v", v)
			}
		}()
		secured, err := n.secure(ctx, conn, host)
		if err != nil {
			return p, err
		}
		timed.conn = secured
		h := &handshake{
			conn: secured, in: bufio.NewReaderSize(timed, readBufferBytes), wide: n.cfg.TLS != nil,
			name: n.cfg.Name, flags: n.flags(), creation: n.creation, digest: n.digest,
		}
		return shake(h, func(p peer) error {
			link := newLink(n, p, secured, h.in)
			if err := n.install(ctx, link); err != nil {
				return err
			}
			l = link
			return nil
		})
	}()
	if !stop() && !errors.Is(err, ErrWrongCookie) && !errors.Is(err, ErrPeerPlain) {
		// The connection was closed from here, whatever the error says.
		err = fmt.Errorf("handshake: %w", ctx.Err())
	}
	settled(l, err)
	if err != nil {
		n.logRefusal(conn, p, err)
	}
	if l != nil {
		timed.limit = silence(n.cfg.TickTime)
		// Whatever ends the node ends the link.
		defer n.onClose(func() { l.end(ErrClosed) })()
		l.run(err)
	}
}

// flags is what this node announces.
func (n *Node) flags() flags {
	if n.cfg.Fragments {
		return ourFlags | flagFragments
	}
	return ourFlags
}

// logRefusal says why there is no link. A wrong cookie is worth a warning, and so
// is a peer that speaks the other kind of distribution; whoever does not even say
// a name is a stranger that probes the port.
func (n *Node) logRefusal(conn net.Conn, p peer, err error) {
	switch {
	case n.ctx.Err() != nil || errors.Is(err, errNok):
	case p.name == "" && (errors.Is(err, errNameMe) || errors.Is(err, ErrCertificate) || errors.Is(err, ErrPeerTLS) || errors.Is(err, ErrPeerPlain)):
		n.log.Log(n.ctx, n.strangerLevel(), "link refused", "addr", conn.RemoteAddr(), "err", err)
	case p.name == "":
		n.log.Debug("handshake failed", "addr", conn.RemoteAddr(), "err", err)
	case errors.Is(err, ErrWrongCookie):
		n.log.Warn("link refused: wrong cookie", "peer", string(p.name), "addr", conn.RemoteAddr())
	default:
		n.log.Warn("link refused", "peer", string(p.name), "addr", conn.RemoteAddr(), "err", err)
	}
}

// strangerLevel is the level a refusal of somebody without a name is logged at:
// one line a second is a warning, so that nobody can fill the log from outside.
func (n *Node) strangerLevel() slog.Level {
	now := time.Now().Unix()
	if n.stranger.Swap(now) == now {
		return slog.LevelDebug
	}
	return slog.LevelWarn
}

// dial is a call to a node that is under way.
type dial struct {
	done chan struct{} // closed when it is over
	link *Link         // the outcome, set before that
	err  error
}

// Connect returns the link to the node named name, making it where there is
// none: it asks epmd for the port, and calls. Calls for the same name share one
// attempt, bounded by Config.Handshake. The error may be ErrUnknownNode,
// ErrNoEPMD, ErrWrongCookie, ErrNotAllowed, ErrClosed, or ctx's.
func (n *Node) Connect(ctx context.Context, name etf.Atom) (*Link, error) {
	if _, err := checkNodeName([]byte(name)); err != nil {
		return nil, fmt.Errorf("node: %w", err)
	}
	if name == n.cfg.Name {
		return nil, fmt.Errorf("node: %s is this node", name)
	}
	n.mu.Lock()
	if l := n.links[name]; l != nil && !l.ended() {
		n.mu.Unlock()
		return l, nil
	}
	if n.closing || n.ctx.Err() != nil {
		n.mu.Unlock()
		return nil, ErrClosed
	}
	d := n.dials[name]
	if d == nil {
		d = &dial{done: make(chan struct{})}
		n.dials[name] = d
		n.wg.Go(func() { n.dial(d, name) })
	}
	n.mu.Unlock()
	select {
	case <-d.done:
	case <-ctx.Done():
		return nil, fmt.Errorf("node: connecting to %s: %w", name, ctx.Err())
	}
	switch {
	case d.err == nil:
		return d.link, nil
	case errors.Is(d.err, errNok):
		// The peer's own call to us is on its way.
		return n.await(ctx, name)
	}
	return nil, fmt.Errorf("node: connecting to %s: %w", name, d.err)
}

// await waits until there is a link to name.
func (n *Node) await(ctx context.Context, name etf.Atom) (*Link, error) {
	ctx, cancel := context.WithTimeout(ctx, n.cfg.Handshake)
	defer cancel()
	for {
		n.mu.Lock()
		l, changed := n.links[name], n.changed
		n.mu.Unlock()
		if l != nil && !l.ended() {
			return l, nil
		}
		select {
		case <-changed:
		case <-n.ctx.Done():
			return nil, ErrClosed
		case <-ctx.Done():
			return nil, fmt.Errorf("node: connecting to %s: %w", name, ctx.Err())
		}
	}
}

// dial calls name and, on this goroutine, runs the link that results.
func (n *Node) dial(d *dial, name etf.Atom) {
	settle := func(l *Link, err error) {
		n.mu.Lock()
		delete(n.dials, name)
		n.mu.Unlock()
		d.link, d.err = l, err
		close(d.done)
	}
	conn, err := n.open(name)
	if err != nil {
		settle(nil, err)
		return
	}
	_, host := splitName(name)
	n.established(conn, host, settle, func(h *handshake, ready func(peer) error) (peer, error) {
		p, err := h.call(name, ready)
		p.name = name // for the log, also when the peer never said it
		return p, err
	})
}

// open opens the TCP connection to a node. On our own host the loopback comes
// first: a node that listens there only is not reached by the host's name.
func (n *Node) open(name etf.Atom) (net.Conn, error) {
	if n.cfg.EPMD == "" && n.cfg.PeerPort == 0 {
		return nil, fmt.Errorf("%w to ask for the port", ErrNoEPMD)
	}
	ctx, cancel := context.WithTimeout(n.ctx, n.cfg.Handshake)
	defer cancel()
	alive, host := splitName(name)
	hosts := []string{host}
	epmd := n.cfg.EPMD
	if _, own := splitName(n.cfg.Name); host == own {
		hosts = []string{"127.0.0.1", "::1", host}
	} else if epmd != "" {
		_, port, _ := net.SplitHostPort(epmd) // checked at Start
		epmd = net.JoinHostPort(host, port)
	}
	port := n.cfg.PeerPort
	if epmd != "" {
		var err error
		if port, err = lookUpPort(ctx, epmd, alive); err != nil {
			return nil, err
		}
	}
	var failed error
	for _, h := range hosts {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(h, fmt.Sprint(port)))
		if err == nil {
			return conn, nil
		}
		failed = err
	}
	return nil, failed
}
