package server

import (
	"encoding/binary"
	"sync"
	"time"

	"scanode/etf"
	"scanode/etf/etftext"
	"scanode/scan"
)

// Bounds of what one iterator_read returns.
const (
	defaultPageRows = 100
	maxPageRows     = 100_000
)

// restAfter is how long an unused iterator keeps its place in the tables. Beyond
// it the next read seeks that place again, and the tables and write buffers which
// its view does not need can go.
const restAfter = 10 * time.Second

// iterator is the state of a handle of that kind. Reads take turns on it.
type iterator struct {
	cursor *scan.Cursor

	mu     sync.Mutex
	closed bool
	used   time.Time
	timer  *time.Timer // runs out when the cursor is to rest; nil while it does
}

// iterator answers {iterator, Id, Opts}.
func (c *call) iterator() {
	v, o, err := c.handleArgs()
	if err != nil {
		c.fail(err)
		return
	}
	defer v.release()
	orphan := o.orphan()
	kind := scan.KV
	if o.atom("rows", "kv", "kv", "keys") == "keys" {
		kind = scan.Keys
	}
	if err := o.done(); err != nil {
		c.fail(err)
		return
	}
	c.okHandle(c.newHandle(v, kindIterator, kind, orphan))
}

// read appends a page, see scan.Cursor.
func (it *iterator) read(dst []byte, r readRequest) (page []byte, done bool, err error) {
	it.mu.Lock()
	defer it.mu.Unlock()
	if it.closed {
		return dst, false, errClosed
	}
	page, done, err = it.cursor.Page(dst, r.at, r.key, r.maxRows, r.maxBytes)
	it.used = time.Now()
	if it.timer == nil {
		it.timer = time.AfterFunc(restAfter, it.rest)
	}
	return page, done, err
}

// rest puts the cursor to rest if it was not used for long enough.
func (it *iterator) rest() {
	it.mu.Lock()
	defer it.mu.Unlock()
	it.timer = nil
	if it.closed {
		return
	}
	if idle := time.Since(it.used); idle < restAfter {
		it.timer = time.AfterFunc(restAfter-idle, it.rest)
		return
	}
	_ = it.cursor.Rest() // an error shows again at the next read
}

// close ends the read under way and gives everything back.
func (it *iterator) close() {
	it.cursor.Cancel(errClosed)
	it.mu.Lock()
	defer it.mu.Unlock()
	it.closed = true
	if it.timer != nil {
		it.timer.Stop()
	}
	_ = it.cursor.Rest() // nobody has been promised anything
}

// readRequest says which rows an iterator_read wants.
type readRequest struct {
	at                scan.Anchor
	key               []byte
	maxRows, maxBytes int
}

// anchors are the words of iterator_read: alone, and with a key.
var (
	bareAnchors = map[string]scan.Anchor{"next": scan.AtNext, "prev": scan.AtPrev, "first": scan.AtFirst, "last": scan.AtLast}
	keyAnchors  = map[string]scan.Anchor{"from": scan.FromKey, "after": scan.AfterKey, "before": scan.BeforeKey, "upto": scan.UpToKey}
)

func parseRead(from, opts []byte) (readRequest, error) {
	var r readRequest
	o := newOptions(opts)
	r.maxRows = int(o.int("max_rows", defaultPageRows, 1, maxPageRows, "a number of rows from 1 to 100000"))
	r.maxBytes = int(o.int("max_bytes", defaultBatchBytes, 0, maxBatchBytes, "a number of bytes up to 16 MiB"))
	if err := o.done(); err != nil {
		return r, err
	}
	ok := false
	if word, _, err := etf.ReadAtom(from); err == nil {
		r.at, ok = bareAnchors[string(word)]
	} else if n, elems, err := etf.ReadTupleHeader(from); err == nil && n == 2 {
		if word, rest, err := etf.ReadAtom(elems); err == nil {
			if r.key, _, err = etf.ReadBinary(rest); err == nil {
				r.at, ok = keyAnchors[string(word)]
			}
		}
	}
	if !ok {
		return r, reasonf(tagBadRequest,
			"a read begins at first, last, next, prev, {from, Key}, {'after', Key}, {before, Key} or {upto, Key} with a binary, got %s", etftext.FormatBytes(from))
	}
	return r, nil
}

// iteratorRead answers {iterator_read, IterId, From, Opts}.
func (c *call) iteratorRead() {
	id, _, err := readIDAndRest(c.arg())
	if err != nil {
		c.fail(err)
		return
	}
	from := c.arg()
	r, err := parseRead(from, c.arg())
	if err != nil {
		c.fail(err)
		return
	}
	v, err := c.link.s.acquireAny(id)
	if err != nil {
		c.fail(err)
		return
	}
	defer v.release()
	if v.handle == nil || v.handle.iterator == nil {
		c.fail(reasonf(tagBadRequest, "%d is not an iterator's id", id))
		return
	}
	c.link.replies <- struct{}{}
	defer func() { <-c.link.replies }()

	// The page is read into the reply itself, behind a length that is filled in
	// afterwards. Nobody waits for the iterator while the reply is sent.
	reply := etf.AppendAtom(etf.AppendTupleHeader(c.begin(4096), 3), "ok")
	reply = etf.AppendBinaryHeader(reply, 0)
	head := len(reply)
	reply, done, err := v.handle.iterator.read(reply, r)
	if err != nil {
		c.fail(err)
		return
	}
	binary.BigEndian.PutUint32(reply[head-4:], uint32(len(reply)-head))
	if done {
		c.send(etf.AppendAtom(reply, "done"))
	} else {
		c.send(etf.AppendAtom(reply, "more"))
	}
}
