package node

import (
	"context"
	"time"
)

const (
	// beat is how often a link looks whether it is time for a tick.
	beat = time.Second

	// tickAnswerGap keeps two nodes that both answer ticks from answering
	// each other without end: no answer where something left so recently. It
	// is the interval of the shortest tick time there is, a second's quarter.
	tickAnswerGap = 250 * time.Millisecond
)

// answerTick answers a tick of the peer at once: its tick time may be much
// shorter than ours.
func (l *Link) answerTick() {
	if l.out.idle() >= tickAnswerGap {
		l.out.tick()
	}
}

// serveSignals writes what is collected, and ticks on an idle link. While the
// read goroutine is held up in the handler the peer's ticks go unanswered, so
// then there is one every beat, whatever the peer's tick time.
func (l *Link) serveSignals() {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for {
		select {
		case <-l.done:
			return
		case <-ticker.C:
			idle := l.out.idle()
			held := l.handling.Load()
			if idle >= l.node.cfg.TickTime/4 || held && idle >= beat {
				l.out.tick()
			}
			continue
		case <-l.out.wake:
		}
		if err := l.out.flush(); err != nil {
			l.end(err)
			return
		}
	}
}

// silence is how long a peer may be silent. The BEAM, too, takes between three
// and five quarters of the tick time.
func silence(tickTime time.Duration) time.Duration { return tickTime + tickTime/4 }

// timedReader ends a read that waits for longer than limit, if there is one. It
// stays below the buffered reader of a connection from the handshake on.
type timedReader struct {
	conn interface {
		Read([]byte) (int, error)
		SetReadDeadline(time.Time) error
	}
	limit time.Duration
}

func (r *timedReader) Read(b []byte) (int, error) {
	if r.limit > 0 {
		if err := r.conn.SetReadDeadline(time.Now().Add(r.limit)); err != nil {
			return 0, err
		}
	}
	return r.conn.Read(b)
}

// onClose calls f when the node closes, unless stop is called first.
func (n *Node) onClose(f func()) (stop func() bool) { return context.AfterFunc(n.ctx, f) }
