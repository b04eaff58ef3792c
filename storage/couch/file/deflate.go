package file

import (
	"bytes"
	"encoding/binary"
	"io"
	"sync"

	"github.com/klauspost/compress/zlib"

	"scanode/etf"
)

// deflatePrefix is what stands before the zlib stream: version, tag, and the size
// of the term without its version byte.
const deflatePrefix = 1 + 1 + 4

// deflaters keeps zlib writers by level: making one takes hundreds of kilobytes,
// more than all else that writing a node takes; see BenchmarkCompress.
var deflaters [10]sync.Pool

// inflaters keeps inflaters for the same reason.
var inflaters sync.Pool

// inflater is a zlib reader and what it reads from.
type inflater struct {
	source bytes.Reader
	r      io.ReadCloser // nil until a stream began well
}

func (in *inflater) reset(data []byte) (err error) {
	in.source.Reset(data)
	if in.r == nil {
		in.r, err = zlib.NewReader(&in.source)
		return err
	}
	return in.r.(zlib.Resetter).Reset(&in.source, nil)
}

// free gives in back without the bytes it has read.
func (in *inflater) free() {
	in.source.Reset(nil)
	inflaters.Put(in)
}

// appendDeflated appends term as term_to_binary compresses it: deflated where that
// is not larger.
func (c Compression) appendDeflated(dst, term []byte) []byte {
	if len(term) == 0 || term[0] != etf.Version {
		return append(dst, term...) // not a term; whoever reads it will see
	}
	n := len(dst)
	out := sink{append(dst, etf.Version, tagCompressed)}
	out.b = binary.BigEndian.AppendUint32(out.b, uint32(len(term)-1))
	w, _ := deflaters[c.Level].Get().(*zlib.Writer)
	if w == nil {
		var err error
		if w, err = zlib.NewWriterLevel(nil, c.Level); err != nil {
			panic(err) // the level is out of range: not made by ParseCompression
		}
	}
	w.Reset(&out)
	w.Write(term[1:]) // a sink takes everything
	w.Close()
	deflaters[c.Level].Put(w)
	if len(out.b)-n > len(term) {
		return append(out.b[:n], term...)
	}
	return out.b
}

// sink is a writer to the end of a slice.
type sink struct{ b []byte }

// Write implements io.Writer.
func (s *sink) Write(p []byte) (int, error) {
	s.b = append(s.b, p...)
	return len(p), nil
}

// inflate appends the term of data, which begins with the version byte and
// tagCompressed, to dst.
func inflate(dst, data []byte, limit int) ([]byte, error) {
	if len(data) < deflatePrefix {
		return dst, badTerm("%d bytes", len(data))
	}
	size := int64(binary.BigEndian.Uint32(data[2:]))
	data = data[deflatePrefix:]
	if size > int64(limit)-1 {
		return dst, tooLarge(size+1, limit)
	}
	in, _ := inflaters.Get().(*inflater)
	if in == nil {
		in = new(inflater)
	}
	defer in.free()
	if err := in.reset(data); err != nil {
		return dst, badTerm("%v", err)
	}
	n := len(dst)
	dst = append(dst, etf.Version)
	out, err := appendAll(dst, in.r, int(size))
	switch {
	case err != nil:
		return dst[:n], badTerm("%v", err)
	case len(out) != len(dst)+int(size):
		return dst[:n], badTerm("not of the size it claims, %d", size)
	}
	return out, nil
}
