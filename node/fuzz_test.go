package node

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"testing"

	"scanode/etf"
)

// FuzzFrame: readFrame cuts a stream as a reader that has it all at hand would,
// stops where that one would, and gives every frame memory of its own.
func FuzzFrame(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 3, 112, 131, 106, 0, 0, 0, 1}, uint16(100))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1, 2}, uint16(65535))
	f.Fuzz(func(t *testing.T, stream []byte, max uint16) {
		r := bytes.NewReader(stream)
		var frames [][]byte
		for rest := stream; ; {
			frame, err := readFrame(r, int(max))
			if len(rest) < 4 {
				if err == nil {
					t.Fatal("a frame out of nothing")
				}
				if wantEOF := len(rest) == 0; (err == io.EOF) != wantEOF {
					t.Fatalf("%d bytes left: %v", len(rest), err)
				}
				break
			}
			n := uint64(binary.BigEndian.Uint32(rest))
			rest = rest[4:]
			if n > uint64(max) {
				if !errors.Is(err, errFrameTooLong) {
					t.Fatalf("%d bytes: %v", n, err)
				}
				break
			}
			if n > uint64(len(rest)) {
				if err != io.ErrUnexpectedEOF {
					t.Fatalf("cut short: %v", err)
				}
				break
			}
			if err != nil || !bytes.Equal(frame, rest[:n]) || (frame == nil) != (n == 0) {
				t.Fatalf("frame %x, %v, want %x", frame, err, rest[:n])
			}
			frames, rest = append(frames, frame), rest[n:]
			for i := range frame {
				frame[i] = 0xaa
			}
		}
		for _, frame := range frames {
			if len(bytes.Trim(frame, "\xaa")) != 0 {
				t.Fatal("two frames share memory")
			}
		}
	})
}

// TestClaimedFrame reads frames that claim 64 MiB and bring little: the memory
// they cost follows what they bring.
func TestClaimedFrame(t *testing.T) {
	for _, brought := range []int{0, 10, firstReadBytes, 300_000} {
		stream := binary.BigEndian.AppendUint32(nil, defaultMaxFrameBytes)
		stream = append(stream, make([]byte, brought)...)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := readFrame(bytes.NewReader(stream), defaultMaxFrameBytes); err != io.ErrUnexpectedEOF {
			t.Error(err)
		}
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > uint64(firstReadBytes+4*brought+64<<10) {
			t.Errorf("%d bytes brought, %d allocated", brought, got)
		}
	}
}

// controlShapes is what the manual says about control messages, in words: the
// elements behind the operation. p pid, q pid or name, n name, r reference,
// u unsigned, x anything, m a message behind. Elements in upper case are the
// ones this node does not look at.
var controlShapes = map[int64]string{
	1: "pp", 2: "xpm", 3: "pqX", 4: "pp", 5: "", 6: "pxnm", 7: "pp", 8: "pqX",
	12: "xpxm", 13: "pqXX", 16: "pxnxm", 18: "pqXX",
	19: "pqr", 20: "pqr", 21: "qprX", 22: "ppm", 23: "ppxm",
	24: "pqM", 25: "pqXM", 26: "pqM", 27: "pqXM", 28: "qprM",
	29: "rpXXXM", 30: "rpXXXXM", 31: "XXXX", 32: "XXXXX", 33: "prm", 34: "prxm", 35: "upp", 36: "upp",
}

