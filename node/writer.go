package node

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxPendingBytes bounds the signals collected for a peer that does not
	// read. Whoever adds more waits, at most until the write that is under way
	// times out and ends the link.
	maxPendingBytes = 1 << 20

	// writeChunkBytes is how much must leave within one write timeout.
	writeChunkBytes = 1 << 20

	// tlsRecordBytes is the most that one TLS record holds.
	tlsRecordBytes = 16 << 10

	// keepScratchBytes is the largest buffer kept between frames.
	keepScratchBytes = 64 << 10
)

// writer writes whole frames, one at a time, and collects signals in between.
type writer struct {
	conn    net.Conn
	records *bufio.Writer // over TLS: gathers what makes a full record; else nil
	headed  atomic.Bool   // the form of frames; it may change between two
	timeout time.Duration
	done    <-chan struct{} // closed when the link ends
	err     func() error    // why it ended

	// turn holds a token while somebody writes. It is a channel, not a mutex,
	// so that whoever waits for it also sees the end of the link.
	turn    chan struct{}
	scratch []byte // the holder's
	chunks  [4][]byte
	vec     net.Buffers

	mu      sync.Mutex
	pending []byte        // whole frames that leave in front of the next one
	wake    chan struct{} // there may be something pending
	room    chan struct{} // there may be room in pending

	born    time.Time
	written atomic.Int64 // nanoseconds after born when something last left
}

func newWriter(conn net.Conn, f form, timeout time.Duration, done <-chan struct{}, err func() error) *writer {
	w := &writer{
		conn: conn, timeout: timeout, done: done, err: err,
		turn: make(chan struct{}, 1),
		wake: make(chan struct{}, 1),
		room: make(chan struct{}, 1),
		born: time.Now(),
	}
	w.headed.Store(f == headed)
	if _, ok := conn.(*tls.Conn); ok {
		w.records = bufio.NewWriterSize(conn, tlsRecordBytes)
	}
	return w
}

// idle returns how long ago something last left.
func (w *writer) idle() time.Duration {
	return time.Since(w.born) - time.Duration(w.written.Load())
}

func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// signal collects a frame of a control term and perhaps a message. It blocks only
// while maxPendingBytes are waiting.
func (w *writer) signal(control, msg []byte) error {
	const around = 8 // the most that a form adds
	for {
		w.mu.Lock()
		if len(w.pending) == 0 || len(w.pending)+len(control)+len(msg)+around <= maxPendingBytes {
			w.appendPending(control, msg)
			more := len(w.pending) < maxPendingBytes
			w.mu.Unlock()
			nudge(w.wake)
			if more {
				nudge(w.room) // another one may be waiting
			}
			return nil
		}
		w.mu.Unlock()
		select {
		case <-w.room:
		case <-w.done:
			return w.err()
		}
	}
}

// appendPending appends a frame. The caller holds mu.
func (w *writer) appendPending(control, msg []byte) {
	f := form(w.headed.Load())
	var start int
	w.pending, start = f.start(w.pending)
	w.pending = append(w.pending, control...)
	if msg != nil {
		w.pending = append(f.between(w.pending), msg...)
	}
	frameEnd(w.pending, start, 0)
}

// tick collects a tick unless something is waiting anyway.
func (w *writer) tick() {
	w.mu.Lock()
	if len(w.pending) == 0 {
		w.pending = append(w.pending, 0, 0, 0, 0)
	}
	w.mu.Unlock()
	nudge(w.wake)
}

// lock takes the turn.
func (w *writer) lock() error {
	select {
	case <-w.done:
		return w.err()
	default:
	}
	select {
	case w.turn <- struct{}{}:
		return nil
	case <-w.done:
		return w.err()
	}
}

func (w *writer) unlock() { <-w.turn }

// flush writes what is pending.
func (w *writer) flush() error {
	if err := w.lock(); err != nil {
		return err
	}
	defer w.unlock()
	w.takePending()
	if len(w.scratch) == 0 {
		return nil
	}
	return w.write(nil, nil)
}

// message writes one frame of a control term and the message head followed by
// body, behind what is pending.
func (w *writer) message(control, head, body []byte) error {
	if err := w.lock(); err != nil {
		return err
	}
	defer w.unlock()
	w.takePending()
	f := form(w.headed.Load())
	var start int
	w.scratch, start = f.start(w.scratch)
	w.scratch = f.between(append(w.scratch, control...))
	w.scratch = frameEnd(w.scratch, start, len(head)+len(body))
	return w.write(head, body)
}

// takePending moves what is pending into scratch. The caller has the turn.
func (w *writer) takePending() {
	if cap(w.scratch) > keepScratchBytes {
		w.scratch = nil
	}
	w.mu.Lock()
	w.scratch, w.pending = w.pending, w.scratch[:0]
	w.mu.Unlock()
	nudge(w.room)
}

// write writes scratch, head and body, in chunks that each have the whole
// timeout. The caller has the turn. A frame that is not written whole leaves the
// stream unusable: the caller ends the link.
func (w *writer) write(head, body []byte) error {
	room := writeChunkBytes
	chunks := w.chunks[:0]
	for _, part := range [...][]byte{w.scratch, head, body} {
		for len(part) > 0 {
			n := min(len(part), room)
			chunks, part = append(chunks, part[:n]), part[n:]
			if room -= n; room > 0 {
				continue
			}
			if err := w.writeChunk(chunks); err != nil {
				return err
			}
			room, chunks = writeChunkBytes, chunks[:0]
		}
	}
	if len(chunks) == 0 {
		return nil
	}
	return w.writeChunk(chunks)
}

func (w *writer) writeChunk(chunks [][]byte) error {
	if err := w.conn.SetWriteDeadline(time.Now().Add(w.timeout)); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	if w.records != nil {
		if err := w.writeRecords(chunks); err != nil {
			return fmt.Errorf("writing: %w", err)
		}
		w.written.Store(int64(time.Since(w.born)))
		return nil
	}
	w.vec = chunks
	if _, err := w.vec.WriteTo(w.conn); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	w.written.Store(int64(time.Since(w.born)))
	return nil
}

// writeRecords writes chunks over TLS: small ones share a record, large ones are
// not copied. The buffer is empty in between.
func (w *writer) writeRecords(chunks [][]byte) error {
	for _, c := range chunks {
		if _, err := w.records.Write(c); err != nil {
			return err
		}
	}
	return w.records.Flush()
}
