package node

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"scanode/etf"
)

// hungAfter is when a test gives up; none takes so long.
const hungAfter = 90 * time.Second

const testCookie = "the-cookie-of-these-tests"

// epmdProcess is an epmd of the tests' own, on a port of its own.
type epmdProcess struct {
	addr string
	cmd  *exec.Cmd
}

var sharedEPMD struct {
	sync.Once
	*epmdProcess
	err error
}

// testEPMD starts the epmd that the tests share. It ends with the test binary.
func testEPMD(t testing.TB) string {
	t.Helper()
	if _, err := exec.LookPath("erl"); err != nil {
		t.Skip("no erl on the path")
	}
	sharedEPMD.Do(func() {
		sharedEPMD.epmdProcess, sharedEPMD.err = startEPMD("127.0.0.1:0")
	})
	if sharedEPMD.err != nil {
		t.Fatal(sharedEPMD.err)
	}
	return sharedEPMD.addr
}

func TestMain(m *testing.M) {
	if name := os.Getenv(childName); name != "" {
		runChild(name)
	}
	code := m.Run()
	if sharedEPMD.epmdProcess != nil {
		sharedEPMD.stop()
	}
	os.Exit(code)
}

// startEPMD starts an epmd and returns when it answers.
func startEPMD(addr string) (*epmdProcess, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	addr = l.Addr().String()
	l.Close()
	host, port, _ := net.SplitHostPort(addr)
	// -d in the foreground, with its chatter on a pipe that says when it runs.
	cmd := exec.Command("epmd", "-d", "-d", "-port", port, "-address", host)
	out, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "entering the main select") {
			go io.Copy(io.Discard, out)
			return &epmdProcess{addr: addr, cmd: cmd}, nil
		}
	}
	cmd.Process.Kill()
	return nil, fmt.Errorf("epmd did not start: %v", cmd.Wait())
}

func (e *epmdProcess) stop() {
	e.cmd.Process.Kill()
	e.cmd.Wait()
}

// beam is an Erlang node that evaluates what it is told.
type beam struct {
	t       testing.TB
	name    etf.Atom
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers chan string
	noise   chan string // the last lines that are no answer
}

var beamNumber atomic.Uint32

// evaluator reads expressions, one a line, and writes their values. Bindings
// last.
const evaluator = `spawn(fun() ->
  F = fun F(Bs) -> case io:get_line("") of
    eof -> erlang:halt(0, [{flush, false}]);
    Line ->
      {V, Bs2} = try
        {ok, Ts, _} = erl_scan:string(Line),
        {ok, Es} = erl_parse:parse_exprs(Ts),
        {value, V1, Bs1} = erl_eval:exprs(Es, Bs), {V1, Bs1}
      catch C:E -> {{caught, C, E}, Bs} end,
      io:format("=> ~0P~n", [V, 60]), F(Bs2)
  end end, F([]) end).`

// startBEAM starts a visible node with long names on the loopback.
func startBEAM(t testing.TB, epmd, cookie string, args ...string) *beam {
	t.Helper()
	_, port, _ := net.SplitHostPort(epmd)
	return startNamedBEAM(t, port, fmt.Sprintf("beam%d_%d@127.0.0.1", os.Getpid(), beamNumber.Add(1)), cookie, args...)
}

// startNamedBEAM is startBEAM with a name and the port of its epmd.
func startNamedBEAM(t testing.TB, port, name, cookie string, args ...string) *beam {
	t.Helper()
	args = append([]string{"-noshell", "-name", name, "-setcookie", cookie, "-start_epmd", "false",
		"-kernel", "logger_level", "warning"}, args...)
	cmd := exec.Command("erl", append(args, "-eval", evaluator)...)
	cmd.Env = append(os.Environ(), "ERL_EPMD_PORT="+port, "HOME="+t.TempDir())
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	b := &beam{t: t, name: etf.Atom(name), cmd: cmd, in: in,
		answers: make(chan string, 16), noise: make(chan string, 1000)}
	go func() {
		defer close(b.answers)
		lines := bufio.NewReader(out)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			if answer, ok := strings.CutPrefix(line, "=> "); ok {
				b.answers <- strings.TrimSpace(answer)
				continue
			}
			select {
			case b.noise <- strings.TrimSpace(line):
			default:
			}
		}
	}()
	t.Cleanup(func() {
		in.Close()
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			for len(b.noise) > 0 {
				t.Log("beam:", <-b.noise)
			}
		}
	})
	b.want("ok", `ok.`)
	return b
}

// eval evaluates expressions and returns the value of the last as text.
func (b *beam) eval(format string, args ...any) string {
	b.t.Helper()
	text := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
	if _, err := io.WriteString(b.in, text+"\n"); err != nil {
		b.t.Fatalf("eval %s: %v", text, err)
	}
	answer, ok := <-b.answers
	if !ok {
		b.t.Fatalf("eval %s: the BEAM is gone", text)
	}
	return answer
}

// want evaluates expressions and compares.
func (b *beam) want(want, format string, args ...any) {
	b.t.Helper()
	if got := b.eval(format, args...); got != want {
		b.t.Errorf("%s\n got %s\nwant %s", fmt.Sprintf(format, args...), got, want)
	}
}

