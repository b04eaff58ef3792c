package node

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const (
	passThrough = 112 // first byte of a frame without a distribution header
	versionTag  = 131 // first byte of a term

	// defaultMaxFrameBytes is what a BEAM's message may be here.
	defaultMaxFrameBytes = 64 << 20

	// firstReadBytes is the most that is allocated for a frame on its word
	// alone. Beyond it the buffer at most doubles with what has arrived.
	firstReadBytes = 64 << 10
)

var errFrameTooLong = errors.New("frame too long")

// readFrame reads `Length:32` and so many bytes into fresh memory. A tick is an
// empty frame. A frame longer than max is errFrameTooLong.
func readFrame(r io.Reader, max int) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint32(size[:]))
	if n == 0 {
		return nil, nil
	}
	if n > max {
		return nil, fmt.Errorf("%w: %d bytes announced, %d allowed", errFrameTooLong, n, max)
	}
	frame := make([]byte, min(n, firstReadBytes))
	for read := 0; ; {
		m, err := io.ReadFull(r, frame[read:])
		if err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		if read += m; read == n {
			return frame, nil
		}
		grown := make([]byte, min(n, 2*read))
		copy(grown, frame)
		frame = grown
	}
}

// form is how the frames of a link look.
type form bool

const (
	passing form = false // 112, 131, Control[, 131, Message]
	headed  form = true  // 131, 68, 0, Control[, Message], and fragments: FRAGMENTS is agreed on
)

func formOf(agreed flags) form { return agreed&flagFragments != 0 }

// start appends a frame's length, to be filled in by frameEnd, and what precedes
// the control term. Returns where the frame begins.
func (f form) start(dst []byte) ([]byte, int) {
	at := len(dst)
	if f == headed {
		return append(dst, 0, 0, 0, 0, versionTag, headWhole, 0), at
	}
	return append(dst, 0, 0, 0, 0, passThrough, versionTag), at
}

// between appends what stands between a control term and its message.
func (f form) between(dst []byte) []byte {
	if f == headed {
		return dst
	}
	return append(dst, versionTag)
}

// frameEnd fills in the length of the frame that begins at start and goes to the
// end of dst, plus more bytes that are written behind it.
func frameEnd(dst []byte, start, more int) []byte {
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-4+more))
	return dst
}

// message takes a message off its place behind a control term. Returns false
// where there is none.
func (f form) message(b []byte) ([]byte, bool) {
	if f == headed {
		return b, len(b) > 0
	}
	if len(b) < 2 || b[0] != versionTag {
		return nil, false
	}
	return b[1:], true
}

// cutFrame takes the pass-through byte and the version off a frame and returns
// what follows: the control term and, behind it, perhaps a message.
func cutFrame(frame []byte) ([]byte, error) {
	switch {
	case len(frame) < 3:
		return nil, fmt.Errorf("a frame of %d bytes", len(frame))
	case frame[0] == versionTag:
		return nil, fmt.Errorf("a distribution header (131, %d), which was not agreed", frame[1])
	case frame[0] != passThrough || frame[1] != versionTag:
		return nil, fmt.Errorf("a frame that begins with %d, %d", frame[0], frame[1])
	}
	return frame[2:], nil
}
