package node

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"scanode/etf"
)

// farewellTimeout bounds what Close spends on telling one peer.
const farewellTimeout = 2 * time.Second

// Node is a hidden node of a cluster.
type Node struct {
	cfg      Config // without the cookie
	log      *slog.Logger
	digest   digester
	listener net.Listener
	creation uint32
	procs    processes
	refs     atomic.Uint64
	stranger atomic.Int64 // the second of the last warning about one

	ctx    context.Context // done when the node closes
	cancel context.CancelFunc
	wg     sync.WaitGroup // every goroutine of the node
	slots  chan struct{}  // a token for each handshake under way on accepted connections
	closed sync.Once

	mu      sync.Mutex
	closing bool
	links   map[etf.Atom]*Link
	dials   map[etf.Atom]*dial
	changed chan struct{} // closed and replaced when a link is added
}

// Start makes a node: it listens, registers with epmd where there is one, and
// accepts links until Close is called or ctx is done. The error may be
// ErrNameTaken or ErrNoEPMD.
func Start(ctx context.Context, cfg Config) (*Node, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if cfg.TLS != nil {
		creds, err := cfg.TLS()
		if err == nil {
			err = creds.check()
		}
		if err != nil {
			return nil, err
		}
	}
	listener, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("node: %w", err)
	}
	n := &Node{
		log:      cfg.Logger.With("node", string(cfg.Name)),
		digest:   newDigester(cfg.Cookie),
		listener: listener,
		slots:    make(chan struct{}, maxHalfOpen),
		links:    map[etf.Atom]*Link{},
		dials:    map[etf.Atom]*dial{},
		changed:  make(chan struct{}),
	}
	cfg.Cookie = nil
	n.cfg = cfg
	// Not a child of ctx: the farewells of Close come first.
	n.ctx, n.cancel = context.WithCancel(context.WithoutCancel(ctx))
	port := uint16(listener.Addr().(*net.TCPAddr).Port)
	alive, _ := splitName(cfg.Name)
	var epmd net.Conn
	if cfg.EPMD != "" {
		epmd, n.creation, err = register(ctx, cfg.EPMD, alive, port, cfg.Handshake)
	} else {
		n.creation, err = randomCreation()
	}
	if err != nil {
		n.cancel()
		listener.Close()
		return nil, err
	}
	n.procs = newProcesses(cfg.Name, n.creation, cfg.Processes)
	if epmd != nil {
		n.wg.Go(func() { n.keepRegistered(epmd, alive, port) })
	}
	n.wg.Go(n.accept)
	stop := context.AfterFunc(ctx, func() { n.Close() })
	context.AfterFunc(n.ctx, func() { stop() })
	n.log.Info("node up", "addr", listener.Addr(), "epmd", cfg.EPMD, "tls", cfg.TLS != nil)
	return n, nil
}

// randomCreation makes a creation where there is no epmd to give one. 0 to 3
// have meanings of old.
func randomCreation() (uint32, error) {
	var b [4]byte
	if _, err := rand.Read(b[:]); err != nil {
		return 0, fmt.Errorf("node: %w", err)
	}
	return max(binary.BigEndian.Uint32(b[:]), 4), nil
}

// Addr returns the address the node listens on.
func (n *Node) Addr() net.Addr { return n.listener.Addr() }

// Name returns the full name of the node.
func (n *Node) Name() etf.Atom { return n.cfg.Name }

// String returns the full name of the node.
func (n *Node) String() string { return string(n.cfg.Name) }

// Links returns the links there are, in no order. One that is only coming up
// may be among them.
func (n *Node) Links() []*Link {
	n.mu.Lock()
	defer n.mu.Unlock()
	links := make([]*Link, 0, len(n.links))
	for _, l := range n.links {
		links = append(links, l)
	}
	return links
}

// Close tells the processes that monitor or are linked to ones of this node that
// those are gone (shutdown), ends every link and the registration, and returns
// when all Down calls have. Always nil. It must not be called by a method of the
// Handler.
func (n *Node) Close() error {
	n.closed.Do(func() {
		n.mu.Lock()
		n.closing = true
		links := make([]*Link, 0, len(n.links))
		for _, l := range n.links {
			links = append(links, l)
		}
		n.mu.Unlock()
		n.listener.Close()
		var farewells sync.WaitGroup
		for _, l := range links {
			farewells.Go(l.shutdown)
		}
		farewells.Wait()
		n.cancel()
	})
	n.wg.Wait()
	return nil
}

// shutdown says farewell to the peer and ends the link. It waits for the peer to
// close in turn: closing with bytes unread would reset the connection and could
// take the farewell from the peer's hands.
func (l *Link) shutdown() {
	defer l.end(ErrClosed)
	timer := time.AfterFunc(farewellTimeout, func() { l.end(ErrClosed) })
	defer timer.Stop()
	l.leaving.Store(true)
	if told, err := l.farewell(); !told || err != nil || l.out.flush() != nil {
		return
	}
	if half, ok := l.conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		<-l.done
	}
}

// newRef makes a reference unique to this node. The first word has 18 bits for
// the sake of OTP 23.
func (n *Node) newRef() etf.Ref {
	c := n.refs.Add(1)
	return etf.Ref{
		Node: n.cfg.Name, Creation: n.creation, Len: 3,
		ID: [5]uint32{uint32(c & (1<<18 - 1)), uint32(c >> 18), uint32(c >> 50)},
	}
}

var errNotDown = errors.New("the link it replaces is not down yet")

// install makes l the link to its peer. A link there is to the same name ends
// first, and its Down returns, within ctx.
func (n *Node) install(ctx context.Context, l *Link) error {
	for {
		n.mu.Lock()
		if n.closing || n.ctx.Err() != nil {
			n.mu.Unlock()
			return ErrClosed
		}
		old := n.links[l.peer.name]
		if old == nil {
			n.links[l.peer.name] = l
			close(n.changed)
			n.changed = make(chan struct{})
			n.mu.Unlock()
			return nil
		}
		n.mu.Unlock()
		old.end(ErrReplaced)
		select {
		case <-old.gone:
		case <-ctx.Done():
			return errNotDown
		}
	}
}

func (n *Node) remove(l *Link) {
	n.mu.Lock()
	if n.links[l.peer.name] == l {
		delete(n.links, l.peer.name)
	}
	n.mu.Unlock()
}
