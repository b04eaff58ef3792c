package node

import "scanode/etf"

// netKernel is the name a ping asks.
const netKernel etf.Atom = "net_kernel"

// processes are the names this node answers to, each with its pid. They are made
// at Start and live as long as the node.
type processes struct {
	pids  map[etf.Atom]etf.Pid
	names map[etf.Pid]etf.Atom
	first etf.Pid // the sender of what the node itself sends
}

func newProcesses(name etf.Atom, creation uint32, registered []etf.Atom) processes {
	p := processes{pids: map[etf.Atom]etf.Pid{}, names: map[etf.Pid]etf.Atom{}}
	for _, r := range append([]etf.Atom{netKernel}, registered...) {
		if _, ok := p.pids[r]; ok {
			continue
		}
		pid := etf.Pid{Node: name, ID: uint32(len(p.pids) + 1), Creation: creation}
		p.pids[r], p.names[pid] = pid, r
		// A registered process rather than net_kernel where there is one.
		if len(p.pids) <= 2 {
			p.first = pid
		}
	}
	return p
}

// find returns the pid and name of a process of ours.
func (p processes) find(q proc) (pid etf.Pid, name etf.Atom, ok bool) {
	if q.name != "" {
		pid, ok = p.pids[q.name]
		return pid, q.name, ok
	}
	name, ok = p.names[q.pid]
	return q.pid, name, ok
}
