package port

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

// growStep bounds what is allocated ahead of the bytes that have arrived: a
// frame that claims 64 MiB and sends ten bytes costs one step.
const growStep = 1 << 20

// readFrame reads one frame and returns its content in a fresh slice. It returns
// io.EOF between frames and io.ErrUnexpectedEOF within one.
func readFrame(r *bufio.Reader, maxBytes int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if uint64(n) > uint64(maxBytes) {
		return nil, fmt.Errorf("frame of %d bytes, the limit is %d", n, maxBytes)
	}
	left := int(n)
	var frame []byte
	for {
		step := min(left, max(growStep, len(frame)))
		have := len(frame)
		if cap(frame) < have+step {
			grown := make([]byte, have, have+step)
			copy(grown, frame)
			frame = grown
		}
		frame = frame[:have+step]
		if _, err := io.ReadFull(r, frame[have:]); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		if left -= step; left == 0 {
			return frame, nil
		}
	}
}
