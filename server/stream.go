package server

import (
	"errors"
	"math"
	"sync/atomic"
	"time"

	"scanode/etf"
	"scanode/etf/etftext"
	"scanode/scan"
)

// errSecond is a scan under the reference of a running one.
var errSecond = errors.New("second scan of one reference")

// stream is one scan and its consumer. It is the scan's Sink.
type stream struct {
	link   *Link
	to     address
	ref    []byte // encoded
	window *scan.Window
	head   []byte // {scan_batch, Ref, … up to the binary's length; reused

	moved atomic.Pointer[etf.Pid] // the next consumer; nil if there is none

	watching bool
	unwatch  func()
}

// scan starts the scan {scan, From, Id, Opts}; b begins at From. The stream is
// known under its reference before this returns, so that an acknowledgement or a
// stop right behind the request finds it.
func (l *Link) scan(msg, b []byte, tooDeep *reason) {
	to, tag, b, err := readFrom(b)
	if err != nil {
		l.dropped(msg)
		return
	}
	ref, refBytes := to.alias, tag
	if ref.Len > 0 {
		refBytes = etf.AppendRef(nil, ref)
	} else if ref, _, err = etf.ReadRef(tag); err != nil {
		l.dropped(msg)
		return
	}
	st := &stream{link: l, to: to, ref: refBytes, window: scan.NewWindow(defaultUnackedBytes), unwatch: func() {}}
	id, opts, err := readIDAndRest(b)
	if tooDeep != nil {
		err = tooDeep
	}
	if err == nil && len(opts) > maxScanBytes {
		err = reasonf(tagBadRequest, "a scan's options may have %d bytes, these have %d", maxScanBytes, len(opts))
	}
	if err == nil {
		err = l.addStream(ref, st)
	}
	// A scan is not charged: it would hold its share until it is acknowledged,
	// and the acknowledgement might wait behind a request for that share. The
	// caps on streams and on their options bound it instead.
	l.calls.Add(1)
	go func() {
		defer l.calls.Done()
		switch {
		case err == errSecond:
			return
		case err != nil:
			st.fail(err)
			return
		}
		defer l.removeStream(ref)
		st.run(id, opts)
	}()
}

func readIDAndRest(b []byte) (int64, []byte, error) {
	id, rest, err := etf.ReadInt64(b)
	if err != nil {
		return 0, nil, reasonf(tagBadRequest, "a store's id must be an integer, got %s", etftext.FormatBytes(firstTerm(b)))
	}
	return id, rest, nil
}

// firstTerm cuts the first of several well-formed terms off.
func firstTerm(b []byte) []byte {
	rest, err := etf.Skip(b)
	if err != nil {
		return b
	}
	return b[:len(b)-len(rest)]
}

