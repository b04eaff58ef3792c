package node

import (
	"errors"
	"sync/atomic"

	"scanode/etf"
)

// maxRemembered bounds what one peer can make us remember: its monitors and its
// links together. Beyond it the link ends.
const maxRemembered = 1 << 20

var errTooManyMonitors = errors.New("too many monitors and links")

// watch is a monitor of a process of the peer's.
type watch struct {
	pid   etf.Pid
	down  func()
	spent atomic.Bool // by the death, the end of the link, or stop
}

func (w *watch) fire() {
	if w.spent.CompareAndSwap(false, true) {
		w.down()
	}
}

// watcher is a process of the peer's that monitors one of ours.
type watcher struct {
	pid etf.Pid
	of  proc // as it named ours
}

// pair is a process link between one of the peer's and one of ours.
type pair struct{ theirs, ours etf.Pid }

// Monitor calls down once when pid, a process of the peer's node, dies or the
// link ends, or soon when either is already so. A C node's processes cannot be
// watched; there the end of the link is all that counts. stop ends the monitor; a
// call of down that is under way may still be running when stop returns, and
// afterwards there is none. down runs on the link's read goroutine or on one of its own,
// perhaps before Monitor returns; it must not block. stop may be called at any
// time and any number of times, also by down.
func (l *Link) Monitor(pid etf.Pid, down func()) (stop func()) {
	w := &watch{pid: pid, down: down}
	if pid.Node != l.peer.name {
		// A pid of a third node cannot be watched over this link.
		l.guard(w.fire)
		return func() { w.spent.Store(true) }
	}
	l.mu.Lock()
	if l.finished {
		l.mu.Unlock()
		l.guard(w.fire)
		return func() { w.spent.Store(true) }
	}
	ref := l.node.newRef()
	l.watches[ref] = w
	l.mu.Unlock()
	if !l.peer.agreed().monitors() {
		return func() {
			w.spent.Store(true)
			l.mu.Lock()
			delete(l.watches, ref)
			l.mu.Unlock()
		}
	}
	self := l.node.procs.first
	// An error means that the link ends, which fires the monitor.
	l.out.signal(appendMonitorP(nil, self, pid, ref), nil)
	return func() {
		w.spent.Store(true)
		l.mu.Lock()
		_, live := l.watches[ref]
		delete(l.watches, ref)
		l.mu.Unlock()
		if live {
			l.out.signal(appendDemonitorP(nil, self, pid, ref), nil)
		}
	}
}

// guard runs f on a goroutine of its own; a panic ends the link.
func (l *Link) guard(f func()) {
	go func() {
		defer l.recoverPanic()
		f()
	}()
}

// watchedDied is the peer's word that a process we monitor is gone.
func (l *Link) watchedDied(ref etf.Ref) {
	l.mu.Lock()
	w := l.watches[ref]
	delete(l.watches, ref)
	l.mu.Unlock()
	if w != nil {
		w.fire()
	}
}

// monitored is a monitor of the peer's on one of our processes.
func (l *Link) monitored(m control) error {
	if _, _, ok := l.node.procs.find(m.to); !ok {
		return l.out.signal(appendMonitorPExit(nil, m.to, m.from, m.ref, "noproc"), nil)
	}
	return l.remember(func() { l.watchers[m.ref] = watcher{pid: m.from, of: m.to} })
}

// linked is a process link of the peer's to one of ours.
func (l *Link) linked(m control) error {
	if _, _, ok := l.node.procs.find(m.to); !ok {
		return l.out.signal(appendExit(nil, m.to.pid, m.from, "noproc"), nil)
	}
	return l.remember(func() { l.pairs[pair{theirs: m.from, ours: m.to.pid}] = struct{}{} })
}

func (l *Link) remember(add func()) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.watchers)+len(l.pairs) >= maxRemembered {
		return errTooManyMonitors
	}
	add()
	return nil
}

func (l *Link) demonitored(ref etf.Ref) {
	l.mu.Lock()
	delete(l.watchers, ref)
	l.mu.Unlock()
}

func (l *Link) unlinked(m control) {
	l.mu.Lock()
	delete(l.pairs, pair{theirs: m.from, ours: m.to.pid})
	l.mu.Unlock()
}

// refuse answers a call that will get no reply: the caller's monitor, if it has
// one, says that the process is not there.
func (l *Link) refuse(ref etf.Ref) error {
	l.mu.Lock()
	w, ok := l.watchers[ref]
	delete(l.watchers, ref)
	l.mu.Unlock()
	if !ok {
		return nil
	}
	return l.out.signal(appendMonitorPExit(nil, w.of, w.pid, ref, "noproc"), nil)
}

// farewell tells the peer's processes that ours are gone. Returns whether there
// were any to tell.
func (l *Link) farewell() (told bool, err error) {
	const reason = "shutdown"
	l.mu.Lock()
	watchers, pairs := l.watchers, l.pairs
	l.watchers, l.pairs = map[etf.Ref]watcher{}, map[pair]struct{}{}
	l.mu.Unlock()
	for ref, w := range watchers {
		if err := l.out.signal(appendMonitorPExit(nil, w.of, w.pid, ref, reason), nil); err != nil {
			return true, err
		}
	}
	for p := range pairs {
		if err := l.out.signal(appendExit(nil, p.ours, p.theirs, reason), nil); err != nil {
			return true, err
		}
	}
	return len(watchers)+len(pairs) > 0, nil
}
