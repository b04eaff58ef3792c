package leveldb

import (
	"bytes"
	"errors"
)

// cursor is a sorted source of entries.
type cursor interface {
	// next moves to the next entry; false is the end. It may be called after an error.
	next() (bool, error)
	// seekAfter leaves out entries whose user key is not above key. It may only be
	// called before next.
	seekAfter(key []byte)
	// entry is the current one, valid until the next move.
	entry() (*internalKey, []byte)
	close() error
}

// run walks tables that do not overlap, one after the other.
type run struct {
	s     *Store
	files []tableFile // still to be opened
	table *table      // nil: none is open
	block int         // index of the current one
	ended bool        // the block has no more entries, or none that can be read
	after []byte      // of seekAfter; nil: none

	cursor blockCursor
	key    internalKey
	room   []byte // for unpacked blocks
	window []byte // room for the window of the next table

	// before is the key before, by which damage that no checksum shows is found.
	before internalKey
	begun  bool
}

func (r *run) entry() (*internalKey, []byte) { return &r.key, r.cursor.value }

func (r *run) close() error {
	r.files = nil
	return r.closeTable()
}

func (r *run) closeTable() error {
	if r.table == nil {
		return nil
	}
	r.window = r.table.window.room
	err := r.table.close()
	r.table = nil
	return err
}

// seekAfter passes over whole tables here, by their bounds in the manifest, and over
// entries in next.
func (r *run) seekAfter(key []byte) {
	r.after = bytes.Clone(key)
	for len(r.files) > 0 {
		largest, _ := parseKey(r.files[0].largest)
		if bytes.Compare(largest.user, key) > 0 {
			return
		}
		r.s.done += r.files[0].size
		r.files = r.files[1:]
	}
}

func (r *run) next() (bool, error) {
	for {
		ok, err := r.step()
		switch {
		case err != nil:
			if err = r.s.tolerate(err); err != nil {
				return false, err
			}
		case !ok:
			return false, nil
		case r.after == nil:
			return true, nil
		case bytes.Compare(r.key.user, r.after) > 0:
			r.after = nil
			return true, nil
		}
	}
}

// step moves to the next entry. After an error it goes on in the next block, or in the
// next table where the table is what cannot be read.
func (r *run) step() (bool, error) {
	for {
		if r.table == nil || r.ended {
			if ok, err := r.nextBlock(); !ok {
				return false, err
			}
		}
		at := r.cursor.offset()
		ok, err := r.cursor.next()
		if ok {
			err = r.take()
		}
		if err != nil {
			r.ended = true
			return false, damage(r.table.name, r.table.blocks[r.block].offset, "at offset %d of the block: %v", at, err)
		}
		if ok {
			return true, nil
		}
		r.ended = true
	}
}

var (
	errKey   = errors.New("a key is none of LevelDB's")
	errOrder = errors.New("a key is not above the one before it")
)

// take makes the cursor's key the current one.
func (r *run) take() error {
	key, ok := parseKey(r.cursor.key)
	if !ok {
		return errKey
	}
	if r.begun && r.before.compare(&key) >= 0 {
		return errOrder
	}
	r.key, r.begun = key, true
	r.before.user, r.before.tag = append(r.before.user[:0], key.user...), key.tag
	return nil
}

// nextBlock reads the next block, of the next table where need be. False without an
// error is the end of the run.
func (r *run) nextBlock() (bool, error) {
	for {
		if r.table == nil {
			if len(r.files) == 0 {
				return false, nil
			}
			f := r.files[0]
			r.files = r.files[1:]
			var err error
			if r.table, err = r.s.openTable(f, r.window); err != nil {
				return false, err
			}
			r.window, r.block = nil, -1
		}
		if r.block+1 >= len(r.table.blocks) {
			r.s.done += r.table.size - r.table.counted
			if err := r.closeTable(); err != nil {
				return false, err
			}
			continue
		}
		r.block++
		r.ended = true // until it is there
		h := r.table.blocks[r.block]
		block, err := r.table.read(h, &r.room)
		if err != nil {
			return false, err
		}
		if err := r.cursor.reset(block); err != nil {
			return false, damage(r.table.name, h.offset, "%v", err)
		}
		r.ended = false
		r.s.done += h.size
		r.table.counted += h.size
		return true, nil
	}
}
