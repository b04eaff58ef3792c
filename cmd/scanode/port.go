package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"scanode/port"
	"scanode/server"
)

func portCommand() *cobra.Command {
	var report string
	var memory memoryFlags
	cmd := &cobra.Command{
		Use:   "port",
		Short: "Serve the BEAM that started this program, over standard input and output",
		Long: `Serve the BEAM that started this program with open_port and {packet, 4}.

Standard output carries frames only. At the end of standard input and at SIGTERM
everything is flushed and closed, and the program exits with status 0.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return runPort(report, memory) },
	}
	cmd.Flags().StringVar(&report, "crash-report", "", "file that receives the report of a fatal fault")
	memory.register(cmd.Flags())
	return cmd
}

func runPort(report string, memory memoryFlags) error {
	limit, err := memory.plan()
	if err != nil {
		return err
	}
	limitHeap(limit)
	// The BEAM may be gone while there is still something to say to it. That is
	// an error of the write, and no reason to end before everything is flushed.
	signal.Ignore(syscall.SIGPIPE)
	if info, err := os.Stdin.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		return errors.New("this command talks to an Erlang runtime that started it (open_port with {packet, 4}), not to a terminal")
	}
	var unreported error
	if report != "" {
		unreported = reportTo(report)
	}
	stop := stopSignals()
	// Frames own the real standard output; whatever else writes to it must not
	// get between them.
	out := os.Stdout
	os.Stdout = os.Stderr
	conn, err := port.New(os.Stdin, out, port.Config{Version: version})
	if err != nil {
		return fmt.Errorf("the BEAM does not read: %w", err)
	}
	log := slog.New(&portLog{conn: conn})
	if unreported != nil {
		log.Warn("the report of a fatal fault would be lost", "error", unreported)
	}
	srv, closeAll := newServer(log, memory, server.AbsolutePath)
	link := srv.Attach(conn)
	ended := make(chan error, 1)
	go func() { ended <- conn.Serve(link) }()
	select {
	case err = <-ended:
		if err != nil {
			log.Error(err.Error())
		}
	case <-stop:
		log.Info("ending: SIGTERM")
		_ = conn.Ending() // an error means that nobody is there to ask for anything
	}
	if cerr := closeAll(); err == nil {
		err = cerr
	}
	return err
}

// reportTo makes a file take what goes to standard error, which nobody reads who
// starts a port: the report of a fatal fault above all. The BEAM removes it.
func reportTo(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Dup2(int(f.Fd()), int(os.Stderr.Fd()))
}

// portLog is a slog.Handler that sends lines to the BEAM's logger.
type portLog struct {
	conn  *port.Conn
	attrs string // already formatted, of With
}

func (h *portLog) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

func (h *portLog) Handle(_ context.Context, r slog.Record) error {
	var line strings.Builder
	line.WriteString(r.Message)
	line.WriteString(h.attrs)
	r.Attrs(func(a slog.Attr) bool {
		formatAttr(&line, a)
		return true
	})
	return h.conn.Log(levelName(r.Level), line.String())
}

func (h *portLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	var line strings.Builder
	line.WriteString(h.attrs)
	for _, a := range attrs {
		formatAttr(&line, a)
	}
	return &portLog{conn: h.conn, attrs: line.String()}
}

// WithGroup is not used by this program; groups are not shown.
func (h *portLog) WithGroup(string) slog.Handler { return h }

func formatAttr(line *strings.Builder, a slog.Attr) {
	fmt.Fprintf(line, " %s=%v", a.Key, a.Value)
}

func levelName(l slog.Level) string {
	switch {
	case l >= slog.LevelError:
		return "error"
	case l >= slog.LevelWarn:
		return "warning"
	case l >= slog.LevelInfo:
		return "info"
	}
	return "debug"
}
