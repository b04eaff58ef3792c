package server

import (
	"errors"
	"math"
	"sync"

	"scanode/etf"
	"scanode/etf/etftext"
	"scanode/filter"
	"scanode/scan"
	"scanode/storage"
)

// Bounds of a scan's options.
const (
	defaultBatchBytes   = 128 << 10
	maxBatchBytes       = 16 << 20
	defaultUnackedBytes = 1 << 20
	maxUnackedBytes     = 1 << 30
	maxScanBytes        = 1 << 20 // of the options as they arrive
)

// stream is one scan and its consumer. It is the scan's Sink.
type stream struct {
	link   *Link
	store  *store
	to     address
	ref    []byte // encoded
	window *scan.Window
	head   []byte // {scan_batch, Ref, … up to the binary's length; reused

	watched sync.Once
	unwatch func()
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
		if err != nil {
			st.end(scan.Totals{}, err)
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
	if l.streams[ref] != nil {
		l.s.streams.Add(-1)
		return reasonf(tagBadRequest, "the reference %s names a running scan", etftext.FormatBytes(st.ref))
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

func (st *stream) run(id int64, opts []byte) {
	defer func() {
		if p := recover(); p != nil {
			st.end(scan.Totals{}, st.link.s.panicked(p))
		}
	}()
	defer func() { st.unwatch() }()
	totals, err := st.scan(id, opts)
	if errors.Is(err, scan.ErrStopped) || errors.Is(err, errPeerGone) {
		return // nobody listens any more
	}
	st.end(totals, err)
}

func (st *stream) scan(id int64, opts []byte) (scan.Totals, error) {
	store, err := st.link.s.acquire(id)
	if err != nil {
		return scan.Totals{}, err
	}
	defer store.release()
	req, err := parseScan(opts, st.window)
	if err != nil {
		return scan.Totals{}, err
	}
	if err := store.addStream(st); err != nil {
		return scan.Totals{}, err
	}
	defer store.removeStream(st)
	st.store = store
	st.head = etf.AppendAtom(etf.AppendTupleHeader(make([]byte, 0, 64+len(st.ref)), 3), "scan_batch")
	st.head = append(st.head, st.ref...)
	return scan.Run(store.db, req, st.window, st)
}

// parseScan reads the options of a scan and sets the window's size.
func parseScan(b []byte, w *scan.Window) (scan.Request, error) {
	o := newOptions(b)
	req := scan.Request{
		Range: storage.Range{
			Start:          o.bytes("start"),
			End:            o.bytes("end"),
			StartExclusive: !o.bool("start_inclusive", true),
			EndInclusive:   o.bool("end_inclusive", false),
		},
		Limit:         o.int("limit", 0, 0, math.MaxInt64, "a number of rows, 0 for no limit"),
		MaxBatchBytes: int(o.int("max_batch_bytes", defaultBatchBytes, 0, maxBatchBytes, "a number of bytes up to 16 MiB")),
	}
	w.SetMax(int(o.int("max_unacked_bytes", defaultUnackedBytes, 0, maxUnackedBytes, "a number of bytes up to 1 GiB")))
	if o.atom("rows", "kv", "kv", "keys") == "keys" {
		req.Rows = scan.Keys
	}
	term, filtered := o.take("filter")
	if err := o.done(); err != nil {
		return req, err
	}
	if filtered {
		expr, err := filter.Parse(term)
		if err != nil {
			return req, err
		}
		req.Filter = expr
	}
	return req, nil
}

// Batch sends {scan_batch, Ref, Bin}.
func (st *stream) Batch(bin []byte) error {
	return st.link.deliver(st.to, etf.AppendBinaryHeader(st.head, len(bin)), bin)
}

// Progress sends {scan_progress, Ref, RowsRead}.
func (st *stream) Progress(rowsRead int64) error {
	st.watch()
	msg := etf.AppendAtom(etf.AppendTupleHeader(nil, 3), "scan_progress")
	return st.link.deliver(st.to, etf.AppendInt64(append(msg, st.ref...), rowsRead), nil)
}

// Blocked begins to watch the consumer.
func (st *stream) Blocked() { st.watch() }

// watch monitors the consumer, so that the scan ends when it dies. A scan that
// ends within its first window of credit and its first second needs no watch:
// it holds nothing up, and short queries are spared two messages.
func (st *stream) watch() {
	st.watched.Do(func() {
		st.unwatch = st.link.peer.Monitor(st.to.pid, func() { st.window.Close(errPeerGone) })
	})
}

// end sends the message that ends the stream: scan_end, or scan_error if err is
// not nil.
func (st *stream) end(totals scan.Totals, err error) {
	var msg []byte
	if err != nil {
		msg = etf.AppendAtom(etf.AppendTupleHeader(nil, 3), "scan_error")
		msg = reasonOf(err).append(append(msg, st.ref...))
	} else {
		msg = etf.AppendAtom(etf.AppendTupleHeader(nil, 3), "scan_end")
		msg = etf.AppendMapHeader(append(msg, st.ref...), 3)
		msg = etf.AppendInt64(etf.AppendAtom(msg, "rows_read"), totals.RowsRead)
		msg = etf.AppendInt64(etf.AppendAtom(msg, "rows"), totals.Rows)
		msg = etf.AppendInt64(etf.AppendAtom(msg, "batches"), totals.Batches)
	}
	_ = st.link.deliver(st.to, msg, nil)
}
