package node

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"scanode/etf"
)

// cutMessage cuts a control term with its message into fragments of size bytes of
// a sequence.
func cutMessage(seq uint64, b []byte, size int) (frames [][]byte) {
	number := uint64(max(1, (len(b)+size-1)/size))
	for kind := byte(headFirst); number > 0; number-- {
		frame := binary.BigEndian.AppendUint64([]byte{versionTag, kind}, seq)
		frame = binary.BigEndian.AppendUint64(frame, number)
		if kind == headFirst {
			frame = append(frame, 0)
		}
		n := min(size, len(b))
		frames, b = append(frames, append(frame, b[:n]...)), b[n:]
		kind = headNext
	}
	return frames
}

func newAssembler(max int) *assembler { return &assembler{max: max, unfinished: map[uint64]*partial{}} }

// TestInterleavedFragments deals the messages of many senders like cards: each
// sender's come whole and in order, and nothing is left of them.
func TestInterleavedFragments(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	a := newAssembler(1 << 20)
	const senders, each = 20, 30
	queues := make([][][]byte, senders)
	for s := range queues {
		for m := range each {
			body := bytes.Repeat([]byte{byte(s), byte(m)}, 1+rnd.IntN(500))
			// The sequence of a sender is used again and again.
			queues[s] = append(queues[s], cutMessage(uint64(s)<<40, body, 1+rnd.IntN(len(body)))...)
			queues[s] = append(queues[s], append([]byte{versionTag, headWhole, 0}, byte(s), byte(m)))
		}
	}
	var next [senders]int // in halves: in fragments, then whole
	for left := senders; left > 0; {
		s := rnd.IntN(senders)
		if len(queues[s]) == 0 {
			continue
		}
		got, err := a.take(queues[s][0])
		if err != nil {
			t.Fatal(err)
		}
		if queues[s] = queues[s][1:]; len(queues[s]) == 0 {
			left--
		}
		if got == nil {
			continue
		}
		want := []byte{byte(s), byte(next[s] / 2)}
		if len(bytes.ReplaceAll(got, want, nil)) != 0 {
			t.Fatalf("sender %d: %x, want message %d", s, got, next[s])
		}
		next[s]++
	}
	for s, n := range next {
		if n != 2*each {
			t.Errorf("sender %d: %d messages", s, n)
		}
	}
	if len(a.unfinished) != 0 || a.bytes != 0 {
		t.Errorf("%d messages and %d bytes are left", len(a.unfinished), a.bytes)
	}
}

// TestFragmentsRefused sends what breaks the rules of fragments.
func TestFragmentsRefused(t *testing.T) {
	of := func(seq uint64, size int) [][]byte { return cutMessage(seq, make([]byte, size), (size+2)/3) }
	for what, c := range map[string]struct {
		frames [][]byte
		want   string
	}{
		"pass-through":   {[][]byte{{passThrough, versionTag, 106}}, "without the header"},
		"another header": {[][]byte{{versionTag, 71, 0, 106}}, "131, 71"},
		"an atom cache":  {[][]byte{{versionTag, headWhole, 1, 8, 0}}, "atom cache"},
		"nothing":        {[][]byte{{versionTag, headWhole, 0}}, "nothing behind"},
		"cut short":      {[][]byte{of(1, 9)[0][:17]}, "a fragment of 17"},
		"no first":       {of(1, 9)[1:2], "without a first"},
		"left out":       {[][]byte{of(1, 9)[0], of(1, 9)[2]}, "fragment 1 of sequence 1 instead of 2"},
		"twice":          {[][]byte{of(1, 9)[0], of(1, 9)[0]}, "two messages"},
		"number 0":       {[][]byte{append(binary.BigEndian.AppendUint64([]byte{versionTag, headFirst, 0, 0, 0, 0, 0, 0, 0, 1}, 0), 0, 1)}, "fragment 0"},
		"after the last": {append(of(1, 9), of(1, 9)[2]), "without a first"},
		"a message":      {of(1, 1001), "more than 1000 bytes in fragments"},
		"all of them":    {append(append(append(append(append(of(1, 990)[:2], of(2, 990)[:2]...), of(3, 990)[:2]...), of(4, 990)[:2]...), of(5, 990)[:2]...), append(of(6, 990)[:2], of(7, 990)[:2]...)...), "4000 bytes in unfinished"},
		"too many of them": {func() (frames [][]byte) {
			for i := range uint64(maxUnfinished + 1) {
				frames = append(frames, of(i, 3)[0])
			}
			return frames
		}(), "unfinished messages"},
	} {
		a := newAssembler(1000)
		var err error
		for i, f := range c.frames {
			_, err = a.take(f)
			if err != nil && i != len(c.frames)-1 && what != "all of them" {
				t.Errorf("%s: frame %d: %v", what, i, err)
			}
			if err != nil {
				break
			}
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", what, err, c.want)
		}
		if a.bytes > unfinishedFrames*1000 || len(a.unfinished) > maxUnfinished {
			t.Errorf("%s: %d bytes of %d messages are kept", what, a.bytes, len(a.unfinished))
		}
	}
}

