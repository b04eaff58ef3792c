package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"scanode/etf"
	"scanode/node"
	"scanode/server"
)

// registered is the name under which requests reach the node.
const registered etf.Atom = "scanode"

// maxFrameMiB is the largest --max-frame-mib: what a frame's length can say.
const maxFrameMiB = 2047

type serveFlags struct {
	name, cookieFile, data, listen, epmd string
	anyPath, verbose                     bool
	allow                                []string
	maxFrameMiB                          int
	memory                               memoryFlags
	tls                                  tlsFlags
}

func serveCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Join an Erlang cluster as a hidden node",
		Long: `Join an Erlang cluster as a hidden node and answer requests to the registered
name scanode. Log lines go to standard error. At SIGTERM everything is flushed and
closed, and the program exits with status 0; a second SIGTERM ends it at once.`,
		Example: `  scanode serve --name scan@db1.example.org --data /var/lib/scanode
  erl -name app@db1.example.org -eval "pong = net_adm:ping('scan@db1.example.org')."`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return runServe(f) },
	}
	fs := cmd.Flags()
	fs.StringVar(&f.name, "name", "", "this node's name, name@host; without a host, this machine's short name is added.\nA dot in the host makes it a long name, as erl -name, else it is as erl -sname (required)")
	fs.StringVar(&f.cookieFile, "cookie-file", "", "file that holds the cluster's cookie; only its owner may read it (default ~/.erlang.cookie)")
	fs.StringVar(&f.data, "data", "", "directory below which stores are opened; it is made if missing (required unless --any-path)")
	fs.BoolVar(&f.anyPath, "any-path", false, "open stores at any absolute path instead, with the rights of this process")
	fs.StringVar(&f.listen, "listen", "127.0.0.1:0", "address and port to accept links on; port 0 takes a free one.\nOther hosts can connect only if it is not a loopback address")
	fs.StringVar(&f.epmd, "epmd", defaultEPMD(), "address of the Erlang port mapper, or none; ERL_EPMD_PORT sets the default's port.\nIf it ends, this node registers again when it is back")
	fs.StringSliceVar(&f.allow, "allow", nil, "names of the nodes that may connect; all that know the cookie if not given")
	f.memory.register(fs)
	fs.IntVar(&f.maxFrameMiB, "max-frame-mib", 64, "largest message in MiB; a larger one ends the link, with a line in the log")
	fs.BoolVar(&f.verbose, "verbose", false, "log more")
	f.tls.register(cmd)
	_ = cmd.MarkFlagRequired("name") // the flag exists
	return cmd
}

func defaultEPMD() string {
	if port := os.Getenv("ERL_EPMD_PORT"); port != "" {
		return "127.0.0.1:" + port
	}
	return node.DefaultEPMD
}

