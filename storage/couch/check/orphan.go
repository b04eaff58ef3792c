package check

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"

	"scanode/etf"
	"scanode/storage/couch"
	"scanode/storage/couch/btree"
	"scanode/storage/couch/file"
)

// orphans finds out what lies where nothing leads to.
//
// A chunk says where it ends and not where it begins. So a gap is read from its
// beginning, which is the end of a known chunk, chunk by chunk; zeros up to the end
// of a block are padding. Where no chunk can begin, the next place is looked for at
// which one begins that is a node or a body beyond doubt; see resync. What a chunk is
// its content tells, or else it is unknown.
type orphans struct {
	in      *inspection
	node    btree.Node
	payload []byte
	plain   []byte
	window  []byte // of the file,
	start   int64  // from here on

	unknown     spill // chunks of which nothing tells what they are
	attachments spill // pieces that orphaned bodies lead to
}

func newOrphans(in *inspection) *orphans {
	return &orphans{
		in:          in,
		unknown:     spill{limit: in.o.SortRecords, dir: in.o.TempDir},
		attachments: spill{limit: in.o.SortRecords, dir: in.o.TempDir},
	}
}

func (o *orphans) close() { o.in.closeSpills(&o.unknown, &o.attachments) }

// windowSize is how much of the file is read at once.
const windowSize = 256 << 10

// raw returns at least one and at most n bytes of the file at off, which must be
// within it. They are valid until the next call.
func (o *orphans) raw(off int64, n int) ([]byte, error) {
	have := o.start + int64(len(o.window)) - off
	if off < o.start || have < min(int64(n), o.in.f.Size()-off) {
		size := min(max(int64(n), windowSize), o.in.f.Size()-off)
		if int64(cap(o.window)) < size {
			o.window = make([]byte, size)
		}
		o.window, o.start = o.window[:size], off
		if err := o.in.f.ReadRaw(o.window, off); err != nil {
			o.window = o.window[:0]
			return nil, err
		}
	}
	b := o.window[off-o.start:]
	return b[:min(len(b), n)], nil
}

// gap goes through the bytes from start to end. A chunk or a header ends at start,
// or the file begins there.
func (o *orphans) gap(start, end int64) error {
	b := o.in.rep.Bytes
	// What decoding at wrong places may cost all in all.
	budget := 8*(end-start) + 1<<20
	for pos := start; pos < end; {
		done := pos
		zeros, err := o.zeros(pos, end)
		if err != nil {
			return err
		}
		u, size, err := o.chunk(pos, end, zeros)
		if err != nil {
			return err
		}
		switch {
		case size > 0:
			b.add(u, size)
			pos += size
		case zeros > 0:
			b.add(usePadding, zeros)
			pos += zeros
		default:
			next, err := o.resync(pos, end, &budget)
			if err != nil {
				return err
			}
			b.add(useUnreadable, next-pos)
			pos = next
		}
		o.in.progress(pos - done)
	}
	return nil
}

// zeros returns how many zeros lie at pos if they reach to the end of the block or
// of the gap, and else 0.
func (o *orphans) zeros(pos, end int64) (int64, error) {
	n := min(file.BlockSize-pos%file.BlockSize, end-pos)
	raw, err := o.raw(pos, int(n))
	if err != nil {
		return 0, err
	}
	for _, c := range raw[:n] {
		if c != 0 {
			return 0, nil
		}
	}
	return n, nil
}

// maxOrphan is the largest chunk that is looked into. Nodes and bodies are smaller.
const maxOrphan = 64 << 20

// chunk returns what the chunk at pos is and how many bytes it takes, or size 0 if
// none begins there. zeros is what zeros has said of pos.
func (o *orphans) chunk(pos, end, zeros int64) (u use, size int64, err error) {
	if pos%file.BlockSize == 0 {
		if u, size, err := o.brokenHeader(pos, end); size > 0 || err != nil {
			return u, size, err
		}
	}
	c, err := o.in.f.Stat(pos)
	switch {
	case errors.Is(err, file.ErrBeyondEOF):
		return 0, 0, nil
	case err != nil:
		return 0, 0, err
	}
	size = min(c.Size, o.in.f.Size()-pos)
	if c.Length == 0 || size > end-pos {
		return 0, 0, nil
	}
	if c.Length > maxOrphan {
		return useUnknown, size, o.unknown.add(record{uint64(pos), uint64(size), 0})
	}
	u, err = o.classify(pos)
	if err != nil {
		return 0, 0, err
	}
	if u == useUnreadable {
		// Its end is believed where something whole begins.
		if ok, err := o.whole(pos+size, end); !ok || err != nil {
			return 0, 0, err
		}
		return u, size, nil
	}
	if u == useUnknown && zeros > 0 && !shortZeros(pos, end, zeros) {
		return 0, 0, nil
	}
	switch {
	case u == useUnknown:
		err = o.unknown.add(record{uint64(pos), uint64(size), 0})
	case u == orphanKV && o.in.orphanLeaf != nil:
		err = o.in.orphanLeaf(&o.node, pos)
	}
	return u, size, err
}

