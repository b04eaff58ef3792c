// Command ergo answers a benchmark as echo does, by a node made with
// ergo-services/ergo:
//
//	ergo NAME COOKIE-FILE
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/ergo-services/ergo"
	"github.com/ergo-services/ergo/etf"
	"github.com/ergo-services/ergo/gen"
	"github.com/ergo-services/ergo/node"
	"github.com/ergo-services/ergo/proto/dist"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	cookie, err := os.ReadFile(os.Args[2])
	if err != nil {
		return err
	}
	// More than one handler does not keep the order of messages.
	proto := node.DefaultProtoOptions()
	proto.NumHandlers = 1
	n, err := ergo.StartNode(os.Args[1], string(bytes.TrimSpace(cookie)), node.Options{
		Proto:  dist.CreateProto(proto),
		System: node.System{DisableAnonMetrics: true},
	})
	if err != nil {
		return err
	}
	if _, err := n.Spawn("echo", gen.ProcessOptions{MailboxSize: 65535}, newEcho()); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until the benchmark ends
	n.Stop()
	return nil
}

type echo struct {
	gen.Server
	count  int
	list   etf.List
	binary []byte
}

func newEcho() *echo {
	e := &echo{list: make(etf.List, 100), binary: make([]byte, 1_000_000)}
	for i := range e.list {
		e.list[i] = etf.Tuple{fmt.Appendf(nil, "%016d", i), make([]byte, 100)}
	}
	return e
}

func (e *echo) HandleCall(*gen.ServerProcess, gen.ServerFrom, etf.Term) (etf.Term, gen.ServerStatus) {
	return etf.Atom("pong"), gen.ServerStatusOK
}

func (e *echo) HandleInfo(p *gen.ServerProcess, message etf.Term) gen.ServerStatus {
	m, ok := message.(etf.Tuple)
	if !ok || len(m) < 2 {
		return gen.ServerStatusOK
	}
	if m[0] == etf.Atom("m") {
		e.count++
		return gen.ServerStatusOK
	}
	times := 1
	if len(m) == 3 {
		times = number(m[2])
	}
	var reply etf.Term
	switch m[0] {
	case etf.Atom("ping"):
		reply = etf.Atom("pong")
	case etf.Atom("count"):
		reply, e.count = e.count, 0
	case etf.Atom("small"):
		reply = etf.Tuple{etf.Atom("m"), 1000}
	case etf.Atom("lists"):
		reply = e.list
	case etf.Atom("binaries"):
		reply = e.binary
	}
	for range times {
		if err := p.Send(m[1], reply); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return gen.ServerStatusOK
		}
	}
	return gen.ServerStatusOK
}

func number(t etf.Term) int {
	switch n := t.(type) {
	case int:
		return n
	case int64:
		return int(n)
	}
	return 0
}