// naiveControl judges a decoded control term and what is behind it. It returns
// whether parseControl must take it, and the pids, names, references and numbers
// in it, in order.
func naiveControl(term etf.Term, behind []byte) (fields []string, known, ok bool) {
	tuple, isTuple := term.(etf.Tuple)
	if !isTuple || len(tuple) == 0 {
		return nil, true, false
	}
	op, isInt := tuple[0].(int64)
	if !isInt {
		return nil, true, false
	}
	shape, known := controlShapes[op]
	if !known {
		return nil, false, true
	}
	elements, message := shape, byte(0)
	if n := len(shape); n > 0 && (shape[n-1]|0x20) == 'm' {
		elements, message = shape[:n-1], shape[n-1]
	}
	if len(tuple)-1 != len(elements) {
		return nil, true, false
	}
	blind := message == 'M'
	for i, kind := range elements {
		e := tuple[1+i]
		pid, isPid := e.(etf.Pid)
		name, isAtom := e.(etf.Atom)
		ref, isRef := e.(etf.Ref)
		number, isInt := e.(int64)
		fits := true
		switch kind {
		case 'p':
			fits = isPid
		case 'q':
			fits = isPid || isAtom && name != ""
		case 'n':
			fits = isAtom
		case 'r':
			fits = isRef
		case 'u':
			// Beyond int64 Decode gives a *big.Int.
			if big := fmt.Sprintf("%T", e) == "*big.Int"; big {
				fields = append(fields, fmt.Sprint(e))
				continue
			}
			fits = isInt && number >= 0
		case 'X':
			blind = true
			continue
		default:
			continue
		}
		if !fits {
			return nil, true, false
		}
		switch {
		case isPid:
			fields = append(fields, fmt.Sprint(pid))
		case isAtom:
			fields = append(fields, fmt.Sprint(name))
		case isRef:
			fields = append(fields, fmt.Sprint(ref))
		default:
			fields = append(fields, fmt.Sprint(number))
		}
	}
	switch {
	case blind:
		return fields, true, true
	case message == 'm':
		return fields, true, len(behind) >= 2 && behind[0] == versionTag
	}
	return fields, true, len(behind) == 0
}

// fieldsOf lists what parseControl found, in the order of the tuple.
func fieldsOf(m control) []string {
	to := fmt.Sprint(m.to.pid)
	if m.to.name != "" || m.op == opRegSend || m.op == opRegSendTT {
		to = fmt.Sprint(m.to.name)
	}
	from, ref, id := fmt.Sprint(m.from), fmt.Sprint(m.ref), fmt.Sprint(m.id)
	switch m.op {
	case opSend, opSendTT:
		return []string{to}
	case opMonitorP, opDemonitorP:
		return []string{from, to, ref}
	case opMonitorPExit, opPayloadMonitorExit:
		return []string{to, ref} // whose death it is does not matter
	case opAliasSend, opAliasSendTT:
		return []string{from, ref}
	case opSpawnRequest, opSpawnRequestTT:
		return []string{ref, from}
	case opUnlinkID, opUnlinkIDAck:
		return []string{id, from, to}
	case opNodeLink, opSpawnReply, opSpawnReplyTT:
		return nil
	}
	return []string{from, to}
}

// FuzzControl: where Decode can read the control term, parseControl takes it
// exactly if the manual's table does, and finds the same in it; the message is
// what is behind it.
func FuzzControl(f *testing.F) {
	pid, ref := etf.Pid{Node: "a@b", ID: 1, Serial: 2, Creation: 3}, etf.Ref{Node: "a@b", Creation: 3, Len: 3, ID: [5]uint32{1, 2, 3}}
	stand := map[rune]etf.Term{'p': pid, 'q': etf.Atom("scanode"), 'n': etf.Atom("scanode"), 'r': ref, 'u': 77, 'x': etf.Atom(""), 'X': etf.List{}}
	for op, shape := range controlShapes {
		tuple, message := etf.Tuple{op}, []byte(nil)
		for _, kind := range shape {
			if kind|0x20 == 'm' {
				message = []byte{versionTag, etf.TagNil}
				continue
			}
			tuple = append(tuple, stand[kind])
		}
		f.Add(append(mustAppend(nil, tuple), message...))
	}
	f.Add(mustAppend(nil, etf.Tuple{99, etf.List{}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		input := bytes.Clone(b)
		m, err := parseControl(b, passing)
		if !bytes.Equal(b, input) {
			t.Fatal("the input was changed")
		}
		term, behind, decodeErr := etf.Decode(b, etf.DefaultLimits)
		if decodeErr != nil {
			return
		}
		want, known, ok := naiveControl(term, behind)
		if ok != (err == nil) {
			t.Fatalf("%v: taken by the table: %v, by parseControl: %v", term, ok, err)
		}
		if err != nil {
			return
		}
		if m.known != known {
			t.Fatalf("%v: known %v", term, m.known)
		}
		if !known {
			return
		}
		if m.op == opMonitorPExit || m.op == opPayloadMonitorExit {
			want = want[1:]
		}
		if got := fieldsOf(m); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%v: found %v, want %v", term, got, want)
		}
		if m.msg != nil && !bytes.Equal(m.msg, behind[1:]) {
			t.Fatalf("message %x, want %x", m.msg, behind)
		}
	})
}