// whole says whether a chunk of which is told what it is begins at pos, or the gap
// ends there.
func (o *orphans) whole(pos, end int64) (bool, error) {
	if pos >= end {
		return pos == end, nil
	}
	c, err := o.in.f.Stat(pos)
	if errors.Is(err, file.ErrBeyondEOF) {
		return false, nil
	}
	if err != nil || c.Length > maxOrphan || c.Size > end-pos+1 {
		return false, err
	}
	u, err := o.classify(pos)
	return u != useUnreadable && (u != useUnknown || c.Summed), err
}

// shortZeros says whether zeros up to the end of a block are rather the beginning of
// a length word than padding: there are no more of them than such a word may begin
// with, and no header follows, for which they would have been written.
func shortZeros(pos, end, zeros int64) bool { return zeros < 4 && pos+zeros < end }

// brokenHeader reports a block that begins a header which cannot be read: all that
// can be read are extents. It returns size 0 for any other block.
func (o *orphans) brokenHeader(pos, end int64) (u use, size int64, err error) {
	raw, err := o.raw(pos, 5)
	if err != nil {
		return 0, 0, err
	}
	tagged := raw[0] == 1
	h, err := o.in.f.GuessHeader(pos)
	if err == nil && h.Size <= end-pos+1 && pos+h.Size > o.in.f.Size() {
		h.Size = o.in.f.Size() - pos
	}
	switch {
	case err == nil && h.Size <= end-pos:
		o.lostHeader(pos, true, "a header with the right checksum, and a wrong tag or length")
		return useUnreadable, h.Size, nil
	case err != nil && !errors.Is(err, file.ErrNoHeader):
		return 0, 0, err
	case !tagged:
		return 0, 0, nil
	}
	_, err = o.in.f.HeaderAt(pos)
	switch {
	case err == nil, errors.Is(err, file.ErrHeaderTerm):
		// It lies in a chunk that was found to overlap it.
		return 0, 0, nil
	case !damaging(err) && !errors.Is(err, file.ErrNoHeader):
		return 0, 0, err
	}
	o.lostHeader(pos, errors.Is(err, file.ErrChecksum), "a header that cannot be read: "+reason(err))
	if len(raw) < 5 {
		return useUnreadable, end - pos, nil
	}
	// Its length is believed if it would be whole.
	size = headerExtent(int64(binary.BigEndian.Uint32(raw[1:])))
	if size > end-pos {
		size = min(end-pos, file.BlockSize)
	}
	return useUnreadable, size, nil
}

// lostHeader reports a header that no reader takes. Behind the newest one that was
// written whole it is damage: what it has committed is lost. Else it is what a loss
// of power leaves.
func (o *orphans) lostHeader(pos int64, whole bool, text string) {
	f := Finding{Text: text, Offset: pos}
	if whole && pos > o.in.newest {
		o.in.rep.damage(f)
	} else {
		o.in.rep.note(f)
	}
}

// headerExtent is how many bytes of the file a header of n bytes takes.
func headerExtent(n int64) int64 {
	size := 5 + n
	if more := size - file.BlockSize; more > 0 {
		size += (more + file.BlockSize - 2) / (file.BlockSize - 1)
	}
	if size%file.BlockSize == 0 {
		size++
	}
	return size
}

// classify says what the chunk at pos is by its content. useUnreadable: it has a
// wrong checksum.
func (o *orphans) classify(pos int64) (use, error) {
	payload, info, err := o.in.f.ReadChunk(o.payload[:0], pos)
	o.payload = payload[:0]
	switch {
	case err != nil && damaging(err):
		return useUnreadable, nil
	case err != nil:
		return 0, err
	}
	if info.Summed {
		// Stores have checksums on nodes and records, too.
		if couch.IsRecord(payload) {
			return orphanLog, nil
		}
		if u, err := o.body(payload); u != useUnknown || err != nil {
			return u, err
		}
	}
	plain, err := file.Decompress(o.plain[:0], payload, maxOrphan)
	o.plain = plain[:0]
	if err != nil {
		return useUnknown, nil
	}
	if err := o.node.Parse(plain); err == nil {
		if o.node.Leaf {
			return orphanKV, nil
		}
		return orphanKP, nil
	}
	if info.Summed {
		return useUnknown, nil
	}
	if rest, err := skip(plain[1:]); err == nil && len(rest) == 0 {
		return orphanTerm, nil
	}
	return useUnknown, nil
}

