package btree

import "sync"

// A Cache holds nodes of one file as they were parsed, at most so many bytes of them,
// and forgets those that were not asked for the longest. Trees of the file and their
// readers share it. Inner nodes come into it whenever they are read or written, leaves
// when they were looked up or modified: a fold over many leaves does not drive out what
// is near the root. Pointers never stand for anything else than what was written
// there first, so nothing in it is ever wrong. A nil *Cache holds nothing.
type Cache struct {
	shards [cacheShards]shard
}

// cacheShards is in how many parts the cache is locked.
const cacheShards = 8

type shard struct {
	mu    sync.Mutex
	nodes map[int64]*cached
	ring  cached // ring.next was used last, ring.prev is forgotten next
	bytes int
	limit int
}

// cached is a node in the ring of its shard.
type cached struct {
	*node
	next, prev *cached
	bytes      int
}

// nodeOverhead is about what a node costs beside its bytes and rows.
const nodeOverhead = 200

// NewCache returns an empty cache for at most maxBytes bytes of one file's nodes.
func NewCache(maxBytes int) *Cache {
	c := &Cache{}
	for i := range c.shards {
		s := &c.shards[i]
		s.nodes = map[int64]*cached{}
		s.ring.next, s.ring.prev = &s.ring, &s.ring
		s.limit = maxBytes / cacheShards
	}
	return c
}

// Bytes returns how many bytes the nodes in the cache take, about.
func (c *Cache) Bytes() int {
	total := 0
	if c != nil {
		for i := range c.shards {
			s := &c.shards[i]
			s.mu.Lock()
			total += s.bytes
			s.mu.Unlock()
		}
	}
	return total
}

// shard returns where the node at ptr is kept.
func (c *Cache) shard(ptr int64) *shard {
	// Nodes lie anywhere, so any bits of a product do.
	return &c.shards[uint64(ptr)*0x9e3779b97f4a7c15>>61]
}

// get returns the node at ptr, or nil.
func (c *Cache) get(ptr int64) *node {
	if c == nil {
		return nil
	}
	s := c.shard(ptr)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.nodes[ptr]
	if e == nil {
		return nil
	}
	if s.ring.next != e {
		e.unlink()
		s.push(e)
	}
	return e.node
}

// put keeps n, which must not change from then on; n.cached says that it was taken.
func (c *Cache) put(n *node) {
	if c == nil {
		return
	}
	n.packed = nil
	size := cap(n.plain) + 4*cap(n.offs) + nodeOverhead
	s := c.shard(n.ptr)
	s.mu.Lock()
	defer s.mu.Unlock()
	// A node that would drive out a good part of the others is not worth it.
	if size > s.limit/4 || s.nodes[n.ptr] != nil {
		return
	}
	n.cached = true
	e := &cached{node: n, bytes: size}
	s.nodes[n.ptr] = e
	s.push(e)
	for s.bytes += size; s.bytes > s.limit; {
		last := s.ring.prev
		last.unlink()
		delete(s.nodes, last.ptr)
		s.bytes -= last.bytes
	}
}

func (e *cached) unlink() { e.prev.next, e.next.prev = e.next, e.prev }

func (s *shard) push(e *cached) {
	e.prev, e.next = &s.ring, s.ring.next
	e.prev.next, e.next.prev = e, e
}
