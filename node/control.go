package node

import (
	"errors"
	"fmt"

	"scanode/etf"
)

// Operations of control messages. The names are the ERTS manual's. TT forms
// carry a trace token and are taken as their plain form.
const (
	opLink               = 1
	opSend               = 2
	opExit               = 3
	opUnlink             = 4
	opNodeLink           = 5
	opRegSend            = 6
	opGroupLeader        = 7
	opExit2              = 8
	opSendTT             = 12
	opExitTT             = 13
	opRegSendTT          = 16
	opExit2TT            = 18
	opMonitorP           = 19
	opDemonitorP         = 20
	opMonitorPExit       = 21
	opSendSender         = 22
	opSendSenderTT       = 23
	opPayloadExit        = 24
	opPayloadExitTT      = 25
	opPayloadExit2       = 26
	opPayloadExit2TT     = 27
	opPayloadMonitorExit = 28
	opSpawnRequest       = 29
	opSpawnRequestTT     = 30
	opSpawnReply         = 31
	opSpawnReplyTT       = 32
	opAliasSend          = 33
	opAliasSendTT        = 34
	opUnlinkID           = 35
	opUnlinkIDAck        = 36
)

// proc is a process as a signal names it: by pid, or by name when name is not
// empty.
type proc struct {
	pid  etf.Pid
	name etf.Atom
}

// control is a parsed control message. Which fields are set depends on op.
type control struct {
	op   int64
	from etf.Pid
	to   proc
	ref  etf.Ref // of a monitor, a spawn request or an alias
	id   uint64  // of an unlink
	// msg is the encoded message without its version byte, aliasing the
	// frame; nil for operations that carry none. It is not checked: a term
	// that cannot be decoded is the receiver's to refuse.
	msg []byte
	// known is false for an operation this node does not know.
	known bool
}

// cursor reads the elements of a control tuple and remembers the first error.
type cursor struct {
	b   []byte
	err error
}

func (c *cursor) atom() (a etf.Atom) {
	if c.err == nil {
		var name []byte
		name, c.b, c.err = etf.ReadAtom(c.b)
		a = etf.Atom(name)
	}
	return a
}

func (c *cursor) pid() (p etf.Pid) {
	if c.err == nil {
		p, c.b, c.err = etf.ReadPid(c.b)
	}
	return p
}

func (c *cursor) ref() (r etf.Ref) {
	if c.err == nil {
		r, c.b, c.err = etf.ReadRef(c.b)
	}
	return r
}

func (c *cursor) uint64() (v uint64) {
	if c.err == nil {
		v, c.b, c.err = etf.ReadUint64(c.b)
	}
	return v
}

func (c *cursor) skip() {
	if c.err == nil {
		c.b, c.err = etf.Skip(c.b)
	}
}

// proc reads a pid or a registered name.
func (c *cursor) proc() (p proc) {
	if c.err != nil {
		return p
	}
	if len(c.b) > 0 && (c.b[0] == etf.TagPid || c.b[0] == etf.TagNewPid) {
		p.pid = c.pid()
		return p
	}
	if p.name = c.atom(); c.err == nil && p.name == "" {
		c.err = errors.New("an empty name")
	}
	return p
}

// shape says how many elements the tuple of an operation has and whether a
// message follows it.
func shape(op int64) (arity int, message bool) {
	switch op {
	case opNodeLink:
		return 1, false
	case opLink, opUnlink, opGroupLeader:
		return 3, false
	case opExit, opExit2, opMonitorP, opDemonitorP, opUnlinkID, opUnlinkIDAck:
		return 4, false
	case opExitTT, opExit2TT, opMonitorPExit, opSpawnReply:
		return 5, false
	case opSpawnReplyTT:
		return 6, false
	case opSend, opSendSender, opAliasSend, opPayloadExit, opPayloadExit2:
		return 3, true
	case opRegSend, opSendTT, opSendSenderTT, opAliasSendTT, opPayloadExitTT, opPayloadExit2TT, opPayloadMonitorExit:
		return 4, true
	case opRegSendTT:
		return 5, true
	case opSpawnRequest:
		return 6, true
	case opSpawnRequestTT:
		return 7, true
	}
	return 0, false
}

// parseControl parses what is behind the head of a frame, in the form agreed on
// with the peer. Only what the node acts on is
// read: the reason of an exit may be any term, also one nested deeper than
// etf.Skip follows, and must not cost the link.
func parseControl(b []byte, f form) (m control, err error) {
	arity, rest, err := etf.ReadTupleHeader(b)
	if err != nil {
		return m, fmt.Errorf("a control message: %w", err)
	}
	if arity == 0 {
		return m, errors.New("a control message without an operation")
	}
	if m.op, rest, err = etf.ReadInt64(rest); err != nil {
		return m, fmt.Errorf("a control message: %w", err)
	}
	want, message := shape(m.op)
	if want == 0 {
		if _, err := etf.Skip(b); err != nil {
			return m, fmt.Errorf("control message %d: %w", m.op, err)
		}
		return m, nil
	}
	if m.known = true; arity != want {
		return m, fmt.Errorf("control message %d with %d elements", m.op, arity)
	}
	c := cursor{b: rest}
	whole := m.elements(&c)
	switch {
	case c.err != nil:
		return m, fmt.Errorf("control message %d: %w", m.op, c.err)
	case !whole:
		return m, nil
	case !message && len(c.b) > 0:
		return m, fmt.Errorf("control message %d with %d bytes behind it", m.op, len(c.b))
	case !message:
		return m, nil
	}
	if m.msg, whole = f.message(c.b); !whole {
		return m, fmt.Errorf("control message %d without its message", m.op)
	}
	return m, nil
}

