package server

import (
	"sync"
	"sync/atomic"
	"time"

	"scanode/etf"
)

// lease is the life of something a process made: it ends when that process is
// dead and nobody has used the thing for a while.
type lease struct {
	orphan time.Duration // how long unused after the maker's death; negative: for ever
	expire func()        // ends the thing; called once at most, with no lock held
	used   atomic.Int64  // time of the last use, in nanoseconds

	mu       sync.Mutex
	orphaned bool
	over     bool
	timer    *time.Timer
	unwatch  func()
	users    int
}

// watch begins the lease of what the process pid of peer has made.
func (l *lease) watch(peer Peer, pid etf.Pid) {
	l.touch()
	unwatch := peer.Monitor(pid, l.makerDied)
	l.mu.Lock()
	over := l.over
	l.unwatch = unwatch
	l.mu.Unlock()
	if over {
		unwatch()
	}
}

// touch says that the thing is being used at this moment.
func (l *lease) touch() { l.used.Store(time.Now().UnixNano()) }

// end stops watching; the thing is gone.
func (l *lease) end() {
	l.mu.Lock()
	l.over = true
	unwatch := l.unwatch
	l.unwatch = nil
	if l.timer != nil {
		l.timer.Stop()
	}
	l.mu.Unlock()
	if unwatch != nil {
		unwatch()
	}
}

// hold and drop bracket a use that lasts, a scan for one.
func (l *lease) hold(n int) {
	l.mu.Lock()
	l.users += n
	l.mu.Unlock()
	l.touch()
}

// makerDied leaves the thing to whoever still uses it.
func (l *lease) makerDied() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.orphaned = true
	if !l.over && l.orphan >= 0 {
		l.timer = time.AfterFunc(l.orphan, l.check)
	}
}

// check ends the lease if nobody has used the thing for long enough, and
// otherwise looks again when that may be so.
func (l *lease) check() {
	l.mu.Lock()
	idle := time.Duration(time.Now().UnixNano() - l.used.Load())
	wait := l.users > 0 || idle < l.orphan
	if wait && !l.over {
		l.timer.Reset(max(l.orphan-idle, time.Second))
	}
	over := l.over || wait
	l.mu.Unlock()
	if !over {
		l.expire()
	}
}

// describe says whether the maker is dead and for how long nobody has used the
// thing.
func (l *lease) describe() (orphaned bool, idle time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users == 0 {
		idle = time.Duration(time.Now().UnixNano() - l.used.Load())
	}
	return l.orphaned, idle
}

func (l *lease) isOrphaned() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.orphaned
}
