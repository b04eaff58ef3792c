package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"

	"scanode/etf"
)

// TestCloseTellsWatchers closes the node under a monitor by name, one by pid and
// a process link: each gets the reason shutdown.
func TestCloseTellsWatchers(t *testing.T) {
	t.Parallel()
	epmd := testEPMD(t)
	b := startBEAM(t, epmd, testCookie)
	n, r, _ := startNode(t, epmd, nil)
	b.eval("N = '%s'.", n.Name())
	b.want("ok", "{scanode, N} ! {echo, self(), hi}, receive {P, hi} -> ok end.")
	b.want("ok", "process_flag(trap_exit, true), M1 = monitor(process, {scanode, N}), M2 = monitor(process, P), link(P), ok.")
	b.want("pong", "net_adm:ping(N).")
	n.Close()
	b.want("[shutdown,shutdown,shutdown]", "[receive {'DOWN', M1, process, {scanode, N}, R1} -> R1 end, "+
		"receive {'DOWN', M2, process, P, R2} -> R2 end, receive {'EXIT', P, R3} -> R3 end].")
	r.next(t, "up")
	if e := r.next(t, "down"); !errors.Is(e.err, ErrClosed) {
		t.Errorf("down with %v", e.err)
	}
	b.want("pang", "net_adm:ping(N).")
	b.want("noconnection", "M4 = monitor(process, {scanode, N}), receive {'DOWN', M4, process, _, R4} -> R4 end.")
}

// TestBEAMKilled kills the peer without a word: monitors fire, then Down comes.
func TestBEAMKilled(t *testing.T) {
	t.Parallel()
	epmd := testEPMD(t)
	b := startBEAM(t, epmd, testCookie)
	n, r, _ := startNode(t, epmd, nil)
	b.want("self", "{scanode, '%s'} ! self(), self.", n.Name())
	l := r.next(t, "up").link
	pid := r.next(t, "message").msg.(etf.Pid)
	died := make(chan struct{})
	l.Monitor(pid, func() { close(died) })
	b.cmd.Process.Kill()
	down := r.next(t, "down")
	select {
	case <-died:
	default:
		t.Error("Down came before the monitor fired")
	}
	<-l.Done()
	if err := l.Send(pid, etf.AppendNil(nil), nil); !errors.Is(err, down.err) {
		t.Errorf("Send on the dead link: %v, want %v", err, down.err)
	}
	again := make(chan struct{})
	l.Monitor(pid, func() { close(again) })
	<-again
}

// TestConnect calls the BEAM from here.
func TestConnect(t *testing.T) {
	t.Parallel()
	epmd := testEPMD(t)
	b := startBEAM(t, epmd, testCookie)
	n, r, _ := startNode(t, epmd, nil)
	ctx := testContext(t)
	var calls sync.WaitGroup
	links := make([]*Link, 4)
	for i := range links {
		calls.Go(func() {
			l, err := n.Connect(ctx, b.name)
			if err != nil {
				t.Error(err)
			}
			links[i] = l
		})
	}
	calls.Wait()
	for _, l := range links {
		if l != links[0] {
			t.Error("several links to one node")
		}
	}
	r.next(t, "up")
	b.want(fmt.Sprintf("{[],['%s']}", n.Name()), "{nodes(), nodes(hidden)}.")
	b.want("hello", "gen_server:call({scanode, '%s'}, hello).", n.Name())
	if _, err := n.Connect(ctx, "nobody@127.0.0.1"); !errors.Is(err, ErrUnknownNode) {
		t.Errorf("connecting to nobody: %v", err)
	}
	if _, err := n.Connect(ctx, n.Name()); err == nil {
		t.Error("connected to itself")
	}
	if _, err := n.Connect(ctx, "no name"); err == nil {
		t.Error("connected to something that is no node name")
	}
	n.Close()
	if _, err := n.Connect(ctx, b.name); !errors.Is(err, ErrClosed) {
		t.Errorf("connecting after Close: %v", err)
	}
}

