package lsm

// memory divides the memory of the process among what the stores of an engine
// use it for. Half of it is left to what cannot be planned here: requests and
// batches of rows on their way, and the garbage that Go's heap holds between two
// collections.
//
//	3/8  block cache and write buffers. Pebble takes the write buffers out of the
//	     cache: it holds fewer blocks while they are large
//	     (1/4 at most the write buffers of all stores)
//	1/8  flushing large batches, which takes about six times their size
//	1/2  the rest
type memory struct {
	cacheBytes  int64 // of the block cache, write buffers included
	bufferBytes int64 // of the write buffers of all stores, as long as there are 128 or fewer
	batchBytes  int64 // of large batches in flight
}

// Bounds of the parts. Below the least cache and batches nothing works well, so
// a smaller budget is not kept.
const (
	defaultMemoryBytes                = 1 << 30
	minCacheBytes                     = 8 << 20
	minBatchesBytes, maxBatchesBytes  = 4 << 20, 256 << 20
	batchMemoryFactor                 = 6
	buffersPerStore                   = 3 // one that is filled, one that is flushed, one that is kept to be used again
	sharesOfStores, sharesOfFewStores = 14, 4
)

// newMemory divides total bytes. cache, if not 0, says how large the block
// cache is instead.
func newMemory(total, cache int64) memory {
	if total <= 0 {
		total = defaultMemoryBytes
	}
	m := memory{
		cacheBytes:  max(total/8*3, minCacheBytes),
		bufferBytes: total / 4,
		batchBytes:  min(max(total/8/batchMemoryFactor, minBatchesBytes), maxBatchesBytes),
	}
	if cache > 0 {
		m.cacheBytes = cache
	}
	return m
}

// bufferFor is the size of a write buffer of a store that is opened as the nth:
// wish, or its share. A store keeps the size it was opened with, so the shares of
// those that came before must leave room for those that will come. With a share
// of one part in 14 n, n being at least 4, all buffers of n stores, opened one
// after the other, are
//
//	buffersPerStore * (1 + 1/5 + 1/6 + … + 1/n) / 14
//
// of bufferBytes: 0.93 for 128 stores. Of stores that are opened at the same time
// each counts all of them, so that they get the same, a third of that in all.
func (m memory) bufferFor(n int, wish int64) int64 {
	share := m.bufferBytes / (sharesOfStores * int64(max(n, sharesOfFewStores)))
	return max(min(wish, share), minBufferBytes)
}

// minBufferBytes still holds pebble's own bookkeeping.
const minBufferBytes = 256 << 10
