package file

import (
	"bytes"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// maxWindow is the largest window of a zstd frame that is read, in bytes. It is
// twice what the highest level writes.
const maxWindow = 256 << 20

// zstdWriters keeps encoders by level, and zstdReaders decoders: both are large.
var (
	zstdWriters [23]sync.Pool
	zstdReaders sync.Pool
)

func (c Compression) appendZstd(dst, term []byte) []byte {
	level := c.Level
	if level == 0 {
		level = 3
	}
	w, _ := zstdWriters[level].Get().(*zstd.Encoder)
	if w == nil {
		var err error
		w, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(level)))
		if err != nil {
			panic(err) // our options are wrong
		}
	}
	defer zstdWriters[level].Put(w)
	return w.EncodeAll(term, dst)
}

func appendUnzstd(dst, data []byte, limit int) ([]byte, error) {
	r, _ := zstdReaders.Get().(*zstd.Decoder)
	if r == nil {
		var err error
		r, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			panic(err) // our options are wrong
		}
	}
	defer zstdReaders.Put(r)
	if err := r.Reset(bytes.NewReader(data)); err != nil {
		return dst, badTerm("%v", err)
	}
	out, err := appendAll(dst, r, limit)
	switch {
	case err != nil:
		return dst, badTerm("%v", err)
	case len(out) > len(dst)+limit:
		return dst, tooLarge(int64(len(out)-len(dst)), limit)
	}
	return out, nil
}
