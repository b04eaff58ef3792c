package port

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"scanode/etf"
)

// collect is a Handler that keeps what it gets and refuses what is not one term.
type collect struct{ msgs [][]byte }

func (c *collect) Message(msg []byte) error {
	rest, err := etf.Skip(msg)
	if err == nil && len(rest) > 0 {
		err = errors.New("bytes after the term")
	}
	if err == nil {
		c.msgs = append(c.msgs, msg)
	}
	return err
}

func frame(content []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(content))), content...)
}

func term(t *testing.T, v etf.Term) []byte {
	t.Helper()
	b, err := etf.AppendTerm(etf.AppendVersion(nil), v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func newConn(t *testing.T, in io.Reader, out io.Writer) *Conn {
	t.Helper()
	c, err := New(in, out, Config{Version: "1.2.3", MaxFrameBytes: 1 << 10})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// sent decodes all frames in b.
func sent(t *testing.T, b []byte) []etf.Term {
	t.Helper()
	var all []etf.Term
	for len(b) > 0 {
		n := binary.BigEndian.Uint32(b)
		msg, err := etf.SkipVersion(b[4 : 4+n])
		if err != nil {
			t.Fatal(err)
		}
		v, rest, err := etf.Decode(msg, etf.DefaultLimits)
		if err != nil || len(rest) > 0 {
			t.Fatalf("frame: %v, %d bytes left", err, len(rest))
		}
		all, b = append(all, v), b[4+n:]
	}
	return all
}

func TestHelloIsTheFirstFrame(t *testing.T) {
	var out bytes.Buffer
	newConn(t, strings.NewReader(""), &out)
	frames := sent(t, out.Bytes())
	if len(frames) != 1 {
		t.Fatalf("%d frames, want 1", len(frames))
	}
	f := frames[0].(etf.Tuple)
	hello := f[1].(etf.Tuple)
	if f[0] != etf.Atom("port") || hello[0] != etf.Atom("hello") || string(hello[1].(etf.Map)[0].Value.([]byte)) != "1.2.3" {
		t.Errorf("hello frame is %v", f)
	}
}

// TestServeAtEveryCut feeds whole frames and checks what arrives when the input
// ends after each byte: the frames that are whole, then a plain end at a frame's
// border and an error anywhere else.
func TestServeAtEveryCut(t *testing.T) {
	msgs := []etf.Term{etf.Atom("a"), etf.Tuple{int64(1), []byte("two")}, []byte(strings.Repeat("x", 300))}
	var in []byte
	ends := map[int]int{0: 0} // border → whole frames before it
	for i, m := range msgs {
		in = append(in, frame(term(t, m))...)
		ends[len(in)] = i + 1
	}
	whole := 0
	for cut := range len(in) + 1 {
		n, border := ends[cut]
		if border {
			whole = n
		}
		var got collect
		err := newConn(t, iotest.OneByteReader(bytes.NewReader(in[:cut])), io.Discard).Serve(&got)
		if len(got.msgs) != whole {
			t.Fatalf("cut at %d: %d messages, want %d", cut, len(got.msgs), whole)
		}
		if (err == nil) != border {
			t.Errorf("cut at %d: error %v, at a border: %v", cut, err, border)
		}
	}
}

func TestServeRefusesMalformedFrames(t *testing.T) {
	for name, in := range map[string][]byte{
		"over the limit": {0xff, 0xff, 0xff, 0xff, 131},
		"empty":          frame(nil),
		"no version":     frame([]byte{97, 1}),
		"truncated term": frame([]byte{131, 104, 3, 97, 1}),
		"trailing bytes": frame([]byte{131, 97, 1, 97, 2}),
		"forged count":   frame([]byte{131, 108, 0x7f, 0xff, 0xff, 0xff, 97}),
	} {
		var got collect
		if err := newConn(t, bytes.NewReader(in), io.Discard).Serve(&got); err == nil {
			t.Errorf("%s: no error", name)
		}
		if len(got.msgs) != 0 {
			t.Errorf("%s: %d messages delivered", name, len(got.msgs))
		}
	}
}

func TestSendWritesOneFrame(t *testing.T) {
	pid := etf.Pid{Node: "n@h", ID: 7, Serial: 1, Creation: 3}
	ref := etf.Ref{Node: "n@h", Creation: 3, Len: 3, ID: [5]uint32{1, 2, 3}}
	for _, size := range []int{0, 10, smallBody, smallBody + 1, 3 << 20} {
		var out bytes.Buffer
		c := newConn(t, strings.NewReader(""), &out)
		out.Reset()
		body := bytes.Repeat([]byte{7}, size)
		head := etf.AppendBinaryHeader(etf.AppendTupleHeader(nil, 1), size)
		if err := c.Send(pid, head, body); err != nil {
			t.Fatal(err)
		}
		if err := c.SendAlias(ref, etf.AppendAtom(nil, "x"), nil); err != nil {
			t.Fatal(err)
		}
		frames := sent(t, out.Bytes())
		first := frames[0].(etf.Tuple)
		if first[0] != pid || !bytes.Equal(first[1].(etf.Tuple)[0].([]byte), body) {
			t.Errorf("body of %d bytes did not arrive", size)
		}
		if second := frames[1].(etf.Tuple); second[0] != ref || second[1] != etf.Atom("x") {
			t.Errorf("alias frame is %v", second)
		}
	}
}

func TestMonitor(t *testing.T) {
	pid := etf.Pid{Node: "n@h", ID: 7, Creation: 3}
	down := frame(term(t, etf.Tuple{etf.Atom("down"), pid}))
	reader, writer := io.Pipe()
	var out bytes.Buffer
	c := newConn(t, reader, &out)
	out.Reset()
	var mu sync.Mutex
	calls := map[string]int{}
	note := func(name string) func() {
		return func() {
			mu.Lock()
			defer mu.Unlock()
			calls[name]++
		}
	}
	c.Monitor(pid, note("first"))
	stop := c.Monitor(pid, note("stopped"))
	c.Monitor(pid, note("second"))
	stop()
	stop()
	c.Monitor(etf.Pid{Node: "n@h", ID: 8}, note("other"))
	ended := make(chan error)
	go func() { ended <- c.Serve(&collect{}) }()
	for range 2 { // the second {down, Pid} finds nobody
		if _, err := writer.Write(down); err != nil {
			t.Fatal(err)
		}
	}
	writer.Close()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	c.Monitor(pid, note("late"))
	mu.Lock()
	defer mu.Unlock()
	for name, want := range map[string]int{"first": 1, "second": 1, "stopped": 0, "other": 1, "late": 1} {
		if calls[name] != want {
			t.Errorf("%s: called %d times, want %d", name, calls[name], want)
		}
	}
	if frames := sent(t, out.Bytes()); len(frames) != 2 {
		t.Errorf("%d monitor frames, want one for each pid: %v", len(frames), frames)
	}
}

// FuzzServe claims: whatever arrives, a message is delivered exactly when its
// frame holds one whole term, and memory follows the bytes that arrived.
func FuzzServe(f *testing.F) {
	f.Add(frame([]byte{131, 97, 1}))
	f.Add(append(frame([]byte{131, 106}), 0, 0, 1))
	f.Add([]byte{0, 0, 2, 0, 131, 108, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, in []byte) {
		var got collect
		err := newConn(t, bytes.NewReader(in), io.Discard).Serve(&got)
		var again []byte
		for _, m := range got.msgs {
			if rest, serr := etf.Skip(m); serr != nil || len(rest) > 0 {
				t.Fatalf("delivered %x: %v", m, serr)
			}
			again = append(again, frame(append([]byte{131}, m...))...)
		}
		if err == nil && !bytes.Contains(in, []byte("down")) && !bytes.Equal(again, in) {
			t.Fatalf("accepted %x, delivered %x", in, again)
		}
		if !bytes.HasPrefix(in, again) && !bytes.Contains(in, []byte("down")) {
			t.Fatalf("delivered %x which is not how %x begins", again, in)
		}
	})
}
