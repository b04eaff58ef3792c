package lsm

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"scanode/storage"
)

// Stats implements storage.Store. A parked store answers without asking pebble,
// which may hold a lock for ever.
func (s *store) Stats() (_ storage.Stats, err error) {
	if err := s.enter(); err == nil {
		defer s.leave()
	} else if !errors.Is(err, storage.ErrParked) {
		return storage.Stats{}, err
	}
	st := storage.Stats{
		Engine:     Name,
		ReadErrors: s.fence.readErrors.Load() + s.corruptBlocks.Load(),
	}
	s.mu.Lock()
	st.Iterators, st.Snapshots = s.iters, int64(len(s.snapshots))
	s.mu.Unlock()

	var text strings.Builder
	if cause := s.cause(); cause != nil {
		st.Parked = true
		fmt.Fprintf(&text, "%v\n", cause)
	}
	fmt.Fprintf(&text, "background errors: %d\nwrite stalls: %d\n", s.backgroundErrors.Load(), s.stalls.Load())
	if why := s.stalled.Load(); why != nil {
		fmt.Fprintf(&text, "writes wait: %s\n", *why)
	}
	if !st.Parked {
		defer s.guard(&err)
		m := s.db.Metrics()
		st.DiskBytes = s.diskBytes()
		st.MemoryBytes = int64(m.MemTable.Size + m.MemTable.ZombieSize)
		st.Files = m.Total().TablesCount
		text.WriteString(m.String())
	}
	st.Text = text.String()
	return st, nil
}

// diskBytes is the room that the files of the store take, what is preallocated
// included.
func (s *store) diskBytes() (total int64) {
	fs := s.engine.fs
	names, _ := fs.List(s.dir) // nothing is counted of what cannot be read
	for _, name := range names {
		info, err := fs.Stat(fs.PathJoin(s.dir, name))
		if err != nil {
			continue // removed meanwhile
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			total += st.Blocks * 512
		} else {
			total += info.Size()
		}
	}
	return total
}
