package transfer

import (
	"errors"
	"fmt"

	"scanode/storage"
	"scanode/storage/dump"
)

// Source gives rows in strictly ascending order of their keys. Slices are valid until
// the next call.
type Source interface {
	// SeekAfter leaves out the rows whose key is not above key. It is called before the
	// first Next or not at all. False means that the source cannot; then it still
	// gives all rows.
	SeekAfter(key []byte) bool
	Next() bool
	Key() []byte
	Value() []byte
	// Written is when the row was written, in microseconds since 1970; 0 is unknown.
	Written() uint64
	// Skipped is how much was left out so far because it could not be read.
	Skipped() int64
	// Err is the error that has ended the rows.
	Err() error
}

// Bounds of a batch: below the size from which on the engine lsm counts batches.
const (
	batchBytes = 512 << 10
	batchRows  = 8192
)

// batch is rows on their way from the reader to the writer, and what is true once they
// are in the store. Keys and values are in room.
type batch struct {
	ops     []storage.Op
	room    []byte
	sum     dump.Sum
	skipped int64
	end     bool // no more rows come
}

func (b *batch) copy(v []byte) []byte {
	start := len(b.room)
	b.room = append(b.room, v...) // what was copied before stays where it is
	return b.room[start:len(b.room):len(b.room)]
}

func (b *batch) add(key, value []byte, written uint64) {
	b.ops = append(b.ops, storage.Op{Kind: storage.Put, Key: b.copy(key), Value: b.copy(value), Written: written})
}

func (b *batch) reset() { b.ops, b.room, b.end = b.ops[:0], b.room[:0], false }

// lastKey is the last key of a batch with rows.
func (b *batch) lastKey() []byte { return b.ops[len(b.ops)-1].Key }

// reader fills batches.
type reader struct {
	source  Source
	sum     dump.Sum
	skipped int64  // before this run
	passed  []byte // rows up to this key are in the store; nil: none
	last    []byte // the key before
	begun   bool   // last is one
}

var errOrder = errors.New("rows do not come in the order of their keys")

// fill fills b. What was read before an error is in b, too.
func (r *reader) fill(b *batch) error {
	b.reset()
	for len(b.room) < batchBytes && len(b.ops) < batchRows {
		if !r.source.Next() {
			err := r.source.Err()
			r.note(b)
			b.end = err == nil
			return err
		}
		key, value := r.source.Key(), r.source.Value()
		if r.begun && string(key) <= string(r.last) {
			r.note(b)
			return fmt.Errorf("%w: %q comes after %q", errOrder, short(key), short(r.last))
		}
		r.begun, r.last = true, append(r.last[:0], key...)
		r.sum.Add(key, value)
		if r.passed != nil && string(key) <= string(r.passed) {
			continue
		}
		b.add(key, value, r.source.Written())
	}
	r.note(b)
	return nil
}

func (r *reader) note(b *batch) { b.sum, b.skipped = r.sum, r.skipped+r.source.Skipped() }

// short cuts a key to what can be shown.
func short(key []byte) []byte { return key[:min(len(key), 64)] }

// pipe is a reader on a goroutine of its own, and batches that go round between it and
// the writer.
type pipe struct {
	full chan *batch
	free chan *batch
	quit chan struct{}
	err  error // why full was closed; read after that only
}

// pipeBatches is how many batches there are.
const pipeBatches = 4

func startPipe(r *reader) *pipe {
	p := &pipe{full: make(chan *batch, pipeBatches), free: make(chan *batch, pipeBatches), quit: make(chan struct{})}
	for range pipeBatches {
		p.free <- &batch{}
	}
	go p.run(r)
	return p
}

func (p *pipe) run(r *reader) {
	defer close(p.full)
	for {
		var b *batch
		select {
		case b = <-p.free:
		case <-p.quit:
			return
		}
		p.err = r.fill(b)
		if len(b.ops) > 0 || b.end {
			p.full <- b // has room for all
		}
		if p.err != nil || b.end {
			return
		}
		if len(b.ops) == 0 {
			p.free <- b
		}
	}
}

// next returns the next batch, or the error behind the last, or ErrStopped when stop is
// closed before it is there.
func (p *pipe) next(stop <-chan struct{}) (*batch, error) {
	select {
	case b, ok := <-p.full:
		if !ok {
			return nil, p.err
		}
		return b, nil
	case <-stop:
		return nil, ErrStopped
	}
}

// back gives a batch back.
func (p *pipe) back(b *batch) { p.free <- b }

// end ends the goroutine. It waits for it, unless stop is closed: the source may be
// waiting for input that never comes.
func (p *pipe) end(stop <-chan struct{}) {
	close(p.quit)
	for {
		select {
		case _, more := <-p.full:
			if !more {
				return
			}
		case <-stop:
			return
		}
	}
}
