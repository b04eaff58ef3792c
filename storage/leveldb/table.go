package leveldb

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
)

// A table ends with a footer of 48 bytes: where the meta index and the index are, room,
// and a number by which tables are known.
//
//	handle | handle | zeros to 40 | magic 8
//
// The index has a key at or behind each block, which is not needed to read in order,
// and the block's handle. The meta index leads to filters and, in Basho's tables, to
// counters; nothing of them is needed either.
const (
	footerBytes = 48
	tableMagic  = 0xdb4775248b80fb57
)

// table is one open table.
type table struct {
	name   string // of the file, with its directory
	file   *os.File
	size   int64 // as the manifest says
	blocks []handle
	window window

	counted int64 // bytes of blocks that progress has
}

// openTable opens a file as a table of size bytes, and reads its index. A *Damage is of
// the file, other errors of the disk.
func openTable(name string, size int64, room []byte) (_ *table, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	t := &table{name: name, file: f, size: size, window: window{in: f, room: room}}
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, damage(name, 0, "it is no plain file")
	}
	if info.Size() < size || size < footerBytes {
		return nil, damage(name, info.Size(), "it has %d bytes, the manifest says %d", info.Size(), size)
	}
	if t.blocks, err = t.readIndex(); err != nil {
		return nil, err
	}
	return t, nil
}

func (t *table) close() error { return t.file.Close() }

// readIndex reads footer and index.
func (t *table) readIndex() ([]handle, error) {
	at := t.size - footerBytes
	b, err := t.window.read(handle{at, footerBytes}, t.size)
	if err != nil {
		return nil, err
	}
	if binary.LittleEndian.Uint64(b[footerBytes-8:]) != tableMagic {
		return nil, damage(t.name, at, "the footer is none of LevelDB's")
	}
	_, rest, ok1 := readHandle(b)
	if !ok1 {
		return nil, damage(t.name, at, "the footer cannot be read")
	}
	index, _, ok2 := readHandle(rest)
	if !ok2 {
		return nil, damage(t.name, at, "the footer cannot be read")
	}
	var room []byte
	block, err := t.read(index, &room)
	if err != nil {
		return nil, err
	}
	return t.parseIndex(index, block)
}

// parseIndex returns the blocks of an index: they follow each other and lie before it.
func (t *table) parseIndex(index handle, block []byte) ([]handle, error) {
	var c blockCursor
	if err := c.reset(block); err != nil {
		return nil, damage(t.name, index.offset, "index: %v", err)
	}
	var blocks []handle
	end := int64(0)
	for {
		ok, err := c.next()
		if err != nil {
			return nil, damage(t.name, index.offset, "index: %v", err)
		}
		if !ok {
			return blocks, nil
		}
		h, _, ok := readHandle(c.value)
		if !ok || h.offset < end || h.size > index.offset || h.offset > index.offset-h.size-blockTrailer {
			return nil, damage(t.name, index.offset, "the index leads to a block at %d of %d bytes", h.offset, h.size)
		}
		end = h.offset + h.size + blockTrailer
		blocks = append(blocks, h)
	}
}

// read reads a block. It is a part of the window or of room, which is grown where it
// must be.
func (t *table) read(h handle, room *[]byte) ([]byte, error) {
	limit := t.size - footerBytes
	if h.size > maxBlockBytes || h.size > limit-blockTrailer || h.offset > limit-blockTrailer-h.size {
		return nil, damage(t.name, h.offset, "a block of %d bytes is not within the file", h.size)
	}
	stored, err := t.window.read(handle{h.offset, h.size + blockTrailer}, limit)
	if err != nil {
		return nil, err
	}
	block, err := unpack(stored, room)
	if err != nil {
		return nil, damage(t.name, h.offset, "%v", err)
	}
	return block, nil
}

// windowBytes is how much of a table is read at once.
const windowBytes = 256 << 10

// window is the part of a file that was read last.
type window struct {
	in   io.ReaderAt
	room []byte
	at   int64
	has  []byte
}

// read returns the bytes of h, which are in the file, valid until the next call. It
// reads ahead, up to limit.
func (w *window) read(h handle, limit int64) ([]byte, error) {
	if from := h.offset - w.at; from >= 0 && from+h.size <= int64(len(w.has)) {
		return w.has[from : from+h.size : from+h.size], nil
	}
	n := min(max(h.size, windowBytes), limit-h.offset)
	if n < h.size {
		return nil, errors.New("read beyond the end") // excluded by the callers
	}
	w.room = grown(w.room, int(n))
	w.at, w.has = h.offset, nil
	if _, err := w.in.ReadAt(w.room, h.offset); err != nil {
		return nil, err
	}
	w.has = w.room
	return w.has[:h.size:h.size], nil
}