// FuzzFragments: whatever frames come, what is kept is what its bounds allow and
// the bytes that came; what was cut comes out as it went in.
func FuzzFragments(f *testing.F) {
	f.Add([]byte("a message"), uint8(4), uint64(7), []byte{})
	f.Add([]byte{}, uint8(0), uint64(0), bytes.Join(cutMessage(7, []byte("another"), 3), nil))
	f.Fuzz(func(t *testing.T, msg []byte, size uint8, seq uint64, noise []byte) {
		a := newAssembler(300)
		came := 0
		for rest := noise; len(rest) > 0; {
			n := min(len(rest), 18+int(rest[0])%8)
			frame := append([]byte{versionTag, headFirst + rest[0]%2}, rest[:n]...)
			rest, came = rest[n:], came+len(frame)
			got, err := a.take(frame)
			kept := 0
			for _, p := range a.unfinished {
				kept += len(p.data)
			}
			if kept != a.bytes || kept > came || kept > unfinishedFrames*a.max || len(a.unfinished) > maxUnfinished || len(got) > a.max && len(got) > len(frame) {
				t.Fatalf("%d bytes kept, %d counted, %d came", kept, a.bytes, came)
			}
			if err != nil {
				break
			}
		}
		if len(msg) == 0 || len(msg) > a.max || size == 0 {
			return
		}
		a = newAssembler(300)
		frames := cutMessage(seq, msg, int(size))
		for i, frame := range frames {
			got, err := a.take(frame)
			last := i == len(frames)-1
			if err != nil || (got != nil) != last || last && !bytes.Equal(got, msg) {
				t.Fatalf("fragment %d of %d: %x, %v", i, len(frames), got, err)
			}
		}
	})
}

// TestFragmentsEndLink breaks the rules on a link: it ends, and says why.
func TestFragmentsEndLink(t *testing.T) {
	t.Parallel()
	n, r, _ := startNode(t, "", func(c *Config) { c.Fragments, c.MaxFrameBytes = true, 1<<20 })
	dial := func() *fakePeer {
		p, err := dialFlags(t, n, "peer@h", ourFlags|flagFragments)
		if err != nil {
			t.Fatal(err)
		}
		r.next(t, "up")
		return p
	}
	p := dial()
	message := etf.AppendPid(etf.AppendAtom(appendOp(nil, 3, opSend), ""), n.procs.pids["scanode"])
	message = etf.AppendBinary(message, make([]byte, 1<<19))
	for _, frame := range cutMessage(1, message, 1000) {
		p.write(raw(frame...))
	}
	r.wantMessage(t, make([]byte, 1<<19))
	message = etf.AppendBinary(message, make([]byte, 1<<20))
	for _, frame := range cutMessage(1, message, 1000) {
		if _, err := p.conn.Write(raw(frame...)); err != nil {
			break
		}
	}
	if e := r.next(t, "down"); !errors.Is(e.err, errFrameTooLong) {
		t.Errorf("down with %v", e.err)
	}
	p = dial()
	p.write(passed(etf.TagNil))
	if e := r.next(t, "down"); !strings.Contains(fmt.Sprint(e.err), "without the header") {
		t.Errorf("down with %v", e.err)
	}
}

// largest is the size of the largest messages, in MiB.
var largest = flag.Int("largest", 64, "MiB of the largest messages between a BEAM and a node; 256 takes 3 GB of memory")

// TestLarge sends messages as large as a frame may be both ways, whole and in
// fragments, from several processes beside small ones: their order is kept.
func TestLarge(t *testing.T) {
	for _, fragments := range []bool{false, true} {
		t.Run(fmt.Sprintf("fragments=%v", fragments), func(t *testing.T) {
			t.Parallel()
			b := startBEAM(t, testEPMD(t), testCookie)
			n, r, _ := startNode(t, testEPMD(t), func(c *Config) { c.Fragments, c.MaxFrameBytes = fragments, *largest<<20+1000 })
			b.eval("N = '%s'.", n.Name())
			b.want("hello", "gen_server:call({scanode, N}, hello).")
			r.next(t, "up")
			b.eval("Ask = fun(Size) -> B = binary:copy(<<1,2,3,4>>, Size bsl 18), B =:= gen_server:call({scanode, N}, B, infinity) end.")
			for size := 1; size <= *largest; size *= 8 {
				b.want("true", "Ask(%d).", size)
			}
			b.want("true", "Ask(%d).", *largest)
			b.want("true", "L = lists:seq(1, 500000), L =:= gen_server:call({scanode, N}, L, infinity).")
			// Each of ten processes sends large and small in turn.
			b.want("[]", "Run = fun(S) -> B = binary:copy(<<S>>, 300000), T = lists:seq(S, S + 50000), "+
				"[{scanode, N} ! {echo, self(), {I, case I rem 3 of 0 -> B; 1 -> T; 2 -> I end}} || I <- lists:seq(1, 30)], "+
				"[I || I <- lists:seq(1, 30), receive {P, {J, X}} -> {J, X} =/= {I, case I rem 3 of 0 -> B; 1 -> T; 2 -> I end} end] end, "+
				"Ps = [spawn_monitor(fun() -> exit({bad, Run(S)}) end) || S <- lists:seq(1, 10)], "+
				"lists:append([receive {'DOWN', M, _, _, {bad, Bad}} -> Bad end || {_, M} <- Ps]).")
			// One more byte than fits costs the link, with a line that says so.
			b.want("nodedown", "monitor_node(N, true), {scanode, N} ! binary:copy(<<0>>, %d), receive {nodedown, N} -> nodedown end.", *largest<<20+1000)
			if e := r.next(t, "down"); !errors.Is(e.err, errFrameTooLong) {
				t.Errorf("down with %v", e.err)
			}
			b.want("hello", "gen_server:call({scanode, N}, hello).")
		})
	}
}
