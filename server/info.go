package server

import (
	"os"
	"runtime/metrics"

	"scanode/etf"
)

// protocolVersion is what info reports; see docs/protocol.md.
const protocolVersion = 1

// nodeInfo answers info.
func (c *call) nodeInfo() {
	s := c.link.s
	s.mu.Lock()
	stores, links := len(s.stores), len(s.links)
	s.mu.Unlock()
	c.okTerm(etf.Map{
		{Key: etf.Atom("version"), Value: []byte(s.cfg.Version)},
		{Key: etf.Atom("protocol"), Value: int64(protocolVersion)},
		{Key: etf.Atom("stores"), Value: int64(stores)},
		{Key: etf.Atom("streams"), Value: s.streams.Load()},
		{Key: etf.Atom("links"), Value: int64(links)},
		{Key: etf.Atom("memory_bytes"), Value: memoryBytes()},
		{Key: etf.Atom("os_pid"), Value: int64(os.Getpid())},
	})
}

// memoryBytes is all the memory the Go runtime holds.
func memoryBytes() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// storeInfo answers {info, Id}.
func (c *call) storeInfo() {
	id, _, err := readIDAndRest(c.arg())
	if err != nil {
		c.fail(err)
		return
	}
	v, err := c.link.s.acquire(id)
	if err != nil {
		c.fail(err)
		return
	}
	defer v.release()
	stats, err := v.db.Stats()
	if err != nil {
		c.fail(err)
		return
	}
	v.mu.Lock()
	streams := len(v.streams)
	v.mu.Unlock()
	levels := etf.List{}
	for _, files := range stats.LevelFiles {
		levels = append(levels, files)
	}
	c.okTerm(etf.Map{
		{Key: etf.Atom("engine"), Value: []byte(stats.Engine)},
		{Key: etf.Atom("dir"), Value: []byte(v.dir)},
		{Key: etf.Atom("disk_bytes"), Value: stats.DiskBytes},
		{Key: etf.Atom("memory_bytes"), Value: stats.MemoryBytes},
		{Key: etf.Atom("files"), Value: stats.Files},
		{Key: etf.Atom("iterators"), Value: stats.Iterators},
		{Key: etf.Atom("snapshots"), Value: stats.Snapshots},
		{Key: etf.Atom("streams"), Value: int64(streams)},
		{Key: etf.Atom("read_errors"), Value: stats.ReadErrors},
		{Key: etf.Atom("parked"), Value: boolTerm(stats.Parked)},
		{Key: etf.Atom("text"), Value: []byte(stats.Text)},
		{Key: etf.Atom("level_files"), Value: levels},
		{Key: etf.Atom("table_bytes"), Value: stats.TableBytes},
		{Key: etf.Atom("block_cache_bytes"), Value: stats.BlockCacheBytes},
		{Key: etf.Atom("file_cache_bytes"), Value: stats.FileCacheBytes},
		{Key: etf.Atom("table"), Value: []byte(stats.Table)},
	})
}
