package node

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"scanode/etf"
)

// TestHostileFrames sends what no BEAM sends. Each costs its link, with a word
// about why, and nothing else.
func TestHostileFrames(t *testing.T) {
	t.Parallel()
	n, r, _ := startNode(t, "", nil)
	pid := etf.AppendPid(nil, etf.Pid{Node: "x@h", ID: 1})
	tuple := func(arity int, op byte, parts ...[]byte) []byte {
		b := []byte{etf.TagSmallTuple, byte(arity), etf.TagSmallInteger, op}
		return passed(append(b, bytes.Join(parts, nil)...)...)
	}
	for what, frame := range map[string][]byte{
		"two bytes":            {0, 0, 0, 2, 131, 68},
		"a frame of 1":         raw(passThrough),
		"a header, atoms":      raw(131, 68, 1, 104, 1, 97, 5),
		"a fragment":           raw(131, 69, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0),
		"no version":           raw(passThrough, 104, 1, 97, 5),
		"another first byte":   raw(0, 0, 0, 0),
		"no tuple":             passed(etf.TagNil),
		"an empty tuple":       passed(etf.TagSmallTuple, 0),
		"a huge tuple":         passed(etf.TagLargeTuple, 0xff, 0xff, 0xff, 0xff, etf.TagSmallInteger, 2),
		"no operation":         passed(etf.TagSmallTuple, 1, etf.TagNil),
		"unknown, broken":      tuple(2, 99),
		"unknown, deep":        tuple(2, 99, nested(100_000)),
		"too few elements":     tuple(2, opSend, pid),
		"no pid":               tuple(3, opSend, []byte{etf.TagNil, etf.TagNil}),
		"no message":           tuple(3, opSend, []byte{etf.TagNil}, pid),
		"an empty message":     tuple(3, opSend, []byte{etf.TagNil}, pid, []byte{131}),
		"message, no version":  tuple(3, opSend, []byte{etf.TagNil}, pid, []byte{106, 106}),
		"bytes behind":         tuple(3, opLink, pid, pid, []byte{131, 106}),
		"a monitor of nothing": tuple(4, opMonitorP, pid, etf.AppendAtom(nil, ""), etf.AppendRef(nil, etf.Ref{Node: "x@h", Len: 3})),
		"a huge reference":     tuple(4, opMonitorP, pid, pid, []byte{etf.TagNewerReference, 0xff, 0xff}),
		"a negative unlink":    tuple(4, opUnlinkID, etf.AppendInt64(nil, -1), pid, pid),
	} {
		p := linkAs(t, n, "peer@h")
		r.next(t, "up")
		p.write(frame)
		p.ended()
		if e := r.next(t, "down"); e.err == nil || strings.Contains(fmt.Sprint(e.err), "panic") || errors.Is(e.err, ErrPeerClosed) {
			t.Errorf("%s: down with %v", what, e.err)
		}
	}
	p := linkAs(t, n, "peer@h")
	r.next(t, "up")
	p.write([]byte{0x04, 0, 0, 1, passThrough})
	p.ended()
	if e := r.next(t, "down"); !errors.Is(e.err, errFrameTooLong) {
		t.Errorf("64 MiB and a byte: down with %v", e.err)
	}
}

