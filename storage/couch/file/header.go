package file

import (
	"encoding/binary"
	"errors"
	"iter"
	"slices"

	"scanode/etf"
)

// Header is a header that was found or written.
type Header struct {
	Ptr  int64  // offset of its block
	Size int64  // bytes of the file from Ptr on, tags included
	Sum  Sum    // kind of its checksum
	Term []byte // the term, encoded, with its version byte; the receiver's to keep
}

const (
	// headerStart is where a header's content begins in its block: behind the tag
	// and the length word.
	headerStart = 1 + lengthSize
	// toleratedBlocks is how far into a header the tags are not looked at; see
	// readHeader.
	toleratedBlocks = 16
	// windowBlocks is how many blocks the search for headers reads at once at most.
	windowBlocks = 1024
)

// WriteHeader appends a header that holds term, without a sync. term is an encoded
// term with its version byte, not compressed. Pointers in it must be to chunks that
// are synced, or losing power may leave a header that leads to nothing; see Commit.
//
// Errors: as Append; ErrHeaderTerm when term is none, and then nothing is written.
func (f *File) WriteHeader(term []byte) (Header, error) {
	if err := f.checkHeader(term); err != nil {
		return Header{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writeHeader(term)
}

// Commit makes durable what was appended, then writes a header that holds term, and
// makes that durable. When it returns nil, the header is what will be found.
//
// Errors: as WriteHeader.
func (f *File) Commit(term []byte) (Header, error) {
	if err := f.checkHeader(term); err != nil {
		return Header{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.sync(); err != nil {
		return Header{}, err
	}
	h, err := f.writeHeader(term)
	if err != nil {
		return Header{}, err
	}
	if err := f.sync(); err != nil {
		return Header{}, err
	}
	return h, nil
}

// checkHeader refuses what would make the file useless: the search for headers
// does not go on behind one that is no term.
func (f *File) checkHeader(term []byte) error {
	if int64(len(term)) > f.maxChunk-sumSize {
		return f.fault(-1, ErrTooLarge, "header of %d bytes, limit %d", len(term), f.maxChunk-sumSize)
	}
	rest, err := etf.SkipVersion(term)
	if err == nil {
		rest, err = etf.Check(rest)
	}
	if err != nil {
		return f.fault(-1, ErrHeaderTerm, "%v", err)
	}
	if len(rest) > 0 {
		return f.fault(-1, ErrHeaderTerm, "%d bytes too many", len(rest))
	}
	return nil
}

// writeHeader is WriteHeader with f.mu held.
func (f *File) writeHeader(term []byte) (Header, error) {
	start := f.eof.Load()
	pad := int((BlockSize - start%BlockSize) % BlockSize)
	ptr := start + int64(pad)
	b := slices.Grow(f.buf[:0], pad)[:pad]
	clear(b)
	b = append(b, tagHeader)
	b = binary.BigEndian.AppendUint32(b, uint32(sumSize+len(term)))
	sum := f.sum.of(term)
	b = appendBlocks(b, ptr+headerStart, sum[:])
	b = appendBlocks(b, start+int64(len(b)), term)
	if err := f.write(b); err != nil {
		return Header{}, err
	}
	return Header{Ptr: ptr, Size: int64(len(b) - pad), Sum: f.sum, Term: slices.Clone(term)}, nil
}

// LastHeader returns the newest header.
//
// Errors: ErrNoHeader; ErrHeaderTerm, for a header that is no term is no reason to
// take an older one; those of the file system.
func (f *File) LastHeader() (Header, error) {
	for h, err := range f.Headers(f.Size()) {
		return h, err
	}
	return Header{}, f.fault(-1, ErrNoHeader, "%d bytes", f.Size())
}

// Headers returns all headers that begin before offset before, newest first. One
// that is no term comes with ErrHeaderTerm, and the search can go on; after any
// other error it ends.
//
// Differs from couch_file, which takes a block that cannot be read for one without
// a header: appending behind an older header than the newest would lose what was
// committed since.
func (f *File) Headers(before int64) iter.Seq2[Header, error] {
	return func(yield func(Header, error) bool) {
		if err := f.usable(); err != nil {
			yield(Header{}, err)
			return
		}
		eof := f.Size()
		before = min(before, eof)
		var window []byte
		// The newest header is nearly always in the last block, so windows begin
		// small.
		for blocks := int64(1); before > 0; blocks = min(4*blocks, windowBlocks) {
			end := (before + BlockSize - 1) / BlockSize
			start := max(0, end-blocks)
			size := min(end*BlockSize, eof) - start*BlockSize
			window = slices.Grow(window[:0], int(size))[:size]
			// One read of the window, not one of five bytes a block: the pages are
			// read anyway, and backwards nothing is read ahead.
			if err := f.readAt(window, start*BlockSize); err != nil {
				yield(Header{}, err)
				return
			}
			for i := end - start - 1; i >= 0; i-- {
				if window[i*BlockSize] != tagHeader {
					continue
				}
				h, err := f.readHeader((start+i)*BlockSize, eof)
				if isCandidate(err) {
					continue
				}
				if !yield(h, err) || err != nil && !errors.Is(err, ErrHeaderTerm) {
					return
				}
			}
			before = start * BlockSize
		}
	}
}

// isCandidate says whether err means that a block only looked like a header.
func isCandidate(err error) bool {
	return errors.Is(err, ErrChecksum) || errors.Is(err, ErrBeyondEOF) || errors.Is(err, ErrTooLarge)
}

// HeaderAt returns the header in the block at ptr.
//
// Errors: ErrNoHeader when none begins there; ErrBeyondEOF, ErrChecksum, ErrTooLarge
// when what begins there is not whole; ErrHeaderTerm; those of the file system.
func (f *File) HeaderAt(ptr int64) (Header, error) {
	if err := f.usable(); err != nil {
		return Header{}, err
	}
	eof := f.Size()
	if ptr < 0 || ptr >= eof || ptr%BlockSize != 0 {
		return Header{}, f.fault(ptr, ErrNoHeader, "not a block of the file")
	}
	var tag [1]byte
	if err := f.readAt(tag[:], ptr); err != nil {
		return Header{}, err
	}
	if tag[0] != tagHeader {
		return Header{}, f.fault(ptr, ErrNoHeader, "tag %d", tag[0])
	}
	return f.readHeader(ptr, eof)
}

// readHeader reads what may be a header at ptr. It reads as it goes, so that a
// length that is not true costs no more than the bytes that are there.
//
// Differs from couch_file: a header of more than toleratedBlocks in which another
// block says that a header begins is none. No writer makes one. Without this rule a
// file of such blocks, each with a large length, would be read once for each block.
func (f *File) readHeader(ptr, eof int64) (Header, error) {
	b := make([]byte, min(BlockSize, eof-ptr))
	if err := f.readAt(b, ptr); err != nil {
		return Header{}, err
	}
	if len(b) < headerStart {
		return Header{}, f.fault(ptr, ErrBeyondEOF, "header")
	}
	length := int64(binary.BigEndian.Uint32(b[1:]))
	whole := headerStart + extent(ptr+headerStart, length)
	switch {
	case length < sumSize:
		return Header{}, f.fault(ptr, ErrChecksum, "header of %d bytes", length)
	case whole > eof-ptr:
		return Header{}, f.fault(ptr, ErrBeyondEOF, "header of %d bytes, and the end is at %d", whole, eof)
	case length > f.maxChunk:
		return Header{}, f.fault(ptr, ErrTooLarge, "header of %d bytes, limit %d", length, f.maxChunk)
	}
	for have := int64(len(b)); have < whole; have = int64(len(b)) {
		// have is a whole number of blocks here.
		more := min(whole-have, max(have, toleratedBlocks*BlockSize))
		b = slices.Grow(b, int(more))[:have+more]
		if err := f.readAt(b[have:], ptr+have); err != nil {
			return Header{}, err
		}
		for at := have; at < have+more; at += BlockSize {
			if at >= toleratedBlocks*BlockSize && b[at] == tagHeader {
				return Header{}, f.fault(ptr, ErrChecksum, "header of %d bytes with another in it", length)
			}
		}
	}
	content := stripBlocks(b[headerStart:whole], ptr+headerStart, 0)
	h := Header{Ptr: ptr, Size: headerStart + written(ptr+headerStart, length), Term: content[sumSize:]}
	var ok bool
	if h.Sum, ok = f.sum.verify([sumSize]byte(content), h.Term); !ok {
		return Header{}, f.fault(ptr, ErrChecksum, "header of %d bytes", length)
	}
	return f.decodeHeader(h)
}

// decodeHeader looks whether h holds a term.
func (f *File) decodeHeader(h Header) (Header, error) {
	rest, err := etf.SkipVersion(h.Term)
	if err == nil {
		_, err = etf.Check(rest)
	}
	if err != nil {
		return h, f.fault(h.Ptr, ErrHeaderTerm, "%v", err)
	}
	return h, nil
}
