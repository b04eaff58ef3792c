package file

// A Batch gathers chunks and writes them together. While it is open all others that
// write, or sync, wait. It is used by one goroutine, which must end it with Flush or
// Discard and until then call nothing of the file that writes.
//
// What is in it can be read only after Flush. Up to maxBatch bytes are held back; a larger
// batch is written in parts as it grows.
type Batch struct {
	f      *File
	buf    []byte
	chunks []Chunk
	err    error // of a part that was written
}

// maxBatch is how many bytes a batch holds back.
const maxBatch = 1 << 20

// Begin starts a batch. It waits for those who write.
func (f *File) Begin() *Batch {
	f.mu.Lock()
	return &Batch{f: f, buf: f.buf[:0]}
}

// Append adds payloads, each as a chunk, without a checksum unless Options.SumAll says so, and returns where they will
// be. The result is valid until the next call; the payloads are not kept.
//
// Errors: those of [File.Append], ErrClosed after the end of the batch. What has been
// added may stay in the file as garbage then.
func (b *Batch) Append(payloads [][]byte) ([]Chunk, error) {
	if b.f == nil {
		return nil, ErrClosed
	}
	b.chunks = b.chunks[:0]
	for _, p := range payloads {
		if int64(len(p)) > b.f.maxChunk {
			return nil, b.f.fault(-1, ErrTooLarge, "chunk of %d bytes, limit %d", len(p), b.f.maxChunk)
		}
		if len(b.buf)+len(p) > maxBatch {
			if err := b.Write(); err != nil {
				return nil, err
			}
		}
		at := len(b.buf)
		ptr := b.f.eof.Load() + int64(at)
		b.buf = b.f.sum.appendChunk(b.buf, ptr, p, b.f.sumAll)
		b.chunks = append(b.chunks, Chunk{Ptr: ptr, Size: int64(len(b.buf) - at)})
	}
	return b.chunks, nil
}

// Write writes what is held back and goes on with the batch.
//
// Errors: those of [File.Append], ErrClosed after the end of the batch.
func (b *Batch) Write() error {
	if b.f == nil {
		return ErrClosed
	}
	if b.err == nil && len(b.buf) > 0 {
		b.err = b.f.write(b.buf)
		b.buf = b.buf[:0]
	}
	return b.err
}

// Flush writes what is held back and ends the batch. What is in it can be read when it
// returns; a loss of power may take it away until Sync returns.
//
// Errors: those of [File.Append], ErrClosed after the end of the batch.
func (b *Batch) Flush() error {
	if b.f == nil {
		return ErrClosed
	}
	err := b.Write()
	b.end()
	return err
}

// Discard ends the batch without writing what it holds back. After Flush it does nothing.
func (b *Batch) Discard() {
	if b.f != nil {
		b.end()
	}
}

func (b *Batch) end() {
	f := b.f
	b.f, b.buf = nil, nil
	f.mu.Unlock()
}
