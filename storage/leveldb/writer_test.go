package leveldb

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"github.com/golang/snappy"
	"github.com/pierrec/lz4/v4"
)

// The writers here make files as Basho's LevelDB does, from the description of the
// formats and not from the readers: they are what Basho directories in tests come from.

// entry is one entry of a table, or one write of a log.
type entry struct {
	key, value string
	seq        uint64
	kind       byte
	time       uint64
}

// internal encodes the key of an entry.
func (e entry) internal() []byte {
	b := []byte(e.key)
	if e.kind == 2 || e.kind == 3 {
		b = binary.LittleEndian.AppendUint64(b, e.time)
	}
	return binary.LittleEndian.AppendUint64(b, e.seq<<8|uint64(e.kind))
}

// storedSum is a CRC-32C as it is stored.
func storedSum(b []byte) uint32 {
	sum := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
	return (sum>>15 | sum<<17) + 0xa282ead8
}

// blockWriter writes the entries of a block, with a restart every 16.
type blockWriter struct {
	buf      []byte
	restarts []uint32
	n        int
	last     []byte
}

func (w *blockWriter) add(key, value []byte) {
	shared := 0
	if w.n%16 == 0 {
		w.restarts = append(w.restarts, uint32(len(w.buf)))
	} else {
		for shared < len(w.last) && shared < len(key) && w.last[shared] == key[shared] {
			shared++
		}
	}
	w.n++
	w.buf = binary.AppendUvarint(w.buf, uint64(shared))
	w.buf = binary.AppendUvarint(w.buf, uint64(len(key)-shared))
	w.buf = binary.AppendUvarint(w.buf, uint64(len(value)))
	w.buf = append(append(w.buf, key[shared:]...), value...)
	w.last = bytes.Clone(key)
}

func (w *blockWriter) finish() []byte {
	if len(w.restarts) == 0 {
		w.restarts = []uint32{0}
	}
	for _, r := range w.restarts {
		w.buf = binary.LittleEndian.AppendUint32(w.buf, r)
	}
	b := binary.LittleEndian.AppendUint32(w.buf, uint32(len(w.restarts)))
	*w = blockWriter{}
	return b
}

// tableWriter writes a table in memory.
type tableWriter struct {
	out         []byte
	compression byte
	blockBytes  int
	block       blockWriter
	index       blockWriter
	last        []byte
	blocks      [][2]int // offset and size of each, for tests that damage them
}

func (w *tableWriter) add(e entry) {
	w.last = e.internal()
	w.block.add(w.last, []byte(e.value))
	if len(w.block.buf) >= w.blockBytes {
		w.endBlock()
	}
}

func (w *tableWriter) endBlock() {
	if w.block.n == 0 {
		return
	}
	h := w.store(w.block.finish(), w.compression)
	w.blocks = append(w.blocks, [2]int{h[0], h[1]})
	w.index.add(w.last, w.handle(h))
}

func (w *tableWriter) handle(h [2]int) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(h[0])), uint64(h[1]))
}

// store appends a block and its trailer.
func (w *tableWriter) store(raw []byte, compression byte) [2]int {
	packed := raw
	switch compression {
	case 1:
		packed = snappy.Encode(nil, raw)
	case 2:
		room := make([]byte, lz4.CompressBlockBound(len(raw)))
		n, err := lz4.CompressBlock(raw, room, nil)
		if err != nil {
			panic(err)
		}
		if n == 0 { // it cannot be packed
			compression = 0
			break
		}
		packed = append(binary.LittleEndian.AppendUint32(nil, uint32(len(raw))), room[:n]...)
	}
	h := [2]int{len(w.out), len(packed)}
	start := len(w.out)
	w.out = append(append(w.out, packed...), compression)
	w.out = binary.LittleEndian.AppendUint32(w.out, storedSum(w.out[start:]))
	return h
}

func (w *tableWriter) finish() []byte {
	w.endBlock()
	var meta blockWriter
	counters := w.store([]byte("no counters of sst tables, but bytes all the same"), 0)
	meta.add([]byte("stats.sst1"), w.handle(counters))
	footer := w.handle(w.store(meta.finish(), 0))
	footer = append(footer, w.handle(w.store(w.index.finish(), w.compression))...)
	footer = append(footer, make([]byte, 40-len(footer))...)
	w.out = append(w.out, footer...)
	w.out = binary.LittleEndian.AppendUint64(w.out, 0xdb4775248b80fb57)
	return w.out
}

// logWriter writes records.
type logWriter struct{ out []byte }

