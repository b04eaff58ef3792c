package node

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"scanode/etf"
)

// TestIPv6 registers with an epmd on ::1 and links a BEAM there, called and
// calling.
func TestIPv6(t *testing.T) {
	t.Parallel()
	testEPMD(t) // skips where there is none
	daemon, err := startEPMD("[::1]:0")
	if err != nil {
		t.Skip(err)
	}
	defer daemon.stop()
	_, port, _ := net.SplitHostPort(daemon.addr)
	b := startNamedBEAM(t, port, "beam6@::1", testCookie, "-proto_dist", "inet6_tcp")
	n, r, _ := startNode(t, daemon.addr, func(c *Config) { c.Name, c.Listen = "go6@::1", "[::1]:0" })
	b.want("hello", "gen_server:call({scanode, '%s'}, hello).", n.Name())
	r.next(t, "up").link.Close()
	r.next(t, "down")
	if _, err := n.Connect(testContext(t), b.name); err != nil {
		t.Error(err)
	}
	b.want("hello", "gen_server:call({scanode, '%s'}, hello).", n.Name())
}

// TestWithoutEPMD links a BEAM that has no epmd either: every node listens on one
// port, each on an address of its own.
func TestWithoutEPMD(t *testing.T) {
	t.Parallel()
	testEPMD(t)
	n, r, _ := startNode(t, "", func(c *Config) { c.Name, c.Listen = "fixed@127.0.0.2", "127.0.0.2:0" })
	port := n.Addr().(*net.TCPAddr).Port
	b := startNamedBEAM(t, "1", "beam@127.0.0.1", testCookie, "-erl_epmd_port", fmt.Sprint(port),
		"-kernel", "inet_dist_use_interface", "{127,0,0,1}")
	b.want("hello", "gen_server:call({scanode, '%s'}, hello).", n.Name())
	r.next(t, "up")
	caller, _, _ := startNode(t, "", func(c *Config) { c.PeerPort = uint16(port) })
	if _, err := caller.Connect(testContext(t), b.name); err != nil {
		t.Error(err)
	}
	if _, err := n.Connect(testContext(t), "other@127.0.0.1"); !errors.Is(err, ErrNoEPMD) {
		t.Errorf("without a port: %v", err)
	}
}

