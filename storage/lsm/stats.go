package lsm

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"

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
		total := m.Total()
		st.Files, st.TableBytes = total.TablesCount, total.TablesSize
		for _, level := range m.Levels {
			st.LevelFiles = append(st.LevelFiles, level.TablesCount)
		}
		st.BlockCacheBytes, st.FileCacheBytes = m.BlockCache.Size, m.FileCache.Size
		st.Table = levelTable(m)
		text.WriteString(m.String())
	}
	st.Text = text.String()
	return st, nil
}

// levelTable lists the levels that hold something, as LevelDB does. Pebble counts
// the time of compactions for all levels together; it stands in the last line.
func levelTable(m *pebble.Metrics) string {
	var b strings.Builder
	const mib = 1 << 20
	b.WriteString("                   Compactions\n")
	b.WriteString("Level  Files Size(MB) Score Read(MB) Write(MB)\n")
	b.WriteString("----------------------------------------------\n")
	for i := range m.Levels {
		l := &m.Levels[i]
		read, written := l.TableBytesRead, l.TableBytesFlushed+l.TableBytesCompacted
		if l.TablesCount == 0 && read == 0 && written == 0 {
			continue
		}
		fmt.Fprintf(&b, "%3d %8d %8.0f %5.1f %8.0f %9.0f\n", i, l.TablesCount,
			float64(l.TablesSize)/mib, max(l.Score, 0), float64(read)/mib, float64(written)/mib)
	}
	fmt.Fprintf(&b, "Compactions: %d in %.0f s\n", m.Compact.Count, m.Compact.Duration.Seconds())
	return b.String()
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