// FuzzCall: what parseCall takes for a ping is the encoding of one, and whatever
// is one is taken.
func FuzzCall(f *testing.F) {
	pid, ref := etf.Pid{Node: "a@b", ID: 1}, etf.Ref{Node: "a@b", Len: 3}
	alias := etf.Improper{Elems: etf.List{etf.Atom("alias")}, Tail: ref}
	for _, tag := range []etf.Term{ref, alias, etf.Improper{Elems: etf.List{alias}, Tail: 1}, etf.List{}} {
		f.Add(mustAppend(nil, etf.Tuple{etf.Atom("$gen_call"), etf.Tuple{pid, tag}, etf.Tuple{etf.Atom("is_auth"), etf.Atom("a@b")}}))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		call, ok := parseCall(b)
		term, rest, err := etf.Decode(b, etf.DefaultLimits)
		if err != nil || len(rest) > 0 {
			if ok && call.ping && err == nil {
				t.Fatal("a ping with bytes behind it")
			}
			return
		}
		tuple, _ := term.(etf.Tuple)
		from, request, isCall := etf.Tuple(nil), etf.Tuple(nil), false
		if len(tuple) == 3 && tuple[0] == etf.Term(etf.Atom("$gen_call")) {
			from, isCall = tuple[1].(etf.Tuple)
			request, _ = tuple[2].(etf.Tuple)
		}
		isCall = isCall && len(from) == 2
		if isCall {
			_, isCall = from[0].(etf.Pid)
		}
		inner, aliased := etf.Term(nil), false
		if isCall {
			inner = from[1]
			for range 2 {
				if list, ok := inner.(etf.Improper); ok && len(list.Elems) == 1 && list.Elems[0] == etf.Term(etf.Atom("alias")) {
					inner, aliased = list.Tail, true
					break
				} else if ok && len(list.Elems) == 1 {
					inner = list.Elems[0]
				}
			}
			_, isCall = inner.(etf.Ref)
		}
		if ok && !isCall {
			t.Fatalf("%v was taken for a call", term)
		}
		if !ok {
			return
		}
		ping := false
		if len(request) == 2 {
			name, isAtom := request[1].(etf.Atom)
			ping = request[0] == etf.Term(etf.Atom("is_auth")) && isAtom && name != ""
		}
		if call.ping != ping || call.alias != aliased || call.ref != inner {
			t.Fatalf("%v: ping %v, alias %v, %v", term, call.ping, call.alias, call.ref)
		}
		if tag, _, err := etf.Decode(call.tag, etf.DefaultLimits); err != nil || fmt.Sprint(tag) != fmt.Sprint(from[1]) {
			t.Fatalf("tag %v, %v, want %v", tag, err, from[1])
		}
	})
}

// bytesConn is a connection that says what it is given and hears nothing.
type bytesConn struct {
	net.Conn
	io.Reader
	written bytes.Buffer
}

func (c *bytesConn) Read(b []byte) (int, error)  { return c.Reader.Read(b) }
func (c *bytesConn) Write(b []byte) (int, error) { return c.written.Write(b) }