// TestCrossingCalls lets both sides call at once, again and again: each time
// there must be one working link in the end.
func TestCrossingCalls(t *testing.T) {
	t.Parallel()
	epmd := testEPMD(t)
	b := startBEAM(t, epmd, testCookie)
	// One node of a name before the BEAM's in the order of atoms, one behind.
	for _, prefix := range []string{"a", "z"} {
		n, r, _ := startNode(t, epmd, func(c *Config) { c.Name = etf.Atom(prefix) + c.Name })
		for range 50 {
			called := make(chan error, 1)
			go func() {
				_, err := n.Connect(context.Background(), b.name)
				called <- err
			}()
			b.eval("net_kernel:connect_node('%s').", n.Name())
			if err := <-called; err != nil {
				t.Fatal(err)
			}
			b.want("hello", "gen_server:call({scanode, '%s'}, hello).", n.Name())
			b.want("true", "erlang:disconnect_node('%s').", n.Name())
			// A link replaced by another may have come and gone before.
			for up := 0; ; {
				e := <-r.events
				if e.what == "up" {
					up++
				} else if up--; up == 0 && errors.Is(e.err, ErrPeerClosed) {
					break
				}
			}
		}
	}
}

// TestWrongCookie tries from both sides.
func TestWrongCookie(t *testing.T) {
	t.Parallel()
	epmd := testEPMD(t)
	b := startBEAM(t, epmd, "another-cookie")
	n, r, lines := startNode(t, epmd, nil)
	b.want("pang", "net_adm:ping('%s').", n.Name())
	lines.await("wrong cookie peer=" + string(b.name))
	if _, err := n.Connect(testContext(t), b.name); !errors.Is(err, ErrWrongCookie) {
		t.Errorf("Connect: %v", err)
	}
	n.Close()
	if len(r.events) != 0 {
		t.Errorf("the handler heard of it: %v", (<-r.events).what)
	}
}

// TestNotAllowed refuses a peer by its name, before any challenge.
func TestNotAllowed(t *testing.T) {
	t.Parallel()
	epmd := testEPMD(t)
	b := startBEAM(t, epmd, testCookie)
	n, _, lines := startNode(t, epmd, func(c *Config) {
		c.Allow = func(name etf.Atom) bool { return name != b.name }
	})
	b.want("pang", "net_adm:ping('%s').", n.Name())
	lines.await("link refused peer=" + string(b.name))
}

// TestTwoNodes links two nodes of this package.
func TestTwoNodes(t *testing.T) {
	t.Parallel()
	epmd := testEPMD(t)
	a, ra, _ := startNode(t, epmd, nil)
	b, rb, _ := startNode(t, epmd, nil)
	l, err := a.Connect(testContext(t), b.Name())
	if err != nil {
		t.Fatal(err)
	}
	ra.next(t, "up")
	back := rb.next(t, "up").link
	if err := l.Send(b.procs.pids["scanode"], etf.AppendAtom(nil, "hello"), nil); err != nil {
		t.Fatal(err)
	}
	rb.wantMessage(t, etf.Atom("hello"))
	died := make(chan struct{}, 2)
	l.Monitor(etf.Pid{Node: b.Name(), ID: 77, Creation: b.creation}, func() { died <- struct{}{} })
	<-died // nobody there
	l.Monitor(b.procs.pids["scanode"], func() { died <- struct{}{} })
	if err := l.SendAlias(b.newRef(), etf.AppendNil(nil), nil); err != nil { // to nobody
		t.Fatal(err)
	}
	if err := l.Send(b.procs.pids["scanode"], etf.AppendAtom(nil, "behind the monitor"), nil); err != nil {
		t.Fatal(err)
	}
	rb.wantMessage(t, etf.Atom("behind the monitor"))
	b.Close()
	<-died
	if e := rb.next(t, "down"); e.link != back || !errors.Is(e.err, ErrClosed) {
		t.Errorf("down with %v", e.err)
	}
	if e := ra.next(t, "down"); !errors.Is(e.err, ErrPeerClosed) {
		t.Errorf("down with %v", e.err)
	}
}