// wideLimits are for messages of any size that tests send.
var wideLimits = etf.Limits{Depth: etf.DefaultLimits.Depth, Count: 8 << 20, Bytes: 1 << 30}

// event is something a recorder's handler was told.
type event struct {
	what string // up, message, down
	link *Link
	to   etf.Atom
	msg  etf.Term
	err  error
}

// recorder is a Handler that answers calls and records the rest.
type recorder struct {
	events chan event
	hold   chan struct{} // what the request hold waits for
}

func newRecorder() *recorder {
	return &recorder{events: make(chan event, 100_000), hold: make(chan struct{})}
}

func (r *recorder) Up(l *Link)              { r.events <- event{what: "up", link: l} }
func (r *recorder) Down(l *Link, err error) { r.events <- event{what: "down", link: l, err: err} }

// Message answers `{'$gen_call', {From, Tag}, Request}` with {Tag, Request} and
// `{echo, From, Term}` with {Self, Term}. It records everything else.
func (r *recorder) Message(l *Link, to etf.Atom, msg []byte) {
	term, _, err := etf.Decode(msg, wideLimits)
	if err != nil {
		r.events <- event{what: "message", link: l, to: to, err: err}
		return
	}
	tuple, _ := term.(etf.Tuple)
	switch {
	case len(tuple) == 3 && tuple[0] == etf.Term(etf.Atom("$gen_call")):
		from := tuple[1].(etf.Tuple)
		if tuple[2] == etf.Term(etf.Atom("hold")) {
			select {
			case <-r.hold:
			case <-l.Done():
			}
		}
		head := mustAppend(etf.AppendTupleHeader(nil, 2), from[1])
		body := mustAppend(nil, tuple[2])
		if tag, ok := from[1].(etf.Improper); ok {
			err = l.SendAlias(tag.Tail.(etf.Ref), head, body)
		} else {
			err = l.Send(from[0].(etf.Pid), head, body)
		}
	case len(tuple) == 3 && tuple[0] == etf.Term(etf.Atom("echo")):
		head := etf.AppendTupleHeader(nil, 2)
		head = etf.AppendPid(head, l.node.procs.pids[to])
		err = l.Send(tuple[1].(etf.Pid), head, mustAppend(nil, tuple[2]))
	case len(tuple) == 2 && tuple[0] == etf.Term(etf.Atom("panic")):
		panic("as asked")
	default:
		r.events <- event{what: "message", link: l, to: to, msg: term}
		return
	}
	if err != nil {
		r.events <- event{what: "message", link: l, to: to, err: err}
	}
}

func mustAppend(dst []byte, t etf.Term) []byte {
	dst, err := etf.AppendTerm(dst, t)
	if err != nil {
		panic(err)
	}
	return dst
}

// next returns the next event, which must be of that kind.
func (r *recorder) next(t testing.TB, what string) event {
	t.Helper()
	var e event
	select {
	case e = <-r.events:
	case <-time.After(hungAfter):
		t.Fatalf("no %s", what)
	}
	if e.what != what {
		t.Fatalf("got %s (%v, %v), want %s", e.what, e.msg, e.err, what)
	}
	return e
}

// logLines is a slog handler that keeps what it is told.
type logLines struct {
	mu    sync.Mutex
	lines []string
	more  chan struct{}
}

func newLogLines() *logLines { return &logLines{more: make(chan struct{}, 1)} }

func (h *logLines) Enabled(context.Context, slog.Level) bool { return true }
func (h *logLines) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h *logLines) WithGroup(string) slog.Handler            { return h }

func (h *logLines) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", r.Level, r.Message)
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&b, " %s=%v", a.Key, a.Value.Resolve())
		return true
	})
	h.mu.Lock()
	h.lines = append(h.lines, b.String())
	h.mu.Unlock()
	nudge(h.more)
	return nil
}

func (h *logLines) all() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.lines, "\n")
}

// await returns when a line contains text.
func (h *logLines) await(text string) {
	for hung := time.After(hungAfter); !strings.Contains(h.all(), text); {
		select {
		case <-h.more:
		case <-hung:
			panic(fmt.Sprintf("no line with %q in the log:\n%s", text, h.all()))
		}
	}
}

// startNode starts a node that closes with the test.
func startNode(t testing.TB, epmd string, change func(*Config)) (*Node, *recorder, *logLines) {
	t.Helper()
	r, lines := newRecorder(), newLogLines()
	cfg := Config{
		Name:      etf.Atom(fmt.Sprintf("go%d_%d@127.0.0.1", os.Getpid(), beamNumber.Add(1))),
		Cookie:    Cookie(testCookie),
		EPMD:      epmd,
		Processes: []etf.Atom{"scanode"},
		Logger:    slog.New(lines),
		Handler:   r,
	}
	if change != nil {
		change(&cfg)
	}
	n, err := Start(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		n.Close()
		if t.Failed() {
			t.Log(lines.all())
		}
		if strings.Contains(lines.all(), testCookie) {
			t.Error("the cookie is in the log")
		}
	})
	return n, r, lines
}

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
