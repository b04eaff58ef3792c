package node

import (
	"errors"
	"fmt"
	"testing"

	"scanode/etf"
)

// TestBEAM drives one node from one BEAM through everything that leaves the link
// as it was.
func TestBEAM(t *testing.T) {
	t.Parallel()
	epmd := testEPMD(t)
	b := startBEAM(t, epmd, testCookie)
	n, r, _ := startNode(t, epmd, nil)
	b.eval("N = '%s'.", n.Name())
	b.want("pong", "net_adm:ping(N).")
	up := r.next(t, "up")
	if up.link.Node() != b.name {
		t.Errorf("the link is to %s", up.link.Node())
	}
	t.Run("hidden", func(t *testing.T) {
		b.t = t
		b.want("{[],true}", "{nodes(), nodes(hidden) =:= [N]}.")
		b.want("{ok,[]}", "{ok, Info} = net_kernel:node_info(N), {lists:keyfind(type, 1, Info) =:= {type, hidden} andalso ok, nodes()}.")
		// global and pg must not wait for a node they do not know.
		b.want("{yes,ok}", "{global:register_name(some_name, self()), global:sync()}.")
	})
	t.Run("call", func(t *testing.T) {
		b.t = t
		b.want("hello", "gen_server:call({scanode, N}, hello).")
		b.want("{noproc,true}", "{'EXIT', {Why, _}} = (catch gen_server:call({nobody, N}, hello)), {Why, true}.")
		b.want("{reply,{1,two}}", "gen_server:receive_response(gen_server:send_request({scanode, N}, {1, two}), 5000).")
		b.want("[1,2,3,4,5]", "[gen_server:call({scanode, N}, I) || I <- lists:seq(1, 5)].")
	})
	t.Run("send", func(t *testing.T) {
		b.t = t
		b.want("{true,hi}", "{scanode, N} ! {echo, self(), hi}, receive {P, X} -> {is_pid(P), X} after 5000 -> none end.")
		b.want("{true,again}", "P ! {echo, self(), again}, receive {P, again} -> {node(P) =:= N, again} after 5000 -> none end.")
		b.want("ok", "{nobody, N} ! lost, ok.")
		b.want("ok", "{scanode, N} ! [], {scanode, N} ! fun erlang:self/0, {scanode, N} ! <<5:3>>, ok.")
		r.wantMessage(t, etf.List{}, etf.Export{Module: "erlang", Function: "self"}, etf.Bitstring{Bytes: []byte{0xa0}, Bits: 3})
	})
	t.Run("monitor", func(t *testing.T) {
		b.t = t
		b.want("noproc", "M1 = erlang:monitor(process, {nobody, N}), receive {'DOWN', M1, process, {nobody, N}, R1} -> R1 end.")
		b.want("noproc", "M2 = erlang:monitor(process, %s), receive {'DOWN', M2, process, _, R2} -> R2 end.", strangePid(n))
		b.want("[true,true]", "[erlang:demonitor(erlang:monitor(process, X), [flush]) || X <- [{scanode, N}, P]].")
		b.want("ok", "{scanode, N} ! behind, ok.")
		r.wantMessage(t, etf.Atom("behind"))
		up.link.mu.Lock()
		defer up.link.mu.Unlock()
		if len(up.link.watchers) != 0 {
			t.Errorf("%d monitors are left", len(up.link.watchers))
		}
	})
	t.Run("link", func(t *testing.T) {
		b.t = t
		b.want("ok", "process_flag(trap_exit, true), true = link(P), true = unlink(P), true = link(P), true = unlink(P), ok.")
		b.want("{stranger,noproc}", "S = %s, link(S), receive {'EXIT', S, R3} -> {stranger, R3} end.", strangePid(n))
		b.want("normal", "{Q, MQ} = spawn_monitor(fun() -> link(P), {scanode, N} ! linked end), receive {'DOWN', MQ, _, _, R4} -> R4 end.")
		r.wantMessage(t, etf.Atom("linked"))
		// The death is told to monitors before it is told to links: ask until
		// the latter has come, too.
		for left := 1; left > 0; {
			b.want("pong", "net_adm:ping(N).")
			up.link.mu.Lock()
			left = len(up.link.pairs)
			up.link.mu.Unlock()
		}
	})
	t.Run("exit", func(t *testing.T) {
		b.t = t
		b.want("[true,true]", "[exit(P, kill), exit(P, lists:foldl(fun(_, A) -> [A] end, [], lists:seq(1, 5000)))].")
		b.want("hello", "gen_server:call(P, hello).")
	})
	t.Run("spawn", func(t *testing.T) {
		b.t = t
		b.want("{badrpc,true}", "{badrpc, _} = rpc:call(N, erlang, node, [], 5000), {badrpc, true}.")
		b.want("{error,{erpc,notsup}}", "try erpc:call(N, erlang, node, []) catch C1:E1 -> {C1, E1} end.")
		b.want("notsup", "Q1 = spawn_request(N, erlang, node, []), receive {spawn_reply, Q1, error, R5} -> R5 end.")
		b.want("true", "is_pid(spawn(N, erlang, node, [])).")
		b.want("noproc", ""+
			"try gen_server:call({net_kernel, N}, anything, 5000) catch exit:{R6, _} -> R6 end.")
		b.want("noproc", "try gen_server:call({rex, N}, anything, 5000) catch exit:{R7, _} -> R7 end.")
		b.want("hello", "gen_server:call({scanode, N}, hello).")
	})
	t.Run("large", func(t *testing.T) {
		b.t = t
		for _, size := range []int{1 << 20, 10 << 20} {
			b.want("true", "binary:copy(<<1,2,3,4>>, %d) =:= gen_server:call({scanode, N}, binary:copy(<<1,2,3,4>>, %[1]d), 30000).", size/4)
		}
		b.want("true", "L = lists:seq(1, 300000), L =:= gen_server:call({scanode, N}, L, 30000).")
		b.want("true", "B = binary:copy(<<7>>, 1000000), [{scanode, N} ! {echo, self(), {I, B}} || I <- lists:seq(1, 20)], "+
			"[I || I <- lists:seq(1, 20), receive {P, {J, B}} -> I =/= J end] =:= [].")
	})
	t.Run("order", func(t *testing.T) {
		b.t = t
		b.want("[]", "[{scanode, N} ! {echo, self(), {I, binary:copy(<<0>>, I rem 700)}} || I <- lists:seq(1, 10000)], "+
			"[I || I <- lists:seq(1, 10000), receive {P, {J, _}} -> I =/= J end].")
	})
	t.Run("watch", func(t *testing.T) {
		b.t = t
		watch := func(pid etf.Pid) (died chan struct{}, stop func()) {
			died = make(chan struct{})
			return died, up.link.Monitor(pid, func() { close(died) })
		}
		b.eval("W = [spawn(fun() -> receive stop -> ok end end) || _ <- [1, 2]], {scanode, N} ! list_to_tuple(W), ok.")
		pids := r.next(t, "message").msg.(etf.Tuple)
		first, _ := watch(pids[0].(etf.Pid))
		second, stop := watch(pids[1].(etf.Pid))
		stop()
		b.eval("[X ! stop || X <- W].")
		<-first
		<-mustWatch(watch(pids[0].(etf.Pid)))                                                      // dead already
		<-mustWatch(watch(etf.Pid{Node: "other@127.0.0.1", ID: 1, Creation: 4}))                   // of another node
		<-mustWatch(watch(etf.Pid{Node: b.name, ID: 1, Creation: pids[0].(etf.Pid).Creation + 1})) // of another incarnation
		select {
		case <-second:
			t.Error("down was called after stop")
		default:
		}
		if err := up.link.Send(etf.Pid{Node: "other@127.0.0.1", ID: 1}, etf.AppendNil(nil), nil); !errors.Is(err, ErrOtherNode) {
			t.Errorf("Send to a third node: %v", err)
		}
	})
	t.Run("panic", func(t *testing.T) {
		b.t = t
		b.want("true", "erlang:monitor_node(N, true), {scanode, N} ! {panic, now}, receive {nodedown, N} -> true end.")
		r.next(t, "down")
		b.want("pong", "net_adm:ping(N).")
		r.next(t, "up")
	})
}

func mustWatch(died chan struct{}, _ func()) chan struct{} { return died }

// strangePid is an expression for a pid of n that no process has.
func strangePid(n *Node) string {
	b := etf.AppendPid(etf.AppendVersion(nil), etf.Pid{Node: n.Name(), ID: 999, Creation: n.creation})
	text := fmt.Sprint(b)
	out := make([]byte, 0, len(text))
	for _, c := range text[1 : len(text)-1] {
		if c == ' ' {
			c = ','
		}
		out = append(out, byte(c))
	}
	return fmt.Sprintf("binary_to_term(<<%s>>)", out)
}

// wantMessage compares the next messages.
func (r *recorder) wantMessage(t *testing.T, want ...etf.Term) {
	t.Helper()
	for _, w := range want {
		e := r.next(t, "message")
		if got, want := fmt.Sprintf("%T%v", e.msg, e.msg), fmt.Sprintf("%T%v", w, w); got != want || e.to != "scanode" {
			t.Errorf("message %s to %s, want %s", got, e.to, want)
		}
	}
}