// TestOddFrames sends what is odd but lawful; the link must bear it.
func TestOddFrames(t *testing.T) {
	t.Parallel()
	n, r, lines := startNode(t, "", nil)
	p := linkAs(t, n, "peer@h")
	r.next(t, "up")
	ours, theirs, none := n.procs.pids["scanode"], p.pid(5), etf.Atom("")
	deep := passed(append(append([]byte{etf.TagSmallTuple, 4, etf.TagSmallInteger, opExit},
		etf.AppendPid(etf.AppendPid(nil, theirs), ours)...), nested(1000)...)...)
	p.write(deep) // an innocent process may die of any reason
	p.send(etf.Tuple{99, etf.Atom("new")})
	p.send(etf.Tuple{99, etf.Atom("new")}, etf.Atom("message"))
	p.send(etf.Tuple{opNodeLink})
	p.send(etf.Tuple{opGroupLeader, theirs, ours})
	p.send(etf.Tuple{opExit2TT, theirs, ours, etf.Tuple{}, etf.Atom("kill")})
	p.send(etf.Tuple{opPayloadExit2, theirs, ours}, etf.Atom("kill"))
	p.send(etf.Tuple{opPayloadMonitorExit, ours, theirs, n.newRef()}, etf.Atom("gone"))
	p.send(etf.Tuple{opMonitorPExit, ours, theirs, n.newRef(), etf.Atom("gone")})
	p.send(etf.Tuple{opUnlinkIDAck, 1, theirs, ours})
	p.send(etf.Tuple{opAliasSend, theirs, n.newRef()}, etf.Atom("lost"))
	p.send(etf.Tuple{opSpawnReply, p.ref(1), ours, 0, theirs})
	p.send(etf.Tuple{opSend, none, etf.Pid{Node: n.Name(), ID: 99}}, etf.Atom("lost"))
	p.send(etf.Tuple{opRegSend, theirs, none, none}, etf.Atom("lost"))
	p.ping(1)
	if got := strings.Count(lines.all(), "unknown control message"); got != 1 {
		t.Errorf("%d lines about unknown control messages", got)
	}
	p.send(etf.Tuple{opSendSender, theirs, ours}, etf.Atom("a"))
	p.send(etf.Tuple{opSendTT, none, ours, etf.Tuple{1, 2}}, etf.Atom("b"))
	p.send(etf.Tuple{opSendSenderTT, theirs, ours, etf.Atom("t")}, etf.Atom("c"))
	p.send(etf.Tuple{opRegSendTT, theirs, none, etf.Atom("scanode"), etf.Atom("t")}, etf.Atom("d"))
	r.wantMessage(t, etf.Atom("a"), etf.Atom("b"), etf.Atom("c"), etf.Atom("d"))
	p.write(passed(append([]byte{etf.TagSmallTuple, 3, etf.TagSmallInteger, opSend, etf.TagNil},
		append(etf.AppendPid(nil, ours), 131, etf.TagList, 0xff, 0xff, 0xff, 0xff)...)...))
	if e := r.next(t, "message"); e.err == nil {
		t.Error("a broken message reached the handler whole")
	}
	p.send(etf.Tuple{opSpawnRequest, p.ref(2), theirs, theirs, etf.Tuple{none, none, 0}, etf.List{}}, etf.List{})
	p.want(etf.Tuple{opSpawnReply, p.ref(2), theirs, 0, etf.Atom("notsup")})
	p.send(etf.Tuple{opUnlinkID, 1 << 40, theirs, ours})
	p.want(etf.Tuple{opUnlinkIDAck, 1 << 40, ours, theirs})
	p.send(etf.Tuple{opLink, theirs, etf.Pid{Node: n.Name(), ID: 99}})
	p.want(etf.Tuple{opExit, etf.Pid{Node: n.Name(), ID: 99}, theirs, etf.Atom("noproc")})
	for _, to := range []etf.Term{etf.Atom("nobody"), etf.Pid{Node: n.Name(), ID: 99}} {
		p.send(etf.Tuple{opMonitorP, theirs, to, p.ref(3)})
		p.want(etf.Tuple{opMonitorPExit, to, theirs, p.ref(3), etf.Atom("noproc")})
	}
	// The ping of a release without aliases, and a call nobody answers.
	call := func(tag, request etf.Term) {
		p.send(etf.Tuple{opMonitorP, theirs, netKernel, p.ref(4)})
		p.send(etf.Tuple{opRegSend, theirs, none, netKernel},
			etf.Tuple{etf.Atom("$gen_call"), etf.Tuple{theirs, tag}, request})
	}
	call(p.ref(4), etf.Tuple{etf.Atom("is_auth"), p.name})
	p.want(etf.Tuple{opSend, none, theirs}, etf.Tuple{p.ref(4), etf.Atom("yes")})
	alias := etf.Improper{Elems: etf.List{etf.Atom("alias")}, Tail: p.ref(4)}
	for _, tag := range []etf.Term{p.ref(4), alias, etf.Improper{Elems: etf.List{alias}, Tail: etf.Atom("label")}} {
		call(tag, etf.Tuple{etf.Atom("spawn"), etf.Atom("m")})
		p.want(etf.Tuple{opMonitorPExit, netKernel, theirs, p.ref(4), etf.Atom("noproc")})
	}
	for _, junk := range []etf.Term{etf.Atom("x"), etf.Tuple{}, etf.Tuple{etf.Atom("$gen_call"), 1, 2},
		etf.Tuple{etf.Atom("$gen_call"), etf.Tuple{theirs, etf.List{etf.List{etf.List{}}}}, 2}} {
		p.send(etf.Tuple{opRegSend, theirs, none, netKernel}, junk)
	}
	p.ping(5)
}

// TestTickAnswered expects an answer to a tick on an idle link.
func TestTickAnswered(t *testing.T) {
	t.Parallel()
	n, _, _ := startNode(t, "", nil)
	p := linkAs(t, n, "peer@h")
	// One of them arrives more than the gap after the last frame left.
	go func() {
		ticker := time.NewTicker(tickAnswerGap)
		defer ticker.Stop()
		for range ticker.C {
			if _, err := p.conn.Write(raw()); err != nil {
				return
			}
		}
	}()
	if control, _ := p.read(); control != nil {
		t.Errorf("got %v", control)
	}
	p.conn.Close()
}

