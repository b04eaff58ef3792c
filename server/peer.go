package server

import (
	"errors"

	"scanode/etf"
)

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

// errPeerGone says that nobody is there to be told any more.
var errPeerGone = errors.New("the peer is gone")

// deliver sends a message. The error is errPeerGone, or a reason if only this
// message cannot be sent: it is larger than the transport's frames, say.
func (l *Link) deliver(to address, head, body []byte) error {
	var err error
	if to.alias.Len > 0 {
		err = l.peer.SendAlias(to.alias, head, body)
	} else {
		err = l.peer.Send(to.pid, head, body)
	}
	if err == nil {
		return nil
	}
	select {
	case <-l.peer.Done():
		return errPeerGone
	default:
		return reasonf(tagIO, "a message of %d bytes cannot be sent: %v", len(head)+len(body), err)
	}
}