// elements reads the elements behind the operation. It returns false when it
// left some unread.
func (m *control) elements(c *cursor) (whole bool) {
	switch m.op {
	case opNodeLink:
	case opLink, opUnlink, opGroupLeader:
		m.from, m.to.pid = c.pid(), c.pid()
	case opExit, opExit2, opExitTT, opExit2TT, opPayloadExit, opPayloadExit2, opPayloadExitTT, opPayloadExit2TT:
		m.from, m.to = c.pid(), c.proc()
		return false
	case opUnlinkID, opUnlinkIDAck:
		m.id, m.from, m.to.pid = c.uint64(), c.pid(), c.pid()
	case opMonitorP, opDemonitorP:
		m.from, m.to, m.ref = c.pid(), c.proc(), c.ref()
	case opMonitorPExit, opPayloadMonitorExit:
		c.proc()
		m.to.pid, m.ref = c.pid(), c.ref()
		return false
	case opSend, opSendTT:
		c.skip()
		m.to.pid = c.pid()
	case opSendSender, opSendSenderTT:
		m.from, m.to.pid = c.pid(), c.pid()
	case opRegSend, opRegSendTT:
		m.from = c.pid()
		c.skip()
		m.to.name = c.atom()
	case opAliasSend, opAliasSendTT:
		m.from, m.ref = c.pid(), c.ref()
	case opSpawnRequest, opSpawnRequestTT:
		m.ref, m.from = c.ref(), c.pid()
		return false
	case opSpawnReply, opSpawnReplyTT:
		return false
	}
	switch m.op {
	case opSendTT, opSendSenderTT, opRegSendTT, opAliasSendTT:
		c.skip() // the trace token
	}
	return true
}

// What follows appends control terms. The writer makes frames of them.

func appendOp(dst []byte, arity int, op int64) []byte {
	return etf.AppendInt64(etf.AppendTupleHeader(dst, arity), op)
}

func appendProc(dst []byte, p proc) []byte {
	if p.name != "" {
		return etf.AppendAtom(dst, p.name)
	}
	return etf.AppendPid(dst, p.pid)
}

func appendMonitorP(dst []byte, from, to etf.Pid, ref etf.Ref) []byte {
	dst = etf.AppendPid(appendOp(dst, 4, opMonitorP), from)
	return etf.AppendRef(etf.AppendPid(dst, to), ref)
}

func appendDemonitorP(dst []byte, from, to etf.Pid, ref etf.Ref) []byte {
	dst = etf.AppendPid(appendOp(dst, 4, opDemonitorP), from)
	return etf.AppendRef(etf.AppendPid(dst, to), ref)
}

// appendMonitorPExit tells the watcher to that from is gone. The process is
// named as the watcher named it.
func appendMonitorPExit(dst []byte, from proc, to etf.Pid, ref etf.Ref, reason etf.Atom) []byte {
	dst = appendProc(appendOp(dst, 5, opMonitorPExit), from)
	dst = etf.AppendRef(etf.AppendPid(dst, to), ref)
	return etf.AppendAtom(dst, reason)
}

func appendExit(dst []byte, from, to etf.Pid, reason etf.Atom) []byte {
	dst = etf.AppendPid(appendOp(dst, 4, opExit), from)
	return etf.AppendAtom(etf.AppendPid(dst, to), reason)
}

func appendUnlinkIDAck(dst []byte, id uint64, from, to etf.Pid) []byte {
	dst = etf.AppendUint64(appendOp(dst, 4, opUnlinkIDAck), id)
	return etf.AppendPid(etf.AppendPid(dst, from), to)
}

func appendSpawnReply(dst []byte, req etf.Ref, to etf.Pid, reason etf.Atom) []byte {
	dst = etf.AppendPid(etf.AppendRef(appendOp(dst, 5, opSpawnReply), req), to)
	return etf.AppendAtom(etf.AppendInt64(dst, 0), reason)
}

// appendSend appends the control term of a message to a pid.
func appendSend(dst []byte, to etf.Pid) []byte {
	// The second element once held a cookie; its place is kept.
	return etf.AppendPid(etf.AppendAtom(appendOp(dst, 3, opSend), ""), to)
}

// appendAliasSend appends the control term of a message to an alias.
func appendAliasSend(dst []byte, from etf.Pid, alias etf.Ref) []byte {
	return etf.AppendRef(etf.AppendPid(appendOp(dst, 3, opAliasSend), from), alias)
}
