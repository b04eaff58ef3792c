package node

import (
	"io"
	"net"
	"time"
)

// Waits between attempts to register anew after epmd went away.
const (
	reregisterMin = 250 * time.Millisecond
	reregisterMax = 5 * time.Second
)

// keepRegistered holds the connection that is our registration, and registers
// anew when epmd restarts. The creation stays the one of the first registration:
// pids handed out carry it. Returns when the node closes.
func (n *Node) keepRegistered(conn net.Conn, alive string, port uint16) {
	for {
		// epmd never writes after the answer: the read ends when epmd does,
		// or when the node closes the connection.
		stop := n.onClose(func() { conn.Close() })
		io.Copy(io.Discard, conn)
		stop()
		conn.Close()
		if n.ctx.Err() != nil {
			return
		}
		n.log.Warn("epmd went away, registering anew", "epmd", n.cfg.EPMD)
		if conn = n.reregister(alive, port); conn == nil {
			return
		}
		n.log.Info("registered with epmd again", "epmd", n.cfg.EPMD)
	}
}

// reregister tries until epmd accepts the name. Returns nil when the node closes.
func (n *Node) reregister(alive string, port uint16) net.Conn {
	var last string
	for wait := reregisterMin; ; wait = min(2*wait, reregisterMax) {
		timer := time.NewTimer(wait)
		select {
		case <-n.ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		conn, _, err := register(n.ctx, n.cfg.EPMD, alive, port, n.cfg.Handshake)
		if err == nil {
			return conn
		}
		if n.ctx.Err() == nil && err.Error() != last {
			last = err.Error()
			n.log.Warn("cannot register with epmd, trying again", "err", err)
		}
	}
}
