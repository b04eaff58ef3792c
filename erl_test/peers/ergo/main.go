// Command ergo is a node of another kind, made with ergo-services/ergo: a visible
// one without UNLINK_ID and V4_NC. It opens a store of a scanode node, writes 1,000
// rows, reads one, scans all and closes it, and prints a line for each:
//
//	ergo NAME COOKIE-FILE NODE
//
// It ends with status 0, or says on standard error what was not as it should be.
package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/ergo-services/ergo"
	"github.com/ergo-services/ergo/etf"
	"github.com/ergo-services/ergo/gen"
	"github.com/ergo-services/ergo/node"
	"github.com/ergo-services/ergo/proto/dist"
)

const rows = 1000

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: ergo NAME COOKIE-FILE NODE")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(name, cookieFile, peer string) error {
	cookie, err := os.ReadFile(cookieFile)
	if err != nil {
		return err
	}
	// With more than one handler ergo does not keep the order of messages.
	proto := node.DefaultProtoOptions()
	proto.NumHandlers = 1
	n, err := ergo.StartNode(name, string(bytes.TrimSpace(cookie)), node.Options{
		Proto:  dist.CreateProto(proto),
		System: node.System{DisableAnonMetrics: true},
	})
	if err != nil {
		return err
	}
	defer n.Stop()
	c := &client{to: gen.ProcessID{Name: "scanode", Node: peer}, done: make(chan error, 1)}
	p, err := n.Spawn("client", gen.ProcessOptions{}, c)
	if err != nil {
		return err
	}
	if err := p.Send(p.Self(), etf.Atom("begin")); err != nil {
		return err
	}
	return <-c.done
}

// client is a process of the node. Its fields are used by that process only, but
// for done.
type client struct {
	gen.Server
	to   gen.ProcessID
	done chan error // the outcome

	id      etf.Term // of the store
	ref     etf.Ref  // of the scan
	seen    int      // rows of the scan
	batches int
}

// HandleInfo gets the messages that are no replies.
func (c *client) HandleInfo(p *gen.ServerProcess, message etf.Term) gen.ServerStatus {
	over := false
	var err error
	if message == etf.Atom("begin") {
		err = c.begin(p)
	} else {
		over, err = c.scanned(p, message)
	}
	if over && err == nil {
		err = c.end(p)
	}
	if over || err != nil {
		c.done <- err
		return gen.ServerStatusStop
	}
	return gen.ServerStatusOK
}

func (c *client) begin(p *gen.ServerProcess) error {
	opened, err := p.Call(c.to, etf.Tuple{etf.Atom("open"), []byte("from_ergo"), etf.Map{}})
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	ok, isTuple := opened.(etf.Tuple)
	if !isTuple || len(ok) != 2 || ok[0] != etf.Atom("ok") {
		return fmt.Errorf("open: %v", opened)
	}
	c.id = ok[1]
	fmt.Println("opened")

	ops := make(etf.List, rows)
	for i := range ops {
		ops[i] = etf.Tuple{etf.Atom("put"), key(i), key(i)[3:]}
	}
	wrote, err := p.Call(c.to, etf.Tuple{etf.Atom("write"), c.id, ops, etf.Map{etf.Atom("sync"): true}})
	if err != nil || wrote != etf.Atom("ok") {
		return fmt.Errorf("write: %v %v", wrote, err)
	}
	fmt.Printf("wrote %d rows\n", rows)

	got, err := p.Call(c.to, etf.Tuple{etf.Atom("get"), c.id, key(500)})
	if err != nil {
		return fmt.Errorf("get: %w", err)
	}
	found, isTuple := got.(etf.Tuple)
	if !isTuple || len(found) != 2 || found[0] != etf.Atom("ok") || !isBytes(found[1], key(500)[3:]) {
		return fmt.Errorf("get: %v", got)
	}
	fmt.Println("got one row")

	c.ref = p.MakeRef()
	return p.Send(c.to, etf.Tuple{etf.Atom("scan"), etf.Tuple{p.Self(), c.ref}, c.id,
		etf.Map{etf.Atom("max_batch_bytes"): 4096, etf.Atom("max_unacked_bytes"): 8192}})
}

func key(i int) []byte { return fmt.Appendf(nil, "key%05d", i) }

func isBytes(t etf.Term, want []byte) bool {
	b, ok := t.([]byte)
	return ok && bytes.Equal(b, want)
}

// scanned takes a message of the scan and says whether it was the last.
func (c *client) scanned(p *gen.ServerProcess, message etf.Term) (over bool, err error) {
	m, ok := message.(etf.Tuple)
	if !ok || len(m) != 3 || m[1] != c.ref {
		return false, fmt.Errorf("no message of the scan: %v", message)
	}
	switch m[0] {
	case etf.Atom("scan_batch"):
		bin, ok := m[2].([]byte)
		if !ok || len(bin) == 0 || bin[0] != 131 {
			return false, fmt.Errorf("no batch: %v", m[2])
		}
		term, _, err := etf.Decode(bin[1:], nil, etf.DecodeOptions{})
		if err != nil {
			return false, fmt.Errorf("a batch is one term: %w", err)
		}
		if err := c.batch(term); err != nil {
			return false, err
		}
		return false, p.Send(c.to, etf.Tuple{etf.Atom("scan_ack"), c.ref, len(bin)})
	case etf.Atom("scan_end"):
		how := "one batch"
		if c.batches > 1 {
			how = "batches"
		}
		fmt.Printf("scanned %d rows in %s\n", c.seen, how)
		return true, nil
	}
	return false, fmt.Errorf("the scan: %v", message)
}

func (c *client) batch(term etf.Term) error {
	list, ok := term.(etf.List)
	if !ok || len(list) == 0 {
		return fmt.Errorf("a batch is a list of rows, this is %v", term)
	}
	for _, row := range list {
		pair, ok := row.(etf.Tuple)
		if !ok || len(pair) != 2 || !isBytes(pair[0], key(c.seen)) {
			return fmt.Errorf("row %d is %v", c.seen, row)
		}
		c.seen++
	}
	c.batches++
	return nil
}

func (c *client) end(p *gen.ServerProcess) error {
	closed, err := p.Call(c.to, etf.Tuple{etf.Atom("close"), c.id})
	if err != nil || closed != etf.Atom("ok") {
		return fmt.Errorf("close: %v %v", closed, err)
	}
	fmt.Println("closed")
	return nil
}
