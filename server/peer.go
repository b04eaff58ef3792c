package server

import "scanode/etf"

// Peer is the BEAM at the other end of a transport, as much of it as the server
// needs. The port's connection and the node's links are Peers.
type Peer interface {
	// Node names the BEAM, for logs and error texts.
	Node() etf.Atom
	// Send delivers one term, without the 131, to a process. The term is head
	// followed by body; body may be nil. Send blocks while the transport is
	// full and fails once the BEAM is gone.
	Send(to etf.Pid, head, body []byte) error
	// SendAlias delivers a term to the process behind an alias.
	SendAlias(alias etf.Ref, head, body []byte) error
	// Monitor calls down once when pid dies or the BEAM is gone, possibly
	// before it returns. After stop it is not called any more.
	Monitor(pid etf.Pid, down func()) (stop func())
	// Done is closed when the BEAM is gone.
	Done() <-chan struct{}
}

// address is where a reply goes: to a process, or to an alias of it.
type address struct {
	pid   etf.Pid
	alias etf.Ref // of no words when there is none
}

func (a address) send(p Peer, head, body []byte) error {
	if a.alias.Len > 0 {
		return p.SendAlias(a.alias, head, body)
	}
	return p.Send(a.pid, head, body)
}
