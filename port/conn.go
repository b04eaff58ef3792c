package port

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"scanode/etf"
)

// DefaultMaxFrameBytes bounds frames from the BEAM unless Config says otherwise.
const DefaultMaxFrameBytes = 64 << 20

// protocolVersion is announced in the hello frame and grows when the protocol
// changes so that an older client would misunderstand it.
const protocolVersion = 1

// Handler receives what the BEAM sends.
type Handler interface {
	// Message is called with the content of each frame behind the 131, freshly
	// allocated. An error says that it is not one term; it ends the connection.
	// While Message runs nothing is read, which is how a handler that has
	// enough to do holds the BEAM back.
	Message(msg []byte) error
}

// Config describes a Conn.
type Config struct {
	Version       string // of the program, for the hello frame
	MaxFrameBytes int    // 0 means DefaultMaxFrameBytes
}

// Conn is the connection to the BEAM that started the program.
type Conn struct {
	cfg  Config
	r    *bufio.Reader
	done chan struct{} // closed when Serve has returned

	wmu sync.Mutex // held while a frame is written
	w   io.Writer
	buf []byte // frame head, reused under wmu
	err error  // the first failed write; later ones return it

	// tell is held from a change of monitors until the BEAM was told of it, so
	// that monitor and demonitor frames go out in the order of the changes. The
	// reading goroutine takes only mmu and so never waits for a write.
	tell     sync.Mutex
	mmu      sync.Mutex
	monitors map[etf.Pid]map[*monitor]struct{}
	down     bool // the BEAM is gone, no monitor can be set any more
}

type monitor struct{ down func() }

// New returns a Conn that reads frames from r and writes them to w, and sends
// the hello frame.
func New(r io.Reader, w io.Writer, cfg Config) (*Conn, error) {
	if cfg.MaxFrameBytes == 0 {
		cfg.MaxFrameBytes = DefaultMaxFrameBytes
	}
	widen(w)
	c := &Conn{cfg: cfg, r: bufio.NewReaderSize(r, 64<<10), done: make(chan struct{}), w: w,
		monitors: map[etf.Pid]map[*monitor]struct{}{}}
	hello, err := etf.AppendTerm(nil, etf.Tuple{etf.Atom("hello"), etf.Map{
		{Key: etf.Atom("version"), Value: []byte(cfg.Version)},
		{Key: etf.Atom("protocol"), Value: int64(protocolVersion)},
	}})
	if err != nil {
		return nil, err
	}
	return c, c.sendOwner(hello)
}

// Serve reads frames and hands them to h until the BEAM closes its end, and then
// returns nil. A malformed frame ends it with an error that says why: what
// follows cannot be trusted. Before it returns, every monitored process counts
// as dead.
func (c *Conn) Serve(h Handler) error {
	defer close(c.done)
	defer c.allDown()
	for {
		frame, err := readFrame(c.r, c.cfg.MaxFrameBytes)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading from the BEAM: %w", err)
		}
		msg, err := etf.SkipVersion(frame)
		if err == nil {
			if pid, ok := readDown(msg); ok {
				c.pidDown(pid)
			} else {
				err = h.Message(msg)
			}
		}
		if err != nil {
			return fmt.Errorf("malformed frame of %d bytes from the BEAM: %w", len(frame), err)
		}
	}
}

// readDown recognises {down, Pid}.
func readDown(msg []byte) (etf.Pid, bool) {
	n, rest, err := etf.ReadTupleHeader(msg)
	if err != nil || n != 2 {
		return etf.Pid{}, false
	}
	tag, rest, err := etf.ReadAtom(rest)
	if err != nil || string(tag) != "down" {
		return etf.Pid{}, false
	}
	pid, rest, err := etf.ReadPid(rest)
	return pid, err == nil && len(rest) == 0
}

// Done is closed when Serve has returned.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Node names the peer in logs and in error texts.
func (c *Conn) Node() etf.Atom { return "the BEAM that started scanode" }

// Send delivers a message to a process: one term without the 131, head followed
// by body, which may be nil. It blocks until the BEAM has room.
func (c *Conn) Send(to etf.Pid, head, body []byte) error {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	return c.write(etf.AppendPid(c.begin(), to), head, body)
}

