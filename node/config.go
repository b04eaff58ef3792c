package node

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"strings"
	"time"

	"scanode/etf"
)

// Config says who the node is and how it behaves. Name, Cookie and Handler are
// needed; the zero value of every other field stands for its default.
type Config struct {
	// Name is the full name, alive@host. Where host has a dot, the cluster
	// uses long names (erl -name), else short ones (erl -sname).
	Name etf.Atom

	// Cookie is the cluster's secret.
	Cookie Cookie

	// Listen is the TCP address to accept links on. Default 127.0.0.1:0: the
	// nodes of other hosts cannot connect.
	Listen string

	// EPMD is the address of the port mapper to register with and to ask for
	// other nodes. Empty: none; then peers must know the port, and Connect
	// cannot be used.
	EPMD string

	// PeerPort is the port of every other node where there is no epmd to ask, as
	// -erl_epmd_port of the BEAM. 0: unknown.
	PeerPort uint16

	// TLS makes links TLS, as -proto_dist inet_tls of the BEAM: every peer must
	// show a certificate that is accepted and names the host of its node name,
	// on top of the cookie. It is called at Start and for every link, from any
	// goroutine, so that renewed credentials are used from then on. nil: links
	// are plain.
	TLS func() (Credentials, error)

	// Fragments announces that long messages may come in pieces, those of
	// several senders between each other. A peer then may leave messages of
	// four frames' length in all unfinished at once. Default: messages come
	// whole, one after another.
	Fragments bool

	// Processes are the registered names of this node.
	Processes []etf.Atom

	// Allow decides by name who may connect, before a challenge is sent. nil:
	// everybody who knows the cookie.
	Allow func(name etf.Atom) bool

	// MaxFrameBytes bounds a frame in both directions. Default 64 MiB.
	MaxFrameBytes int

	// Handshake bounds a handshake, and one exchange with epmd. Default 7 s,
	// the BEAM's.
	Handshake time.Duration

	// WriteTimeout ends a link whose peer takes less than 1 MiB of what is
	// being written in that time. Default 15 s.
	WriteTimeout time.Duration

	// TickTime is the cluster's net_ticktime: a link on which nothing has
	// arrived for a quarter more than that ends. Peers of a shorter one are
	// served too, for their ticks are answered. Default 60 s.
	TickTime time.Duration

	// Logger gets the node's log lines. Default slog.Default().
	Logger *slog.Logger

	// Handler gets what arrives.
	Handler Handler
}

// DefaultEPMD is where epmd listens unless ERL_EPMD_PORT says otherwise.
const DefaultEPMD = "127.0.0.1:4369"

const (
	defaultListen       = "127.0.0.1:0"
	defaultHandshake    = 7 * time.Second
	defaultWriteTimeout = 15 * time.Second
	defaultTickTime     = 60 * time.Second
)

// Handler gets what arrives on the links of a node. Its methods may be called
// for different links at the same time. A panic in one of them ends the link.
type Handler interface {
	// Up says that a link is established. It precedes the link's first
	// Message.
	Up(l *Link)

	// Message delivers a message to the registered name to. msg is one
	// encoded term without its version byte; it belongs to the handler and
	// has not been checked. While Message runs nothing is read from the link:
	// that is the way to slow its sender down. It must return when l.Done is
	// closed.
	Message(l *Link, to etf.Atom, msg []byte)

	// Down says that a link has ended and why. It follows the last Message
	// and the calls of the functions given to Monitor. A new link to the same
	// node comes up only after Down has returned.
	Down(l *Link, err error)
}

// withDefaults checks the configuration and fills in the defaults.
func (c Config) withDefaults() (Config, error) {
	if _, err := checkNodeName([]byte(c.Name)); err != nil {
		return c, fmt.Errorf("node: %w: it must read name@host", err)
	}
	switch {
	case len(c.Cookie) == 0:
		return c, errors.New("node: no cookie")
	case c.Handler == nil:
		return c, errors.New("node: no handler")
	case c.MaxFrameBytes < 0 || c.MaxFrameBytes > math.MaxInt32:
		return c, fmt.Errorf("node: frames of %d bytes: not within 1 and %d", c.MaxFrameBytes, math.MaxInt32)
	case c.Handshake < 0 || c.WriteTimeout < 0 || c.TickTime < 0:
		return c, errors.New("node: a negative duration")
	}
	for _, p := range c.Processes {
		if p == "" || len(p) > maxNameBytes {
			return c, fmt.Errorf("node: %q cannot be a registered name", p)
		}
	}
	setDefault(&c.Listen, defaultListen)
	setDefault(&c.MaxFrameBytes, defaultMaxFrameBytes)
	setDefault(&c.Handshake, defaultHandshake)
	setDefault(&c.WriteTimeout, defaultWriteTimeout)
	setDefault(&c.TickTime, defaultTickTime)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Allow == nil {
		c.Allow = func(etf.Atom) bool { return true }
	}
	if c.EPMD != "" {
		if _, _, err := net.SplitHostPort(c.EPMD); err != nil {
			return c, fmt.Errorf("node: the address of epmd: %w", err)
		}
	}
	return c, nil
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// splitName cuts a checked name in two.
func splitName(name etf.Atom) (alive, host string) {
	alive, host, _ = strings.Cut(string(name), "@")
	return alive, host
}