// TestEPMD takes a taken name, goes without epmd, and outlives one.
func TestEPMD(t *testing.T) {
	t.Parallel()
	testEPMD(t) // skips where there is none
	daemon, err := startEPMD("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n, _, lines := startNode(t, daemon.addr, nil)
	ctx := testContext(t)
	alive, _ := splitName(n.Name())
	port, err := lookUpPort(ctx, daemon.addr, alive)
	if err != nil || int(port) != n.Addr().(*net.TCPAddr).Port {
		t.Errorf("epmd says port %d, %v; it is %v", port, err, n.Addr())
	}
	taken := n.cfg
	taken.Cookie = Cookie("x")
	if _, err := Start(ctx, taken); !errors.Is(err, ErrNameTaken) {
		t.Errorf("a second node of the name: %v", err)
	}
	daemon.stop()
	other := taken
	other.Name = "x" + taken.Name
	if _, err := Start(ctx, other); !errors.Is(err, ErrNoEPMD) {
		t.Errorf("without epmd: %v", err)
	}
	lines.await("registering anew")
	daemon, err = startEPMD(daemon.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer daemon.stop()
	lines.await("registered with epmd again")
	if again, err := lookUpPort(ctx, daemon.addr, alive); err != nil || again != port {
		t.Errorf("the new epmd says port %d, %v", again, err)
	}
	if _, err := n.Connect(ctx, "nobody@127.0.0.1"); !errors.Is(err, ErrUnknownNode) {
		t.Errorf("connecting to nobody: %v", err)
	}
}

// TestContextEndsNode cancels the context Start was given.
func TestContextEndsNode(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	n, err := Start(ctx, Config{Name: "a@127.0.0.1", Cookie: Cookie("x"), Handler: newRecorder(), Logger: slog.New(newLogLines())})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	<-n.ctx.Done()
	n.Close()
	if _, err := net.Dial("tcp", n.Addr().String()); err == nil {
		t.Error("it still listens")
	}
}

// TestTicks leaves a BEAM of a short tick time without traffic for longer than
// that: on an idle link, and on one whose handler does not return.
func TestTicks(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes longer than a tick time of 8 s")
	}
	epmd := testEPMD(t)
	b := startBEAM(t, epmd, testCookie, "-kernel", "net_ticktime", "8")
	idle, _, _ := startNode(t, epmd, nil)
	held, r, _ := startNode(t, epmd, nil)
	b.want("8", "net_kernel:get_net_ticktime().")
	b.want("[pong,pong]", "I = '%s', H = '%s', [net_adm:ping(X) || X <- [I, H]].", idle.Name(), held.Name())
	b.want("ok", "[erlang:monitor_node(X, true) || X <- [I, H]], Call = gen_server:send_request({scanode, H}, hold), ok.")
	b.want("ok", "receive {nodedown, X} -> X after 14000 -> ok end.")
	close(r.hold)
	b.want("{reply,hold}", "gen_server:receive_response(Call, 5000).")
	b.want("hello", "gen_server:call({scanode, I}, hello).")
}

// TestCookieIsNotPrinted prints everything that ever held a cookie.
func TestCookieIsNotPrinted(t *testing.T) {
	t.Parallel()
	cfg := Config{Name: "a@127.0.0.1", Cookie: Cookie(testCookie), Handler: newRecorder(), Logger: slog.New(newLogLines())}
	n, err := Start(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	var out bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&out, nil))
	cfg.Handler, cfg.Logger = nil, nil // nothing of theirs is of interest
	for _, v := range []any{cfg, &cfg, cfg.Cookie, &cfg.Cookie, n} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
	}
	log.Info("x", "cookie", cfg.Cookie)
	for _, secret := range []string{testCookie, fmt.Sprintf("%x", testCookie), fmt.Sprint([]byte(testCookie))} {
		if strings.Contains(out.String(), strings.Trim(secret, "[]")) {
			t.Errorf("printed: %s", secret)
		}
	}
}

// TestConfigRefused starts nodes that cannot be.
func TestConfigRefused(t *testing.T) {
	good := Config{Name: "a@b", Cookie: Cookie("x"), Handler: newRecorder()}
	for what, change := range map[string]func(*Config){
		"no host":       func(c *Config) { c.Name = "a" },
		"two @":         func(c *Config) { c.Name = "a@b@c" },
		"a control":     func(c *Config) { c.Name = "a\n@b" },
		"a long name":   func(c *Config) { c.Name = etf.Atom(strings.Repeat("a", 255) + "@b") },
		"no cookie":     func(c *Config) { c.Cookie = nil },
		"no handler":    func(c *Config) { c.Handler = nil },
		"huge frames":   func(c *Config) { c.MaxFrameBytes = 1 << 31 },
		"no port":       func(c *Config) { c.EPMD = "127.0.0.1" },
		"an empty name": func(c *Config) { c.Processes = []etf.Atom{""} },
	} {
		cfg := good
		change(&cfg)
		if n, err := Start(context.Background(), cfg); err == nil {
			t.Errorf("%s: started", what)
			n.Close()
		}
	}
}

// awaitNoGoroutines returns when no goroutine runs code of a node or a link. It
// gives those that are at their end already the chance to get there.
func awaitNoGoroutines(t *testing.T) {
	t.Helper()
	buf := make([]byte, 4<<20)
	for ctx := testContext(t); ; runtime.Gosched() {
		stacks := string(buf[:runtime.Stack(buf, true)])
		if !strings.Contains(stacks, "node.(*Node)") && !strings.Contains(stacks, "node.(*Link)") {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("goroutines are left:\n%s", stacks)
		}
	}
}