// TestStatuses calls somebody who answers with every status there is.
func TestStatuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status string
		want   error // nil: a link
		text   string
	}{
		{"ok", nil, ""},
		{"ok_simultaneous", nil, ""},
		{"alive", nil, ""},
		{"nok", context.DeadlineExceeded, ""}, // the call it promises never comes
		{"not_allowed", ErrNotAllowed, ""},
		{"named:\x00\x05other", nil, "status"},
		{"\xff\x00", nil, "status"},
		{"", nil, "status"},
	} {
		t.Run(fmt.Sprintf("%q", c.status), func(t *testing.T) {
			t.Parallel()
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			n, _, _ := startNode(t, "", func(cfg *Config) {
				cfg.PeerPort = uint16(listener.Addr().(*net.TCPAddr).Port)
				cfg.Handshake = 2 * time.Second
			})
			go func() {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				defer conn.Close()
				h := &handshake{conn: conn, in: bufio.NewReader(conn), name: "peer@127.0.0.1", flags: ourFlags, digest: newDigester(Cookie(testCookie))}
				h.read()
				h.write(append([]byte{'s'}, c.status...))
				if c.status == "alive" {
					if msg, _ := h.read(); string(msg) != "strue" {
						t.Errorf("to alive it said %q", msg)
					}
				}
				h.write(appendChallenge(nil, h.name, h.flags, 7, 42))
				msg, err := h.read()
				if err != nil {
					return
				}
				theirs, _, err := parseReply(msg)
				if err != nil {
					t.Error(err)
				}
				d := h.digest(theirs)
				h.write(append([]byte{'a'}, d[:]...))
				h.read() // until it closes
			}()
			_, err = n.Connect(testContext(t), "peer@127.0.0.1")
			switch {
			case c.want == nil && c.text == "":
				if err != nil {
					t.Error(err)
				}
			case c.want != nil && !errors.Is(err, c.want), c.text != "" && !strings.Contains(fmt.Sprint(err), c.text):
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestNoNameGiven asks for a name as a BEAM does that was started with -name
// undefined: it is refused in so many words, and the log says why.
func TestNoNameGiven(t *testing.T) {
	t.Parallel()
	n, _, lines := startNode(t, "", nil)
	conn, err := net.Dial("tcp", n.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	h := &handshake{conn: conn, in: bufio.NewReader(conn)}
	h.write(appendName(nil, "host", ourFlags|flagNameMe, 0))
	if b, err := h.read(); string(b) != "snot_allowed" {
		t.Errorf("status %q, %v", b, err)
	}
	lines.await("asks for a name")
}

// TestReasons watches processes that end with reasons of every kind, deep ones
// too: the monitor fires and the link stays.
func TestReasons(t *testing.T) {
	t.Parallel()
	epmd := testEPMD(t)
	b := startBEAM(t, epmd, testCookie)
	n, r, _ := startNode(t, epmd, nil)
	b.eval("N = '%s'.", n.Name())
	b.want("hello", "gen_server:call({scanode, N}, hello).")
	l := r.next(t, "up").link
	for _, reason := range []string{"normal", "killed", "{shutdown, [1.5, <<3:3>>, self(), make_ref()]}", "fun() -> b end",
		"#{{k} => fun erlang:self/0}", "1 bsl 3000", "binary:copy(<<1>>, 1000000)", "lists:foldl(fun(_, A) -> {A} end, [], lists:seq(1, 100000))"} {
		b.want("ok", "spawn(fun() -> {scanode, N} ! {pid, self(), 1, 1}, receive stop -> exit(%s) end end), ok.", reason)
		died := make(chan struct{})
		pid := r.next(t, "message").msg.(etf.Tuple)[1].(etf.Pid)
		l.Monitor(pid, func() { close(died) })
		if err := l.Send(pid, etf.AppendAtom(nil, "stop"), nil); err != nil {
			t.Fatal(err)
		}
		select {
		case <-died:
		case <-time.After(hungAfter):
			t.Fatalf("nobody heard of %s", reason)
		}
		// The same in the other direction: by a link, and by exit/2.
		b.want("hello", "{scanode, N} ! {echo, self(), hi}, receive {P, hi} -> ok end, "+
			"spawn(fun() -> link(P), exit(%s) end), exit(P, %[1]s), gen_server:call({scanode, N}, hello).", reason)
	}
	if len(n.Links()) != 1 || n.Links()[0] != l {
		t.Error("it is another link now")
	}
	b.want("{hello,hello}", "{scanode, N} ! {echo, self(), hi}, receive {P, hi} -> ok end, process_flag(trap_exit, true), link(P), "+
		"M1 = monitor(process, P), M2 = monitor(process, {scanode, N}), {gen_server:call(P, hello), gen_server:call({scanode, N}, hello)}.")
	l.Close()
	b.want("[noconnection,noconnection,noconnection]", "[receive {'DOWN', M1, _, _, R1} -> R1 end, receive {'DOWN', M2, _, _, R2} -> R2 end, "+
		"receive {'EXIT', P, R3} -> R3 end].")
}

// rounds is how often each side is killed.
var rounds = flag.Int("rounds", 3, "how often TestKilledAgainAndAgain kills each side")

// childName is the variable that makes the test binary a node of that name.
const childName = "SCANODE_TEST_CHILD"

// runChild is a node that is there to be killed.
func runChild(name string) {
	n, err := Start(context.Background(), Config{Name: etf.Atom(name), Cookie: Cookie(testCookie), EPMD: os.Getenv("SCANODE_TEST_EPMD"),
		Processes: []etf.Atom{"scanode"}, Handler: newRecorder(), Logger: slog.New(newLogLines())})
	if err != nil {
		fmt.Println("failed", err)
		os.Exit(1)
	}
	fmt.Println("up")
	<-n.ctx.Done()
}

// TestKilledAgainAndAgain kills a node, then a BEAM, without a word: each time the
// other side is told, and a new one of the same name is linked at once.
func TestKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	epmd := testEPMD(t)
	_, port, _ := net.SplitHostPort(epmd)
	t.Run("node", func(t *testing.T) {
		t.Parallel()
		b := startBEAM(t, epmd, testCookie)
		name := fmt.Sprintf("child%d@127.0.0.1", os.Getpid())
		b.eval("N = '%s', C = {scanode, N}, Up = fun() -> hello = gen_server:call(C, hello), monitor_node(N, true), "+
			"put(m, monitor(process, C)), gen_server:call(C, hello) end, Down = fun() -> M = get(m), "+
			"receive {'DOWN', M, process, C, R} -> {R, receive {nodedown, N} -> nodedown end} end end.", name)
		for range *rounds {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), childName+"="+name, "SCANODE_TEST_EPMD="+epmd)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			line, _ := bufio.NewReader(out).ReadString('\n')
			if line != "up\n" {
				t.Fatalf("the node said %q", line)
			}
			b.want("hello", "Up().")
			cmd.Process.Kill()
			cmd.Wait()
			b.want("{noconnection,nodedown}", "Down().")
		}
	})
	t.Run("BEAM", func(t *testing.T) {
		t.Parallel()
		n, r, _ := startNode(t, epmd, nil)
		name := fmt.Sprintf("victim%d@127.0.0.1", os.Getpid())
		for range *rounds {
			b := startNamedBEAM(t, port, name, testCookie)
			b.want("self", "{scanode, '%s'} ! self(), self.", n.Name())
			l := r.next(t, "up").link
			died := make(chan struct{})
			l.Monitor(r.next(t, "message").msg.(etf.Pid), func() { close(died) })
			b.cmd.Process.Kill()
			<-died
			if e := r.next(t, "down"); !errors.Is(e.err, ErrPeerClosed) {
				t.Errorf("down with %v", e.err)
			}
		}
	})
}

// frames is how many TestManyFrames reads.
var frames = flag.Int("frames", 200_000, "how many frames TestManyFrames reads")

// frameSource is a connection from which the same frames come, again and again.
type frameSource struct {
	net.Conn
	block []byte
	at    int
	left  int // blocks
	ended chan struct{}
}

func (s *frameSource) Read(b []byte) (int, error) {
	if s.left == 0 {
		<-s.ended
		return 0, net.ErrClosed
	}
	n := copy(b, s.block[s.at:])
	if s.at += n; s.at == len(s.block) {
		s.at, s.left = 0, s.left-1
	}
	return n, nil
}

func (s *frameSource) Write(b []byte) (int, error)      { return len(b), nil }
func (s *frameSource) SetReadDeadline(time.Time) error  { return nil }
func (s *frameSource) SetWriteDeadline(time.Time) error { return nil }
func (s *frameSource) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (s *frameSource) Close() error {
	select {
	case <-s.ended:
	default:
		close(s.ended)
	}
	return nil
}

// counter is a Handler that counts.
type counter struct {
	want, got int
	done      chan struct{}
}

func (c *counter) Up(*Link)          {}
func (c *counter) Down(*Link, error) {}
func (c *counter) Message(*Link, etf.Atom, []byte) {
	if c.got++; c.got == c.want {
		close(c.done)
	}
}

// TestManyFrames reads frames of every kind through one link: nothing is lost, and
// nothing of them is left.
func TestManyFrames(t *testing.T) {
	from, ours, ref := etf.Pid{Node: "b@h", ID: 1}, etf.Pid{Node: "a@h", ID: 2, Creation: 7}, etf.Ref{Node: "b@h", Len: 3}
	kinds := []func(i int) []byte{
		func(i int) []byte {
			return frame(etf.Tuple{opRegSend, from, etf.Atom(""), etf.Atom("scanode")}, make([]byte, i%3000))
		},
		func(int) []byte { return frame(etf.Tuple{opSend, etf.Atom(""), ours}, etf.Tuple{etf.Atom("x"), 1.5}) },
		func(int) []byte { return frame(etf.Tuple{opMonitorP, from, etf.Atom("scanode"), ref}) },
		func(int) []byte { return frame(etf.Tuple{opDemonitorP, from, etf.Atom("scanode"), ref}) },
		func(int) []byte { return frame(etf.Tuple{opLink, from, ours}) },
		func(i int) []byte { return frame(etf.Tuple{opUnlinkID, i, from, ours}) },
		func(int) []byte { return frame(etf.Tuple{opExit2, from, ours, etf.List{etf.Atom("why")}}) },
		func(int) []byte { return frame(etf.Tuple{99, etf.Atom("new")}) },
		func(int) []byte { return frame(etf.Tuple{opMonitorP, from, etf.Atom("nobody"), ref}) },
		func(int) []byte { return raw() },
	}
	const perBlock = 1000
	var block bytes.Buffer
	for i := range perBlock {
		block.Write(kinds[i%len(kinds)](i))
	}
	blocks := max(1, *frames/perBlock)
	source := &frameSource{block: block.Bytes(), left: blocks, ended: make(chan struct{})}
	c := &counter{want: 2 * perBlock / len(kinds) * blocks, done: make(chan struct{})}
	l, _ := pipeLink(source, "a@h", "b@h", func(cfg *Config) { cfg.Handler = c })
	before := heapBytes()
	<-c.done
	l.Close()
	<-l.gone
	if len(l.watchers)+len(l.pairs) > 2 {
		t.Errorf("%d monitors and %d links are left", len(l.watchers), len(l.pairs))
	}
	if after := heapBytes(); after > before+4<<20 {
		t.Errorf("the heap grew from %d to %d bytes", before, after)
	}
}

// heapBytes is what is reachable.
func heapBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestManyMessages sends from a BEAM over one link, some answered.
func TestManyMessages(t *testing.T) {
	t.Parallel()
	epmd := testEPMD(t)
	b := startBEAM(t, epmd, testCookie)
	n, _, _ := startNode(t, epmd, nil)
	b.eval("N = '%s', C = {scanode, N}.", n.Name())
	b.want("hello", "gen_server:call(C, hello).")
	b.want("100000", "length([C ! {echo, self(), I} || I <- lists:seq(1, 100000)]).")
	b.want("[]", "[I || I <- lists:seq(1, 100000), receive {P, J} -> I =/= J end].")
	if links := n.Links(); len(links) != 1 {
		t.Errorf("%d links", len(links))
	}
}
