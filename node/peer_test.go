package node

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"testing"

	"scanode/etf"
)

// fakePeer is the other end of a link, spoken by hand.
type fakePeer struct {
	t    testing.TB
	conn net.Conn
	in   *bufio.Reader
	name etf.Atom
	node *Node
}

// dialAs connects to n as a node of that name and cookie.
func dialAs(t testing.TB, n *Node, name etf.Atom, cookie string) (*fakePeer, error) {
	t.Helper()
	conn, err := net.Dial("tcp", n.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	h := &handshake{conn: conn, in: bufio.NewReader(conn), name: name, flags: ourFlags, creation: 7, digest: newDigester(Cookie(cookie))}
	_, err = h.call(n.Name(), func(peer) error { return nil })
	return &fakePeer{t: t, conn: conn, in: h.in, name: name, node: n}, err
}

// dialFlags is dialAs of a node that announces other flags.
func dialFlags(t testing.TB, n *Node, name etf.Atom, announced flags) (*fakePeer, error) {
	t.Helper()
	conn, err := net.Dial("tcp", n.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	h := &handshake{conn: conn, in: bufio.NewReader(conn), name: name, flags: announced, creation: 7, digest: newDigester(Cookie(testCookie))}
	_, err = h.call(n.Name(), func(peer) error { return nil })
	return &fakePeer{t: t, conn: conn, in: h.in, name: name, node: n}, err
}

// linkAs is dialAs that must succeed.
func linkAs(t testing.TB, n *Node, name etf.Atom) *fakePeer {
	t.Helper()
	p, err := dialAs(t, n, name, testCookie)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *fakePeer) pid(id uint32) etf.Pid { return etf.Pid{Node: p.name, ID: id, Creation: 7} }
func (p *fakePeer) ref(id uint32) etf.Ref {
	return etf.Ref{Node: p.name, Creation: 7, Len: 3, ID: [5]uint32{id, 2, 3}}
}

// frame encodes a control term and perhaps a message.
func frame(control etf.Term, msg ...etf.Term) []byte {
	dst, start := passing.start(nil)
	dst = mustAppend(dst, control)
	for _, m := range msg {
		dst = mustAppend(append(dst, versionTag), m)
	}
	return frameEnd(dst, start, 0)
}

func (p *fakePeer) write(b []byte) {
	p.t.Helper()
	if _, err := p.conn.Write(b); err != nil {
		p.t.Errorf("write: %v", err)
	}
}

// send sends a signal.
func (p *fakePeer) send(control etf.Tuple, msg ...etf.Term) {
	p.t.Helper()
	p.write(frame(control, msg...))
}

// read reads a signal; a tick is nil.
func (p *fakePeer) read() (control etf.Tuple, msg etf.Term) {
	p.t.Helper()
	b, err := readFrame(p.in, 1<<30)
	if err != nil {
		p.t.Fatalf("read: %v", err)
	}
	if b == nil {
		return nil, nil
	}
	if b, err = cutFrame(b); err != nil {
		p.t.Fatal(err)
	}
	term, rest, err := etf.Decode(b, etf.DefaultLimits)
	if err != nil {
		p.t.Fatal(err)
	}
	if len(rest) > 0 {
		if msg, rest, err = etf.Decode(rest[1:], etf.DefaultLimits); err != nil || len(rest) > 0 {
			p.t.Fatalf("message: %v, %d bytes left", err, len(rest))
		}
	}
	return term.(etf.Tuple), msg
}

// want reads the next signal that is no tick, and compares.
func (p *fakePeer) want(control etf.Tuple, msg ...etf.Term) {
	p.t.Helper()
	got, body := p.read()
	for got == nil {
		got, body = p.read()
	}
	var want etf.Term
	if len(msg) > 0 {
		want = msg[0]
	}
	if g, w := fmt.Sprint(got, body), fmt.Sprint(control, want); g != w {
		p.t.Errorf("got %s\nwant %s", g, w)
	}
}

// ping asks what net_adm:ping asks and wants its answer. An answer means that
// everything sent before has been dealt with.
func (p *fakePeer) ping(id uint32) {
	p.t.Helper()
	tag := etf.Improper{Elems: etf.List{etf.Atom("alias")}, Tail: p.ref(id)}
	p.send(etf.Tuple{6, p.pid(1), etf.Atom(""), netKernel},
		etf.Tuple{etf.Atom("$gen_call"), etf.Tuple{p.pid(1), tag}, etf.Tuple{etf.Atom("is_auth"), p.name}})
	p.want(etf.Tuple{33, p.node.procs.first, p.ref(id)}, etf.Tuple{tag, etf.Atom("yes")})
}

// ended returns when the node has closed the connection.
func (p *fakePeer) ended() {
	io.Copy(io.Discard, p.in)
	p.conn.Close()
}

// raw is a frame of these bytes.
func raw(b ...byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
}

// passed is a pass-through frame of these bytes.
func passed(b ...byte) []byte { return raw(append([]byte{passThrough, versionTag}, b...)...) }

// nested is an encoded list within a list, and so on.
func nested(depth int) []byte {
	b := bytes.Repeat([]byte{etf.TagList, 0, 0, 0, 1}, depth)
	b = append(b, etf.TagNil)
	return append(b, bytes.Repeat([]byte{etf.TagNil}, depth)...)
}