func runServe(f serveFlags) error {
	limit, err := f.memory.plan()
	if err != nil {
		return err
	}
	if f.maxFrameMiB < 1 || f.maxFrameMiB > maxFrameMiB {
		return fmt.Errorf("--max-frame-mib %d: not within 1 and %d", f.maxFrameMiB, maxFrameMiB)
	}
	level := slog.LevelInfo
	if f.verbose {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	name, err := fullName(f.name)
	if err != nil {
		return err
	}
	cookie, err := readCookie(f.cookieFile)
	if err != nil {
		return err
	}
	resolve, err := f.resolver()
	if err != nil {
		return err
	}
	limitHeap(limit)
	stop := stopSignals()
	srv, closeAll := newServer(log, f.memory, resolve)
	if f.epmd == "none" {
		f.epmd = ""
	}
	n, err := startNode(log, stop, node.Config{
		Name:          name,
		Cookie:        cookie,
		Listen:        f.listen,
		EPMD:          f.epmd,
		Processes:     []etf.Atom{registered},
		Allow:         f.allowed(),
		MaxFrameBytes: f.maxFrameMiB << 20,
		TLS:           f.tls.credentials(),
		Logger:        log,
		Handler:       &linkHandler{srv: srv, log: log},
	})
	if err != nil {
		return errors.Join(withHint(err), closeAll())
	}
	if n == nil {
		return closeAll() // stopped before there was a node
	}
	<-stop
	log.Info("ending: signal")
	return errors.Join(closeAll(), n.Close())
}

// A node whose port mapper is not there yet, as at the start of a machine, waits
// for it this long.
const (
	epmdWait  = 30 * time.Second
	epmdPause = time.Second
)

// startNode starts the node. It tries again while epmd does not answer, and says
// so; nil without an error if stop was closed meanwhile.
func startNode(log *slog.Logger, stop <-chan struct{}, cfg node.Config) (*node.Node, error) {
	for deadline := time.Now().Add(epmdWait); ; {
		n, err := node.Start(context.Background(), cfg)
		if !errors.Is(err, node.ErrNoEPMD) || time.Now().After(deadline) {
			return n, err
		}
		log.Warn("waiting for the port mapper", "epmd", cfg.EPMD, "error", err)
		select {
		case <-time.After(epmdPause):
		case <-stop:
			return nil, nil
		}
	}
}

// withHint adds to an error of the node what to do about it.
func withHint(err error) error {
	switch {
	case errors.Is(err, node.ErrNoEPMD):
		return fmt.Errorf("%w\nstart the port mapper (epmd -daemon), name another with --epmd, or use --epmd none with a fixed port in --listen", err)
	case errors.Is(err, node.ErrNameTaken):
		return fmt.Errorf("%w\nanother node of this name runs on this host: end it, or choose another --name", err)
	}
	return err
}

// fullName adds this machine's short name where host is missing.
func fullName(name string) (etf.Atom, error) {
	if !strings.Contains(name, "@") {
		host, err := os.Hostname()
		if err != nil {
			return "", fmt.Errorf("--name %s has no host: %w", name, err)
		}
		host, _, _ = strings.Cut(host, ".")
		name += "@" + host
	}
	return etf.Atom(name), nil
}

// readCookie reads the cookie from a file that nobody else can read. It never
// comes from the command line or the environment, which others can see.
func readCookie(path string) (node.Cookie, error) {
	if path == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, fmt.Errorf("--cookie-file is not given: %w", err)
		}
		path = filepath.Join(home, ".erlang.cookie")
	}
	b, err := readSecret("cookie file", path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cookie file %s does not exist; name the cluster's with --cookie-file", path)
	}
	if err != nil {
		return nil, err
	}
	cookie := bytes.TrimSpace(b)
	if len(cookie) == 0 || len(cookie) > 255 {
		return nil, fmt.Errorf("cookie file %s must hold 1 to 255 characters", path)
	}
	return cookie, nil
}

// resolver says which directories may be opened.
func (f *serveFlags) resolver() (func(string) (string, error), error) {
	switch {
	case f.anyPath && f.data != "":
		return nil, errors.New("--data and --any-path exclude each other")
	case f.anyPath:
		return server.AbsolutePath, nil
	case f.data == "":
		return nil, errors.New("--data is missing: the directory below which stores are opened")
	}
	root, err := filepath.Abs(f.data)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, fmt.Errorf("--data: %w", err)
	}
	return server.BelowPath(root), nil
}

func (f *serveFlags) allowed() func(etf.Atom) bool {
	if len(f.allow) == 0 {
		return nil
	}
	return func(name etf.Atom) bool { return slices.Contains(f.allow, string(name)) }
}

// linkHandler joins the node's links to the server.
type linkHandler struct {
	srv   *server.Server
	log   *slog.Logger
	links sync.Map // *node.Link → *server.Link
}

func (h *linkHandler) Up(l *node.Link) { h.links.Store(l, h.srv.Attach(l)) }

func (h *linkHandler) Message(l *node.Link, _ etf.Atom, msg []byte) {
	link, ok := h.links.Load(l)
	if !ok {
		return
	}
	if err := link.(*server.Link).Message(msg); err != nil {
		h.log.Error("malformed message, ending the link", "peer", l.Node(), "bytes", len(msg), "error", err)
		l.Close()
	}
}

func (h *linkHandler) Down(l *node.Link, _ error) {
	if link, ok := h.links.LoadAndDelete(l); ok {
		link.(*server.Link).Detach()
	}
}
