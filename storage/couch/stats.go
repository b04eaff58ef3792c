package couch

import (
	"errors"
	"fmt"
	"strings"

	"scanode/storage"
)

// Stats implements storage.Store.
func (s *store) Stats() (storage.Stats, error) {
	err := s.refusal()
	if err != nil && !errors.Is(err, storage.ErrParked) {
		return storage.Stats{}, err
	}
	v := s.acquire()
	defer v.gen.release()
	st := storage.Stats{
		Engine:     Name,
		Iterators:  s.iters.Load(),
		Snapshots:  s.snapshots.Load(),
		ReadErrors: s.readErrors.Load(),
		Parked:     err != nil,
		TableBytes: max(0, v.tree.Root().Size),
	}
	s.mu.Lock()
	for g := range s.generations {
		st.DiskBytes += g.file.Size()
		st.Files++
	}
	s.mu.Unlock()
	st.MemoryBytes = s.writer.overBytes.Load()
	var text strings.Builder
	if err != nil {
		fmt.Fprintf(&text, "%v\n", s.parkErr.Load())
	}
	fmt.Fprintf(&text, "commits since open: %d\n", s.writer.commits.Load())
	st.Text = text.String()
	return st, nil
}
