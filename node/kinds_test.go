package node

import (
	"fmt"
	"testing"

	"scanode/etf"
)

// TestHeaderNotAgreed plays ergo: a peer that writes headers nobody agreed to and
// understands no other frames. It is answered in kind.
func TestHeaderNotAgreed(t *testing.T) {
	n, r, _ := startNode(t, testEPMD(t), nil)
	p, err := dialFlags(t, n, "peer@h", ourFlags&^(flagUnlinkID|flagV4NC|flagMandatory25Digest))
	if err != nil {
		t.Fatal(err)
	}
	r.next(t, "up")
	for range 2 {
		ask, at := headed.start(nil)
		ask = mustAppend(ask, etf.Tuple{int64(opRegSend), p.pid(1), etf.Atom(""), netKernel})
		ask = mustAppend(headed.between(ask),
			etf.Tuple{etf.Atom("$gen_call"), etf.Tuple{p.pid(1), p.ref(1)}, etf.Tuple{etf.Atom("is_auth"), p.name}})
		p.write(frameEnd(ask, at, 0))
		got, err := readFrame(p.in, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		want, at := headed.start(nil)
		want = mustAppend(want, etf.Tuple{int64(opSend), etf.Atom(""), p.pid(1)})
		want = frameEnd(mustAppend(headed.between(want), etf.Tuple{p.ref(1), etf.Atom("yes")}), at, 0)
		if g, w := fmt.Sprintf("%x", got), fmt.Sprintf("%x", want[4:]); g != w {
			t.Fatalf("got  %s\nwant %s", g, w)
		}
	}
}

// TestUnwatchable plays a C node: no monitor is sent, as one would end the link,
// whose end is all there is to notice.
func TestUnwatchable(t *testing.T) {
	n, r, _ := startNode(t, testEPMD(t), nil)
	p, err := dialFlags(t, n, "c1@h", ourFlags&^(flagDistMonitorName|flagAlias))
	if err != nil {
		t.Fatal(err)
	}
	l := r.next(t, "up").link
	died := make(chan struct{})
	l.Monitor(p.pid(2), func() { t.Error("died although it was stopped") })()
	l.Monitor(p.pid(3), func() { close(died) })
	p.send(etf.Tuple{int64(opRegSend), p.pid(1), etf.Atom(""), netKernel},
		etf.Tuple{etf.Atom("$gen_call"), etf.Tuple{p.pid(1), p.ref(1)}, etf.Tuple{etf.Atom("is_auth"), p.name}})
	p.want(etf.Tuple{int64(opSend), etf.Atom(""), p.pid(1)}, etf.Tuple{p.ref(1), etf.Atom("yes")})
	p.conn.Close()
	<-died
	r.next(t, "down")
}
