package server

import (
	"errors"
	"fmt"

	"scanode/etf"
)

// call is one gen_server call: who asked, and the tag that the answer carries.
type call struct {
	link *Link
	to   address
	tag  []byte // encoded, copied into the reply unread
	args []byte // the request after its name: the elements of its tuple
	n    int    // how many elements there are
}

var errFrom = errors.New("the caller must be {Pid, Tag}")

// readFrom reads {Pid, Tag}, both such that a BEAM accepts them when they come
// back: a message it refuses would cost its whole link. The tag [alias|Ref], alone or as the head of a
// list, makes the alias the address, as gen:reply does it.
func readFrom(b []byte) (to address, tag, rest []byte, err error) {
	if _, err := etf.Check(b); err != nil {
		return to, nil, nil, err
	}
	n, b, err := etf.ReadTupleHeader(b)
	if err != nil || n != 2 {
		return to, nil, nil, errFrom
	}
	if to.pid, b, err = etf.ReadPid(b); err != nil {
		return to, nil, nil, errFrom
	}
	if rest, err = etf.Skip(b); err != nil {
		return to, nil, nil, err
	}
	tag = b[:len(b)-len(rest)]
	if alias, _, err := readAlias(tag); err == nil {
		to.alias = alias
	} else if n, elems, err := etf.ReadListHeader(tag); err == nil && n > 0 {
		if alias, _, err := readAlias(elems); err == nil {
			to.alias = alias
		}
	}
	return to, tag, rest, nil
}

// readAlias reads [alias|Ref].
func readAlias(b []byte) (etf.Ref, []byte, error) {
	n, b, err := etf.ReadListHeader(b)
	if err != nil || n != 1 {
		return etf.Ref{}, nil, errFrom
	}
	name, b, err := etf.ReadAtom(b)
	if err != nil || string(name) != "alias" {
		return etf.Ref{}, nil, errFrom
	}
	return etf.ReadRef(b)
}

// begin starts the reply {Tag, …} with room for n more bytes.
func (c *call) begin(n int) []byte {
	dst := make([]byte, 0, 2+len(c.tag)+n)
	return append(etf.AppendTupleHeader(dst, 2), c.tag...)
}

// send sends a finished reply. If that one cannot be sent, because it is larger
// than the transport's frames, the caller hears so.
func (c *call) send(reply []byte) {
	var r *reason
	if err := c.link.deliver(c.to, reply, nil); errors.As(err, &r) {
		short := etf.AppendAtom(etf.AppendTupleHeader(c.begin(64), 2), "error")
		_ = c.link.deliver(c.to, r.append(short), nil)
	}
}

func (c *call) ok() { c.send(etf.AppendAtom(c.begin(8), "ok")) }

// okTerm replies {ok, T}.
func (c *call) okTerm(t etf.Term) {
	reply := etf.AppendAtom(etf.AppendTupleHeader(c.begin(64), 2), "ok")
	reply, err := etf.AppendTerm(reply, t)
	if err != nil {
		c.fail(reasonf(tagInternal, "reply: %v", err))
		return
	}
	c.send(reply)
}

// fail replies {error, Reason}.
func (c *call) fail(err error) {
	reply := etf.AppendAtom(etf.AppendTupleHeader(c.begin(64), 2), "error")
	c.send(reasonOf(err).append(reply))
}

// failWrite replies {error, closed} or {error, {Outcome, Reason}}.
func (c *call) failWrite(err error) {
	r := reasonOf(err)
	if r.tag == tagClosed {
		c.fail(r)
		return
	}
	reply := etf.AppendAtom(etf.AppendTupleHeader(c.begin(64), 2), "error")
	reply = etf.AppendAtom(etf.AppendTupleHeader(reply, 2), etf.Atom(outcomeOf(err)))
	c.send(r.append(reply))
}

// arg reads the next argument and leaves the others in c.args.
func (c *call) arg() []byte {
	rest, err := etf.Skip(c.args)
	if err != nil {
		panic(fmt.Sprintf("argument of a message that was well-formed: %v", err))
	}
	arg := c.args[:len(c.args)-len(rest)]
	c.args = rest
	return arg
}