func (w *logWriter) add(record []byte) {
	first := true
	for {
		left := 32768 - len(w.out)%32768
		if left < 7 {
			w.out = append(w.out, make([]byte, left)...)
			left = 32768
		}
		n := min(left-7, len(record))
		last := n == len(record)
		kind := byte(3)
		switch {
		case first && last:
			kind = 1
		case first:
			kind = 2
		case last:
			kind = 4
		}
		w.out = binary.LittleEndian.AppendUint32(w.out, storedSum(append([]byte{kind}, record[:n]...)))
		w.out = binary.LittleEndian.AppendUint16(w.out, uint16(n))
		w.out = append(append(w.out, kind), record[:n]...)
		record, first = record[n:], false
		if last {
			return
		}
	}
}

// batchRecord is a batch of writes with consecutive sequence numbers.
func batchRecord(seq uint64, writes []entry) []byte {
	b := binary.LittleEndian.AppendUint64(nil, seq)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(writes)))
	text := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	for _, e := range writes {
		b = append(b, e.kind)
		text(e.key)
		if e.kind == 2 || e.kind == 3 {
			b = binary.AppendUvarint(b, e.time)
		}
		if e.kind != 0 {
			text(e.value)
		}
	}
	return b
}

// editWriter writes an edit of a manifest.
type editWriter struct{ out []byte }

func (w *editWriter) uints(v ...uint64) *editWriter {
	for _, n := range v {
		w.out = binary.AppendUvarint(w.out, n)
	}
	return w
}

func (w *editWriter) bytes(b []byte) *editWriter {
	w.uints(uint64(len(b)))
	w.out = append(w.out, b...)
	return w
}

// bashoDir is a directory as Basho's LevelDB keeps it, being written.
type bashoDir struct {
	t           testing.TB
	fast, slow  string // the same without tiered storage
	slowLevel   int
	compression byte
	manifest    logWriter
	next        uint64 // number of a file
	seq         uint64
}

func newBashoDir(t testing.TB, fast, slow string, slowLevel int, compression byte) *bashoDir {
	d := &bashoDir{t: t, fast: fast, slow: slow, slowLevel: slowLevel, compression: compression, next: 10}
	for level := range 7 {
		if err := os.MkdirAll(filepath.Join(d.root(level), fmt.Sprintf("sst_%d", level)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var e editWriter
	e.uints(1).bytes([]byte("leveldb.BytewiseComparator"))
	d.manifest.add(e.out)
	return d
}

func (d *bashoDir) root(level int) string {
	if level < d.slowLevel {
		return d.fast
	}
	return d.slow
}

func (d *bashoDir) write(path string, b []byte) {
	d.t.Helper()
	if err := os.WriteFile(path, b, 0o644); err != nil {
		d.t.Fatal(err)
	}
}

// table writes entries, which are sorted, as a table of a level and returns its name
// and the writer.
func (d *bashoDir) table(level int, entries []entry) (string, *tableWriter) {
	d.t.Helper()
	w := &tableWriter{compression: d.compression, blockBytes: 512}
	for _, e := range entries {
		w.add(e)
	}
	n := d.next
	d.next++
	path := filepath.Join(d.root(level), fmt.Sprintf("sst_%d", level), fmt.Sprintf("%06d.sst", n))
	d.write(path, w.finish())
	var e editWriter
	e.uints(11, uint64(level), n, uint64(len(w.out))) // the second form of a table
	e.bytes(entries[0].internal()).bytes(entries[len(entries)-1].internal())
	e.uints(1700000000000000, 1800000000000000, 0)
	d.manifest.add(e.out)
	return path, w
}

// log writes batches as a log and returns its name.
func (d *bashoDir) log(batches ...[]entry) (string, *logWriter) {
	d.t.Helper()
	var w logWriter
	for _, writes := range batches {
		w.add(batchRecord(writes[0].seq, writes))
	}
	path := filepath.Join(d.fast, fmt.Sprintf("%06d.log", d.next))
	d.next++
	d.write(path, w.out)
	return path, &w
}

// finish writes manifest and CURRENT; logs from number log on count.
func (d *bashoDir) finish(log uint64) {
	d.t.Helper()
	var e editWriter
	e.uints(2, log, 9, 0, 3, d.next, 4, 1<<40)
	d.manifest.add(e.out)
	d.write(filepath.Join(d.fast, "MANIFEST-000005"), d.manifest.out)
	d.write(filepath.Join(d.fast, "CURRENT"), []byte("MANIFEST-000005\n"))
	d.write(filepath.Join(d.fast, "LOCK"), nil)
}
