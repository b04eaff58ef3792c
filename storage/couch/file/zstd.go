package file

import (
	"bytes"
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// maxWindow is the largest window of a zstd frame that is read, in bytes: the
// decoder allocates what a frame says before it has read it. Levels up to 19 make
// none that is larger.
//
// Differs from couch_compress, which reads the larger windows that levels 20 to 22
// make of terms beyond 8 MiB.
const maxWindow = 8 << 20

// zstdWriters keeps encoders by level, zstdReaders decoders: both are large.
var (
	zstdWriters [maxZstdLevel + 1]sync.Pool
	zstdReaders sync.Pool
)

const (
	defaultZstdLevel = 3
	maxZstdLevel     = 22
)

func (c Compression) appendZstd(dst, term []byte) []byte {
	level := c.Level
	if level == 0 {
		level = defaultZstdLevel
	}
	w, _ := zstdWriters[level].Get().(*zstd.Encoder)
	if w == nil {
		var err error
		w, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(maxWindow),
			zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(level)))
		if err != nil {
			panic(err) // our options are wrong
		}
	}
	defer zstdWriters[level].Put(w)
	return w.EncodeAll(term, dst)
}

// zstdReader is a decoder and what it reads from.
type zstdReader struct {
	source bytes.Reader
	r      *zstd.Decoder
}

func newZstdReader() *zstdReader {
	// A single goroutine, and so none to end; WithDecodeBuffersBelow(0), lest it
	// decode all at once.
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecodeBuffersBelow(0), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		panic(err) // our options are wrong
	}
	return &zstdReader{r: r}
}

func appendUnzstd(dst, data []byte, limit int) ([]byte, error) {
	z, _ := zstdReaders.Get().(*zstdReader)
	if z == nil {
		z = newZstdReader()
	}
	defer func() {
		z.source.Reset(nil)
		zstdReaders.Put(z)
	}()
	z.source.Reset(data)
	err := z.r.Reset(&z.source)
	out := dst
	if err == nil {
		out, err = appendAll(dst, z.r, limit)
	}
	switch {
	case errors.Is(err, zstd.ErrWindowSizeExceeded):
		return dst, fmt.Errorf("%w: %w", ErrTooLarge, err)
	case err != nil:
		return dst, badTerm("%v", err)
	case len(out)-len(dst) > limit:
		return dst, tooLarge(int64(len(out)-len(dst)), limit)
	}
	return out, nil
}