// TestReplaced connects twice under one name: the first link is down before the
// second is up. Somebody without the cookie replaces nothing.
func TestReplaced(t *testing.T) {
	t.Parallel()
	n, r, _ := startNode(t, "", nil)
	first := linkAs(t, n, "peer@h")
	r.next(t, "up")
	if _, err := dialAs(t, n, "peer@h", "wrong"); !errors.Is(err, ErrWrongCookie) {
		t.Errorf("with a wrong cookie: %v", err)
	}
	if _, err := dialAs(t, n, n.Name(), testCookie); !errors.Is(err, ErrNotAllowed) {
		t.Errorf("under the node's own name: %v", err)
	}
	first.ping(1)
	second := linkAs(t, n, "peer@h")
	if e := r.next(t, "down"); !errors.Is(e.err, ErrReplaced) {
		t.Errorf("down with %v", e.err)
	}
	r.next(t, "up")
	first.ended()
	second.ping(2)
	if links := n.Links(); len(links) != 1 {
		t.Errorf("%d links", len(links))
	}
	var churn sync.WaitGroup
	for range 8 {
		churn.Go(func() {
			for range 10 {
				// Any of them may lose the name to another at any time.
				dialAs(t, n, "peer@h", testCookie)
			}
		})
	}
	churn.Wait()
	last := linkAs(t, n, "peer@h")
	last.ping(3)
	n.Close()
	for up := 1; len(r.events) > 0; {
		if e := <-r.events; e.what == "up" {
			up++
		} else {
			up--
		}
		if up < 0 || up > 1 {
			t.Fatalf("%d links of one name at once", up)
		}
	}
}