// SendAlias delivers a message to the process behind an alias, if that is still
// active.
func (c *Conn) SendAlias(alias etf.Ref, head, body []byte) error {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	return c.write(etf.AppendRef(c.begin(), alias), head, body)
}

// Log sends a line to the BEAM's logger. level is one of debug, info, notice,
// warning and error.
func (c *Conn) Log(level, text string) error {
	msg := etf.AppendTupleHeader(nil, 3)
	msg = etf.AppendAtom(msg, "log")
	msg = etf.AppendAtom(msg, etf.Atom(level))
	return c.sendOwner(etf.AppendBinary(msg, []byte(text)))
}

// Ending says that the program closes everything and will exit. Whoever asks for
// it from here on has to wait for the next one.
func (c *Conn) Ending() error { return c.sendOwner(etf.AppendAtom(nil, "ending")) }

func (c *Conn) sendOwner(msg []byte) error {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	return c.write(etf.AppendAtom(c.begin(), "port"), msg, nil)
}

// begin starts a frame in c.buf: room for the length, then {To, Msg} up to To.
func (c *Conn) begin() []byte {
	return etf.AppendTupleHeader(etf.AppendVersion(append(c.buf[:0], 0, 0, 0, 0)), 2)
}

// smallBody is the size up to which copying a body behind its head is cheaper
// than a second system call.
const smallBody = 16 << 10

func (c *Conn) write(frame, head, body []byte) error {
	if c.err != nil {
		return c.err
	}
	frame = append(frame, head...)
	if len(body) <= smallBody {
		frame, body = append(frame, body...), nil
	}
	c.buf = frame
	if cap(c.buf) > growStep {
		c.buf = nil
	}
	binary.BigEndian.PutUint32(frame, uint32(len(frame)+len(body)-4))
	if _, c.err = c.w.Write(frame); c.err == nil && body != nil {
		_, c.err = c.w.Write(body)
	}
	return c.err
}

// Monitor asks the BEAM to watch pid and calls down once, on the reading
// goroutine or on the caller's, when pid is dead or the BEAM is gone. After stop has
// returned down is not called any more, unless it is running already.
func (c *Conn) Monitor(pid etf.Pid, down func()) (stop func()) {
	m := &monitor{down: down}
	c.tell.Lock()
	c.mmu.Lock()
	if c.down {
		c.mmu.Unlock()
		c.tell.Unlock()
		down()
		return func() {}
	}
	set := c.monitors[pid]
	first := set == nil
	if first {
		set = map[*monitor]struct{}{}
		c.monitors[pid] = set
	}
	set[m] = struct{}{}
	c.mmu.Unlock()
	if first {
		c.tellMonitor("monitor", pid)
	}
	c.tell.Unlock()
	return func() {
		c.tell.Lock()
		defer c.tell.Unlock()
		c.mmu.Lock()
		_, live := set[m]
		delete(set, m)
		last := live && len(set) == 0
		if last {
			delete(c.monitors, pid)
		}
		c.mmu.Unlock()
		if last {
			c.tellMonitor("demonitor", pid)
		}
	}
}

func (c *Conn) tellMonitor(what etf.Atom, pid etf.Pid) {
	msg := etf.AppendAtom(etf.AppendTupleHeader(nil, 2), what)
	// A failed write means that the BEAM is gone; Serve notices and calls
	// every down.
	_ = c.sendOwner(etf.AppendPid(msg, pid))
}

func (c *Conn) pidDown(pid etf.Pid) {
	c.mmu.Lock()
	set := c.monitors[pid]
	delete(c.monitors, pid)
	downs := take(set)
	c.mmu.Unlock()
	for _, m := range downs {
		m.down()
	}
}

func (c *Conn) allDown() {
	c.mmu.Lock()
	c.down = true
	var downs []*monitor
	for _, set := range c.monitors {
		downs = append(downs, take(set)...)
	}
	clear(c.monitors)
	c.mmu.Unlock()
	for _, m := range downs {
		m.down()
	}
}

// take empties a set, so that stop finds its monitor gone.
func take(set map[*monitor]struct{}) []*monitor {
	var all []*monitor
	for m := range set {
		all = append(all, m)
	}
	clear(set)
	return all
}
