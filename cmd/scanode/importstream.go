package main

import (
	"bufio"
	"io"
	"os"

	"scanode/storage/dump"
)

// streamBuffer is what is read and written of a stream at once, in bytes.
const streamBuffer = 256 << 10

// stream is a portable stream as an origin.
type stream struct {
	*dump.Reader
	in   io.Closer
	text string
	size int64 // 0: unknown
}

func openStream(in *os.File, text string) (origin, error) {
	r, err := dump.NewReader(bufio.NewReaderSize(in, streamBuffer))
	if err != nil {
		return nil, err
	}
	s := &stream{Reader: r, in: in, text: text}
	if info, err := in.Stat(); err == nil && info.Mode().IsRegular() {
		s.size = info.Size()
	}
	return s, nil
}

// SeekAfter leaves everything to the reader of the transfer: what was brought before is
// read once more, and so the whole stream is checked.
func (s *stream) SeekAfter([]byte) bool { return false }

func (s *stream) Skipped() int64 { return 0 }
func (s *stream) name() string   { return s.text }

func (s *stream) progress() (done, of int64) { return s.Offset(), max(s.size, s.Offset()) }

func (s *stream) dirs() []string { return nil }

func (s *stream) report(*importReport) {}

// Close closes the file.
func (s *stream) Close() error { return s.in.Close() }
