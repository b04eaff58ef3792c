package node

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Second bytes of a frame with a distribution header, behind 131:
//
//	131, 68, Refs, Control[, Message]                       whole
//	131, 69, Sequence:64, Fragment:64, Refs, Control, Part  the first of several
//	131, 70, Sequence:64, Fragment:64, Part                 another one
//
// Fragment counts down to 1, the last. Sequence tells the messages apart whose
// fragments lie between each other; it may be used again when its message is
// whole. Refs counts references to the atom cache, which is never agreed on.
const (
	headWhole = 68
	headFirst = 69
	headNext  = 70
)

// Bounds of the messages of one link of which fragments are missing.
const (
	// maxUnfinished bounds their number.
	maxUnfinished = 1024
	// unfinishedFrames bounds their bytes, in frames of the greatest length.
	unfinishedFrames = 4
)

// assembler makes whole messages of fragments. Only the read goroutine uses it.
type assembler struct {
	max        int // bytes of one message
	unfinished map[uint64]*partial
	bytes      int // of all that is unfinished
}

// partial is a message of which fragments are missing.
type partial struct {
	next uint64 // the number the next fragment must have
	data []byte
}

// take takes a frame of a link that has FRAGMENTS agreed on. It returns the
// control term with its message, in memory of its own, when one is whole, and nil
// when fragments of it are missing. What is kept grows with the bytes that came,
// never with the number of fragments announced. After an error the link ends.
func (a *assembler) take(frame []byte) ([]byte, error) {
	if len(frame) < 3 || frame[0] != versionTag {
		return nil, fmt.Errorf("a frame of %d bytes without the header agreed on", len(frame))
	}
	switch frame[1] {
	case headWhole:
		return cutRefs(frame[2:])
	case headFirst, headNext:
	default:
		return nil, fmt.Errorf("a frame that begins with 131, %d", frame[1])
	}
	if len(frame) < 18 {
		return nil, fmt.Errorf("a fragment of %d bytes", len(frame))
	}
	seq, number, part := binary.BigEndian.Uint64(frame[2:]), binary.BigEndian.Uint64(frame[10:]), frame[18:]
	p := a.unfinished[seq]
	if frame[1] == headFirst {
		if p != nil {
			return nil, fmt.Errorf("fragments of two messages with sequence %d", seq)
		}
		var err error
		if part, err = cutRefs(part); err != nil {
			return nil, err
		}
		if number == 1 {
			return part, nil
		}
		if len(a.unfinished) >= maxUnfinished {
			return nil, fmt.Errorf("more than %d unfinished messages", maxUnfinished)
		}
		p = &partial{next: number}
		a.unfinished[seq] = p
	}
	switch {
	case p == nil:
		return nil, fmt.Errorf("a fragment of a message without a first one, sequence %d", seq)
	case number == 0 || number != p.next:
		return nil, fmt.Errorf("fragment %d of sequence %d instead of %d", number, seq, p.next)
	case len(part) > a.max-len(p.data):
		return nil, fmt.Errorf("%w: more than %d bytes in fragments", errFrameTooLong, a.max)
	case len(part) > unfinishedFrames*a.max-a.bytes:
		return nil, fmt.Errorf("%w: more than %d bytes in unfinished messages", errFrameTooLong, unfinishedFrames*a.max)
	}
	p.data = append(p.data, part...)
	a.bytes += len(part)
	if p.next--; p.next > 0 {
		return nil, nil
	}
	delete(a.unfinished, seq)
	a.bytes -= len(p.data)
	return p.data, nil
}

// cutRefs takes the number of references to the atom cache off, which must be 0.
func cutRefs(b []byte) ([]byte, error) {
	switch {
	case len(b) < 2:
		return nil, errors.New("a header with nothing behind it")
	case b[0] != 0:
		return nil, fmt.Errorf("%d references to an atom cache, which was not agreed on", b[0])
	}
	return b[1:], nil
}
