package file

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// maxWindow is the largest window that a zstd frame is read with, in bytes: the
// decoder allocates a window before it has read anything. Levels up to 19 ask for
// none that is larger. Levels 20 to 22 may, even for a frame of a few bytes when
// they were not told its size; such a frame is read as if it asked for maxWindow,
// which does for whatever is not larger itself.
//
// Differs from couch_compress, which also reads what needs the larger window: terms
// beyond 8 MiB that were compressed at level 20 or above.
const maxWindow = 8 << 20

// A frame begins with the magic, a byte of flags, and the window unless the flags
// say that there is none because all the content is one segment.
const (
	frameFlags    = 4
	frameWindow   = 5
	singleSegment = 1 << 5
)

// windowBytes returns the size that the window byte of a frame says, and
// windowByte what says maxWindow.
func windowBytes(b byte) int64 {
	base := int64(1) << (10 + b>>3)
	return base + base/8*int64(b&7)
}

const windowByte = 13 << 3

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
	r    *zstd.Decoder
	head [frameWindow + 1]byte // of the frame, with a window that may be smaller
	from [2]bytes.Reader       // head, when it differs, and the rest
}

// reset begins with the frame data. It says whether that gets a smaller window than
// it asks for.
func (z *zstdReader) reset(data []byte) (smaller bool, err error) {
	if len(data) > frameWindow && data[frameFlags]&singleSegment == 0 && windowBytes(data[frameWindow]) > maxWindow {
		copy(z.head[:], data)
		z.head[frameWindow] = windowByte
		z.from[0].Reset(z.head[:])
		z.from[1].Reset(data[len(z.head):])
		return true, z.r.Reset(io.MultiReader(&z.from[0], &z.from[1]))
	}
	z.from[1].Reset(data)
	return false, z.r.Reset(&z.from[1])
}

// free gives z back without the bytes it has read.
func (z *zstdReader) free() {
	z.from[1].Reset(nil)
	zstdReaders.Put(z)
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
	defer z.free()
	smaller, err := z.reset(data)
	out := dst
	if err == nil {
		out, err = appendAll(dst, z.r, limit)
	}
	switch {
	case err != nil && smaller, errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return dst, fmt.Errorf("%w: %w", ErrTooLarge, err)
	case err != nil:
		return dst, badTerm("%v", err)
	case len(out)-len(dst) > limit:
		return dst, tooLarge(int64(len(out)-len(dst)), limit)
	}
	return out, nil
}