// body looks whether the payload of a chunk with a checksum is a document's body,
// and remembers where its attachments are.
func (o *orphans) body(payload []byte) (use, error) {
	_, atts, err := bodyTerms(payload)
	if err != nil {
		return useUnknown, nil
	}
	list, err := readAttachments(atts)
	if err != nil {
		return useUnknown, nil
	}
	for _, a := range list {
		for _, p := range a.pieces {
			if err := o.attachments.add(record{a: uint64(p.ptr)}); err != nil {
				return 0, err
			}
		}
	}
	return orphanBody, nil
}

// resync returns the next place from pos on at which a node or a body begins, or a
// header may, or end. What it may read to be sure is taken from budget; when that is
// used up, only the beginnings of blocks are looked at.
func (o *orphans) resync(pos, end int64, budget *int64) (int64, error) {
	padding := int64(-1)
	for at := pos + 1; at < end; at++ {
		if at == pos+1 || at%file.BlockSize == 0 {
			var err error
			if padding, err = o.trailingZeros(at, end); err != nil {
				return 0, err
			}
		}
		raw, err := o.raw(at, 64)
		if err != nil {
			return 0, err
		}
		if at == padding || at%file.BlockSize == 0 && (raw[0] == 1 || headerLike(raw)) {
			return at, nil
		}
		if *budget <= 0 {
			at += file.BlockSize - at%file.BlockSize - 1
			continue
		}
		if !plausible(raw, at, end) {
			continue
		}
		c, err := o.in.f.Stat(at)
		if errors.Is(err, file.ErrBeyondEOF) {
			continue
		}
		if err != nil {
			return 0, err
		}
		if c.Size > end-at+1 || c.Length > maxOrphan {
			continue
		}
		*budget -= c.Size
		u, err := o.classify(at)
		if err != nil {
			return 0, err
		}
		if u != useUnreadable && u != useUnknown {
			return at, nil
		}
	}
	return end, nil
}

// headerLike says whether a block may begin a header, whatever its tag.
func headerLike(raw []byte) bool {
	return len(raw) > 22 && raw[1] < 0x80 && raw[21] == etf.Version && raw[22] == etf.TagSmallTuple
}

// minPadding is how many zeros are taken for padding where the bytes before them
// are not known.
const minPadding = 32

// trailingZeros returns where the zeros begin that reach to the end of the block at
// lies in, or to end; -1 if there are too few.
func (o *orphans) trailingZeros(at, end int64) (int64, error) {
	n := min(file.BlockSize-at%file.BlockSize, end-at)
	raw, err := o.raw(at, int(n))
	if err != nil {
		return 0, err
	}
	i := n
	for i > 0 && raw[i-1] == 0 {
		i--
	}
	if n-i < minPadding {
		return -1, nil
	}
	return at + i, nil
}

// Beginnings of what is looked for: nodes as they are, in a snappy block, in
// zlib, and bodies.
var (
	nodeStart  = []byte{etf.Version, etf.TagSmallTuple, 2, etf.TagAtom, 0, 7, 'k'}
	zlibStart  = []byte{etf.Version, etf.TagCompressed}
	bodyStart  = []byte{etf.Version, etf.TagSmallTuple, 2, etf.TagBinary}
	zstdStart  = []byte{0x28, 0xb5, 0x2f, 0xfd}
	snappyByte = byte(1)
)

// plausible says whether a chunk of those that resync looks for may begin with raw,
// which lies at off, and end before end.
func plausible(raw []byte, off, end int64) bool {
	var content [48]byte
	b := content[:0]
	for i := 0; i < len(raw) && len(b) < len(content); i++ {
		if (off+int64(i))%file.BlockSize != 0 {
			b = append(b, raw[i])
		}
	}
	if len(b) < len(content) {
		return len(b) > 4 && off+int64(len(raw)) >= end // too near to the end to tell cheaply
	}
	word := binary.BigEndian.Uint32(b)
	if n := int64(word & math.MaxInt32); n < 10 || n > end-off {
		return false
	}
	if word > math.MaxInt32 {
		return bytes.HasPrefix(b[20:], bodyStart)
	}
	b = b[4:]
	switch {
	case bytes.HasPrefix(b, nodeStart), bytes.HasPrefix(b, zlibStart), bytes.HasPrefix(b, zstdStart):
		return true
	case b[0] == snappyByte:
		// Length and literal come before the node's first bytes.
		return bytes.Contains(b[2:20], nodeStart[:4])
	}
	return false
}

// finish tells attachments from other unknown chunks: those that an orphaned body
// leads to.
func (o *orphans) finish() error {
	b := o.in.rep.Bytes
	last := int64(-1)
	next, stop := pullRecords(o.attachments.sorted())
	defer stop()
	a, more, err := next()
	for r, e := range o.unknown.sorted() {
		if err = errors.Join(err, e); err != nil {
			return err
		}
		for more && a.a < r.a {
			a, more, err = next()
		}
		if more && a.a == r.a && int64(r.a) != last {
			last = int64(r.a)
			*b.of(useUnknown) -= int64(r.b)
			*b.of(orphanAttachment) += int64(r.b)
			continue
		}
	}
	return err
}
