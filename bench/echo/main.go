// Command echo answers a benchmark with the packages node and port and nothing
// else: as a node, over standard input and output, or over a Unix domain socket.
//
//	echo node NAME COOKIE-FILE
//	echo port [-pipe-in BYTES] [-pipe-out BYTES] [-buffer BYTES] [-poller]
//	echo unix PATH
//
// What it understands is in benchmark.go.
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"scanode/etf"
	"scanode/node"
	"scanode/port"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 3 && args[0] == "node":
		return serveNode(args[1], args[2])
	case len(args) >= 1 && args[0] == "port":
		return servePort(args[1:])
	case len(args) == 2 && args[0] == "unix":
		return serveUnix(args[1])
	}
	return errors.New("usage: echo node NAME COOKIE-FILE | port | unix PATH")
}

type nodeHandler struct{ benches chan *benchmark }

func (h nodeHandler) Up(l *node.Link) {}

func (h nodeHandler) Message(l *node.Link, _ etf.Atom, msg []byte) {
	b := <-h.benches
	if err := b.message(l, msg); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	h.benches <- b
}

func (h nodeHandler) Down(*node.Link, error) {}

func serveNode(name, cookieFile string) error {
	cookie, err := os.ReadFile(cookieFile)
	if err != nil {
		return err
	}
	h := nodeHandler{benches: make(chan *benchmark, 1)}
	h.benches <- newBenchmark()
	n, err := node.Start(context.Background(), node.Config{
		Name: etf.Atom(name), Cookie: node.Cookie(bytes.TrimSpace(cookie)), EPMD: node.DefaultEPMD,
		Processes: []etf.Atom{"echo"}, Handler: h,
	})
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until the benchmark ends
	return n.Close()
}

type portHandler struct {
	conn  *port.Conn
	bench *benchmark
}

func (h portHandler) Message(msg []byte) error { return h.bench.message(h.conn, msg) }

// pipeSize is F_SETPIPE_SZ.
const pipeSize = 1031

func servePort(args []string) error {
	fs := flag.NewFlagSet("port", flag.ContinueOnError)
	sizes := [2]int{}
	fs.IntVar(&sizes[0], "pipe-in", 0, "size of the pipe from the BEAM; 0 leaves package port's")
	fs.IntVar(&sizes[1], "pipe-out", 0, "size of the pipe to the BEAM; 0 leaves package port's")
	buffer := fs.Int("buffer", 0, "size of the read buffer; 0 leaves package port's")
	poller := fs.Bool("poller", false, "non-blocking reads and writes by the runtime's poller")
	if err := fs.Parse(args); err != nil {
		return err
	}
	in, out := os.Stdin, os.Stdout
	if *poller {
		for fd := range 2 {
			if err := syscall.SetNonblock(fd, true); err != nil {
				return err
			}
		}
		in, out = os.NewFile(0, "stdin"), os.NewFile(1, "stdout")
	}
	var r io.Reader = in
	if *buffer > 0 {
		r = bufio.NewReaderSize(in, *buffer)
	}
	return servePipe(r, out, func() error { return resize(sizes) })
}

// resize sets the sizes of the pipes at file descriptors 0 and 1.
func resize(sizes [2]int) error {
	for fd, size := range sizes {
		if size == 0 {
			continue
		}
		if _, _, e := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), pipeSize, uintptr(size)); e != 0 {
			return fmt.Errorf("pipe size of %d: %w", fd, e)
		}
	}
	return nil
}

// servePipe serves one connection. It calls ready once package port has done what
// it does to a pipe.
func servePipe(r io.Reader, w io.Writer, ready func() error) error {
	conn, err := port.New(r, w, port.Config{Version: "bench"})
	if err != nil {
		return err
	}
	if err := ready(); err != nil {
		return err
	}
	return conn.Serve(portHandler{conn: conn, bench: newBenchmark()})
}

func serveUnix(path string) error {
	l, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	defer l.Close()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		l.Close()
		os.Exit(0)
	}()
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		if err := servePipe(conn, conn, func() error { return nil }); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		conn.Close()
	}
}