// FuzzHandshake: nobody gets through without the cookie, on either side; what is
// parsed is what the bytes say; a name that is taken is a name.
func FuzzHandshake(f *testing.F) {
	message := func(parts ...[]byte) (b []byte) {
		for _, p := range parts {
			b = append(binary.BigEndian.AppendUint16(b, uint16(len(p))), p...)
		}
		return b
	}
	old := append([]byte{'n', 0, 5, 0xff, 0xff, 0xff, 0xff}, "a@b"...)
	f.Add(message(appendName(nil, "a@b", ourFlags, 1), appendReply(nil, 2, digest{})))
	f.Add(message(old, []byte("c\x00\x00\x00\x0f\x00\x00\x00\x01"), appendReply(nil, 2, digest{})))
	f.Add(message([]byte("sok"), appendChallenge(nil, "a@b", ourFlags, 1, 2), append([]byte{'a'}, make([]byte, 16)...)))
	f.Add(message([]byte("salive"), appendChallenge(nil, "a@b", ourFlags, 1, 2), []byte{'a'}))
	f.Add([]byte{0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc})
	f.Add(append([]byte{0, 0, 0, 18}, appendName(nil, "a@b", ourFlags, 1)...))
	f.Fuzz(func(t *testing.T, stream []byte) {
		side := func() (*handshake, *bytesConn) {
			c := &bytesConn{Reader: bytes.NewReader(stream)}
			return &handshake{conn: c, in: bufio.NewReader(c), name: "me@here", flags: ourFlags, digest: newDigester(Cookie("secret"))}, c
		}
		never := func(peer) error {
			t.Fatal("somebody got through")
			return nil
		}
		h, _ := side()
		if p, err := h.answer(func(peer) status { return statusOK }, never); err == nil {
			t.Fatalf("answered %v", p)
		}
		for _, call := range []bool{false, true} {
			h, _ := side()
			h.wide = true // as over TLS
			var err error
			if call {
				_, err = h.call("a@b", never)
			} else {
				_, err = h.answer(func(peer) status { return statusOK }, never)
			}
			if err == nil || errors.Is(err, ErrPeerTLS) {
				t.Fatalf("with wide lengths: %v", err)
			}
		}
		h, c := side()
		if p, err := h.call("a@b", never); err == nil {
			t.Fatalf("called %v", p)
		}
		if sent := c.written.Bytes(); !bytes.HasPrefix(sent, message(appendName(nil, "me@here", ourFlags, 0))) {
			t.Fatalf("it introduced itself as %q", sent)
		}
		if len(stream) == 0 {
			return
		}
		if p, isOld, err := parseName(stream); err == nil {
			if _, err := checkNodeName([]byte(p.name)); err != nil {
				t.Fatal(err)
			}
			at := 15
			if isOld {
				at = 7
			}
			if !bytes.HasPrefix(stream[at:], []byte(p.name)) {
				t.Fatalf("the name %q is not in %q", p.name, stream)
			}
		}
	})
}

// FuzzEPMD: an answer with a port in it is taken as it reads, and nothing else is.
func FuzzEPMD(f *testing.F) {
	f.Add([]byte{119, 0, 0x11, 0x22, 77, 0, 0, 6, 0, 5, 0, 1, 'a', 0, 0})
	f.Add([]byte{119, 1})
	f.Add([]byte{118, 0, 1, 2, 3, 4})
	f.Add([]byte{121, 0, 1, 2})
	f.Add([]byte{118, 1, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		port, err := readPort2Resp(bytes.NewReader(b))
		good := len(b) >= 10 && b[0] == 119 && b[1] == 0 && (b[2] != 0 || b[3] != 0) && b[5] == 0 &&
			int(b[6])<<8+int(b[7]) >= 6 && int(b[8])<<8+int(b[9]) <= 6
		if good != (err == nil) || good && port != uint16(b[2])<<8|uint16(b[3]) {
			t.Fatalf("%x: port %d, %v", b, port, err)
		}
		creation, err := readAlive2Resp(bytes.NewReader(b))
		var want uint32
		switch {
		case len(b) >= 6 && b[0] == 118 && b[1] == 0:
			want, good = binary.BigEndian.Uint32(b[2:]), true
		case len(b) >= 4 && b[0] == 121 && b[1] == 0:
			want, good = uint32(b[2])<<8|uint32(b[3]), true
		default:
			good = false
		}
		if good != (err == nil) || creation != want {
			t.Fatalf("%x: creation %d, %v", b, creation, err)
		}
		if taken := len(b) >= 2 && (b[0] == 118 || b[0] == 121) && b[1] != 0; taken != errors.Is(err, ErrNameTaken) {
			t.Fatalf("%x: %v", b, err)
		}
	})
}

// TestEPMDRequests pins the bytes of the requests.
func TestEPMDRequests(t *testing.T) {
	if got, want := appendAlive2Req(nil, "ab", 0x1234), []byte{0, 15, 120, 0x12, 0x34, 72, 0, 0, 6, 0, 6, 0, 2, 'a', 'b', 0, 0}; !bytes.Equal(got, want) {
		t.Errorf("ALIVE2_REQ %v", got)
	}
	if got, want := appendPortPlease2Req(nil, "ab"), []byte{0, 3, 122, 'a', 'b'}; !bytes.Equal(got, want) {
		t.Errorf("PORT_PLEASE2_REQ %v", got)
	}
}