// TestOldHandshake calls as OTP 23 does without epmd.
func TestOldHandshake(t *testing.T) {
	t.Parallel()
	n, _, _ := startNode(t, "", nil)
	conn, err := net.Dial("tcp", n.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	h := &handshake{conn: conn, in: bufio.NewReader(conn), flags: ourFlags, digest: newDigester(Cookie(testCookie))}
	name := binary.BigEndian.AppendUint16([]byte{'n'}, 5)
	name = append(binary.BigEndian.AppendUint32(name, uint32(ourFlags&0xffffffff)), "old@h"...)
	h.write(name)
	if b, err := h.read(); string(b) != "sok" {
		t.Fatalf("status %q, %v", b, err)
	}
	b, err := h.read()
	if err != nil {
		t.Fatal(err)
	}
	_, challenge, err := parseChallenge(b)
	if err != nil {
		t.Fatal(err)
	}
	complement := binary.BigEndian.AppendUint32([]byte{'c'}, uint32(ourFlags>>32))
	h.write(binary.BigEndian.AppendUint32(complement, 7))
	h.write(appendReply(nil, 42, h.digest(challenge)))
	b, err = h.read()
	if err != nil {
		t.Fatal(err)
	}
	if d, err := parseAck(b); err != nil || !d.equal(h.digest(42)) {
		t.Errorf("acknowledgement: %v", err)
	}
	p := &fakePeer{t: t, conn: conn, in: h.in, name: "old@h", node: n}
	p.ping(1) // by alias: the upper flags were understood
}

// TestBadHandshakes throws bytes at the port. None may stay behind.
func TestBadHandshakes(t *testing.T) {
	n, r, _ := startNode(t, "", func(c *Config) { c.Handshake = 200 * time.Millisecond })
	seed := uint64(os.Getpid())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	message := func(b []byte) []byte {
		return append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...)
	}
	name := appendName(nil, "peer@h", ourFlags, 1)
	noise := func(size int) []byte {
		b := make([]byte, size)
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		return b
	}
	for range 300 {
		conn, err := net.Dial("tcp", n.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		switch rnd.IntN(6) {
		case 0:
			conn.Write(noise(rnd.IntN(100)))
		case 1:
			conn.Write(message(noise(1 + rnd.IntN(100))))
		case 2:
			b := bytes.Clone(name)
			b[rnd.IntN(len(b))] ^= byte(1 << rnd.IntN(8))
			conn.Write(message(b))
		case 3:
			conn.Write(message(name[:1+rnd.IntN(len(name)-1)]))
		case 4:
			conn.Write(append(message(name), message(noise(21))...))
		case 5:
			conn.Write(append(message(name), message(appendReply(nil, 1, digest{}))...))
		}
		if rnd.IntN(2) == 0 {
			conn.(*net.TCPConn).CloseWrite()
			io.Copy(io.Discard, conn)
		}
		conn.Close()
	}
	linkAs(t, n, "peer@h").ping(1)
	n.Close()
	awaitNoGoroutines(t)
	r.next(t, "up")
	r.next(t, "down")
	if len(r.events) > 0 {
		t.Error("the handler heard of more than one link")
	}
}

// TestHalfOpen occupies every handshake there may be; a peer with a name and a
// cookie gets through when they run out of time.
func TestHalfOpen(t *testing.T) {
	t.Parallel()
	n, _, _ := startNode(t, "", func(c *Config) { c.Handshake = 300 * time.Millisecond })
	for range 2 * maxHalfOpen {
		conn, err := net.Dial("tcp", n.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	linkAs(t, n, "peer@h").ping(1)
}

// TestPeerDoesNotRead fills the connection: Send blocks, then the link ends, for
// every sender and with one reason.
func TestPeerDoesNotRead(t *testing.T) {
	t.Parallel()
	n, r, _ := startNode(t, "", func(c *Config) { c.WriteTimeout = 100 * time.Millisecond })
	p := linkAs(t, n, "peer@h")
	l := r.next(t, "up").link
	body := make([]byte, 8<<20)
	head := etf.AppendBinaryHeader(nil, len(body))
	var senders sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		senders.Go(func() {
			for errs[i] == nil {
				errs[i] = l.Send(p.pid(1), head, body)
			}
		})
	}
	senders.Wait()
	e := r.next(t, "down")
	if !errors.Is(e.err, os.ErrDeadlineExceeded) {
		t.Errorf("down with %v", e.err)
	}
	for _, err := range errs {
		if err != e.err {
			t.Errorf("a sender got %v", err)
		}
	}
}

// TestRemembersNoMore lets a peer make more monitors than one may.
func TestRemembersNoMore(t *testing.T) {
	t.Parallel()
	n, r, _ := startNode(t, "", nil)
	p := linkAs(t, n, "peer@h")
	l := r.next(t, "up").link
	l.mu.Lock()
	for i := range uint32(maxRemembered) {
		l.pairs[pair{theirs: etf.Pid{ID: i}}] = struct{}{}
	}
	l.mu.Unlock()
	p.send(etf.Tuple{opMonitorP, p.pid(1), etf.Atom("scanode"), p.ref(1)})
	p.ended()
	if e := r.next(t, "down"); !errors.Is(e.err, errTooManyMonitors) {
		t.Errorf("down with %v", e.err)
	}
}

// TestFramesStayWhole lets many senders write at once, sizes on both sides of
// every buffer, while signals go in between: every frame arrives whole, and those
// of one sender in order.
func TestFramesStayWhole(t *testing.T) {
	t.Parallel()
	n, r, _ := startNode(t, "", nil)
	p := linkAs(t, n, "peer@h")
	l := r.next(t, "up").link
	sizes := []int{0, 1, 4095, 4096, 64<<10 - 1, 64 << 10, 70_000, writeChunkBytes - 1, writeChunkBytes + 1, 3*writeChunkBytes + 17}
	const senders = 4
	var all sync.WaitGroup
	for s := range senders {
		all.Go(func() {
			for i, size := range sizes {
				head := etf.AppendTupleHeader(nil, 3)
				head = etf.AppendInt64(etf.AppendInt64(head, int64(s)), int64(i))
				head = etf.AppendBinaryHeader(head, size)
				if err := l.Send(p.pid(1), head, bytes.Repeat([]byte{byte(s + 1)}, size)); err != nil {
					t.Error(err)
				}
				l.Monitor(p.pid(9), func() {})()
			}
		})
	}
	var next [senders]int
	for signals, messages := 0, 0; messages < senders*len(sizes) || signals < 2*senders*len(sizes); {
		control, msg := p.read()
		switch {
		case control == nil:
		case msg == nil:
			signals++
		default:
			messages++
			m := msg.(etf.Tuple)
			s, i, body := m[0].(int64), int(m[1].(int64)), m[2].([]byte)
			if i != next[s] || len(body) != sizes[i] || len(bytes.Trim(body, string([]byte{byte(s + 1)}))) != 0 {
				t.Fatalf("sender %d: message %d of %d bytes, expected %d", s, i, len(body), next[s])
			}
			next[s]++
		}
	}
	all.Wait()
	if err := l.Send(p.pid(1), make([]byte, 64<<20), nil); !errors.Is(err, ErrTooLong) {
		t.Errorf("a message of 64 MiB: %v", err)
	}
	p.ping(1)
}
