package node

import "scanode/etf"

// kernelCall answers a message to net_kernel. The only one it knows is the
// question of a ping, the call {is_auth, Node}; without its answer yes,
// net_adm:ping says pang and tears the link down. Other calls, such as the ones
// that spawn on nodes of old, would wait for ever: their monitors are told
// noproc. Anything else is dropped.
func (l *Link) kernelCall(msg []byte) error {
	call, ok := parseCall(msg)
	if !ok {
		return nil
	}
	if !call.ping {
		return l.refuse(call.ref)
	}
	control := appendSend(nil, call.from)
	if call.alias {
		control = appendAliasSend(nil, l.node.procs.first, call.ref)
	}
	reply := append(etf.AppendTupleHeader(nil, 2), call.tag...)
	return l.out.signal(control, etf.AppendAtom(reply, "yes"))
}

// genCall is `{'$gen_call', {From, Tag}, Request}` as far as net_kernel needs it.
type genCall struct {
	from  etf.Pid
	tag   []byte  // encoded
	ref   etf.Ref // the one in the tag, which is also the caller's monitor
	alias bool    // the tag asks for an answer by alias
	ping  bool    // the request is {is_auth, Node}
}

// parseCall parses a call whose tag is Ref, [alias|Ref] or [[alias|Ref]|_].
func parseCall(b []byte) (call genCall, ok bool) {
	c := cursor{b: b}
	if !c.tuple(3) || c.atom() != "$gen_call" || !c.tuple(2) {
		return call, false
	}
	call.from = c.pid()
	tag := c.b
	c.skip()
	if c.err != nil {
		return call, false
	}
	call.tag = tag[:len(tag)-len(c.b)]
	if call.ref, call.alias, ok = parseTag(call.tag); !ok {
		return call, false
	}
	// {is_auth, Node}
	call.ping = c.tuple(2) && c.atom() == "is_auth" && c.atom() != "" && c.err == nil && len(c.b) == 0
	return call, true
}

func parseTag(tag []byte) (ref etf.Ref, alias, ok bool) {
	c := cursor{b: tag}
	for range 2 { // the lists a tag may be within
		if len(c.b) == 0 || c.b[0] != etf.TagList {
			break
		}
		if !c.list(1) {
			return ref, false, false
		}
		if len(c.b) > 0 && c.b[0] == etf.TagList {
			continue
		}
		if alias = c.atom() == "alias"; !alias {
			return ref, false, false
		}
		break
	}
	ref = c.ref()
	return ref, alias, c.err == nil
}

// tuple reads the header of a tuple and says whether it is of that arity.
func (c *cursor) tuple(arity int) bool {
	var n int
	if c.err == nil {
		n, c.b, c.err = etf.ReadTupleHeader(c.b)
	}
	return c.err == nil && n == arity
}

// list reads the header of a list and says whether it is of that length.
func (c *cursor) list(length int) bool {
	var n int
	if c.err == nil {
		n, c.b, c.err = etf.ReadListHeader(c.b)
	}
	return c.err == nil && n == length
}