func (l *Link) addStream(ref etf.Ref, st *stream) error {
	if l.s.streams.Add(1) > l.s.cfg.Limits.StreamsPerNode {
		l.s.streams.Add(-1)
		return errBusy
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if running := l.streams[ref]; running != nil {
		// Two scans of one name cannot be told apart by whoever listens, so
		// neither goes on, and only the first says so.
		l.s.streams.Add(-1)
		running.window.Close(reasonf(tagBadRequest, "the reference %s was given to a second scan", etftext.FormatBytes(st.ref)))
		return errSecond
	}
	l.streams[ref] = st
	if l.down {
		st.window.Close(errPeerGone)
	}
	return nil
}

func (l *Link) removeStream(ref etf.Ref) {
	l.mu.Lock()
	delete(l.streams, ref)
	l.mu.Unlock()
	l.s.streams.Add(-1)
}

// closeStream ends a scan, if it is still running.
func (l *Link) closeStream(ref etf.Ref, err error) {
	l.mu.Lock()
	st := l.streams[ref]
	l.mu.Unlock()
	if st != nil {
		st.window.Close(err)
	}
}

// scanAck handles {scan_ack, Ref, Bytes}; b begins at Ref.
func (l *Link) scanAck(msg, b []byte) {
	ref, b, err := etf.ReadRef(b)
	if err != nil {
		l.dropped(msg)
		return
	}
	n, _, err := etf.ReadInt64(b)
	if err != nil {
		n = math.MaxInt64 // no count at all counts as too much
	}
	l.mu.Lock()
	st := l.streams[ref]
	l.mu.Unlock()
	if st != nil {
		_ = st.window.Ack(n) // a wrong count ends the scan, which reports it
	}
}

// scanTo handles {scan_to, Ref, Pid}; b begins at Ref.
func (l *Link) scanTo(msg, b []byte) {
	ref, b, err := etf.ReadRef(b)
	if err != nil {
		l.dropped(msg)
		return
	}
	if _, err := etf.Check(b); err != nil {
		l.dropped(msg)
		return
	}
	pid, _, err := etf.ReadPid(b)
	if err != nil {
		l.dropped(msg)
		return
	}
	l.mu.Lock()
	st := l.streams[ref]
	l.mu.Unlock()
	if st != nil {
		st.moved.Store(&pid)
	}
}

// deliver sends a message to the consumer. A new one takes over between two
// messages, and the old one is told.
func (st *stream) deliver(head, body []byte) error {
	if pid := st.moved.Swap(nil); pid != nil {
		msg := etf.AppendAtom(etf.AppendTupleHeader(nil, 2), "scan_moved")
		if err := st.link.deliver(st.to, append(msg, st.ref...), nil); err != nil {
			return err
		}
		st.to = address{pid: *pid}
		if st.watching {
			st.unwatch()
			st.watching = false
			st.watch()
		}
	}
	return st.link.deliver(st.to, head, body)
}

func (st *stream) run(id int64, opts []byte) {
	defer func() {
		if p := recover(); p != nil {
			st.fail(st.link.s.panicked(p))
		}
	}()
	defer func() { st.unwatch() }()
	switch end, err := st.scan(id, opts); {
	case err == nil:
		_ = st.deliver(end, nil)
	case errors.Is(err, scan.ErrStopped) || errors.Is(err, errPeerGone):
		// Nobody listens any more.
	default:
		st.fail(err)
	}
}

// scan runs the scan and returns the message that says that it is complete.
func (st *stream) scan(id int64, opts []byte) (end []byte, err error) {
	v, err := st.link.s.acquire(id)
	if err != nil {
		return nil, err
	}
	defer v.release()
	req, err := parseScan(opts)
	if err != nil {
		return nil, err
	}
	if err := v.addStream(st); err != nil {
		return nil, err
	}
	defer v.removeStream(st)
	st.window.SetMax(req.MaxUnackedBytes)
	if req.deadline >= 0 {
		timer := time.AfterFunc(req.deadline, func() { st.window.Close(errDeadline) })
		defer timer.Stop()
	}
	st.head = etf.AppendAtom(etf.AppendTupleHeader(make([]byte, 0, 64+len(st.ref)), 3), "scan_batch")
	st.head = append(st.head, st.ref...)
	totals, err := scan.Run(v.source, req.Request, st.window, st)
	if err != nil {
		return nil, err
	}
	return st.endMessage(totals, req)
}

// Batch sends {scan_batch, Ref, Bin}.
func (st *stream) Batch(bin []byte) error {
	return st.deliver(etf.AppendBinaryHeader(st.head, len(bin)), bin)
}

// Progress sends {scan_progress, Ref, RowsRead}.
func (st *stream) Progress(rowsRead int64) error {
	st.watch()
	msg := etf.AppendAtom(etf.AppendTupleHeader(nil, 3), "scan_progress")
	return st.deliver(etf.AppendInt64(append(msg, st.ref...), rowsRead), nil)
}

// Blocked begins to watch the consumer.
func (st *stream) Blocked() { st.watch() }

// watch monitors the consumer, so that the scan ends when it dies. A scan that
// ends within its first window of credit and its first second needs no watch:
// it holds nothing up, and short queries are spared two messages.
func (st *stream) watch() {
	if !st.watching {
		st.watching = true
		st.unwatch = st.link.peer.Monitor(st.to.pid, func() { st.window.Close(errPeerGone) })
	}
}

// endMessage is {scan_end, Ref, Map}.
func (st *stream) endMessage(totals scan.Totals, req scanRequest) ([]byte, error) {
	end := etf.Map{
		{Key: etf.Atom("rows_read"), Value: totals.RowsRead},
		{Key: etf.Atom("rows"), Value: totals.Rows},
		{Key: etf.Atom("batches"), Value: totals.Batches},
	}
	if totals.Last != nil {
		end = append(end, etf.Pair{Key: etf.Atom("continuation"), Value: req.query.continuation(*totals.Last)})
	}
	if req.Cost {
		_, waits := st.window.Unacked()
		end = append(end,
			etf.Pair{Key: etf.Atom("bytes"), Value: totals.Bytes},
			etf.Pair{Key: etf.Atom("credit_waits"), Value: int64(waits)},
			etf.Pair{Key: etf.Atom("engine_us"), Value: totals.Engine.Microseconds()},
			etf.Pair{Key: etf.Atom("credit_us"), Value: totals.Credit.Microseconds()},
			etf.Pair{Key: etf.Atom("send_us"), Value: totals.Send.Microseconds()})
	}
	msg := etf.AppendAtom(etf.AppendTupleHeader(nil, 3), "scan_end")
	return etf.AppendTerm(append(msg, st.ref...), end)
}

// fail sends {scan_error, Ref, Reason}.
func (st *stream) fail(err error) {
	msg := etf.AppendAtom(etf.AppendTupleHeader(nil, 3), "scan_error")
	msg = reasonOf(err).append(append(msg, st.ref...))
	_ = st.deliver(msg, nil)
}
